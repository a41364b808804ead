//! Seeded schedules of callers, cancels, readers and a store that is slow and fails, with invariants after each.

use std::sync::Arc;

use async_trait::async_trait;
use chancery_core::{Answer, Chancery, Finished, NextEvents, RunError, TaskLimits, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{
    Artifact, CallContext, CancelTask, ErrorKind, Message, Part, Reply, Request, Role, SendConfiguration, SendMessage, Sent,
    SubscribeToTask, TaskEvent, TaskId, TaskState,
};
use chancery_store::MemoryStore;
use chancery_testkit::{FaultPlan, HookedStore, call_context};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// Emits as many pieces as it is told, yielding now and then, and ends in one of several ways.
struct RandomPieces;

#[async_trait]
impl TaskRunner for RandomPieces {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let mut script = turn.message.first_text().unwrap_or_default().split(' ');
        let pieces: usize = script.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        for piece in 0..pieces {
            updates.chunk(Artifact::new("a", vec![Part::text(format!("{piece};"))]), piece > 0, piece + 1 == pieces).await?;
            if piece % 3 == 0 {
                tokio::task::yield_now().await;
            }
            if turn.cancelled.is_cancelled() {
                return Ok(updates.canceled());
            }
        }
        match script.next() {
            Some("ask") => {
                let question = updates.text("more?");
                Ok(updates.input_required(question))
            }
            Some("fail") => Ok(updates.fail("as told")),
            Some("error") => Err(RunError::new("gave up")),
            Some("panic") => panic!("as told"),
            _ => Ok(updates.complete(None)),
        }
    }
}

fn plane(store: Arc<HookedStore>) -> Chancery {
    let limits =
        TaskLimits { streams_per_caller: 1000, streams_per_task: 1000, stream_buffer_events: 4, ..TaskLimits::default() };
    chancery_testkit::plane(store, RandomPieces, limits)
}

fn context(last_event_id: Option<u64>, key: Option<String>) -> CallContext {
    CallContext { idempotency_key: key.map(Into::into), last_event_id, ..call_context() }
}

fn message(text: String, task: Option<TaskId>, immediately: bool) -> SendMessage {
    let message = Message { task_id: task, ..Message::text(Role::User, "m", text) };
    let configuration = SendConfiguration { return_immediately: immediately, ..SendConfiguration::default() };
    SendMessage {
        tenant: None,
        message: Arc::new(message),
        configuration,
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    }
}

/// Reads a stream to its end. The numbers it sees have no gap and no repeat, and each is durable before it is seen.
async fn read_to_end(chancery: Chancery, store: Arc<HookedStore>, id: TaskId, after: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    let Ok(Answer::Stream(mut stream)) = chancery
        .call(&context(Some(after), None), Request::SubscribeToTask(SubscribeToTask { tenant: None, id: id.clone() }))
        .await
    else {
        return seen;
    };
    let mut snapshot = after > 0;
    while let Ok(NextEvents::Events(entries)) = stream.next().await {
        for entry in entries {
            let stored = store.last_seq(&id);
            assert!(entry.seq <= stored, "entry {} was shown when only {stored} were stored", entry.seq);
            // The opening snapshot repeats the cursor, not an event.
            if !std::mem::take(&mut snapshot) {
                seen.push(entry.seq);
            }
        }
    }
    let expected: Vec<u64> = (after + 1..).take(seen.len()).collect();
    assert_eq!(seen, expected);
    seen
}

