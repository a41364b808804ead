//! Counts bytes that the node holds for callers: for each account and for the node, with a permit for each holder.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chancery_protocol::{CallAccount, Caller, Error, ErrorKind, PeerConnection};
use tokio::sync::Notify;

/// When a refused caller may try again. Peers that stall are closed after some seconds; most are quicker.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// One connection may hold this part of what its network may. So one peer that stalls leaves room for its neighbours.
const CONNECTIONS_OF_NETWORK: u64 = 4;

/// The names and values of the two limits of a ledger.
#[derive(Clone, Copy, Debug)]
pub struct ByteLimits {
    /// The most bytes of one account.
    pub per_caller: (&'static str, u64),
    /// The most bytes of all accounts together.
    pub per_node: (&'static str, u64),
    /// What the counted bytes are, for the error: the words after "N bytes".
    pub meaning: &'static str,
}

/// Counts held bytes.
#[derive(Debug, Default)]
pub struct ByteLedger(Mutex<HeldBytes>);

#[derive(Debug, Default)]
struct HeldBytes {
    node: u64,
    /// Rings when any bytes of the node are given back.
    freed: Arc<Notify>,
    shares: HashMap<ShareKey, ByteShare>,
}

/// Who has a share of the node's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ShareKey {
    Caller(Caller),
    Network(IpAddr),
    Connection(PeerConnection),
}

#[derive(Debug, Default)]
struct ByteShare {
    bytes: u64,
    permits: usize,
    /// Rings when some of its bytes are given back.
    freed: Arc<Notify>,
}

/// Room for so many bytes. Dropping it gives the room back.
#[derive(Debug)]
pub struct BytePermit {
    ledger: Arc<ByteLedger>,
    account: CallAccount,
    bytes: u64,
}

/// What there is no room in.
enum FullShare {
    /// A share of the account, and the most it may hold.
    CallAccount(ShareKey, u64),
    Node,
}

/// The shares that an account counts in, each with the most it may hold.
fn shares(account: &CallAccount, limits: &ByteLimits) -> impl Iterator<Item = (ShareKey, u64)> + use<> {
    let most = limits.per_caller.1;
    let (own, within) = match account {
        CallAccount::Caller(caller) => ((ShareKey::Caller(caller.clone()), most), None),
        CallAccount::Connection(peer) => {
            let of_connection = (ShareKey::Connection(*peer), most / CONNECTIONS_OF_NETWORK);
            (of_connection, Some((ShareKey::Network(peer.network), most)))
        }
    };
    std::iter::once(own).chain(within)
}

/// The same without their limits.
fn keys(account: &CallAccount) -> impl Iterator<Item = ShareKey> + use<> {
    let no_limits = ByteLimits { per_caller: ("", 0), per_node: ("", 0), meaning: "" };
    shares(account, &no_limits).map(|(key, _)| key)
}

fn has_room(used: u64, more: u64, limit: u64) -> bool {
    used == 0 || used.saturating_add(more) <= limit
}

impl ByteLedger {
    fn lock(&self) -> MutexGuard<'_, HeldBytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for some bytes, or the reason for their refusal. An account that holds nothing always gets room unless the node is
    /// full. Bytes that are alone on the node always have room: else a large task could never be read.
    pub fn reserve(self: &Arc<Self>, account: &CallAccount, bytes: u64, limits: &ByteLimits) -> Result<BytePermit, Error> {
        let mut held = self.lock();
        held.check(account, bytes, limits)?;
        Ok(self.enter(&mut held, account, bytes))
    }

    /// Room for bytes that cannot be refused any more, because their call has changed something or their stream has begun. It
    /// waits until the account has room. An account that holds nothing may overdraw the node by the share of one caller; past
    /// that it waits for the node.
    pub(crate) async fn wait(self: &Arc<Self>, account: &CallAccount, bytes: u64, limits: &ByteLimits) -> BytePermit {
        loop {
            let freed = {
                let mut held = self.lock();
                let is_new = keys(account).next().is_some_and(|own| !held.shares.contains_key(&own));
                let overdraft = if is_new { limits.per_caller.1 } else { 0 };
                match held.full(account, bytes, limits, overdraft) {
                    None => return self.enter(&mut held, account, bytes),
                    Some(FullShare::Node) => Arc::clone(&held.freed),
                    Some(FullShare::CallAccount(key, _)) => Arc::clone(&held.shares.entry(key).or_default().freed),
                }
                .notified_owned()
            };
            freed.await;
        }
    }

