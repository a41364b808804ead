//! Tests of what a mirror forwards, and what it already knows.

use chancery_protocol::{Artifact, Part, Role};

use super::*;

fn asking(id: &str) -> TaskEvent {
    let message = Message::of_parts(Role::Agent, id, vec![Part::text("which colour?")]);
    TaskEvent::Created(Arc::new(task(TaskState::InputRequired, Some(message))))
}

fn task(state: TaskState, message: Option<Message>) -> Task {
    Task {
        id: "theirs".into(),
        context_id: "talk".into(),
        status: TaskStatus { state, message: message.map(Arc::new), timestamp: None, unknown: Default::default() },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        unknown: Default::default(),
    }
}

fn words(news: &[TaskEvent]) -> Vec<String> {
    let message = |event: &TaskEvent| match event {
        TaskEvent::Status(change) => change.status.message.as_ref().map(|message| message.message_id.to_string()),
        _ => None,
    };
    news.iter().filter_map(message).collect()
}

#[test]
fn words_without_a_name_get_one_and_are_news_once() {
    let mut mirror = Mirror::of(&task(TaskState::Submitted, None), None, None);
    let first = words(&mirror.apply(None, asking("")).unwrap());
    assert!(matches!(&first[..], [id] if !id.is_empty()), "{first:?}");
    assert_eq!(mirror.apply(None, asking("")).unwrap(), []);
}

#[test]
fn words_keep_the_name_the_agent_gave_them() {
    let mut mirror = Mirror::of(&task(TaskState::Submitted, None), None, None);
    assert_eq!(words(&mirror.apply(None, asking("m1")).unwrap()), ["m1"]);
    assert_eq!(mirror.apply(None, asking("m1")).unwrap(), []);
}

#[test]
fn what_nobody_knows_of_the_task_comes_with_its_status() {
    let mut mirror = Mirror::of(&task(TaskState::Submitted, None), None, None);
    let mut done = task(TaskState::Completed, None);
    let json = |text: &str| chancery_protocol::Json::parse(text.to_owned()).unwrap();
    assert!(done.unknown.insert("x", json("1.0e5")) && done.unknown.insert("final", json("1")));
    assert!(done.status.unknown.insert("y", json("0.10")));
    let news = mirror.apply(None, TaskEvent::Created(Arc::new(done))).unwrap();
    let [TaskEvent::Status(change)] = &news[..] else { panic!("{news:?}") };
    let members: Vec<_> = change.unknown.iter().map(|(name, value)| (name, value.text())).collect();
    assert_eq!(members, [("x", "1.0e5")], "and not what an update has itself");
    assert_eq!(change.status.unknown.get("y").unwrap().text(), "0.10");
}

/// Of what an id is, and something that has it.
type Saying<'a> = (&'static str, &'a dyn Fn(&str) -> TaskEvent);

#[test]
fn ids_are_as_long_as_they_may_be_and_no_longer() {
    let artifact = |id: &str| Artifact::new(id, vec![Part::text("x")]);
    let whole = |id: &str, context: &str, made: Option<&str>| {
        let mut whole = task(TaskState::Completed, None);
        (whole.id, whole.context_id) = (id.into(), context.into());
        whole.artifacts.extend(made.map(|id| Arc::new(artifact(id))));
        TaskEvent::Created(Arc::new(whole))
    };
    let piece = |id: &str| {
        let (artifact, unknown) = (Arc::new(artifact(id)), Unknown::none());
        TaskEvent::Artifact(ArtifactChunk { artifact, append: false, last_chunk: true, metadata: None, unknown })
    };
    let reply = |id: &str| TaskEvent::Replied(Arc::new(Message::of_parts(Role::Agent, id, vec![Part::text("x")])));
    let heard = |event: TaskEvent| Mirror::of(&task(TaskState::Submitted, None), None, None).apply(None, event);
    let said: [Saying<'_>; 6] = [
        ("a task", &|id| whole(id, "talk", None)),
        ("a context", &|id| whole("theirs", id, None)),
        ("an artifact", &|id| whole("theirs", "talk", Some(id))),
        ("an artifact", &piece),
        ("a message", &reply),
        ("a message", &asking),
    ];
    for (what, event) in said {
        assert!(!heard(event(&"x".repeat(ID_BYTES))).unwrap().is_empty(), "{what}");
        let strange = heard(event(&"x".repeat(ID_BYTES + 1))).unwrap_err();
        assert_eq!(strange, Strange::LongId(what, ID_BYTES + 1));
        assert!(strange.to_string().contains("1025 bytes, more than 1024"), "{strange}");
        let strange = heard(event("a\u{1b}b")).unwrap_err();
        assert_eq!(strange.to_string(), format!("the agent gave {what} an id with the control character U+001B"));
    }
}
