//! With whom tasks and conversations go on.

use std::sync::Arc;

use chancery_core::{Append, Link, SweepPlan, TaskRecord};
use chancery_protocol::{Caller, TaskState, Timestamp};

use crate::contract::sample::{Opened, ada, at, bob, change, creation, on_every_store, pieces, record};

on_every_store! {
    a_link_is_kept_with_the_task_and_found_by_task_and_conversation,
    a_link_goes_with_its_task,
    a_conversation_goes_on_where_the_newest_task_that_is_left_does,
}

fn link(peer: &str, named: &str) -> Link {
    Link { peer: peer.into(), task: Some(named.into()), context: Some("their-context".into()) }
}

fn in_context(id: &str, context: &str) -> Arc<TaskRecord> {
    Arc::new(TaskRecord { context_id: context.into(), ..record(id, ada()) })
}

async fn a_link_is_kept_with_the_task_and_found_by_task_and_conversation(Opened { store, .. }: Opened) {
    let first = in_context("t1", "c");
    store.append(creation(&first)).await.unwrap();
    assert_eq!(store.link(&first.id).await.unwrap(), None);
    store.append(Append { link: Some(link("a", "x")), ..pieces(&first, 2, 2) }).await.unwrap();
    assert_eq!(store.link(&first.id).await.unwrap(), Some(link("a", "x")));
    // An append without one leaves it, another replaces it.
    store.append(pieces(&first, 3, 3)).await.unwrap();
    assert_eq!(store.link(&first.id).await.unwrap(), Some(link("a", "x")));
    store.append(Append { link: Some(link("b", "y")), ..pieces(&first, 4, 4) }).await.unwrap();
    assert_eq!(store.link(&first.id).await.unwrap(), Some(link("b", "y")));

    let second = in_context("t2", "c");
    store.append(Append { link: Some(link("c", "z")), ..creation(&second) }).await.unwrap();
    let found = store.context_link(&first.owner, &first.agent, &"c".into()).await.unwrap();
    assert_eq!(found, Some(link("c", "z")), "the task made last says where the conversation is");
    let elsewhere: [(Caller, &str, &str); 3] = [(bob(), "echo", "c"), (ada(), "another", "c"), (ada(), "echo", "d")];
    for (owner, agent, context) in elsewhere {
        assert_eq!(
            store.context_link(&owner, &agent.into(), &context.into()).await.unwrap(),
            None,
            "{owner:?} {agent} {context}"
        );
    }
}

async fn a_link_goes_with_its_task(Opened { store, .. }: Opened) {
    let task = in_context("t1", "c");
    store.append(Append { link: Some(link("a", "x")), ..creation(&task) }).await.unwrap();
    store.append(change(&task, 2, TaskState::Completed, at(2))).await.unwrap();
    let plan = SweepPlan { older_than: Some(Timestamp::from_micros(i64::MAX)), at_most: 10, ..SweepPlan::default() };
    assert_eq!(store.sweep(plan).await.unwrap(), 1);
    assert_eq!(store.link(&task.id).await.unwrap(), None);
    assert_eq!(store.context_link(&task.owner, &task.agent, &"c".into()).await.unwrap(), None);
}

async fn a_conversation_goes_on_where_the_newest_task_that_is_left_does(Opened { store, .. }: Opened) {
    // Made in this order, which is not the one of their names, and linked in another.
    let tasks = ["t9", "t1", "t5"].map(|id| in_context(id, "c"));
    for task in &tasks {
        store.append(creation(task)).await.unwrap();
    }
    let found = async || store.context_link(&ada(), &"echo".into(), &"c".into()).await.unwrap().map(|link| link.peer.to_string());
    assert_eq!(found().await, None);
    for (task, last) in [(&tasks[1], "t1"), (&tasks[0], "t1"), (&tasks[2], "t5")] {
        store.append(Append { link: Some(link(task.id.as_str(), "x")), ..pieces(task, 2, 2) }).await.unwrap();
        assert_eq!(found().await.as_deref(), Some(last));
    }
    let forget_all = SweepPlan { keep_at_most: Some(0), at_most: 10, ..SweepPlan::default() };
    for (task, left) in [(&tasks[2], Some("t1")), (&tasks[0], Some("t1")), (&tasks[1], None)] {
        store.append(change(task, 3, TaskState::Completed, at(2))).await.unwrap();
        assert_eq!(store.sweep(forget_all).await.unwrap(), 1);
        assert_eq!(found().await.as_deref(), left);
    }
}
