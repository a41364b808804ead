//! Measures both stores: tasks that are made and completed (two appends each) per second, by number of callers.
//!
//! Rows that say `governed` also keep how each task was governed and what it cost, as the service does.
//!
//! `cargo run --release -p chancery-store --example store_bench -- [seconds] [only rows that start so] [folder]`
//!
//! A fixed number of sends on SQLite, with the record on and retention at work, for tools that count instructions:
//!
//! `cargo run --release -p chancery-store --example store_bench -- sends [callers] [sends]`
#![allow(clippy::disallowed_methods, reason = "a benchmark starts its callers itself")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chancery_core::budget::Amount;
use chancery_core::budget::{ActualSource, EstimateSource};
use chancery_core::lineage::{AgentPath, Attribution};
use chancery_core::{
    Append, Creation, Fact, Governed, LineageRecord, LogEntry, MicroUsd, Progress, Rule, Spend, Store, StoreError, SweepPlan,
    TaskRecord, Verdict,
};
use chancery_evidence::record::{EvidenceConfig, Recorder};
use chancery_identity::{Algorithm, KeyRing, KeyUse};
use chancery_protocol::{
    Artifact, ArtifactChunk, Caller, Message, Part, Role, StatusChange, Task, TaskEvent, TaskState, TaskStatus, Timestamp,
    TraceId, Version,
};
use chancery_store::{MemoryStore, SqliteOptions, SqliteStore, Synchronous};
use uuid::Uuid;

const KEPT: u64 = 50_000;
const SWEEP_EVERY: u64 = 500;

/// Of a run with a fixed number of sends, so that most of its tasks are deleted again.
const KEPT_OF_FEW: u64 = 1_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|first| first == "sends").is_some() {
        let mut number = |usual| arguments.next().map_or(Ok(usual), |text| text.parse());
        return fixed_sends(number(1)?, number(5_000)?).await;
    }
    let seconds: u64 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let wanted = arguments.next().unwrap_or_default();
    let folder = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::tempdir_in(folder)?;

    println(format_args!(
        "{:<26} {:>10} {:>10} {:>10} {:>10} {:>14}",
        "store and callers", "tasks/s", "appends/s", "p50 us", "p99 us", "cpu us/append"
    ));
    for callers in [1, 64, 256] {
        let name = format!("memory {callers}");
        if name.starts_with(&wanted) {
            measure(&name, Arc::new(MemoryStore::new()), callers, seconds, false).await?;
            measure(&format!("{name} governed"), Arc::new(MemoryStore::new()), callers, seconds, true).await?;
        }
    }
    for synchronous in [Synchronous::Full, Synchronous::Normal] {
        for callers in [1, 64, 256] {
            for governed in [false, true] {
                let name = format!("sqlite {synchronous:?} {callers}{}", if governed { " governed" } else { "" });
                if name.starts_with(&wanted) {
                    let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
                    let store = SqliteStore::open(folder.path().join(&name), options)?;
                    measure(&name, Arc::new(store), callers, seconds, governed).await?;
                }
            }
        }
    }
    Ok(())
}

async fn measure(
    name: &str,
    store: Arc<dyn Store>,
    callers: usize,
    seconds: u64,
    governed: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let (start, cpu_before) = (Instant::now(), cpu_seconds());
    let end = start + Duration::from_secs(seconds);
    let tasks = (0..callers).map(|_| tokio::spawn(call_until(Arc::clone(&store), end, governed)));
    let mut times = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        times.extend(task.await?.map_err(|error| error.to_string())?);
    }
    let elapsed = start.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu_before;
    store.close(Duration::from_secs(10)).await?;
    times.sort_unstable();
    let rank = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    let rate = times.len() as f64 / elapsed;
    println(format_args!(
        "{name:<26} {:>10.0} {rate:>10.0} {:>10.1} {:>10.1} {:>14.1}",
        rate / 2.0,
        rank(0.5),
        rank(0.99),
        cpu * 1e6 / times.len() as f64
    ));
    Ok(())
}

/// As many sends as asked for, as a node with its defaults writes them.
async fn fixed_sends(callers: u64, sends: u64) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let recorder = Recorder::new(&EvidenceConfig::default());
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::Receipts, None, Algorithm::EdDsa, now())?;
    recorder.take_keys(&ring, now());
    let path = folder.path().join("chancery.db");
    let store = Arc::new(SqliteStore::open_recording(path, SqliteOptions::default(), Some(Arc::new(recorder)))?);
    let (left, cpu_before) = (Arc::new(AtomicU64::new(sends)), cpu_seconds());
    let tasks = (0..callers).map(|_| tokio::spawn(send_some(Arc::clone(&store), Arc::clone(&left))));
    for task in tasks.collect::<Vec<_>>() {
        task.await??;
    }
    store.close(Duration::from_secs(60)).await?;
    println(format_args!("{:.1} cpu us/send", (cpu_seconds() - cpu_before) * 1e6 / sends as f64));
    Ok(())
}

async fn send_some(store: Arc<SqliteStore>, left: Arc<AtomicU64>) -> Result<(), StoreError> {
    while let Ok(rest) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
        let [mut made_it, mut completed_it] = appends();
        let governed = governed(&made_it.task);
        // A node without prices counts tasks alone.
        let one = Amount::of_task(MicroUsd(0), 0);
        completed_it.spend = Some(Spend { settled: one, settled_at: Some(now()), ..Spend::default() });
        made_it.governed = Some(Box::new(Governed { spend: Spend { reserved: one, ..Spend::default() }, ..governed }));
        store.append(made_it).await?;
        store.append(completed_it).await?;
        if rest % SWEEP_EVERY == 0 {
            let plan = SweepPlan {
                keep_at_most: Some(KEPT_OF_FEW),
                at_most: SWEEP_EVERY,
                spent_since: Some(Timestamp::from_micros(0)),
                keep_decisions: Some(100_000),
                ..SweepPlan::default()
            };
            store.sweep(plan).await?;
        }
    }
    Ok(())
}

