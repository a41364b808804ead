//! Random histories, on every store and on a model that is too simple to be wrong: all of them say the same.

use std::sync::Arc;

use chancery_core::{
    Append, Appended, Creation, Idempotency, ListCursor, ListFilter, LogEntry, Names, Progress, Store, Stored, SweepPlan,
    TaskRecord,
};
use chancery_protocol::{Caller, TaskState, Timestamp, Version};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::sample::{Opened, ada, at, bob, memory, piece, record, sqlite};

#[derive(Clone, Debug)]
enum Step {
    Make { id: u8, bob: bool, key: Option<u8>, name: Option<u8>, now: i64, state: TaskState, message_only: bool },
    Extend { id: u8, ahead: i8, count: u8, state: TaskState, now: i64 },
    Sweep { older_than: Option<i64>, keep: Option<u64>, at_most: u64, now: i64 },
}

fn state() -> impl Strategy<Value = TaskState> {
    prop::sample::select(TaskState::ALL.to_vec())
}

fn step() -> impl Strategy<Value = Step> {
    let few = || 0..8_u8;
    // Few ids, names and moments, so that they meet.
    let make =
        (few(), any::<bool>(), prop::option::of(0..3_u8), prop::option::of(few()), 0..20_i64, state(), prop::bool::weighted(0.1));
    let extend = (few(), prop::sample::select(vec![0_i8, 0, 0, 0, 0, 0, -1, 1]), 0..80_u8, state(), 0..20_i64);
    let sweep = (prop::option::of(0..20_i64), prop::option::of(0..6_u64), 0..5_u64, 0..20_i64);
    prop_oneof![
        4 => make.prop_map(|(id, bob, key, name, now, state, message_only)| Step::Make { id, bob, key, name, now, state, message_only }),
        8 => extend.prop_map(|(id, ahead, count, state, now)| Step::Extend { id, ahead, count, state, now }),
        1 => sweep.prop_map(|(older_than, keep, at_most, now)| Step::Sweep { older_than, keep, at_most, now }),
    ]
}

struct Kept {
    stored: Stored,
    log: Vec<Arc<LogEntry>>,
    key: Option<Idempotency>,
}

#[derive(Default)]
struct Model(Vec<Kept>);

/// What a store answers to a step. Messages of refusals may differ.
type Answer = Result<(Option<Appended>, u64), ()>;

impl Model {
    fn get(&mut self, id: &str) -> Option<&mut Kept> {
        self.0.iter_mut().find(|kept| kept.stored.task.id.as_str() == id)
    }

    fn append(&mut self, append: &Append) -> Answer {
        let recorded = Ok((Some(Appended::Recorded), 0));
        let Append { task, creation, progress, entries, link: _ } = append;
        let Some(creation) = creation else {
            let kept = self.get(task.id.as_str()).ok_or(())?;
            if progress.seq != kept.stored.progress.seq + entries.len() as u64 {
                return Err(());
            }
            kept.stored.progress = *progress;
            kept.log.extend(entries.iter().cloned());
            return recorded;
        };
        let owned = || self.0.iter().filter(|kept| kept.stored.task.owner == task.owner);
        if let Some(asked) = &creation.idempotency {
            let same =
                |kept: &&Kept| kept.key.as_ref().is_some_and(|key| key.key == asked.key && key.expires_at > task.created_at);
            if let Some(kept) = owned().find(same) {
                let fingerprint = kept.key.as_ref().unwrap().fingerprint;
                return Ok((Some(Appended::KeyKnown { task: kept.stored.task.id.clone(), fingerprint }), 0));
            }
        }
        let same = |kept: &&Kept| task.client_task_id.is_some() && kept.stored.task.client_task_id == task.client_task_id;
        if let Some(kept) = owned().find(same) {
            return Ok((Some(Appended::ClientIdKnown { task: kept.stored.task.id.clone() }), 0));
        }
        if self.get(task.id.as_str()).is_some() {
            return Err(());
        }
        for kept in self.0.iter_mut().filter(|kept| kept.stored.task.owner == task.owner) {
            kept.key.take_if(|key| creation.idempotency.as_ref().is_some_and(|asked| asked.key == key.key));
        }
        let stored = Stored { task: Arc::clone(task), progress: *progress };
        self.0.push(Kept { stored, log: entries.clone(), key: creation.idempotency.clone() });
        recorded
    }

    fn sweep(&mut self, plan: SweepPlan, now: Timestamp) -> Answer {
        for kept in &mut self.0 {
            kept.key.take_if(|key| key.expires_at <= now);
        }
        let age = |kept: &Kept| (kept.stored.progress.status_at, kept.stored.task.id.clone());
        let ended = |kept: &&Kept| kept.stored.progress.message_only || kept.stored.progress.state.is_terminal();
        let mut finished: Vec<_> = self.0.iter().filter(ended).map(age).collect();
        finished.sort();
        let too_old = finished.iter().filter(|(time, _)| plan.older_than.is_some_and(|bound| *time < bound)).count() as u64;
        let too_many = plan.keep_at_most.map_or(0, |keep| (finished.len() as u64).saturating_sub(keep));
        finished.truncate(too_old.max(too_many).min(plan.at_most) as usize);
        self.0.retain(|kept| !finished.contains(&age(kept)));
        Ok((None, finished.len() as u64))
    }

