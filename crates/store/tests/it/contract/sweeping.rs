//! Retention: what goes, what stays, and how much at a time.

use chancery_core::{Append, Store, SweepPlan};
use chancery_protocol::TaskState;

use crate::contract::sample::{
    Opened, ada, at, change, completed, creation, governed_creation, listed_ids, on_every_store, put, record, task,
};

on_every_store! {
    a_sweep_by_age_takes_finished_tasks_that_are_older,
    a_sweep_by_count_keeps_the_newest,
    age_and_count_together_take_whatever_either_takes,
    a_sweep_is_bounded_and_takes_the_oldest_first,
    only_finished_tasks_are_swept,
    message_only_logs_are_swept_too,
    a_task_that_is_swept_takes_its_log_along,
    a_sweep_without_limits_takes_nothing,
    tasks_of_a_tree_stay_while_one_of_them_goes_on_and_nobody_goes_in_their_place,
    tasks_of_trees_that_stay_do_not_keep_a_sweep_from_those_behind_them,
}

fn plan(older_than: Option<i64>, keep_at_most: Option<u64>, at_most: u64) -> SweepPlan {
    SweepPlan { older_than: older_than.map(at), keep_at_most, at_most, ..SweepPlan::default() }
}

async fn a_sweep_by_age_takes_finished_tasks_that_are_older(Opened { store, .. }: Opened) {
    for (id, time) in [("a", 1), ("b", 2), ("c", 3)] {
        completed(&*store, id, time).await;
    }
    assert_eq!(store.sweep(plan(Some(3), None, 100)).await.unwrap(), 2);
    assert_eq!(listed_ids(&*store).await, ["c"]);
    assert_eq!(store.sweep(plan(Some(3), None, 100)).await.unwrap(), 0);
}

async fn a_sweep_by_count_keeps_the_newest(Opened { store, .. }: Opened) {
    // Not in the order of time, and with a tie at the border.
    for (id, time) in [("a", 5), ("b", 1), ("c", 3), ("d", 3), ("e", 2)] {
        completed(&*store, id, time).await;
    }
    assert_eq!(store.sweep(plan(None, Some(2), 100)).await.unwrap(), 3);
    assert_eq!(listed_ids(&*store).await, ["a", "d"]);
    assert_eq!(store.sweep(plan(None, Some(2), 100)).await.unwrap(), 0);
}

async fn age_and_count_together_take_whatever_either_takes(Opened { store, .. }: Opened) {
    for (id, time) in [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)] {
        completed(&*store, id, time).await;
    }
    assert_eq!(store.sweep(plan(Some(3), Some(4), 100)).await.unwrap(), 2);
    assert_eq!(store.sweep(plan(Some(3), Some(1), 100)).await.unwrap(), 2);
    assert_eq!(listed_ids(&*store).await, ["e"]);
}

async fn a_sweep_is_bounded_and_takes_the_oldest_first(Opened { store, .. }: Opened) {
    for number in 0..10 {
        completed(&*store, &format!("t{number}"), number).await;
    }
    assert_eq!(store.sweep(plan(Some(8), None, 3)).await.unwrap(), 3);
    assert_eq!(listed_ids(&*store).await.last().unwrap(), "t3");
    assert_eq!(store.sweep(plan(None, Some(1), 4)).await.unwrap(), 4);
    assert_eq!(listed_ids(&*store).await, ["t9", "t8", "t7"]);
    assert_eq!(store.sweep(plan(Some(100), Some(0), 0)).await.unwrap(), 0);
}

async fn only_finished_tasks_are_swept(Opened { store, .. }: Opened) {
    for state in TaskState::ALL {
        put(&*store, record(state.name(), ada()), state, at(1)).await;
    }
    let finished = TaskState::ALL.iter().filter(|state| state.is_terminal()).count() as u64;
    assert_eq!(store.sweep(plan(Some(100), Some(0), 100)).await.unwrap(), finished);
    let left = listed_ids(&*store).await;
    assert_eq!(left.len(), TaskState::ALL.len() - finished as usize);

    // A task that comes to its end later goes later, by the time of its end.
    let late = task(TaskState::Working.name());
    store.append(change(&late, 3, TaskState::Completed, at(50))).await.unwrap();
    assert_eq!(store.sweep(plan(Some(50), None, 100)).await.unwrap(), 0);
    assert_eq!(store.sweep(plan(Some(51), None, 100)).await.unwrap(), 1);
}

