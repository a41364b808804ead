//! Ids made here: ordered by time, so that the store writes them one after the other.

use std::sync::Arc;

use uuid::Uuid;

pub(crate) fn fresh_id() -> Arc<str> {
    let mut buffer = Uuid::encode_buffer();
    let text: &str = Uuid::now_v7().hyphenated().encode_lower(&mut buffer);
    Arc::from(text)
}
