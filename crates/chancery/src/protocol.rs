//! The A2A model in the shape of version 1.0: messages, tasks, cards, requests, replies and errors.

pub use chancery_protocol::raw_json::Members;
pub use chancery_protocol::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentId, AgentInterface, AgentName, AgentProvider,
    AgentSkill, ApiKeyScheme, Artifact, ArtifactChunk, ArtifactId, ArtifactKind, ArtifactVersions, AuthenticationInfo,
    AuthorizationCodeFlow, Binding, CallAccount, CallContext, CallGrant, Caller, CallerStanding, CancelTask,
    ClientCredentialsFlow, ContextId, DeviceCodeFlow, Dialect, Error, ErrorKind, FieldViolation, GetExtendedCard, GetTask,
    HttpAuthScheme, IdentityProof, ImplicitFlow, Json, ListPushConfigs, ListTasks, MayCall, Message, MessageId, Metadata,
    MutualTlsScheme, NamedTask, OAuth2Scheme, OAuthFlows, OpenIdConnectScheme, OpenObject, Operation, Part, PartContent,
    PasswordFlow, PeerConnection, PushConfig, PushConfigPage, PushConfigRef, Reach, Reply, Request, Role, SecurityRequirement,
    SecurityScheme, SendConfiguration, SendMessage, Sent, StatusChange, StringList, SubscribeToTask, Task, TaskEvent, TaskId,
    TaskPage, TaskState, TaskStatus, Timestamp, TraceId, Unknown, Version, negotiate_version,
};
