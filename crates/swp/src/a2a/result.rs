//! How a task ends, and the words that the profile recommends for ending badly.

use bytes::Bytes;

/// The end of a task. Nothing follows it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TaskResult {
    #[prost(bytes = "bytes", tag = "1")]
    pub task_id: Bytes,
    #[prost(bool, tag = "2")]
    pub ok: bool,
    #[prost(bytes = "bytes", tag = "3")]
    pub output: Bytes,
    #[prost(string, tag = "4")]
    pub error_message: String,
}

/// The failures the profile has words for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResultCondition {
    UnsupportedCapability,
    MalformedInput,
    UnknownTask,
    ExecutionFailed,
    AuthorizationDenied,
}

impl ResultCondition {
    pub fn says(self) -> &'static str {
        match self {
            Self::UnsupportedCapability => "unsupported capability",
            Self::MalformedInput => "malformed task input",
            Self::UnknownTask => "unknown task reference",
            Self::ExecutionFailed => "execution failed",
            Self::AuthorizationDenied => "authorization denied",
        }
    }
}

impl TaskResult {
    pub fn success(task_id: Bytes, output: Bytes) -> Self {
        Self { task_id, ok: true, output, error_message: String::new() }
    }

    pub fn failure(task_id: Bytes, reason: impl Into<String>) -> Self {
        Self { task_id, ok: false, output: Bytes::new(), error_message: reason.into() }
    }
}

impl From<ResultCondition> for String {
    fn from(condition: ResultCondition) -> Self {
        condition.says().to_owned()
    }
}
