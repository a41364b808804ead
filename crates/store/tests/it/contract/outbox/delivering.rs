//! Lanes move: due, claimed, settled, fenced, parked.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::push::{DisableReason, LaneAction, LaneFilter, LaneSettlement, LaneState, Span, StateChange, WebhookOrigin};
use chancery_core::{Append, Appended, Progress};
use chancery_protocol::{TaskState, Timestamp};

use super::{LEASE, ORIGIN, ack, claim, new, step, told_creation};
use crate::contract::sample::{Opened, at, creation, on_every_store, pieces, task};

on_every_store! {
    a_lane_is_told_of_its_task_from_the_first_entry_on,
    one_registered_later_is_told_of_what_comes_later,
    whoever_delivers_is_woken_only_for_a_lane_that_had_nothing_to_deliver,
    one_more_lane_of_an_origin_that_is_due_wakes_nobody,
    nothing_is_told_before_it_is_known_whether_there_is_a_task,
    of_a_message_instead_of_a_task_nobody_is_told,
    a_claimed_lane_is_nobody_elses_until_its_lease_is_over,
    whoever_comes_after_the_lease_changes_nothing,
    a_retry_waits_and_new_entries_do_not_hurry_it,
    the_origin_that_waited_longest_goes_first_and_each_gets_its_share,
    an_origin_that_is_excepted_or_parked_is_left_alone,
    many_lanes_are_settled_at_once_and_one_that_is_fenced_keeps_none_back,
    what_an_operator_pauses_waits_and_goes_on_where_it_was,
    what_is_enabled_again_begins_with_the_whole_task,
}

async fn a_lane_is_told_of_its_task_from_the_first_entry_on(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    assert_eq!(store.append(told_creation(&task, false)).await.unwrap(), Appended::RecordedToTell);
    assert_eq!(store.append(pieces(&task, 2, 3)).await.unwrap(), Appended::RecordedBehind);
    assert_eq!(outbox.next_due(&[]).await.unwrap(), Some(at(5_000)));
    assert!(claim(&*outbox, at(4_999)).await.is_empty());
    let lane = claim(&*outbox, at(2_000_000)).await.remove(0);
    assert_eq!((lane.cursor.head, lane.cursor.tail, lane.cursor.epoch), (1, 3, 1));
    assert_eq!(lane.registration.task, task.id);
    let settled = outbox.settle_lanes(vec![step(
        &lane,
        LaneAction::Ack { span: Span::single(1), keep: Some(at(99_000_000)) },
        at(2_000_001),
    )]);
    let LaneSettlement::Done { cursor, change } = settled.await.unwrap()[0] else { panic!() };
    assert!(change.goes_on);
    assert_eq!(cursor.head, 2);
}

async fn one_registered_later_is_told_of_what_comes_later(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    assert_eq!(store.append(pieces(&task, 2, 2)).await.unwrap(), Appended::Recorded);
    outbox.register(new(&task, "w", ORIGIN)).await.unwrap();
    assert_eq!(outbox.next_due(&[]).await.unwrap(), None);
    assert_eq!(store.append(pieces(&task, 3, 4)).await.unwrap(), Appended::RecordedToTell);
    let lane = claim(&*outbox, at(2_000_000)).await.remove(0);
    assert_eq!((lane.cursor.head, lane.cursor.tail, lane.cursor.next_at), (3, 4, at(1_000_004)));
}

async fn whoever_delivers_is_woken_only_for_a_lane_that_had_nothing_to_deliver(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(told_creation(&task, false)).await.unwrap();
    let first = claim(&*outbox, at(2_000_000)).await.remove(0);
    assert_eq!(store.append(pieces(&task, 2, 2)).await.unwrap(), Appended::RecordedBehind, "it is being delivered");
    let LaneSettlement::Done { cursor, .. } = outbox.settle_lanes(vec![ack(&first, 1, at(2_000_001))]).await.unwrap()[0] else {
        panic!()
    };
    assert_eq!((cursor.head, cursor.tail), (2, 2), "the one who delivers learns that there is more");
    let second = claim(&*outbox, at(2_000_002)).await.remove(0);
    outbox.settle_lanes(vec![ack(&second, 2, at(2_000_003))]).await.unwrap();
    assert_eq!(store.append(pieces(&task, 3, 3)).await.unwrap(), Appended::RecordedToTell);

    let third = claim(&*outbox, at(3_000_000)).await.remove(0);
    outbox.settle_lanes(vec![ack(&third, 3, at(3_000_001))]).await.unwrap();
    outbox.change_state(&LaneFilter::default(), StateChange::Pause, at(3_000_002), 0, 10).await.unwrap();
    assert_eq!(store.append(pieces(&task, 4, 4)).await.unwrap(), Appended::Recorded, "it is off");
    outbox.register(new(&task, "other", ORIGIN)).await.unwrap();
    assert_eq!(store.append(pieces(&task, 5, 5)).await.unwrap(), Appended::RecordedToTell, "one of two had nothing");
    assert_eq!(store.append(pieces(&task, 6, 6)).await.unwrap(), Appended::RecordedBehind, "one is off, the other behind");
    let lanes = outbox.lanes(&LaneFilter::default(), 0, 10).await.unwrap().lanes;
    assert_eq!(lanes.iter().map(|lane| (lane.cursor.head, lane.cursor.tail)).collect::<Vec<_>>(), [(4, 6), (5, 6)]);
}

