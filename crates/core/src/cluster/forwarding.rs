//! Forwards a call for a task that another node works on, and waits for the answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chancery_protocol::{CallContext, Error, SendMessage, TaskId};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::forwarded_request::{ForwardedContext, ForwardedOperation, ForwardedOutcome};
use super::holding::{HoldGuard, Holding};
use super::membership::Membership;
use crate::agents::Agent;
use crate::find::{come_back, internal};
use crate::follow_up::{FollowUp, ended};
use crate::live::LiveTask;
use crate::service::ChanceryInner;
use crate::take::Taken;
use crate::{Cascaded, ForwardedCall, ForwardedCallNumber, ForwardedCallState, NodeNumber, ReplyMode, StoreError};

/// A caller waits so many leases for the node that works on its task: long enough for another node to take over.
const PATIENCE_IN_LEASES: u32 = 3;

/// The pause before it is looked again who works on a task that changed hands.
const AFTER_MOVE: Duration = Duration::from_millis(20);

/// The calls that wait for the answer of another node.
#[derive(Debug, Default)]
pub(crate) struct WaitingCalls(Mutex<HashMap<ForwardedCallNumber, Arc<Notify>>>);

/// One of them.
#[derive(Debug)]
struct WaitingCall<'a> {
    all: &'a WaitingCalls,
    number: ForwardedCallNumber,
    answered: Arc<Notify>,
}

impl WaitingCalls {
    fn lock(&self) -> MutexGuard<'_, HashMap<ForwardedCallNumber, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, number: ForwardedCallNumber) -> WaitingCall<'_> {
        let answered = Arc::new(Notify::new());
        self.lock().insert(number, Arc::clone(&answered));
        WaitingCall { all: self, number, answered }
    }

    /// Something has become of a call.
    pub(super) fn wake(&self, number: ForwardedCallNumber) {
        if let Some(answered) = self.lock().get(&number) {
            answered.notify_one();
        }
    }

    /// Something may have become of each of them.
    pub(super) fn wake_all(&self) {
        self.lock().values().for_each(|answered| answered.notify_one());
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(&self.number);
    }
}

/// Where a call was made.
enum MadeAt {
    /// Nowhere yet: this node works on the task by now.
    Here(HoldGuard),
    Elsewhere(ForwardedOutcome),
    Ended,
}

impl ChanceryInner {
    /// A message for a task that another node works on.
    pub(crate) async fn follow_up_elsewhere(
        self: &Arc<Self>,
        member: &Membership,
        context: &CallContext,
        agent: &Arc<Agent>,
        live: Arc<LiveTask>,
        mut send: SendMessage,
        reply_mode: ReplyMode,
    ) -> Result<Taken, Error> {
        // Secrets of webhooks do not go through the store as they are: the registration is made here.
        let registered = match send.configuration.task_push_notification_config.take() {
            Some(config) => Box::pin(self.register_inline(context, agent, &live.record, &config)).await?,
            None => None,
        };
        let reply_mode = if self.streams.is_watched(&live.record.id) { ReplyMode::Stream } else { reply_mode };
        let operation = ForwardedOperation::Message {
            context: Box::new(ForwardedContext::of(context)),
            send: Box::new(send.clone()),
            reply: reply_mode.into(),
        };
        let taken = match self.make_where_held(member, &live, &operation).await {
            Ok(MadeAt::Here(guard)) => {
                let follow_up = FollowUp { live: Arc::clone(&live), send, reply_mode, guard: Some(guard), answer: None };
                self.follow_up_here(context, agent, follow_up).await
            }
            Ok(MadeAt::Elsewhere(ForwardedOutcome::Taken(seq))) => {
                self.catch_up(member, &live, Some(seq)).await?;
                return Ok(Taken { live, before: seq, cursor: seq, fresh: false, recording: None });
            }
            Ok(MadeAt::Elsewhere(ForwardedOutcome::Refused(error))) => Err(error.into()),
            Ok(MadeAt::Elsewhere(ForwardedOutcome::Cancelled(_))) => Err(unreadable()),
            Ok(MadeAt::Ended) => Err(ended(&live.stored())),
            Err(error) => Err(error),
        };
        if let (Err(_), Some(id)) = (&taken, &registered) {
            self.take_back_inline(&live.record.id, id).await;
        }
        taken
    }

