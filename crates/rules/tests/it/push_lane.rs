//! F16: however workers die, freeze and come back, however receivers answer and operators meddle: a lane loses nothing, keeps the order,
//! never sends other bytes under the same id, and moves for its newest holder only.

use std::collections::HashMap;
use std::time::Duration;

use chancery_protocol::{ArtifactId, Timestamp};
use chancery_rules::push::{
    AttemptAnswer, Bounds, Cursor, DeadReason, DisableReason, FailClass, Fenced, LaneAction, LaneClaim, LaneState, Latitude,
    Pending, RetryPatience, Schedule, Span, SpanKind, TriedAttempt, after, judge, next_span, park,
};
use proptest::prelude::*;

const LEASE: Duration = Duration::from_secs(20);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn keep(now: Timestamp) -> Option<Timestamp> {
    Some(now + LEASE)
}

#[test]
fn a_lane_is_claimed_by_one_and_moves_for_the_newest_holder_only() {
    let mut lane = Cursor::new(0, 2, at(1));
    let first = lane.claim(at(1), LEASE).unwrap();
    assert_eq!(lane.claim(at(20), LEASE), None, "it is held");
    let second = lane.claim(at(21), LEASE).unwrap();
    assert_eq!(second, LaneClaim { epoch: 2, head: 1, span: Some(Span::single(1)) }, "the first holder may have sent it");
    assert_eq!(lane.settle(first.epoch, LaneAction::Ack { span: Span::single(1), keep: None }, at(22)), Err(Fenced));
    assert_eq!(lane.head, 1);
    assert!(lane.settle(second.epoch, LaneAction::Ack { span: Span::single(1), keep: keep(at(23)) }, at(23)).unwrap().goes_on);
    assert!(!lane.settle(second.epoch, LaneAction::Ack { span: Span::single(2), keep: keep(at(24)) }, at(24)).unwrap().goes_on);
    assert_eq!((lane.head, lane.is_held()), (3, false), "nothing is left, so nothing is held");
    assert_eq!(lane.settle(second.epoch, LaneAction::Ack { span: Span::single(3), keep: None }, at(25)), Err(Fenced));
}

#[test]
fn a_lane_that_waits_to_try_again_is_not_woken_by_more_to_send() {
    let mut lane = Cursor::new(0, 1, at(1));
    let claim = lane.claim(at(1), LEASE).unwrap();
    lane.settle(claim.epoch, LaneAction::Retry { span: Span::single(1), next_at: at(100) }, at(2)).unwrap();
    lane.append(2, at(3));
    assert!(!lane.is_due(at(99)) && lane.is_due(at(100)));
    assert_eq!(lane.claim(at(100), LEASE).unwrap().span, Some(Span::single(1)));
    lane.settle(2, LaneAction::Ack { span: Span::single(1), keep: None }, at(101)).unwrap();
    assert!(lane.is_due(at(101)), "and goes on as soon as it is through");
    assert_eq!((lane.attempt, lane.first_fail_at), (0, None));
}

#[test]
fn a_pause_lets_what_is_under_way_end_and_resuming_goes_on_where_it_was() {
    let mut lane = Cursor::new(0, 3, at(1));
    let claim = lane.claim(at(1), LEASE).unwrap();
    assert!(lane.pause() && !lane.pause());
    let change = lane.settle(claim.epoch, LaneAction::Ack { span: Span::single(1), keep: keep(at(2)) }, at(2)).unwrap();
    assert!(!change.goes_on && lane.claim(at(3), LEASE).is_none());
    lane.append(4, at(4));
    assert!(lane.resume(at(5)) && !lane.resume(at(5)));
    assert_eq!(lane.claim(at(5), LEASE).unwrap().head, 2);
    assert_eq!(lane.tail, 4, "what was appended meanwhile is not lost");
}

#[test]
fn what_was_stopped_on_the_way_is_sent_again_as_it_was() {
    let mut lane = Cursor::new(0, 300, at(1));
    let claim = lane.claim(at(1), LEASE).unwrap();
    lane.settle(claim.epoch, LaneAction::Release { span: Some(Span::single(1)), next_at: at(1) }, at(1)).unwrap();
    assert_eq!(lane.claim(at(1), LEASE).unwrap().span, Some(Span::single(1)), "it may have arrived");
    let mut lane = Cursor::new(0, 300, at(1));
    let claim = lane.claim(at(1), LEASE).unwrap();
    lane.settle(claim.epoch, LaneAction::Park { next_at: at(2) }, at(1)).unwrap();
    assert_eq!(lane.claim(at(2), LEASE).unwrap().span, None, "this one was never sent");
}

