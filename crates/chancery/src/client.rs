//! The client that calls other agents: one for every version and binding, through a guard that checks every address.

pub use chancery_outbound::client::{
    AgentClient, AgentCredentials, CallConditions, ClientError, ClientLimits, EventStream, Interface, NotUnderstood, RateLimit,
    StreamedEvent, SwpTerms, Transport, UnreadableEvent, WasSent,
};
pub use chancery_outbound::guard::{
    Blocked, ConnectStage, Connector, Dial, Dialled, Fetch, Fetched, GuardedBody, GuardedClient, GuardedTarget, IpNet,
    OutboundFault, Outer, Resolve, Stream, StreamedResponse, TargetHost, Whole,
};
pub use chancery_outbound::remote::{AgentFacts, AgentNotes, CallFault, CallPreference, FactsKeeper};
pub use chancery_outbound::{ClientCertificate, Guard, GuardConfig, GuardError, RequestSigner, new_message_id};
pub use chancery_wire::TaskNames;
pub use chancery_wire::tolerant::{Leniencies, Leniency, Unreadable};
