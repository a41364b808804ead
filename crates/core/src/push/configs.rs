//! What a caller has registered: one, all of a task, or one less.

use chancery_protocol::{
    AuthenticationInfo, CallContext, Error, ListPushConfigs, PushConfig, PushConfigPage, PushConfigRef, TaskId,
};
use serde::{Deserialize, Serialize};

use super::PushService;
use super::registration::Registration;
use super::vault::{OpenSecrets, SecretBytes};
use crate::agents::Agent;
use crate::find::internal;
use crate::service::ChanceryInner;

const PURPOSE: &str = "push page";

/// What a page token says.
#[derive(Serialize, Deserialize)]
struct PageToken {
    task: TaskId,
    after: u64,
}

impl ChanceryInner {
    /// Without a name, the task's default one, or else its first.
    pub(crate) async fn push_config(
        &self,
        context: &CallContext,
        agent: &Agent,
        which: PushConfigRef,
    ) -> Result<PushConfig, Error> {
        let push = self.push()?;
        let stored = self.find(context, agent, &which.task_id).await?;
        let task = &stored.task.id;
        let id = which.id.as_deref().unwrap_or(task.as_str());
        let mut found = push.outbox.registration(task, id).await.map_err(internal)?;
        if found.is_none() && which.id.is_none() {
            found = push.outbox.registrations(task, 0, 1).await.map_err(internal)?.pop();
        }
        let found = found.ok_or_else(|| {
            Error::new(chancery_protocol::ErrorKind::TaskNotFound, "the task was found, but no such push configuration of it")
        })?;
        Ok(push.shown(&found, &which.task_id))
    }

    pub(crate) async fn push_configs(
        &self,
        context: &CallContext,
        agent: &Agent,
        list: ListPushConfigs,
    ) -> Result<PushConfigPage, Error> {
        let push = self.push()?;
        let most = push.limits.load().page_size;
        let size = match list.page_size {
            None => most,
            Some(size) if (1..=most).contains(&size) => size,
            Some(size) => {
                return Err(Error::invalid_field("pageSize", format!("is {size}; it must be from 1 to push.page_size = {most}")));
            }
        };
        let stored = self.find(context, agent, &list.task_id).await?;
        let task = &stored.task.id;
        let after = match list.page_token.as_deref() {
            None => 0,
            Some(token) => {
                self.seal
                    .open(PURPOSE, token)
                    .and_then(|content| serde_json::from_slice::<PageToken>(&content).ok())
                    .filter(|page| page.task == *task)
                    .ok_or_else(|| Error::invalid_field("pageToken", "is not a token of this list; start again without one"))?
                    .after
            }
        };
        let size = usize::try_from(size).unwrap_or(1);
        let mut found = push.outbox.registrations(task, after, size + 1).await.map_err(internal)?;
        let more = found.len() > size;
        found.truncate(size);
        let last = found.last().filter(|_| more).map(|last| PageToken { task: task.clone(), after: last.lane });
        let next_page_token =
            last.map(|last| self.seal.seal(PURPOSE, &serde_json::to_vec(&last).unwrap_or_default())).unwrap_or_default();
        let configs = found.iter().map(|found| push.shown(found, &list.task_id)).collect();
        Ok(PushConfigPage { configs, next_page_token })
    }

    /// One that is not there is as good as deleted. When this answers, nothing is begun any more in its name.
    pub(crate) async fn delete_push_config(
        &self,
        context: &CallContext,
        agent: &Agent,
        which: PushConfigRef,
    ) -> Result<(), Error> {
        let push = self.push()?;
        let stored = self.find(context, agent, &which.task_id).await?;
        let task = &stored.task.id;
        let id = which.id.as_deref().unwrap_or(task.as_str());
        if let Some(lane) = push.outbox.unregister(task, id).await.map_err(internal)? {
            push.notifier.in_flight.stop(lane);
        }
        Ok(())
    }
}

impl PushService {
    /// As its owner sees it, who calls the task by that name.
    fn shown(&self, registration: &Registration, task: &TaskId) -> PushConfig {
        let secrets = if self.show_secrets {
            OpenSecrets::open(&*self.vault, &registration.bound_to(), registration.sealed.as_ref()).unwrap_or_default()
        } else {
            OpenSecrets::default()
        };
        let text = |secret: Option<SecretBytes>| secret.and_then(|secret| secret.expose_text().map(str::to_owned));
        let credentials = text(secrets.credentials);
        PushConfig {
            tenant: None,
            id: Some(registration.id.as_str().to_owned()),
            task_id: Some(task.clone()),
            url: registration.url.as_ref().to_owned(),
            token: text(secrets.token),
            authentication: registration
                .scheme
                .as_ref()
                .map(|scheme| AuthenticationInfo { scheme: scheme.as_ref().to_owned(), credentials }),
        }
    }
}
