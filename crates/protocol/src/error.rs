//! What a caller may see of a failure. How each kind looks on each wire is one table in `chancery-wire`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The kind of an error, which decides its code in every binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    // The specification's nine.
    /// The caller has no task of this id.
    TaskNotFound,
    /// The task has ended, so it cannot be canceled.
    TaskNotCancelable,
    /// The agent delivers no push notifications.
    PushNotificationNotSupported,
    /// The agent does not have the operation.
    UnsupportedOperation,
    /// The agent does not accept or produce the media type.
    ContentTypeNotSupported,
    /// The agent answered with something that the protocol does not allow.
    InvalidAgentResponse,
    /// The agent has no extended card.
    ExtendedAgentCardNotConfigured,
    /// The agent requires an extension that the call does not name.
    ExtensionSupportRequired,
    /// The agent does not have the protocol version.
    VersionNotSupported,
    // JSON-RPC's five.
    /// The request is not JSON.
    Parse,
    /// The request does not have the form of a call.
    InvalidRequest,
    /// There is no method of this name.
    MethodNotFound,
    /// A field of the request is missing or wrong.
    InvalidParams,
    /// The node or the agent failed. The caller sees no details.
    Internal,
    // Ours.
    /// More calls than the caller or its address may make for now.
    RateLimited,
    /// The call is larger than we read.
    TooLarge,
    /// A named limit of the node is reached: streams, events of a task.
    LimitReached,
    /// The same idempotency key came with other content.
    IdempotencyConflict,
    /// The call was carried out before under its idempotency key, and its task is forgotten.
    TaskForgotten,
    /// The node is shutting down or not ready.
    Unavailable,
    /// The call did not arrive in time.
    DeadlineExceeded,
    /// The caller is unknown: no credentials, or invalid ones.
    Unauthenticated,
    /// The caller is known and may not do this.
    PermissionDenied,
    /// The request names a host that this node does not answer to.
    HostNotServed,
    /// The request was made by a web page of another origin.
    OriginNotAllowed,
    // What governs a call refused it.
    /// A cap on money, tokens or tasks leaves no room for the call.
    BudgetExhausted,
    /// A cap leaves no room now, and as many calls as may wait for room are waiting.
    BudgetQueueFull,
    /// The chain of calls from its root is deeper than it may be.
    RecursionDepth,
    /// The agent called already holds a task further up in the same chain of calls.
    RecursionRevisit,
    /// The hop token is not one that this caller can have for this call.
    LineageInvalid,
    /// An agent called without the hop token of the task it works on.
    LineageRequired,
    /// The policy does not allow the skill, or the call names none where one must be named.
    SkillDenied,
    /// The caller has as many tasks of this skill under way as it may.
    ConcurrencyFull,
    /// The call would cost more than one task may.
    CostOverPolicy,
    /// The task took longer than a task may.
    PolicyTimeout,
    /// A rule of the operator refuses the call.
    PolicyDenied,
    /// An operator has frozen what the call belongs to.
    Frozen,
    /// None of the agents that could do it may be given the task.
    NoEligiblePeer,
    /// The agent behind this address does not answer.
    PeerUnavailable,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 39] = [
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedAgentCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::RateLimited,
        Self::TooLarge,
        Self::LimitReached,
        Self::IdempotencyConflict,
        Self::TaskForgotten,
        Self::Unavailable,
        Self::DeadlineExceeded,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::HostNotServed,
        Self::OriginNotAllowed,
        Self::BudgetExhausted,
        Self::BudgetQueueFull,
        Self::RecursionDepth,
        Self::RecursionRevisit,
        Self::LineageInvalid,
        Self::LineageRequired,
        Self::SkillDenied,
        Self::ConcurrencyFull,
        Self::CostOverPolicy,
        Self::PolicyTimeout,
        Self::PolicyDenied,
        Self::Frozen,
        Self::NoEligiblePeer,
        Self::PeerUnavailable,
    ];

    /// The word for it, in the details of an error and as the name of its page.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::PushNotificationNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::InvalidAgentResponse => "INVALID_AGENT_RESPONSE",
            Self::ExtendedAgentCardNotConfigured => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            Self::ExtensionSupportRequired => "EXTENSION_SUPPORT_REQUIRED",
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
            Self::Parse | Self::InvalidRequest => "INVALID_REQUEST",
            Self::MethodNotFound => "METHOD_NOT_FOUND",
            Self::InvalidParams => "INVALID_PARAMS",
            Self::Internal => "INTERNAL_ERROR",
            Self::RateLimited => "RATE_LIMITED",
            Self::TooLarge => "TOO_LARGE",
            Self::LimitReached => "LIMIT_REACHED",
            Self::IdempotencyConflict => "IDEMPOTENCY_CONFLICT",
            Self::TaskForgotten => "TASK_FORGOTTEN",
            Self::Unavailable => "UNAVAILABLE",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::HostNotServed => "HOST_NOT_SERVED",
            Self::OriginNotAllowed => "ORIGIN_NOT_ALLOWED",
            Self::BudgetExhausted => "BUDGET_EXHAUSTED",
            Self::BudgetQueueFull => "BUDGET_QUEUE_FULL",
            Self::RecursionDepth => "RECURSION_DEPTH",
            Self::RecursionRevisit => "RECURSION_REVISIT",
            Self::LineageInvalid => "LINEAGE_INVALID",
            Self::LineageRequired => "LINEAGE_REQUIRED",
            Self::SkillDenied => "SKILL_DENIED",
            Self::ConcurrencyFull => "CONCURRENCY_FULL",
            Self::CostOverPolicy => "COST_OVER_POLICY",
            Self::PolicyTimeout => "POLICY_TIMEOUT",
            Self::PolicyDenied => "POLICY_DENIED",
            Self::Frozen => "FROZEN",
            Self::NoEligiblePeer => "NO_ELIGIBLE_PEER",
            Self::PeerUnavailable => "PEER_UNAVAILABLE",
        }
    }
}

/// One field of a request that is wrong, by its path in the caller's own spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldViolation {
    /// The path of the field.
    pub field: String,
    /// What is wrong with the value.
    pub description: String,
}

/// An error that a caller can see.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The text that people read.
    pub message: Cow<'static, str>,
    /// The fields of the request that are wrong.
    pub violations: Vec<FieldViolation>,
    /// Numbers and names that go with the message, for machines.
    pub facts: Vec<(&'static str, String)>,
    /// The time after which the call can succeed.
    pub retry_after: Option<Duration>,
}

impl Error {
    /// Makes an error of a kind with a message.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), violations: Vec::new(), facts: Vec::new(), retry_after: None }
    }

    /// Makes the error for a task that the caller does not have.
    pub fn task_not_found() -> Self {
        Self::new(ErrorKind::TaskNotFound, "Task not found")
    }

    /// A request whose field `field` is wrong.
    pub fn invalid_field(field: impl Into<String>, description: impl Into<String>) -> Self {
        let violation = FieldViolation { field: field.into(), description: description.into() };
        let message = format!("{}: {}", violation.field, violation.description);
        Self { violations: vec![violation], ..Self::new(ErrorKind::InvalidParams, message) }
    }

    /// Adds a fact that programs read.
    pub fn with_fact(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.facts.push((name, value.to_string()));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
