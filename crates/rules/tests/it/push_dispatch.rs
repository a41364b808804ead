//! Slots are bounded for everybody, an origin that hangs or fails costs the others nothing, and turns are fair.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::Timestamp;
use chancery_rules::health::BreakerState;
use chancery_rules::push::{
    AttemptReport, DeliverySlot, Dispatch, DispatchStep, Pressure, SlotLimits, WebhookOrigin, push_breaker,
};
use chancery_rules::routing::CallOutcome;
use proptest::prelude::*;

use crate::common::at;

const FINE: AttemptReport = AttemptReport { health: CallOutcome::Succeeded, pressure: Pressure::Fine };
const DOWN: AttemptReport = AttemptReport { health: CallOutcome::Failed, pressure: Pressure::Neither };
const TOO_MUCH: AttemptReport = AttemptReport { health: CallOutcome::Succeeded, pressure: Pressure::TooMuch };

fn origin(tenant: &str, name: &str) -> WebhookOrigin {
    WebhookOrigin { tenant: tenant.into(), origin: format!("https://{name}:443").into() }
}

fn unrationed() -> SlotLimits {
    SlotLimits { host_requests_per_second: 0, ..SlotLimits::default() }
}

fn dispatch(limits: SlotLimits) -> Dispatch {
    Dispatch::new(limits, push_breaker())
}

fn offer(dispatch: &mut Dispatch, tenant: &str, name: &str, lanes: impl IntoIterator<Item = u64>) {
    let host: Arc<str> = name.into();
    lanes.into_iter().for_each(|lane| dispatch.offer(lane, &origin(tenant, name), &host));
}

/// Everything that can go now.
fn go(dispatch: &mut Dispatch, now: Timestamp) -> Vec<DeliverySlot> {
    let mut grants = Vec::new();
    while let DispatchStep::Go(grant) = dispatch.next(now) {
        grants.push(grant);
    }
    grants
}

/// It has answered before, so it is trusted with more than two at once.
fn heard(dispatch: &mut Dispatch, tenant: &str, name: &str) {
    offer(dispatch, tenant, name, [u64::MAX]);
    for grant in go(dispatch, at(0)) {
        dispatch.finish(grant, FINE, at(0));
    }
}

#[test]
fn an_origin_that_never_answered_holds_two_slots_and_fifty_of_them_leave_the_others_theirs() {
    let mut dispatch = dispatch(unrationed());
    heard(&mut dispatch, "t", "fine");
    (0..50).for_each(|name| offer(&mut dispatch, "t", &format!("hangs{name}"), 0..10));
    assert_eq!(go(&mut dispatch, at(0)).len(), 100);
    offer(&mut dispatch, "t", "fine", 1_000..1_100);
    assert_eq!(go(&mut dispatch, at(0)).len(), 8);
}

#[test]
fn while_half_of_the_slots_are_held_the_rest_is_for_those_who_hold_few() {
    let mut dispatch = dispatch(unrationed());
    let names: Vec<String> = (0..50).map(|name| format!("went{name}")).collect();
    names.iter().for_each(|name| heard(&mut dispatch, "t", name));
    heard(&mut dispatch, "t", "fine");
    // All of them hang from now on, and want as much as they can get.
    names.iter().for_each(|name| offer(&mut dispatch, "t", name, 0..100));
    let held = go(&mut dispatch, at(0));
    assert!(held.len() < 256, "{}", held.len());
    offer(&mut dispatch, "t", "fine", 1_000..1_100);
    assert_eq!(go(&mut dispatch, at(0)).len(), 2);
}

#[test]
fn an_origin_that_hangs_holds_eight_slots_and_the_others_go_on() {
    let mut dispatch = dispatch(unrationed());
    heard(&mut dispatch, "t", "hangs");
    heard(&mut dispatch, "t", "fine");
    offer(&mut dispatch, "t", "hangs", 0..1_000);
    offer(&mut dispatch, "t", "fine", 1_000..1_005);
    let grants = go(&mut dispatch, at(0));
    assert_eq!(grants.iter().filter(|grant| grant.lane < 1_000).count(), 8);
    assert_eq!(grants.iter().filter(|grant| grant.lane >= 1_000).count(), 5);
    assert_eq!(dispatch.in_flight(), 13);
    assert_eq!(dispatch.closed(at(0)), [origin("t", "hangs")]);
}

