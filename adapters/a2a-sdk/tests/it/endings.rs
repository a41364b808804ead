//! However an executor ends, its task ends once, with a reason its caller can read.

use chancery_protocol::{PartContent, TaskState};

use crate::node::{Node, outline, rest, status};

/// The state and the words that a script leads to.
async fn end_of(script: &str) -> (TaskState, String) {
    let task = Node::new().send(script).await;
    let (state, text) = status(&task);
    (state, text.unwrap_or_default().to_owned())
}

#[tokio::test]
async fn an_error_is_the_reason_of_the_failure() {
    assert_eq!(end_of("error").await, (TaskState::Failed, "the model is out of order".into()));
}

#[tokio::test]
async fn a_panic_fails_the_task_and_hangs_nobody() {
    assert_eq!(end_of("panic").await, (TaskState::Failed, "the agent panicked: lost my head".into()));
    assert_eq!(end_of("panic at once").await, (TaskState::Failed, "the agent panicked: never had one".into()));
}

#[tokio::test]
async fn an_executor_that_just_stops_has_failed() {
    let reason = "the agent stopped without saying how the task ended";
    assert_eq!(end_of("nothing").await, (TaskState::Failed, reason.into()));
    assert_eq!(end_of("fade").await, (TaskState::Failed, reason.into()));
}

#[tokio::test]
async fn nothing_is_heard_after_the_end() {
    let node = Node::new();
    assert_eq!(outline(&rest(node.stream("twice").await).await), ["task Submitted", "Completed first"]);
}

#[tokio::test]
async fn a_failure_keeps_all_its_parts_and_metadata() {
    let task = Node::new().send("fail").await;
    assert_eq!(status(&task), (TaskState::Failed, Some("out of paper")));
    let message = task.status.message.as_ref().unwrap();
    let PartContent::Data(data) = &message.parts[1].content else { panic!("{message:?}") };
    assert_eq!(data.to_value(), serde_json::json!({"tray": 2}));
    assert_eq!(task.metadata.as_ref().and_then(|metadata| metadata.get("retry")), Some(true.into()));
    assert_eq!((message.task_id.as_ref(), message.context_id.as_ref()), (Some(&task.id), Some(&task.context_id)));
}

#[tokio::test]
async fn a_rejection_is_one() {
    assert_eq!(end_of("reject").await, (TaskState::Rejected, "not my trade".into()));
}

#[tokio::test]
async fn words_that_cannot_be_taken_fail_the_task_with_what_was_wrong() {
    let (state, reason) = end_of("elsewhere").await;
    assert_eq!((state, reason.as_str()), (TaskState::Failed, "the agent spoke of task another instead of its own"));
    let (state, reason) = end_of("stateless").await;
    assert_eq!((state, reason.as_str()), (TaskState::Failed, "the agent left open which state its task is in"));
    let (state, reason) = end_of("orphan").await;
    assert_eq!(state, TaskState::Failed);
    assert!(reason.contains("text"), "the artifact is named: {reason}");
}
