//! The reasons for which a task rejects an update, and the error for its caller.

use chancery_protocol::{Error, ErrorKind};
use chancery_rules::task_state::EventRefusal;

use crate::find::come_back;

/// Why an update was not taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NotTaken {
    Refused(EventRefusal),
    TooManyEvents(u64),
    TooManyBytes(u64),
    Broken,
}

impl From<NotTaken> for Error {
    fn from(reason: NotTaken) -> Self {
        match reason {
            NotTaken::Refused(EventRefusal::Ended(state)) => {
                Error::new(ErrorKind::UnsupportedOperation, format!("the task has ended ({})", state.name()))
            }
            NotTaken::Refused(refusal) => Error::new(ErrorKind::InvalidAgentResponse, format!("{refusal:?}")),
            NotTaken::TooManyEvents(limit) => limit_reached("limits.task_events", limit),
            NotTaken::TooManyBytes(limit) => limit_reached("limits.task_bytes", limit),
            NotTaken::Broken => come_back("the task's log could not be written; GetTask shows what is recorded"),
        }
    }
}

pub(super) fn limit_reached(name: &'static str, limit: u64) -> Error {
    Error::new(ErrorKind::LimitReached, format!("the task has reached {name} = {limit}")).with_fact("limit", name)
}
