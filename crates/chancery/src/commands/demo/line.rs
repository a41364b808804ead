//! The way from one caller to the control plane: real HTTP, with the caller's own key or at its own address.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery::Turn;
use chancery::protocol::{
    Binding, Json, Message, Metadata, Reply, Request, Role, SendConfiguration, SendMessage, TraceId, Version,
};
use chancery_core::{GOVERNANCE_EXTENSION, MicroUsd};
use chancery_outbound::client::{AgentClient, AgentCredentials, CallConditions, ClientError, ClientLimits, Interface};
use chancery_outbound::guard::{GuardConfig, WayOut};
use chancery_outbound::new_message_id;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use url::Url;

use super::agents::{Order, ROLES};

/// One call that is to be made.
pub(super) struct DemoCall {
    pub(super) order: Order,
    pub(super) trace: TraceId,
    pub(super) hop_token: Option<Arc<str>>,
    /// What the caller thinks it will cost.
    pub(super) estimate: Option<MicroUsd>,
}

impl DemoCall {
    /// For a task: says so with the trace and the token that the task came with, as any agent can that knows of tokens no more
    /// than where they are.
    pub(super) fn within(turn: &Turn, order: Order) -> Self {
        Self { order, trace: turn.trace, hop_token: turn.delegation.brought_tokens().cloned(), estimate: None }
    }

    /// Says nothing of what it is for.
    pub(super) fn of_nobody(order: Order) -> Self {
        Self { order, trace: fresh_trace(), hop_token: None, estimate: None }
    }

    fn message(&self) -> SendMessage {
        let metadata = self.estimate.map(|usd| {
            let estimate = json!({ "estimate": { "usd": usd } });
            Metadata::empty().with(GOVERNANCE_EXTENSION, Json::from_value(&estimate))
        });
        SendMessage {
            tenant: None,
            message: Arc::new(Message::of_parts(Role::User, new_message_id(), vec![self.order.part()])),
            configuration: SendConfiguration::default(),
            metadata,
            client_task_id: None,
            unknown: Default::default(),
        }
    }
}

pub(super) fn fresh_trace() -> TraceId {
    chancery_core::new_trace_id()
}

pub(super) struct DemoClient {
    key: Option<SecretString>,
    agents: BTreeMap<&'static str, AgentClient>,
}

impl DemoClient {
    /// To every agent behind the control plane at `base`.
    pub(super) fn new(base: &Url, key: Option<SecretString>) -> Result<Self, String> {
        let way_out = WayOut::new(&GuardConfig::default(), std::slice::from_ref(base), &[])?;
        let mut agents = BTreeMap::new();
        for role in ROLES {
            let url = base.join(&format!("agents/{}", role.name)).map_err(|fault| fault.to_string())?;
            let interface = Interface { url: url.to_string(), binding: Binding::JsonRpc, version: Version::V1_0, tenant: None };
            let client = AgentClient::new(way_out.trusted(), interface, ClientLimits::default());
            agents.insert(role.name, client.map_err(|fault| fault.to_string())?);
        }
        Ok(Self { key, agents })
    }

    /// Asks an agent and waits for its answer.
    pub(super) async fn ask(&self, agent: &str, ask: DemoCall) -> Result<Reply, ClientError> {
        let Some(client) = self.agents.get(agent) else {
            return Err(ClientError::not_understood(format!("the demo has no agent {agent}")));
        };
        let conditions = CallConditions {
            credentials: self.key.as_ref().map_or(AgentCredentials::None, |key| AgentCredentials::api_key(key.expose_secret())),
            hop_token: ask.hop_token.clone(),
            ..CallConditions::new(ask.trace)
        };
        client.call(&Request::SendMessage(ask.message()), &conditions).await
    }
}
