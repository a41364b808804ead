//! The ledger by example: what is held, what is settled, what is refused and why.

use std::time::Duration;

use chancery_protocol::Timestamp;
use chancery_rules::MicroUsd;
use chancery_rules::budget::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn cents(cents: i64) -> MicroUsd {
    MicroUsd(cents * 10_000)
}

fn task(usd: MicroUsd) -> Amount {
    Amount::of_task(usd, 0)
}

fn usd_cap(usd: MicroUsd) -> Caps {
    Caps { usd: Some(usd), ..Caps::NONE }
}

fn per(seconds: u64, caps: Caps) -> Limit {
    Limit { caps, window: BudgetWindow::Sliding(Duration::from_secs(seconds)) }
}

fn tree(ledger: &BudgetLedger, cap: MicroUsd) -> Account {
    ledger.account(&BudgetScope::Tree("t1".into()), Limit::of_tree(usd_cap(cap)))
}

fn usd(ledger: &BudgetLedger, account: &Account) -> (i64, i64, i64) {
    let standing = ledger.standing(account, at(0));
    (standing.settled.usd.0, standing.reserved.usd.0, standing.overrun.usd.0)
}

fn invented(number: usize) -> BudgetScope {
    BudgetScope::Caller { tenant: "default".into(), name: format!("invented-{number}").into() }
}

#[test]
fn accounts_of_invented_names_are_forgotten_once_nothing_is_left_in_their_window() {
    let ledger = BudgetLedger::new();
    let spend = |number: usize, now: i64| {
        let accounts = Accounts::from(ledger.account(&invented(number), per(60, usd_cap(cents(500)))));
        let reservation = ledger.reserve(&accounts, task(cents(1)).into(), at(now)).unwrap();
        ledger.settle(reservation, task(cents(1)), at(now));
    };
    let held = ledger.account(&invented(0), per(60, usd_cap(cents(500))));
    for number in 0..3000 {
        spend(number, 0);
    }
    assert_eq!(ledger.all().len(), 3000, "what was spent within the window is remembered");
    assert_eq!(ledger.standing(&ledger.account(&invented(7), per(60, usd_cap(cents(500)))), at(1)).settled.usd, cents(1));
    for number in 3000..100_000 {
        spend(number, 100 + number as i64);
    }
    let left = ledger.all();
    assert!(left.len() <= 4096 + 61, "{} accounts", left.len());
    assert!(left.contains(&held), "somebody has it");
}

#[test]
fn names_have_accounts_of_their_own_up_to_a_number() {
    let ledger = BudgetLedger::new();
    let mut held = Vec::new();
    for number in 0..MOST_ACCOUNTS {
        assert!(ledger.has_room_for(&invented(number)), "{number}");
        held.push(ledger.account(&invented(number), Limit::of_tree(Caps::NONE)));
    }
    assert!(ledger.has_room_for(&invented(7)), "it has one");
    assert!(!ledger.has_room_for(&invented(MOST_ACCOUNTS)));
    ledger.forget(&invented(7));
    assert!(ledger.has_room_for(&invented(MOST_ACCOUNTS)));
}

#[test]
fn a_refusal_names_scope_and_numbers_and_changes_nothing() {
    let ledger = BudgetLedger::new();
    let tree = tree(&ledger, cents(50));
    let caller =
        ledger.account(&BudgetScope::Caller { tenant: "default".into(), name: "planner".into() }, per(60, usd_cap(cents(500))));
    let both: Accounts = [caller.clone(), tree.clone()].into_iter().collect();
    let first = ledger.reserve(&both, task(cents(46)).into(), at(0)).unwrap();
    ledger.settle(first, task(cents(46)), at(0));
    let second = ledger.reserve(&both, task(cents(3)).into(), at(0)).unwrap();
    let refused = ledger.reserve(&both, task(cents(5)).into(), at(0)).unwrap_err();
    assert_eq!(refused.to_string(), "BUDGET_EXHAUSTED tree=t1 limit=0.50 spent=0.46 reserved=0.03 requested=0.05");
    let shortage = refused.shortage().unwrap();
    assert_eq!(
        (shortage.dimension(), shortage.retry_after),
        (Dimension::Usd, None),
        "a tree's money never comes back by waiting"
    );
    assert_eq!(usd(&ledger, &caller), (460_000, 30_000, 0));
    assert_eq!(ledger.standing(&caller, at(0)).reserved.tasks, 1);
    ledger.release(second);
    assert_eq!(usd(&ledger, &tree), (460_000, 0, 0));
    assert_eq!(ledger.remaining(&both, at(0)).usd, Some(cents(4)));
}

