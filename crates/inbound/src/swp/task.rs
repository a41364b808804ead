//! One task from its first frame to its last: put to the service as a message that is watched, and reported on as it goes.

use std::sync::Arc;

use bytes::Bytes;
use chancery_core::{Alarm, Answer, NextEvents, Subscription};
use chancery_identity::SealKey;
use chancery_protocol::{Binding, CallContext, Error, ErrorKind, Request, TraceId, Version};
use chancery_wire::swp::codec::a2a::SwpHandshake;
use chancery_wire::swp::codec::obs::TraceContext;
use chancery_wire::swp::codec::{Envelope, Reject, SwpLimits, a2a};
use chancery_wire::swp::{Convention, Given, Report, Reporter, read_task, refusal, too_large};
use tokio::time::Instant;

use super::kind::named;
use super::millis;
use super::queue::FrameQueue;
use super::scope::{CallerTasks, TaskShare};
use crate::context::{CallHead, Draft, LONGEST_TRACESTATE, NamedTenants};
use crate::doors::Doors;
use crate::origin::ConnectionOrigin;
use crate::sse::face;

/// Who greets those that wait for news.
const HEARTBEAT: &str = "chancery";

/// What work on a task needs of its connection.
pub(super) struct TaskSession {
    pub(super) doors: Doors,
    pub(super) origin: ConnectionOrigin,
    pub(super) scope: Arc<CallerTasks>,
    pub(super) frames: FrameQueue,
    pub(super) limits: SwpLimits,
}

pub(super) struct Work {
    pub(super) envelope: Envelope,
    pub(super) task: a2a::SwpTaskMessage,
    pub(super) trace: Option<TraceContext>,
    /// It is known here already.
    pub(super) repeated: bool,
    /// This connection had its result already; the result is sent again, and nothing else.
    pub(super) only_result: bool,
}

/// The outcome of work on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Reported,
    /// The sender of the task is unknown here, or no longer known.
    TurnedAway,
}

/// The outcome of a task that was given to the service.
enum Begun {
    Watched(Box<Subscription>, Convention),
    /// It goes on with another, and was put to it before.
    SaidBefore,
}

impl TaskSession {
    pub(super) async fn work(&self, work: Work, held: TaskShare) -> Ended {
        let followed = match self.begin(&work).await {
            Ok(Begun::Watched(subscription, convention)) => self.follow(&work, subscription, convention).await,
            Ok(Begun::SaidBefore) => {
                drop(held);
                self.tell_again(&work).await;
                return Ended::Reported;
            }
            Err(error) => Err(error),
        };
        let Err(error) = followed else { return Ended::Reported };
        // What was refused was never begun: unless somebody else hears of it, it leaves no trace, and may be tried again.
        drop(held);
        self.refuse(&work, &error).await;
        if error.kind == ErrorKind::Unauthenticated { Ended::TurnedAway } else { Ended::Reported }
    }

    /// Puts the task to the service.
    async fn begin(&self, work: &Work) -> Result<Begun, Error> {
        let Work { envelope, task, trace, .. } = work;
        // For each task anew: a caller may have been taken off the list while its connection is open.
        let known = self.doors.know_caller(&self.origin).await?;
        let given = Given::of(&envelope.extensions)?;
        let signposts = &self.doors.settings().signposts;
        let context = |agent, idempotency_key, in_body: Option<&str>| {
            let unlisted_at = self.origin.of_unlisted(&known);
            let draft = Draft { agent, via: None, known: known.clone(), unlisted_at };
            let head = CallHead { idempotency_key, ..head(trace.as_ref(), &given)? };
            draft.context(head, NamedTenants { in_path: None, in_body }, signposts, Binding::Swp, Version::V1_0)
        };
        // Whose skills the kind may name depends on the caller alone; the tenant is read from the task.
        let named = named(self.doors.chancery(), &context(None, None, None)?, &task.kind)?;
        let name = name_of(&task.task_id);
        let json = &self.doors.settings().json;
        let send = read_task(task, named.skill.as_deref(), &name, &given, named.declared, json)?;
        let goes_on = send.message.task_id.is_some();
        // The same task again, over whichever connection, is the same task.
        let idempotency_key = (!goes_on).then(|| name.into());
        let context = context(named.agent, idempotency_key, send.tenant.as_deref())?;
        // The service would take it for another message and say it twice.
        if goes_on && (work.repeated || !self.scope.say(&task.task_id)) {
            return Ok(Begun::SaidBefore);
        }
        let subscription = self.ask(&context, Request::StreamMessage(send)).await.inspect_err(|_| {
            if goes_on {
                self.scope.take_back(&task.task_id);
            }
        })?;
        Ok(Begun::Watched(subscription, given.convention.unwrap_or(named.declared)))
    }

    async fn ask(&self, context: &CallContext, request: Request) -> Result<Box<Subscription>, Error> {
        match self.doors.call_until(context, request, None).await {
            Ok(Answer::Stream(subscription)) => Ok(subscription),
            Ok(_) => Err(Error::new(ErrorKind::Internal, "one reply was answered where a stream was asked for")),
            Err(error) => Err(error),
        }
    }

