//! Many tasks at three nodes, one of which is killed: readers go on at the others, and nothing is lost, repeated or run twice.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::NextEvents;
use chancery_protocol::{TaskId, TaskState};
use tokio::sync::RwLock;

use super::cluster::{PATIENCE, TestCluster, TestNode, assert_whole};

const TASKS: usize = 24;

type Nodes = Arc<Vec<RwLock<Option<TestNode>>>>;

/// Reads a task from its first event to its end, at one node after the other as they go.
async fn follow(nodes: Nodes, id: TaskId, agent: &'static str, mut at: usize) -> Vec<u64> {
    let mut numbers: Vec<u64> = Vec::new();
    let following = async {
        loop {
            at += 1;
            let seen = numbers.last().copied().unwrap_or(0);
            let stream = {
                let node = nodes[at % nodes.len()].read().await;
                let Some(node) = &*node else { continue };
                node.subscribe(agent, &id, Some(seen)).await
            };
            // A task that has ended has nothing more for whoever saw its last event.
            let Ok(mut stream) = stream else { return };
            let mut opens = seen > 0;
            loop {
                let before = numbers.len();
                match stream.next().await {
                    Ok(NextEvents::Events(events)) => {
                        // A stream that goes on opens with the task as it was.
                        let skip = usize::from(std::mem::take(&mut opens));
                        numbers.extend(events.iter().skip(skip).map(|entry| entry.seq));
                    }
                    Ok(NextEvents::Done) => return,
                    Ok(NextEvents::ShuttingDown) | Err(_) => break,
                }
                // Sometimes a connection is lost.
                if numbers.len() / 17 > before / 17 {
                    break;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, following).await.unwrap_or_else(|_| panic!("the stream of {id} never ended"));
    numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_many_tasks_miss_nothing_when_a_node_is_killed() {
    let cluster = TestCluster::new();
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        all.push(RwLock::new(Some(cluster.node(name).await)));
    }
    let nodes: Nodes = Arc::new(all);
    let mut readers = Vec::new();
    for number in 0..TASKS {
        let agent = if number % 2 == 0 { "local" } else { "relay" };
        let text = if number % 2 == 0 { format!("hold 30 {number}") } else { format!("relay {number}") };
        let id = nodes[number % 3].read().await.as_ref().unwrap().begin(agent, &text).await;
        let reader = tokio::spawn(follow(Arc::clone(&nodes), id.clone(), agent, number / 3));
        readers.push((id, agent, number, reader));
    }
    let killed = nodes[0].write().await.take().unwrap();
    killed.kill();
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster.oracle.open_gate();
    for (id, agent, number, reader) in readers {
        let numbers = reader.await.unwrap();
        assert_whole(&numbers, 1);
        let node = nodes[1].read().await;
        let node = node.as_ref().unwrap();
        let task = node.get(agent, &id).await;
        let expected = if agent == "local" && number % 3 == 0 { TaskState::Failed } else { TaskState::Completed };
        assert_eq!(task.status.state, expected, "task {number}");
        let log = node.plane.operator_entries(id.as_str(), 0, usize::MAX).await.unwrap();
        assert_eq!(log.len(), numbers.len(), "task {number}");
    }
    cluster.assert_sound();
}