    fn enter(self: &Arc<Self>, held: &mut HeldBytes, account: &CallAccount, bytes: u64) -> BytePermit {
        held.node += bytes;
        for key in keys(account) {
            let share = held.shares.entry(key).or_default();
            share.bytes += bytes;
            share.permits += 1;
        }
        BytePermit { ledger: Arc::clone(self), account: account.clone(), bytes }
    }

    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.lock().node
    }
}

impl HeldBytes {
    fn full(&self, account: &CallAccount, more: u64, limits: &ByteLimits, overdraft: u64) -> Option<FullShare> {
        let used = |key: &ShareKey| self.shares.get(key).map_or(0, |share| share.bytes);
        if let Some((key, most)) = shares(account, limits).find(|(key, most)| !has_room(used(key), more, *most)) {
            return Some(FullShare::CallAccount(key, most));
        }
        let of_node = limits.per_node.1.saturating_add(overdraft);
        (!has_room(self.node, more, of_node)).then_some(FullShare::Node)
    }

    fn check(&self, account: &CallAccount, more: u64, limits: &ByteLimits) -> Result<(), Error> {
        let (name, message) = match self.full(account, more, limits, 0) {
            None => return Ok(()),
            Some(FullShare::CallAccount(ShareKey::Connection(_), most)) => {
                let (name, limit) = limits.per_caller;
                (name, format!("{most} bytes (a quarter of {name} = {limit}) of this connection {}", limits.meaning))
            }
            Some(FullShare::CallAccount(..)) => {
                let (name, limit) = limits.per_caller;
                (name, format!("{name} = {limit} bytes {}", limits.meaning))
            }
            Some(FullShare::Node) => {
                let (name, limit) = limits.per_node;
                (name, format!("{name} = {limit} bytes {}", limits.meaning))
            }
        };
        let mut error = Error::new(ErrorKind::Unavailable, message).with_fact("limit", name);
        error.retry_after = Some(RETRY_AFTER);
        Err(error)
    }

    fn change(&mut self, account: &CallAccount, before: u64, after: u64) {
        self.node = self.node - before + after;
        for key in keys(account) {
            if let Some(share) = self.shares.get_mut(&key) {
                share.bytes = share.bytes - before + after;
                if after < before {
                    share.freed.notify_waiters();
                }
            }
        }
        if after < before {
            self.freed.notify_waiters();
        }
    }
}

impl BytePermit {
    /// Room for so many bytes more, or the reason for its refusal.
    pub fn grow(&mut self, more: u64, limits: &ByteLimits) -> Result<(), Error> {
        let mut held = self.ledger.lock();
        held.check(&self.account, more, limits)?;
        held.change(&self.account, self.bytes, self.bytes + more);
        self.bytes += more;
        Ok(())
    }

    /// The same for one thing that arrives in pieces: alone in its share it always has room, as it would have as a whole.
    pub fn extend(&mut self, more: u64, limits: &ByteLimits) -> Result<(), Error> {
        let mut held = self.ledger.lock();
        held.change(&self.account, self.bytes, 0);
        let checked = held.check(&self.account, self.bytes + more, limits);
        let bytes = if checked.is_ok() { self.bytes + more } else { self.bytes };
        held.change(&self.account, 0, bytes);
        self.bytes = bytes;
        checked
    }

    /// The bytes it is for.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// So many bytes are not needed.
    pub(crate) fn shrink(&mut self, less: u64) {
        self.set(self.bytes.saturating_sub(less));
    }

