//! Stores to test and tasks to put into them.

use std::sync::Arc;

use chancery_core::budget::Amount;
use chancery_core::lineage::{AgentPath, Attribution};
use chancery_core::push::Outbox;
use chancery_core::{
    Append, Creation, Decision, Fact, Governed, Idempotency, LineageRecord, ListFilter, LogEntry, MicroUsd, Progress, Rule,
    Spend, Store, TaskRecord, Verdict,
};
use chancery_protocol::{
    Artifact, ArtifactChunk, Caller, Part, StatusChange, Task, TaskEvent, TaskState, TaskStatus, Timestamp, TraceId, Version,
};
use chancery_store::{MemoryStore, SqliteOptions, SqliteStore};
use chancery_testkit::HookedStore;
use tempfile::TempDir;

use crate::server::TestDatabase;

pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The same one.
    pub(crate) outbox: Arc<dyn Outbox>,
    /// Go when the test ends.
    _folder: Option<TempDir>,
    _database: Option<TestDatabase>,
}

pub(crate) fn memory() -> Opened {
    let store = Arc::new(MemoryStore::new());
    Opened { outbox: Arc::clone(&store) as _, store, _folder: None, _database: None }
}

pub(crate) fn sqlite() -> Opened {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path().join("chancery.db"), SqliteOptions::default()).unwrap());
    Opened { outbox: Arc::clone(&store) as _, store, _folder: Some(folder), _database: None }
}

pub(crate) async fn postgres() -> Opened {
    let database = tokio::task::spawn_blocking(TestDatabase::make).await.unwrap();
    let store = Arc::new(database.open().await);
    Opened { outbox: Arc::clone(&store) as _, store, _folder: None, _database: Some(database) }
}

/// One of several nodes that could share the database.
pub(crate) async fn member() -> Opened {
    let database = tokio::task::spawn_blocking(TestDatabase::make).await.unwrap();
    let store = Arc::new(database.join().await);
    Opened { outbox: Arc::clone(&store) as _, store, _folder: None, _database: Some(database) }
}

/// The wrapper that other tests hook into: it has to hand every call on as it is.
pub(crate) fn hooked() -> Opened {
    let store = Arc::new(MemoryStore::new());
    Opened { outbox: Arc::clone(&store) as _, store: Arc::new(HookedStore::around(store)), _folder: None, _database: None }
}

/// Runs each of the named functions as a test of its own on each store.
macro_rules! on_every_store {
    ($($name:ident),* $(,)?) => {
        mod hooked {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::contract::sample::hooked()).await;
            })*
        }
        mod member {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::contract::sample::member().await).await;
            })*
        }
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::contract::sample::memory()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::contract::sample::postgres().await).await;
            })*
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::contract::sample::sqlite()).await;
            })*
        }
    };
}
pub(crate) use on_every_store;

pub(crate) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

pub(crate) fn ada() -> Caller {
    Caller::new("acme", "ada")
}

pub(crate) fn bob() -> Caller {
    Caller::new("acme", "bob")
}

pub(crate) fn record(id: &str, owner: Caller) -> TaskRecord {
    TaskRecord {
        id: id.into(),
        context_id: format!("context of {id}").into(),
        agent: "echo".into(),
        owner,
        dialect: Version::V1_0.into(),
        client_task_id: None,
        created_at: at(1_000),
    }
}

pub(crate) fn task(id: &str) -> Arc<TaskRecord> {
    Arc::new(record(id, ada()))
}

fn progress(state: TaskState, status_at: Timestamp, seq: u64) -> Progress {
    Progress { state, status_at, seq, bytes: seq * 100, message_only: false }
}

/// An entry that can be told from its neighbours.
pub(crate) fn piece(seq: u64) -> Arc<LogEntry> {
    let artifact = Arc::new(Artifact::new("a", vec![Part::text(format!("piece {seq} \u{2013} \"quoted\""))]));
    let event = TaskEvent::Artifact(ArtifactChunk {
        artifact,
        append: seq > 2,
        last_chunk: false,
        metadata: None,
        unknown: Default::default(),
    });
    Arc::new(LogEntry { seq, at: at(1_000_000 + seq as i64), event })
}

/// Makes the task, submitted, with one entry.
pub(crate) fn creation(task: &Arc<TaskRecord>) -> Append {
    let status = TaskStatus { state: TaskState::Submitted, message: None, timestamp: None, unknown: Default::default() };
    let made = Task {
        id: task.id.clone(),
        context_id: task.context_id.clone(),
        status,
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        unknown: Default::default(),
    };
    Append {
        task: Arc::clone(task),
        creation: Some(Creation::default()),
        progress: progress(TaskState::Submitted, task.created_at, 1),
        entries: vec![Arc::new(LogEntry { seq: 1, at: task.created_at, event: TaskEvent::Created(Arc::new(made)) })],
        link: None,
        governed: None,
        spend: None,
        decision: None,
        register: None,
        notes: Vec::new(),
        answers: None,
    }
}

