//! Random histories of lanes: both stores say the same after each step, and no lane ever breaks its own rules.

use std::collections::HashMap;

use chancery_core::push::{
    ClockSet, DeadReason, DisableReason, Lane, LaneAction, LaneFilter, LaneSweep, Outbox, Registered, Span, StateChange,
    WebhookOrigin,
};
use chancery_core::{Append, Store, SweepPlan};
use chancery_protocol::{TaskState, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::{LEASE, letter, new, step};
use crate::contract::sample::{Opened, at, change, creation, memory, pieces, postgres, sqlite, task};

#[derive(Clone, Debug)]
enum Move {
    Make { task: u8, told: Option<(u8, bool)>, now: i64 },
    Extend { task: u8, count: u64, now: i64 },
    End { task: u8, now: i64 },
    Register { task: u8, id: u8, origin: u8, now: i64 },
    Unregister { task: u8, id: u8 },
    Claim { now: i64, most: usize, per_origin: usize, except: Option<u8> },
    Settle { held: usize, how: u8, now: i64 },
    Park { origin: u8, until: i64 },
    Change { origin: Option<u8>, how: u8, now: i64 },
    Sweep { tasks: bool, before: i64 },
    Withdraw { task: u8 },
    SetClock { was: i64, is: i64 },
}

fn moves() -> impl Strategy<Value = Move> {
    let (task, id, origin, now) = (0..4_u8, 0..3_u8, 0..3_u8, 0..60_000_000_i64);
    prop_oneof![
        3 => (task.clone(), prop::option::of((origin.clone(), any::<bool>())), now.clone())
            .prop_map(|(task, told, now)| Move::Make { task, told, now }),
        4 => (task.clone(), 1..4_u64, now.clone()).prop_map(|(task, count, now)| Move::Extend { task, count, now }),
        1 => (task.clone(), now.clone()).prop_map(|(task, now)| Move::End { task, now }),
        4 => (task.clone(), id.clone(), origin.clone(), now.clone())
            .prop_map(|(task, id, origin, now)| Move::Register { task, id, origin, now }),
        1 => (task.clone(), id).prop_map(|(task, id)| Move::Unregister { task, id }),
        6 => (now.clone(), 1..5_usize, 1..3_usize, prop::option::of(origin.clone()))
            .prop_map(|(now, most, per_origin, except)| Move::Claim { now, most, per_origin, except }),
        8 => (0..4_usize, 0..9_u8, now.clone()).prop_map(|(held, how, now)| Move::Settle { held, how, now }),
        1 => (origin.clone(), now.clone()).prop_map(|(origin, until)| Move::Park { origin, until }),
        2 => (prop::option::of(origin), 0..4_u8, now.clone())
            .prop_map(|(origin, how, now)| Move::Change { origin, how, now }),
        1 => (now.clone(), now.clone()).prop_map(|(was, is)| Move::SetClock { was, is }),
        1 => (any::<bool>(), now).prop_map(|(tasks, before)| Move::Sweep { tasks, before }),
        1 => task.prop_map(|task| Move::Withdraw { task }),
    ]
}

fn origin_name(origin: u8) -> String {
    format!("https://o{origin}:443")
}

fn origin(number: u8) -> WebhookOrigin {
    WebhookOrigin { tenant: "acme".into(), origin: origin_name(number).into() }
}

/// One store and what was claimed from it, with its numbers counted from where it began.
struct Side {
    opened: Opened,
    first: u64,
    held: Vec<Lane>,
    /// The highest epoch and head that each lane has shown.
    seen: HashMap<u64, (u64, u64)>,
}

impl Side {
    async fn new(opened: Opened) -> Self {
        // The first lane of all says where the numbers begin.
        let probe = task("probe");
        opened.store.append(creation(&probe)).await.unwrap();
        let Registered::Kept { lane, .. } = opened.outbox.register(new(&probe, "w", "https://p:443")).await.unwrap() else {
            panic!()
        };
        opened.outbox.unregister(&probe.id, "w").await.unwrap();
        Self { opened, first: lane, held: Vec::new(), seen: HashMap::new() }
    }

    fn known(&self, mut lane: Lane) -> Lane {
        std::sync::Arc::make_mut(&mut lane.registration).lane -= self.first;
        lane
    }

    /// What came of it, as text that must be the same on both sides.
    async fn go(&mut self, next: &Move) -> String {
        let (store, outbox) = (std::sync::Arc::clone(&self.opened.store), std::sync::Arc::clone(&self.opened.outbox));
        let (store, outbox): (&dyn Store, &dyn Outbox) = (&*store, &*outbox);
        let named = |number: &u8| task(&format!("t{number}"));
        match next {
            Move::Make { task, told, now } => {
                let task = named(task);
                let register = told.map(|(origin, held)| {
                    let mut register = new(&task, "w0", &origin_name(origin));
                    (register.held, register.registration.created_at) = (held, at(*now));
                    Box::new(register)
                });
                format!("{:?}", store.append(Append { register, ..creation(&task) }).await.map_err(drop))
            }
            Move::Extend { task, count, now } => {
                let Some(stored) = store.find_any(&format!("t{task}")).await.unwrap() else { return String::new() };
                if stored.progress.state.is_terminal() {
                    return String::new();
                }
                let seq = stored.progress.seq;
                let mut append = pieces(&named(task), seq + 1, seq + count);
                append.entries.iter_mut().for_each(|entry| std::sync::Arc::make_mut(entry).at = at(*now));
                format!("{:?}", store.append(append).await.unwrap())
            }
            Move::End { task, now } => {
                let Some(stored) = store.find_any(&format!("t{task}")).await.unwrap() else { return String::new() };
                let end = change(&named(task), stored.progress.seq + 1, TaskState::Completed, at(*now));
                format!("{:?}", store.append(end).await.unwrap())
            }
            Move::Register { task, id, origin, now } => {
                let mut register = new(&named(task), &format!("w{id}"), &origin_name(*origin));
                register.registration.created_at = at(*now);
                register.limits.per_task = 2;
                match outbox.register(register).await.unwrap() {
                    Registered::Kept { lane, replaced } => format!("kept {} {replaced}", lane - self.first),
                    refused => format!("{refused:?}"),
                }
            }
            Move::Unregister { task, id } => {
                let gone = outbox.unregister(&named(task).id, &format!("w{id}")).await.unwrap();
                format!("{:?}", gone.map(|lane| lane - self.first))
            }
            Move::Claim { now, most, per_origin, except } => {
                let except: Vec<_> = except.map(origin).into_iter().collect();
                let claimed = outbox.claim(at(*now), LEASE, *most, *per_origin, &except).await.unwrap();
                self.held.extend(claimed.iter().cloned());
                let claimed: Vec<_> = claimed.into_iter().map(|lane| self.known(lane)).collect();
                format!("{claimed:#?}")
            }
            Move::Settle { held, how, now } => {
                let Some(lane) = self.held.get(*held).cloned() else { return String::new() };
                let span = lane.cursor.span.unwrap_or(Span::single(lane.cursor.head));
                let settled = outbox.settle_lanes(vec![settle(&lane, span, *how, at(*now))]).await.unwrap();
                if *how != 1 {
                    self.held.remove(*held);
                }
                format!("{settled:?}")
            }
            Move::Park { origin: number, until } => {
                outbox.park(&origin(*number), at(*until)).await.unwrap();
                String::new()
            }
            Move::Change { origin, how, now } => {
                let filter = LaneFilter { origin: origin.map(|origin| origin_name(origin).into()), ..LaneFilter::default() };
                let how = [StateChange::Pause, StateChange::Resume, StateChange::Disable, StateChange::Enable][usize::from(*how)];
                let changed = outbox.change_state(&filter, how, at(*now), 0, 3).await.unwrap();
                format!("{:?}", changed.iter().map(|(lane, state)| (lane - self.first, *state)).collect::<Vec<_>>())
            }
            Move::Sweep { tasks: true, before } => {
                let plan = SweepPlan { older_than: Some(at(*before)), at_most: 2, ..SweepPlan::default() };
                format!("{:?}", store.sweep(plan).await.unwrap())
            }
            Move::Sweep { tasks: false, before } => {
                let before = at(*before);
                let plan = LaneSweep { drained_before: before, dead_before: before, receipts_before: before, at_most: 100 };
                format!("{:?}", outbox.sweep_lanes(plan).await.unwrap())
            }
            Move::SetClock { was, is } => {
                outbox.clock_set(ClockSet { was: at(*was), is: at(*is) }).await.unwrap();
                String::new()
            }
            Move::Withdraw { task } => format!("{:?}", store.withdraw(&named(task).id, None).await.unwrap()),
        }
    }

    /// Everything there is, counted from where this store began. Looks after each lane on the way.
    async fn picture(&mut self) -> Result<String, TestCaseError> {
        let outbox = &self.opened.outbox;
        let lanes = outbox.lanes(&LaneFilter::default(), 0, 1000).await.unwrap().lanes;
        for lane in &lanes {
            let cursor = lane.cursor;
            let seen = self.seen.entry(lane.number()).or_default();
            prop_assert!(cursor.head <= cursor.tail + 1, "{:?}", lane);
            prop_assert!(cursor.epoch >= seen.0, "{:?}", lane);
            *seen = (cursor.epoch, cursor.head);
        }
        let lanes: Vec<_> = lanes.into_iter().map(|lane| self.known(lane)).collect();
        let dead = outbox.dead_letters(&Default::default(), 0, 1000).await.unwrap().letters;
        let dead: Vec<_> = dead.iter().map(|letter| (letter.lane - self.first, letter.from, letter.to)).collect();
        let due = outbox.next_due(&[]).await.unwrap();
        let without = outbox.next_due(&[origin(0), origin(2)]).await.unwrap();
        let load = outbox.outbox_load().await.unwrap();
        Ok(format!("{lanes:#?} {dead:?} {due:?} {without:?} {load:?}"))
    }
}

fn settle(lane: &Lane, span: Span, how: u8, now: Timestamp) -> chancery_core::push::LaneStep {
    let later = Timestamp::from_micros(now.micros() + 1_000_000);
    let moved = match how {
        0 => LaneAction::Ack { span, keep: None },
        1 => LaneAction::Ack { span, keep: Some(now + LEASE) },
        2 => LaneAction::Retry { span, next_at: later },
        3 => LaneAction::Reject { span, reason: DeadReason::Rejected, unauthorized: true, disable: None, keep: None },
        4 => LaneAction::Park { next_at: later },
        5 => LaneAction::GiveUp { reason: DisableReason::Exhausted, to: lane.cursor.tail },
        6 => LaneAction::Gone { to: lane.cursor.tail },
        7 => LaneAction::Skip { to: lane.cursor.tail, keep: None },
        _ => LaneAction::Release { span: Some(span), next_at: now },
    };
    let dead = matches!(how, 3 | 5 | 6).then(|| letter(lane, now));
    chancery_core::push::LaneStep { dead, ..step(lane, moved, now) }
}

async fn run(history: Vec<Move>, other: Opened) -> Result<(), TestCaseError> {
    let mut sides = [Side::new(memory()).await, Side::new(other).await];
    for next in &history {
        let answers = [sides[0].go(next).await, sides[1].go(next).await];
        prop_assert_eq!(&answers[0], &answers[1], "{:?}", next);
        let pictures = [sides[0].picture().await?, sides[1].picture().await?];
        prop_assert_eq!(&pictures[0], &pictures[1], "after {:?}", next);
    }
    Ok(())
}

fn check<O: Future<Output = Opened>>(open: impl Fn() -> O, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    proptest::test_runner::TestRunner::new(config)
        .run(&prop::collection::vec(moves(), 0..60), |history| runtime.block_on(async { run(history, open().await).await }))
        .unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn random_histories_of_lanes_go_alike_in_memory_and_on_sqlite() {
    check(async || sqlite(), 60);
}

#[test]
fn random_histories_of_lanes_go_alike_in_memory_and_on_postgresql() {
    check(postgres, 20);
}