async fn message_only_logs_are_swept_too(Opened { store, .. }: Opened) {
    let made = creation(&task("t1"));
    let mut progress = made.progress;
    progress.message_only = true;
    store.append(Append { progress, ..made }).await.unwrap();
    assert_eq!(store.sweep(plan(None, Some(0), 100)).await.unwrap(), 1);
    assert_eq!(store.find_any("t1").await.unwrap(), None);
}

async fn a_task_that_is_swept_takes_its_log_along(Opened { store, .. }: Opened) {
    completed(&*store, "t1", 1).await;
    completed(&*store, "t2", 2).await;
    assert_eq!(store.sweep(plan(Some(2), None, 100)).await.unwrap(), 1);
    assert!(store.entries(&"t1".into(), 0, 100).await.unwrap().is_empty());
    assert_eq!(store.entries(&"t2".into(), 0, 100).await.unwrap().len(), 2);
    assert!(store.append(change(&task("t1"), 3, TaskState::Working, at(9))).await.is_err());

    // A new task of that name starts with an empty log.
    store.append(creation(&task("t1"))).await.unwrap();
    assert_eq!(store.entries(&"t1".into(), 0, 100).await.unwrap().len(), 1);
}

async fn a_sweep_without_limits_takes_nothing(Opened { store, .. }: Opened) {
    completed(&*store, "t1", 1).await;
    assert_eq!(store.sweep(plan(None, None, 100)).await.unwrap(), 0);
    assert_eq!(listed_ids(&*store).await, ["t1"]);
}

/// A task of a tree that ended at this time.
async fn ended_in_tree(store: &dyn Store, id: &str, root: &str, time: i64) {
    store.append(governed_creation(&task(id), root, 1)).await.unwrap();
    store.append(change(&task(id), 2, TaskState::Completed, at(time))).await.unwrap();
}

async fn tasks_of_a_tree_stay_while_one_of_them_goes_on_and_nobody_goes_in_their_place(Opened { store, .. }: Opened) {
    store.append(governed_creation(&task("root"), "root", 1)).await.unwrap();
    ended_in_tree(&*store, "child 1", "root", 1).await;
    ended_in_tree(&*store, "child 2", "root", 2).await;
    // The root has ended, and one below it has not.
    ended_in_tree(&*store, "other root", "other root", 3).await;
    store.append(governed_creation(&task("its child"), "other root", 1)).await.unwrap();
    ended_in_tree(&*store, "x", "x", 4).await;
    ended_in_tree(&*store, "y", "y", 5).await;
    assert_eq!(store.sweep(plan(None, Some(1), 100)).await.unwrap(), 1, "the fourth of five that are finished");
    assert_eq!(store.sweep(plan(None, Some(1), 100)).await.unwrap(), 0);
    assert_eq!(store.sweep(plan(Some(100), None, 100)).await.unwrap(), 1, "however old they are");
    assert_eq!(store.ledger(at(i64::MAX)).await.unwrap().tasks.len(), 5, "both trees are whole");
    store.append(change(&task("root"), 2, TaskState::Failed, at(6))).await.unwrap();
    assert_eq!(store.sweep(plan(Some(100), None, 100)).await.unwrap(), 3);
    store.append(change(&task("its child"), 2, TaskState::Failed, at(7))).await.unwrap();
    assert_eq!(store.sweep(plan(None, Some(0), 100)).await.unwrap(), 2);
    assert_eq!(listed_ids(&*store).await, [""; 0]);
}