    /// Cancels a task and all below it, wherever it is worked on.
    pub(crate) async fn cancel_anywhere(self: &Arc<Self>, live: &Arc<LiveTask>, by: Arc<str>) -> Result<Vec<Cascaded>, Error> {
        let mut guard = None;
        if let Some(member) = &self.cluster {
            let operation = ForwardedOperation::Cancel { by: Arc::clone(&by) };
            match Box::pin(self.make_where_held(member, live, &operation)).await? {
                MadeAt::Here(held) => guard = Some(held),
                MadeAt::Elsewhere(outcome) => {
                    self.catch_up(member, live, None).await?;
                    return match outcome {
                        ForwardedOutcome::Cancelled(cascaded) => Ok(cascaded),
                        ForwardedOutcome::Refused(error) => Err(error.into()),
                        ForwardedOutcome::Taken(_) => Err(unreadable()),
                    };
                }
                MadeAt::Ended => return Err(crate::cancel::not_cancelable(live.stored().progress.state)),
            }
        }
        self.note_cancel(live, || by);
        let cascaded = self.cancel_with_all_below(live).await;
        drop(guard);
        cascaded
    }

    /// Makes a call at the node that works on its task, also if that changes meanwhile.
    async fn make_where_held(
        self: &Arc<Self>,
        member: &Membership,
        live: &Arc<LiveTask>,
        operation: &ForwardedOperation,
    ) -> Result<MadeAt, Error> {
        let until = Instant::now() + member.port.lease() * PATIENCE_IN_LEASES;
        loop {
            match self.hold_task(member, live).await? {
                Holding::Here(guard) => return Ok(MadeAt::Here(guard)),
                Holding::Ended => return Ok(MadeAt::Ended),
                Holding::Elsewhere(node) => {
                    if let Some(outcome) = self.forward(member, &live.record.id, node, operation, until).await? {
                        return Ok(MadeAt::Elsewhere(outcome));
                    }
                }
            }
            if Instant::now() >= until {
                return Err(no_answer(&live.record.id));
            }
            sleep(AFTER_MOVE).await;
        }
    }

    /// Nothing if the node does not work on the task any more.
    async fn forward(
        &self,
        member: &Membership,
        task: &TaskId,
        to: NodeNumber,
        operation: &ForwardedOperation,
        until: Instant,
    ) -> Result<Option<ForwardedOutcome>, Error> {
        let body = operation.sealed(&*self.seal, task, to);
        let body = body.map_err(|error| internal(StoreError::caused_by("a call cannot be written as JSON", error)))?;
        let call = ForwardedCall { task: task.clone(), to, body };
        let Some(number) = member.port.forward(call).await.map_err(internal)? else { return Ok(None) };
        let waiting = member.waiting.begin(number);
        let every = member.port.lease() / 10;
        let mut withdrawn_in_vain = false;
        loop {
            match member.port.forwarded(number).await {
                Ok(ForwardedCallState::Answered(body)) => {
                    return ForwardedOutcome::opened(&*self.seal, &body, number).map(Some).ok_or_else(unreadable);
                }
                Ok(ForwardedCallState::Moved) => return Ok(None),
                Ok(ForwardedCallState::Waiting) => {}
                Err(fault) => {
                    tracing::warn!(%task, error = &fault as &dyn std::error::Error, "cannot look for the answer to a forwarded call");
                }
            }
            if Instant::now() >= until || self.shutdown.is_cancelled() {
                // Once taken back it cannot be made; otherwise it is being answered at this moment.
                match member.port.withdraw_forwarded(number).await {
                    Ok(false) if !withdrawn_in_vain => withdrawn_in_vain = true,
                    _ => return Err(no_answer(task)),
                }
            }
            // A wake-up can be lost, so it is looked again after a while.
            let _ = timeout_at(Instant::now() + every, waiting.answered.notified()).await;
        }
    }
}

fn no_answer(task: &TaskId) -> Error {
    let message = format!("the node that works on task {task} did not answer in time; GetTask shows what is recorded");
    come_back(message).with_fact("taskId", task)
}

fn unreadable() -> Error {
    internal(StoreError::new(
        "the answer of another node to a forwarded call cannot be read; do all nodes have the same seal key?",
    ))
}
