//! A store that is away: a running turn outlives it, and a node that lost its tasks to another one answers nothing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{Answer, Chancery, Finished, NextEvents, RunError, Store, TaskLimits, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{Artifact, ErrorKind, GetTask, Message, Part, Request, Role, SendConfiguration, SendMessage, TaskId};
use chancery_store::MemoryStore;
use chancery_testkit::{HookedStore, StoreOutage, call_context};
use tokio::sync::Semaphore;

/// Makes a piece for each ring, and completes after the last.
struct OnRings {
    rings: Arc<Semaphore>,
    pieces: usize,
}

#[async_trait]
impl TaskRunner for OnRings {
    async fn run(&self, _: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        for piece in 0..self.pieces {
            self.rings.acquire().await.expect("it stays open").forget();
            updates.artifact(Artifact::new(format!("piece-{piece}"), vec![Part::text("piece")])).await?;
        }
        Ok(updates.complete(None))
    }
}

const PIECES: usize = 3;

fn plane() -> (Arc<HookedStore>, Arc<Semaphore>, Chancery) {
    let (store, rings) = (Arc::new(HookedStore::over(MemoryStore::new())), Arc::new(Semaphore::new(0)));
    let runner = OnRings { rings: Arc::clone(&rings), pieces: PIECES };
    let chancery = chancery_testkit::plane(Arc::clone(&store) as Arc<dyn Store>, runner, TaskLimits::default());
    (store, rings, chancery)
}

fn message() -> SendMessage {
    let message = Arc::new(Message::text(Role::User, "m", "work"));
    let configuration = SendConfiguration::default();
    SendMessage { tenant: None, message, configuration, metadata: None, client_task_id: None, unknown: Default::default() }
}

/// Begins a task, ends its turn during an outage, and answers the numbers of its events up to the end.
async fn watched_through(outage: StoreOutage) -> Vec<u64> {
    let (store, rings, chancery) = plane();
    let streamed = chancery.call(&call_context(), Request::StreamMessage(message())).await.unwrap();
    let Answer::Stream(mut stream) = streamed else { panic!("{streamed:?}") };
    let mut seen = Vec::new();
    let NextEvents::Events(events) = stream.next().await.unwrap() else { panic!("the stream is open") };
    seen.extend(events.iter().map(|entry| entry.seq));
    store.set_outage(Some(outage));
    for _ in 0..PIECES {
        let before = store.refused();
        rings.add_permits(1);
        // The turn goes on although its first piece is not recorded.
        while store.refused() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    store.set_outage(None);
    loop {
        match stream.next().await.unwrap() {
            NextEvents::Events(events) => seen.extend(events.iter().map(|entry| entry.seq)),
            NextEvents::Done => break,
            other => panic!("{other:?}"),
        }
    }
    let logs = store.logs();
    assert!(logs.len() <= 1, "{logs:?}");
    seen
}

#[tokio::test]
async fn a_turn_outlives_an_outage_and_its_readers_see_every_update_once() {
    for outage in [StoreOutage::NothingWritten, StoreOutage::AnswerLost] {
        let seen = watched_through(outage).await;
        let expected: Vec<u64> = (seen[0]..=*seen.last().unwrap()).collect();
        assert_eq!(seen, expected, "{outage:?}: without gaps and repeats");
        assert!(seen.len() > PIECES, "{outage:?}: {seen:?}");
    }
}

#[tokio::test]
async fn a_call_during_an_outage_is_told_to_come_back_and_makes_nothing() {
    let (store, _, chancery) = plane();
    store.set_outage(Some(StoreOutage::NothingWritten));
    let refused = chancery.call(&call_context(), Request::SendMessage(message())).await.unwrap_err();
    assert_eq!((refused.kind, refused.retry_after.is_some()), (ErrorKind::Unavailable, true), "{refused:?}");
    store.set_outage(None);
    assert!(store.logs().is_empty());
}

#[tokio::test]
async fn a_retired_node_closes_its_streams_and_answers_every_call_with_unavailable() {
    let (_store, _, chancery) = plane();
    let streamed = chancery.call(&call_context(), Request::StreamMessage(message())).await.unwrap();
    let Answer::Stream(mut stream) = streamed else { panic!("{streamed:?}") };
    assert!(matches!(stream.next().await.unwrap(), NextEvents::Events(_)));
    chancery.check().await.unwrap();
    chancery.retire("another node has the tasks");
    assert!(matches!(stream.next().await.unwrap(), NextEvents::ShuttingDown));
    let get = GetTask { tenant: None, id: TaskId::from("any"), history_length: None };
    for request in [Request::SendMessage(message()), Request::GetTask(get)] {
        let refused = chancery.call(&call_context(), request).await.unwrap_err();
        assert_eq!((refused.kind, refused.retry_after.is_some()), (ErrorKind::Unavailable, true), "{refused:?}");
    }
    assert_eq!(chancery.check().await.unwrap_err().to_string(), "another node has the tasks");
}
