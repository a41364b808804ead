//! The list of freezes. Admission holds the list until the call is recorded, so that no call slips past a
//! freeze.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use chancery_protocol::{AgentName, Caller};
use tokio::sync::{Mutex, MutexGuard, oneshot};

use crate::{Freeze, FreezeScope};

type Frozen = BTreeMap<FreezeScope, Freeze>;

/// The list is never changed, but replaced: an admission uses the list it found and delays no other. A
/// replacement waits until the last admission has released the old list.
#[derive(Debug)]
pub(crate) struct Freezes {
    current: ArcSwap<List>,
    /// Each ends when one of the lists has no holder any more: first the older lists, last the current one.
    /// The owner of this lock may replace the list.
    let_go: Mutex<Vec<oneshot::Receiver<()>>>,
}

#[derive(Debug)]
struct List {
    frozen: Frozen,
    /// Dropped with the list, which the receiving half notices.
    _held: oneshot::Sender<()>,
}

impl List {
    fn new(frozen: Frozen) -> (Arc<Self>, oneshot::Receiver<()>) {
        let (held, let_go) = oneshot::channel();
        (Arc::new(Self { frozen, _held: held }), let_go)
    }
}

impl Default for Freezes {
    fn default() -> Self {
        let (list, let_go) = List::new(Frozen::new());
        Self { current: ArcSwap::new(list), let_go: Mutex::new(vec![let_go]) }
    }
}

/// The list as it was when a call came. A freeze waits for it to be dropped.
#[derive(Debug)]
pub(crate) struct Unfrozen(Arc<List>);

/// The right to replace the list: one at a time.
#[derive(Debug)]
pub(crate) struct FreezeListEdit<'a> {
    freezes: &'a Freezes,
    let_go: MutexGuard<'a, Vec<oneshot::Receiver<()>>>,
}

/// What a call belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Belongs<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) agent: &'a AgentName,
    /// The root tasks it may come from.
    pub(crate) roots: &'a [Arc<str>],
}

impl Freezes {
    pub(crate) fn look(&self) -> Unfrozen {
        Unfrozen(self.current.load_full())
    }

    /// Waits only for others that change the list.
    pub(crate) async fn change(&self) -> FreezeListEdit<'_> {
        FreezeListEdit { freezes: self, let_go: self.let_go.lock().await }
    }

    pub(crate) fn list(&self) -> Vec<Freeze> {
        self.current.load().frozen.values().cloned().collect()
    }
}

impl FreezeListEdit<'_> {
    /// Puts the changed list in force. When it returns, all calls that were being admitted have been
    /// admitted. If its caller stops waiting, the next change of the list waits instead.
    pub(crate) async fn apply<T>(mut self, edit: impl FnOnce(&mut Frozen) -> T) -> T {
        let mut frozen = self.freezes.current.load().frozen.clone();
        let done = edit(&mut frozen);
        let (list, let_go) = List::new(frozen);
        drop(self.freezes.current.swap(list));
        self.let_go.push(let_go);
        while let [oldest, _, ..] = self.let_go.as_mut_slice() {
            // It says nothing, it only ends.
            let _ = oldest.await;
            self.let_go.remove(0);
        }
        done
    }
}

impl Unfrozen {
    /// The freeze that keeps a call out, if there is one; the widest first.
    pub(crate) fn against(&self, call: Belongs<'_>) -> Option<&Freeze> {
        let frozen = &self.0.frozen;
        if frozen.is_empty() {
            return None;
        }
        let Belongs { caller, agent, roots } = call;
        let scopes = [
            FreezeScope::Everything,
            FreezeScope::Tenant(Arc::clone(&caller.tenant)),
            FreezeScope::Agent(Arc::clone(agent)),
            FreezeScope::caller(caller),
        ];
        let trees = roots.iter().map(|root| FreezeScope::Tree(Arc::clone(root)));
        scopes.into_iter().chain(trees).find_map(|scope| frozen.get(&scope))
    }
}

impl FreezeScope {
    /// Makes the scope of a caller.
    pub fn caller(caller: &Caller) -> Self {
        Self::Caller(format!("{}/{}", caller.tenant, caller.name).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::Timestamp;

    fn freeze(scope: FreezeScope) -> Freeze {
        Freeze { scope, by: "operator".into(), at: Timestamp::from_micros(1), why: None }
    }

    #[tokio::test]
    async fn a_call_is_kept_out_by_whatever_it_belongs_to_and_by_nothing_else() {
        let (caller, agent) = (Caller::new("acme", "ada"), AgentName::from("echo"));
        let roots = ["r1".into(), "r2".into()];
        let call = Belongs { caller: &caller, agent: &agent, roots: &roots };
        let against = [
            FreezeScope::Everything,
            FreezeScope::Tenant("acme".into()),
            FreezeScope::Agent("echo".into()),
            FreezeScope::Caller("acme/ada".into()),
            FreezeScope::Tree("r1".into()),
            FreezeScope::Tree("r2".into()),
        ];
        let elsewhere = [
            FreezeScope::Tenant("ada".into()),
            FreezeScope::Agent("acme".into()),
            FreezeScope::Caller("ada".into()),
            FreezeScope::Caller("other/ada".into()),
            FreezeScope::Tree("r3".into()),
        ];
        for (scope, kept_out) in against.map(|scope| (scope, true)).into_iter().chain(elsewhere.map(|scope| (scope, false))) {
            let freezes = Freezes::default();
            freezes.change().await.apply(|frozen| frozen.insert(scope.clone(), freeze(scope.clone()))).await;
            assert_eq!(freezes.look().against(call).is_some(), kept_out, "{scope:?}");
            assert_eq!(freezes.list().len(), 1);
        }
    }

    #[tokio::test]
    async fn a_freeze_waits_for_calls_that_are_being_admitted_and_holds_up_none() {
        let freezes = Freezes::default();
        let (caller, agent) = (Caller::new("acme", "ada"), AgentName::from("echo"));
        let call = Belongs { caller: &caller, agent: &agent, roots: &[] };
        let admitting = freezes.look();
        let change = freezes.change().await;
        let everything = freeze(FreezeScope::Everything);
        let mut freezing = Box::pin(change.apply(|frozen| drop(frozen.insert(FreezeScope::Everything, everything))));
        assert!(futures::poll!(&mut freezing).is_pending());
        assert!(freezes.look().against(call).is_some(), "who comes meanwhile sees it");
        let mut next = Box::pin(freezes.change());
        assert!(futures::poll!(&mut next).is_pending(), "one at a time");
        assert!(admitting.against(call).is_none());
        drop(admitting);
        assert!(futures::poll!(&mut freezing).is_ready());
        drop(freezing);
        assert!(futures::poll!(&mut next).is_ready());
    }

    #[tokio::test]
    async fn whoever_gives_up_waiting_leaves_the_wait_to_the_next() {
        let freezes = Freezes::default();
        let admitting = freezes.look();
        for _ in 0..2 {
            let mut given_up = Box::pin(freezes.change().await.apply(|_| ()));
            assert!(futures::poll!(&mut given_up).is_pending());
        }
        let later = freezes.look();
        let mut freezing = Box::pin(freezes.change().await.apply(|_| ()));
        assert!(futures::poll!(&mut freezing).is_pending(), "the first call is still being admitted");
        drop(later);
        assert!(futures::poll!(&mut freezing).is_pending());
        drop(admitting);
        assert!(futures::poll!(&mut freezing).is_ready());
        drop(freezing);
        let mut free = Box::pin(freezes.change().await.apply(|_| ()));
        assert!(futures::poll!(&mut free).is_ready(), "what was waited for once is not waited for again");
    }
}
