//! Nonces that were used, for as long as a signature with them could come again.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use chancery_protocol::Timestamp;

/// One use of a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonceUse {
    /// Tells the nonce from all others, also from the same one of another key.
    pub nonce: [u8; 32],
    /// The last moment at which its signature would be accepted.
    pub until: Timestamp,
    pub now: Timestamp,
    /// So many may be remembered at once.
    pub most: usize,
}

/// Why a nonce cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NonceDenied {
    Replayed,
    /// Full of nonces that still count. To forget one would let its signature be used again, so new ones are refused.
    Full,
    /// The store could not tell whether the nonce was used before, or could not store it.
    Unavailable(String),
}

/// Remembers which nonces were used.
#[async_trait]
pub trait NonceBook: fmt::Debug + Send + Sync {
    /// Accepts each nonce once, and answers when it is durably stored.
    async fn use_once(&self, nonce: NonceUse) -> Result<(), NonceDenied>;
}

/// Nonces in the memory of this process: a signature can come again after a restart.
#[derive(Default)]
pub struct NonceMemory(Mutex<NonceSet>);

impl NonceMemory {
    pub fn use_once(&self, nonce: NonceUse) -> Result<(), NonceDenied> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).use_once(nonce)
    }

    /// Forgets those that do not count any more, at most so many. Answers whether more are left of them.
    pub fn expire(&self, now: Timestamp, at_most: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).expire(now, at_most)
    }
}

impl fmt::Debug for NonceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NonceMemory({})", self.0.lock().unwrap_or_else(PoisonError::into_inner).used.len())
    }
}

#[async_trait]
impl NonceBook for NonceMemory {
    async fn use_once(&self, nonce: NonceUse) -> Result<(), NonceDenied> {
        Self::use_once(self, nonce)
    }
}

#[derive(Default)]
struct NonceSet {
    used: HashSet<[u8; 32]>,
    by_end: BTreeSet<(Timestamp, [u8; 32])>,
}

impl NonceSet {
    fn use_once(&mut self, NonceUse { nonce, until, now, most }: NonceUse) -> Result<(), NonceDenied> {
        self.expire(now, u64::MAX);
        if self.used.contains(&nonce) {
            return Err(NonceDenied::Replayed);
        }
        if self.used.len() >= most {
            return Err(NonceDenied::Full);
        }
        self.used.insert(nonce);
        self.by_end.insert((until, nonce));
        Ok(())
    }

    fn expire(&mut self, now: Timestamp, at_most: u64) -> bool {
        let mut gone = 0;
        while let Some((end, expired)) = self.by_end.first().copied()
            && end < now
        {
            if gone == at_most {
                return gone > 0;
            }
            self.by_end.pop_first();
            self.used.remove(&expired);
            gone += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn use_at(memory: &NonceMemory, nonce: u8, until: i64, now: i64) -> Result<(), NonceDenied> {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        memory.use_once(NonceUse { nonce: [nonce; 32], until: at(until), now: at(now), most: 2 })
    }

    #[test]
    fn a_nonce_is_used_once_until_its_signature_has_expired() {
        let memory = NonceMemory::default();
        assert_eq!(use_at(&memory, 1, 300, 0), Ok(()));
        assert_eq!(use_at(&memory, 1, 300, 300), Err(NonceDenied::Replayed));
        assert_eq!(use_at(&memory, 1, 601, 301), Ok(()));
    }

    #[test]
    fn a_full_memory_refuses_new_nonces_rather_than_forget_one_that_counts() {
        let memory = NonceMemory::default();
        assert_eq!(use_at(&memory, 1, 10, 0), Ok(()));
        assert_eq!(use_at(&memory, 2, 20, 0), Ok(()));
        assert_eq!(use_at(&memory, 3, 30, 10), Err(NonceDenied::Full));
        assert_eq!(use_at(&memory, 1, 30, 10), Err(NonceDenied::Replayed));
        assert_eq!(use_at(&memory, 3, 30, 11), Ok(()));
        assert_eq!(format!("{memory:?}"), "NonceMemory(2)");
    }
}
