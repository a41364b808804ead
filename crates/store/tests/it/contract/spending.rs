//! What a start has to know of what was spent: by tasks that go on, that ended, and that are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_core::budget::{Amount, SettledReservation};
use chancery_core::{Append, MicroUsd, PastSpend, Spend, Store, SweepPlan, TaskRecord};
use chancery_protocol::TaskState;

use crate::contract::sample::{Opened, ada, at, bob, change, governed, governed_creation, on_every_store, record, spend, task};

on_every_store! {
    a_start_reads_open_tasks_their_trees_and_what_ended_since,
    what_swept_tasks_cost_is_kept_while_it_counts,
    what_was_spent_in_the_same_second_by_the_same_is_added_up,
    without_a_time_nothing_of_swept_tasks_counts_any_more,
    what_counts_no_longer_is_forgotten_a_little_at_a_time,
    tasks_that_settled_nothing_leave_nothing,
    turns_of_a_task_count_at_their_own_times,
    turns_that_were_never_kept_apart_count_with_the_last,
    what_was_spent_since_a_moment_is_told_once_whatever_became_of_its_tasks,
}

async fn counted(store: &dyn Store, since: i64) -> Vec<String> {
    store.ledger(at(since)).await.unwrap().tasks.iter().map(|row| row.task.to_string()).collect()
}

async fn a_start_reads_open_tasks_their_trees_and_what_ended_since(Opened { store, .. }: Opened) {
    let tasks = [
        ("open root", "open root", TaskState::Working),
        ("its ended child", "open root", TaskState::Failed),
        ("ended root", "ended root", TaskState::Completed),
        ("its waiting child", "ended root", TaskState::InputRequired),
        ("its ended grandchild", "ended root", TaskState::Canceled),
        ("all ended", "all ended", TaskState::Completed),
        ("ended with it", "all ended", TaskState::Rejected),
    ];
    for (place, (id, root, state)) in tasks.into_iter().enumerate() {
        // All of them with one trace: a tree is more than that.
        store.append(governed_creation(&task(id), root, 1)).await.unwrap();
        let end = change(&task(id), 2, state, at(place as i64));
        store.append(Append { spend: Some(spend(place as i64, Some(0))), ..end }).await.unwrap();
    }
    let message_only = governed_creation(&task("only a message"), "only a message", 1);
    let mut progress = message_only.progress;
    (progress.message_only, progress.status_at) = (true, at(6));
    store.append(Append { progress, ..message_only }).await.unwrap();

    let of_open = ["open root", "its ended child", "ended root", "its waiting child", "its ended grandchild"];
    assert_eq!(counted(&*store, 7).await, of_open);
    assert_eq!(counted(&*store, 6).await, [&of_open[..], &["ended with it", "only a message"]].concat());
    assert_eq!(counted(&*store, 5).await, [&of_open[..], &["all ended", "ended with it", "only a message"]].concat());
    let rows = store.ledger(at(i64::MAX)).await.unwrap().tasks;
    assert_eq!(rows[3].governed.spend, spend(3, Some(0)));
    assert_eq!((rows[3].state, &*rows[3].agent, &rows[3].owner), (TaskState::InputRequired, "echo", &ada()));
}

/// A task that ended and was settled at these moments.
async fn ended(store: &dyn Store, record: TaskRecord, skill: Option<&str>, cost: i64, (ended, settled): (i64, i64)) {
    let task = Arc::new(record);
    let mut all = governed(&task, task.id.as_str(), 1);
    Arc::make_mut(&mut all.kinship).skill = skill.map(Into::into);
    let made = governed_creation(&task, task.id.as_str(), 1);
    store.append(Append { governed: Some(Box::new(all)), ..made }).await.unwrap();
    let overrun = Amount { usd: MicroUsd(cost * 10), tokens: u64::MAX, tasks: 0 };
    let spend = Spend { overrun, ..spend(cost, Some(settled)) };
    store.append(Append { spend: Some(spend), ..change(&task, 2, TaskState::Completed, at(ended)) }).await.unwrap();
}

