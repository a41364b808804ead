//! Tokens that were verified a moment ago, so that the next call with the same one costs a hash.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::Timestamp;

use super::{CredentialRefusal, KeyHash, Known, RefusalKind};

const MOST_TOKENS: usize = 10_000;

/// What a token proves, as long as it lasts.
#[derive(Debug)]
pub(super) struct VerifiedToken {
    /// By its name in configuration.
    pub issuer: String,
    pub subject: String,
    /// The caller it is if no record lists the subject and the issuer is trusted with all.
    pub own: Option<Known>,
    /// Both with the leeway of the issuer.
    pub from: Timestamp,
    pub until: Timestamp,
}

impl VerifiedToken {
    pub(super) fn check_time(&self, now: Timestamp) -> Result<(), CredentialRefusal> {
        if now > self.until {
            return Err(CredentialRefusal::new(RefusalKind::Expired, format!("a token of {} that has expired", self.issuer)));
        }
        if now < self.from {
            return Err(CredentialRefusal::new(
                RefusalKind::ClockSkew,
                format!("a token of {} that is not valid yet", self.issuer),
            ));
        }
        Ok(())
    }
}

pub(super) struct TokenMemory {
    kept: Mutex<CachedTokens>,
    /// A token is verified again after this time even if it has not expired: its issuer may have withdrawn
    /// the key.
    kept_micros: i64,
}

#[derive(Default)]
struct CachedTokens {
    tokens: HashMap<KeyHash, (Arc<VerifiedToken>, Timestamp)>,
    /// Oldest first, each as long as it is in the map.
    order: VecDeque<KeyHash>,
}

impl TokenMemory {
    pub(super) fn new(kept_s: u32) -> Self {
        Self { kept: Mutex::default(), kept_micros: i64::from(kept_s) * 1_000_000 }
    }

    /// Nothing that panics runs under the lock, and what is kept is right entry by entry.
    fn kept(&self) -> MutexGuard<'_, CachedTokens> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, hash: &KeyHash, now: Timestamp) -> Option<Arc<VerifiedToken>> {
        let kept = self.kept();
        let (verified, since) = kept.tokens.get(hash)?;
        // A clock that was set back makes a token look as if it came from the future: verify it again.
        (0..self.kept_micros).contains(&now.micros().saturating_sub(since.micros())).then(|| verified.clone())
    }

    pub(super) fn keep(&self, hash: KeyHash, verified: Arc<VerifiedToken>, now: Timestamp) {
        let mut kept = self.kept();
        if kept.tokens.insert(hash, (verified, now)).is_none() {
            kept.order.push_back(hash);
        }
        while kept.order.len() > MOST_TOKENS {
            if let Some(oldest) = kept.order.pop_front() {
                kept.tokens.remove(&oldest);
            }
        }
    }
}

impl fmt::Debug for TokenMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenMemory").field("tokens", &self.kept().tokens.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn verified() -> Arc<VerifiedToken> {
        Arc::new(VerifiedToken { issuer: "corp".into(), subject: "ci".into(), own: None, from: at(0), until: at(9_999) })
    }

    #[test]
    fn the_oldest_token_goes_when_there_are_too_many() {
        let memory = TokenMemory::new(300);
        let hash = |number: usize| KeyHash::of(&number.to_string());
        for number in 0..=MOST_TOKENS {
            memory.keep(hash(number), verified(), at(1));
            // Known ones are not counted twice.
            memory.keep(hash(number), verified(), at(1));
        }
        assert!(memory.find(&hash(0), at(1)).is_none());
        assert!(memory.find(&hash(1), at(1)).is_some());
        assert!(memory.find(&hash(MOST_TOKENS), at(1)).is_some());
        assert_eq!(memory.kept().tokens.len(), MOST_TOKENS);
    }

    #[test]
    fn a_token_is_not_trusted_from_memory_for_long_nor_before_it_was_seen() {
        let memory = TokenMemory::new(300);
        let hash = KeyHash::of("token");
        memory.keep(hash, verified(), at(1_000));
        assert!(memory.find(&hash, at(1_299)).is_some());
        assert!(memory.find(&hash, at(1_300)).is_none());
        assert!(memory.find(&hash, at(999)).is_none());
    }
}
