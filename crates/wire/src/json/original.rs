//! The original protocol: `tasks/send`, task ids chosen by the client.

pub(crate) mod card;