fn sweep(spent_since: Option<i64>, at_most: u64) -> SweepPlan {
    SweepPlan { keep_at_most: Some(0), at_most, spent_since: spent_since.map(at), ..SweepPlan::default() }
}

fn past(owner: chancery_protocol::Caller, skill: Option<&str>, (cost, tasks): (i64, u64), spent_at: i64) -> PastSpend {
    PastSpend {
        owner,
        agent: "echo".into(),
        skill: skill.map(Into::into),
        root: None,
        settled: Amount { usd: MicroUsd(cost), tokens: cost as u64, tasks },
        overrun: Amount { usd: MicroUsd(cost * 10), tokens: u64::MAX, tasks: 0 },
        at: at(spent_at),
    }
}

fn of_tree(root: &str, past: PastSpend) -> PastSpend {
    PastSpend { root: Some(root.into()), ..past }
}

const SECOND: i64 = 1_000_000;

async fn what_swept_tasks_cost_is_kept_while_it_counts(Opened { store, .. }: Opened) {
    ended(&*store, record("t1", ada()), Some("s"), 1, (1, SECOND)).await;
    // Ended first, settled last.
    ended(&*store, record("t2", bob()), None, 2, (0, 9 * SECOND)).await;
    ended(&*store, record("t3", ada()), Some("s"), 3, (2, 5 * SECOND)).await;
    assert_eq!(store.ledger(at(0)).await.unwrap().past, []);
    assert_eq!(store.sweep(sweep(Some(5 * SECOND), 100)).await.unwrap(), 3);
    let (third, second) = (past(ada(), Some("s"), (3, 1), 5 * SECOND), past(bob(), None, (2, 1), 9 * SECOND));
    let (third, second) = (of_tree("t3", third), of_tree("t2", second));
    let ledger = store.ledger(at(0)).await.unwrap();
    assert_eq!((ledger.tasks.len(), ledger.past), (0, vec![third, second.clone()]));
    assert_eq!(store.ledger(at(5 * SECOND + 1)).await.unwrap().past, std::slice::from_ref(&second));

    store.sweep(sweep(Some(9 * SECOND), 100)).await.unwrap();
    assert_eq!(store.ledger(at(0)).await.unwrap().past, [second]);
    store.sweep(sweep(Some(9 * SECOND + 1), 100)).await.unwrap();
    assert_eq!(store.ledger(at(0)).await.unwrap().past, []);
}

async fn what_was_spent_in_the_same_second_by_the_same_is_added_up(Opened { store, .. }: Opened) {
    let tasks = [
        ("t1", ada(), Some("s"), 1, SECOND),
        ("t2", ada(), Some("s"), 2, 2 * SECOND - 1),
        ("t3", ada(), Some("s"), 4, 2 * SECOND),
        ("t4", bob(), Some("s"), 8, SECOND + 1),
        ("t5", ada(), None, 16, SECOND + 2),
        ("t6", ada(), Some("s"), 32, SECOND + 5),
    ];
    for (place, (id, owner, skill, cost, settled)) in tasks.into_iter().enumerate() {
        ended(&*store, record(id, owner), skill, cost, (place as i64, settled)).await;
    }
    assert_eq!(store.sweep(sweep(Some(0), 100)).await.unwrap(), 6);
    let expected = [
        of_tree("t4", past(bob(), Some("s"), (8, 1), SECOND + 1)),
        of_tree("t5", past(ada(), None, (16, 1), SECOND + 2)),
        // They are of several trees.
        past(ada(), Some("s"), (1 + 2 + 32, 3), 2 * SECOND - 1),
        of_tree("t3", past(ada(), Some("s"), (4, 1), 2 * SECOND)),
    ];
    assert_eq!(store.ledger(at(0)).await.unwrap().past, expected);
}

async fn without_a_time_nothing_of_swept_tasks_counts_any_more(Opened { store, .. }: Opened) {
    ended(&*store, record("t1", ada()), None, 1, (1, 1)).await;
    store.sweep(sweep(Some(0), 100)).await.unwrap();
    assert_eq!(store.ledger(at(0)).await.unwrap().past.len(), 1);
    ended(&*store, record("t2", ada()), None, 1, (1, 1)).await;
    store.sweep(sweep(None, 100)).await.unwrap();
    assert_eq!(store.ledger(at(0)).await.unwrap().past, []);
}

