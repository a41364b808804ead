//! One contract, run on every store: what is promised by the port holds whatever is behind it.

mod appending;
mod listing;
mod naming;
mod sample;
mod sweeping;
