//! The receiver from outside the crate.

mod receiver;