async fn what_counts_no_longer_is_forgotten_a_little_at_a_time(Opened { store, .. }: Opened) {
    for number in 0..5 {
        ended(&*store, record(&format!("t{number}"), ada()), None, number, (number, number * SECOND)).await;
    }
    store.sweep(sweep(Some(0), 100)).await.unwrap();
    for (at_most, left) in [(0, 5), (2, 3), (2, 1), (2, 1)] {
        store.sweep(sweep(Some(4 * SECOND), at_most)).await.unwrap();
        let past = store.ledger(at(0)).await.unwrap().past;
        assert_eq!((past.len(), past.last().unwrap().at), (left, at(4 * SECOND)), "the oldest go first");
    }
}

async fn tasks_that_settled_nothing_leave_nothing(Opened { store, .. }: Opened) {
    let (governed, from_before) = (task("t1"), task("t2"));
    store.append(governed_creation(&governed, "t1", 1)).await.unwrap();
    store.append(crate::contract::sample::creation(&from_before)).await.unwrap();
    for task in [governed, from_before] {
        store.append(change(&task, 2, TaskState::Failed, at(3))).await.unwrap();
    }
    assert_eq!(store.sweep(sweep(Some(0), 100)).await.unwrap(), 2);
    assert_eq!(store.ledger(at(0)).await.unwrap(), chancery_core::LedgerSnapshot::default());
}

/// What a task has cost after a turn, of which so much was before that turn.
fn after_turn(all: i64, tasks: u64, (before, tasks_before): (i64, u64), settled: i64) -> Spend {
    let amount = |usd: i64, tasks| Amount { usd: MicroUsd(usd), tokens: usd as u64, tasks };
    let over = |usd: i64| Amount { usd: MicroUsd(usd * 10), tokens: 0, tasks: 0 };
    let earlier = SettledReservation { settled: amount(before, tasks_before), overrun: over(before) };
    Spend { settled: amount(all, tasks), overrun: over(all), settled_at: Some(at(settled)), earlier, ..Spend::default() }
}

fn turn(cost: i64, tasks: u64, spent_at: i64) -> PastSpend {
    let overrun = Amount { usd: MicroUsd(cost * 10), tokens: 0, tasks: 0 };
    of_tree("t", PastSpend { overrun, ..past(ada(), Some("summarize"), (cost, tasks), spent_at) })
}

async fn turns_of_a_task_count_at_their_own_times(Opened { store, .. }: Opened) {
    let task = task("t");
    store.append(governed_creation(&task, "t", 1)).await.unwrap();
    let first = after_turn(1, 1, (0, 0), SECOND);
    store.append(Append { spend: Some(first), ..change(&task, 2, TaskState::InputRequired, at(1)) }).await.unwrap();
    assert_eq!(store.ledger(at(0)).await.unwrap().past, [], "the last turn is the task's");
    // More is held for the next one, and nothing is settled.
    store.append(Append { spend: Some(first), ..change(&task, 3, TaskState::Working, at(2)) }).await.unwrap();
    let second = after_turn(3, 2, (1, 1), 5 * SECOND);
    store.append(Append { spend: Some(second), ..change(&task, 4, TaskState::InputRequired, at(3)) }).await.unwrap();
    store.settle(&task.id, second).await.unwrap();
    let ledger = store.ledger(at(0)).await.unwrap();
    assert_eq!(ledger.past, [turn(1, 1, SECOND)]);
    assert_eq!(ledger.tasks[0].governed.spend, second);
    let third = after_turn(7, 3, (3, 2), 9 * SECOND);
    store.settle(&task.id, third).await.unwrap();
    let ledger = store.ledger(at(0)).await.unwrap();
    assert_eq!(ledger.past, [turn(1, 1, SECOND), turn(2, 1, 5 * SECOND)]);
    assert_eq!(ledger.tasks[0].governed.spend, third);
    store.append(change(&task, 5, TaskState::Completed, at(4))).await.unwrap();
    assert_eq!(store.sweep(sweep(Some(5 * SECOND), 100)).await.unwrap(), 1);
    let left = store.ledger(at(0)).await.unwrap();
    assert_eq!((left.tasks.len(), left.past), (0, vec![turn(2, 1, 5 * SECOND), turn(4, 1, 9 * SECOND)]));
}

