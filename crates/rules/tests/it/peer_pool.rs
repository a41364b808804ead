//! The pool as a whole: who can be chosen, what checks do, and that something is always left to call.

use std::sync::Arc;

use chancery_protocol::AgentCard;
use chancery_rules::health::{BreakerState, CheckConfig, HealthConfig, OpenCall, PeerPool};
use chancery_rules::routing::{CallOutcome, LowestLatency, PeerId, PeerSelector as _, TaskSpec};
use proptest::prelude::*;

use CallOutcome::{Failed, Succeeded, Unjudged};

use crate::common::{at, millis, skill};

fn pool_of(ids: &[&str]) -> PeerPool {
    let mut pool = PeerPool::new(HealthConfig::default(), millis(300_000));
    for id in ids {
        pool.add(PeerId::new(*id), Arc::default(), at(0));
    }
    pool
}

fn ids(pool: &PeerPool, now: u64) -> Vec<String> {
    pool.candidates(&TaskSpec::default(), at(now)).into_iter().map(|peer| peer.id.to_string()).collect()
}

fn call(pool: &mut PeerPool, id: &str, outcome: CallOutcome, latency: u64, now: u64) -> usize {
    let call = pool.start(&id.into(), at(now)).unwrap();
    pool.finish(call, outcome, millis(latency), None, at(now)).len()
}

/// As often as opens a breaker.
fn fail(pool: &mut PeerPool, id: &str, now: u64) {
    for _ in 0..5 {
        call(pool, id, Failed, 1, now);
    }
}

#[test]
fn only_peers_whose_cards_offer_the_task_are_candidates() {
    let mut pool = pool_of(&["bare"]);
    let card = AgentCard { skills: vec![skill("draw", &[])], ..AgentCard::default() };
    pool.add(PeerId::new("painter"), Arc::new(card.clone()), at(0));
    let task = TaskSpec { skill_id: "draw", ..TaskSpec::default() };
    let able = |pool: &PeerPool| pool.candidates(&task, at(0)).len();
    assert_eq!(able(&pool), 1);
    pool.add(PeerId::new("bare"), Arc::new(card), at(0));
    assert_eq!(able(&pool), 2, "its card has changed");
    pool.remove(&"painter".into());
    assert_eq!(able(&pool), 1);
    assert!(pool.start(&"painter".into(), at(0)).is_err());
}

#[test]
fn a_call_to_a_peer_that_was_removed_and_added_again_does_not_count_for_the_new_one() {
    let mut pool = pool_of(&["a"]);
    let old = pool.start(&"a".into(), at(0)).unwrap();
    pool.remove(&"a".into());
    pool.add(PeerId::new("a"), Arc::default(), at(1));
    assert_eq!(old.peer().as_str(), "a");
    let old = pool.answered(old, at(1));
    assert!(pool.finish(old, Failed, millis(1), None, at(1)).is_empty());
    let seen = &pool.candidates(&TaskSpec::default(), at(1))[0];
    assert!(seen.cold && seen.open_tasks == 0);
}

#[test]
fn a_slow_replica_is_put_out_and_comes_back_as_if_new() {
    let mut pool = pool_of(&["a", "b", "slow"]);
    let mut put_out = 0;
    for _ in 0..10 {
        for (id, latency) in [("a", 100), ("b", 100), ("slow", 9_000)] {
            put_out += call(&mut pool, id, Succeeded, latency, 5);
        }
    }
    assert_eq!(put_out, 1);
    assert_eq!(ids(&pool, 6), ["a", "b"]);
    assert_eq!(pool.standings(at(6))[2].ejected_until, Some(at(30_005)));
    let back = pool.candidates(&TaskSpec::default(), at(30_005));
    assert_eq!(back.len(), 3);
    assert!(back[2].wants_a_trial());
    assert_eq!(LowestLatency.select(&TaskSpec::default(), &back), Some(PeerId::new("slow")));
}

#[test]
fn an_outlier_is_not_left_out_while_the_others_cannot_be_called() {
    let mut pool = pool_of(&["a", "slow"]);
    for _ in 0..10 {
        call(&mut pool, "a", Succeeded, 100, 5);
        call(&mut pool, "slow", Succeeded, 9_000, 5);
    }
    assert_eq!(ids(&pool, 6), ["a"]);
    fail(&mut pool, "a", 6);
    assert_eq!(ids(&pool, 6), ["slow"], "better a slow one than none");
}

#[test]
fn a_quiet_peer_is_checked_a_busy_one_is_not_and_a_check_is_no_task() {
    let mut pool = pool_of(&["busy", "quiet"]);
    for check in pool.start_checks(at(30_000)) {
        pool.finish_check(check, true, at(30_000));
    }
    assert_eq!(pool.start_checks(at(59_999)).len(), 0);
    call(&mut pool, "busy", Succeeded, 5, 59_999);
    let checks = pool.start_checks(at(64_000));
    assert_eq!(checks.iter().map(|check| check.peer().as_str()).collect::<Vec<_>>(), ["quiet"]);
    assert_eq!(pool.start_checks(at(64_001)).len(), 0, "it is being asked");
    assert!(pool.next_check().unwrap() > at(64_001));
    let quiet = &pool.candidates(&TaskSpec::default(), at(64_001))[1];
    assert!(quiet.cold && quiet.open_tasks == 0);
    for check in checks {
        pool.finish_check(check, true, at(64_002));
    }
    assert!(pool.candidates(&TaskSpec::default(), at(64_002))[1].cold, "to be alive is not to be fast");
}