    fn listed(&self, filter: &ListFilter) -> Vec<Stored> {
        let mut found: Vec<_> = self.0.iter().map(|kept| kept.stored.clone()).collect();
        found.retain(|Stored { task, progress }| {
            !progress.message_only
                && filter.owner.as_ref().is_none_or(|owner| *owner == task.owner)
                && filter.state.is_none_or(|state| state == progress.state)
                && filter.status_at_or_after.is_none_or(|bound| bound <= progress.status_at)
        });
        found.sort_by_key(|stored| std::cmp::Reverse((stored.progress.status_at, stored.task.id.clone())));
        found
    }
}

fn owner(is_bob: bool) -> Caller {
    if is_bob { bob() } else { ada() }
}

/// The append a step means, given how far its task is.
fn append(step: &Step, model: &mut Model) -> Option<Append> {
    match *step {
        Step::Make { id, bob, key, name, now, state, message_only } => {
            let key =
                key.map(|key| Idempotency { key: format!("k{key}").into(), fingerprint: [id; 32], expires_at: at(now + 5) });
            let task = TaskRecord {
                client_task_id: name.map(|name| format!("t{name}").into()),
                dialect: [Version::V1_0, Version::V0_3, Version::Original][usize::from(id) % 3],
                created_at: at(now),
                ..record(&format!("t{id}"), owner(bob))
            };
            let progress = Progress { state, status_at: at(now), seq: 1, bytes: 10, message_only };
            let creation = Some(Creation { idempotency: key });
            Some(Append { task: Arc::new(task), creation, progress, entries: vec![piece(1)], link: None })
        }
        Step::Extend { id, ahead, count, state, now } => {
            let known = model.get(&format!("t{id}")).map(|kept| kept.stored.clone());
            let (task, seq) =
                known.map_or((Arc::new(record(&format!("t{id}"), ada())), 1), |known| (known.task, known.progress.seq));
            let seq = seq.saturating_add_signed(i64::from(ahead));
            let last = seq + u64::from(count);
            let progress = Progress { state, status_at: at(now), seq: last, bytes: last, message_only: false };
            Some(Append { task, creation: None, progress, entries: (seq + 1..=last).map(piece).collect(), link: None })
        }
        Step::Sweep { .. } => None,
    }
}

async fn agree(store: &dyn Store, model: &Model) -> Result<(), TestCaseError> {
    for number in 0..8 {
        let id = format!("t{number}");
        let kept = model.0.iter().find(|kept| kept.stored.task.id.as_str() == id);
        prop_assert_eq!(store.find_any(&id).await.unwrap(), kept.map(|kept| kept.stored.clone()));
        let log = kept.map(|kept| kept.log.clone()).unwrap_or_default();
        let half = log.len() / 2;
        prop_assert_eq!(store.entries(&id.as_str().into(), half as u64, 50).await.unwrap(), &log[half..log.len().min(half + 50)]);
        for owner in [ada(), bob()] {
            let mine = |kept: &&Kept| kept.stored.task.owner == owner;
            let by_name = |kept: &&Kept| kept.stored.task.client_task_id.as_deref() == Some(&id);
            let named = kept.filter(mine).or_else(|| model.0.iter().filter(mine).find(by_name));
            let found = store.find(&owner, &id, Names::ServerOrClient).await.unwrap();
            prop_assert_eq!(found, named.map(|kept| kept.stored.clone()));
        }
    }
    for filter in [
        ListFilter::default(),
        ListFilter { owner: Some(ada()), status_at_or_after: Some(at(4)), ..ListFilter::default() },
        ListFilter { state: Some(TaskState::Working), ..ListFilter::default() },
    ] {
        let expected = model.listed(&filter);
        let first = store.list(&filter, None, 2).await.unwrap();
        prop_assert_eq!(first.total, expected.len() as u64);
        prop_assert_eq!(&first.tasks, &expected[..expected.len().min(2)]);
        if let Some(last) = first.tasks.last() {
            let cursor = ListCursor { status_at: last.progress.status_at, id: last.task.id.clone() };
            prop_assert_eq!(store.list(&filter, Some(&cursor), 100).await.unwrap().tasks, &expected[first.tasks.len()..]);
        }
    }
    let waiting = |stored: &&Stored| {
        matches!(stored.progress.state, TaskState::Submitted | TaskState::Working) && !stored.progress.message_only
    };
    let expected = model.0.iter().map(|kept| &kept.stored).filter(waiting).count();
    prop_assert_eq!(store.unfinished().await.unwrap().len(), expected);
    Ok(())
}

async fn run(Opened { store, .. }: Opened, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut model = Model::default();
    for step in steps {
        let (answer, expected): (Answer, Answer) = match (append(&step, &mut model), &step) {
            (Some(append), _) => {
                let expected = model.append(&append);
                (store.append(append).await.map(|appended| (Some(appended), 0)).map_err(drop), expected)
            }
            (None, Step::Sweep { older_than, keep, at_most, now }) => {
                let plan = SweepPlan { older_than: older_than.map(at), keep_at_most: *keep, at_most: *at_most };
                let gone = store.sweep(plan, at(*now)).await.map(|gone| (None, gone)).map_err(drop);
                (gone, model.sweep(plan, at(*now)))
            }
            _ => continue,
        };
        prop_assert_eq!(answer, expected, "{:?}", step);
    }
    agree(&*store, &model).await
}

fn check(open: fn() -> Opened, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let histories = prop::collection::vec(step(), 0..60);
    proptest::test_runner::TestRunner::new(config)
        .run(&histories, |steps| runtime.block_on(run(open(), steps)))
        .unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn random_histories_on_the_memory_store_go_as_in_the_model() {
    check(memory, 1000);
}

#[test]
fn random_histories_on_sqlite_go_as_in_the_model() {
    check(sqlite, 80);
}
