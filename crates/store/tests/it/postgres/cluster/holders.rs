//! Who holds a task: one node at a time, and only that one appends to it.

use chancery_core::{Store, TaskHolder};
use chancery_protocol::TaskState;

use super::{LONG_LEASE, Node, database, is_held_elsewhere};
use crate::contract::sample::{at, change, creation, pieces, task};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_to_a_task_of_another_node_is_refused_and_its_neighbours_are_written() {
    let database = database().await;
    let (one, two) = (Node::join(database.url(), LONG_LEASE).await, Node::join(database.url(), LONG_LEASE).await);
    let (held, own) = (task("held"), task("own"));
    one.store.append(creation(&held)).await.unwrap();
    two.store.append(creation(&own)).await.unwrap();
    let (refused, written) = futures::join!(two.store.append(pieces(&held, 2, 2)), two.store.append(pieces(&own, 2, 3)));
    let refused = refused.unwrap_err();
    assert!(is_held_elsewhere(&refused), "{refused:?}");
    assert!(refused.to_string().contains(&format!("node {} holds task held", one.number())), "{refused}");
    written.unwrap();
    assert_eq!(one.store.find_any("held").await.unwrap().unwrap().progress.seq, 1);

    // One that was released is refused too, also by the node that wrote it last and knows where its log ends.
    one.cluster.release(&held.id, false).await.unwrap();
    for node in [&one, &two] {
        let refused = node.store.append(pieces(&held, 2, 2)).await.unwrap_err();
        assert!(is_held_elsewhere(&refused) && refused.to_string().contains("has to take it"), "{refused}");
    }
    assert_eq!(two.cluster.take(&held.id).await.unwrap(), Some(TaskHolder::ThisNode));
    two.store.append(pieces(&held, 2, 2)).await.unwrap();
    assert!(is_held_elsewhere(&one.store.append(pieces(&held, 3, 3)).await.unwrap_err()));
    assert_eq!(one.cluster.take(&held.id).await.unwrap(), Some(TaskHolder::OtherNode(two.number())));
    // To release what another node holds does nothing.
    one.cluster.release(&held.id, true).await.unwrap();
    assert_eq!(one.cluster.holder(&held.id).await.unwrap(), Some(TaskHolder::OtherNode(two.number())));
    assert!(!one.renew().await.has_released_tasks);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_ends_has_no_holder_and_one_that_waits_keeps_it_until_it_is_released() {
    let database = database().await;
    let (one, two) = (Node::join(database.url(), LONG_LEASE).await, Node::join(database.url(), LONG_LEASE).await);
    let (ended, parked) = (task("ended"), task("parked"));
    one.store.append(creation(&ended)).await.unwrap();
    one.store.append(change(&ended, 2, TaskState::Completed, at(2))).await.unwrap();
    assert_eq!(two.cluster.take(&ended.id).await.unwrap(), Some(TaskHolder::Nobody));
    one.store.append(creation(&parked)).await.unwrap();
    one.store.append(change(&parked, 2, TaskState::InputRequired, at(2))).await.unwrap();
    assert_eq!(two.cluster.take(&parked.id).await.unwrap(), Some(TaskHolder::OtherNode(one.number())));
    one.cluster.release(&parked.id, false).await.unwrap();
    assert!(!two.renew().await.has_released_tasks, "no turn waits to be resumed");
    assert_eq!(two.cluster.take(&parked.id).await.unwrap(), Some(TaskHolder::ThisNode));
    two.cluster.release(&parked.id, true).await.unwrap();
    assert!(one.renew().await.has_released_tasks);
    assert_eq!(one.cluster.take(&"none".into()).await.unwrap(), None);
}

/// Two nodes take each task at the same time, with appends to tasks of their own beside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_takers_of_one_task_one_wins() {
    let database = database().await;
    let (one, two) = (Node::join(database.url(), LONG_LEASE).await, Node::join(database.url(), LONG_LEASE).await);
    let tasks: Vec<_> = (0..40).map(|number| task(&format!("t{number:02}"))).collect();
    for task in &tasks {
        one.store.append(creation(task)).await.unwrap();
        one.cluster.release(&task.id, false).await.unwrap();
    }
    let mut of_two = 0;
    for one_task in &tasks {
        let (first, second) = futures::join!(one.cluster.take(&one_task.id), two.cluster.take(&one_task.id));
        let holders = (first.unwrap().unwrap(), second.unwrap().unwrap());
        let (winner, loser) = match holders {
            (TaskHolder::ThisNode, TaskHolder::OtherNode(node)) if node == one.number() => (&one, &two),
            (TaskHolder::OtherNode(node), TaskHolder::ThisNode) if node == two.number() => (&two, &one),
            other => panic!("{}: {other:?}", one_task.id),
        };
        of_two += usize::from(winner.number() == two.number());
        assert!(is_held_elsewhere(&loser.store.append(pieces(one_task, 2, 2)).await.unwrap_err()));
        winner.store.append(pieces(one_task, 2, 2)).await.unwrap();
    }
    println!("the second taker won {of_two} of {}", tasks.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn released_tasks_are_taken_by_one_node_each() {
    let database = database().await;
    let (gone, one, two) = (
        Node::join(database.url(), LONG_LEASE).await,
        Node::join(database.url(), LONG_LEASE).await,
        Node::join(database.url(), LONG_LEASE).await,
    );
    for number in 0..50 {
        gone.store.append(creation(&task(&format!("t{number:02}")))).await.unwrap();
    }
    gone.cluster.leave().await.unwrap();
    let mut taken = Vec::new();
    loop {
        let (first, second) = futures::join!(one.cluster.take_released(3), two.cluster.take_released(3));
        let (first, second) = (first.unwrap(), second.unwrap());
        if first.is_empty() && second.is_empty() && !one.renew().await.has_released_tasks {
            break;
        }
        taken.extend(first.iter().chain(&second).map(|stored| stored.task.id.to_string()));
    }
    taken.sort();
    assert_eq!(taken, (0..50).map(|number| format!("t{number:02}")).collect::<Vec<_>>());
}
