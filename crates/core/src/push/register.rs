//! Registers webhooks: by themselves, with the message that makes a task, or with one that it goes on with.

use std::sync::Arc;

use chancery_protocol::{CallContext, Error, PushConfig, TaskId, Version};
use tracing::Instrument as _;

use super::registration::{NewRegistration, PushProfile, Registration, RegistrationId};
use super::vault::OpenSecrets;
use super::{PushService, Registered, check, too_many};
use crate::agents::Agent;
use crate::find::internal;
use crate::ids::fresh_id;
use crate::service::{ChanceryInner, push_not_supported};
use crate::{TaskRecord, check as check_request};

/// What comes before the members of a configuration that is part of a message's.
const INLINE: &str = "configuration.taskPushNotificationConfig.";

/// A task as far as a registration needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Of<'a> {
    pub(crate) task: &'a TaskId,
    pub(crate) agent: &'a Agent,
}

impl ChanceryInner {
    pub(crate) fn push(&self) -> Result<&PushService, Error> {
        self.push.as_ref().ok_or_else(push_not_supported)
    }

    /// The webhooks of an agent. Its card may say that it has none.
    pub(crate) fn push_of(&self, agent: &Agent) -> Result<&PushService, Error> {
        if agent.card.capabilities.push_notifications == Some(false) {
            return Err(push_not_supported());
        }
        self.push()
    }

    /// 0.3 and the original *set*: one by the same name is replaced, and without a name there is one per task. 1.0 *creates*:
    /// without a name it is a new one each time.
    pub(crate) async fn create_push_config(
        &self,
        context: &CallContext,
        agent: &Agent,
        config: PushConfig,
    ) -> Result<PushConfig, Error> {
        let push = self.push_of(agent)?;
        let asked = config.task_id.clone().ok_or_else(|| Error::invalid_field("taskId", "is required"))?;
        let stored = self.find(context, agent, &asked).await?;
        let id = match (&config.id, context.version) {
            (Some(id), _) => RegistrationId::new(id.as_str()),
            (None, Version::V1_0) => RegistrationId::new(fresh_id()),
            (None, Version::V0_3 | Version::Original) => RegistrationId::new(stored.task.id.as_str()),
        };
        let of = Of { task: &stored.task.id, agent };
        let new = self.registration(push, context, of, &config, id, "", false)?;
        push.challenge(&stored.task.id, &config, "").await?;
        let new = NewRegistration { snapshot: push.snapshot, ..new };
        let id = new.registration.id.as_str().to_owned();
        self.keep_registration(push, new).await?;
        Ok(PushConfig { tenant: None, id: Some(id), task_id: Some(asked), ..config })
    }

    /// For the transaction that makes a task. Without a name it is the task's default one, in every version:
    /// clients that send it with each message mean the same one.
    fn inline_registration(
        &self,
        context: &CallContext,
        agent: &Agent,
        task: &TaskId,
        config: &PushConfig,
        held: bool,
    ) -> Result<Box<NewRegistration>, Error> {
        let push = self.push_of(agent)?;
        if config.task_id.as_ref().is_some_and(|named| named != task) {
            return Err(Error::invalid_field(format!("{INLINE}taskId"), "is not the task of this message"));
        }
        let id = RegistrationId::new(config.id.as_deref().unwrap_or(task.as_str()));
        self.registration(push, context, Of { task, agent }, config, id, INLINE, held).map(Box::new)
    }

    /// The registration of a webhook that comes with the message that makes its task, once it has answered its challenge.
    pub(crate) async fn challenged_registration(
        &self,
        context: &CallContext,
        agent: &Agent,
        task: &TaskId,
        config: &PushConfig,
    ) -> Result<Box<NewRegistration>, Error> {
        let new = self.inline_registration(context, agent, task, config, agent.runner.may_reply_with_message())?;
        self.push()?.challenge(task, config, INLINE).await?;
        Ok(new)
    }

    /// Registers before a message that continues a task is recorded, so that the webhook receives its entry
    /// too. Returns what to take back if the message is not accepted.
    pub(crate) async fn register_inline(
        &self,
        context: &CallContext,
        agent: &Agent,
        task: &TaskRecord,
        config: &PushConfig,
    ) -> Result<Option<RegistrationId>, Error> {
        let new = self.inline_registration(context, agent, &task.id, config, false)?;
        self.push()?.challenge(&task.id, config, INLINE).await?;
        let id = new.registration.id.clone();
        let replaced = self.keep_registration(self.push()?, *new).await?;
        Ok((!replaced).then_some(id))
    }

    /// What `register_inline` did is undone.
    pub(crate) async fn take_back_inline(&self, task: &TaskId, id: &RegistrationId) {
        let Some(push) = &self.push else { return };
        match push.outbox.unregister(task, id.as_str()).await {
            Ok(Some(lane)) => push.notifier.in_flight.stop(lane),
            Ok(None) => {}
            Err(fault) => {
                tracing::error!(%task, error = &fault as &dyn std::error::Error, "cannot remove a webhook whose registration failed");
            }
        }
    }

    /// Answers whether one was replaced.
    async fn keep_registration(&self, push: &PushService, new: NewRegistration) -> Result<bool, Error> {
        let snapshot = new.snapshot;
        match push.outbox.register(new).await.map_err(internal)? {
            Registered::Kept { lane, replaced } => {
                if replaced {
                    // What is under way goes where the old one pointed.
                    push.notifier.in_flight.stop(lane);
                }
                if replaced || snapshot {
                    push.notifier.ring();
                }
                Ok(replaced)
            }
            Registered::NoTask => Err(Error::task_not_found()),
            Registered::TooManyOfTask => Err(too_many(false)),
            Registered::TooManyOfTenant => Err(too_many(true)),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "each is said by another part of the call")]
    fn registration(
        &self,
        push: &PushService,
        context: &CallContext,
        of: Of<'_>,
        config: &PushConfig,
        id: RegistrationId,
        before: &str,
        held: bool,
    ) -> Result<NewRegistration, Error> {
        let limits = push.limits.load();
        check_request::id_text(&format!("{before}id"), id.as_str(), &self.limits.load())?;
        let target = check::config(config, before, &limits, &*push.targets)?;
        let profile = target.profile.unwrap_or_else(|| PushProfile::asked_by(context));
        let bound = Registration::sealed_for(&context.caller.tenant, of.task, &id);
        let authentication = config.authentication.as_ref();
        let credentials = authentication.and_then(|authentication| authentication.credentials.as_deref());
        let registration = Registration {
            lane: 0,
            task: of.task.clone(),
            id,
            owner: context.caller.clone(),
            agent: Arc::clone(&of.agent.name),
            version: context.version,
            profile,
            events: target.events.unwrap_or(profile.events()),
            url: config.url.as_str().into(),
            origin: target.origin,
            scheme: authentication.map(|authentication| authentication.scheme.as_str().into()),
            sealed: OpenSecrets::seal(&*push.vault, &bound, config.token.as_deref(), credentials),
            created_at: self.clock.now(),
            trace: context.trace,
        };
        Ok(NewRegistration { registration, limits: limits.counted(), held, snapshot: false })
    }
}

impl PushService {
    /// Sends the challenge to the URL, if the operator enables it. `before` is the path to the
    /// configuration's members.
    async fn challenge(&self, task: &TaskId, config: &PushConfig, before: &str) -> Result<(), Error> {
        let challenge = self.targets.challenge(&config.url).instrument(tracing::info_span!("push challenge", %task));
        challenge.await.map_err(|why| Error::invalid_field(format!("{before}url"), why))
    }
}
