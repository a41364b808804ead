//! A cancelled task asks its executor to stop, and is cancelled whatever that says.

use chancery_protocol::{ErrorKind, TaskState};

use crate::node::{Node, outline, rest, status};

#[tokio::test]
async fn the_executor_is_asked_to_cancel_and_has_the_last_word() {
    let node = Node::new();
    let id = node.start("work").await;
    let canceled = node.cancel(&id).await.unwrap();
    assert_eq!(status(&canceled), (TaskState::Canceled, Some("put down")));
    assert!(!node.heard().await.cancel);
    let asked = node.heard().await;
    assert_eq!((asked.cancel, asked.text, asked.history), (true, None, Some(1)));
}

#[tokio::test]
async fn an_executor_with_nothing_to_say_about_a_cancel_is_canceled() {
    let node = Node::new();
    for script in ["work deaf", "work stubborn"] {
        let id = node.start(script).await;
        assert_eq!(status(&node.cancel(&id).await.unwrap()), (TaskState::Canceled, None), "{script}");
    }
}

#[tokio::test]
async fn what_the_work_leaves_behind_on_a_cancel_is_kept() {
    // The cancel says nothing itself here and never ends; the service's patience ends it.
    tokio::time::pause();
    let node = Node::new();
    let id = node.start("work until told").await;
    let stream = node.subscribe(&id).await;
    let canceled = node.cancel(&id).await.unwrap();
    assert_eq!(status(&canceled), (TaskState::Canceled, None));
    assert_eq!(canceled.artifacts.len(), 1);
    let seen = outline(&rest(stream).await);
    assert_eq!(seen[seen.len() - 2..], ["text=half done.", "Canceled -"]);
}

#[tokio::test]
async fn work_that_ends_before_the_cancel_does_is_not_canceled() {
    let node = Node::new();
    let id = node.start("work to the end").await;
    assert_eq!(node.cancel(&id).await.unwrap_err().kind, ErrorKind::TaskNotCancelable);
    let task = node.get(&id).await;
    assert_eq!(status(&task), (TaskState::Completed, Some("was done already")));
}
