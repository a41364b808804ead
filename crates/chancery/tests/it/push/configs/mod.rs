//! Webhooks are registered, read, listed and deleted over every binding in every version, each with its own manners.

mod deleted;
mod inline;
mod limits;
mod manners;
mod refused;

use std::sync::Arc;

use chancery_protocol::{
    AuthenticationInfo, ListPushConfigs, Message, PushConfig, PushConfigPage, PushConfigRef, Reply, Request, Role,
    SendConfiguration, SendMessage, Sent, TaskId, Version,
};

use crate::support::server::{Server, Setup};
use crate::support::wire_client::{Combination, Conditions, Refusal, WireClient};

/// A server that may call this machine, so that nothing has to be looked up.
fn server(push: &str) -> Server {
    Setup::conformance().config(&format!("[push]\n{push}\n")).start()
}

struct Client {
    wire: WireClient,
    conditions: Conditions,
}

impl Client {
    fn new(server: &Server, combination: Combination) -> Self {
        Self { wire: WireClient::new(server.url(), combination), conditions: Conditions::default() }
    }

    fn version(&self) -> Version {
        self.wire.combination.version
    }

    async fn call(&self, request: Request) -> Result<Reply, Refusal> {
        self.wire.call(&request, &self.conditions).await
    }

    /// Puts a message to the conformance agent and answers the task that comes of it.
    async fn send(&self, send: SendMessage) -> Result<TaskId, Refusal> {
        match self.call(Request::SendMessage(send)).await? {
            Reply::Sent(Sent::Task(shown)) => Ok(match (self.version(), &shown.client_task_id) {
                (Version::Original, Some(name)) => TaskId::from(&**name),
                _ => shown.task.id.clone(),
            }),
            other => panic!("not a task: {other:?}"),
        }
    }

    async fn ended_task(&self, name: &str) -> TaskId {
        let made = self.send(self.message("complete", name)).await;
        made.unwrap_or_else(|refusal| panic!("{}: {}", self.wire.combination.name(), refusal.message()))
    }

    /// `name` is the task's in the original protocol.
    fn message(&self, text: &str, name: &str) -> SendMessage {
        SendMessage {
            tenant: None,
            message: Arc::new(Message::text(Role::User, "m", text)),
            configuration: SendConfiguration::default(),
            metadata: None,
            client_task_id: (self.version() == Version::Original).then(|| name.into()),
            unknown: Default::default(),
        }
    }

    async fn create(&self, config: PushConfig) -> Result<PushConfig, Refusal> {
        match self.call(Request::CreatePushConfig(config)).await? {
            Reply::PushConfig(config) => Ok(config),
            other => panic!("not a configuration: {other:?}"),
        }
    }

    async fn get(&self, task: &TaskId, id: Option<&str>) -> Result<PushConfig, Refusal> {
        let which = PushConfigRef { tenant: None, task_id: task.clone(), id: id.map(str::to_owned) };
        match self.call(Request::GetPushConfig(which)).await? {
            Reply::PushConfig(config) => Ok(config),
            other => panic!("not a configuration: {other:?}"),
        }
    }

    async fn list(&self, task: &TaskId, page: Option<(i32, &str)>) -> Result<PushConfigPage, Refusal> {
        let list = ListPushConfigs {
            tenant: None,
            task_id: task.clone(),
            page_size: page.map(|(size, _)| size),
            page_token: page.filter(|(_, token)| !token.is_empty()).map(|(_, token)| token.to_owned()),
        };
        match self.call(Request::ListPushConfigs(list)).await? {
            Reply::PushConfigs(page) => Ok(page),
            other => panic!("not a page: {other:?}"),
        }
    }

    async fn urls(&self, task: &TaskId) -> Vec<String> {
        let page = self.list(task, None).await.unwrap_or_else(|refusal| panic!("{}", refusal.message()));
        page.configs.into_iter().map(|config| config.url).collect()
    }

    async fn delete(&self, task: &TaskId, id: &str) -> Result<(), Refusal> {
        let which = PushConfigRef { tenant: None, task_id: task.clone(), id: Some(id.to_owned()) };
        self.call(Request::DeletePushConfig(which)).await.map(|reply| assert_eq!(reply, Reply::PushConfigDeleted))
    }
}

fn config(task: Option<&TaskId>, id: Option<&str>, url: &str) -> PushConfig {
    PushConfig {
        tenant: None,
        id: id.map(str::to_owned),
        task_id: task.cloned(),
        url: url.to_owned(),
        token: None,
        authentication: None,
    }
}

fn bearer(credentials: &str) -> Option<AuthenticationInfo> {
    Some(AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some(credentials.to_owned()) })
}

/// Of the version, over one binding: those that can list and delete.
fn with_lists() -> impl Iterator<Item = Combination> {
    Combination::ALL.into_iter().filter(|combination| combination.version != Version::Original)
}
