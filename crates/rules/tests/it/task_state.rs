//! Properties of the task state machine under any order of events.

use std::sync::Arc;

use chancery_protocol::{
    Artifact, ArtifactChunk, Json, Message, OpenObject, Part, Role, StatusChange, Task, TaskEvent, TaskState, TaskStatus, Unknown,
};
use chancery_rules::task_state::{EventRefusal, TaskHead, apply, fold, weight};
use proptest::prelude::*;

fn created() -> Task {
    Task {
        id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: None, unknown: Default::default() },
        artifacts: Vec::new(),
        history: vec![Arc::new(Message::text(Role::User, "m", "hello"))],
        metadata: None,
        unknown: Default::default(),
    }
}

fn status(state: TaskState) -> TaskEvent {
    TaskEvent::Status(StatusChange {
        status: TaskStatus { state, message: None, timestamp: None, unknown: Default::default() },
        metadata: None,
        unknown: Default::default(),
    })
}

fn chunk(id: &str, text: &str, append: bool) -> TaskEvent {
    let artifact = Arc::new(Artifact::new(id, vec![Part::text(text)]));
    TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk: false, metadata: None, unknown: Default::default() })
}

fn any_event() -> impl Strategy<Value = TaskEvent> {
    prop_oneof![
        (0_usize..9).prop_map(|index| status(TaskState::ALL[index])),
        ("[ab]", "[a-z]{1,3}", any::<bool>()).prop_map(|(id, text, append)| chunk(&id, &text, append)),
        Just(TaskEvent::Said(Arc::new(Message::text(Role::User, "n", "more")))),
        Just(TaskEvent::Created(Arc::new(created()))),
    ]
}

proptest! {
    #[test]
    fn a_terminal_task_never_moves(events in prop::collection::vec(any_event(), 0..40)) {
        let mut head = TaskHead::of(&created());
        let mut ended: Option<TaskState> = None;
        for event in &events {
            let verdict = head.advance(event);
            if let Some(state) = ended {
                prop_assert_eq!(verdict, Err(EventRefusal::Ended(state)));
                prop_assert_eq!(head.state, state);
            } else if head.state.is_terminal() {
                ended = Some(head.state);
            }
        }
    }

    #[test]
    fn the_fold_of_accepted_events_agrees_with_the_head(events in prop::collection::vec(any_event(), 0..40)) {
        let mut head = TaskHead::of(&created());
        let mut log = vec![TaskEvent::Created(Arc::new(created()))];
        let mut stepwise = created();
        for event in events {
            if head.advance(&event).is_ok() {
                apply(&mut stepwise, &event);
                log.push(event);
            }
        }
        let folded = fold(&log).unwrap();
        prop_assert_eq!(folded.status.state, head.state);
        prop_assert_eq!(&folded, &stepwise);
        // Re-reading the head from the task loses nothing that judging needs.
        let reread = TaskHead::of(&folded);
        for id in ["a", "b"] {
            prop_assert_eq!(reread.clone().advance(&chunk(id, "x", true)).is_ok(), head.clone().advance(&chunk(id, "x", true)).is_ok());
        }
    }
}

#[test]
fn appending_extends_and_not_appending_replaces() {
    let mut task = created();
    for event in [chunk("a", "1", false), chunk("a", "2", true), chunk("b", "x", false), chunk("a", "3", true)] {
        apply(&mut task, &event);
    }
    let texts: Vec<_> = task.artifacts[0].parts.iter().filter_map(Part::as_text).collect();
    assert_eq!(texts, ["1", "2", "3"]);
    apply(&mut task, &chunk("a", "new", false));
    assert_eq!(task.artifacts[0].parts, vec![Part::text("new")]);
    assert_eq!(task.artifacts.len(), 2);
}

#[test]
fn a_piece_for_an_unknown_artifact_is_refused() {
    let mut head = TaskHead::of(&created());
    assert_eq!(head.advance(&chunk("a", "1", true)), Err(EventRefusal::UnknownArtifact("a".into())));
}

#[test]
fn what_the_agent_said_with_a_status_moves_into_the_history() {
    let mut task = created();
    let question = Arc::new(Message::text(Role::Agent, "q", "which one?"));
    let asked = TaskStatus {
        state: TaskState::InputRequired,
        message: Some(question.clone()),
        timestamp: None,
        unknown: Default::default(),
    };
    apply(&mut task, &TaskEvent::Status(StatusChange { status: asked, metadata: None, unknown: Default::default() }));
    apply(&mut task, &TaskEvent::Said(Arc::new(Message::text(Role::User, "a", "that one"))));
    apply(&mut task, &status(TaskState::Working));
    assert_eq!(task.history[1], question);
    assert_eq!(task.history[2].first_text(), Some("that one"));
    assert_eq!(task.status.message, None);
}

fn unknown<T: OpenObject>(members: &[(&str, &str)]) -> Unknown<T> {
    let mut unknown = Unknown::none();
    for (name, value) in members {
        assert!(unknown.insert(name, Json::parse((*value).to_owned()).unwrap()));
    }
    unknown
}

#[test]
fn what_nobody_knows_of_an_update_is_the_tasks_from_then_on_and_the_newest_counts() {
    let mut task = created();
    let update = |members: &[(&str, &str)]| {
        let TaskEvent::Status(change) = status(TaskState::Working) else { unreachable!() };
        TaskEvent::Status(StatusChange { unknown: unknown(members), ..change })
    };
    apply(&mut task, &update(&[("a", "1.0"), ("b", "2"), ("history", "3")]));
    apply(&mut task, &update(&[("a", "1.50")]));
    let members: Vec<_> = task.unknown.iter().map(|(name, value)| (name, value.text())).collect();
    assert_eq!(members, [("a", "1.50"), ("b", "2")], "and none that a task has itself");

    let piece = |text: &str, append, members: &[(&str, &str)]| {
        let artifact = Artifact { unknown: unknown(members), ..Artifact::new("x", vec![Part::text(text)]) };
        let artifact = Arc::new(artifact);
        TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk: false, metadata: None, unknown: Unknown::none() })
    };
    apply(&mut task, &piece("one", false, &[("a", "1")]));
    apply(&mut task, &piece("two", true, &[("b", "0.10")]));
    assert_eq!(task.artifacts[0].unknown, unknown(&[("a", "1"), ("b", "0.10")]));
}

#[test]
fn what_nobody_knows_weighs_what_it_is_long() {
    let with = |bytes: usize| {
        let part = Part { unknown: unknown(&[("u", &format!("\"{}\"", "x".repeat(bytes)))]), ..Part::text("") };
        weight(&TaskEvent::Said(Arc::new(Message::of_parts(Role::User, "m", vec![part]))))
    };
    let without = weight(&TaskEvent::Said(Arc::new(Message::text(Role::User, "m", ""))));
    assert_eq!(with(100) - with(0), 100);
    assert_eq!(with(0), without + r#""u":"","#.len() as u64);
}