#[test]
fn a_receiver_that_is_gone_gets_nothing_more_and_what_is_pending_is_kept_as_dead() {
    let mut lane = Cursor::new(0, 5, at(1));
    let claim = lane.claim(at(1), LEASE).unwrap();
    let dead = lane.settle(claim.epoch, LaneAction::Gone { to: 5 }, at(1)).unwrap().dead.unwrap();
    assert_eq!((dead.from, dead.to, dead.reason, lane.state), (1, 5, DeadReason::Gone, LaneState::Gone));
    lane.append(6, at(2));
    assert!(!lane.is_due(at(99)) && !lane.pause() && !lane.resume(at(2)) && !lane.disable());
    assert!(lane.enable(at(3)), "unless an operator knows better");
    assert_eq!(lane.claim(at(3), LEASE).unwrap().span, Some(Span::snapshot(6)));
}

#[test]
fn turning_a_lane_on_again_sends_the_task_as_it_is_first() {
    let mut lane = Cursor::new(0, 5, at(1));
    let claim = lane.claim(at(1), LEASE).unwrap();
    let dead =
        lane.settle(claim.epoch, LaneAction::GiveUp { reason: DisableReason::Exhausted, to: 5 }, at(1)).unwrap().dead.unwrap();
    assert_eq!((dead.from, dead.to, dead.reason), (1, 5, DeadReason::Exhausted));
    lane.append(7, at(2));
    assert_eq!(lane.claim(at(3), LEASE), None);
    assert!(lane.enable(at(4)) && !lane.enable(at(4)));
    let claim = lane.claim(at(4), LEASE).unwrap();
    assert_eq!(claim.span, Some(Span::snapshot(7)));
    lane.settle(claim.epoch, LaneAction::Ack { span: Span::snapshot(7), keep: None }, at(4)).unwrap();
    assert_eq!((lane.head, lane.state), (8, LaneState::Active));

    let mut drained = lane;
    assert!(drained.disable() && drained.enable(at(5)));
    assert_eq!(drained.claim(at(5), LEASE).unwrap().span, Some(Span::snapshot(7)), "also if nothing was pending");
    let mut empty = Cursor::new(0, 0, at(1));
    assert!(empty.disable() && empty.enable(at(2)));
    assert_eq!(empty.claim(at(2), LEASE), None, "but not of a log without entries");
}

#[test]
fn nothing_moves_a_deleted_lane() {
    let mut lane = Cursor::new(0, 5, at(1));
    let claim = lane.claim(at(1), LEASE).unwrap();
    assert!(lane.delete() && !lane.delete());
    assert_eq!(lane.settle(claim.epoch, LaneAction::Ack { span: Span::single(1), keep: None }, at(2)), Err(Fenced));
    lane.append(6, at(2));
    assert!(!lane.enable(at(3)) && lane.claim(at(99), LEASE).is_none());
    assert_eq!((lane.head, lane.tail), (1, 5));
}

/// One thing that happens. Numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Append {
        more: u8,
        of_artifact: bool,
    },
    Claim {
        worker: usize,
    },
    /// The worker sends the head and gets this answer; it hears of it unless it dies.
    Send {
        worker: usize,
        answer: u8,
        arrives: bool,
        dies: bool,
    },
    /// The worker settles what it last heard, perhaps long after somebody else took over.
    Settle {
        worker: usize,
        goes_on: bool,
    },
    Park {
        worker: usize,
    },
    Die {
        worker: usize,
    },
    /// The only process that there is ends and begins anew: nobody waits for leases of the one before.
    Restart,
    Wait {
        seconds: u16,
    },
    Operator {
        what: u8,
    },
}

fn happening() -> impl Strategy<Value = Happening> {
    let worker = 0..3_usize;
    prop_oneof![
        4 => (1..9_u8, any::<bool>()).prop_map(|(more, of_artifact)| Happening::Append { more, of_artifact }),
        6 => worker.clone().prop_map(|worker| Happening::Claim { worker }),
        8 => (worker.clone(), any::<u8>(), any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(worker, answer, arrives, dies)| Happening::Send { worker, answer, arrives, dies }),
        8 => (worker.clone(), any::<bool>()).prop_map(|(worker, goes_on)| Happening::Settle { worker, goes_on }),
        1 => worker.clone().prop_map(|worker| Happening::Park { worker }),
        1 => worker.prop_map(|worker| Happening::Die { worker }),
        1 => Just(Happening::Restart),
        3 => (0..90_u16).prop_map(|seconds| Happening::Wait { seconds }),
        1 => any::<u8>().prop_map(|what| Happening::Operator { what }),
    ]
}

#[derive(Clone, Copy, Default)]
struct Worker {
    held: Option<(LaneClaim, Timestamp)>,
    heard: Option<(Span, AttemptAnswer)>,
}

