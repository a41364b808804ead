//! Many threads on the same scopes: at no moment is a cap passed, and nobody is refused for what was never spent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chancery_protocol::Timestamp;
use chancery_rules::MicroUsd;
use chancery_rules::budget::*;

const THREADS: u64 = 4;
const ROUNDS: u64 = 5_000;

fn now() -> Timestamp {
    Timestamp::from_micros(0)
}

fn caps(usd: i64, tokens: u64, tasks: u64) -> Caps {
    Caps { usd: Some(MicroUsd(usd)), tokens: Some(tokens), tasks: Some(tasks) }
}

fn is_within(standing: &BudgetStanding) -> bool {
    let caps = standing.limit.caps;
    let taken = standing.settled.saturating_add(standing.reserved);
    caps.usd.is_none_or(|cap| taken.usd <= cap)
        && caps.tokens.is_none_or(|cap| taken.tokens <= cap)
        && caps.tasks.is_none_or(|cap| taken.tasks <= cap)
}

#[test]
fn no_other_thread_ever_sees_a_cap_passed_or_a_call_half_reserved() {
    let ledger = BudgetLedger::new();
    let minute = BudgetWindow::Sliding(Duration::from_secs(60));
    let tree = ledger.account(&BudgetScope::Tree("t".into()), Limit::of_tree(caps(1_000, 600, 300)));
    let global = ledger.account(&BudgetScope::Global, Limit { caps: caps(900, 700, 250), window: minute });
    // The same amounts in both, so that whoever sees one without the other sees a difference.
    let both: Accounts = [global.clone(), tree.clone()].into_iter().collect();
    let done = AtomicBool::new(false);
    let (settled, looked) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|threads| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (ledger, both, settled) = (&ledger, &both, &settled);
                threads.spawn(move || {
                    for round in 0..ROUNDS {
                        let amount = Amount::of_task(MicroUsd(1 + (round % 7) as i64), round % 5);
                        let Ok(mut held) = ledger.reserve(both, amount.into(), now()) else { continue };
                        let more = ledger.raise(&mut held, Amount { usd: MicroUsd(3), tokens: 2, tasks: 0 }, now());
                        assert!(more.usd <= MicroUsd(3));
                        if (round + thread) % 50 == 0 {
                            let ended = ledger.settle(held, Amount::of_task(MicroUsd(2), round % 3), now());
                            settled.fetch_add(ended.settled.usd.0 as u64, Ordering::Relaxed);
                        } else {
                            ledger.release(held);
                        }
                    }
                })
            })
            .collect();
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                assert!(is_within(&ledger.standing(&tree, now())));
                assert!(is_within(&ledger.standing(&global, now())));
                looked.fetch_add(1, Ordering::Relaxed);
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(looked.load(Ordering::Relaxed) > 0);
    let (tree, global) = (ledger.standing(&tree, now()), ledger.standing(&global, now()));
    assert_eq!((tree.settled, tree.reserved), (global.settled, Amount::default()));
    assert_eq!(tree.settled.usd.0 as u64, settled.load(Ordering::Relaxed));
    assert!(tree.settled.usd > MicroUsd(0));
}

#[test]
fn nobody_is_refused_by_a_neighbour_who_was_refused_elsewhere() {
    let ledger = BudgetLedger::new();
    let shared = ledger.account(&BudgetScope::Global, Limit::of_tree(caps(i64::MAX, u64::MAX - 1, THREADS / 2)));
    let full = ledger.account(&BudgetScope::Tree("full".into()), Limit::of_tree(caps(0, 0, 0)));
    let open = ledger.account(&BudgetScope::Tree("open".into()), Limit::of_tree(Caps::NONE));
    let refused: Accounts = [shared.clone(), full].into_iter().collect();
    let taken: Accounts = [shared, open].into_iter().collect();
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (ledger, refused, taken) = (&ledger, &refused, &taken);
            threads.spawn(move || {
                for _ in 0..ROUNDS {
                    // Half of the threads fill the shared scope exactly; the others never get into their second one.
                    if thread % 2 == 0 {
                        let held = ledger.reserve(taken, Amount::of_task(MicroUsd(1), 1).into(), now());
                        ledger.release(held.expect("there is room for those who get it"));
                    } else {
                        assert!(ledger.reserve(refused, Amount::of_task(MicroUsd(1), 1).into(), now()).is_err());
                    }
                }
            });
        }
    });
}

#[test]
fn accounts_are_made_and_forgotten_while_others_count() {
    let ledger = BudgetLedger::new();
    let global = ledger.account(&BudgetScope::Global, Limit::of_tree(Caps::NONE));
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (ledger, global) = (&ledger, &global);
            threads.spawn(move || {
                for round in 0..ROUNDS {
                    let scope = BudgetScope::Tree(format!("{thread}-{round}").into());
                    let tree = ledger.account(&scope, Limit::of_tree(caps(1, 1, 1)));
                    let both: Accounts = [global.clone(), tree.clone()].into_iter().collect();
                    let held = ledger.reserve(&both, Amount::of_task(MicroUsd(1), 1).into(), now()).unwrap();
                    ledger.forget(&scope);
                    ledger.settle(held, Amount::of_task(MicroUsd(1), 1), now());
                    assert_eq!(ledger.standing(&tree, now()).settled, Amount::of_task(MicroUsd(1), 1));
                }
            });
        }
    });
    assert_eq!(ledger.standing(&global, now()).settled.tasks, THREADS * ROUNDS);
    assert_eq!(ledger.all(), [global]);
}
