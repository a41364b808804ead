//! What is measured of a peer stays in range whatever comes in, and is forgotten in time.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::Timestamp;
use chancery_rules::MicroUsd;
use chancery_rules::routing::{CallOutcome, PeerId, PeerRecord, PeerSnapshot, Share};
use proptest::prelude::*;

use CallOutcome::{Failed, Succeeded, Unjudged};

use crate::common::{at, millis};

fn snapshot(record: &PeerRecord, now: u64) -> PeerSnapshot {
    record.snapshot(&PeerId::new("p"), &Arc::default(), at(now))
}

fn record() -> PeerRecord {
    PeerRecord::new(millis(10_000), millis(60_000))
}

fn call(record: &mut PeerRecord, outcome: CallOutcome, latency: u64, cost: Option<i64>, now: u64) {
    record.started(at(now));
    record.finished(outcome, millis(latency), cost.map(MicroUsd), at(now));
}

#[test]
fn averages_follow_what_comes_in_and_open_tasks_are_counted() {
    let mut record = record();
    assert!(snapshot(&record, 0).cold);
    record.started(at(0));
    record.started(at(0));
    assert_eq!((snapshot(&record, 0).open_tasks, snapshot(&record, 0).cold), (2, true), "cold until the first result");
    record.finished(Succeeded, millis(800), Some(MicroUsd(8_000)), at(1));
    let seen = snapshot(&record, 1);
    assert_eq!((seen.ewma_latency, seen.ewma_cost, seen.open_tasks), (Some(millis(800)), Some(MicroUsd(8_000)), 1));
    record.finished(Succeeded, millis(0), Some(MicroUsd(0)), at(2));
    let seen = snapshot(&record, 2);
    assert_eq!((seen.ewma_latency, seen.ewma_cost, seen.open_tasks), (Some(millis(700)), Some(MicroUsd(7_000)), 0));
    assert_eq!((seen.failure_rate, seen.recent_results, seen.cold), (Share::NONE, 2, false));
}

#[test]
fn failing_fast_makes_nobody_look_fast_and_failing_slowly_makes_them_look_slow() {
    let mut record = record();
    call(&mut record, Failed, 1, None, 0);
    let seen = snapshot(&record, 0);
    assert_eq!((seen.ewma_latency, seen.failure_rate, seen.cold), (None, Share::ALL, false));
    call(&mut record, Succeeded, 80, None, 0);
    call(&mut record, Failed, 1, None, 0);
    assert_eq!(snapshot(&record, 0).ewma_latency, Some(millis(80)));
    call(&mut record, Failed, 880, None, 0);
    assert_eq!(snapshot(&record, 0).ewma_latency, Some(millis(180)));
    assert_eq!(snapshot(&record, 0).failure_rate, Share::percent(75));
}

#[test]
fn an_unjudged_call_costs_money_and_says_nothing_else() {
    let mut record = record();
    call(&mut record, Unjudged, 5, Some(9), 0);
    assert!(snapshot(&record, 0).cold);
    call(&mut record, Succeeded, 5, None, 0);
    call(&mut record, Unjudged, 50_000, None, 0);
    let seen = snapshot(&record, 0);
    assert_eq!((seen.ewma_latency, seen.ewma_cost, seen.recent_results), (Some(millis(5)), Some(MicroUsd(9)), 1));
}

#[test]
fn a_peer_nobody_called_for_long_is_cold_again_unless_a_task_is_open() {
    let mut record = record();
    call(&mut record, Succeeded, 100, Some(5), 0);
    assert!(!snapshot(&record, 59_999).cold);
    let old = snapshot(&record, 60_000);
    assert!(old.cold && old.ewma_latency.is_none() && old.ewma_cost.is_none());
    record.started(at(59_999));
    assert!(!snapshot(&record, 1_000_000).cold, "it is at work");
    record.finished(Succeeded, millis(900), None, at(1_000_000));
    assert_eq!(snapshot(&record, 1_000_000).ewma_latency, Some(millis(200)));
    call(&mut record, Succeeded, 7, None, 2_000_000);
    assert_eq!(snapshot(&record, 2_000_000).ewma_latency, Some(millis(7)), "what was forgotten has no part in the new average");
}

fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::ZERO), Just(Duration::MAX), (0..10_000_u64).prop_map(millis)]
}

proptest! {
    #[test]
    fn hostile_numbers_stay_in_range(
        calls in prop::collection::vec(
            (any::<bool>(), 0..3_u8, any_duration(), any::<Option<i64>>(), any::<i64>()), 0..60),
        window in any_duration(),
        forget_after in any_duration(),
    ) {
        let mut record = PeerRecord::new(window, forget_after);
        for (start, outcome, latency, cost, micros) in calls {
            let now = Timestamp::from_micros(micros);
            if start {
                record.started(now);
            }
            let outcome = [Succeeded, Failed, Unjudged][usize::from(outcome)];
            let open_before = record.open_tasks();
            record.finished(outcome, latency, cost.map(MicroUsd), now);
            prop_assert_eq!(record.open_tasks(), open_before.saturating_sub(1));
            let seen = record.snapshot(&PeerId::new("p"), &Arc::default(), now);
            prop_assert!(seen.failure_rate <= Share::ALL);
            prop_assert!(seen.ewma_cost.is_none_or(|cost| cost >= MicroUsd(0)));
            prop_assert!(!seen.cold || seen.ewma_latency.is_none());
        }
    }

    #[test]
    fn an_average_lies_between_the_least_and_the_most(latencies in prop::collection::vec(0..1_000_000_u64, 1..50)) {
        let mut record = record();
        for latency in &latencies {
            call(&mut record, Succeeded, *latency, Some(*latency as i64), 0);
        }
        let seen = snapshot(&record, 0);
        let (least, most) = (*latencies.iter().min().unwrap(), *latencies.iter().max().unwrap());
        prop_assert!((millis(least)..=millis(most)).contains(&seen.ewma_latency.unwrap()));
        prop_assert!((least as i64..=most as i64).contains(&seen.ewma_cost.unwrap().0));
    }
}