/// The lane, its workers, the receiver and what each of them has seen.
struct World {
    now: Timestamp,
    lane: Cursor,
    /// Which entries are pieces that continue the one before.
    log: Vec<bool>,
    workers: [Worker; 3],
    bounds: Bounds,
    patience: RetryPatience,
    /// What arrived: by id (span), from which entry on. The same id must always be the same range.
    ids: HashMap<Span, u64>,
    /// Entry after the last one the receiver knows, by acknowledged or unacknowledged deliveries, in order.
    received: u64,
    /// Entry after the last one that was given up or acknowledged.
    accounted: u64,
    reenabled: bool,
}

impl World {
    fn new(schedule: Schedule) -> Self {
        let now = at(1_000);
        Self {
            now,
            lane: Cursor::new(0, 0, now),
            log: Vec::new(),
            workers: Default::default(),
            bounds: Bounds { backlog_events: 3, ..Bounds::default() },
            patience: RetryPatience { schedule, ..RetryPatience::default() },
            ids: HashMap::new(),
            received: 1,
            accounted: 1,
            reenabled: false,
        }
    }

    fn happen(&mut self, happening: Happening) {
        let (head, state) = (self.lane.head, self.lane.state);
        match happening {
            Happening::Append { more, of_artifact } => {
                self.log.extend((0..more).map(|_| of_artifact));
                self.lane.append(self.log.len() as u64, self.now);
            }
            Happening::Claim { worker } => self.claim(worker),
            Happening::Send { worker, answer, arrives, dies } => self.send(worker, answer, arrives, dies),
            Happening::Settle { worker, goes_on } => self.settle(worker, goes_on),
            Happening::Park { worker } => self.park(worker),
            Happening::Die { worker } => self.workers[worker] = Worker::default(),
            Happening::Restart => {
                self.workers = Default::default();
                self.lane.orphan();
            }
            Happening::Wait { seconds } => self.now = self.now + Duration::from_secs(seconds.into()),
            Happening::Operator { what } => self.operate(what),
        }
        assert!(self.lane.head <= self.lane.tail + 1, "{:?}", self.lane);
        let back = self.lane.head < head;
        assert!(!back || state != LaneState::Active, "an active lane never goes back");
        let holders = self.workers.iter().filter(|worker| worker.held.is_some_and(|(claim, _)| claim.epoch == self.lane.epoch));
        assert!(holders.count() <= 1, "two hold the newest epoch");
    }

    fn claim(&mut self, worker: usize) {
        if let Some(claim) = self.lane.claim(self.now, LEASE) {
            assert_eq!(self.lane.state, LaneState::Active);
            self.workers[worker] = Worker { held: Some((claim, self.now + LEASE)), heard: None };
        }
    }

    /// What this claim is to send, as an engine would decide it.
    fn span(&self, claim: LaneClaim) -> Option<Span> {
        if let Some(span) = claim.span {
            return Some(span);
        }
        let artifact = ArtifactId::from("a");
        let pending = (claim.head..=self.lane.tail).map(|seq| Pending {
            seq,
            bytes: 1,
            piece: self.log[seq as usize - 1].then_some((&artifact, true)),
        });
        next_span(&self.bounds, self.lane.tail, pending)
    }

    fn send(&mut self, worker: usize, answer: u8, arrives: bool, dies: bool) {
        let Some((claim, until)) = self.workers[worker].held else { return };
        // Before each request a worker looks at its own lease.
        if self.now >= until || self.workers[worker].heard.is_some() || self.lane.epoch != claim.epoch {
            return;
        }
        let Some(span) = self.span(claim) else { return };
        if span.kind != SpanKind::Single && claim.span.is_none() {
            let pinned = self.lane.settle(claim.epoch, LaneAction::Pin { span, keep: until }, self.now);
            if !pinned.is_ok_and(|change| change.goes_on) {
                self.workers[worker] = Worker::default();
                return;
            }
        }
        let answer = match answer % 16 {
            0..=5 => AttemptAnswer::Answered { status: 200, retry_after: None },
            6 => AttemptAnswer::Cancelled,
            7..=9 => AttemptAnswer::Answered { status: 503, retry_after: None },
            10 => AttemptAnswer::Answered { status: 422, retry_after: None },
            11 => AttemptAnswer::Answered { status: 401, retry_after: None },
            12 => AttemptAnswer::Answered { status: if self.reenabled { 200 } else { 410 }, retry_after: None },
            13 => AttemptAnswer::Cancelled,
            14 => AttemptAnswer::Blocked,
            _ => AttemptAnswer::Failed(FailClass::Timeout),
        };
        let taken = matches!(answer, AttemptAnswer::Answered { status: 200, .. });
        if taken || (arrives && matches!(answer, AttemptAnswer::Failed(_) | AttemptAnswer::Cancelled)) {
            self.arrive(claim.head, span);
        }
        self.workers[worker].heard = Some((span, answer));
        if dies {
            self.workers[worker] = Worker::default();
        }
    }

