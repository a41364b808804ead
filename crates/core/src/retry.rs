//! A call that came before is known by its key: it is shown what it made, and no rule is asked again.

use std::sync::Arc;

use chancery_protocol::{AgentName, CallContext, Error, ErrorKind, SendMessage, TaskId, Timestamp};

use crate::check;
use crate::find::internal;
use crate::service::{Dedupe, Inner};
use crate::take::Taken;
use crate::{Idempotency, Keyed};

impl Inner {
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
            Some(Keyed { task, fingerprint }) => {
                self.attach(context, &task, fingerprint == idempotency.fingerprint).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// The same call came before: its task is the answer to this one too.
    pub(crate) async fn attach(self: &Arc<Self>, context: &CallContext, id: &TaskId, same_content: bool) -> Result<Taken, Error> {
        if !same_content {
            return Err(Error::new(ErrorKind::IdempotencyConflict, "this idempotency key was used with other content"));
        }
        let stored = self.store.find(&context.caller, id.as_str(), crate::Names::Server).await.map_err(internal)?;
        let live = self.open(stored.ok_or_else(Error::task_not_found)?).await?;
        Ok(Taken { live, before: 1, cursor: 0, fresh: true })
    }

    /// What a call is known by if it comes again.
    pub(crate) fn idempotency(
        &self,
        context: &CallContext,
        agent: &AgentName,
        send: &SendMessage,
        now: Timestamp,
    ) -> Result<Option<Idempotency>, Error> {
        let key = match (&context.idempotency_key, **self.dedupe.load()) {
            (Some(key), _) => Arc::clone(key),
            // The original protocol has no message ids to go by.
            (None, Dedupe::MessageId) if send.message.message_id.as_str().is_empty() => return Ok(None),
            (None, Dedupe::MessageId) => format!("message:{}", send.message.message_id).into(),
            (None, Dedupe::Off) => return Ok(None),
        };
        check::id_text("Idempotency-Key", &key, &self.limits.load())?;
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
