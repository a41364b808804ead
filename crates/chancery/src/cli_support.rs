//! Parts of the library that only the `chancery` command and its tests use. They are no part of the public API.

pub use crate::admin::{ADMIN_ROUTES, AdminRoute, show_caller, show_key};
pub use crate::agent_registry::{AgentRecord, AgentRegistry};
pub use crate::caller_registry::CallerRegistry;
pub use crate::config::changed_keys::every_key;
pub use crate::config::from_rvagent::{TakenOver, from_rvagent};
pub use crate::config::schema::schema;
pub use crate::config::template::{SCHEMA_FILE, template};
pub use crate::data_folder::{Announced, Whereabouts};
pub use crate::exposure::{open_listener_fault, plain_swp_fault};
pub use crate::gateway::{agent_slug, show_added};
pub use crate::key_registry::KeyRegistry;
pub use crate::preflight::{Preflight, Surroundings, preflight};
