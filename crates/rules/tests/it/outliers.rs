//! A peer far worse than its siblings is left out for a while; never too many, never the last one.

use std::collections::BTreeSet;

use chancery_rules::health::{EjectionReason, Ejections, OutlierConfig};
use chancery_rules::routing::{PeerId, PeerSnapshot, Share};
use proptest::prelude::*;

use crate::common::{at, cold, failing, millis, peer};

fn config() -> OutlierConfig {
    OutlierConfig {
        eject_failure_points: 30,
        eject_latency_multiple: 5,
        eject_latency_above_ms: 1_000,
        eject_results: 10,
        eject_ms: 1_000,
        max_eject_ms: 4_000,
        ejected_percent: 50,
    }
}

fn with_results(recent_results: u32, peer: PeerSnapshot) -> PeerSnapshot {
    PeerSnapshot { recent_results, ..peer }
}

fn out(pool: &[PeerSnapshot]) -> Vec<String> {
    let found = Ejections::new(config()).eject(pool, at(0));
    found.into_iter().map(|ejection| ejection.peer.to_string()).collect()
}

fn left(ejections: &Ejections, pool: &[PeerSnapshot], now: u64) -> Vec<String> {
    let mut pool = pool.to_vec();
    ejections.leave_out(&mut pool, at(now));
    pool.into_iter().map(|peer| peer.id.to_string()).collect()
}

#[test]
fn who_fails_far_more_than_the_others_is_out_and_who_fails_a_little_more_is_not() {
    let pool = |percent| [failing(10, peer("a", 9, 1, 0)), failing(10, peer("b", 9, 1, 0)), failing(percent, peer("c", 9, 1, 0))];
    assert_eq!(out(&pool(39)), [""; 0]);
    assert_eq!(out(&pool(40)), ["c"]);
    let all_bad = [failing(90, peer("a", 9, 1, 0)), failing(95, peer("b", 9, 1, 0)), failing(100, peer("c", 9, 1, 0))];
    assert_eq!(out(&all_bad), [""; 0], "nobody stands out");
}

#[test]
fn who_takes_many_times_as_long_is_out_but_nobody_who_is_fast_enough() {
    let pool = |usual, slow| [peer("a", usual, 1, 0), peer("b", usual, 1, 0), peer("c", slow, 1, 0)];
    assert_eq!(out(&pool(300, 1_499)), [""; 0]);
    assert_eq!(out(&pool(300, 1_500)), ["c"]);
    assert_eq!(out(&pool(10, 1_000)), [""; 0]);
    assert_eq!(out(&pool(10, 1_001)), ["c"]);
}

#[test]
fn nobody_is_compared_by_few_results_or_with_nobody() {
    let bad = || failing(100, peer("bad", 9, 1, 0));
    assert_eq!(out(&[bad()]), [""; 0]);
    assert_eq!(out(&[bad(), cold("new")]), [""; 0]);
    assert_eq!(out(&[bad(), with_results(9, peer("few", 9, 1, 0))]), [""; 0]);
    assert_eq!(out(&[bad(), with_results(10, peer("enough", 9, 1, 0))]), ["bad"]);
    assert_eq!(out(&[with_results(9, bad()), peer("good", 9, 1, 0)]), [""; 0]);
}

#[test]
fn the_worst_go_first_and_never_more_than_half_go() {
    let good = ["a", "b", "c"].map(|id| peer(id, 9, 1, 0));
    let bad = [failing(50, peer("x", 9, 1, 0)), failing(80, peer("y", 9, 1, 0))];
    let pool: Vec<_> = good.into_iter().chain(bad).collect();
    assert_eq!(out(&pool), ["y", "x"]);
    let small = [peer("a", 9, 1, 0), peer("b", 9, 1, 0), pool[3].clone(), peer("slow", 60_000, 1, 0), pool[4].clone()];
    assert_eq!(out(&small), ["y", "x"], "two of five; failing is worse than being slow");
    assert_eq!(out(&pool[2..4]), ["x"], "one of two");
}