async fn one_more_lane_of_an_origin_that_is_due_wakes_nobody(Opened { store, outbox, .. }: Opened) {
    let (first, second, third) = (task("t1"), task("t2"), task("t3"));
    assert_eq!(store.append(told_creation(&first, false)).await.unwrap(), Appended::RecordedToTell);
    assert_eq!(store.append(told_creation(&second, false)).await.unwrap(), Appended::RecordedBehind);
    assert_eq!(claim(&*outbox, at(2_000_000)).await.len(), 2, "it is found all the same");
    assert_eq!(store.append(told_creation(&third, false)).await.unwrap(), Appended::RecordedToTell, "the others are claimed");
    let origin = WebhookOrigin { tenant: Arc::clone(&first.owner.tenant), origin: ORIGIN.into() };
    claim(&*outbox, at(2_000_001)).await;
    outbox.park(&origin, at(9_000_000)).await.unwrap();
    assert_eq!(
        store.append(told_creation(&task("t4"), false)).await.unwrap(),
        Appended::RecordedToTell,
        "sooner than the leases"
    );
    assert_eq!(outbox.next_due(&[]).await.unwrap(), Some(at(9_000_000)));
    assert_eq!(store.append(told_creation(&task("t5"), false)).await.unwrap(), Appended::RecordedBehind);
}

async fn nothing_is_told_before_it_is_known_whether_there_is_a_task(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    assert_eq!(store.append(told_creation(&task, true)).await.unwrap(), Appended::Recorded);
    assert_eq!(outbox.next_due(&[]).await.unwrap(), None);
    assert_eq!(store.append(pieces(&task, 2, 2)).await.unwrap(), Appended::RecordedToTell);
    let lane = claim(&*outbox, at(2_000_000)).await.remove(0);
    assert_eq!((lane.cursor.head, lane.cursor.tail), (1, 2), "the beginning is told too");
}

async fn of_a_message_instead_of_a_task_nobody_is_told(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(told_creation(&task, true)).await.unwrap();
    let reply = pieces(&task, 2, 2);
    let progress = Progress { state: TaskState::Completed, message_only: true, ..reply.progress };
    assert_eq!(store.append(Append { progress, ..reply }).await.unwrap(), Appended::Recorded);
    assert!(outbox.registrations(&task.id, 0, 10).await.unwrap().is_empty());
    let load = outbox.outbox_load().await.unwrap();
    assert_eq!((load.lanes, load.pending), (0, 0));
}

async fn a_claimed_lane_is_nobody_elses_until_its_lease_is_over(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(told_creation(&task, false)).await.unwrap();
    let now = at(10_000);
    let lane = claim(&*outbox, now).await.remove(0);
    let over = now + LEASE;
    assert_eq!(lane.cursor.lease_until, over);
    assert_eq!(outbox.next_due(&[]).await.unwrap(), Some(over));
    store.append(pieces(&task, 2, 2)).await.unwrap();
    assert!(claim(&*outbox, Timestamp::from_micros(over.micros() - 1)).await.is_empty());
    let next = claim(&*outbox, over).await.remove(0);
    assert_eq!((next.cursor.epoch, next.cursor.head, next.cursor.tail), (2, 1, 2));
    assert_eq!(next.cursor.span, Some(Span::single(1)), "it may have been sent before, so it stays what it was");
}

async fn whoever_comes_after_the_lease_changes_nothing(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(told_creation(&task, false)).await.unwrap();
    let zombie = claim(&*outbox, at(10_000)).await.remove(0);
    let holder = claim(&*outbox, at(10_000) + LEASE).await.remove(0);
    let late = at(10_001) + LEASE;
    assert_eq!(outbox.settle_lanes(vec![ack(&zombie, 1, late)]).await.unwrap(), [LaneSettlement::Fenced]);
    let lanes = outbox.lanes(&LaneFilter::default(), 0, 10).await.unwrap().lanes;
    assert_eq!(lanes[0].cursor, holder.cursor);
    assert!(matches!(outbox.settle_lanes(vec![ack(&holder, 1, late)]).await.unwrap()[0], LaneSettlement::Done { .. }));
    // A second time it is no longer the holder's.
    assert_eq!(outbox.settle_lanes(vec![ack(&holder, 1, late)]).await.unwrap(), [LaneSettlement::Fenced]);
    assert_eq!(outbox.next_due(&[]).await.unwrap(), None);
}

