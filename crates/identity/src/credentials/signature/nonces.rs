//! Nonces that were used, for as long as a signature with them could come again.

use std::collections::{BTreeSet, HashSet};

use chancery_protocol::Timestamp;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Denied {
    Replayed,
    /// Full of nonces that still count. To forget one would let its signature be used again, so new ones are refused.
    Full,
}

pub(super) struct Nonces {
    most: usize,
    used: HashSet<[u8; 32]>,
    by_end: BTreeSet<(Timestamp, [u8; 32])>,
}

impl Nonces {
    pub(super) fn new(most: usize) -> Self {
        Self { most, used: HashSet::new(), by_end: BTreeSet::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.used.len()
    }

    /// `until` is the last moment at which the signature would be accepted.
    pub(super) fn use_once(&mut self, nonce: [u8; 32], until: Timestamp, now: Timestamp) -> Result<(), Denied> {
        while let Some((end, expired)) = self.by_end.first().copied()
            && end < now
        {
            self.by_end.pop_first();
            self.used.remove(&expired);
        }
        if self.used.contains(&nonce) {
            return Err(Denied::Replayed);
        }
        if self.used.len() >= self.most {
            return Err(Denied::Full);
        }
        self.used.insert(nonce);
        self.by_end.insert((until, nonce));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_nonce_is_used_once_until_its_signature_has_expired() {
        let mut nonces = Nonces::new(10);
        assert_eq!(nonces.use_once([1; 32], at(300), at(0)), Ok(()));
        assert_eq!(nonces.use_once([1; 32], at(300), at(300)), Err(Denied::Replayed));
        assert_eq!(nonces.use_once([1; 32], at(601), at(301)), Ok(()));
    }

    #[test]
    fn a_full_memory_refuses_new_nonces_rather_than_forget_one_that_counts() {
        let mut nonces = Nonces::new(2);
        assert_eq!(nonces.use_once([1; 32], at(10), at(0)), Ok(()));
        assert_eq!(nonces.use_once([2; 32], at(20), at(0)), Ok(()));
        assert_eq!(nonces.use_once([3; 32], at(30), at(10)), Err(Denied::Full));
        assert_eq!(nonces.use_once([1; 32], at(30), at(10)), Err(Denied::Replayed));
        assert_eq!(nonces.use_once([3; 32], at(30), at(11)), Ok(()));
        assert_eq!(nonces.len(), 2);
    }
}
