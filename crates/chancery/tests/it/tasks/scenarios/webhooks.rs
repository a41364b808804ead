//! The part of a story that is about webhooks: each version's operations, one after the other.

use chancery_protocol::{ListPushConfigs, PushConfig, PushConfigRef, Reply, Request, TaskId, Version};

use super::check;
use super::story::Step;
use super::teller::Teller;
use crate::support::wire_client::Refusal;

impl Teller {
    /// Every push operation the version has, in an order that makes sense. Where a refusal is expected, each is refused alike.
    pub(super) async fn webhooks(&mut self, step: &Step) -> Result<(), String> {
        let task = self.task(step);
        let config = PushConfig {
            tenant: None,
            id: Some("c".to_owned()),
            task_id: Some(task.clone()),
            url: "https://example.org/hook".to_owned(),
            token: None,
            authentication: None,
        };
        let original = self.client.combination.version == Version::Original;
        let which = PushConfigRef { tenant: None, task_id: task.clone(), id: (!original).then(|| "c".to_owned()) };
        let list = ListPushConfigs { tenant: None, task_id: task.clone(), page_size: None, page_token: None };
        let mut requests = vec![Request::CreatePushConfig(config), Request::GetPushConfig(which.clone())];
        if !original {
            requests.push(Request::ListPushConfigs(list.clone()));
            requests.push(Request::DeletePushConfig(which.clone()));
        }
        for request in requests {
            let operation = request.operation();
            if step.expect.error.is_some() {
                let outcome = self.call(request, step).await;
                check::outcome(self, &step.expect, &outcome).map_err(|fault| format!("{operation:?}: {fault}"))?;
            } else {
                let reply = self.client.call(&request, &self.conditions(step)).await;
                is_expected(&task, reply).map_err(|fault| format!("{operation:?}: {fault}"))?;
            }
        }
        if step.expect.error.is_none() && !original {
            let left = self.client.call(&Request::ListPushConfigs(list), &self.conditions(step)).await;
            match left {
                Ok(Reply::PushConfigs(page)) if page.configs.is_empty() => {}
                other => return Err(format!("something is left: {other:?}")),
            }
        }
        Ok(())
    }
}

fn is_expected(task: &TaskId, reply: Result<Reply, Refusal>) -> Result<(), String> {
    let is_ours = |config: &PushConfig| config.url == "https://example.org/hook" && config.task_id.as_ref() == Some(task);
    match reply {
        Ok(Reply::PushConfig(config)) if is_ours(&config) => Ok(()),
        Ok(Reply::PushConfigs(page)) if page.configs.len() == 1 && is_ours(&page.configs[0]) => Ok(()),
        Ok(Reply::PushConfigDeleted) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