/// Two turns went into one write: the first of them is taken for as late as the second, which is on the safe side.
async fn turns_that_were_never_kept_apart_count_with_the_last(Opened { store, .. }: Opened) {
    let task = task("t");
    store.append(governed_creation(&task, "t", 1)).await.unwrap();
    store.settle(&task.id, after_turn(3, 2, (1, 1), 5 * SECOND)).await.unwrap();
    let ledger = store.ledger(at(0)).await.unwrap();
    assert_eq!((ledger.past, ledger.tasks[0].governed.spend.last_turn().settled.usd), (vec![], MicroUsd(3)));
    store.settle(&task.id, after_turn(8, 4, (6, 3), 9 * SECOND)).await.unwrap();
    let ledger = store.ledger(at(0)).await.unwrap();
    assert_eq!(ledger.past, [turn(3, 2, 5 * SECOND)]);
    assert_eq!(ledger.tasks[0].governed.spend.last_turn().settled.usd, MicroUsd(5));
}

/// What was spent since then in dollars' millionths, by tree and by skill.
async fn spent(store: &dyn Store, since: i64) -> (BTreeMap<String, i64>, BTreeMap<String, i64>) {
    let (mut trees, mut skills) = (BTreeMap::new(), BTreeMap::new());
    for past in store.spent(at(since), true).await.unwrap() {
        *trees.entry(past.root.map_or_else(String::new, |root| root.to_string())).or_default() += past.settled.usd.0;
    }
    for past in store.spent(at(since), false).await.unwrap() {
        *skills.entry(past.skill.map_or_else(String::new, |skill| skill.to_string())).or_default() += past.settled.usd.0;
    }
    (trees, skills)
}

async fn what_was_spent_since_a_moment_is_told_once_whatever_became_of_its_tasks(Opened { store, .. }: Opened) {
    // Two that go, one that stays, one with two turns that waits for its caller, and one that runs.
    ended(&*store, record("gone", ada()), Some("s"), 1, (1, SECOND)).await;
    ended(&*store, record("gone too", ada()), Some("s"), 2, (2, SECOND + 1)).await;
    assert_eq!(store.sweep(sweep(Some(0), 100)).await.unwrap(), 2);
    ended(&*store, record("ended", bob()), None, 4, (3, 2 * SECOND)).await;
    let task = task("t");
    store.append(governed_creation(&task, "t", 1)).await.unwrap();
    let first = after_turn(8, 1, (0, 0), 3 * SECOND);
    store.append(Append { spend: Some(first), ..change(&task, 2, TaskState::InputRequired, at(4)) }).await.unwrap();
    let second = after_turn(8 + 16, 2, (8, 1), 4 * SECOND);
    store.append(Append { spend: Some(second), ..change(&task, 3, TaskState::InputRequired, at(5)) }).await.unwrap();
    store.append(governed_creation(&crate::contract::sample::task("runs"), "runs", 1)).await.unwrap();

    let map = |lines: &[(&str, i64)]| lines.iter().map(|(name, usd)| ((*name).to_owned(), *usd)).collect::<BTreeMap<_, _>>();
    let all = (map(&[("", 3), ("ended", 4), ("t", 24)]), map(&[("", 4), ("s", 3), ("summarize", 24)]));
    assert_eq!(spent(&*store, 0).await, all);
    assert_eq!(spent(&*store, SECOND).await, all, "those that went in the same second count at the later of their moments");
    let later = (map(&[("ended", 4), ("t", 24)]), map(&[("", 4), ("summarize", 24)]));
    assert_eq!(spent(&*store, SECOND + 2).await, later);
    assert_eq!(spent(&*store, 4 * SECOND).await, (map(&[("t", 16)]), map(&[("summarize", 16)])), "the first turn was before");
    assert_eq!(spent(&*store, 4 * SECOND + 1).await, (map(&[]), map(&[])));
}
