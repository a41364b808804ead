//! What becomes of a notification is in the record with the step that settles it, and nothing else is.

use std::any::Any;
use std::sync::Arc;

use chancery_core::push::{
    DeadFilter, DeadReason, DisableReason, Lane, LaneAction, LaneSettlement, LaneStep, Outbox, ReplayStep, Span,
};
use chancery_core::{Delivered, Store};
use chancery_evidence::record::types;
use chancery_protocol::Timestamp;
use chancery_store::{MemoryStore, PostgresStore, SqliteOptions, SqliteStore};
use serde_json::{Value, json};

use super::{LEASE, ack, claim, letter, step, told_creation};
use crate::contract::recording::{entries, scribe, stand};
use crate::contract::sample::{at, pieces, task};
use crate::server::TestDatabase;

fn delivered(lane: &Lane, given_up: Option<&str>, now: Timestamp) -> Option<Box<Delivered>> {
    let head = lane.cursor.head;
    Some(Box::new(Delivered {
        task: lane.registration.task.clone(),
        config: lane.registration.id.as_str().into(),
        lane: lane.number(),
        webhook_id: format!("msg_{head}").into(),
        from: head,
        seq: head,
        attempts: 1,
        status: Some(if given_up.is_some() { 404 } else { 204 }),
        given_up: given_up.map(Into::into),
        replay: false,
        sha256: [7; 32],
        bytes: 2,
        at: now,
    }))
}

fn taken(lane: &Lane, now: Timestamp) -> LaneStep {
    LaneStep { delivered: delivered(lane, None, now), ..ack(lane, lane.cursor.head, now) }
}

fn rejected(lane: &Lane, now: Timestamp) -> LaneStep {
    let span = Span::single(lane.cursor.head);
    let reject = LaneAction::Reject { span, reason: DeadReason::Rejected, unauthorized: false, disable: None, keep: None };
    LaneStep { dead: Some(letter(lane, now)), delivered: delivered(lane, Some("rejected"), now), ..step(lane, reject, now) }
}

/// What the record says of deliveries.
async fn told(store: &dyn Store) -> Vec<Value> {
    let all = entries(store).await.into_iter();
    all.filter(|entry| entry.kind == types::DELIVERED).map(|entry| entry.data).collect()
}

/// Each store with what goes when its test ends.
async fn stores() -> Vec<(Arc<dyn Store>, Arc<dyn Outbox>, Box<dyn Any>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chancery.db");
    let sqlite = Arc::new(SqliteStore::open_recording(path, SqliteOptions::default(), Some(scribe())).unwrap());
    let memory = Arc::new(MemoryStore::recording(scribe()));
    let database = tokio::task::spawn_blocking(TestDatabase::make).await.unwrap();
    let postgres = Arc::new(PostgresStore::open_recording(database.patient(), Some(scribe())).await.unwrap());
    vec![
        (sqlite.clone(), sqlite, Box::new(folder)),
        (memory.clone(), memory, Box::new(())),
        (postgres.clone(), postgres, Box::new(database)),
    ]
}