#[test]
fn nobody_gets_more_slots_than_the_node_and_its_tenant_have() {
    let limits = SlotLimits { in_flight: 10, in_flight_per_tenant: 6, ..unrationed() };
    let mut dispatch = dispatch(limits);
    (0..4).for_each(|name| offer(&mut dispatch, "a", &format!("a{name}"), 0..9));
    (0..4).for_each(|name| offer(&mut dispatch, "b", &format!("b{name}"), 100..109));
    let mut grants = go(&mut dispatch, at(0));
    assert_eq!(grants.len(), 10);
    let of = |grants: &[DeliverySlot], tenant: &str| grants.iter().filter(|grant| *grant.origin().tenant == *tenant).count();
    assert!(of(&grants, "a") <= 6 && of(&grants, "b") <= 6);
    dispatch.finish(grants.pop().unwrap(), FINE, at(1));
    assert_eq!(go(&mut dispatch, at(1)).len(), 1, "a slot that is handed back is given away again");
}

#[test]
fn lanes_of_one_origin_go_in_the_order_they_came_and_origins_take_turns() {
    let mut dispatch = dispatch(SlotLimits { in_flight: 1, ..unrationed() });
    offer(&mut dispatch, "t", "a", [1, 2, 3]);
    offer(&mut dispatch, "t", "b", [11, 12, 13]);
    let mut order = Vec::new();
    while let DispatchStep::Go(grant) = dispatch.next(at(0)) {
        order.push(grant.lane);
        dispatch.finish(grant, FINE, at(0));
    }
    assert_eq!(order, [1, 11, 2, 12, 3, 13]);
}

#[test]
fn an_origin_that_sends_long_runs_pays_for_them_with_its_turns() {
    let mut dispatch = dispatch(SlotLimits { in_flight: 1, ..unrationed() });
    offer(&mut dispatch, "t", "long", 0..1_000);
    offer(&mut dispatch, "t", "short", 1_000..2_000);
    let mut sent = [0_u32; 2];
    for _ in 0..500 {
        let DispatchStep::Go(mut grant) = dispatch.next(at(0)) else { panic!("both wait") };
        let short = grant.lane >= 1_000;
        sent[usize::from(short)] += 1;
        for _ in 0..if short { 0 } else { 31 } {
            grant = dispatch.carry_on(grant, FINE, at(0)).unwrap();
            sent[0] += 1;
        }
        dispatch.finish(grant, FINE, at(0));
    }
    let [long, short] = sent.map(f64::from);
    assert!((0.8..1.25).contains(&(long / short)), "{sent:?}");
}

#[test]
fn a_failing_origin_is_left_alone_without_costing_its_lanes_an_attempt_and_probed_by_one() {
    let mut dispatch = dispatch(unrationed());
    offer(&mut dispatch, "t", "down", 0..20);
    for _ in 0..5 {
        let DispatchStep::Go(grant) = dispatch.next(at(1_000)) else { panic!("not yet") };
        dispatch.finish(grant, DOWN, at(1_000));
    }
    for lane in 5..20 {
        let DispatchStep::Park { lane: parked, until } = dispatch.next(at(1_001)) else { panic!("{lane} is not parked") };
        assert_eq!((parked, until), (lane, at(31_000)));
    }
    assert_eq!(dispatch.closed(at(1_001)), [origin("t", "down")]);

    offer(&mut dispatch, "t", "down", 0..3);
    let DispatchStep::Go(probe) = dispatch.next(at(31_000)) else { panic!("one probe goes") };
    assert_eq!(probe.lane, 0);
    assert!(matches!(dispatch.next(at(31_000)), DispatchStep::Park { lane: 1, .. }), "and only one");
    dispatch.finish(probe, DOWN, at(31_001));
    let DispatchStep::Park { lane: 2, until } = dispatch.next(at(31_001)) else { panic!("it failed") };
    assert_eq!(until, at(91_001), "twice as long");

    offer(&mut dispatch, "t", "down", [7, 8]);
    let DispatchStep::Go(probe) = dispatch.next(at(91_001)) else { panic!("another probe goes") };
    dispatch.finish(probe, FINE, at(91_002));
    assert!(matches!(dispatch.next(at(91_002)), DispatchStep::Go(_)), "it is back");
}

