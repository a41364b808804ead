//! What is frozen. Whoever admits a call holds the list until the call is recorded, so that nothing slips past a freeze.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_protocol::{AgentName, Caller};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::{Freeze, FreezeScope};

#[derive(Debug, Default)]
pub(crate) struct Freezes(Arc<RwLock<BTreeMap<FreezeScope, Freeze>>>);

/// The list as it is while a call is admitted. A freeze waits for it to be dropped.
#[derive(Debug)]
pub(crate) struct Unfrozen(OwnedRwLockReadGuard<BTreeMap<FreezeScope, Freeze>>);

/// What a call belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Belongs<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) agent: &'a AgentName,
    /// The root tasks it may come from.
    pub(crate) roots: &'a [&'a str],
}

impl Freezes {
    /// Waits only while somebody freezes or thaws.
    pub(crate) async fn look(&self) -> Unfrozen {
        Unfrozen(Arc::clone(&self.0).read_owned().await)
    }

    /// The list, to be changed. Nothing is admitted meanwhile, and all that was being admitted has been.
    pub(crate) async fn change(&self) -> OwnedRwLockWriteGuard<BTreeMap<FreezeScope, Freeze>> {
        Arc::clone(&self.0).write_owned().await
    }

    pub(crate) async fn list(&self) -> Vec<Freeze> {
        self.0.read().await.values().cloned().collect()
    }
}

impl Unfrozen {
    /// The freeze that keeps a call out, if there is one; the widest first.
    pub(crate) fn against(&self, call: Belongs<'_>) -> Option<&Freeze> {
        if self.0.is_empty() {
            return None;
        }
        let Belongs { caller, agent, roots } = call;
        let scopes = [
            FreezeScope::Everything,
            FreezeScope::Tenant(Arc::clone(&caller.tenant)),
            FreezeScope::Agent(Arc::clone(agent)),
            FreezeScope::caller(caller),
        ];
        let trees = roots.iter().map(|root| FreezeScope::Tree((*root).into()));
        scopes.into_iter().chain(trees).find_map(|scope| self.0.get(&scope))
    }
}

impl FreezeScope {
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
        let call = Belongs { caller: &caller, agent: &agent, roots: &["r1", "r2"] };
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
            freezes.change().await.insert(scope.clone(), freeze(scope.clone()));
            assert_eq!(freezes.look().await.against(call).is_some(), kept_out, "{scope:?}");
        }
    }

    #[tokio::test]
    async fn a_freeze_waits_for_calls_that_are_being_admitted() {
        let freezes = Freezes::default();
        let admitting = freezes.look().await;
        let mut freezing = Box::pin(freezes.change());
        assert!(futures::poll!(&mut freezing).is_pending());
        drop(admitting);
        assert!(futures::poll!(&mut freezing).is_ready());
    }
}
