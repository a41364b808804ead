//! One contract, run on every store: what is promised by the port holds whatever is behind it.

mod appending;
mod crash;
mod deciding;
mod examining;
mod faults;
mod files;
mod governing;
mod histories;
mod linking;
mod listing;
mod model;
mod naming;
mod nonces;
pub(crate) mod outbox;
mod plain_ids;
pub(crate) mod recording;
pub(crate) mod sample;
mod snapshots;
mod spending;
mod sweeping;
