//! A webhook registered for a task.

use std::sync::Arc;

use chancery_protocol::{AgentName, CallContext, Caller, TaskId, Timestamp, TraceId, Version};
use chancery_rules::push::WebhookOrigin;
use serde::{Deserialize, Serialize};

use super::ENVELOPE_EXTENSION;
use super::vault::SealedSecret;

/// The name of a registration on the wire, unique within its task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RegistrationId(Arc<str>);

impl RegistrationId {
    /// Makes an id of a text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RegistrationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The form of what is sent, settled when the webhook is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PushProfile {
    /// The `StreamResponse` of 1.0.
    V1,
    /// The whole task, as 0.3 has it.
    #[serde(rename = "v03-task")]
    V03Task,
    /// One event, as 0.3 has it.
    #[serde(rename = "v03-event")]
    V03Event,
    /// The task of the original protocol.
    Original,
    /// A JSON-RPC response around a task, with headers of its own.
    #[serde(rename = "neuralpost")]
    NeuralPost,
}

impl PushProfile {
    /// Every form.
    pub const ALL: [Self; 5] = [Self::V1, Self::V03Task, Self::V03Event, Self::Original, Self::NeuralPost];

    /// The default content for callers of a version.
    pub const fn of(version: Version) -> Self {
        match version {
            Version::V1_0 => Self::V1,
            Version::V0_3 => Self::V03Task,
            Version::Original => Self::Original,
        }
    }

    /// What the caller is sent when the operator says nothing else: the form of its version, or the one it asks for.
    pub(super) fn asked_by(context: &CallContext) -> Self {
        let envelope = context.extensions.iter().any(|uri| uri == ENVELOPE_EXTENSION);
        if envelope && context.version == Version::V0_3 { Self::NeuralPost } else { Self::of(context.version) }
    }

    /// A whole task per piece of an artifact would grow with the square of its pieces, so those that send one tell of states only.
    pub const fn events(self) -> PushEvents {
        match self {
            Self::V1 | Self::V03Event => PushEvents::All,
            Self::V03Task | Self::Original | Self::NeuralPost => PushEvents::Status,
        }
    }

    /// Returns the name of the form in the config.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V03Task => "v03-task",
            Self::V03Event => "v03-event",
            Self::Original => "original",
            Self::NeuralPost => "neuralpost",
        }
    }

    /// Returns the form with this name in the config.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == name)
    }
}

/// Which events are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PushEvents {
    /// Every event.
    All,
    /// Only changes of the task's state.
    Status,
}

/// A webhook of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// Its number, never used again: part of the id of each delivery. 0 until the store has given it one.
    pub lane: u64,
    /// The task whose events are delivered.
    pub task: TaskId,
    /// The name of the registration.
    pub id: RegistrationId,
    /// The caller who registered it.
    pub owner: Caller,
    /// The agent of the task.
    pub agent: AgentName,
    /// The version of the call that registered it.
    pub version: Version,
    /// The form of the deliveries.
    pub profile: PushProfile,
    /// The events that are delivered.
    pub events: PushEvents,
    /// As the caller wrote it.
    pub url: Arc<str>,
    /// `scheme://host:port`, normalised.
    pub origin: Arc<str>,
    /// The name of the authentication scheme. What goes with it is sealed.
    pub scheme: Option<Arc<str>>,
    /// Token and credentials, if there are any.
    pub sealed: Option<SealedSecret>,
    /// The time of the registration.
    pub created_at: Timestamp,
    /// The trace of the call that registered it.
    pub trace: TraceId,
}

impl Registration {
    /// What a sealed secret is bound to, so that it cannot be put into another's row.
    pub fn sealed_for(tenant: &str, task: &TaskId, id: &RegistrationId) -> Vec<u8> {
        let mut bound = Vec::new();
        for part in [tenant, task.as_str(), id.as_str()] {
            bound.extend((part.len() as u64).to_be_bytes());
            bound.extend(part.as_bytes());
        }
        bound
    }

    /// With whose deliveries to the same place it shares its luck.
    pub fn destination(&self) -> WebhookOrigin {
        WebhookOrigin { tenant: Arc::clone(&self.owner.tenant), origin: Arc::clone(&self.origin) }
    }

    /// Returns what its sealed secret is bound to.
    pub fn bound_to(&self) -> Vec<u8> {
        Self::sealed_for(&self.owner.tenant, &self.task, &self.id)
    }
}

/// A registration on its way into the store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRegistration {
    /// The registration.
    pub registration: Registration,
    /// The limits that the store checks.
    pub limits: RegistrationLimits,
    /// Nothing is due before the second entry of the task's log: until then it may turn out that there is no task at all.
    pub held: bool,
    /// How the task stands goes out first.
    pub snapshot: bool,
}

/// How many there may be, counted where they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistrationLimits {
    /// The most registrations of one task.
    pub per_task: usize,
    /// The most registrations of one tenant.
    pub per_tenant: usize,
}
