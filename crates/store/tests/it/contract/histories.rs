//! Random histories, on every store and on a model: all of them say the same.

use std::sync::Arc;

use chancery_core::{
    Append, Creation, Decision, ExpiryPlan, Idempotency, ListCursor, ListFilter, Names, Progress, Store, Stored, SweepPlan,
    TaskRecord,
};
use chancery_protocol::{Caller, Dialect, TaskState, TraceId};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::contract::model::{Answer, Kept, Model};
use crate::contract::sample::{Opened, ada, at, bob, decision, governed, memory, piece, postgres, record, spend, sqlite};

#[derive(Clone, Debug)]
enum Step {
    Make {
        id: u8,
        bob: bool,
        key: Option<u8>,
        name: Option<u8>,
        now: i64,
        state: TaskState,
        message_only: bool,
        ledger: InLedger,
    },
    Extend {
        id: u8,
        ahead: i8,
        count: u8,
        state: TaskState,
        now: i64,
        cost: Option<i64>,
        decision: Option<u8>,
    },
    Settle {
        id: u8,
        cost: i64,
    },
    Decide {
        id: u8,
        task: Option<u8>,
    },
    Sweep {
        older_than: Option<i64>,
        keep: Option<u64>,
        at_most: u64,
        now: i64,
        spent_since: Option<i64>,
        keep_decisions: Option<u64>,
    },
}

/// The number of the root, if the task is governed, and what the task cost, if that is said.
type InLedger = (Option<u8>, Option<i64>);

fn state() -> impl Strategy<Value = TaskState> {
    prop::sample::select(TaskState::ALL.to_vec())
}

fn step() -> impl Strategy<Value = Step> {
    let few = || 0..8_u8;
    let cost = || 0..20_i64;
    let ledger = (prop::option::weighted(0.8, few()), prop::option::of(cost()));
    // Few ids, names and moments, so that they meet.
    let make = (
        (few(), any::<bool>(), prop::option::of(0..3_u8), prop::option::of(few())),
        (0..20_i64, state(), prop::bool::weighted(0.1), ledger),
    );
    let ahead = prop::sample::select(vec![0_i8, 0, 0, 0, 0, 0, -1, 1]);
    let extend = (few(), ahead, 0..80_u8, state(), 0..20_i64, prop::option::of(cost()), prop::option::of(few()));
    let settle = (few(), cost());
    let decide = (few(), prop::option::of(few()));
    let sweep = (
        (prop::option::of(0..20_i64), prop::option::of(0..6_u64), 0..5_u64, 0..20_i64),
        (prop::option::weighted(0.9, cost()), prop::option::of(0..4_u64)),
    );
    prop_oneof![
        8 => make.prop_map(|((id, bob, key, name), (now, state, message_only, ledger))| Step::Make {
            id, bob, key, name, now, state, message_only, ledger
        }),
        16 => extend.prop_map(|(id, ahead, count, state, now, cost, decision)| Step::Extend {
            id, ahead, count, state, now, cost, decision
        }),
        3 => settle.prop_map(|(id, cost)| Step::Settle { id, cost }),
        2 => decide.prop_map(|(id, task)| Step::Decide { id, task }),
        3 => sweep.prop_map(|((older_than, keep, at_most, now), (spent_since, keep_decisions))| Step::Sweep {
            older_than, keep, at_most, now, spent_since, keep_decisions
        }),
    ]
}

/// Moments of spending: about three to a second.
fn spent_at(cost: i64) -> i64 {
    cost * 300_000
}

fn owner(is_bob: bool) -> Caller {
    if is_bob { bob() } else { ada() }
}

/// The append a step means, given how far its task is.
fn append(step: &Step, model: &mut Model) -> Option<Append> {
    match *step {
        Step::Make { id, bob, key, name, now, state, message_only, ledger: (root, cost) } => {
            let key =
                key.map(|key| Idempotency { key: format!("k{key}").into(), fingerprint: [id; 32], expires_at: at(now + 5) });
            let task = TaskRecord {
                client_task_id: name.map(|name| format!("t{name}").into()),
                dialect: Dialect::ALL[usize::from(id) % Dialect::ALL.len()],
                created_at: at(now),
                ..record(&format!("t{id}"), owner(bob))
            };
            let progress = Progress { state, status_at: at(now), seq: 1, bytes: 10, message_only };
            let creation = Some(Creation { idempotency: key });
            let governed = root.map(|root| Box::new(governed(&task, &format!("t{root}"), u128::from(root % 3))));
            let spend = cost.map(|cost| spend(cost, Some(spent_at(cost))));
            let (task, entries) = (Arc::new(task), vec![piece(1)]);
            Some(Append {
                task,
                creation,
                progress,
                entries,
                link: None,
                governed,
                spend,
                decision: None,
                register: None,
                notes: Vec::new(),
                answers: None,
            })
        }
        Step::Extend { id, ahead, count, state, now, cost, decision: decided } => {
            let known = model.get(&format!("t{id}")).map(|kept| kept.stored.clone());
            let (task, seq) =
                known.map_or((Arc::new(record(&format!("t{id}"), ada())), 1), |known| (known.task, known.progress.seq));
            let seq = seq.saturating_add_signed(i64::from(ahead));
            let last = seq + u64::from(count);
            let progress = Progress { state, status_at: at(now), seq: last, bytes: last, message_only: false };
            let spend = cost.map(|cost| spend(cost, (cost % 4 > 0).then(|| spent_at(cost))));
            let decision = decided.map(|number| decision(&format!("d{number}"), Some(task.id.as_str())));
            let entries = (seq + 1..=last).map(piece).collect();
            Some(Append {
                task,
                creation: None,
                progress,
                entries,
                link: None,
                governed: None,
                spend,
                decision,
                register: None,
                notes: Vec::new(),
                answers: None,
            })
        }
        Step::Settle { .. } | Step::Decide { .. } | Step::Sweep { .. } => None,
    }
}

