//! Why a task is not let through, or not let go on.

use std::fmt;
use std::sync::Arc;

use chancery_protocol::ErrorKind;

/// Why a policy rejects a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// The call would exceed a limit of one task.
    Exceeded {
        /// The limit.
        field: &'static str,
        /// The value of the call.
        actual: String,
        /// The value of the limit.
        limit: String,
    },
    /// None: the call does not say which skill it wants, and the agent has several.
    SkillDenied(Option<Arc<str>>),
    /// The caller has as many open tasks as it may have.
    ConcurrencyFull {
        /// The caller.
        caller: Arc<str>,
        /// The skill that the limit is for, if it is for one.
        skill: Option<Arc<str>>,
        /// The largest number of open tasks.
        limit: u32,
    },
    /// The task took too long.
    Timeout {
        /// The longest time of one task.
        limit_ms: u64,
    },
    /// The operator's rule says no; with a fault, because it could not be worked out.
    Denied {
        /// The name of the rule.
        rule: Arc<str>,
        /// Why the condition could not be evaluated, if it could not.
        fault: Option<String>,
    },
}

impl PolicyError {
    /// Returns the kind of the caller's error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Exceeded { .. } => ErrorKind::CostOverPolicy,
            Self::SkillDenied(_) => ErrorKind::SkillDenied,
            Self::ConcurrencyFull { .. } => ErrorKind::ConcurrencyFull,
            Self::Timeout { .. } => ErrorKind::PolicyTimeout,
            Self::Denied { .. } => ErrorKind::PolicyDenied,
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exceeded { field, actual, limit } => {
                write!(f, "the task costs {actual}, and the policy allows {limit} ({field})")
            }
            Self::SkillDenied(Some(skill)) => write!(f, "the policy does not allow the skill {skill:?} to this caller"),
            Self::SkillDenied(None) => f.write_str("the policy allows certain skills only, and the call names none"),
            Self::ConcurrencyFull { caller, skill, limit } => {
                write!(f, "{caller} already runs max_concurrency = {limit} tasks")?;
                skill.as_ref().map_or(Ok(()), |skill| write!(f, " of the skill {skill:?}"))
            }
            Self::Timeout { limit_ms } => write!(f, "the task took longer than max_duration_ms = {limit_ms}"),
            Self::Denied { rule, fault: None } => write!(f, "the policy rule {rule:?} rejects the call"),
            Self::Denied { rule, fault: Some(fault) } => {
                write!(f, "the policy rule {rule:?} cannot be evaluated, so it rejects the call: {fault}")
            }
        }
    }
}

impl std::error::Error for PolicyError {}
