//! One contract, run on every store: what is promised by the port holds whatever is behind it.

mod appending;
mod crash;
mod deciding;
mod faults;
mod files;
mod governing;
mod histories;
mod linking;
mod listing;
mod model;
mod naming;
mod outbox;
mod recording;
mod sample;
mod spending;
mod sweeping;