async fn a_retry_waits_and_new_entries_do_not_hurry_it(Opened { store, outbox, .. }: Opened) {
    let task = task("t1");
    store.append(told_creation(&task, false)).await.unwrap();
    let lane = claim(&*outbox, at(10_000)).await.remove(0);
    let retry = LaneAction::Retry { span: Span::single(1), next_at: at(5_000_000) };
    outbox.settle_lanes(vec![step(&lane, retry, at(10_010))]).await.unwrap();
    store.append(pieces(&task, 2, 3)).await.unwrap();
    assert_eq!(outbox.next_due(&[]).await.unwrap(), Some(at(5_000_000)));
    assert!(claim(&*outbox, at(4_999_999)).await.is_empty());
    let lane = claim(&*outbox, at(5_000_000)).await.remove(0);
    assert_eq!((lane.cursor.attempt, lane.cursor.head, lane.cursor.tail), (1, 1, 3));
    assert_eq!((lane.cursor.first_fail_at, lane.cursor.span), (Some(at(10_010)), Some(Span::single(1))));
}

/// Tasks with a webhook each, due at these moments.
async fn due(store: &dyn chancery_core::Store, outbox: &dyn chancery_core::push::Outbox, lanes: &[(&str, &str, i64)]) {
    for (id, origin, at_micros) in lanes {
        let task = task(id);
        let mut register = new(&task, "w", origin);
        register.registration.created_at = at(*at_micros);
        store.append(Append { register: Some(Box::new(register)), ..creation(&task) }).await.unwrap();
    }
    assert_eq!(outbox.outbox_load().await.unwrap().pending, lanes.len() as u64);
}

fn tasks(lanes: &[chancery_core::push::Lane]) -> Vec<&str> {
    lanes.iter().map(|lane| lane.registration.task.as_str()).collect()
}

fn origin(origin: &str) -> WebhookOrigin {
    WebhookOrigin { tenant: "acme".into(), origin: origin.into() }
}

async fn the_origin_that_waited_longest_goes_first_and_each_gets_its_share(Opened { store, outbox, .. }: Opened) {
    let (a, b) = ("https://a:443", "https://b:443");
    due(&*store, &*outbox, &[("a1", a, 10), ("a3", a, 30), ("b1", b, 15), ("a2", a, 20), ("a4", a, 40), ("b2", b, 9_999)]).await;
    let first = outbox.claim(at(100), LEASE, 10, 2, &[]).await.unwrap();
    assert_eq!(tasks(&first), ["a1", "a2", "b1"]);
    let second = outbox.claim(at(100), LEASE, 1, 2, &[]).await.unwrap();
    assert_eq!(tasks(&second), ["a3"], "no more than asked for");
    assert_eq!(tasks(&outbox.claim(at(10_000), LEASE, 10, 2, &[]).await.unwrap()), ["a4", "b2"]);
    assert!(outbox.claim(at(10_000), LEASE, 10, 2, &[]).await.unwrap().is_empty());
}

async fn an_origin_that_is_excepted_or_parked_is_left_alone(Opened { store, outbox, .. }: Opened) {
    let (a, b) = ("https://a:443", "https://b:443");
    due(&*store, &*outbox, &[("a1", a, 10), ("b1", b, 20)]).await;
    assert_eq!(outbox.next_due(&[origin(a)]).await.unwrap(), Some(at(20)));
    assert_eq!(outbox.next_due(&[origin(a), origin(b)]).await.unwrap(), None);
    assert_eq!(tasks(&outbox.claim(at(100), LEASE, 10, 10, &[origin(a)]).await.unwrap()), ["b1"]);

    outbox.park(&origin(a), at(500)).await.unwrap();
    outbox.park(&origin("https://unknown:443"), at(500)).await.unwrap();
    assert_eq!(outbox.next_due(&[]).await.unwrap(), Some(at(500)));
    assert!(outbox.claim(at(499), LEASE, 10, 10, &[]).await.unwrap().is_empty());
    // What becomes due meanwhile is parked with the rest.
    let task = task("a2");
    let mut register = new(&task, "w", a);
    register.registration.created_at = at(300);
    store.append(Append { register: Some(Box::new(register)), ..creation(&task) }).await.unwrap();
    assert_eq!(outbox.next_due(&[]).await.unwrap(), Some(at(500)));
    let lanes = outbox.claim(at(500), LEASE, 10, 10, &[]).await.unwrap();
    assert_eq!(tasks(&lanes), ["a1", "a2"]);
    assert!(lanes.iter().all(|lane| lane.cursor.attempt == 0), "what is parked was not tried");
    outbox.park(&origin(b), at(7)).await.unwrap();
    assert_eq!(outbox.next_due(&[]).await.unwrap(), Some(at(100) + LEASE), "a time that has passed parks nothing");
}