    /// Reports what happens until the task, or its turn, is over. A refusal can come as late as its first word.
    async fn follow(&self, work: &Work, mut subscription: Box<Subscription>, convention: Convention) -> Result<(), Error> {
        let most = self.limits.max_payload_bytes.min(self.limits.max_frame_bytes);
        let mut reporter = Reporter::new(work.task.task_id.clone(), convention, most as usize);
        let mut face = face(&subscription);
        let (heartbeat, mut alarm) = (self.doors.settings().limits.stream_heartbeat(), Alarm::default());
        loop {
            let next = async {
                self.frames.drained().await;
                subscription.next().await
            };
            let Some(next) = alarm.unless(Instant::now() + heartbeat, next).await else {
                if convention == Convention::A2a {
                    self.beat(work).await;
                }
                continue;
            };
            match next? {
                NextEvents::Events(entries) => {
                    let permit = subscription.take_permit().map(Arc::new);
                    let mut reports = Vec::new();
                    for entry in &entries {
                        face.stays_open = subscription.stays_open_at(entry);
                        reports.extend(reporter.report(&face, &entry.event));
                    }
                    for report in reports {
                        match self.frame(&work.envelope, &report) {
                            // What came before the end was told before.
                            Ok(_) if work.only_result => {}
                            Ok(frame) => {
                                // Another connection of the same caller may have been quicker with the end; on this one the
                                // story is told in its order all the same.
                                let _ = self.scope.note(&report);
                                if self.frames.send(frame, permit.clone()).await.is_err() {
                                    return Ok(());
                                }
                            }
                            // Whoever hears every event has to have this one; for all others the result has what counts.
                            Err(_) if convention == Convention::A2a => {
                                self.end(work, refusal(work.task.task_id.clone(), &too_large("an event"))).await;
                                return Ok(());
                            }
                            Err(_) => {}
                        }
                    }
                }
                NextEvents::Done => {
                    self.end(work, reporter.finish()).await;
                    return Ok(());
                }
                // The task is taken up again at the next start; whoever sends it again then hears of it.
                NextEvents::ShuttingDown => return Ok(()),
            }
        }
    }

    /// Sends a keepalive, in the only form that changes nothing. A peer that expects few reports may get
    /// none.
    async fn beat(&self, work: &Work) {
        let greeting = SwpHandshake { agent_id: HEARTBEAT.to_owned(), capabilities: Vec::new() };
        let beat = Report { message: a2a::A2aMessage::Handshake(greeting), given: Given::default() };
        if let Ok(frame) = self.frame(&work.envelope, &beat) {
            // Nobody to send it to is noticed where the connection is watched.
            let _ = self.frames.send(frame, None).await;
        }
    }

    /// The last report on a task. A connection that had one gets the same again or nothing: the task may have
    /// continued since.
    async fn end(&self, work: &Work, result: Report) {
        let (result, frame) = match self.frame(&work.envelope, &result) {
            Ok(frame) => (result, Ok(frame)),
            Err(_) => {
                let refused = refusal(work.task.task_id.clone(), &too_large("the result"));
                let frame = self.frame(&work.envelope, &refused);
                (refused, frame)
            }
        };
        let noted = self.scope.note(&result);
        if let Ok(frame) = frame
            && (noted.is_ok() || !work.only_result)
        {
            let _ = self.frames.send(frame, None).await;
        }
    }

    /// What came of a message that was said before, if that is still to be had.
    async fn tell_again(&self, work: &Work) {
        match self.scope.what_came_of(&work.task.task_id).await {
            Some(result) => {
                if let Ok(frame) = self.frame(&work.envelope, &result) {
                    let _ = self.frames.send(frame, None).await;
                }
            }
            None => {
                let message = "this message went to its task before, and what came of it is not known here any more";
                self.refuse(work, &Error::new(ErrorKind::UnsupportedOperation, message)).await;
            }
        }
    }

    /// A connection that had a result gets no other.
    async fn refuse(&self, work: &Work, error: &Error) {
        if !work.only_result
            && let Ok(frame) = self.frame(&work.envelope, &refusal(work.task.task_id.clone(), error))
        {
            let _ = self.frames.send(frame, None).await;
        }
    }

    fn frame(&self, to: &Envelope, report: &Report) -> Result<Bytes, Reject> {
        let now = millis(self.doors.chancery().now());
        let mut reply = to.reply(report.message.msg_type(), now, report.message.to_payload());
        reply.extensions = report.given.to_extensions();
        reply
            .encode(&self.limits)
            .inspect_err(|reject| tracing::warn!(%reject, "a report on a task is too large for an SWP frame"))
    }
}

/// A task's id as the service has it: callers choose them, of any length and any octets.
fn name_of(task_id: &[u8]) -> String {
    let digest = SealKey::digest(task_id);
    digest[..16].iter().fold("swp-".to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

/// What SWP says beside a task. Telemetry that makes no sense is no reason to refuse it.
fn head(trace: Option<&TraceContext>, given: &Given) -> Result<CallHead, Error> {
    let is_visible = |text: &str| text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    let hop_token = match given.hop_token.as_deref() {
        Some(token) if !is_visible(token) => return Err(Error::invalid_field("hop token", "must be visible ASCII")),
        token => token.filter(|token| !token.is_empty()).map(Arc::from),
    };
    let tracestate = trace.map(|trace| trace.tracestate.as_str());
    let tracestate = tracestate.filter(|state| (1..=LONGEST_TRACESTATE).contains(&state.len()) && is_visible(state));
    Ok(CallHead {
        hop_token,
        trace: trace.and_then(|trace| TraceId::with_span(&trace.traceparent)),
        tracestate: tracestate.map(Arc::from),
        ..CallHead::default()
    })
}
