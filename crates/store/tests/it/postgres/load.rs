//! Writes under load, and the oracle: what the database has afterwards is what was acknowledged and what is in doubt, and all of it
//! is whole.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chancery_core::{Append, Store, StoreError, StoreTrouble};
use chancery_evidence::record::types;
use chancery_protocol::TaskState;
use chancery_store::{PostgresOptions, PostgresStore};
use tokio_postgres::Client;

use crate::contract::recording::{entries, scribe, stand};
use crate::contract::sample::{at, change, decision, governed_creation, piece, pieces, spend, task};
use crate::server::session;

/// What writers know of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownTask {
    /// The last entry whose append was answered.
    pub(crate) acknowledged: u64,
    /// The last entry of appends whose answers were lost or errors.
    pub(crate) in_doubt: Vec<u64>,
}

pub(crate) type KnownTasks = BTreeMap<String, KnownTask>;

/// The last entries of the four appends of a task: one entry, one, a row that is split in two, and the end.
const STEPS: [u64; 4] = [1, 2, 80, 81];

#[derive(Debug, Default)]
pub(crate) struct LoadControl {
    pub(crate) stop: AtomicBool,
    pub(crate) acknowledged: AtomicU64,
    pub(crate) refused: AtomicU64,
}

impl LoadControl {
    /// Waits until so many more appends are acknowledged.
    pub(crate) async fn more(&self, count: u64) {
        let until = self.acknowledged.load(Ordering::SeqCst) + count;
        while self.acknowledged.load(Ordering::SeqCst) < until {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
}

fn step(id: &str, place: usize) -> Append {
    let task = task(id);
    let last = STEPS[place];
    let cost = Some(spend(last as i64, None));
    let decision = Some(decision(&format!("{id} to {last}"), Some(id)));
    match place {
        0 => Append { spend: cost, decision, ..governed_creation(&task, id, 1) },
        3 => Append { spend: cost, decision, ..change(&task, last, TaskState::Completed, at(9_000_000)) },
        _ => Append { spend: cost, decision, ..pieces(&task, STEPS[place - 1] + 1, last) },
    }
}

/// Makes tasks and carries them to their ends until it is stopped. After an error it looks what is stored, as a node does.
async fn write(store: Arc<dyn Store>, name: String, control: Arc<LoadControl>) -> KnownTasks {
    let mut known = KnownTasks::new();
    for round in 0.. {
        let id = format!("{name}-{round}");
        let mut place = 0;
        while place < STEPS.len() {
            if control.stop.load(Ordering::SeqCst) {
                return known;
            }
            let task = known.entry(id.clone()).or_default();
            match store.append(step(&id, place)).await {
                Ok(_) => {
                    control.acknowledged.fetch_add(1, Ordering::SeqCst);
                    task.acknowledged = STEPS[place];
                    place += 1;
                }
                Err(_) => {
                    control.refused.fetch_add(1, Ordering::SeqCst);
                    task.in_doubt.push(STEPS[place]);
                    let Some(stored) = look(&*store, &id, &control).await else { return known };
                    place = STEPS.iter().position(|last| *last > stored).unwrap_or(STEPS.len());
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
            }
        }
    }
    known
}

/// The last entry that is stored of a task. None when the load is stopped before anything can be read.
async fn look(store: &dyn Store, id: &str, control: &LoadControl) -> Option<u64> {
    loop {
        match store.find_any(id).await {
            Ok(found) => return Some(found.map_or(0, |stored| stored.progress.seq)),
            Err(_) if control.stop.load(Ordering::SeqCst) => return None,
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    }
}

/// Writes under load that go on until they are stopped.
pub(crate) struct Load {
    pub(crate) control: Arc<LoadControl>,
    writers: Vec<tokio::task::JoinHandle<KnownTasks>>,
}

impl Load {
    pub(crate) fn start(store: &Arc<dyn Store>, name: &str, writers: usize) -> Self {
        let control = Arc::new(LoadControl::default());
        let start = |writer| tokio::spawn(write(Arc::clone(store), format!("{name}-{writer}"), Arc::clone(&control)));
        Self { writers: (0..writers).map(start).collect(), control }
    }

    pub(crate) async fn stop(self) -> KnownTasks {
        self.control.stop.store(true, Ordering::SeqCst);
        let all = futures::future::join_all(self.writers).await;
        all.into_iter().flat_map(Result::unwrap).collect()
    }
}

pub(crate) async fn open_recording(options: PostgresOptions) -> Arc<dyn Store> {
    Arc::new(PostgresStore::open_recording(options, Some(scribe())).await.unwrap())
}

/// A caller is told to come back.
pub(crate) fn says_come_back(error: &StoreError) -> bool {
    error.trouble == StoreTrouble::Away
}

async fn number(session: &Client, sql: &str) -> i64 {
    session.query_one(sql, &[]).await.unwrap().get(0)
}

/// What is wrong with a database after a load: lost answers, half writes, numbers nobody asked for, a record that is not whole.
pub(crate) async fn faults(url: &str, known: &KnownTasks) -> Vec<String> {
    let session = session(url).await;
    let store = open_recording(PostgresOptions::at(url)).await;
    let mut faults = Vec::new();
    for (id, task) in known {
        let stored = store.find_any(id).await.unwrap().map_or(0, |stored| stored.progress.seq);
        if stored < task.acknowledged {
            faults.push(format!("{id}: entry {} was acknowledged, {stored} is stored", task.acknowledged));
        }
        if stored > task.acknowledged && !task.in_doubt.contains(&stored) {
            faults.push(format!("{id}: entry {stored} is stored, which nobody asked for: {task:?}"));
        }
        let log = store.entries(&id.as_str().into(), 0, 1000).await.unwrap();
        let whole = log.len() as u64 == stored
            && log.iter().zip(1..).all(|(entry, seq)| entry.seq == seq)
            && log.iter().filter(|entry| (2..=80).contains(&entry.seq)).all(|entry| **entry == *piece(entry.seq));
        if !whole {
            faults.push(format!("{id}: {} entries of {stored}, or others than were written", log.len()));
        }
        let cost = store.governed(&id.as_str().into()).await.unwrap().map_or(0, |governed| governed.spend.settled.tokens);
        let decided = store.decisions_of(&id.as_str().into()).await.unwrap().len();
        let steps = STEPS.iter().filter(|last| **last <= stored).count();
        if cost != stored || decided != steps {
            faults.push(format!("{id}: {stored} entries, a cost of {cost} and {decided} decisions"));
        }
    }
    let strangers = "SELECT count(*) FROM log WHERE task NOT IN (SELECT num FROM tasks)";
    let miscounted = "SELECT count(*) FROM (
            SELECT tenant, owner, agent, state, message_only, tasks FROM ended_counts
            UNION ALL SELECT tenant, owner, agent, state, message_only, -1 FROM tasks WHERE stage = 3) both_sides
        GROUP BY tenant, owner, agent, state, message_only HAVING sum(tasks) <> 0";
    if number(&session, strangers).await > 0 {
        faults.push("the log has rows of no task".into());
    }
    if session.query_opt(miscounted, &[]).await.unwrap().is_some() {
        faults.push("the counts of ended tasks differ from the tasks".into());
    }
    let tasks = number(&session, "SELECT count(*) FROM tasks").await;
    let named = known.len() as i64;
    if tasks > named {
        faults.push(format!("{tasks} tasks are stored, {named} were asked for"));
    }
    // Each entry of a log has its line in the record, and the record is one chain.
    match stand(&*store).await {
        Ok(_) => {
            let of_log = [types::REQUESTED, types::ARTIFACT, types::UPDATED];
            let lines = entries(&*store).await.into_iter().filter(|line| of_log.contains(&line.kind.as_str())).count() as i64;
            let logged = number(&session, "SELECT coalesce(sum(seq), 0)::bigint FROM tasks").await;
            if lines != logged {
                faults.push(format!("the record has {lines} entries of logs, and the logs have {logged}"));
            }
        }
        Err(fault) => faults.push(format!("the record is damaged: {fault}")),
    }
    store.close(std::time::Duration::from_secs(20)).await.unwrap();
    faults
}
