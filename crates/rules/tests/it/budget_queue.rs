//! Waiting for a full scope: nobody is passed by, nobody waits for nothing, the queue drains.

use chancery_protocol::Timestamp;
use chancery_rules::MicroUsd;
use chancery_rules::budget::*;
use proptest::prelude::*;

fn now() -> Timestamp {
    Timestamp::from_micros(0)
}

fn agent(name: &str) -> BudgetScope {
    BudgetScope::Agent(name.into())
}

fn account(ledger: &BudgetLedger, scope: &BudgetScope, tasks: u64) -> Account {
    ledger.account(scope, Limit::of_tree(Caps { tasks: Some(tasks), ..Caps::NONE }))
}

fn one_task() -> Estimate {
    Amount::of_task(MicroUsd(0), 0).into()
}

#[test]
fn who_came_later_waits_only_behind_those_who_wait_for_a_scope_of_theirs() {
    let (ledger, queue) = (BudgetLedger::new(), BudgetQueue::new());
    let [a, b, c] = ["a", "b", "c"].map(|name| account(&ledger, &agent(name), 1));
    let ab: Accounts = [a.clone(), b.clone()].into_iter().collect();
    let bc: Accounts = [b.clone(), c.clone()].into_iter().collect();
    let [only_a, only_c]: [Accounts; 2] = [a.into(), c.into()];
    assert!(queue.is_clear(&ab));
    let first = queue.enqueue(&ab, &agent("a"), 10).unwrap();
    assert!(!queue.is_clear(&only_a), "a newcomer does not pass one who waits for the same");
    assert!(queue.is_clear(&bc), "b is not what is waited for");
    let second = queue.enqueue(&bc, &agent("c"), 10).unwrap();
    assert!(queue.may_try(&first) && queue.may_try(&second));
    queue.refused(&first, &agent("b"));
    assert!(!queue.may_try(&second), "now the first waits for b as well");
    let third = queue.enqueue(&only_c, &agent("c"), 10).unwrap();
    assert!(!queue.may_try(&third));
    assert_eq!(queue.turns(), [first.number()]);
    queue.leave(first);
    assert_eq!(queue.turns(), [second.number()]);
    drop(second);
    assert!(queue.may_try(&third) && queue.len() == 1);
    drop(third);
    assert!(queue.is_empty() && queue.is_clear(&ab) && queue.depth(&agent("c")) == 0);
}

#[test]
fn one_more_than_may_wait_is_turned_away() {
    let (ledger, queue) = (BudgetLedger::new(), BudgetQueue::new());
    let accounts: Accounts = account(&ledger, &BudgetScope::Global, 0).into();
    let waiting: Vec<_> = (0..3).map(|_| queue.enqueue(&accounts, &BudgetScope::Global, 3).unwrap()).collect();
    let full = queue.enqueue(&accounts, &BudgetScope::Global, 3).unwrap_err();
    assert!(matches!(full, BudgetError::QueueFull { max_queue_depth: 3, .. }));
    assert_eq!((full.code(), full.to_string().as_str()), ("BUDGET_QUEUE_FULL", "BUDGET_QUEUE_FULL global max_queue_depth=3"));
    drop(waiting);
    assert!(queue.enqueue(&accounts, &BudgetScope::Global, 3).is_ok());
}

#[derive(Clone, Debug)]
enum Event {
    /// A call for the scopes of the mask.
    Come(u8),
    GiveUp(usize),
    Finish(usize),
}

struct Waiting {
    ticket: BudgetQueueTicket,
    accounts: Accounts,
}

proptest! {
    #[test]
    fn all_that_wait_get_their_turn_in_order(
        room in prop::collection::vec(1..3_u64, 4),
        events in prop::collection::vec(
            prop_oneof![
                4 => (1..16_u8).prop_map(Event::Come),
                1 => (0..50_usize).prop_map(Event::GiveUp),
                2 => (0..50_usize).prop_map(Event::Finish),
            ],
            1..80,
        ),
    ) {
        let (ledger, queue) = (BudgetLedger::new(), BudgetQueue::new());
        let scopes: Vec<_> = room.iter().enumerate().map(|(at, room)| account(&ledger, &agent(&at.to_string()), *room)).collect();
        let (mut waiting, mut running): (Vec<Waiting>, Vec<Reservation>) = (Vec::new(), Vec::new());
        // Who wakes tries as long as it is somebody's turn; who is refused waits for that scope too.
        let wake = |waiting: &mut Vec<Waiting>, running: &mut Vec<Reservation>| -> Result<(), TestCaseError> {
            let mut at = 0;
            while at < waiting.len() {
                let one = &waiting[at];
                let passed = waiting[..at].iter().any(|earlier| {
                    one.accounts.iter().any(|account| earlier.accounts.contains(account) && ledger.remaining(&account.clone().into(), now()).tasks == Some(0))
                });
                if queue.may_try(&one.ticket) {
                    match ledger.reserve(&one.accounts, one_task(), now()) {
                        Ok(held) => {
                            prop_assert!(!passed, "nobody gets a scope that is full");
                            let Waiting { ticket, .. } = waiting.remove(at);
                            queue.leave(ticket);
                            running.push(held);
                            at = 0;
                            continue;
                        }
                        Err(refused) => queue.refused(&one.ticket, refused.scope()),
                    }
                } else {
                    prop_assert!(at > 0, "the oldest may always try");
                }
                at += 1;
            }
            Ok(())
        };
        for event in events {
            match event {
                Event::Come(mask) => {
                    let accounts: Accounts = (0..4).filter(|at| mask & (1 << at) != 0).map(|at| scopes[at].clone()).collect();
                    let waits_for_the_same = waiting.iter().any(|other| {
                        other.accounts.iter().any(|account| accounts.contains(account) && queue.depth(account.scope()) > 0)
                    });
                    let tried = if queue.is_clear(&accounts) {
                        prop_assert!(accounts.iter().all(|account| queue.depth(account.scope()) == 0));
                        ledger.reserve(&accounts, one_task(), now())
                    } else {
                        prop_assert!(waits_for_the_same, "nobody waits without a reason");
                        let held_by = accounts.iter().find(|account| queue.depth(account.scope()) > 0).unwrap();
                        let ticket = queue.enqueue(&accounts, held_by.scope(), 1_000).unwrap();
                        waiting.push(Waiting { ticket, accounts });
                        continue;
                    };
                    match tried {
                        Ok(held) => running.push(held),
                        Err(refused) => {
                            let ticket = queue.enqueue(&accounts, refused.scope(), 1_000).unwrap();
                            waiting.push(Waiting { ticket, accounts });
                        }
                    }
                }
                Event::GiveUp(which) if !waiting.is_empty() => drop(waiting.remove(which % waiting.len())),
                Event::Finish(which) if !running.is_empty() => ledger.release(running.swap_remove(which % running.len())),
                _ => {}
            }
            wake(&mut waiting, &mut running)?;
        }
        // Whatever happened, as long as calls end the queue drains.
        while let Some(held) = running.pop() {
            ledger.release(held);
            wake(&mut waiting, &mut running)?;
        }
        prop_assert!(waiting.is_empty() && queue.is_empty());
    }
}
