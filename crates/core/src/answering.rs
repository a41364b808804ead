//! Bytes of answers that their callers have not taken yet, counted for each caller and for the node.
//!
//! A permit is taken before a task is read from the store and lives until its bytes are written or the connection is gone.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chancery_protocol::{Caller, Error, ErrorKind};
use tokio::sync::Notify;

use crate::limits::TaskLimits;

/// Smaller answers are not counted: the limits on connections and streams bound them, and most calls take no lock this way.
pub const COUNTED_FROM: u64 = 4 * 1024;

/// When a refused caller may try again. Readers that take nothing are closed after `limits.write_stall_ms`; most are quicker.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Counts the bytes that are being answered.
#[derive(Debug, Default)]
pub(crate) struct AnswerLedger(Mutex<Unread>);

#[derive(Debug, Default)]
struct Unread {
    node: u64,
    callers: HashMap<Caller, UnreadOfCaller>,
}

#[derive(Debug, Default)]
struct UnreadOfCaller {
    bytes: u64,
    permits: usize,
    /// Rings when this caller has taken some of it.
    freed: Arc<Notify>,
}

/// Room for an answer of so many bytes. Dropping it gives the room back.
#[derive(Debug)]
pub struct AnswerPermit {
    ledger: Arc<AnswerLedger>,
    caller: Caller,
    bytes: u64,
}

impl AnswerLedger {
    fn lock(&self) -> MutexGuard<'_, Unread> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for an answer, or the reason for its refusal. A caller without any other answer always gets room
    /// unless the node is full. An answer that is alone on the node always has room: else a large task could
    /// never be read.
    pub(crate) fn reserve(self: &Arc<Self>, caller: &Caller, bytes: u64, limits: &TaskLimits) -> Result<AnswerPermit, Error> {
        let mut unread = self.lock();
        unread.check(caller, bytes, limits)?;
        Ok(self.enter(&mut unread, caller, bytes))
    }

    /// Room for an answer that cannot be refused any more, because its call has changed something or its stream has begun. It
    /// waits until its own caller has taken enough of what it was sent before.
    pub(crate) async fn wait(self: &Arc<Self>, caller: &Caller, bytes: u64, limits: &TaskLimits) -> AnswerPermit {
        loop {
            let freed = {
                let mut unread = self.lock();
                // Nobody waits for others: a caller with nothing unread goes on also when the node is full.
                match unread.callers.get(caller) {
                    Some(own) if unread.check(caller, bytes, limits).is_err() => Arc::clone(&own.freed).notified_owned(),
                    _ => return self.enter(&mut unread, caller, bytes),
                }
            };
            freed.await;
        }
    }

    fn enter(self: &Arc<Self>, unread: &mut Unread, caller: &Caller, bytes: u64) -> AnswerPermit {
        unread.node += bytes;
        let own = unread.callers.entry(caller.clone()).or_default();
        own.bytes += bytes;
        own.permits += 1;
        AnswerPermit { ledger: Arc::clone(self), caller: caller.clone(), bytes }
    }

    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.lock().node
    }
}

impl Unread {
    fn check(&self, caller: &Caller, more: u64, limits: &TaskLimits) -> Result<(), Error> {
        let of_caller = self.callers.get(caller).map_or(0, |own| own.bytes);
        within("limits.answering_bytes_per_caller", of_caller, more, limits.answering_bytes_per_caller)?;
        within("limits.answering_bytes_per_node", self.node, more, limits.answering_bytes_per_node)
    }
}

fn within(name: &'static str, used: u64, more: u64, limit: u64) -> Result<(), Error> {
    if used == 0 || used.saturating_add(more) <= limit {
        return Ok(());
    }
    let message = format!("{name} = {limit} bytes are being answered and not read yet; read them, or try again later");
    let mut error = Error::new(ErrorKind::Unavailable, message).with_fact("limit", name);
    error.retry_after = Some(RETRY_AFTER);
    Err(error)
}