async fn tasks_of_trees_that_stay_do_not_keep_a_sweep_from_those_behind_them(Opened { store, .. }: Opened) {
    store.append(governed_creation(&task("root"), "root", 1)).await.unwrap();
    for number in 0..40 {
        ended_in_tree(&*store, &format!("child {number}"), "root", number).await;
    }
    for number in 0..10 {
        completed(&*store, &format!("x {number}"), 100 + number).await;
    }
    let mut gone = 0;
    // A few to get past them, and then one each time.
    for _ in 0..16 {
        gone += store.sweep(plan(None, Some(1), 1)).await.unwrap();
    }
    assert_eq!(gone, 9, "all but one that could go");
    assert_eq!(listed_ids(&*store).await.len(), 42);
    assert!(store.find_any("x 9").await.unwrap().is_some(), "the newest stays");
}

const MIB: u64 = 1024 * 1024;

/// Makes a task whose log has this much content.
async fn ended_with_bytes(store: &dyn Store, id: &str, time: i64, bytes: u64) {
    store.append(creation(&task(id))).await.unwrap();
    let end = change(&task(id), 2, TaskState::Completed, at(time));
    let progress = chancery_core::Progress { bytes, ..end.progress };
    store.append(Append { progress, ..end }).await.unwrap();
}

fn keep_bytes(bytes: u64) -> SweepPlan {
    SweepPlan { keep_bytes: Some(bytes), at_most: 100, ..SweepPlan::default() }
}

#[tokio::test]
async fn a_store_in_memory_keeps_the_newest_ended_tasks_up_to_its_bytes() {
    let store = chancery_store::MemoryStore::new();
    for (id, time) in [("a", 3), ("b", 1), ("c", 2)] {
        ended_with_bytes(&store, id, time, 10 * MIB).await;
    }
    // A task that has not ended counts for nothing and stays.
    let open = change(&task("open"), 2, TaskState::Working, at(0));
    store.append(creation(&task("open"))).await.unwrap();
    store.append(Append { progress: chancery_core::Progress { bytes: 100 * MIB, ..open.progress }, ..open }).await.unwrap();

    // The structures around the three logs take some KiB more than their content.
    assert_eq!(store.sweep(keep_bytes(30 * MIB + 64 * 1024)).await.unwrap(), 0);
    assert_eq!(store.sweep(keep_bytes(30 * MIB)).await.unwrap(), 1, "one is enough");
    assert_eq!(listed_ids(&store).await, ["a", "c", "open"], "the oldest went");
    assert_eq!(store.sweep(keep_bytes(30 * MIB)).await.unwrap(), 0, "its bytes are free");
    assert_eq!(store.sweep(SweepPlan { at_most: 1, ..keep_bytes(0) }).await.unwrap(), 1, "a sweep stays bounded");
    assert_eq!(store.sweep(keep_bytes(0)).await.unwrap(), 1);
    assert_eq!(store.sweep(keep_bytes(0)).await.unwrap(), 0);
    assert_eq!(listed_ids(&store).await, ["open"]);

    // The end of the open task brings its bytes with it, and a task that is taken back takes them along.
    let end = change(&task("open"), 3, TaskState::Failed, at(4));
    store.append(Append { progress: chancery_core::Progress { bytes: 100 * MIB, ..end.progress }, ..end }).await.unwrap();
    assert_eq!(store.sweep(keep_bytes(100 * MIB + 64 * 1024)).await.unwrap(), 0);
    assert_eq!(store.sweep(keep_bytes(100 * MIB)).await.unwrap(), 1);
}

#[tokio::test]
async fn a_store_in_memory_counts_a_tree_that_goes_on_and_deletes_no_other_task_for_it() {
    let store = chancery_store::MemoryStore::new();
    store.append(governed_creation(&task("root"), "root", 1)).await.unwrap();
    ended_in_tree(&store, "child", "root", 1).await;
    ended_with_bytes(&store, "x", 2, 10 * MIB).await;
    assert_eq!(store.sweep(keep_bytes(10 * MIB + 4096)).await.unwrap(), 0, "only the child is over");
    assert_eq!(store.sweep(keep_bytes(10 * MIB - 4096)).await.unwrap(), 1);
    assert!(store.find_any("child").await.unwrap().is_some());
}
