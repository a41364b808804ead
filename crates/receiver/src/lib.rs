//! The other end of push: takes notifications in, verified, once and in order, whoever sent them.
//!
//! ```
//! use axum::{Router, routing::post};
//! use chancery_identity::webhook::HmacSecret;
//! use chancery_receiver::{Accepted, Delivery, Receiver};
//!
//! async fn hook(delivery: Delivery) -> Accepted {
//!     // Work on delivery.notification here. Whatever is not accepted is sent again.
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
pub use chancery_wire::{Notification, NotificationForm};
pub use clock::{Clock, SystemClock};
pub use delivery::{Accepted, Delivery};
pub use guard::{GuardFault, ReplayGuard};
pub use proof::Proof;
pub use receiver::{MOST_BODY_BYTES, Receiver};
pub use refusal::Refusal;