#[test]
fn a_peer_is_out_until_its_time_and_longer_when_it_happens_again_soon() {
    let mut ejections = Ejections::new(config());
    let pool = [peer("a", 9, 1, 0), peer("b", 9, 1, 0), failing(100, peer("c", 9, 1, 0))];
    let mut now = 0;
    for wait in [1_000, 2_000, 4_000, 4_000] {
        let found = ejections.eject(&pool, at(now));
        assert_eq!(found[0].until, at(now + wait));
        assert_eq!(found[0].reason, EjectionReason::Failures { failed: Share::ALL, siblings: Share::NONE });
        assert_eq!(ejections.eject(&pool, at(now)), [], "it is out already");
        assert_eq!(left(&ejections, &pool, now + wait - 1), ["a", "b"]);
        now += wait;
        assert_eq!(left(&ejections, &pool, now), ["a", "b", "c"]);
    }
    now += 4_000;
    assert_eq!(ejections.eject(&pool, at(now))[0].until, at(now + 1_000), "long enough ago to be forgiven");
    assert_eq!(ejections.out_until(&PeerId::new("c"), at(now - 1)), None, "a clock put back ends it");
}

#[test]
fn when_the_pool_shrinks_whoever_is_due_back_first_stays() {
    let mut ejections = Ejections::new(config());
    let pool: Vec<_> = ["a", "b", "c", "d"].map(|id| peer(id, 9, 1, 0)).to_vec();
    let worse = |index: usize| {
        let mut pool = pool.clone();
        pool[index] = failing(100, pool[index].clone());
        pool
    };
    ejections.eject(&worse(2), at(0));
    ejections.eject(&worse(3), at(500));
    assert_eq!(left(&ejections, &pool, 600), ["a", "b"]);
    assert_eq!(left(&ejections, &pool[1..], 600), ["b", "c"], "one of three may be out");
    assert_eq!(left(&ejections, &pool[2..], 600), ["c"]);
    assert_eq!(left(&ejections, &pool[3..], 600), ["d"], "never the last one");
    assert_eq!(left(&ejections, &[], 600), [""; 0]);
}

#[derive(Clone, Debug)]
struct Round {
    wait: u64,
    present: BTreeSet<u8>,
    failed: Vec<u32>,
    latency: Vec<u64>,
    results: Vec<u32>,
}

fn any_round() -> impl Strategy<Value = Round> {
    let present = prop::collection::btree_set(0..9_u8, 0..9);
    let latency = prop_oneof![Just(0_u64), 1..20_000_u64, Just(u64::MAX / 2_000)];
    (
        0..2_000_u64,
        present,
        prop::collection::vec(0..=100_u32, 9),
        prop::collection::vec(latency, 9),
        prop::collection::vec(prop_oneof![0..20_u32, Just(u32::MAX)], 9),
    )
        .prop_map(|(wait, present, failed, latency, results)| Round { wait, present, failed, latency, results })
}

proptest! {
    #[test]
    fn somebody_is_always_left_and_at_most_half_are_out(rounds in prop::collection::vec(any_round(), 1..40)) {
        let mut ejections = Ejections::new(config());
        let mut now = 0;
        for round in rounds {
            now += round.wait;
            let member = |number: &u8| {
                let index = usize::from(*number);
                with_results(round.results[index], failing(round.failed[index], peer(&number.to_string(), round.latency[index], 1, 0)))
            };
            let pool: Vec<_> = round.present.iter().map(member).collect();
            for ejection in ejections.eject(&pool, at(now)) {
                prop_assert!(ejection.until > at(now) && ejection.until <= at(now) + millis(4_000));
                prop_assert!(pool.iter().any(|peer| peer.id == ejection.peer));
                prop_assert_eq!(ejections.out_until(&ejection.peer, at(now)), Some(ejection.until));
            }
            let left = left(&ejections, &pool, now);
            prop_assert!(pool.is_empty() || !left.is_empty());
            prop_assert!(left.len() * 2 >= pool.len(), "{} of {} left", left.len(), pool.len());
        }
    }
}
