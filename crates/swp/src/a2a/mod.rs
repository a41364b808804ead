//! The A2A profile: what agents say to each other about tasks, and the lifecycle it has to follow.

mod fingerprint;
mod lifecycle;
mod message;
mod result;

pub use lifecycle::{Lifecycle, Outcome, Party, Speakers, TaskState};
pub use message::{Event, Handshake, Message, Task};
pub use result::{Condition, TaskResult};
