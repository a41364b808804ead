//! Limits the bytes that lineage adds to a call of a remote agent, and drops what exceeds the limit.

use std::sync::Arc;

use chancery_protocol::TaskId;
use serde::Serialize;

use crate::service::Chancery;

const TRACEPARENT: usize = header_bytes("traceparent", 55);

/// What goes out in headers, or instead of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineageHeaders {
    /// The header `tracestate`.
    pub tracestate: Option<Arc<str>>,
    /// `chancery-hop-token`, or the member `hop_token` of the metadata.
    pub hop_token: Option<Arc<str>>,
    /// The bytes of these headers and of `traceparent`.
    pub bytes: usize,
    /// `lineage.max_bytes`.
    pub max_bytes: usize,
    /// Whether the token was left out for lack of room.
    pub cut: bool,
}

/// The lineage that a call received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SentLineage {
    /// Where: `header`, `metadata` or `both`.
    pub by: &'static str,
    /// All bytes that lineage added to the request.
    pub bytes: usize,
    /// `lineage.max_bytes` when it was sent.
    pub max_bytes: usize,
    /// Whether something was left out to stay below it.
    pub cut: bool,
}

impl Chancery {
    /// The lineage that the agent of a task received, as long as the task is open or ended a moment ago.
    pub fn sent_lineage(&self, task: &TaskId) -> Option<SentLineage> {
        let trees = &self.0.govern.trees;
        trees.get(task).or_else(|| trees.ended(task))?.sent()
    }
}

impl LineageHeaders {
    /// Our own member always goes out; then the token, then the members of others, as far as there is room.
    pub(crate) fn fitted(
        max_bytes: usize,
        own: Option<&str>,
        hop_token: Option<Arc<str>>,
        tracestate: impl FnOnce(usize) -> Option<String>,
    ) -> Self {
        let least = TRACEPARENT + own.map_or(0, |own| header_bytes("tracestate", own.len()));
        let had_token = hop_token.is_some();
        let hop_token = hop_token.filter(|token| least + token_header_bytes(token) <= max_bytes);
        let cut = had_token && hop_token.is_none();
        let taken = TRACEPARENT + hop_token.as_deref().map_or(0, token_header_bytes);
        let room = max_bytes.saturating_sub(taken + header_bytes("tracestate", 0));
        let tracestate: Option<Arc<str>> = tracestate(room).map(Arc::from);
        let bytes = taken + tracestate.as_ref().map_or(0, |state| header_bytes("tracestate", state.len()));
        Self { tracestate, hop_token, bytes, max_bytes, cut }
    }
}

/// The bytes of the header with a token.
pub fn token_header_bytes(token: &str) -> usize {
    header_bytes("chancery-hop-token", token.len())
}

/// A line of HTTP/1.1: the name, a colon and a space, the value, and the end of the line.
const fn header_bytes(name: &str, value: usize) -> usize {
    name.len() + 2 + value + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_before_the_members_of_others_and_our_own_member_before_both() {
        let own = "n".repeat(61);
        let fitted = |max_bytes: usize| {
            LineageHeaders::fitted(max_bytes, Some(&own), Some("t".repeat(600).into()), |room| {
                let others = room.saturating_sub(61).min(451);
                Some(format!("{own}{}", "o".repeat(others)))
            })
        };
        for max_bytes in [256, 767, 768, 769, 1_000, 2_048] {
            let sent = fitted(max_bytes);
            assert!(sent.bytes <= max_bytes, "{max_bytes}: {}", sent.bytes);
            assert_eq!(sent.cut, sent.hop_token.is_none());
            assert!(sent.tracestate.unwrap().starts_with(&own));
        }
        // 70 of `traceparent`, 75 of our member, 622 of the token.
        assert_eq!((fitted(766).hop_token, fitted(767).hop_token.is_some()), (None, true));
    }
}
