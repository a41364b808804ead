//! Remote agents behind this node: called through the outbound guard, and served under the node's addresses.

mod card_refreshes;
mod front;
mod gateway_agents;
mod gather;
mod in_code;
mod naming;
mod observed;
mod remote;
mod report;

pub(crate) use self::gateway_agents::{Gateway, GatewayError, GatewayParts};
pub(crate) use self::gather::{ServedAgents, gather};
pub(crate) use self::in_code::{InCode, Precedence};
pub use self::naming::agent_slug;
pub(crate) use self::remote::{Remote, RemoteParts, ShownCards};
pub use self::report::show_added;
