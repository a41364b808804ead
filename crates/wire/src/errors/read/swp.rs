//! Reads the error of an SWP peer's result as an error of this node.

use std::time::Duration;

use chancery_protocol::{Error, ErrorKind};
use chancery_swp::a2a::ResultCondition;

use super::{LONGEST_WAIT, message, of_reason};
use crate::errors::swp::{RETRY_AFTER, swp_condition};

/// The rejection in the `error_message` of an SWP result. `None` if the agent took the task and failed: then
/// the text is the agent's own.
pub fn swp(text: &str) -> Option<Error> {
    let (reason, rest) = text.split_once(": ").unwrap_or((text, ""));
    if let Some(kind) = of_reason(reason) {
        let rest = rest.strip_prefix(swp_condition(kind).says()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(rest);
        let (rest, retry_after) = waiting(rest);
        return Some(Error { retry_after, ..Error::new(kind, message(Some(rest), kind)) });
    }
    let says = |condition: ResultCondition| text.trim_start().to_ascii_lowercase().starts_with(condition.says());
    let kinds = [
        (ResultCondition::UnsupportedCapability, ErrorKind::UnsupportedOperation),
        (ResultCondition::MalformedInput, ErrorKind::InvalidParams),
        (ResultCondition::UnknownTask, ErrorKind::TaskNotFound),
        (ResultCondition::AuthorizationDenied, ErrorKind::PermissionDenied),
    ];
    let (_, kind) = kinds.into_iter().find(|(condition, _)| says(*condition))?;
    Some(Error::new(kind, message(Some(text), kind)))
}

/// The message, and the retry delay if there is one.
fn waiting(text: &str) -> (&str, Option<Duration>) {
    let said = text.rsplit_once(RETRY_AFTER).and_then(|(rest, wait)| Some((rest, wait.strip_suffix(" s")?.parse().ok()?)));
    said.map_or((text, None), |(rest, seconds)| (rest, Some(Duration::from_secs(seconds).min(LONGEST_WAIT))))
}
