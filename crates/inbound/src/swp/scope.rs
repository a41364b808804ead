//! The task ids of one caller: the same on all its connections, and nobody else's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use chancery_protocol::Caller;
use chancery_wire::swp::codec::{Lifecycle, Limits, Speakers};

/// The lifecycles of callers that have a connection open.
#[derive(Debug, Default)]
pub(super) struct Scopes(Mutex<HashMap<Caller, Weak<Scope>>>);

/// The tasks of one caller. When its last connection closes they are forgotten here; the service still knows them.
#[derive(Debug)]
pub(super) struct Scope {
    lifecycle: Mutex<Lifecycle>,
    caller: Caller,
    scopes: Weak<Scopes>,
}

impl Scopes {
    pub(super) fn enter(self: &Arc<Self>, caller: &Caller, limits: &Limits) -> Arc<Scope> {
        let mut scopes = self.lock();
        if let Some(scope) = scopes.get(caller).and_then(Weak::upgrade) {
            return scope;
        }
        // Events and results come from whoever was given the task, and that is this side.
        let lifecycle = Mutex::new(Lifecycle::new(limits, Speakers::TheOtherParty));
        let scope = Arc::new(Scope { lifecycle, caller: caller.clone(), scopes: Arc::downgrade(self) });
        scopes.insert(caller.clone(), Arc::downgrade(&scope));
        scope
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Caller, Weak<Scope>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scope {
    pub(super) fn lifecycle(&self) -> MutexGuard<'_, Lifecycle> {
        self.lifecycle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let Some(scopes) = self.scopes.upgrade() else { return };
        let mut scopes = scopes.lock();
        // Somebody may have come in again meanwhile.
        if scopes.get(&self.caller).is_some_and(|scope| scope.strong_count() == 0) {
            scopes.remove(&self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_wire::swp::codec::a2a::{Message, Task};
    use chancery_wire::swp::codec::{Outcome, Party, TaskState};

    #[test]
    fn task_ids_are_the_callers_own_on_all_its_connections_until_the_last_one_closes() {
        let scopes = Arc::new(Scopes::default());
        let limits = Limits::default();
        let enter = |tenant: &str, name: &str| scopes.enter(&Caller::new(tenant, name), &limits);
        let task = Message::Task(Task { task_id: "1".into(), kind: "k".into(), input: "x".into() });
        let start = |scope: &Scope| scope.lifecycle().accept(Party::Peer, &task).unwrap();
        let (first, second) = (enter("t", "a"), enter("t", "a"));
        assert_eq!(start(&first), Outcome::Started);
        assert_eq!(start(&second), Outcome::AlreadyStarted { state: TaskState::Open });
        assert_eq!(start(&enter("t", "b")), Outcome::Started);
        assert_eq!(start(&enter("u", "a")), Outcome::Started);
        drop((first, second));
        assert!(scopes.lock().is_empty());
        assert_eq!(start(&enter("t", "a")), Outcome::Started);
    }
}
