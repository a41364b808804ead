//! One task from its first frame to its last: put to the service as a message that is watched, and reported on as it goes.

use std::sync::Arc;

use bytes::Bytes;
use chancery_core::{Answer, Next, Subscription, task_state};
use chancery_identity::SealKey;
use chancery_protocol::{Binding, CallContext, Error, ErrorKind, Proof, Request, TaskEvent, Version};
use chancery_wire::swp::codec::obs::TraceContext;
use chancery_wire::swp::codec::{Envelope, Limits, Party, a2a};
use chancery_wire::swp::{Convention, Given, Report, Reporter, read_task, refusal};
use http::{HeaderMap, HeaderValue};
use tokio::sync::mpsc;

use super::kind::named;
use super::millis;
use super::scope::Scope;
use crate::context::{Draft, settle_tenant};
use crate::doors::Doors;
use crate::origin::Origin;
use crate::sse::face;

/// What work on a task needs of its connection.
pub(super) struct Desk {
    pub(super) doors: Doors,
    pub(super) origin: Origin,
    pub(super) scope: Arc<Scope>,
    pub(super) frames: mpsc::Sender<Bytes>,
    pub(super) limits: Limits,
}

pub(super) struct Work {
    pub(super) envelope: Envelope,
    pub(super) task: a2a::Task,
    pub(super) trace: Option<TraceContext>,
    /// The task had its result already; it is told again, and nothing else.
    pub(super) only_result: bool,
}

/// What became of work on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Reported,
    /// Whoever gave it is nobody here, or no longer.
    TurnedAway,
}

/// Nobody is there to report to.
struct Gone;

impl Desk {
    pub(super) async fn work(&self, work: Work) -> Ended {
        let task_id = work.task.task_id.clone();
        let followed = match self.begin(&work).await {
            Ok((subscription, convention)) => self.follow(&work, subscription, convention).await,
            Err(error) => Err(error),
        };
        let Err(error) = followed else { return Ended::Reported };
        // What was refused was never begun: it leaves no trace, and may be tried again.
        self.scope.lifecycle().abandon(&task_id);
        let _ = self.send(&work.envelope, refusal(task_id, &error)).await;
        if error.kind == ErrorKind::Unauthenticated { Ended::TurnedAway } else { Ended::Reported }
    }

    /// Puts the task to the service.
    async fn begin(&self, work: &Work) -> Result<(Box<Subscription>, Convention), Error> {
        let Work { envelope, task, trace, .. } = work;
        // For each task anew: a caller may have been taken off the list while its connection is open.
        let known = self.doors.know_caller(&self.origin).await?;
        let agents = self.doors.chancery().agents();
        let named = named(&agents, &task.kind, known.standing.proof != Proof::None)?;
        let given = Given::of(&envelope.extensions)?;
        let name = name_of(&task.task_id);
        let json = &self.doors.settings().json;
        let send = read_task(task, named.skill.as_deref(), &name, &given, named.declared, json)?;
        let draft = Draft { agent: Some(named.agent.name.clone()), known };
        let mut context = draft.context(&headers(trace.as_ref(), &given)?, Binding::Swp, Version::V1_0)?;
        settle_tenant(&mut context, &self.doors.settings().signposts, &HeaderMap::new(), None, send.tenant.as_deref())?;
        if send.message.task_id.is_none() {
            // The same task again, over whichever connection, is the same task.
            context.idempotency_key = Some(name.into());
        }
        let subscription = self.ask(&context, Request::StreamMessage(send)).await?;
        Ok((subscription, given.convention.unwrap_or(named.declared)))
    }

    async fn ask(&self, context: &CallContext, request: Request) -> Result<Box<Subscription>, Error> {
        match self.doors.call(context, request).await {
            Ok(Answer::Stream(subscription)) => Ok(subscription),
            Ok(Answer::Reply(_)) => Err(Error::new(ErrorKind::Internal, "one reply was answered where a stream was asked for")),
            Err(error) => Err(error),
        }
    }