#[test]
fn the_node_as_a_whole_is_refused_with_the_names_of_its_rate_limits() {
    let ledger = BudgetLedger::new();
    let caps = Caps { usd: Some(cents(10)), tokens: Some(100), tasks: Some(2) };
    let global: Accounts = ledger.account(&BudgetScope::Global, per(60, caps)).into();
    let held = ledger.reserve(&global, Amount::of_task(cents(9), 90).into(), at(0)).unwrap();
    let refused = ledger.reserve(&global, task(cents(2)).into(), at(0)).unwrap_err();
    assert!(
        matches!(refused, BudgetError::RateLimitUsd { observed_per_min, cap, .. } if observed_per_min == cents(9) && cap == cents(10))
    );
    let refused = ledger.reserve(&global, Amount::of_task(cents(1), 11).into(), at(0)).unwrap_err();
    assert!(matches!(refused, BudgetError::RateLimitTokens { observed_per_min: 90, cap: 100, .. }));
    assert_eq!(refused.to_string(), "BUDGET_EXHAUSTED global window=1m of=tokens limit=100 spent=0 reserved=90 requested=11");
    let other = ledger.reserve(&global, task(cents(1)).into(), at(0)).unwrap();
    let refused = ledger.reserve(&global, task(cents(0)).into(), at(0)).unwrap_err();
    assert!(matches!(refused, BudgetError::RateLimitTasks { observed_per_min: 2, cap: 2, .. }));
    drop((held, other));
}

#[test]
fn what_a_refused_call_is_told_to_wait_is_exactly_long_enough() {
    let ledger = BudgetLedger::new();
    let account: Accounts = ledger.account(&BudgetScope::Global, per(60, usd_cap(cents(100)))).into();
    for (second, spent) in [(10, 40), (20, 40), (30, 20)] {
        let held = ledger.reserve(&account, task(cents(spent)).into(), at(second)).unwrap();
        ledger.settle(held, task(cents(spent)), at(second));
    }
    for (wanted, wait) in [(1, Some(31)), (40, Some(31)), (41, Some(41)), (100, Some(51)), (101, None)] {
        let refused = ledger.reserve(&account, task(cents(wanted)).into(), at(40)).unwrap_err();
        assert_eq!(refused.retry_after(), wait.map(Duration::from_secs), "{wanted}");
    }
    assert!(ledger.reserve(&account, task(cents(41)).into(), at(80)).is_err());
    assert!(ledger.reserve(&account, task(cents(41)).into(), at(81)).is_ok());
}

#[test]
fn a_burst_across_the_end_of_a_minute_cannot_double_the_cap() {
    let ledger = BudgetLedger::new();
    let caps = Caps { tasks: Some(10), ..Caps::NONE };
    let account: Accounts = ledger.account(&BudgetScope::Global, per(60, caps)).into();
    let mut passed = Vec::new();
    for half_second in 0..400_i64 {
        let now = Timestamp::from_micros(half_second * 500_000);
        // All that a second brings, most of it just before and just after each full minute.
        for _ in 0..if half_second % 120 < 4 || half_second % 120 > 115 { 10 } else { 1 } {
            if let Ok(held) = ledger.reserve(&account, task(cents(0)).into(), now) {
                ledger.settle(held, Amount::default(), now);
                passed.push(now.micros());
            }
        }
    }
    let most = passed.iter().map(|start| passed.iter().filter(|time| (*start..*start + 60_000_000).contains(time)).count()).max();
    assert_eq!(most, Some(10));
    assert!(passed.len() >= 30, "it goes on each minute");
}

