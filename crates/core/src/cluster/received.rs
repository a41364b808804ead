//! Answers the calls that other nodes forwarded to this one, because it works on their tasks.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::{CallContext, Error, ErrorKind, SendMessage};

use super::forwarded_request::{ForwardedError, ForwardedOperation, ForwardedOutcome};
use super::holding::Holding;
use super::membership::Membership;
use crate::find::internal;
use crate::follow_up::{FollowUp, ended, may_follow};
use crate::service::ChanceryInner;
use crate::{CallAnswer, ForwardedCallNumber, ReceivedCall, ReplyMode, Seal, Stored};

/// So many more calls are looked for than are being answered.
const PAGE: usize = 64;

/// Makes the answer to a message that another node forwarded, once it is known which entry it is.
pub(crate) trait AnswerToMessage {
    fn of(&self, seq: u64) -> CallAnswer;
}

/// The answer to one call.
#[derive(Debug)]
pub(crate) struct SealedAnswer {
    seal: Arc<dyn Seal>,
    number: ForwardedCallNumber,
}

impl AnswerToMessage for SealedAnswer {
    fn of(&self, seq: u64) -> CallAnswer {
        ForwardedOutcome::Taken(seq).sealed(&*self.seal, self.number)
    }
}

/// The calls that are being answered.
#[derive(Debug, Default)]
pub(crate) struct AnsweredCalls(Mutex<HashSet<ForwardedCallNumber>>);

impl AnsweredCalls {
    fn lock(&self) -> MutexGuard<'_, HashSet<ForwardedCallNumber>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the answering of a call, however it ends.
struct Answering(Arc<ChanceryInner>, ForwardedCallNumber);

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(member) = &self.0.cluster {
            member.answered_calls.lock().remove(&self.1);
        }
    }
}

impl ChanceryInner {
    /// Answers calls as they come, until the node ends.
    pub(super) async fn answer_others(self: Arc<Self>) {
        let Some(member) = &self.cluster else { return };
        loop {
            tokio::select! {
                biased;
                () = member.ended() => return,
                () = member.received.notified() => {}
            }
            let known = member.answered_calls.lock().len();
            let calls = match member.port.received_calls(known + PAGE).await {
                Ok(calls) => calls,
                Err(fault) => {
                    tracing::warn!(
                        error = &fault as &dyn std::error::Error,
                        "cannot read forwarded calls; the next renewal tries again"
                    );
                    continue;
                }
            };
            let is_full = calls.len() >= known + PAGE;
            for call in calls {
                if member.answered_calls.lock().insert(call.number) {
                    let (inner, answering) = (Arc::clone(&self), Answering(Arc::clone(&self), call.number));
                    self.in_background("forwarded call", async move {
                        inner.answer_call(call).await;
                        drop(answering);
                    });
                }
            }
            if is_full {
                member.received.notify_one();
            }
        }
    }

    async fn answer_call(self: &Arc<Self>, call: ReceivedCall) {
        let Some(member) = &self.cluster else { return };
        let Some(operation) = ForwardedOperation::opened(&*self.seal, &call.body, &call.task, member.port.this_node()) else {
            tracing::warn!(
                task = %call.task, from = %call.from,
                "refused a forwarded call whose seal is not of this cluster; all nodes need the same seal key"
            );
            let error =
                Error::new(ErrorKind::Internal, "the node that works on the task cannot read forwarded calls of this node");
            return self.answer(member, &call, ForwardedOutcome::Refused(ForwardedError::from(&error))).await;
        };
        let outcome = match operation {
            ForwardedOperation::Message { context, send, reply } => match context.into_context() {
                Some(context) => self.take_forwarded(member, &call, context, *send, reply.into()).await,
                None => Err(Error::new(ErrorKind::Internal, "the call has words that this version does not know")),
            },
            ForwardedOperation::Cancel { by } => self.cancel_forwarded(member, &call, by).await,
        };
        match outcome {
            Ok(Some(outcome)) => self.answer(member, &call, outcome).await,
            Ok(None) => {}
            Err(error) => self.answer(member, &call, ForwardedOutcome::Refused(ForwardedError::from(&error))).await,
        }
    }

    async fn answer(&self, member: &Membership, call: &ReceivedCall, outcome: ForwardedOutcome) {
        if let Err(fault) = member.port.answer(outcome.sealed(&*self.seal, call.number)).await {
            tracing::warn!(task = %call.task, error = &fault as &dyn std::error::Error, "cannot answer a forwarded call");
        }
    }

    /// Takes a message. Nothing is left to answer if it was taken, because the answer is written with the message. The same holds if
    /// another node works on the task by now: the node that forwarded the message looks again.
    async fn take_forwarded(
        self: &Arc<Self>,
        member: &Membership,
        call: &ReceivedCall,
        context: CallContext,
        send: SendMessage,
        reply_mode: ReplyMode,
    ) -> Result<Option<ForwardedOutcome>, Error> {
        let agent = self.agents.load().get(&self.found(call).await?.task.agent).cloned().ok_or_else(Error::task_not_found)?;
        let stored = self.find(&context, &agent, &call.task).await?;
        may_follow(&stored, &send)?;
        let live = self.open(stored).await?;
        let guard = match self.hold_task(member, &live).await? {
            Holding::Here(guard) => Some(guard),
            Holding::Elsewhere(_) => return Ok(None),
            Holding::Ended => return Err(ended(&live.stored())),
        };
        if !self.still_waits(member, call).await? {
            return Ok(None);
        }
        let answer = Some(SealedAnswer { seal: Arc::clone(&self.seal), number: call.number });
        let taken = self.follow_up_here(&context, &agent, FollowUp { live, send, reply_mode, guard, answer }).await?;
        // What is left to record of a turn that is over already goes on in the background.
        drop(taken);
        Ok(None)
    }

    async fn cancel_forwarded(
        self: &Arc<Self>,
        member: &Membership,
        call: &ReceivedCall,
        by: Arc<str>,
    ) -> Result<Option<ForwardedOutcome>, Error> {
        let stored = self.found(call).await?;
        if stored.progress.state.is_terminal() {
            return Err(crate::cancel::not_cancelable(stored.progress.state));
        }
        let live = self.open(stored).await?;
        match self.hold_task(member, &live).await? {
            Holding::Here(_guard) => {
                if !self.still_waits(member, call).await? {
                    return Ok(None);
                }
                self.note_cancel(&live, || by);
                let cascaded = self.cancel_with_all_below(&live).await?;
                Ok(Some(ForwardedOutcome::Cancelled(cascaded)))
            }
            Holding::Elsewhere(_) => Ok(None),
            Holding::Ended => Err(crate::cancel::not_cancelable(live.stored().progress.state)),
        }
    }

    /// Whether a call still waits for this node. A release of its task has moved it to the next holder, also if this node took the task
    /// again since. While this node holds the task, only the node that forwarded the call can end the wait.
    async fn still_waits(&self, member: &Membership, call: &ReceivedCall) -> Result<bool, Error> {
        let most = member.answered_calls.lock().len() + PAGE;
        let waiting = member.port.received_calls(most).await.map_err(internal)?;
        Ok(waiting.iter().any(|waiting| waiting.number == call.number))
    }

    async fn found(&self, call: &ReceivedCall) -> Result<Stored, Error> {
        self.store.find_any(call.task.as_str()).await.map_err(internal)?.ok_or_else(Error::task_not_found)
    }
}
