//! The A2A model in the shape of the newest version: what agents say to each other, without I/O.
//!
//! The serde implementations on these types are the 1.0 JSON form (ProtoJSON). Older versions and protobuf are
//! conversions that live in `chancery-wire`.

#![deny(missing_docs)]

mod artifact;
mod artifact_kind;
mod call;
mod card;
mod error;
mod event;
mod ids;
pub mod lenient;
mod message;
pub mod objects;
mod push;
pub mod raw_json;
mod reply;
mod request;
pub mod rfc3339;
mod security;
mod standing;
mod task;
mod time;
mod unknown;
mod version;

pub use artifact::{Artifact, ArtifactChunk};
pub use artifact_kind::{
    ARTIFACT_KIND_VERSION, ArtifactKind, ArtifactVersions, around_rvagent, from_rvagent, negotiate_version, to_rvagent,
};
pub use call::{AgentName, CallAccount, CallContext, Caller, PeerConnection, TraceId};
pub use card::{AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill};
pub use error::{Error, ErrorKind, FieldViolation};
pub use event::{StatusChange, TaskEvent};
pub use ids::{ArtifactId, ContextId, MessageId, TaskId, control_character};
pub use message::{Message, Part, PartContent, Role};
pub use push::{AuthenticationInfo, PushConfig};
pub use raw_json::{Json, Metadata};
pub use reply::{NamedTask, PushConfigPage, Reply, Sent, TaskPage};
pub use request::{
    CancelTask, GetExtendedCard, GetTask, ListPushConfigs, ListTasks, Operation, PushConfigRef, Request, SendConfiguration,
    SendMessage, SubscribeToTask,
};
pub use security::{
    ApiKeyScheme, AuthorizationCodeFlow, ClientCredentialsFlow, DeviceCodeFlow, HttpAuthScheme, ImplicitFlow, MutualTlsScheme,
    OAuth2Scheme, OAuthFlows, OpenIdConnectScheme, PasswordFlow, SecurityRequirement, SecurityScheme, StringList,
};
pub use standing::{AgentId, CallGrant, CallerStanding, IdentityProof, MayCall, Reach};
pub use task::{Task, TaskState, TaskStatus};
pub use time::Timestamp;
pub use unknown::{OpenObject, Unknown};
pub use version::{Binding, Dialect, Version};
