//! With whom tasks and conversations go on.

use std::sync::Arc;

use chancery_core::{Append, Link, SweepPlan, TaskRecord};
use chancery_protocol::{Caller, TaskState, Timestamp};

use crate::sample::{Opened, ada, at, bob, change, creation, on_every_store, pieces, record};

on_every_store! {
    a_link_is_kept_with_the_task_and_found_by_task_and_conversation,
    a_link_goes_with_its_task,
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
    let plan = SweepPlan { older_than: Some(Timestamp::from_micros(i64::MAX)), keep_at_most: None, at_most: 10 };
    assert_eq!(store.sweep(plan, at(0)).await.unwrap(), 1);
    assert_eq!(store.link(&task.id).await.unwrap(), None);
    assert_eq!(store.context_link(&task.owner, &task.agent, &"c".into()).await.unwrap(), None);
}
