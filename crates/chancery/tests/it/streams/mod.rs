//! Streams and answers that nobody reads.

pub(crate) mod unread;