#[test]
fn two_hundred_tasks_that_report_five_dollars_under_a_cap_of_one_settle_one_dollar() {
    let ledger = BudgetLedger::new();
    let account = tree(&ledger, cents(100));
    let accounts: Accounts = account.clone().into();
    let mut dispatched = 0;
    for _ in 0..200 {
        let Ok(mut held) = ledger.reserve(&accounts, task(cents(5)).into(), at(0)) else { continue };
        held.dispatched();
        dispatched += 1;
        let ended = ledger.settle(held, task(cents(500)), at(0));
        assert_eq!((ended.settled.usd, ended.overrun.usd), (cents(5), cents(495)));
        let standing = ledger.standing(&account, at(0));
        assert!(standing.settled.usd.saturating_add(standing.reserved.usd) <= cents(100));
    }
    assert_eq!(dispatched, 1, "the overrun of the first blocks all others");
    assert_eq!(usd(&ledger, &account), (50_000, 0, 4_950_000));

    let ledger = BudgetLedger::new();
    let account = tree(&ledger, cents(100));
    let accounts: Accounts = account.clone().into();
    let at_once: Vec<_> = (0..200).filter_map(|_| ledger.reserve(&accounts, task(cents(5)).into(), at(0)).ok()).collect();
    assert_eq!(at_once.len(), 20);
    for held in at_once {
        ledger.settle(held, task(cents(500)), at(0));
        assert!(usd(&ledger, &account).0 + usd(&ledger, &account).1 <= 1_000_000);
    }
    assert_eq!(usd(&ledger, &account), (1_000_000, 0, 99_000_000));
}

#[test]
fn an_overrun_blocks_until_it_slid_out_of_the_window() {
    let ledger = BudgetLedger::new();
    let account: Accounts = ledger.account(&BudgetScope::Agent("research".into()), per(60, usd_cap(cents(100)))).into();
    let held = ledger.reserve(&account, task(cents(10)).into(), at(0)).unwrap();
    ledger.settle(held, task(cents(300)), at(0));
    let refused = ledger.reserve(&account, task(cents(0)).into(), at(60)).unwrap_err();
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(1)), "not even what costs nothing");
    assert!(refused.to_string().ends_with("spent=0.10 reserved=0.00 overrun=2.90 requested=0.00"), "{refused}");
    assert!(ledger.reserve(&account, task(cents(100)).into(), at(61)).is_ok());
}

#[test]
fn work_of_unknown_price_holds_all_that_remains_and_runs_one_at_a_time() {
    let ledger = BudgetLedger::new();
    let tree = tree(&ledger, cents(50));
    let agent = ledger.account(&BudgetScope::Agent("a".into()), per(60, usd_cap(cents(30))));
    let both: Accounts = [agent.clone(), tree.clone()].into_iter().collect();
    let held = ledger.reserve(&both, Estimate::REMAINDER, at(0)).unwrap();
    assert_eq!(held.amount(), Amount::of_task(cents(30), 0), "of the smaller cap; of tokens nobody counts, none");
    let refused = ledger.reserve(&both, Estimate::REMAINDER, at(0)).unwrap_err();
    assert_eq!(*refused.scope(), BudgetScope::Agent("a".into()));
    ledger.settle(held, task(cents(4)), at(0));
    let held = ledger.reserve(&both, Estimate::REMAINDER, at(0)).unwrap();
    assert_eq!(held.amount().usd, cents(26));
    ledger.release(held);

    let uncapped: Accounts = ledger.account(&BudgetScope::Tenant("x".into()), per(60, Caps::NONE)).into();
    let held = ledger.reserve(&uncapped, Estimate::REMAINDER, at(0)).unwrap();
    assert_eq!(held.amount(), Amount::of_task(cents(0), 0));
    let ended = ledger.settle(held, Amount::of_task(cents(7), 5), at(0));
    assert_eq!(
        ended,
        SettledReservation { settled: Amount::of_task(cents(7), 5), overrun: Amount::default() },
        "without a cap nothing is overrun"
    );

    let nowhere = ledger.reserve(&Accounts::default(), Estimate::REMAINDER, at(0)).unwrap();
    assert_eq!(nowhere.amount(), Amount::of_task(cents(0), 0));
    assert_eq!(ledger.settle(nowhere, Amount::of_task(cents(7), 5), at(0)).settled, Amount::of_task(cents(7), 5));

    let tokens = ledger.account(&BudgetScope::Tree("t2".into()), Limit::of_tree(Caps { tokens: Some(9), ..Caps::NONE }));
    let held = ledger.reserve(&tokens.into(), Estimate::REMAINDER, at(0)).unwrap();
    assert_eq!(held.amount(), Amount::of_task(cents(0), 9));
}

