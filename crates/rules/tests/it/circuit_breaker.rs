//! A failing peer leaves the pool, one probe tries it, and a good answer brings it back; under any order of events.

use std::sync::Arc;

use chancery_rules::health::{Breaker, BreakerConfig, BreakerState, BreakerTicket, HealthConfig, PeerPool, Refused};
use chancery_rules::routing::{CallOutcome, PeerId, TaskSpec};
use proptest::prelude::*;

use CallOutcome::{Failed, Succeeded, Unjudged};

use crate::common::{at, millis};

fn config() -> BreakerConfig {
    BreakerConfig {
        failures: 3,
        failure_percent: 50,
        failure_percent_of: 10,
        window_ms: 10_000,
        cooldown_ms: 1_000,
        max_cooldown_ms: 4_000,
        probe_ms: 500,
    }
}

fn call(breaker: &mut Breaker, outcome: CallOutcome, now: u64) {
    let ticket = breaker.admit(at(now)).unwrap();
    breaker.report(ticket, outcome, at(now));
}

/// Opened at the time given.
fn opened(now: u64) -> Breaker {
    let mut breaker = Breaker::new(config());
    (0..3).for_each(|_| call(&mut breaker, Failed, now));
    breaker
}

#[test]
fn a_peer_leaves_the_pool_after_n_failures_is_probed_after_the_cooldown_and_is_back_on_success() {
    let health = HealthConfig { breaker: config(), ..HealthConfig::default() };
    let mut pool = PeerPool::new(health, millis(60_000));
    pool.add(PeerId::new("flaky"), Arc::default(), at(0));
    pool.add(PeerId::new("steady"), Arc::default(), at(0));
    let ids = |pool: &PeerPool, now| {
        pool.candidates(&TaskSpec::default(), at(now)).into_iter().map(|peer| peer.id.to_string()).collect::<Vec<_>>()
    };
    for failure in 0..3 {
        assert_eq!(ids(&pool, 10), ["flaky", "steady"], "after {failure} failures");
        let call = pool.start(&"flaky".into(), at(10)).unwrap();
        pool.finish(call, Failed, millis(5), None, at(10));
    }
    assert_eq!(ids(&pool, 10), ["steady"]);
    assert_eq!(ids(&pool, 1_009), ["steady"], "not before the cooldown has passed");
    assert_eq!(pool.start(&"flaky".into(), at(1_009)).unwrap_err(), Refused { until: at(1_010) });
    assert_eq!(ids(&pool, 1_010), ["flaky", "steady"]);
    let probe = pool.start(&"flaky".into(), at(1_010)).unwrap();
    assert_eq!(ids(&pool, 1_011), ["steady"], "one probe, and nothing else meanwhile");
    pool.start(&"flaky".into(), at(1_011)).unwrap_err();
    pool.finish(probe, Succeeded, millis(5), None, at(1_020));
    assert_eq!(ids(&pool, 1_020), ["flaky", "steady"]);
    let many: Vec<_> = (0..50).map(|_| pool.start(&"flaky".into(), at(1_020)).unwrap()).collect();
    assert_eq!(pool.candidates(&TaskSpec::default(), at(1_020))[0].open_tasks, 50);
    for call in many {
        pool.finish(call, Unjudged, millis(0), None, at(1_021));
    }
    assert_eq!(pool.candidates(&TaskSpec::default(), at(1_021))[0].open_tasks, 0);
}

#[test]
fn it_opens_at_the_last_of_n_failures_in_a_row_and_not_before() {
    let mut breaker = Breaker::new(config());
    for outcome in [Failed, Failed, Succeeded, Failed, Unjudged, Failed] {
        call(&mut breaker, outcome, 0);
        assert_eq!(breaker.state(), BreakerState::Closed);
    }
    call(&mut breaker, Failed, 7);
    assert_eq!(breaker.state(), BreakerState::Open { until: at(1_007) });
    let mut strict = Breaker::new(BreakerConfig { failures: 1, ..config() });
    call(&mut strict, Failed, 0);
    assert_ne!(strict.state(), BreakerState::Closed);
    assert_eq!(BreakerConfig::default().failures, 5);
}

#[test]
fn a_share_of_failures_opens_it_too_once_there_are_enough_results() {
    let config = BreakerConfig { failures: 100, ..config() };
    let mut breaker = Breaker::new(config.clone());
    for number in 0..9 {
        call(&mut breaker, if number % 2 == 0 { Failed } else { Succeeded }, number);
    }
    assert_eq!(breaker.state(), BreakerState::Closed, "nine results say nothing");
    call(&mut breaker, Failed, 9);
    assert_eq!(breaker.state(), BreakerState::Open { until: at(1_009) });

    let mut under = Breaker::new(config.clone());
    for number in 0..100 {
        call(&mut under, if number % 9 < 5 { Succeeded } else { Failed }, number);
        assert_eq!(under.state(), BreakerState::Closed, "less than half after {number}");
    }
    let mut old = Breaker::new(config);
    (0..9).for_each(|_| call(&mut old, Failed, 0));
    call(&mut old, Failed, 10_000);
    assert_eq!(old.state(), BreakerState::Closed, "the nine have left the window");
}