#[test]
fn a_check_brings_a_peer_back_that_no_task_would_try() {
    let mut pool = pool_of(&["a", "b"]);
    fail(&mut pool, "b", 0);
    assert_eq!(ids(&pool, 4_999), ["a"]);
    for check in pool.start_checks(at(4_999)) {
        assert_eq!(check.peer().as_str(), "a", "an open breaker lets no check through either");
        pool.finish_check(check, true, at(4_999));
    }
    let probes = pool.start_checks(at(5_000));
    assert_eq!(probes.iter().map(|check| check.peer().as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(ids(&pool, 5_001), ["a"], "the check is the probe");
    for check in probes {
        pool.finish_check(check, true, at(5_002));
    }
    assert_eq!(ids(&pool, 5_002), ["a", "b"]);
}

#[test]
fn a_stream_that_has_begun_brings_its_peer_back_before_it_ends() {
    let mut pool = pool_of(&["a"]);
    fail(&mut pool, "a", 0);
    let stream = pool.start(&"a".into(), at(5_000)).unwrap();
    assert_eq!(ids(&pool, 5_001), [""; 0]);
    let stream = pool.answered(stream, at(5_001));
    assert_eq!(ids(&pool, 5_001), ["a"]);
    assert_eq!(pool.standings(at(5_001))[0].breaker, BreakerState::Closed);
    assert_eq!(pool.candidates(&TaskSpec::default(), at(5_001))[0].open_tasks, 1);
    pool.finish(stream, Succeeded, millis(1), None, at(3_600_000));
    assert_eq!(pool.candidates(&TaskSpec::default(), at(3_600_000))[0].open_tasks, 0);
}

#[test]
fn checks_can_be_turned_off() {
    let health = HealthConfig { checks: CheckConfig { check_every_ms: 0 }, ..HealthConfig::default() };
    let mut pool = PeerPool::new(health, millis(1));
    pool.add(PeerId::new("a"), Arc::default(), at(0));
    assert_eq!(pool.next_check(), None);
    assert_eq!(pool.start_checks(at(10_000_000)).len(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Start(u8),
    Finish(prop::sample::Index, u8, u64),
    Answer(prop::sample::Index),
    Check(bool),
    Remove(u8),
    Add(u8),
}

fn any_step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        2 => (0..8_000_u64).prop_map(Step::Wait),
        6 => (0..5_u8).prop_map(Step::Start),
        6 => (index(), 0..3_u8, prop_oneof![0..300_u64, 5_000..90_000_u64]).prop_map(|(index, outcome, latency)| Step::Finish(index, outcome, latency)),
        1 => index().prop_map(Step::Answer),
        1 => any::<bool>().prop_map(Step::Check),
        1 => (0..5_u8).prop_map(Step::Remove),
        2 => (0..5_u8).prop_map(Step::Add),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_the_books_balance_and_a_callable_peer_can_be_chosen(steps in prop::collection::vec(any_step(), 0..250)) {
        let mut pool = pool_of(&["0", "1", "2", "3", "4"]);
        let mut now = 0;
        let mut open: Vec<OpenCall> = Vec::new();
        let take = |open: &mut Vec<OpenCall>, index: prop::sample::Index| {
            (!open.is_empty()).then(|| open.swap_remove(index.index(open.len())))
        };
        for step in steps {
            match step {
                Step::Wait(millis) => now += millis,
                Step::Start(id) => open.extend(pool.start(&PeerId::new(id.to_string()), at(now))),
                Step::Finish(index, outcome, latency) => {
                    if let Some(call) = take(&mut open, index) {
                        let outcome = [Succeeded, Failed, Unjudged][usize::from(outcome)];
                        pool.finish(call, outcome, millis(latency), None, at(now));
                    }
                }
                Step::Answer(index) => {
                    if let Some(call) = take(&mut open, index) {
                        open.push(pool.answered(call, at(now)));
                    }
                }
                Step::Check(alive) => {
                    for check in pool.start_checks(at(now)) {
                        pool.finish_check(check, alive, at(now));
                    }
                }
                Step::Remove(id) => {
                    open.retain(|call| call.peer().as_str() != id.to_string());
                    pool.remove(&PeerId::new(id.to_string()));
                }
                Step::Add(id) => pool.add(PeerId::new(id.to_string()), Arc::default(), at(now)),
            }
            let standings = pool.standings(at(now));
            for standing in &standings {
                let mine = open.iter().filter(|call| *call.peer() == standing.snapshot.id).count();
                prop_assert_eq!(standing.snapshot.open_tasks as usize, mine);
            }
            let candidates = pool.candidates(&TaskSpec::default(), at(now));
            let closed = standings.iter().filter(|standing| standing.breaker == BreakerState::Closed).count();
            prop_assert!(closed == 0 || !candidates.is_empty());
            prop_assert!(candidates.len() * 2 >= closed, "at most half of those that can be called are out");
            if let Some(id) = LowestLatency.select(&TaskSpec::default(), &candidates) {
                let call = pool.clone().start(&id, at(now));
                prop_assert!(call.is_ok(), "a candidate can be called");
            }
        }
    }
}
