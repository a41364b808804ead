//! Webhooks: who registered one for which task, how far each has got, and what the store keeps about it.

mod check;
mod configs;
mod in_flight;
mod lane;
mod letter;
mod limits;
mod outbox;
mod register;
mod registration;
mod vault;

pub use chancery_rules::push::{
    ClockSet, Cursor, DeadReason, DeadSpan, DisableReason, Fenced, LaneAction, LaneChange, LaneClaim, LaneState, Span, SpanKind,
    WebhookOrigin,
};
pub use in_flight::{Claiming, InFlight, Notifier};
pub use lane::{Lane, LaneSettlement, LaneStep};
pub use letter::{DeadLetter, DeliveryAttempt, Receipt, Replay, ReplayStep};
pub use limits::PushLimits;
pub use outbox::{
    DeadFilter, DeadPage, LaneFilter, LanePage, LaneSweep, Outbox, OutboxLoad, Registered, Resealed, StateChange, SweptLanes,
};
pub use registration::{NewRegistration, PushEvents, PushProfile, Registration, RegistrationId, RegistrationLimits};
pub use vault::{OpenSecrets, PushTarget, PushTargets, SealedSecret, SecretBytes, Vault};

use std::sync::Arc;

use arc_swap::ArcSwap;
use chancery_protocol::{Error, ErrorKind};

/// What a card says about how notifications come.
pub const PUSH_EXTENSION: &str = "https://chancery.dev/a2a/push-delivery/v1";
/// A caller of 0.3 that asks for it when it registers a webhook is sent JSON-RPC responses, as the 0.3.0 compliance document has them.
pub const ENVELOPE_EXTENSION: &str = "https://chancery.dev/a2a/push-envelope/v1";

/// What makes push notifications possible. Without it the operations say that they are not supported.
#[derive(Clone, Debug)]
pub struct PushParts {
    /// The same store that keeps the tasks.
    pub outbox: Arc<dyn Outbox>,
    /// Seals the secrets of registrations.
    pub vault: Arc<dyn Vault>,
    /// Judges the URLs of registrations.
    pub targets: Arc<dyn PushTargets>,
    /// The limits of registrations.
    pub limits: PushLimits,
    /// Whether tokens and credentials are shown to the owner who registered them. Normally they are not.
    pub show_secrets: bool,
    /// Whether a registration for an existing task first gets the task's state.
    pub snapshot: bool,
}

/// Push as the control plane holds it.
#[derive(Debug)]
pub(crate) struct PushService {
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) vault: Arc<dyn Vault>,
    pub(crate) targets: Arc<dyn PushTargets>,
    pub(crate) limits: ArcSwap<PushLimits>,
    pub(crate) show_secrets: bool,
    pub(crate) snapshot: bool,
    pub(crate) notifier: Arc<Notifier>,
}

impl PushService {
    pub(crate) fn new(parts: PushParts) -> Self {
        let PushParts { outbox, vault, targets, limits, show_secrets, snapshot } = parts;
        Self { outbox, vault, targets, limits: ArcSwap::from_pointee(limits), show_secrets, snapshot, notifier: Arc::default() }
    }
}

pub(crate) fn too_many(of_tenant: bool) -> Error {
    let name = if of_tenant { "push.configs_per_tenant" } else { "push.configs_per_task" };
    Error::new(ErrorKind::LimitReached, format!("there are as many push configurations as {name} allows"))
        .with_fact("limit", name)
}