#[test]
fn once_it_is_closed_again_the_failures_that_opened_it_are_history() {
    let mut breaker = Breaker::new(BreakerConfig { failures: 100, ..config() });
    (0..10).for_each(|_| call(&mut breaker, Failed, 0));
    call(&mut breaker, Succeeded, 1_000);
    call(&mut breaker, Failed, 1_000);
    assert_eq!(breaker.state(), BreakerState::Closed, "one failure of one result, not eleven of twelve");
}

#[test]
fn each_probe_that_fails_doubles_the_wait_up_to_its_limit_and_success_starts_anew() {
    let mut breaker = opened(0);
    let mut now = 1_000;
    for wait in [2_000, 4_000, 4_000] {
        call(&mut breaker, Failed, now);
        assert_eq!(breaker.state(), BreakerState::Open { until: at(now + wait) });
        assert!(breaker.admit(at(now + wait - 1)).is_err());
        now += wait;
    }
    call(&mut breaker, Succeeded, now);
    assert_eq!(breaker.state(), BreakerState::Closed);
    (0..3).for_each(|_| call(&mut breaker, Failed, now));
    assert_eq!(breaker.state(), BreakerState::Open { until: at(now + 1_000) });
}

#[test]
fn the_late_result_of_a_call_from_before_neither_closes_it_nor_counts_after_it() {
    let mut breaker = Breaker::new(config());
    let (early, early_too, earliest) =
        (breaker.admit(at(0)).unwrap(), breaker.admit(at(0)).unwrap(), breaker.admit(at(0)).unwrap());
    (0..3).for_each(|_| call(&mut breaker, Failed, 0));
    breaker.report(early, Succeeded, at(1));
    assert_eq!(breaker.state(), BreakerState::Open { until: at(1_000) });
    let probe = breaker.admit(at(1_000)).unwrap();
    breaker.report(early_too, Succeeded, at(1_001));
    assert_eq!(breaker.state(), BreakerState::HalfOpen { probe_until: at(1_500) }, "only the probe decides");
    breaker.report(probe, Succeeded, at(1_002));
    call(&mut breaker, Failed, 1_003);
    call(&mut breaker, Failed, 1_003);
    breaker.report(earliest, Failed, at(1_003));
    assert_eq!(breaker.state(), BreakerState::Closed, "a failure from before is no third one");
}

#[test]
fn a_probe_nobody_reports_has_failed_when_its_time_is_over() {
    let mut breaker = opened(0);
    let lost = breaker.admit(at(1_000)).unwrap();
    assert_eq!(breaker.admit(at(1_499)), Err(Refused { until: at(3_500) }));
    assert_eq!(breaker.admit(at(1_500)), Err(Refused { until: at(3_500) }));
    assert!(!breaker.would_admit(at(3_499)) && breaker.would_admit(at(3_500)));
    breaker.report(lost, Succeeded, at(1_501));
    assert_eq!(breaker.state(), BreakerState::Open { until: at(3_500) });
    assert!(breaker.admit(at(3_500)).is_ok());
    assert!(breaker.admit(at(3_500)).is_err());
}