/// Times of single appends.
async fn call_until(store: Arc<dyn Store>, end: Instant, is_governed: bool) -> Result<Vec<Duration>, chancery_core::StoreError> {
    let mut times = Vec::new();
    let mut made = 0;
    while Instant::now() < end {
        let [mut made_it, mut completed_it] = appends();
        if is_governed {
            let governed = governed(&made_it.task);
            completed_it.spend = Some(Spend { reserved: Amount::default(), settled_at: Some(now()), ..governed.spend });
            made_it.governed = Some(Box::new(governed));
        }
        for append in [made_it, completed_it] {
            let asked = Instant::now();
            store.append(append).await?;
            times.push(asked.elapsed());
        }
        made += 1;
        if made % SWEEP_EVERY == 0 {
            let plan = SweepPlan { keep_at_most: Some(KEPT), at_most: 4 * SWEEP_EVERY, ..SweepPlan::default() };
            store.sweep(plan).await?;
        }
        // A store that answers at once must not keep the other callers waiting.
        tokio::task::yield_now().await;
    }
    Ok(times)
}

/// What all threads of this process have used, in the kernel's hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

#[expect(clippy::disallowed_methods, reason = "nothing here is a test that moves time")]
fn now() -> Timestamp {
    let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(elapsed.as_micros() as i64)
}

/// What a short blocking call leaves: the task with the caller's message, then work, an artifact and the end.
fn appends() -> [Append; 2] {
    let at = now();
    let record = Arc::new(TaskRecord {
        id: Uuid::now_v7().to_string().into(),
        context_id: Uuid::now_v7().to_string().into(),
        agent: "echo".into(),
        owner: Caller::new("default", "anonymous"),
        dialect: Version::V1_0.into(),
        client_task_id: None,
        created_at: at,
    });
    let text = "Please repeat what I say, word by word, and nothing else than that. ".repeat(3);
    let message = Arc::new(Message::text(Role::User, Uuid::now_v7().to_string(), text.clone()));
    let status = |state| TaskStatus { state, message: None, timestamp: Some(at), unknown: Default::default() };
    let made = Task {
        id: record.id.clone(),
        context_id: record.context_id.clone(),
        status: status(TaskState::Submitted),
        artifacts: Vec::new(),
        history: vec![message],
        metadata: None,
        unknown: Default::default(),
    };
    let artifact = Arc::new(Artifact::new(Uuid::now_v7().to_string(), vec![Part::text(text)]));
    let events = [
        TaskEvent::Created(Arc::new(made)),
        TaskEvent::Status(StatusChange { status: status(TaskState::Working), metadata: None, unknown: Default::default() }),
        TaskEvent::Artifact(ArtifactChunk {
            artifact,
            append: false,
            last_chunk: true,
            metadata: None,
            unknown: Default::default(),
        }),
        TaskEvent::Status(StatusChange { status: status(TaskState::Completed), metadata: None, unknown: Default::default() }),
    ];
    let mut entries: Vec<_> = events.into_iter().zip(1..).map(|(event, seq)| Arc::new(LogEntry { seq, at, event })).collect();
    let rest = entries.split_off(1);
    let progress = |state, seq| Progress { state, status_at: at, seq, bytes: seq * 300, message_only: false };
    [
        Append {
            task: Arc::clone(&record),
            creation: Some(Creation::default()),
            progress: progress(TaskState::Submitted, 1),
            entries,
            link: None,
            governed: None,
            spend: None,
            decision: None,
            register: None,
            notes: Vec::new(),
            answers: None,
        },
        Append {
            task: record,
            creation: None,
            progress: progress(TaskState::Completed, 4),
            entries: rest,
            link: None,
            governed: None,
            spend: None,
            decision: None,
            register: None,
            notes: Vec::new(),
            answers: None,
        },
    ]
}

/// What the rules say to a call that nothing led to.
fn governed(task: &TaskRecord) -> Governed {
    let kinship = LineageRecord {
        root: task.id.clone(),
        trace: TraceId(Uuid::now_v7().as_u128().wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)),
        made: false,
        parent: None,
        depth: 0,
        path: AgentPath::new(["caller/anonymous".into()]),
        attribution: Attribution::Root,
        claimed: None,
        skill: Some("repeat".into()),
        allowance: None,
    };
    let facts = |rule| match rule {
        Rule::Budget => vec![("scope".into(), Fact::text("tenant/default")), ("left".into(), Fact::Usd(MicroUsd(48_210_000)))],
        Rule::Recursion => vec![("depth".into(), Fact::Number(0))],
        Rule::Policy => vec![("running".into(), Fact::Number(3))],
        _ => Vec::new(),
    };
    let rules = [Rule::Lineage, Rule::Freeze, Rule::Budget, Rule::Recursion, Rule::Selector, Rule::Policy];
    let verdicts = rules.map(|rule| Verdict { rule, passed: true, facts: facts(rule) });
    let cost = Amount::of_task(MicroUsd(2_000), 812);
    let spend = Spend {
        reserved: cost,
        settled: cost,
        estimated_by: EstimateSource::Config,
        known_by: Some(ActualSource::Reported),
        ..Spend::default()
    };
    Governed { kinship: Arc::new(kinship), spend, verdicts: verdicts.into() }
}

#[expect(clippy::print_stdout, reason = "the figures are what this program is for")]
fn println(line: std::fmt::Arguments<'_>) {
    println!("{line}");
}