async fn agree(store: &dyn Store, model: &Model) -> Result<(), TestCaseError> {
    for number in 0..8 {
        let id = format!("t{number}");
        let kept = model.tasks.iter().find(|kept| kept.stored.task.id.as_str() == id);
        prop_assert_eq!(store.find_any(&id).await.unwrap(), kept.map(|kept| kept.stored.clone()));
        let log = kept.map(|kept| kept.log.clone()).unwrap_or_default();
        let half = log.len() / 2;
        prop_assert_eq!(store.entries(&id.as_str().into(), half as u64, 50).await.unwrap(), &log[half..log.len().min(half + 50)]);
        prop_assert_eq!(store.governed(&id.as_str().into()).await.unwrap(), kept.and_then(|kept| kept.governed.clone()));
        let tree = model.rows(|row| row.governed.kinship.root.as_str() == id);
        prop_assert_eq!(store.tree(&id.as_str().into()).await.unwrap(), tree);
        let about_it = |decision: &&Arc<Decision>| decision.task.as_ref().is_some_and(|task| task.as_str() == id);
        let decided: Vec<_> = model.decisions.iter().filter(about_it).map(|decision| Decision::clone(decision)).collect();
        prop_assert_eq!(store.decisions_of(&id.as_str().into()).await.unwrap(), decided);
        for owner in [ada(), bob()] {
            let mine = |kept: &&Kept| kept.stored.task.owner == owner;
            let by_name = |kept: &&Kept| kept.stored.task.client_task_id.as_deref() == Some(&id);
            let named = kept.filter(mine).or_else(|| model.tasks.iter().filter(mine).find(by_name));
            let found = store.find(&owner, &id, Names::ServerOrClient).await.unwrap();
            prop_assert_eq!(found, named.map(|kept| kept.stored.clone()));
        }
    }
    for owner in [ada(), bob()] {
        for (key, now) in (0..3).flat_map(|number| [0, 10, 20].map(|now| (format!("k{number}"), at(now)))) {
            let known = model.key(&owner, &key, now).map(|(task, known)| (task.clone(), known.fingerprint));
            let keyed = store.keyed(&owner, &key, now).await.unwrap();
            prop_assert_eq!(keyed.map(|keyed| (keyed.task, keyed.fingerprint)), known);
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
    for trace in [0, 1, 2].map(TraceId) {
        let roots = model.rows(|row| row.governed.kinship.trace == trace && row.governed.kinship.root == row.task);
        let ids: Vec<_> = roots.into_iter().map(|row| row.task).collect();
        prop_assert_eq!(store.roots(trace).await.unwrap(), ids);
    }
    for since in [0, 10, spent_at(5), spent_at(12)].map(at) {
        prop_assert_eq!(store.ledger(since).await.unwrap(), model.ledger(since));
    }
    let newest: Vec<_> = model.decisions.iter().rev().map(|decision| Decision::clone(decision)).collect();
    prop_assert_eq!(store.decisions(100).await.unwrap(), newest);
    let waiting = |stored: &&Stored| {
        matches!(stored.progress.state, TaskState::Submitted | TaskState::Working) && !stored.progress.message_only
    };
    let expected = model.tasks.iter().map(|kept| &kept.stored).filter(waiting).count();
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
            (None, Step::Settle { id, cost }) => {
                let (task, cost) = (format!("t{id}"), spend(*cost, Some(spent_at(*cost))));
                let counted = model.get(&task).filter(|kept| kept.governed.is_some()).map(|kept| kept.settle(Some(cost)));
                let settled = store.settle(&task.as_str().into(), cost).await;
                (settled.map(|()| (None, 0)).map_err(drop), counted.map(|()| (None, 0)).ok_or(()))
            }
            (None, Step::Decide { id, task }) => {
                let decision = decision(&format!("d{id}"), task.map(|task| format!("t{task}")).as_deref());
                model.decide(Some(&decision));
                (store.decide(decision).await.map(|()| (None, 0)).map_err(drop), Ok((None, 0)))
            }
            (None, Step::Sweep { older_than, keep, at_most, now, spent_since, keep_decisions }) => {
                let plan = SweepPlan {
                    older_than: older_than.map(at),
                    keep_at_most: *keep,
                    keep_bytes: None,
                    at_most: *at_most,
                    spent_since: spent_since.map(|since| at(spent_at(since))),
                    keep_decisions: *keep_decisions,
                };
                let expiry = ExpiryPlan { now: at(*now), at_most: 100 };
                prop_assert!(!store.expire(expiry).await.unwrap());
                model.expire(at(*now));
                let gone = store.sweep(plan).await.map(|gone| (None, gone)).map_err(drop);
                (gone, model.sweep(plan))
            }
            _ => continue,
        };
        prop_assert_eq!(answer, expected, "{:?}", step);
    }
    agree(&*store, &model).await
}

fn check<O: Future<Output = Opened>>(open: impl Fn() -> O, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let histories = prop::collection::vec(step(), 0..60);
    proptest::test_runner::TestRunner::new(config)
        .run(&histories, |steps| runtime.block_on(async { run(open().await, steps).await }))
        .unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn random_histories_on_the_memory_store_go_as_in_the_model() {
    check(async || memory(), 1000);
}

#[test]
fn random_histories_on_sqlite_go_as_in_the_model() {
    check(async || sqlite(), 80);
}

#[test]
fn random_histories_on_postgresql_go_as_in_the_model() {
    check(postgres, 40);
}
