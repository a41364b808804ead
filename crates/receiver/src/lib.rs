//! The receiver of push notifications: accepts them verified, once and in order, from every sender.
//!
//! ```
//! use axum::{Router, routing::post};
//! use chancery_receiver::{AcceptedDelivery, HmacSecret, ReceivedDelivery, Receiver};
//!
//! async fn hook(delivery: ReceivedDelivery) -> AcceptedDelivery {
//!     // Work on delivery.notification here. The sender repeats a delivery that is not accepted.
//!     delivery.accept().await
//! }
//!
//! let receiver = Receiver::builder()
//!     .url("https://agent.example.org/hook")
//!     .secret(HmacSecret::generate()?)
//!     .build()?;
//! let app: Router = Router::new().route("/hook", post(hook)).with_state(receiver);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod clock;
mod delivery;
mod extract;
mod guard;
mod lanes;
mod proof;
mod receiver;
mod refusal;

pub use builder::{Builder, Incomplete};
pub use chancery_identity::webhook::{HmacSecret, PushKeys, ReplayMemory, SecretFault};
pub use chancery_protocol::TaskId;
pub use chancery_wire::{Notification, NotificationForm};
pub use clock::{MachineClock, ReceiverClock};
pub use delivery::{AcceptedDelivery, ReceivedDelivery};
pub use guard::{GuardFault, ReplayGuard};
pub use proof::SenderProof;
pub use receiver::{MOST_BODY_BYTES, Receiver};
pub use refusal::NotificationRefusal;