    /// The receiver drops what it knows already, and must never miss anything in between.
    fn arrive(&mut self, from: u64, span: Span) {
        let before = self.ids.insert(span, from);
        if span.kind != SpanKind::Snapshot {
            assert!(before.is_none_or(|known| known == from), "the same id {span:?} for other bytes");
            assert!(before.is_some() || from >= self.received, "{from} arrived a second time, under another id");
            let dead_between = self.accounted.max(self.received);
            assert!(from <= dead_between, "{from} arrived, but only what is before {dead_between} is known or was given up");
        }
        // A snapshot holds everything before it; what comes twice changes nothing.
        self.received = self.received.max(span.to + 1);
    }

    fn settle(&mut self, worker: usize, goes_on: bool) {
        let Worker { held: Some((claim, _)), heard: Some((span, answer)) } = self.workers[worker] else { return };
        let judged = judge(answer, Latitude::default());
        let tried = TriedAttempt { span, oldest: self.now, keep: keep(self.now).filter(|_| goes_on), random: 1 << 63 };
        let step = after(judged.verdict, tried, &self.lane, &self.patience, self.now);
        let before = self.lane;
        let settled = self.lane.settle(claim.epoch, step, self.now);
        assert!(settled.is_err() || claim.epoch == before.epoch, "somebody else has it by now");
        match settled {
            Err(Fenced) => {
                assert_eq!(self.lane, before, "a fenced step changes nothing");
                self.workers[worker] = Worker::default();
            }
            Ok(change) => {
                if let Some(dead) = change.dead {
                    assert_eq!((dead.from, dead.to >= dead.from), (before.head, true));
                }
                let delivered = matches!(step, LaneAction::Ack { .. });
                assert!(!delivered || self.received > span.to, "acknowledged without having arrived");
                assert!(delivered || change.dead.is_some() || self.lane.head == before.head, "lost: {step:?}");
                self.accounted = self.accounted.max(self.lane.head);
                let next = change.goes_on.then_some((LaneClaim { head: self.lane.head, span: None, ..claim }, self.now + LEASE));
                self.workers[worker] = Worker { held: next, heard: None };
            }
        }
    }

    fn park(&mut self, worker: usize) {
        let Worker { held: Some((claim, _)), heard: None } = self.workers[worker] else { return };
        let attempt = self.lane.attempt;
        let step = park(&self.lane, self.now + Duration::from_secs(30), self.now, &self.patience, self.now);
        let _ = self.lane.settle(claim.epoch, step, self.now);
        assert!(self.lane.attempt == attempt || self.lane.attempt == 0, "waiting for an origin costs no attempt");
        self.workers[worker] = Worker::default();
    }

    fn operate(&mut self, what: u8) {
        match what % 4 {
            0 => drop(self.lane.pause()),
            1 => drop(self.lane.resume(self.now)),
            2 => drop(self.lane.disable()),
            _ => {
                if self.lane.enable(self.now) {
                    self.reenabled = true;
                    // The snapshot holds whatever the lane had not delivered.
                    self.accounted = self.accounted.max(self.lane.head);
                }
            }
        }
    }

    /// Everything heals: the lane must come to its end, and the receiver must know all of it.
    fn heal(&mut self) {
        self.workers = Default::default();
        self.now = self.now + Duration::from_secs(3 * 86_400);
        let _ = self.lane.resume(self.now) || self.lane.enable(self.now);
        self.accounted = self.accounted.max(self.lane.head);
        for _ in 0..=2 * self.log.len() + 2 {
            if !self.lane.is_pending() {
                break;
            }
            self.happen(Happening::Claim { worker: 0 });
            self.happen(Happening::Send { worker: 0, answer: 0, arrives: true, dies: false });
            self.happen(Happening::Settle { worker: 0, goes_on: false });
        }
        assert!(!self.lane.is_pending(), "it never came to its end: {:?}", self.lane);
        assert_eq!(self.lane.head, self.log.len() as u64 + 1);
    }
}

fn cases() -> u32 {
    if std::env::var_os("CHANCERY_SOAK").is_some() { 1_000_000 } else { 500 }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn no_schedule_loses_an_entry_breaks_the_order_or_lets_two_move_one_lane(
        happenings in prop::collection::vec(happening(), 1..120),
        attempts in 1..6_u64,
    ) {
        let mut world = World::new(Schedule::new((0..attempts).map(|step| step * 10).collect()).unwrap());
        for happening in happenings {
            world.happen(happening);
        }
        world.heal();
    }
}