#[test]
fn another_tenants_breaker_is_its_own_but_a_host_is_rationed_for_all() {
    let mut dispatch = dispatch(SlotLimits::default());
    offer(&mut dispatch, "a", "host", 0..5);
    (0..5).for_each(|_| {
        let DispatchStep::Go(grant) = dispatch.next(at(0)) else { panic!() };
        dispatch.finish(grant, DOWN, at(0));
    });
    offer(&mut dispatch, "b", "host", 100..200);
    let mut sent = 0;
    let until = loop {
        match dispatch.next(at(0)) {
            DispatchStep::Go(grant) => {
                dispatch.finish(grant, FINE, at(0));
                sent += 1;
            }
            DispatchStep::Park { .. } => panic!("the breaker is another tenant's"),
            DispatchStep::Wait { until } => break until,
        }
    };
    assert_eq!(sent, 45, "five of the fifty were the other tenant's");
    assert_eq!(until, Some(at(20)), "and the next is due in a fiftieth of a second");
    assert!(matches!(dispatch.next(at(20)), DispatchStep::Go(_)));
}

#[test]
fn a_run_ends_when_the_origin_asks_for_less() {
    let mut dispatch = dispatch(unrationed());
    heard(&mut dispatch, "t", "busy");
    offer(&mut dispatch, "t", "busy", 0..8);
    let mut grants = go(&mut dispatch, at(0));
    assert_eq!(grants.len(), 8);
    let first = grants.pop().unwrap();
    assert!(dispatch.carry_on(first, TOO_MUCH, at(1)).is_none(), "eight are more than the four it bears now");
    assert_eq!(dispatch.standings()[0].width, 4);
    assert_eq!(dispatch.in_flight(), 7);
    let second = grants.pop().unwrap();
    assert!(dispatch.carry_on(second, FINE, at(2)).is_none(), "and so are seven");
}

#[test]
fn what_nobody_used_for_long_is_forgotten_but_a_failing_origin_is_not() {
    let mut dispatch = dispatch(SlotLimits::default());
    offer(&mut dispatch, "t", "quiet", [1]);
    offer(&mut dispatch, "t", "down", 2..7);
    while let DispatchStep::Go(grant) = dispatch.next(at(0)) {
        let report = if grant.lane == 1 { FINE } else { DOWN };
        dispatch.finish(grant, report, at(0));
    }
    dispatch.sweep(at(1_000));
    assert_eq!(dispatch.standings().len(), 2);
    dispatch.sweep(at(3_600_000));
    let left = dispatch.standings();
    assert_eq!(left.len(), 1);
    assert!(matches!(left[0].breaker, BreakerState::Open { .. }));
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    Offer { origin: usize, lanes: u64 },
    Next,
    Finish { which: usize, how: u8 },
    CarryOn { which: usize, how: u8 },
    Wait { millis: u64 },
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        2 => (0..6_usize, 1..20_u64).prop_map(|(origin, lanes)| Happening::Offer { origin, lanes }),
        8 => Just(Happening::Next),
        4 => (any::<usize>(), any::<u8>()).prop_map(|(which, how)| Happening::Finish { which, how }),
        3 => (any::<usize>(), any::<u8>()).prop_map(|(which, how)| Happening::CarryOn { which, how }),
        2 => (0..40_000_u64).prop_map(|millis| Happening::Wait { millis }),
    ]
}