pub(crate) fn creation_with_key(task: &Arc<TaskRecord>, key: &str, fingerprint: u8, expires_at: Timestamp) -> Append {
    let idempotency = Idempotency { key: key.into(), fingerprint: [fingerprint; 32], expires_at };
    Append { creation: Some(Creation { idempotency: Some(idempotency) }), ..creation(task) }
}

/// Entry `seq`, which brings the task into a state.
pub(crate) fn change(task: &Arc<TaskRecord>, seq: u64, state: TaskState, status_at: Timestamp) -> Append {
    let status = TaskStatus { state, message: None, timestamp: None, unknown: Default::default() };
    let event = TaskEvent::Status(StatusChange { status, metadata: None, unknown: Default::default() });
    Append {
        task: Arc::clone(task),
        creation: None,
        progress: progress(state, status_at, seq),
        entries: vec![Arc::new(LogEntry { seq, at: status_at, event })],
        link: None,
        governed: None,
        spend: None,
        decision: None,
        register: None,
        notes: Vec::new(),
        answers: None,
    }
}

/// Entries `first` to `last` while the task works.
pub(crate) fn pieces(task: &Arc<TaskRecord>, first: u64, last: u64) -> Append {
    Append {
        task: Arc::clone(task),
        creation: None,
        progress: progress(TaskState::Working, at(2_000), last),
        entries: (first..=last).map(piece).collect(),
        link: None,
        governed: None,
        spend: None,
        decision: None,
        register: None,
        notes: Vec::new(),
        answers: None,
    }
}

/// So much money, as many tokens, and one task.
pub(crate) fn spend(amount: i64, settled_at: Option<i64>) -> Spend {
    let settled = Amount::of_task(MicroUsd(amount), amount as u64);
    Spend { settled, settled_at: settled_at.map(at), ..Spend::default() }
}

/// The place of a task in the tree of a root, with the root's trace id.
pub(crate) fn governed(task: &TaskRecord, root: &str, trace: u128) -> Governed {
    let is_root = task.id.as_str() == root;
    let kinship = LineageRecord {
        root: root.into(),
        trace: TraceId(trace),
        made: false,
        parent: (!is_root).then(|| root.into()),
        depth: u32::from(!is_root),
        path: AgentPath::new(["caller/ada".into(), "planner".into()]),
        attribution: if is_root { Attribution::Root } else { Attribution::Inferred },
        claimed: None,
        skill: Some("summarize".into()),
        allowance: None,
    };
    let verdict = Verdict { rule: Rule::Budget, passed: true, facts: vec![("left".into(), Fact::Number(7))] };
    Governed { kinship: Arc::new(kinship), spend: Spend::default(), verdicts: [verdict].into() }
}

/// Makes the task in the tree of a root.
pub(crate) fn governed_creation(task: &Arc<TaskRecord>, root: &str, trace: u128) -> Append {
    Append { governed: Some(Box::new(governed(task, root, trace))), ..creation(task) }
}

pub(crate) fn decision(id: &str, task: Option<&str>) -> Arc<Decision> {
    let refusal = Verdict { rule: Rule::Recursion, passed: false, facts: vec![("path".into(), Fact::text("A \u{2192} B"))] };
    Arc::new(Decision {
        id: id.into(),
        at: at(5),
        tenant: "acme".into(),
        caller: "ada".into(),
        agent: "echo".into(),
        task: task.map(Into::into),
        root: Some("r".into()),
        trace: Some(TraceId(1)),
        refused: task.is_none().then(|| "RECURSION_DEPTH".into()),
        verdicts: vec![refusal],
    })
}

/// A task that was made and is in this state since then.
pub(crate) async fn put(store: &dyn Store, record: TaskRecord, state: TaskState, status_at: Timestamp) {
    let task = Arc::new(record);
    store.append(creation(&task)).await.unwrap();
    store.append(change(&task, 2, state, status_at)).await.unwrap();
}

pub(crate) async fn completed(store: &dyn Store, id: &str, status_at: i64) {
    put(store, record(id, ada()), TaskState::Completed, at(status_at)).await;
}

/// The ids of all listed tasks of all owners, in list order.
pub(crate) async fn listed_ids(store: &dyn Store) -> Vec<String> {
    let listed = store.list(&ListFilter::default(), None, 1_000_000).await.unwrap();
    assert_eq!(listed.total, listed.tasks.len() as u64);
    listed.tasks.iter().map(|stored| stored.task.id.to_string()).collect()
}
