//! Tokens that were verified before.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::Timestamp;

use super::HopClaims;

/// Every task that was given away has one token, so this many tasks at once are known again without a signature.
pub(super) const MOST_KNOWN: usize = 4_096;

type Hash = [u8; 32];

#[derive(Default)]
pub(super) struct HopTokenCache(Mutex<CachedHopTokens>);

#[derive(Default)]
struct CachedHopTokens {
    tokens: HashMap<Hash, (Arc<HopClaims>, Timestamp)>,
    /// Oldest first, each as long as it is in the map.
    order: VecDeque<Hash>,
}

impl HopTokenCache {
    fn kept(&self) -> MutexGuard<'_, CachedHopTokens> {
        // Nothing that panics runs under the lock, and what is kept is right entry by entry.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, hash: &[u8], now: Timestamp) -> Option<Arc<HopClaims>> {
        let kept = self.kept();
        let (claims, until) = kept.tokens.get(hash)?;
        (now < *until).then(|| claims.clone())
    }

    /// Until its key retires; that the token itself expires is looked at every time.
    pub(super) fn keep(&self, hash: &[u8], claims: Arc<HopClaims>, until: Timestamp) {
        let Ok(hash) = Hash::try_from(hash) else { return };
        let mut kept = self.kept();
        if kept.tokens.insert(hash, (claims, until)).is_none() {
            kept.order.push_back(hash);
        }
        while kept.order.len() > MOST_KNOWN {
            if let Some(oldest) = kept.order.pop_front() {
                kept.tokens.remove(&oldest);
            }
        }
    }
}

impl fmt::Debug for HopTokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("tokens", &self.kept().tokens.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BudgetCaps, TokenAudience, path_digest};
    use super::*;
    use chancery_protocol::TraceId;

    fn claims() -> Arc<HopClaims> {
        Arc::new(HopClaims {
            tenant: "t".into(),
            root_task: "r".into(),
            parent_task: "p".into(),
            trace_id: TraceId(1),
            depth: 0,
            path_digest: path_digest(&[]),
            marks: None,
            budget: BudgetCaps::default(),
            audience: TokenAudience { agent: "a".into(), id: None },
            issued_at: Timestamp::from_micros(0),
            expires_at: Timestamp::from_micros(9),
            id: 0,
        })
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many_and_none_outlives_its_key() {
        let memory = HopTokenCache::default();
        let hash = |number: usize| {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_be_bytes());
            hash
        };
        let (now, end) = (Timestamp::from_micros(1), Timestamp::from_micros(2));
        for number in 0..=MOST_KNOWN {
            memory.keep(&hash(number), claims(), end);
            memory.keep(&hash(number), claims(), end);
        }
        assert!(memory.find(&hash(0), now).is_none());
        assert!(memory.find(&hash(1), now).is_some() && memory.find(&hash(MOST_KNOWN), now).is_some());
        assert_eq!(memory.kept().tokens.len(), MOST_KNOWN);
        assert!(memory.find(&hash(1), end).is_none());
    }
}