async fn many_lanes_are_settled_at_once_and_one_that_is_fenced_keeps_none_back(Opened { store, outbox, .. }: Opened) {
    due(&*store, &*outbox, &[("t1", ORIGIN, 10), ("t2", ORIGIN, 10), ("t3", ORIGIN, 10)]).await;
    let lanes = claim(&*outbox, at(100)).await;
    outbox.unregister(&"t2".into(), "w").await.unwrap();
    let steps = lanes.iter().map(|lane| ack(lane, 1, at(101))).collect();
    let settled = outbox.settle_lanes(steps).await.unwrap();
    let fenced: Vec<_> = settled.iter().map(|settled| *settled == LaneSettlement::Fenced).collect();
    assert_eq!(fenced, [false, true, false]);
    assert_eq!(outbox.outbox_load().await.unwrap().pending, 0);
    assert!(outbox.settle_lanes(Vec::new()).await.unwrap().is_empty());
}

async fn what_an_operator_pauses_waits_and_goes_on_where_it_was(Opened { store, outbox, .. }: Opened) {
    due(&*store, &*outbox, &[("t1", ORIGIN, 10), ("t2", "https://b:443", 10)]).await;
    let lane = outbox.claim(at(100), LEASE, 1, 1, &[]).await.unwrap().remove(0);
    let ours = LaneFilter { task: Some(lane.registration.task.clone()), ..LaneFilter::default() };
    let change = async |change| outbox.change_state(&ours, change, at(200), 0, 10).await.unwrap();
    assert_eq!(change(StateChange::Pause).await, [(lane.number(), LaneState::Paused)]);
    assert!(change(StateChange::Pause).await.is_empty(), "it is already");
    // What was under way may still end.
    let settled = outbox.settle_lanes(vec![ack(&lane, 1, at(201))]).await.unwrap();
    assert!(matches!(settled[0], LaneSettlement::Done { cursor, .. } if cursor.state == LaneState::Paused));
    let record = Arc::new(crate::contract::sample::record(lane.registration.task.as_str(), crate::contract::sample::ada()));
    assert_eq!(store.append(pieces(&record, 2, 2)).await.unwrap(), Appended::Recorded, "nothing is due");
    assert_eq!(outbox.claim(at(9_000_000), Duration::ZERO, 10, 10, &[]).await.unwrap().len(), 1, "only the other");
    assert_eq!(change(StateChange::Resume).await, [(lane.number(), LaneState::Active)]);
    let found = outbox.lanes(&ours, 0, 10).await.unwrap().lanes.remove(0);
    assert_eq!((found.cursor.head, found.cursor.tail, found.cursor.next_at), (2, 2, at(200)));
    assert_eq!(change(StateChange::Disable).await, [(lane.number(), LaneState::Disabled(DisableReason::Operator))]);
    let disabled = LaneFilter { state: Some("disabled".into()), ..LaneFilter::default() };
    assert_eq!(outbox.lanes(&disabled, 0, 10).await.unwrap().lanes.len(), 1);
}

async fn what_is_enabled_again_begins_with_the_whole_task(Opened { store, outbox, .. }: Opened) {
    due(&*store, &*outbox, &[("t1", ORIGIN, 10)]).await;
    let lane = claim(&*outbox, at(100)).await.remove(0);
    outbox.settle_lanes(vec![step(&lane, LaneAction::Disable { reason: DisableReason::BlockedAddress }, at(101))]).await.unwrap();
    assert_eq!(outbox.next_due(&[]).await.unwrap(), None);
    let all = LaneFilter::default();
    let found = outbox.lanes(&all, 0, 10).await.unwrap().lanes.remove(0);
    assert_eq!(found.cursor.state, LaneState::Disabled(DisableReason::BlockedAddress));
    let enabled = outbox.change_state(&all, StateChange::Enable, at(200), 0, 10).await.unwrap();
    assert_eq!(enabled, [(lane.number(), LaneState::Active)]);
    assert_eq!(outbox.next_due(&[]).await.unwrap(), Some(at(200)));
    let lane = claim(&*outbox, at(200)).await.remove(0);
    assert_eq!(lane.cursor.span, Some(Span::snapshot(1)));
}
