//! Which task a call belongs to, who it has come through, and how sure that is.

mod agent_ids;
mod attribute;
mod attribution;
mod config;
mod context;
mod facts;
mod path;

pub use self::agent_ids::{AgentIdIndex, AgentNaming, is_distinct};
pub use self::attribute::{Lineage, attribute};
pub use self::attribution::{Attribution, LineageError, TokenCheck};
pub use self::config::{ENDED_TASKS, LINEAGE_BYTES, LONGEST_LINGER_S, LineageConfig, Unattributed};
pub use self::context::{ClaimedContext, TaskContext};
pub use self::facts::{Allowance, LineageFacts, OpenTask, Parent, PresentedToken, TokenClaims, TraceMark};
pub use self::path::{AgentPath, AgentRef, MAX_AGENT_NAME, MAX_PATH};
