//! Nonces that were used, for as long as a signature with them could come again.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use chancery_protocol::Timestamp;

/// So many bytes of a nonce's name are those of its key.
pub const NONCE_KEY_BYTES: usize = 8;

/// Of all nonces that may be remembered, one key may have this many once three quarters of the room are taken. So one key that
/// signs without end locks no other key out.
pub fn share_of_key(most: u64) -> u64 {
    (most / 8).max(2)
}

/// Whether the share of each key counts.
pub fn is_crowded(count: u64, most: u64) -> bool {
    count >= most - most / 4
}

/// One use of a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonceUse {
    /// Tells the nonce from all others, also from the same one of another key. It begins with `NONCE_KEY_BYTES` bytes that all
    /// nonces of its key have.
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

fn key_of(nonce: &[u8; 32]) -> [u8; NONCE_KEY_BYTES] {
    let mut key = [0; NONCE_KEY_BYTES];
    key.copy_from_slice(&nonce[..NONCE_KEY_BYTES]);
    key
}

#[derive(Default)]
struct NonceSet {
    used: HashSet<[u8; 32]>,
    by_key: HashMap<[u8; NONCE_KEY_BYTES], u64>,
    /// The latest end of a nonce that was forgotten. A signature that ends no later may have been used: a clock that was stepped
    /// back takes it for a new one.
    forgotten: Option<Timestamp>,
    by_end: BTreeSet<(Timestamp, [u8; 32])>,
}

impl NonceSet {
    fn use_once(&mut self, NonceUse { nonce, until, now, most }: NonceUse) -> Result<(), NonceDenied> {
        self.expire(now, u64::MAX);
        if self.used.contains(&nonce) || self.forgotten.is_some_and(|forgotten| until <= forgotten) {
            return Err(NonceDenied::Replayed);
        }
        let (count, most, key) = (self.used.len() as u64, most as u64, key_of(&nonce));
        let of_key = self.by_key.get(&key).copied().unwrap_or(0);
        if count >= most || (is_crowded(count, most) && of_key >= share_of_key(most)) {
            return Err(NonceDenied::Full);
        }
        self.used.insert(nonce);
        *self.by_key.entry(key).or_default() += 1;
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
            self.forgotten = self.forgotten.max(Some(end));
            if let Entry::Occupied(mut count) = self.by_key.entry(key_of(&expired)) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
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