#[tokio::test]
async fn what_was_taken_and_what_was_given_up_is_recorded_with_its_step() {
    for (store, outbox, _folder) in stores().await {
        let task = task("t1");
        store.append(told_creation(&task, false)).await.unwrap();
        store.append(pieces(&task, 2, 4)).await.unwrap();
        let lane = claim(&*outbox, at(2_000_000)).await.remove(0);
        let retry = LaneAction::Retry { span: Span::single(1), next_at: at(2_000_001) };
        outbox.settle_lanes(vec![step(&lane, retry, at(2_000_001))]).await.unwrap();
        assert!(told(&*store).await.is_empty(), "what is tried again is not yet decided");

        let lane = claim(&*outbox, at(2_000_002)).await.remove(0);
        outbox.settle_lanes(vec![taken(&lane, at(2_000_003))]).await.unwrap();
        let said = told(&*store).await;
        let expected = json!({
            "attempts": 1, "bytes": 2, "config": "w", "from": 1, "lane": lane.number(), "replay": false, "seq": 1,
            "sha256": "07".repeat(32), "status": 204, "task": "t1", "webhook": "msg_1",
        });
        assert_eq!(said, [expected]);

        let lane = claim(&*outbox, at(2_000_004)).await.remove(0);
        outbox.settle_lanes(vec![rejected(&lane, at(2_000_005))]).await.unwrap();
        // The task goes on while the last one is given up: what came since is not part of that.
        let lane = claim(&*outbox, at(2_000_006)).await.remove(0);
        store.append(pieces(&task, 5, 6)).await.unwrap();
        let give_up = LaneAction::GiveUp { reason: DisableReason::Exhausted, to: lane.cursor.tail };
        let now = at(2_000_007);
        let given_up = LaneStep {
            dead: Some(letter(&lane, now)),
            delivered: delivered(&lane, Some("exhausted"), now),
            ..step(&lane, give_up, now)
        };
        outbox.settle_lanes(vec![given_up]).await.unwrap();
        let said = told(&*store).await;
        let spans: Vec<_> = said.iter().map(|one| (&one["from"], &one["seq"], &one["given_up"])).collect();
        assert_eq!(
            spans[1..],
            [(&json!(2), &json!(2), &json!("rejected")), (&json!(3), &json!(4), &json!("exhausted"))],
            "{said:?}"
        );
        stand(&*store).await.unwrap();
    }
}

#[tokio::test]
async fn whoever_is_too_late_says_nothing_for_the_record() {
    for (store, outbox, _folder) in stores().await {
        store.append(told_creation(&task("t1"), false)).await.unwrap();
        let zombie = claim(&*outbox, at(10_000)).await.remove(0);
        let holder = claim(&*outbox, at(10_000) + LEASE).await.remove(0);
        let late = at(10_001) + LEASE;
        let settled = outbox.settle_lanes(vec![taken(&zombie, late), rejected(&holder, late), taken(&holder, late)]);
        let settled = settled.await.unwrap();
        assert!(
            matches!(settled[..], [LaneSettlement::Fenced, LaneSettlement::Done { .. }, LaneSettlement::Fenced]),
            "{settled:?}"
        );
        let said = told(&*store).await;
        assert_eq!((said.len(), &said[0]["given_up"]), (1, &json!("rejected")));
    }
}

#[tokio::test]
async fn a_letter_that_is_put_to_its_receiver_again_is_recorded_again() {
    for (store, outbox, _folder) in stores().await {
        for id in ["t1", "t2"] {
            store.append(told_creation(&task(id), false)).await.unwrap();
            let lane = claim(&*outbox, at(10_000)).await.remove(0);
            outbox.settle_lanes(vec![rejected(&lane, at(10_001))]).await.unwrap();
        }
        outbox.replay(&DeadFilter::default(), false, at(500_000), 0, 10).await.unwrap();
        let replays = outbox.claim_replays(at(500_000), LEASE, 10).await.unwrap();
        let step = |place: usize, taken: bool, epoch: u64| {
            let dead = &replays[place].letter;
            let again = Delivered {
                task: dead.task.clone(),
                config: "w".into(),
                lane: dead.lane,
                webhook_id: dead.webhook_id.clone(),
                from: dead.from,
                seq: dead.to,
                attempts: 2,
                status: Some(if taken { 200 } else { 500 }),
                given_up: (!taken).then(|| "rejected".into()),
                replay: true,
                sha256: [7; 32],
                bytes: 2,
                at: at(600_000),
            };
            let delivered = Some(Box::new(again));
            ReplayStep { letter: dead.id, epoch, taken, at: at(600_000), http: None, error: None, delivered }
        };
        let (first, second) = (replays[0].epoch, replays[1].epoch);
        outbox.settle_replays(vec![step(0, true, first), step(1, true, second - 1), step(1, false, second)]).await.unwrap();
        let said = told(&*store).await;
        let again: Vec<_> = said[2..].iter().map(|one| (&one["task"], &one["status"], &one["replay"])).collect();
        assert_eq!(again, [(&json!("t1"), &json!(200), &json!(true)), (&json!("t2"), &json!(500), &json!(true))]);
    }
}
