//! How long a claim, a settlement and an append take while very many lanes wait: `cargo run --release -p chancery-store --example lanes_bench 1000000`.

#![expect(clippy::print_stdout, reason = "a bench says what it found")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use chancery_core::push::{
    LaneAction, LaneStep, NewRegistration, Outbox, PushEvents, PushProfile, Registration, RegistrationId, RegistrationLimits,
    Span,
};
use chancery_core::{Append, Creation, LogEntry, Progress, Store, TaskRecord};
use chancery_protocol::{Caller, Message, Role, TaskEvent, TaskState, Timestamp, TraceId, Version};
use chancery_store::{SqliteOptions, SqliteStore};

const ORIGINS: u64 = 1_000;
const LEASE: Duration = Duration::from_secs(20);

/// As many tasks with a lane each, all due, spread over the origins. Written by hand, because making them one by one takes longer
/// than what is to be measured.
fn fill(path: &std::path::Path, lanes: u64) {
    let connection = rusqlite::Connection::open(path).expect("the database");
    let numbers = format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {lanes})");
    let sql = format!(
        "BEGIN;
         INSERT INTO push_origins (num, tenant, origin, lanes, parked_until, due_at)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ORIGINS})
             SELECT i, 'acme', 'https://o' || i || ':443', {lanes} / {ORIGINS}, 0, i FROM n;
         INSERT INTO push_tenants VALUES ('acme', {lanes});
         INSERT INTO tasks (num, id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes, message_only,
                            stage, lanes)
             {numbers} SELECT i, 't' || i, 'c', 'echo', 'acme', 'ada', '1.0', 1, 2, 1, 3, 9, 0, 1, 1 FROM n;
         INSERT INTO registrations (lane, id, version, profile, events, url, created_at, trace)
             {numbers} SELECT i, 'w', '1.0', 'v1', 'all', 'https://o/hook', 1, zeroblob(16) FROM n;
         INSERT INTO lanes (lane, task, origin, state, head, tail, attempt, refusals, next_at, epoch, lease_until, due_at, tries)
             {numbers} SELECT i, i, 1 + i % {ORIGINS}, 1, 1, 3, 0, 0, i, 0, 0, i, 0 FROM n;
         COMMIT;"
    );
    connection.execute_batch(&sql).expect("rows");
}

fn say(what: &str, mut taken: Vec<Duration>) {
    taken.sort_unstable();
    let at = |share: f64| taken[((taken.len() - 1) as f64 * share) as usize];
    println!("{what}: p50 {:?}, p99 {:?}, most {:?} ({} times)", at(0.5), at(0.99), at(1.0), taken.len());
}

fn told(number: u64) -> Append {
    let task = Arc::new(TaskRecord {
        id: format!("new-{number}").into(),
        context_id: "c".into(),
        agent: "echo".into(),
        owner: Caller::new("acme", "ada"),
        dialect: Version::V1_0.into(),
        client_task_id: None,
        created_at: Timestamp::from_micros(1),
    });
    let registration = Registration {
        lane: 0,
        task: task.id.clone(),
        id: RegistrationId::new("w"),
        owner: task.owner.clone(),
        agent: task.agent.clone(),
        version: Version::V1_0,
        profile: PushProfile::V1,
        events: PushEvents::All,
        url: "https://o/hook".into(),
        origin: "https://o1:443".into(),
        scheme: None,
        sealed: None,
        created_at: Timestamp::from_micros(1),
        trace: TraceId(1),
    };
    let limits = RegistrationLimits { per_task: 10, per_tenant: usize::MAX >> 2 };
    let said = TaskEvent::Said(Arc::new(Message::text(Role::User, "m", "x")));
    Append {
        task,
        creation: Some(Creation::default()),
        progress: Progress {
            state: TaskState::Submitted,
            status_at: Timestamp::from_micros(1),
            seq: 1,
            bytes: 9,
            message_only: false,
        },
        entries: vec![Arc::new(LogEntry { seq: 1, at: Timestamp::from_micros(1), event: said })],
        link: None,
        governed: None,
        spend: None,
        decision: None,
        register: Some(Box::new(NewRegistration { registration, limits, held: false, snapshot: false })),
        notes: Vec::new(),
        answers: None,
    }
}

#[tokio::main]
async fn main() {
    let lanes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("chancery.db");
    drop(SqliteStore::open(&path, SqliteOptions::default()).expect("a new store"));
    fill(&path, lanes);
    let store = SqliteStore::open(&path, SqliteOptions::default()).expect("the store");
    let (mut claims, mut settles, mut appends, mut delivered) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let began = Instant::now();
    for round in 0..200_u64 {
        let now = Timestamp::from_micros(1_000_000_000 + round.cast_signed());
        let at = Instant::now();
        let claimed = store.claim(now, LEASE, 64, 8, &[]).await.expect("a claim");
        claims.push(at.elapsed());
        assert_eq!(claimed.len(), 64);
        let step = |lane: &chancery_core::push::Lane| LaneStep {
            lane: lane.number(),
            epoch: lane.cursor.epoch,
            step: LaneAction::Ack { span: Span::single(lane.cursor.head), keep: None },
            now,
            attempt: None,
            dead: None,
            receipt: None,
            delivered: None,
        };
        let at = Instant::now();
        delivered += store.settle_lanes(claimed.iter().map(step).collect()).await.expect("a settlement").len();
        settles.push(at.elapsed());
        let at = Instant::now();
        store.append(told(round)).await.expect("an append");
        appends.push(at.elapsed());
    }
    println!("{lanes} lanes of {ORIGINS} origins waiting; {delivered} delivered in {:?}", began.elapsed());
    say("claim of 64", claims);
    say("settlement of 64", settles);
    say("append that makes a task with a webhook", appends);
}