    /// The bytes have turned out to be so many.
    pub fn set(&mut self, bytes: u64) {
        self.ledger.lock().change(&self.account, self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for BytePermit {
    fn drop(&mut self) {
        let mut held = self.ledger.lock();
        held.change(&self.account, self.bytes, 0);
        for key in keys(&self.account) {
            if let Entry::Occupied(mut share) = held.shares.entry(key) {
                share.get_mut().permits -= 1;
                if share.get().permits == 0 {
                    share.remove();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    const LIMITS: ByteLimits =
        ByteLimits { per_caller: ("limits.caller", 12), per_node: ("limits.node", 18), meaning: "are held" };

    fn ledger() -> Arc<ByteLedger> {
        Arc::default()
    }

    fn caller(name: &str) -> CallAccount {
        CallAccount::Caller(Caller::new("t", name))
    }

    fn connection(last: u8, number: u64) -> CallAccount {
        CallAccount::Connection(PeerConnection::new([192, 0, 2, last].into(), number))
    }

    fn named(error: &Error) -> &str {
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert!(error.retry_after.is_some());
        &error.facts[0].1
    }

    #[test]
    fn each_limit_holds_at_its_edge_and_frees_when_the_bytes_are_gone() {
        let (ledger, a, b) = (ledger(), caller("a"), caller("b"));
        let first = ledger.reserve(&a, 7, &LIMITS).unwrap();
        let _second = ledger.reserve(&a, 5, &LIMITS).unwrap();
        assert_eq!(named(&ledger.reserve(&a, 1, &LIMITS).unwrap_err()), "limits.caller");
        let _third = ledger.reserve(&b, 6, &LIMITS).unwrap();
        assert_eq!(named(&ledger.reserve(&b, 1, &LIMITS).unwrap_err()), "limits.node");
        drop(first);
        let mut again = ledger.reserve(&a, 1, &LIMITS).unwrap();
        assert!(again.grow(7, &LIMITS).is_err(), "a permit that grows is held to the same");
        again.grow(6, &LIMITS).unwrap();
        again.set(1);
        assert_eq!(ledger.bytes(), 5 + 6 + 1);
        assert!(again.extend(7, &LIMITS).is_err());
        again.extend(6, &LIMITS).unwrap();
        assert_eq!(ledger.bytes(), 5 + 6 + 7);
    }

    #[test]
    fn more_than_the_limits_has_room_when_it_is_alone() {
        let ledger = ledger();
        let mut large = ledger.reserve(&caller("a"), 1000, &LIMITS).unwrap();
        assert!(large.grow(1, &LIMITS).is_err());
        large.extend(1, &LIMITS).unwrap();
        assert!(ledger.reserve(&caller("b"), 1, &LIMITS).is_err());
        drop(large);
        assert_eq!(ledger.bytes(), 0);
        assert!(ledger.lock().shares.is_empty(), "accounts without bytes are forgotten");
    }

    #[test]
    fn a_connection_has_a_quarter_of_its_network_and_all_connections_together_have_all_of_it() {
        let ledger = ledger();
        let mut held = Vec::new();
        for number in 0..4 {
            held.push(ledger.reserve(&connection(1, number), 3, &LIMITS).unwrap());
            assert_eq!(named(&ledger.reserve(&connection(1, number), 1, &LIMITS).unwrap_err()), "limits.caller");
        }
        assert_eq!(named(&ledger.reserve(&connection(1, 9), 1, &LIMITS).unwrap_err()), "limits.caller", "the network is full");
        let _elsewhere = ledger.reserve(&connection(2, 10), 3, &LIMITS).unwrap();
        drop(held);
        assert!(ledger.reserve(&connection(1, 9), 1, &LIMITS).is_ok());
    }

    #[tokio::test]
    async fn what_cannot_be_refused_waits_for_its_own_account_and_overdraws_the_node_by_one_share() {
        let (ledger, a) = (ledger(), caller("a"));
        let first = ledger.wait(&a, 18, &LIMITS).now_or_never().expect("it is alone");
        let mut own = std::pin::pin!(ledger.wait(&a, 1, &LIMITS));
        assert!(own.as_mut().now_or_never().is_none());
        // The node is full. Others overdraw it by 12 bytes in all, however many they are.
        let overdrawn = ledger.wait(&caller("b"), 12, &LIMITS).now_or_never().expect("it holds nothing");
        let (third, fourth) = (caller("c"), caller("d"));
        let mut past = std::pin::pin!(ledger.wait(&third, 1, &LIMITS));
        let mut past_too = std::pin::pin!(ledger.wait(&fourth, 1, &LIMITS));
        assert!(past.as_mut().now_or_never().is_none(), "callers that are invented get no more than that");
        assert!(past_too.as_mut().now_or_never().is_none());
        drop(overdrawn);
        let _past = past.await;
        let _past_too = past_too.await;
        drop(first);
        own.await;
    }
}