fn report(how: u8) -> AttemptReport {
    match how % 8 {
        0 => DOWN,
        1 => TOO_MUCH,
        2 => AttemptReport::NOTHING,
        _ => FINE,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_order_of_events_oversteps_a_limit_or_loses_a_lane(happenings in prop::collection::vec(happening(), 1..200)) {
        let limits = SlotLimits { in_flight: 12, in_flight_per_tenant: 7, in_flight_per_origin: 3, max_in_flight_per_origin: 5, host_requests_per_second: 4 };
        let mut dispatch = dispatch(limits);
        let origins: Vec<_> = (0..6).map(|number| (["a", "b"][number % 2], format!("h{}", number / 2))).collect();
        let (mut now, mut held, mut next_lane) = (at(0), VecDeque::<DeliverySlot>::new(), 0);
        let (mut offered, mut came_out) = (0_u64, 0_u64);
        let mut requests: HashMap<Arc<str>, Vec<Timestamp>> = HashMap::new();
        for happening in happenings {
            match happening {
                Happening::Offer { origin, lanes } => {
                    let (tenant, host) = &origins[origin];
                    offer(&mut dispatch, tenant, host, next_lane..next_lane + lanes);
                    next_lane += lanes;
                    offered += lanes;
                }
                Happening::Next => match dispatch.next(now) {
                    DispatchStep::Go(grant) => {
                        requests.entry(grant.origin().origin.clone()).or_default().push(now);
                        held.push_back(grant);
                        came_out += 1;
                    }
                    DispatchStep::Park { until, .. } => {
                        prop_assert!(until > now);
                        came_out += 1;
                    }
                    DispatchStep::Wait { until } => prop_assert!(until.is_none_or(|until| until > now)),
                },
                Happening::Finish { which, how } => {
                    let which = which % held.len().max(1);
                    if let Some(grant) = held.remove(which) {
                        dispatch.finish(grant, report(how), now);
                    }
                }
                Happening::CarryOn { which, how } => {
                    let which = which % held.len().max(1);
                    if let Some(grant) = held.remove(which) {
                        let origin = grant.origin().origin.clone();
                        if let Some(grant) = dispatch.carry_on(grant, report(how), now) {
                            requests.entry(origin).or_default().push(now);
                            held.push_back(grant);
                        }
                    }
                }
                Happening::Wait { millis } => now = now + Duration::from_millis(millis),
            }
            prop_assert_eq!(dispatch.in_flight() as usize, held.len());
            prop_assert!(held.len() <= 12);
            for tenant in ["a", "b"] {
                prop_assert!(held.iter().filter(|grant| *grant.origin().tenant == *tenant).count() <= 7);
            }
            for standing in dispatch.standings() {
                let of_it = held.iter().filter(|grant| *grant.origin() == standing.origin).count();
                prop_assert_eq!(standing.in_flight as usize, of_it);
                prop_assert!(of_it <= 5 && (1..=5).contains(&standing.width));
            }
        }
        for times in requests.values() {
            for (index, start) in times.iter().enumerate() {
                let within = times[index..].iter().filter(|time| **time < *start + Duration::from_secs(1)).count();
                prop_assert!(within <= 8, "{within} requests to one host in a second of four, with four saved up");
            }
        }
        // Everything handed back and enough time: every lane comes out once.
        held.drain(..).for_each(|grant| dispatch.finish(grant, AttemptReport::NOTHING, now));
        for _ in 0..100_000 {
            if came_out == offered {
                break;
            }
            match dispatch.next(now) {
                DispatchStep::Go(grant) => {
                    dispatch.finish(grant, FINE, now);
                    came_out += 1;
                }
                DispatchStep::Park { .. } => came_out += 1,
                DispatchStep::Wait { until } => now = until.unwrap_or(now + Duration::from_secs(60)),
            }
        }
        prop_assert_eq!(came_out, offered);
        prop_assert!(dispatch.drain().is_empty());
    }
}