#[test]
fn a_probe_that_tells_nothing_makes_room_for_another() {
    let mut breaker = opened(0);
    call(&mut breaker, Unjudged, 1_000);
    assert!(breaker.would_admit(at(1_000)));
    call(&mut breaker, Succeeded, 1_000);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn a_long_call_that_begins_well_closes_it_before_it_ends_and_is_still_judged_by_its_end() {
    let mut breaker = opened(0);
    let probe = breaker.admit(at(1_000)).unwrap();
    let going_on = breaker.begun_well(probe, at(1_100));
    assert_eq!(breaker.state(), BreakerState::Closed);
    call(&mut breaker, Failed, 1_200);
    call(&mut breaker, Failed, 1_200);
    breaker.report(going_on, Failed, at(9_000));
    assert_ne!(breaker.state(), BreakerState::Closed, "the third failure in a row");

    let mut plain = Breaker::new(config());
    call(&mut plain, Failed, 0);
    call(&mut plain, Failed, 0);
    let ordinary = plain.admit(at(0)).unwrap();
    let ordinary = plain.begun_well(ordinary, at(1));
    plain.report(ordinary, Failed, at(2));
    assert_ne!(plain.state(), BreakerState::Closed, "a beginning makes up for nothing while it is closed");
}

#[test]
fn a_check_that_goes_well_closes_it_but_is_no_call() {
    let mut breaker = opened(0);
    let check = breaker.admit(at(1_000)).unwrap();
    breaker.report_check(check, true, at(1_000));
    assert_eq!(breaker.state(), BreakerState::Closed);
    for _ in 0..3 {
        call(&mut breaker, Failed, 1_001);
        if let Ok(check) = breaker.admit(at(1_001)) {
            breaker.report_check(check, true, at(1_001));
        }
    }
    assert_eq!(
        breaker.state(),
        BreakerState::Open { until: at(3_001) },
        "checks made up for nothing, and the wait is the longer one"
    );
    let check = breaker.admit(at(3_001)).unwrap();
    breaker.report_check(check, false, at(3_001));
    assert_eq!(breaker.state(), BreakerState::Open { until: at(7_001) });

    let mut closed = Breaker::new(config());
    for _ in 0..3 {
        let check = closed.admit(at(0)).unwrap();
        closed.report_check(check, false, at(0));
    }
    assert_ne!(closed.state(), BreakerState::Closed, "a peer that answers no check is not sent tasks");
}

#[test]
fn a_clock_put_back_does_not_shut_a_peer_out_for_ever() {
    let mut breaker = opened(1_000_000);
    assert!(breaker.would_admit(at(5)));
    assert!(breaker.admit(at(5)).is_ok());
    assert!(breaker.admit(at(5)).is_err());
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Admit,
    Report(prop::sample::Index, CallOutcome),
    Check(prop::sample::Index, bool),
    Begin(prop::sample::Index),
    Lose(prop::sample::Index),
}

fn any_step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    let outcome = prop_oneof![3 => Just(Failed), 2 => Just(Succeeded), 1 => Just(Unjudged)];
    prop_oneof![
        2 => (0..1_500_u64).prop_map(Step::Wait),
        4 => Just(Step::Admit),
        4 => (index(), outcome).prop_map(|(index, outcome)| Step::Report(index, outcome)),
        1 => (index(), any::<bool>()).prop_map(|(index, alive)| Step::Check(index, alive)),
        1 => index().prop_map(Step::Begin),
        1 => index().prop_map(Step::Lose),
    ]
}

fn take(tickets: &mut Vec<BreakerTicket>, index: prop::sample::Index) -> Option<BreakerTicket> {
    (!tickets.is_empty()).then(|| tickets.swap_remove(index.index(tickets.len())))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn an_open_breaker_admits_nothing_before_its_time_and_a_half_open_one_exactly_one(steps in prop::collection::vec(any_step(), 0..120)) {
        let mut breaker = Breaker::new(config());
        let mut now = 0;
        let mut tickets = Vec::new();
        for step in steps {
            let before = breaker.state();
            let foretold = breaker.would_admit(at(now));
            match step {
                Step::Wait(millis) => now += millis,
                Step::Admit => {
                    let admitted = breaker.admit(at(now));
                    prop_assert_eq!(admitted.is_ok(), foretold);
                    match before {
                        BreakerState::Closed => prop_assert!(admitted.is_ok()),
                        BreakerState::Open { until } => {
                            prop_assert_eq!(admitted.is_ok(), at(now) >= until);
                        }
                        // A second call passes a half-open breaker only after its probe was given up and another cooldown.
                        BreakerState::HalfOpen { probe_until } => {
                            prop_assert!(admitted.is_err() || at(now) >= probe_until + millis(1_000));
                        }
                    }
                    if let (Ok(_), true) = (&admitted, before != BreakerState::Closed) {
                        prop_assert_eq!(breaker.state(), BreakerState::HalfOpen { probe_until: at(now + 500) });
                        prop_assert!(breaker.admit(at(now)).is_err());
                    }
                    if let Err(refused) = &admitted {
                        prop_assert!(refused.until > at(now));
                        prop_assert!(breaker.would_admit(refused.until));
                    }
                    tickets.extend(admitted);
                }
                Step::Report(index, outcome) => {
                    if let Some(ticket) = take(&mut tickets, index) {
                        breaker.report(ticket, outcome, at(now));
                    }
                }
                Step::Check(index, alive) => {
                    if let Some(ticket) = take(&mut tickets, index) {
                        breaker.report_check(ticket, alive, at(now));
                    }
                }
                Step::Begin(index) => {
                    if let Some(ticket) = take(&mut tickets, index) {
                        tickets.push(breaker.begun_well(ticket, at(now)));
                    }
                }
                Step::Lose(index) => drop(take(&mut tickets, index)),
            }
            if let (BreakerState::Open { until }, BreakerState::Closed) = (before, breaker.state()) {
                prop_assert!(false, "closed without a probe, open until {:?}", until);
            }
            if let BreakerState::Open { until } = breaker.state() {
                prop_assert!(until <= at(now) + millis(4_000), "no wait is longer than the limit");
            }
            prop_assert!(breaker.would_admit(at(now) + millis(500 + 4_000)), "no peer is shut out for ever");
        }
    }
}
