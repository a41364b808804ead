//! What holds for a caller's calls of an agent and a skill as long as the rules stay as they are. Looked up once, then remembered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use chancery_protocol::{AgentName, Caller};
use chancery_rules::budget::Accounts;
use chancery_rules::policy::TaskPolicy;
use foldhash::fast::RandomState;

use crate::Verdict;

/// The budgets that are not a tree's, the widest first, and the bounds.
#[derive(Debug)]
pub(crate) struct CallBounds {
    pub(crate) accounts: Accounts,
    pub(crate) policy: Arc<TaskPolicy>,
    /// The verdicts about the last such call.
    last: Mutex<Arc<[Verdict]>>,
}

impl CallBounds {
    pub(super) fn new(accounts: Accounts, policy: Arc<TaskPolicy>) -> Self {
        Self { accounts, policy, last: Mutex::default() }
    }

    /// The verdicts about a call as the list that its task keeps. Most calls of a caller get the same verdicts as the
    /// one before, and share its list.
    pub(crate) fn shared(&self, said: Vec<Verdict>) -> Arc<[Verdict]> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if **last != *said {
            *last = said.into();
        }
        Arc::clone(&last)
    }
}

/// Who asks whom for what.
type Asking = (Caller, AgentName, Option<Arc<str>>);

/// So many are remembered; the rest is put together each time. Skills are named by callers, so they could be any number.
const MOST_REMEMBERED: usize = 10_000;

/// Belongs to one set of rules and goes with it.
#[derive(Debug, Default)]
pub(super) struct Remembered(RwLock<HashMap<Asking, Arc<CallBounds>, RandomState>>);

impl Remembered {
    pub(super) fn get(
        &self,
        caller: &Caller,
        agent: &AgentName,
        skill: Option<&Arc<str>>,
        put_together: impl FnOnce() -> CallBounds,
    ) -> Arc<CallBounds> {
        let asking = (caller.clone(), agent.clone(), skill.cloned());
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&asking) {
            return Arc::clone(known);
        }
        let conditions = Arc::new(put_together());
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST_REMEMBERED {
            known.insert(asking, Arc::clone(&conditions));
        }
        conditions
    }
}
