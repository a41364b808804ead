//! The port to the outside: puts what happened into the form its receiver asked for, and brings it there once.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use chancery_protocol::{Task, Timestamp};
use chancery_rules::push::{AttemptAnswer, FailClass, Span};

use crate::push::{OpenSecrets, Registration};
use crate::{LogEntry, TaskRecord};

/// What one delivery is made from: the same values make the same bytes.
#[derive(Clone, Debug)]
pub struct WebhookDelivery {
    /// The registration that it goes to.
    pub registration: Arc<Registration>,
    /// The task it is about.
    pub record: Arc<TaskRecord>,
    /// The first entry of the log that it stands for; the last one is the span's.
    pub from: u64,
    /// The entries that it stands for.
    pub span: Span,
    /// Its content.
    pub payload: WebhookPayload,
}

/// The content of a notification, before it is written.
#[derive(Clone, Debug)]
pub enum WebhookPayload {
    /// An entry of the log; one made of several pieces of an artifact has the number of the last.
    Event(Arc<LogEntry>),
    /// The whole task as it was after the last entry, without all of its history.
    Task(Arc<Task>),
}

/// A notification ready to be sent: everything about it that is the same each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The id of the notification.
    pub webhook_id: Arc<str>,
    /// The body.
    pub body: Arc<[u8]>,
    /// Those that do not change from one attempt to the next and hold no secret.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
}

/// What differs from one attempt to the next.
#[derive(Clone, Copy, Debug)]
pub struct Try {
    /// Counted from 1.
    pub attempt: u32,
    /// An operator asked for it.
    pub replay: bool,
    /// The time of the attempt.
    pub now: Timestamp,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryOutcome {
    /// What the receiver answered.
    pub answer: AttemptAnswer,
    /// What went wrong, for operators.
    pub error: Option<Arc<str>>,
    /// What the receiver gave us in return.
    pub receipt: Option<Arc<str>>,
}

impl DeliveryOutcome {
    /// What the receiver asked to be shown or signed with cannot be read any more, so nothing is sent.
    pub(super) fn without_secrets() -> Self {
        let error = Some("the secrets of the registration cannot be opened".into());
        Self { answer: AttemptAnswer::Failed(FailClass::Protocol), error, receipt: None }
    }
}

/// Sends one notification once. Dropping the future of `deliver` breaks the exchange off.
#[async_trait]
pub trait Courier: Send + Sync + Debug {
    /// The same letter for the same delivery, on every call.
    fn write(&self, delivery: &WebhookDelivery) -> Letter;

    /// Sends a letter once, and returns how the attempt ended.
    async fn deliver(&self, registration: &Registration, secrets: &OpenSecrets, letter: &Letter, how: Try) -> DeliveryOutcome;
}

/// Signs the receipts for what was taken.
pub trait Notary: Send + Sync + Debug {
    /// Returns the SHA-256 of bytes.
    fn digest(&self, content: &[u8]) -> [u8; 32];

    /// Nothing while there is no key.
    fn sign(&self, content: &[u8], now: Timestamp) -> Option<String>;
}
