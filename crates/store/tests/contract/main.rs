//! One contract, run on every store: what is promised by the port holds whatever is behind it.

mod appending;
mod crash;
mod faults;
mod files;
mod linking;
mod listing;
mod model;
mod naming;
mod sample;
mod sweeping;
