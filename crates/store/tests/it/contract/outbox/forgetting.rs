//! Tasks go, and what hangs on them.

use chancery_core::SweepPlan;
use chancery_core::push::{LaneAction, LaneFilter, LaneStep, LaneSweep, Span, StateChange};
use chancery_protocol::{TaskState, Timestamp};

use super::{ORIGIN, ack, claim, letter, new, receipt, step, told_creation};
use crate::contract::sample::{Opened, at, change, completed, creation, on_every_store, task};

on_every_store! {
    a_task_stays_until_its_webhooks_were_told_of_its_end,
    others_are_not_kept_by_one_that_stays,
    a_webhook_that_is_turned_off_keeps_no_task,
    however_many_stay_the_others_go_in_the_end,
    a_task_that_is_taken_back_takes_its_webhooks_along,
    a_drained_lane_of_a_task_that_ended_is_kept_for_a_while,
    letters_and_receipts_outlive_their_tasks,
}

const ALL: SweepPlan = SweepPlan {
    older_than: Some(Timestamp::from_micros(i64::MAX)),
    keep_at_most: None,
    keep_bytes: None,
    at_most: 100,
    spent_since: None,
    keep_decisions: None,
};

async fn a_task_stays_until_its_webhooks_were_told_of_its_end(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(told_creation(&task, false)).await.unwrap();
    store.append(change(&task, 2, TaskState::Completed, at(50))).await.unwrap();
    assert_eq!(store.sweep(ALL).await.unwrap(), 0);
    let lane = claim(&*outbox, at(10_000)).await.remove(0);
    assert_eq!(store.sweep(ALL).await.unwrap(), 0);
    outbox.settle_lanes(vec![ack(&lane, 2, at(10_001))]).await.unwrap();
    assert_eq!(store.sweep(ALL).await.unwrap(), 1);
    assert!(outbox.registrations(&task.id, 0, 10).await.unwrap().is_empty());
    assert_eq!(outbox.outbox_load().await.unwrap().lanes, 0);
}

async fn others_are_not_kept_by_one_that_stays(Opened { store, outbox, .. }: Opened) {
    let held = task("held");
    store.append(told_creation(&held, false)).await.unwrap();
    store.append(change(&held, 2, TaskState::Completed, at(1))).await.unwrap();
    for (id, when) in [("a", 2), ("b", 3), ("c", 4)] {
        completed(&*store, id, when).await;
    }
    let keep_two = SweepPlan { older_than: None, keep_at_most: Some(2), ..ALL };
    assert_eq!(store.sweep(keep_two).await.unwrap(), 2);
    assert!(store.find_any("held").await.unwrap().is_some());
    assert!(store.find_any("c").await.unwrap().is_some());
    assert_eq!(outbox.outbox_load().await.unwrap().pending, 1);
}

async fn however_many_stay_the_others_go_in_the_end(Opened { store, .. }: Opened) {
    for number in 0..30 {
        let held = task(&format!("held {number}"));
        store.append(told_creation(&held, false)).await.unwrap();
        store.append(change(&held, 2, TaskState::Completed, at(1))).await.unwrap();
    }
    completed(&*store, "free", 2).await;
    let one = SweepPlan { at_most: 1, ..ALL };
    let mut gone = 0;
    for _ in 0..10 {
        gone += store.sweep(one).await.unwrap();
    }
    assert_eq!(gone, 1);
    assert!(store.find_any("free").await.unwrap().is_none());
}

async fn a_webhook_that_is_turned_off_keeps_no_task(Opened { store, outbox, .. }: Opened) {
    for (id, off) in [("t1", StateChange::Pause), ("t2", StateChange::Disable)] {
        let task = task(id);
        store.append(told_creation(&task, false)).await.unwrap();
        store.append(change(&task, 2, TaskState::Completed, at(50))).await.unwrap();
        let ours = LaneFilter { task: Some(task.id.clone()), ..LaneFilter::default() };
        outbox.change_state(&ours, off, at(1), 0, 10).await.unwrap();
    }
    assert_eq!(store.sweep(ALL).await.unwrap(), 2);
    assert_eq!(outbox.outbox_load().await.unwrap().lanes, 0);
}

async fn a_task_that_is_taken_back_takes_its_webhooks_along(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(told_creation(&task, true)).await.unwrap();
    assert!(store.withdraw(&task.id, None).await.unwrap());
    assert_eq!(outbox.outbox_load().await.unwrap().lanes, 0);
    assert_eq!(outbox.next_due(&[]).await.unwrap(), None);
    // Its name is free again, and nothing is left that the next one would find.
    store.append(creation(&task)).await.unwrap();
    assert!(outbox.registrations(&task.id, 0, 10).await.unwrap().is_empty());
}

async fn a_drained_lane_of_a_task_that_ended_is_kept_for_a_while(Opened { store, outbox, .. }: Opened) {
    let (ended, open, late) = (task("ended"), task("open"), task("late"));
    for task in [&ended, &open] {
        store.append(told_creation(task, false)).await.unwrap();
    }
    store.append(change(&ended, 2, TaskState::Completed, at(50))).await.unwrap();
    completed(&*store, "late", 50).await;
    // Registered when there was nothing left to tell.
    outbox.register(new(&late, "w", ORIGIN)).await.unwrap();
    let sweep = |before| LaneSweep { drained_before: at(before), dead_before: at(0), receipts_before: at(0), at_most: 10 };
    assert_eq!(outbox.sweep_lanes(sweep(51)).await.unwrap().lanes, 1, "the late one");
    for lane in claim(&*outbox, at(10_000)).await {
        outbox.settle_lanes(vec![ack(&lane, lane.cursor.tail, at(10_001))]).await.unwrap();
    }
    assert_eq!(outbox.sweep_lanes(sweep(50)).await.unwrap().lanes, 0);
    assert_eq!(outbox.sweep_lanes(sweep(51)).await.unwrap().lanes, 1);
    let left = outbox.lanes(&LaneFilter::default(), 0, 10).await.unwrap().lanes;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].registration.task, open.id);
    assert!(store.find_any("ended").await.unwrap().is_some(), "the task itself goes by its own rule");
    assert_eq!(store.sweep(ALL).await.unwrap(), 2);
}

async fn letters_and_receipts_outlive_their_tasks(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(told_creation(&task, false)).await.unwrap();
    let lane = claim(&*outbox, at(10_000)).await.remove(0);
    let taken = LaneAction::Ack { span: Span::single(1), keep: None };
    let kept = LaneStep { receipt: Some(receipt(&lane, 1, 3, at(10_001))), ..step(&lane, taken, at(10_001)) };
    outbox.settle_lanes(vec![kept]).await.unwrap();
    store.append(change(&task, 2, TaskState::Completed, at(50))).await.unwrap();
    let lane = claim(&*outbox, at(20_000)).await.remove(0);
    let gone =
        LaneStep { dead: Some(letter(&lane, at(20_001))), ..step(&lane, LaneAction::Gone { to: lane.cursor.tail }, at(20_001)) };
    outbox.settle_lanes(vec![gone]).await.unwrap();
    assert_eq!(store.sweep(ALL).await.unwrap(), 1);
    assert_eq!(outbox.receipts(None, 0, 10).await.unwrap().len(), 1);
    let letters = outbox.dead_letters(&Default::default(), 0, 10).await.unwrap().letters;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].body.as_ref(), b"{}");
}