    /// Reports what happens until the task, or its turn, is over. A refusal can come as late as its first word.
    async fn follow(&self, work: &Work, mut subscription: Box<Subscription>, convention: Convention) -> Result<(), Error> {
        let mut reporter = Reporter::new(work.task.task_id.clone(), convention);
        let face = face(&subscription);
        let mut picture = Picture::default();
        loop {
            match subscription.next().await? {
                Next::Events(entries) if work.only_result => entries.iter().for_each(|entry| picture.add(&entry.event)),
                Next::Events(entries) => {
                    for report in entries.iter().flat_map(|entry| reporter.hear(&face, &entry.event)) {
                        if self.report(&work.envelope, report).await.is_err() {
                            return Ok(());
                        }
                    }
                }
                Next::Done => {
                    picture.0.iter().for_each(|whole| drop(reporter.hear(&face, whole)));
                    let _ = self.report(&work.envelope, reporter.finish()).await;
                    return Ok(());
                }
                // The task is taken up again at the next start; whoever sends it again then hears of it.
                Next::ShuttingDown => return Ok(()),
            }
        }
    }

    /// Sends a report and notes it. Another connection of the same caller may have been quicker with the end; on this one the
    /// story is told in its order all the same.
    async fn report(&self, envelope: &Envelope, report: Report) -> Result<(), Gone> {
        let _ = self.scope.lifecycle().accept(Party::Us, &report.message);
        self.send(envelope, report).await
    }

    async fn send(&self, to: &Envelope, report: Report) -> Result<(), Gone> {
        let now = millis(self.doors.chancery().now());
        let frame = |report: &Report| {
            let mut reply = to.reply(report.message.msg_type(), now, report.message.to_payload());
            reply.extensions = report.given.to_extensions();
            reply.encode(&self.limits)
        };
        let written = frame(&report).or_else(|reject| {
            tracing::info!(%reject, "a report on a task does not fit into a frame");
            match (&report.message, report.message.task_id()) {
                (a2a::Message::Result(_), Some(task_id)) => {
                    let large = Error::new(ErrorKind::TooLarge, "the result does not fit into a frame (swp.max_frame_bytes)");
                    frame(&refusal(task_id.clone(), &large))
                }
                _ => Err(reject),
            }
        });
        match written {
            Ok(frame) => self.frames.send(frame).await.map_err(|_| Gone),
            // An event that is too large is left out: the result has what counts.
            Err(_) => Ok(()),
        }
    }
}

/// A task that is told all at once, because what came before its end was told before.
#[derive(Default)]
struct Picture(Option<TaskEvent>);

impl Picture {
    fn add(&mut self, event: &TaskEvent) {
        match (&mut self.0, event) {
            (Some(TaskEvent::Created(task)), TaskEvent::Status(_) | TaskEvent::Artifact(_) | TaskEvent::Said(_)) => {
                task_state::apply(Arc::make_mut(task), event);
            }
            (whole, event) => *whole = Some(event.clone()),
        }
    }
}

/// A task's id as the service has it: callers choose them, of any length and any octets.
fn name_of(task_id: &[u8]) -> String {
    let digest = SealKey::digest(task_id);
    digest[..16].iter().fold("swp-".to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

/// What SWP says beside a task, in the words of all other doors.
fn headers(trace: Option<&TraceContext>, given: &Given) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    if let Some(trace) = trace {
        for (name, value) in [("traceparent", &trace.traceparent), ("tracestate", &trace.tracestate)] {
            // Telemetry that makes no sense is no reason to refuse a task.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        }
    }
    if let Some(token) = &given.hop_token {
        let value = HeaderValue::from_str(token).map_err(|_| Error::invalid_field("hop token", "must be visible ASCII"))?;
        headers.insert("chancery-hop-token", value);
    }
    Ok(headers)
}
