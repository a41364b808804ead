//! Evidence: what was observed, and no more, in forms that others can read.

pub mod adapter;
