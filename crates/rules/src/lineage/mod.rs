//! Which task a call belongs to, who it has come through, and how sure that is.

mod attribute;
mod config;
mod context;
mod facts;
mod path;

pub use self::attribute::{Attribution, Lineage, LineageError, TokenCheck, attribute};
pub use self::config::{LineageConfig, Unattributed};
pub use self::context::{ClaimedContext, TaskContext};
pub use self::facts::{Allowance, LineageFacts, OpenTask, Parent, Presented, TokenClaims};
pub use self::path::{AgentPath, AgentRef, MAX_AGENT_NAME, MAX_PATH, outsider};
