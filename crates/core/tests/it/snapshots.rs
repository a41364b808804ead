//! A read of a long task costs its snapshot and the entries after it, not its log.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{Answer, Chancery, Finished, RunError, Store, TaskLimits, TaskRunner, TaskUpdateSink, Turn, task_state};
use chancery_protocol::{
    Artifact, GetTask, ListTasks, Message, Metadata, Part, Reply, Request, Role, SendMessage, Sent, Task, TaskId, TaskState,
};
use chancery_store::{MemoryStore, SqliteOptions, SqliteStore};
use chancery_testkit::{HookedStore, call_context};

/// Makes as many pieces of an artifact as the message says, then completes; or asks, if the message ends with a question mark.
struct Pieces;

#[async_trait]
impl TaskRunner for Pieces {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let text = turn.message.first_text().unwrap_or_default();
        let count: u64 = text.trim_end_matches('?').parse().unwrap_or(0);
        for number in 0..count {
            let piece = Artifact::new("pieces", vec![Part::text(format!("piece {number}"))]);
            updates.chunk(piece, number > 0, number + 1 == count).await?;
        }
        let counted = serde_json::Map::from_iter([("pieces".to_owned(), count.into()), ("share".to_owned(), 1.0.into())]);
        updates.annotate(Metadata::from_object(counted)).await?;
        let words = updates.text("that is all");
        Ok(if text.ends_with('?') { updates.input_required(words) } else { updates.complete(Some(words)) })
    }
}

fn plane(store: &Arc<HookedStore>) -> Chancery {
    chancery_testkit::plane(Arc::clone(store) as Arc<dyn Store>, Pieces, TaskLimits::default())
}

async fn send(chancery: &Chancery, text: &str, task: Option<&TaskId>) -> TaskId {
    let mut message = Message::text(Role::User, format!("m {text}"), text);
    message.task_id = task.cloned();
    let send = SendMessage {
        tenant: None,
        message: Arc::new(message),
        configuration: Default::default(),
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    };
    match chancery.call(&call_context(), Request::SendMessage(send)).await.unwrap() {
        Answer::Reply(Reply::Sent(Sent::Task(shown))) => shown.task.id.clone(),
        other => panic!("{other:?}"),
    }
}

/// Waits for the snapshot, which is written after the send is answered.
async fn kept(store: &HookedStore, id: &TaskId) {
    let kept = async {
        while store.snapshot(id, false).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), kept).await.expect("a snapshot is kept");
}

/// Reads the task in a node that has just started, and answers it with the number of entries that were read for it.
async fn get(store: &Arc<HookedStore>, id: &TaskId) -> (Arc<Task>, u64) {
    let before = store.entries_read();
    let get = GetTask { tenant: None, id: id.clone(), history_length: None };
    match plane(store).call(&call_context(), Request::GetTask(get)).await.unwrap() {
        Answer::Reply(Reply::Task(shown)) => (shown.task, store.entries_read() - before),
        other => panic!("{other:?}"),
    }
}

async fn list(store: &Arc<HookedStore>, include_artifacts: bool) -> (Vec<Arc<Task>>, u64) {
    let before = store.entries_read();
    let list = ListTasks { include_artifacts, ..ListTasks::default() };
    let page = match plane(store).call(&call_context(), Request::ListTasks(list)).await.unwrap() {
        Answer::Reply(Reply::Tasks(page)) => page,
        other => panic!("{other:?}"),
    };
    (page.tasks.into_iter().map(|shown| shown.task).collect(), store.entries_read() - before)
}

/// The task from its log alone.
async fn folded(store: &HookedStore, id: &TaskId) -> Task {
    let entries = store.entries(id, 0, usize::MAX).await.unwrap();
    task_state::fold(entries.iter().map(|entry| &entry.event)).unwrap()
}

/// Both stores, with the folder of the one that has files.
fn stores() -> [(Arc<HookedStore>, Option<tempfile::TempDir>); 2] {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(folder.path().join("chancery.db"), SqliteOptions::default()).unwrap();
    [(Arc::new(HookedStore::over(MemoryStore::new())), None), (Arc::new(HookedStore::over(sqlite)), Some(folder))]
}

#[tokio::test]
async fn a_task_with_five_thousand_entries_is_read_without_its_log() {
    for (store, _folder) in stores() {
        let chancery = plane(&store);
        let (short, long) = (send(&chancery, "1", None).await, send(&chancery, "5000", None).await);
        kept(&store, &long).await;
        let (task, entries) = get(&store, &long).await;
        assert_eq!(entries, 0);
        assert_eq!(*task, folded(&store, &long).await);
        assert_eq!((task.artifacts[0].parts.len(), task.status.state), (5000, TaskState::Completed));
        let (task, of_short) = get(&store, &short).await;
        assert_eq!(*task, folded(&store, &short).await);
        assert!(of_short < 10, "{of_short}");

        for include_artifacts in [false, true] {
            let (tasks, entries) = list(&store, include_artifacts).await;
            assert_eq!(entries, of_short, "a list reads the log of the short task alone");
            let mut expected = folded(&store, &long).await;
            if !include_artifacts {
                expected.artifacts.clear();
            }
            assert!(tasks.iter().any(|task| **task == expected), "{include_artifacts}");
        }
    }
}

#[tokio::test]
async fn entries_after_a_snapshot_are_added_to_it() {
    for (store, _folder) in stores() {
        let chancery = plane(&store);
        let id = send(&chancery, "1000?", None).await;
        kept(&store, &id).await;
        send(&chancery, "3", Some(&id)).await;
        let (task, entries) = get(&store, &id).await;
        assert_eq!(*task, folded(&store, &id).await);
        assert!((1..20).contains(&entries), "{entries}");
        let (tasks, entries) = list(&store, false).await;
        assert!(tasks[0].artifacts.is_empty() && (1..20).contains(&entries), "{entries}");
    }
}

#[tokio::test]
async fn a_log_from_before_snapshots_is_folded_once() {
    for (store, _folder) in stores() {
        // A node that keeps none: nothing reaches the store but the log.
        let old = Arc::new(HookedStore::without_snapshots(Arc::clone(&store) as Arc<dyn Store>));
        let chancery = plane(&old);
        let id = send(&chancery, "500", None).await;
        let (first, entries) = get(&store, &id).await;
        assert!(entries > 500, "{entries}");
        let (second, entries) = get(&store, &id).await;
        assert_eq!((entries, second), (0, first));
    }
}