#[test]
fn a_running_task_gets_as_much_more_as_is_free_everywhere() {
    let ledger = BudgetLedger::new();
    let tree = tree(&ledger, cents(50));
    let agent = ledger.account(&BudgetScope::Agent("a".into()), per(60, usd_cap(cents(30))));
    let both: Accounts = [tree, agent].into_iter().collect();
    let mut held = ledger.reserve(&both, task(cents(10)).into(), at(0)).unwrap();
    assert_eq!(
        ledger.raise(&mut held, Amount { usd: cents(15), tokens: 7, tasks: 0 }, at(0)),
        Amount { usd: cents(15), tokens: 7, tasks: 0 }
    );
    assert_eq!(ledger.raise(&mut held, Amount { usd: cents(15), ..Amount::default() }, at(0)).usd, cents(5));
    assert_eq!(ledger.raise(&mut held, Amount { usd: cents(15), ..Amount::default() }, at(0)).usd, cents(0));
    assert_eq!(held.amount(), Amount::of_task(cents(30), 7));
    let ended = ledger.settle(held, Amount::of_task(cents(29), 7), at(0));
    assert_eq!(ended.overrun, Amount::default());
    assert_eq!(ledger.remaining(&both, at(0)).usd, Some(cents(1)));
}

#[test]
fn a_lost_reservation_is_released_before_dispatch_and_spent_after_it() {
    let ledger = BudgetLedger::new();
    let account = tree(&ledger, cents(50));
    let accounts: Accounts = account.clone().into();
    drop(ledger.reserve(&accounts, task(cents(10)).into(), at(0)).unwrap());
    assert_eq!(usd(&ledger, &account), (0, 0, 0));
    let mut held = ledger.reserve(&accounts, task(cents(10)).into(), at(0)).unwrap();
    held.dispatched();
    drop(held);
    assert_eq!(usd(&ledger, &account), (100_000, 0, 0));
    assert_eq!(ledger.standing(&account, at(0)).settled.tasks, 1);
    let held = ledger.reserve(&accounts, task(cents(10)).into(), at(0)).unwrap();
    let ended = ledger.expire(held, task(cents(12)), at(0));
    assert_eq!((ended.settled.usd, ended.overrun.usd), (cents(10), cents(2)));
}

#[test]
fn a_restart_continues_where_it_was() {
    let (before, after) = (BudgetLedger::new(), BudgetLedger::new());
    let limit = per(60, usd_cap(cents(100)));
    let account = before.account(&BudgetScope::Global, limit);
    let held = before.reserve(&account.clone().into(), task(cents(30)).into(), at(5)).unwrap();
    let was = before.settle(held, task(cents(40)), at(5));
    let open = before.reserve(&account.clone().into(), task(cents(20)).into(), at(6)).unwrap();

    let restored = after.account(&BudgetScope::Global, limit);
    let accounts: Accounts = restored.clone().into();
    after.restore_settled(&accounts, was, at(5), at(20));
    after.restore_settled(&accounts, was, at(-100), at(20));
    let reopened = after.restore_reservation(&accounts, open.amount());
    for now in [20, 65] {
        assert_eq!(after.standing(&restored, at(now)), before.standing(&account, at(now)));
    }
    assert_eq!(after.standing(&restored, at(66)).settled, Amount::default(), "it leaves at its own time");
    assert_eq!(before.standing(&account, at(66)).settled, Amount::default());
    after.settle(reopened, task(cents(20)), at(70));
    assert_eq!(after.standing(&restored, at(70)).settled.usd, cents(20));
}