impl AnswerPermit {
    /// Room for so many bytes more, or the reason for its refusal.
    pub(crate) fn grow(&mut self, more: u64, limits: &TaskLimits) -> Result<(), Error> {
        let mut unread = self.ledger.lock();
        unread.check(&self.caller, more, limits)?;
        unread.change(&self.caller, self.bytes, self.bytes + more);
        self.bytes += more;
        Ok(())
    }

    /// The bytes it is for.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// So many bytes are not needed.
    pub(crate) fn shrink(&mut self, less: u64) {
        self.set(self.bytes.saturating_sub(less));
    }

    /// The answer has turned out to be of this size.
    pub fn set(&mut self, bytes: u64) {
        self.ledger.lock().change(&self.caller, self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Unread {
    fn change(&mut self, caller: &Caller, before: u64, after: u64) {
        self.node = self.node - before + after;
        if let Some(own) = self.callers.get_mut(caller) {
            own.bytes = own.bytes - before + after;
            if after < before {
                own.freed.notify_waiters();
            }
        }
    }
}

impl Drop for AnswerPermit {
    fn drop(&mut self) {
        let mut unread = self.ledger.lock();
        unread.change(&self.caller, self.bytes, 0);
        if let Entry::Occupied(mut own) = unread.callers.entry(self.caller.clone()) {
            own.get_mut().permits -= 1;
            own.get().freed.notify_waiters();
            if own.get().permits == 0 {
                own.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn limits() -> TaskLimits {
        TaskLimits { answering_bytes_per_caller: 10, answering_bytes_per_node: 15, ..TaskLimits::default() }
    }

    fn named(error: &Error) -> &str {
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert!(error.retry_after.is_some());
        &error.facts[0].1
    }

    #[test]
    fn each_limit_holds_at_its_edge_and_frees_when_the_bytes_are_gone() {
        let (ledger, limits) = (Arc::new(AnswerLedger::default()), limits());
        let (a, b) = (Caller::new("t", "a"), Caller::new("t", "b"));
        let first = ledger.reserve(&a, 6, &limits).unwrap();
        let _second = ledger.reserve(&a, 4, &limits).unwrap();
        assert_eq!(named(&ledger.reserve(&a, 1, &limits).unwrap_err()), "limits.answering_bytes_per_caller");
        let _third = ledger.reserve(&b, 5, &limits).unwrap();
        assert_eq!(named(&ledger.reserve(&b, 1, &limits).unwrap_err()), "limits.answering_bytes_per_node");
        drop(first);
        let mut again = ledger.reserve(&a, 1, &limits).unwrap();
        assert!(again.grow(6, &limits).is_err(), "a permit that grows is held to the same");
        again.grow(5, &limits).unwrap();
        again.set(1);
        assert_eq!(ledger.bytes(), 4 + 5 + 1);
    }

    #[test]
    fn an_answer_that_is_larger_than_the_limits_has_room_when_it_is_alone() {
        let (ledger, limits) = (Arc::new(AnswerLedger::default()), limits());
        let large = ledger.reserve(&Caller::new("t", "a"), 1000, &limits).unwrap();
        assert!(ledger.reserve(&Caller::new("t", "b"), 1, &limits).is_err());
        drop(large);
        assert_eq!(ledger.bytes(), 0);
        assert!(ledger.lock().callers.is_empty(), "callers without answers are forgotten");
    }

    #[tokio::test]
    async fn what_cannot_be_refused_waits_for_its_own_caller_and_for_nobody_else() {
        let (ledger, limits) = (Arc::new(AnswerLedger::default()), limits());
        let (a, b) = (Caller::new("t", "a"), Caller::new("t", "b"));
        let first = ledger.wait(&a, 1000, &limits).now_or_never().expect("it is alone");
        let _other = ledger.wait(&b, 10, &limits).now_or_never().expect("its caller has nothing unread");
        let mut waiting = std::pin::pin!(ledger.wait(&a, 1, &limits));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        waiting.await;
    }
}
