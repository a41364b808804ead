//! Two tenants with two callers each, and nobody learns anything of anybody else: not over any binding, in any version.

mod ids;
mod matrix;
mod named_tenants;
mod original_names;

use std::sync::Arc;

use chancery_identity::credentials::KeyHash;
use chancery_protocol::{Binding, ContextId, GetTask, Message, Request, Role, SendConfiguration, SendMessage, TaskId, Version};
use serde_json::Value;

use crate::support::patience::soon;
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, RawAnswer, RawCall, RawClient};

/// Whom the node knows: tenant and name. Red and blue are the tenants.
const CALLERS: [(&str, &str); 4] = [("red", "red-one"), ("red", "red-two"), ("blue", "blue-one"), ("blue", "blue-two")];

fn key(caller: &str) -> String {
    format!("a-key-that-only-{caller}-has")
}

/// The node, and everybody who calls it.
struct Town {
    server: Server,
    client: RawClient,
}

impl Town {
    fn new(limits: &str) -> Self {
        let mut config = format!("[limits]\n{limits}\n[agents.conformance]\nrun = 'conformance'\n");
        config += "extended_skills = [{ id = 'more', name = 'More', description = 'Does more.', tags = ['more'] }]\n";
        let home = Home::new();
        let mut setup = Setup::in_home(&home).args(["--memory"]);
        for (number, (tenant, name)) in CALLERS.into_iter().enumerate() {
            // Half of them the one way, half the other.
            let proof = if number % 2 == 0 {
                format!("key_hash = '{}'", KeyHash::of(&key(name)))
            } else {
                let variable = format!("KEY_{number}");
                setup = setup.env(&variable, &key(name));
                format!("key_env = '{variable}'")
            };
            config += &format!("[callers.{name}]\ntenant = '{tenant}'\n{proof}\n");
        }
        let server = setup.config(&config).start();
        let client = RawClient::new(server.url());
        Self { server, client }
    }

    async fn ask(&self, caller: &str, call: RawCall) -> RawAnswer {
        self.client.ask(&call.with("x-api-key", &key(caller))).await
    }

    async fn request(&self, caller: &str, combination: Combination, request: &Request) -> RawAnswer {
        self.ask(caller, RawCall::of(combination, request).expect("an operation of this version")).await
    }

    /// A task that waits for its caller's next word, made by a call of this version: its id and its context.
    async fn waiting_task(&self, caller: &str, version: Version, name: &str) -> (TaskId, ContextId) {
        self.task(caller, version, name, "ask who is there?", "input-required").await
    }

    /// A task in this state, made by a call of this version. It is watched only until it is there.
    async fn task(&self, caller: &str, version: Version, name: &str, text: &str, state: &str) -> (TaskId, ContextId) {
        let mut send = message(text);
        if version == Version::Original {
            send.client_task_id = Some(name.into());
        }
        let combination = Combination { version, binding: Binding::JsonRpc };
        let made = self.request(caller, combination, &Request::StreamMessage(send)).await.text();
        let event = made.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or_else(|| panic!("no event: {made}"));
        let event: Value = serde_json::from_str(event).expect("JSON");
        let task = event["result"].get("task").unwrap_or(&event["result"]);
        let id = TaskId::from(task["id"].as_str().expect("an id"));
        let get = Request::GetTask(GetTask { tenant: None, id: id.clone(), history_length: None });
        let task = soon("the task gets there", async || {
            let mut answer = self.request(caller, combination, &get).await.json();
            let seen = answer["result"]["status"]["state"].as_str().unwrap_or_default().to_lowercase().replace('_', "-");
            seen.ends_with(state).then(|| answer["result"].take())
        })
        .await;
        let context = ["contextId", "sessionId"].iter().find_map(|name| task[*name].as_str());
        (id, context.unwrap_or_default().into())
    }
}

fn message(text: &str) -> SendMessage {
    SendMessage {
        tenant: None,
        message: Arc::new(Message::text(Role::User, "m", text)),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    }
}

fn changed(mut send: SendMessage, change: impl FnOnce(&mut Message)) -> SendMessage {
    change(Arc::make_mut(&mut send.message));
    send
}

/// Over JSON-RPC of version 1.0, where a test needs no other.
const NEWEST: Combination = Combination { version: Version::V1_0, binding: Binding::JsonRpc };