#[test]
fn a_changed_limit_keeps_the_counters() {
    let ledger = BudgetLedger::new();
    let account = ledger.account(&BudgetScope::Global, per(60, usd_cap(cents(100))));
    let accounts: Accounts = account.clone().into();
    let held = ledger.reserve(&accounts, task(cents(80)).into(), at(10)).unwrap();
    ledger.settle(held, task(cents(80)), at(10));
    assert_eq!(ledger.account(&BudgetScope::Global, per(1, Caps::NONE)), account, "there already, and stays as it is");
    ledger.set_limit(&account, per(60, usd_cap(cents(50))), at(20));
    assert!(ledger.reserve(&accounts, task(cents(0)).into(), at(20)).is_err(), "more is spent than the new cap allows");
    ledger.set_limit(&account, per(3_600, usd_cap(cents(100))), at(20));
    assert!(ledger.reserve(&accounts, task(cents(21)).into(), at(3_600)).is_err(), "an hour counts for an hour");
    assert!(ledger.reserve(&accounts, task(cents(21)).into(), at(3_720)).is_ok());
}

#[test]
fn a_forgotten_tree_ends_its_reservations_as_it_would_have_and_begins_anew() {
    let ledger = BudgetLedger::new();
    let scope = BudgetScope::Tree("t1".into());
    let old = tree(&ledger, cents(50));
    let held = ledger.reserve(&old.clone().into(), task(cents(10)).into(), at(0)).unwrap();
    ledger.forget(&scope);
    assert_eq!(ledger.find(&scope), None);
    let new = tree(&ledger, cents(50));
    assert_ne!(old, new);
    ledger.settle(held, task(cents(10)), at(0));
    assert_eq!((usd(&ledger, &old), usd(&ledger, &new)), ((100_000, 0, 0), (0, 0, 0)));
    for round in 0..10_000 {
        let tree: Accounts = ledger.account(&BudgetScope::Tree(round.to_string().into()), Limit::of_tree(Caps::NONE)).into();
        assert_eq!(usd(&ledger, &tree[0]), (0, 0, 0), "counters that are used again begin at nothing");
        let held = ledger.reserve(&tree, task(cents(1)).into(), at(0)).unwrap();
        ledger.forget(tree[0].scope());
        ledger.settle(held, task(cents(1)), at(0));
    }
    assert_eq!(ledger.all(), [new]);
}

#[test]
fn a_scope_that_is_named_twice_is_charged_once() {
    let ledger = BudgetLedger::new();
    let account = tree(&ledger, cents(50));
    let accounts: Accounts = [account.clone(), account.clone()].into_iter().collect();
    let held = ledger.reserve(&accounts, task(cents(50)).into(), at(0)).unwrap();
    assert_eq!(usd(&ledger, &account), (0, 500_000, 0));
    ledger.release(held);
}

#[test]
fn hostile_amounts_and_times_pass_no_cap() {
    let ledger = BudgetLedger::new();
    let account = ledger.account(&BudgetScope::Global, per(60, Caps { usd: Some(cents(100)), tokens: Some(10), tasks: Some(5) }));
    let accounts: Accounts = account.clone().into();
    for micros in [i64::MIN, 0, i64::MAX, -1] {
        let now = Timestamp::from_micros(micros);
        for (usd, tokens) in [(i64::MIN, 0), (i64::MAX, u64::MAX), (-1, 3)] {
            let reserved = ledger.reserve(&accounts, Amount { usd: MicroUsd(usd), tokens, tasks: 1 }.into(), now);
            if let Ok(held) = reserved {
                assert!(held.amount().usd >= MicroUsd(0));
                ledger.settle(held, Amount { usd: MicroUsd(usd), tokens: u64::MAX, tasks: u64::MAX }, now);
            }
            let seen = ledger.standing(&account, now);
            assert!(seen.settled.usd <= cents(100) && seen.settled.tokens <= 10 && seen.settled.tasks <= 5);
        }
    }
}
