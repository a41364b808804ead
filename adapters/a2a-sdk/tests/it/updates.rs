//! What an executor says on its way is recorded and streamed as it said it.

use chancery_protocol::{Sent, TaskEvent, TaskState, Version};

use crate::executor::BURST;
use crate::node::{Node, history, outline, rest, saying, status};

#[tokio::test]
async fn chunks_reach_the_stream_in_order_and_become_one_artifact() {
    let node = Node::new();
    let stream = node.stream("chunks").await;
    let id = stream.task_id().clone();
    let seen = rest(stream).await;
    let expected = ["task Submitted", "Working -", "Working on it", "text=one ", "text+two ", "text+three.", "Completed done"];
    assert_eq!(outline(&seen), expected);
    let TaskEvent::Artifact(chunk) = &seen[3].event else { panic!("{:?}", seen[3]) };
    assert_eq!(chunk.metadata.as_ref().and_then(|metadata| metadata.get("length")), Some(4.into()));

    let task = node.get(&id).await;
    assert_eq!(task.artifacts.len(), 1);
    let parts: Vec<_> = task.artifacts[0].parts.iter().filter_map(|part| part.as_text()).collect();
    assert_eq!(parts, ["one ", "two ", "three"]);
    assert_eq!(status(&task), (TaskState::Completed, Some("done")));
}

#[tokio::test]
async fn a_burst_reaches_the_stream_and_the_waiting_caller_whole() {
    let node = Node::new();
    let seen = rest(node.stream("burst").await).await;
    assert_eq!(seen.len(), BURST + 2);
    assert!(seen.iter().zip(1..).all(|(entry, seq)| entry.seq == seq));
    assert_eq!(node.send("burst").await.artifacts[0].parts.len(), BURST);
}

#[tokio::test]
async fn the_executor_hears_who_asks_and_what() {
    let node = Node::new();
    node.send("chunks").await;
    let heard = node.heard().await;
    assert_eq!((heard.cancel, heard.text.as_deref(), heard.history), (false, Some("chunks"), None));
    assert_eq!((heard.user.as_deref(), heard.tenant.as_deref()), (Some("ada"), Some("house")));
    assert_eq!(heard.metadata.unwrap()["from"], "the test");
}

#[tokio::test]
async fn a_question_is_answered_in_a_second_turn_that_knows_the_first() {
    let node = Node::new();
    let asked = node.send("ask").await;
    assert_eq!(status(&asked), (TaskState::InputRequired, Some("which one?")));
    node.heard().await;

    let done = node.send_on("the left one", Some(&asked.id)).await;
    assert_eq!(status(&done), (TaskState::Completed, Some("the left one it is")));
    assert_eq!(history(&done), ["ask", "which one?", "the left one"]);
    let heard = node.heard().await;
    assert_eq!((heard.text.as_deref(), heard.history), (Some("the left one"), Some(3)));
}

#[tokio::test]
async fn a_message_to_a_waiting_task_leaves_it_waiting() {
    let node = Node::new();
    let asked = node.send("ask").await;
    let waiting = node.send_on("chat", Some(&asked.id)).await;
    assert_eq!(status(&waiting), (TaskState::InputRequired, Some("still: which one?")));
    let done = node.send_on("the left one", Some(&asked.id)).await;
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(history(&done), ["ask", "which one?", "chat", "still: which one?", "the left one"]);
}

#[tokio::test]
async fn work_goes_on_when_the_authorisation_came_by_another_way() {
    let node = Node::new();
    let waiting = node.send("authorise").await;
    assert_eq!(status(&waiting), (TaskState::AuthRequired, Some("log in over there")));
    let stream = node.subscribe(&waiting.id).await;
    node.released.notify_one();
    let seen = outline(&rest(stream).await);
    assert_eq!(seen[seen.len() - 2..], ["Working -", "Completed thanks"]);
    let task = node.get(&waiting.id).await;
    assert_eq!(status(&task), (TaskState::Completed, Some("thanks")));
}

#[tokio::test]
async fn a_first_word_that_is_a_message_is_the_whole_answer() {
    let node = Node::new();
    for return_immediately in [false, true] {
        let Sent::Message(message) = node.sent(Version::V1_0, saying("message", None, return_immediately)).await else {
            panic!("a task instead of a message")
        };
        assert_eq!(message.first_text(), Some("no task needed"));
        assert!(message.context_id.is_some());
    }
    assert_eq!(outline(&rest(node.stream("message").await).await), ["reply no task needed"]);
}

#[tokio::test]
async fn a_message_is_a_task_for_callers_that_know_only_tasks() {
    let Sent::Task(shown) = Node::new().sent(Version::Original, saying("message", None, false)).await else {
        panic!("a message instead of a task")
    };
    assert_eq!(status(&shown.task), (TaskState::Completed, Some("no task needed")));
}

#[tokio::test]
async fn a_later_message_belongs_to_the_task() {
    let task = Node::new().send("late message").await;
    assert_eq!(status(&task), (TaskState::Completed, None));
    assert_eq!(history(&task), ["late message", "by the way"]);
}

#[tokio::test]
async fn a_task_object_adds_what_was_not_told_before() {
    let node = Node::new();
    let seen = rest(node.stream("snapshot").await).await;
    let expected = ["task Submitted", "Working -", "Working on the way", "a=first.", "b=second.", "Completed all of it"];
    assert_eq!(outline(&seen), expected);

    let task = node.send("snapshot").await;
    assert_eq!(history(&task), ["snapshot", "on the way"]);
    assert_eq!(task.artifacts.len(), 2);
    assert_eq!(task.metadata.as_ref().and_then(|metadata| metadata.get("pages")), Some(2.into()));
}