/// Answers how many events its readers saw.
async fn one_caller(chancery: Chancery, store: Arc<HookedStore>, seed: u64) -> usize {
    let mut dice = SmallRng::seed_from_u64(seed);
    let ending = ["", " ask", " fail", " error", " panic"][dice.random_range(0..5)];
    let text = format!("{}{ending}", dice.random_range(0..12));
    let immediately = dice.random_bool(0.5);
    let key = dice.random_bool(0.5).then(|| format!("key-{seed}"));
    let sent = chancery.call(&context(None, key.clone()), Request::SendMessage(message(text.clone(), None, immediately))).await;
    let Ok(Answer::Reply(Reply::Sent(Sent::Task(shown)))) = sent else { return 0 };
    let id = shown.task.id.clone();
    if key.is_some() {
        let again = chancery.call(&context(None, key), Request::SendMessage(message(text, None, true))).await;
        if let Ok(Answer::Reply(Reply::Sent(Sent::Task(same)))) = again {
            assert_eq!(same.task.id, id, "the same key made a second task");
        }
    }
    let readers: Vec<_> = (0..dice.random_range(0..3))
        .map(|_| tokio::spawn(read_to_end(chancery.clone(), Arc::clone(&store), id.clone(), dice.random_range(0..2))))
        .collect();
    for _ in 0..dice.random_range(0..20) {
        tokio::task::yield_now().await;
    }
    match dice.random_range(0..3) {
        0 => {
            let cancelled = chancery
                .call(&context(None, None), Request::CancelTask(CancelTask { tenant: None, id: id.clone(), metadata: None }))
                .await;
            if let Err(error) = cancelled {
                assert!(matches!(error.kind, ErrorKind::TaskNotCancelable | ErrorKind::Unavailable), "{error:?}");
            }
        }
        1 => {
            let _ = chancery.call(&context(None, None), Request::SendMessage(message("2".into(), Some(id.clone()), false))).await;
        }
        _ => {}
    }
    // Whatever is left open is closed, so that readers end: again and again where the store fails.
    for _ in 0..100 {
        let cancel = Request::CancelTask(CancelTask { tenant: None, id: id.clone(), metadata: None });
        match chancery.call(&context(None, None), cancel).await {
            Err(error) if error.kind == ErrorKind::Unavailable => tokio::task::yield_now().await,
            _ => break,
        }
    }
    let mut seen = 0;
    for reader in readers {
        seen += reader.await.expect("a reader found a gap, a repeat or an entry too early").len();
    }
    seen
}

fn check_logs(store: &HookedStore) {
    for (stored, log) in store.logs() {
        let numbers: Vec<u64> = log.iter().map(|entry| entry.seq).collect();
        assert_eq!(numbers, (1..=stored.progress.seq).collect::<Vec<_>>(), "gaps in {}", stored.task.id);
        let terminal = |entry: &&Arc<chancery_core::LogEntry>| matches!(&entry.event, TaskEvent::Status(change) if change.status.state.is_terminal());
        let ends = log.iter().filter(terminal).count();
        assert!(ends <= 1, "{} ended {ends} times", stored.task.id);
        assert_eq!(stored.progress.state.is_terminal(), ends == 1);
        if ends == 1 {
            assert!(log.last().iter().all(terminal), "something follows the end of {}", stored.task.id);
        }
    }
}

async fn simulate(seed: u64, plan: FaultPlan) -> usize {
    let store = Arc::new(HookedStore::with_faults(MemoryStore::new(), seed, plan));
    let chancery = plane(Arc::clone(&store));
    let callers: Vec<_> = (0..16)
        .map(|caller| tokio::spawn(one_caller(chancery.clone(), Arc::clone(&store), seed.wrapping_mul(31).wrapping_add(caller))))
        .collect();
    let mut seen = 0;
    for caller in callers {
        seen += caller.await.unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        check_logs(&store);
    }
    // A restart on what is stored: nothing stays unfinished, and still every log is sound.
    let after = plane(Arc::clone(&store));
    if plan.faults_per_mille == 0 {
        after.recover().await.unwrap();
        assert!(
            store.logs().iter().all(|(stored, _)| !matches!(stored.progress.state, TaskState::Submitted | TaskState::Working))
        );
    }
    check_logs(&store);
    seen
}

fn seeds() -> std::ops::Range<u64> {
    let first = std::env::var("CHANCERY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count = if std::env::var_os("CHANCERY_SOAK").is_some() { 5_000 } else { 200 };
    first..first + count
}

#[tokio::test(start_paused = true)]
async fn any_schedule_leaves_sound_logs_and_whole_streams() {
    let mut seen = 0;
    for seed in seeds() {
        seen += simulate(seed, FaultPlan { delay: 5, faults_per_mille: 0 }).await;
    }
    assert!(seen > 1000, "the readers saw only {seen} events: the schedules test too little");
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_loses_nothing_it_took_and_hangs_nobody() {
    let mut seen = 0;
    for seed in seeds() {
        seen += simulate(seed, FaultPlan { delay: 3, faults_per_mille: 50 }).await;
    }
    assert!(seen > 1000, "the readers saw only {seen} events: the schedules test too little");
}
