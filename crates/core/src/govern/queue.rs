//! Calls that wait for room in a budget: in line, for so long and no longer.

use std::time::Duration;

use chancery_rules::budget::{Accounts, BudgetError, BudgetQueue, BudgetQueueTicket, BudgetScope, OverflowPolicy, Quantity};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long to wait for a wake-up about freed money before the next look, where the time of the next release
/// is unknown.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct BudgetQueues {
    pub(crate) line: BudgetQueue,
    /// Rung whenever something was settled, released, or left the line.
    freed: Notify,
}

/// A place in the line, with the moment it is given up.
#[derive(Debug)]
pub(crate) struct QueueTicket {
    ticket: BudgetQueueTicket,
    until: Instant,
}

impl BudgetQueues {
    /// The scope that others wait for and a call has to wait for behind them, if there is one.
    pub(crate) fn others_first(&self, accounts: &Accounts, place: Option<&QueueTicket>) -> Option<BudgetScope> {
        let may_try = match place {
            None => self.line.is_clear(accounts),
            Some(place) => self.line.may_try(&place.ticket),
        };
        if may_try {
            return None;
        }
        accounts.iter().map(|account| account.scope()).find(|scope| self.line.depth(scope) > 0).cloned()
    }

    pub(crate) fn ring(&self) {
        if !self.line.is_empty() {
            self.freed.notify_waiters();
        }
    }

    /// Waits until it is worth trying again. A refusal that waiting cannot mend, or has waited long enough, comes back.
    pub(crate) async fn wait(
        &self,
        accounts: &Accounts,
        overflow: OverflowPolicy,
        hindrance: Hindrance,
        place: Option<QueueTicket>,
        patience: Duration,
    ) -> Result<QueueTicket, BudgetError> {
        let (scope, after) = match (&hindrance, overflow) {
            (Hindrance::Refused(refusal), OverflowPolicy::Queue { .. }) => match worth_waiting(refusal) {
                Some(after) => (refusal.scope().clone(), after),
                None => return hindrance.into_refusal(0),
            },
            (Hindrance::OthersFirst(scope), OverflowPolicy::Queue { .. }) => (scope.clone(), LOOK_EVERY),
            (_, OverflowPolicy::Shed) => return hindrance.into_refusal(0),
        };
        let OverflowPolicy::Queue { max_queue_depth } = overflow else { return hindrance.into_refusal(0) };
        let freed = self.freed.notified();
        let place = match place {
            Some(place) => {
                self.line.refused(&place.ticket, &scope);
                place
            }
            None => {
                let ticket = self.line.enqueue(accounts, &scope, max_queue_depth)?;
                QueueTicket { ticket, until: Instant::now() + patience }
            }
        };
        let now = Instant::now();
        if now >= place.until {
            drop(place);
            self.ring();
            return hindrance.into_refusal(max_queue_depth);
        }
        tokio::select! {
            () = freed => {}
            () = tokio::time::sleep_until(place.until.min(now + after.min(LOOK_EVERY))) => {}
        }
        Ok(place)
    }
}

/// Why a call could not reserve.
#[derive(Debug)]
pub(crate) enum Hindrance {
    Refused(BudgetError),
    /// A call waits for this scope already.
    OthersFirst(BudgetScope),
}

impl Hindrance {
    fn into_refusal(self, max_queue_depth: u32) -> Result<QueueTicket, BudgetError> {
        Err(match self {
            Self::Refused(refusal) => refusal,
            Self::OthersFirst(scope) => BudgetError::QueueFull { scope, max_queue_depth },
        })
    }
}

/// How soon there can be room. None where waiting is no use: in a tree, waiting tasks delay the tasks they
/// wait for.
fn worth_waiting(refusal: &BudgetError) -> Option<Duration> {
    let shortage = refusal.shortage()?;
    let could_fit = match (shortage.requested, shortage.limit) {
        (Quantity::Usd(requested), Quantity::Usd(limit)) => requested <= limit,
        (Quantity::Tokens(requested), Quantity::Tokens(limit)) | (Quantity::Tasks(requested), Quantity::Tasks(limit)) => {
            requested <= limit
        }
        _ => false,
    };
    match shortage.scope {
        BudgetScope::Tree(_) | BudgetScope::Subtree(_) => None,
        _ => could_fit.then(|| shortage.retry_after.unwrap_or(LOOK_EVERY)),
    }
}
