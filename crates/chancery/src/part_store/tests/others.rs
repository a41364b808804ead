//! Tests of forbidden writes by callers and agents: links that look like the node's, parts that are too
//! large, unknown kinds.

use chancery_memory::Digest;
use chancery_protocol::TaskStatus;

use super::*;

/// A link to `part` as the node would make it, but for what only the node can know.
fn forged(part: &Part, task: &str, seal: Option<&str>) -> Part {
    let text = part.as_text().expect("text");
    let digest = Digest::of(text.as_bytes());
    let seal = seal.map_or(String::new(), |seal| format!(r#","seal":"{seal}""#));
    let mark = format!(r#"{{"digest":"sha256:{digest}","bytes":{},"kind":"text"{seal}}}"#, text.len());
    let metadata = serde_json::from_str(&format!(r#"{{"ruvector":{{"offload":{mark}}}}}"#)).expect("metadata");
    Part { metadata: Some(metadata), ..Part::new(PartContent::Url(format!("http://here/artifacts/{task}/{digest}"))) }
}

fn said(status: &TaskStatus) -> &str {
    status.message.as_ref().and_then(|message| message.first_text()).unwrap_or_default()
}

#[tokio::test]
async fn a_link_that_somebody_else_wrote_is_not_followed_however_well_it_guesses() {
    let scene = OffloadScene::new();
    let chancery = scene.plane("one");
    let links: Vec<Part> =
        [None, Some(""), Some("00000000000000000000000000000000")].map(|seal| forged(&large(), "a", seal)).into();
    // Beside the part itself, so that there is something by that name.
    let parts = [vec![large()], links.clone()].concat();
    let Ok(Sent::Task(shown)) = say_all(&chancery, &call_context(), None, "artifact", parts.clone()).await else { panic!() };
    assert_eq!(shown.task.artifacts[0].parts, parts, "{:?}", shown.task.status);
    assert_eq!(shown.task.history[0].parts[1..], parts);
    // Nor does what it says of its size count for anything.
    let huge = forged(&Part::text("x".repeat(1 << 20)), "a", Some("00000000000000000000000000000000"));
    let Ok(Sent::Task(shown)) = say_all(&chancery, &call_context(), None, "artifact", vec![huge, large()]).await else {
        panic!()
    };
    assert_eq!(shown.task.status.state, TaskState::Completed, "{}", said(&shown.task.status));
}

#[tokio::test]
async fn a_link_of_ours_that_somebody_says_again_is_theirs() {
    let scene = OffloadScene::new();
    let chancery = scene.plane("one");
    let task = task_of(&chancery, &takes_references(), "ask", large()).await;
    let link = task.history[0].parts[1].clone();
    assert!(is_link(&link.content, &task.id) && link.metadata.as_ref().is_some_and(|metadata| metadata.text().contains("seal")));
    let again = vec![link.clone(); 200];
    let Ok(Sent::Task(shown)) = say_all(&chancery, &call_context(), Some(&task.id), "artifact", again).await else { panic!() };
    assert_eq!(both_first(&shown.task), large().content, "what was put away comes back");
    for part in shown.task.history.last().into_iter().flat_map(|said| &said.parts[1..]).chain(&shown.task.artifacts[0].parts) {
        assert_eq!(part.content, link.content, "it is a link");
        assert!(part.metadata.as_ref().is_some_and(|metadata| !metadata.text().contains("seal")), "{part:?}");
    }
}

#[tokio::test]
async fn an_ending_for_which_there_is_no_room_brings_no_links_of_ours_either() {
    let scene = OffloadScene::new();
    let chancery = scene.plane("one");
    let much = Part::text("x".repeat(3000));
    let task = task_of(&chancery, &takes_references(), "ask", much).await;
    let link = task.history[0].parts[1].clone();
    let Ok(Sent::Task(shown)) = say_all(&chancery, &call_context(), Some(&task.id), "complete", vec![link.clone()]).await else {
        panic!("no task")
    };
    let words = shown.task.status.message.as_ref().expect("words");
    assert_eq!((shown.task.status.state, &words.parts[0].content), (TaskState::Completed, &link.content));
    assert!(words.parts[0].metadata.as_ref().is_some_and(|metadata| !metadata.text().contains("seal")), "{words:?}");
}

fn both_first(task: &Task) -> PartContent {
    task.history[0].parts[1].content.clone()
}

#[tokio::test]
async fn a_new_stream_opens_with_links_if_there_is_more_than_is_put_back_at_once() {
    let scene = OffloadScene::new();
    let chancery = scene.plane("one");
    for (length, whole) in [(1000, true), (1001, false)] {
        let part = Part::text("x".repeat(length));
        let send = Request::StreamMessage(sending(None, "complete", vec![part.clone()]));
        let Answer::Stream(mut stream) = chancery.call(&call_context(), send).await.unwrap() else { panic!("no stream") };
        let NextEvents::Events(events) = stream.next().await.unwrap() else { panic!("no event") };
        let TaskEvent::Created(shown) = &events[0].event else { panic!("{events:?}") };
        assert_eq!(both_first(shown) == part.content, whole, "{length}");
    }
}

#[tokio::test]
async fn callers_too_put_away_no_more_for_a_task_than_the_limit() {
    let scene = OffloadScene::new();
    let chancery = scene.plane("one");
    let part = |letter: &str| Part::text(letter.repeat(1500));
    let task = task_of(&chancery, &call_context(), "ask", part("a")).await;
    let weight = || scene.weight("one", &task.id);
    assert_eq!(weight(), 1500, "the same twice is one");
    let told = say_all(&chancery, &call_context(), Some(&task.id), "ask", vec![part("b")]).await;
    assert!(told.is_ok());
    assert_eq!(weight(), 3000);
    let refused = say_all(&chancery, &call_context(), Some(&task.id), "ask", vec![part("c")]).await.unwrap_err();
    assert_eq!((refused.kind, &*refused.message), (ErrorKind::TooLarge, "more than 3000 bytes of large parts"));
    assert_eq!(weight(), 3000, "nothing was put away");
    let told = say_all(&chancery, &call_context(), Some(&task.id), "complete", vec![Part::text("short")]).await;
    assert!(told.is_ok(), "the task goes on: {told:?}");
}

#[tokio::test]
async fn a_kind_of_a_version_nobody_knows_is_refused_on_every_node_and_in_every_part() {
    let tagged = |version: &str| {
        let tags = format!(r#"{{"ruvector":{{"artifact_kind":"text","artifact_kind_version":"{version}"}}}}"#);
        Part { metadata: Some(serde_json::from_str(&tags).expect("metadata")), ..Part::text("typed") }
    };
    let scene = OffloadScene::new();
    for chancery in [scene.plane_with("bare", &ArtifactsConfig::default()), scene.plane("one")] {
        let cases = [
            (vec![tagged("1")], true),
            (vec![tagged("2")], false),
            (vec![Part::text("note"), tagged("1")], true),
            (vec![Part::text("note"), tagged("2")], false),
        ];
        for (parts, taken) in cases {
            let Ok(Sent::Task(shown)) = say_all(&chancery, &call_context(), None, "artifact", parts.clone()).await else {
                panic!()
            };
            let status = &shown.task.status;
            assert_eq!(status.state == TaskState::Completed, taken, "{parts:?}: {}", said(status));
            assert_eq!(said(status).contains("CONTENT_TYPE_NOT_SUPPORTED"), !taken, "{}", said(status));
        }
    }
    let content = ArtifactsConfig { accept_lower_version_artifacts: true, ..ArtifactsConfig::default() };
    let task = task_of(&scene.plane_with("content", &content), &call_context(), "artifact", tagged("2")).await;
    assert_eq!(task.status.state, TaskState::Completed);
}
