//! Recognises a repeated call by its key: it gets the result of the first one, and no rule is evaluated
//! again.

use std::sync::Arc;

use chancery_protocol::{AgentName, CallContext, Error, ErrorKind, SendMessage, TaskId, Timestamp};

use crate::check;
use crate::find::internal;
use crate::service::{ChanceryInner, Dedupe};
use crate::take::Taken;
use crate::{Idempotency, Keyed};

impl ChanceryInner {
    /// Asked before the rules are: what the first call was given is held for both. Of two that come at once, the store tells which
    /// is second.
    pub(crate) async fn retried(
        self: &Arc<Self>,
        context: &CallContext,
        idempotency: &Idempotency,
        now: Timestamp,
    ) -> Result<Option<Taken>, Error> {
        let known = self.store.keyed(&context.caller, &idempotency.key, now).await.map_err(internal)?;
        match known {
            Some(known) => self.attach(context, known, idempotency, now).await.map(Some),
            None => Ok(None),
        }
    }

    /// The same call came before: its task is the answer to this one too. Nothing runs where retention has forgotten the task.
    pub(crate) async fn attach(
        self: &Arc<Self>,
        context: &CallContext,
        known: Keyed,
        idempotency: &Idempotency,
        now: Timestamp,
    ) -> Result<Taken, Error> {
        if known.fingerprint != idempotency.fingerprint {
            return Err(Error::new(ErrorKind::IdempotencyConflict, "this idempotency key was used with other content"));
        }
        match self.attach_to(context, &known.task).await {
            Err(error) if error.kind == ErrorKind::TaskNotFound => {
                // A task that its agent has refused in between took its key along.
                let still = self.store.keyed(&context.caller, &idempotency.key, now).await.map_err(internal)?;
                Err(if still.is_some() { forgotten(&known.task) } else { refused_meanwhile() })
            }
            taken => taken,
        }
    }

    /// The task that an earlier call made is the answer to this one.
    pub(crate) async fn attach_to(self: &Arc<Self>, context: &CallContext, id: &TaskId) -> Result<Taken, Error> {
        let stored = self.store.find(&context.caller, id.as_str(), crate::Names::Server).await.map_err(internal)?;
        let live = self.open(stored.ok_or_else(Error::task_not_found)?).await?;
        Ok(Taken { live, before: 1, cursor: 0, fresh: true, recording: None })
    }

    /// The key of a call, if it has one. `agent` is whose address the call came to.
    pub(crate) fn idempotency_key(&self, context: &CallContext, agent: &AgentName, send: &SendMessage) -> Option<Arc<str>> {
        match (&context.idempotency_key, **self.dedupe.load()) {
            (Some(key), _) => Some(Arc::clone(key)),
            // The original protocol has no message ids to go by.
            (None, Dedupe::MessageId) if send.message.message_id.as_str().is_empty() => None,
            // A client that sends one message to several agents means several tasks.
            (None, Dedupe::MessageId) => Some(format!("message:{agent}:{}", send.message.message_id).into()),
            (None, Dedupe::Off) => None,
        }
    }

    /// What a call is known by if it comes again. `agent` is whose address the call came to: a call at the root address is the
    /// same call, whichever agent it is routed to.
    pub(crate) fn idempotency(
        &self,
        context: &CallContext,
        agent: &AgentName,
        send: &SendMessage,
        now: Timestamp,
    ) -> Result<Option<Idempotency>, Error> {
        let Some(key) = self.idempotency_key(context, agent, send) else { return Ok(None) };
        if context.idempotency_key.is_some() {
            check::id_text("Idempotency-Key", &key, &self.limits.load())?;
        }
        // The configuration (wait or not, how much history) is about this call, not about the work.
        let mut content = serde_json::to_vec(&(&**agent, &send.message, &send.metadata, &send.client_task_id));
        if let (Ok(content), false) = (&mut content, send.unknown.is_empty()) {
            content.extend(serde_json::to_vec(&send.unknown).unwrap_or_default());
        }
        let content = content.map_err(|fault| Error::new(ErrorKind::Internal, fault.to_string()))?;
        let lifetime = i64::from(self.limits.load().idempotency_hours) * 3_600_000_000;
        let expires_at = Timestamp::from_micros(now.micros().saturating_add(lifetime));
        Ok(Some(Idempotency { key, fingerprint: self.seal.digest(&content), expires_at }))
    }
}

/// The answer to a retry whose task retention has forgotten.
fn forgotten(task: &TaskId) -> Error {
    let message = format!(
        "the first call with this idempotency key made task {task}, which is no longer kept; nothing was run again. \
         Send with a new key to run it once more"
    );
    Error::new(ErrorKind::TaskForgotten, message).with_fact("taskId", task)
}

fn refused_meanwhile() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the first call with this idempotency key was refused meanwhile and left no task; try again",
    )
}
