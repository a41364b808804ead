//! Who holds all there was lends it to the calls made for it, and no cap is passed by that.

use chancery_protocol::Timestamp;
use chancery_rules::MicroUsd;
use chancery_rules::budget::{Accounts, Amount, BudgetLedger, BudgetScope, BudgetWindow, Caps, Estimate, Limit};
use proptest::prelude::*;

const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

fn usd(micros: i64) -> Amount {
    Amount { usd: MicroUsd(micros), tokens: 0, tasks: 0 }
}

fn scope(ledger: &BudgetLedger, scope: BudgetScope, cap: i64, window: BudgetWindow) -> chancery_rules::budget::Account {
    ledger.account(&scope, Limit { caps: Caps { usd: Some(MicroUsd(cap)), ..Caps::NONE }, window })
}

fn tree(ledger: &BudgetLedger, cap: i64) -> Accounts {
    [scope(ledger, BudgetScope::Tree("t".into()), cap, BudgetWindow::Tree)].into_iter().collect()
}

fn taken(ledger: &BudgetLedger, accounts: &Accounts) -> (i64, i64) {
    let standing = ledger.standing(&accounts[0], NOW);
    (standing.settled.usd.0, standing.reserved.usd.0)
}

#[test]
fn a_child_gets_what_it_needs_and_the_lender_keeps_the_rest() {
    let ledger = BudgetLedger::new();
    let accounts = tree(&ledger, 100);
    let mut lender = ledger.reserve(&accounts, Estimate::REMAINDER, NOW).unwrap();
    assert!(ledger.reserve(&accounts, usd(30).into(), NOW).is_err(), "nothing is free");
    let child = ledger.reserve_from(&mut lender, &accounts, usd(30).into(), NOW).unwrap();
    assert_eq!((child.amount().usd, lender.amount().usd), (MicroUsd(30), MicroUsd(70)));
    assert_eq!(taken(&ledger, &accounts), (0, 100));
    assert!(ledger.reserve_from(&mut lender, &accounts, usd(71).into(), NOW).is_err());
    assert_eq!(lender.amount().usd, MicroUsd(70), "a refusal changes nothing");
    ledger.settle(child, usd(10), NOW);
    assert_eq!(taken(&ledger, &accounts), (10, 70));
    // Of what came back the lender takes what it needs, and no more than there is.
    let settled = ledger.settle(lender, usd(95), NOW);
    assert_eq!((settled.settled.usd, settled.overrun.usd), (MicroUsd(90), MicroUsd(5)));
    assert_eq!(taken(&ledger, &accounts), (100, 0));
}

#[test]
fn what_somebody_asked_for_is_not_lent() {
    let ledger = BudgetLedger::new();
    let accounts = tree(&ledger, 100);
    let mut asked = ledger.reserve(&accounts, usd(100).into(), NOW).unwrap();
    assert_eq!(asked.lendable(), Amount::default());
    assert!(ledger.reserve_from(&mut asked, &accounts, usd(1).into(), NOW).is_err());
    assert_eq!(asked.amount().usd, MicroUsd(100));
}

#[test]
fn a_child_of_unknown_price_takes_all_and_can_lend_it_on() {
    let ledger = BudgetLedger::new();
    let accounts = tree(&ledger, 100);
    let mut root = ledger.reserve(&accounts, Estimate::REMAINDER, NOW).unwrap();
    let mut child = ledger.reserve_from(&mut root, &accounts, Estimate::REMAINDER, NOW).unwrap();
    assert_eq!((root.amount().usd, child.amount().usd), (MicroUsd(0), MicroUsd(100)));
    let grandchild = ledger.reserve_from(&mut child, &accounts, usd(40).into(), NOW).unwrap();
    assert_eq!(taken(&ledger, &accounts), (0, 100));
    for reservation in [grandchild, child, root] {
        ledger.release(reservation);
    }
    assert_eq!(taken(&ledger, &accounts), (0, 0));
}

#[test]
fn a_lender_that_is_restored_holds_what_the_others_left() {
    let ledger = BudgetLedger::new();
    let accounts = tree(&ledger, 100);
    let child = ledger.restore_reservation(&accounts, usd(30));
    let mut lender = ledger.restore_remainder(&accounts, Amount { tasks: 1, ..usd(100) }, NOW);
    assert_eq!(taken(&ledger, &accounts), (0, 100));
    let other = ledger.reserve_from(&mut lender, &accounts, usd(70).into(), NOW).unwrap();
    assert_eq!(taken(&ledger, &accounts), (0, 100));
    drop((child, other, lender));
}

proptest! {
    /// Whatever is lent, raised, settled and given back, in whatever order: no scope is ever past its cap.
    #[test]
    fn no_order_of_lending_passes_a_cap(steps in prop::collection::vec((0..6_u8, 0..8_usize, 0..60_i64), 1..80)) {
        let ledger = BudgetLedger::new();
        let whole = scope(&ledger, BudgetScope::Tree("t".into()), 100, BudgetWindow::Tree);
        let minute = scope(&ledger, BudgetScope::Global, 70, BudgetWindow::MINUTE);
        let both: Accounts = [minute.clone(), whole.clone()].into_iter().collect();
        let one: Accounts = [whole.clone()].into_iter().collect();
        let mut held = Vec::new();
        for (what, at, amount) in steps {
            let accounts = if at % 2 == 0 { &both } else { &one };
            let index = if held.is_empty() { None } else { Some(at % held.len()) };
            match (what, index) {
                (0, _) => held.extend(ledger.reserve(accounts, Estimate { tokens: Some(0), tasks: 0, ..Estimate::REMAINDER }, NOW)),
                (1, _) => held.extend(ledger.reserve(accounts, usd(amount).into(), NOW)),
                (2, Some(index)) => {
                    let borrowed = ledger.reserve_from(&mut held[index], accounts, usd(amount).into(), NOW);
                    held.extend(borrowed);
                }
                (3, Some(index)) if held.len() > 1 => {
                    let mut borrower = held.swap_remove(index);
                    let lender = at % held.len();
                    ledger.raise_from(&mut held[lender], &mut borrower, usd(amount), NOW);
                    held.push(borrower);
                }
                (4, Some(index)) => drop(ledger.settle(held.swap_remove(index), usd(amount), NOW)),
                (_, Some(index)) => ledger.release(held.swap_remove(index)),
                _ => {}
            }
            for (account, cap) in [(&whole, 100), (&minute, 70)] {
                let standing = ledger.standing(account, NOW);
                prop_assert!(standing.settled.usd.0 + standing.reserved.usd.0 <= cap, "{:?}: {standing:?}", account.scope());
            }
            let sum: i64 = held.iter().map(|reservation| reservation.amount().usd.0).sum();
            prop_assert_eq!(ledger.standing(&whole, NOW).reserved.usd.0, sum, "what is held is what is held for somebody");
        }
    }
}
