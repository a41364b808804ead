//! Parts that go through the part store of a control plane: offloaded, restored, and deleted with their task.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{
    AfterRestart, Agent, Agents, Answer, Chancery, ChanceryParts, Dedupe, Finished, NextEvents, REFERENCES_EXTENSION,
    RetentionConfig, Rulebook, RunError, Store, TaskLimits, TaskRunner, TaskUpdateSink, Turn,
};
use chancery_identity::SealKey;
use chancery_memory::{ArtifactsConfig, MemoryConfig, Tier};
use chancery_protocol::{
    AgentCard, Artifact, CallContext, Error, ErrorKind, GetTask, Json, ListTasks, Message, Metadata, Part, PartContent, Reply,
    Request, Role, SendConfiguration, SendMessage, Sent, SubscribeToTask, Task, TaskEvent, TaskId, TaskState, Timestamp,
};
use chancery_store::MemoryStore;
use chancery_testkit::{ManualClock, PlainSeal, call_context};
use tempfile::TempDir;
use uuid::Uuid;

use super::{NodePartStore, Own};

/// Repeats the parts of its message, in the form that the message names.
struct Parrot;

#[async_trait]
impl TaskRunner for Parrot {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let said = turn.message.parts.last().cloned().expect("a part");
        match turn.message.first_text() {
            Some("complete") => Ok(updates.message(vec![said])).map(|words| updates.complete(Some(words))),
            Some("pieces") => {
                let pieces: u32 = said.as_text().and_then(|text| text.parse().ok()).unwrap_or(0);
                for piece in 0..pieces {
                    let part = Part::text(format!("{piece:0>1000}"));
                    updates.chunk(Artifact::new("a", vec![part]), piece > 0, false).await?;
                }
                Ok(updates.complete(None))
            }
            Some("artifact") => {
                updates.artifact(Artifact::new("a", turn.message.parts[1..].to_vec())).await?;
                Ok(updates.complete(None))
            }
            Some("ask") => Ok(updates.message(vec![said])).map(|words| updates.input_required(words)),
            Some("reply") => Ok(updates.message(vec![said])).map(|words| updates.reply(words)),
            _ if turn.resumed => Ok(updates.message(vec![said])).map(|words| updates.complete(Some(words))),
            _ => {
                let words = updates.message(vec![said]);
                updates.working(Some(words)).await?;
                std::future::pending().await
            }
        }
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::Resume
    }

    fn may_reply_with_message(&self) -> bool {
        true
    }
}

struct OffloadScene {
    tier: TempDir,
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
}

impl OffloadScene {
    fn new() -> Self {
        let made = Uuid::now_v7().get_timestamp().expect("ids have a time").to_unix().0;
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(i64::try_from(made).expect("a time") * 1_000_000)));
        Self { tier: tempfile::tempdir().expect("a temporary folder"), store: Arc::new(MemoryStore::new()), clock }
    }

    /// A node of that name on the tier.
    fn plane(&self, node: &str) -> Chancery {
        let config = ArtifactsConfig {
            offload: true,
            offload_above_bytes: 100,
            restore_bytes: 1000,
            offload_task_bytes: 3000,
            ..Default::default()
        };
        self.plane_with(node, &config)
    }

    fn plane_with(&self, node: &str, config: &ArtifactsConfig) -> Chancery {
        let card = AgentCard { default_input_modes: vec!["*/*".into()], ..AgentCard::default() };
        let agent = Agent {
            name: "agent".into(),
            card: Arc::new(card),
            extended: None,
            runner: Arc::new(Parrot),
            exposed: true,
            enforces_input_modes: true,
        };
        let chancery = Chancery::new(ChanceryParts {
            agents: Agents::new(agent),
            store: self.store.clone(),
            clock: self.clock.clone(),
            seal: Arc::new(PlainSeal),
            limits: TaskLimits::default(),
            retention: RetentionConfig { max_age_hours: 1, ..RetentionConfig::default() },
            dedupe: Dedupe::Off,
            rules: Rulebook::default(),
            hops: None,
            push: None,
        });
        let tier = self.tier.path().to_str().expect("text").to_owned();
        let tier = Tier::open(&MemoryConfig { tier: Some(tier), ..MemoryConfig::default() }).expect("a tier").map(Arc::new);
        let own = Own { name: node.to_owned(), key: SealKey::new(&[7; 32]).expect("a key") };
        let part_store = NodePartStore::open(config, tier.as_ref(), &own, "http://here").expect("a part store");
        chancery.set_part_store(Arc::new(part_store));
        chancery
    }

    fn folders(&self, node: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.tier.path().join("offload").join(node)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Bytes of a task in the tier.
    fn weight(&self, node: &str, task: &TaskId) -> u64 {
        let folder = self.tier.path().join("offload").join(node).join(task.as_str());
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.map(|file| file.metadata().expect("a file").len()).sum()
    }
}

fn takes_references() -> CallContext {
    CallContext { extensions: vec![REFERENCES_EXTENSION.to_owned()], ..call_context() }
}

async fn say(chancery: &Chancery, context: &CallContext, how: &str, part: Part) -> Sent {
    say_all(chancery, context, None, how, vec![part]).await.expect("it is taken")
}

fn sending(task: Option<&TaskId>, how: &str, parts: Vec<Part>) -> SendMessage {
    let all = [vec![Part::text(how)], parts].concat();
    let message = Arc::new(Message { task_id: task.cloned(), ..Message::of_parts(Role::User, "m", all) });
    let configuration = SendConfiguration { return_immediately: how == "hang", ..SendConfiguration::default() };
    SendMessage { tenant: None, message, configuration, metadata: None, client_task_id: None, unknown: Default::default() }
}

async fn say_all(
    chancery: &Chancery,
    context: &CallContext,
    task: Option<&TaskId>,
    how: &str,
    parts: Vec<Part>,
) -> Result<Sent, Error> {
    match chancery.call(context, Request::SendMessage(sending(task, how, parts))).await? {
        Answer::Reply(Reply::Sent(sent)) => Ok(sent),
        other => panic!("{other:?}"),
    }
}

async fn task_of(chancery: &Chancery, context: &CallContext, how: &str, part: Part) -> Arc<Task> {
    match say(chancery, context, how, part).await {
        Sent::Task(shown) => shown.task,
        other => panic!("{other:?}"),
    }
}

async fn get(chancery: &Chancery, context: &CallContext, id: &TaskId) -> Arc<Task> {
    let get = GetTask { tenant: None, id: id.clone(), history_length: None };
    match chancery.call(context, Request::GetTask(get)).await.expect("it is there") {
        Answer::Reply(Reply::Task(shown)) => shown.task,
        other => panic!("{other:?}"),
    }
}

fn large() -> Part {
    Part::text("a long story ".repeat(20))
}

/// The part of the caller's message and the one of the agent's.
fn both(task: &Task) -> [PartContent; 2] {
    let words = task.status.message.as_ref().expect("words");
    [task.history[0].parts[1].content.clone(), words.parts[0].content.clone()]
}

fn is_link(content: &PartContent, task: &TaskId) -> bool {
    matches!(content, PartContent::Url(url) if url.starts_with(&format!("http://here/artifacts/{task}/")))
}

mod others;

#[tokio::test]
async fn what_callers_and_agents_say_is_kept_as_links_and_read_whole() {
    let scene = OffloadScene::new();
    let chancery = scene.plane("one");
    let task = task_of(&chancery, &call_context(), "complete", large()).await;
    assert_eq!(both(&task), [large().content, large().content], "the agent was told the whole, and so is the caller");
    let log = scene.store.entries(&task.id, 0, 100).await.unwrap();
    assert!(log.len() >= 2);
    assert!(!format!("{log:?}").contains("long story"), "the log has links");
    assert_eq!(scene.folders("one"), [task.id.to_string()]);
    let links = get(&chancery, &takes_references(), &task.id).await;
    assert!(both(&links).iter().all(|content| is_link(content, &task.id)), "{links:?}");
    assert_eq!(both(&*get(&chancery, &call_context(), &task.id).await), [large().content, large().content]);
    let list = ListTasks { include_artifacts: true, ..ListTasks::default() };
    let Answer::Reply(Reply::Tasks(page)) = chancery.call(&call_context(), Request::ListTasks(list)).await.unwrap() else {
        panic!("no page")
    };
    assert_eq!(both(&page.tasks[0].task), [large().content, large().content]);
    // Data too, in the spelling it came in.
    let numbers = format!("[{}]", ["1.50"; 50].join(","));
    let data = Part::new(PartContent::Data(Json::parse(numbers).unwrap()));
    let task = task_of(&chancery, &call_context(), "complete", data.clone()).await;
    assert_eq!(both(&task), [data.content.clone(), data.content]);
    let links = get(&chancery, &takes_references(), &task.id).await;
    assert!(both(&links).iter().all(|content| is_link(content, &task.id)), "{links:?}");
    // More than is put back at once.
    let much = Part::text("x".repeat(1001));
    let task = task_of(&chancery, &call_context(), "complete", much).await;
    assert!(both(&task).iter().all(|content| is_link(content, &task.id)), "{task:?}");
}

#[tokio::test]
async fn a_message_that_is_the_answer_comes_whole_or_as_a_link() {
    let scene = OffloadScene::new();
    let chancery = scene.plane("one");
    let Sent::Message(message) = say(&chancery, &call_context(), "reply", large()).await else { panic!("a task") };
    assert_eq!(message.parts[0], large());
    let Sent::Message(message) = say(&chancery, &takes_references(), "reply", large()).await else { panic!("a task") };
    assert!(matches!(&message.parts[0].content, PartContent::Url(_)), "{message:?}");
}

#[tokio::test]
async fn a_stream_opens_with_the_task_as_its_reader_takes_it() {
    let scene = OffloadScene::new();
    let chancery = scene.plane("one");
    let task = task_of(&chancery, &call_context(), "ask", large()).await;
    for (context, whole) in [(call_context(), true), (takes_references(), false)] {
        let subscribe = SubscribeToTask { tenant: None, id: task.id.clone() };
        let Answer::Stream(mut stream) = chancery.call(&context, Request::SubscribeToTask(subscribe)).await.unwrap() else {
            panic!("no stream")
        };
        let NextEvents::Events(events) = stream.next().await.unwrap() else { panic!("no event") };
        let TaskEvent::Created(shown) = &events[0].event else { panic!("{events:?}") };
        assert_eq!(both(shown) == [large().content, large().content], whole, "{shown:?}");
        assert_eq!(both(shown).iter().all(|content| is_link(content, &task.id)), !whole);
    }
}

#[tokio::test]
async fn a_turn_that_is_taken_up_again_has_the_whole_message() {
    let scene = OffloadScene::new();
    let id = task_of(&scene.plane("one"), &call_context(), "hang", large()).await.id.clone();
    let restarted = scene.plane("one");
    assert_eq!(restarted.recover().await.unwrap().resumed, 1);
    assert_eq!(both(&*get(&restarted, &call_context(), &id).await), [large().content, large().content]);
}

#[tokio::test]
async fn what_was_put_away_goes_with_its_task_and_other_nodes_keep_theirs() {
    let scene = OffloadScene::new();
    let chancery = scene.plane("one");
    let task = task_of(&chancery, &call_context(), "complete", large()).await;
    let theirs = scene.tier.path().join("offload/two").join(Uuid::now_v7().to_string());
    std::fs::create_dir_all(&theirs).unwrap();
    // Put away for a message that is about to be recorded.
    let coming = scene.tier.path().join("offload/one").join(Uuid::now_v7().to_string());
    std::fs::create_dir_all(&coming).unwrap();
    chancery.clear_part_store().await.unwrap();
    assert!(coming.exists() && scene.folders("one").contains(&task.id.to_string()));
    scene.clock.advance(Duration::from_secs(2 * 3600));
    assert_eq!(chancery.sweep().await, 1);
    chancery.clear_part_store().await.unwrap();
    assert_eq!(scene.folders("one"), [] as [String; 0]);
    assert!(theirs.exists(), "its node knows whether it is needed");
}

#[tokio::test]
async fn a_link_that_only_looks_like_ours_is_left_alone() {
    let scene = OffloadScene::new();
    let chancery = scene.plane("one");
    let digest = "0".repeat(64);
    let ours = format!("http://here/artifacts/{}/{digest}", Uuid::now_v7());
    for (url, bytes) in [(ours.clone(), u64::MAX), (ours, 10), ("https://elsewhere/x".to_owned(), 10)] {
        let mark = format!(r#"{{"ruvector":{{"offload":{{"digest":"sha256:{digest}","bytes":{bytes},"kind":"text"}}}}}}"#);
        let metadata: Metadata = serde_json::from_str(&mark).unwrap();
        let part = Part { metadata: Some(metadata), ..Part::new(PartContent::Url(url)) };
        let task = task_of(&chancery, &call_context(), "complete", part.clone()).await;
        assert_eq!(both(&task), [part.content.clone(), part.content]);
    }
}

#[tokio::test]
async fn an_artifact_without_end_comes_to_one_at_the_limit() {
    let scene = OffloadScene::new();
    let chancery = scene.plane("one");
    let most = task_of(&chancery, &call_context(), "pieces", Part::text("3")).await;
    assert_eq!((most.status.state, most.artifacts[0].parts.len()), (TaskState::Completed, 3));
    let more = task_of(&chancery, &call_context(), "pieces", Part::text("4")).await;
    assert_eq!((more.status.state, more.artifacts[0].parts.len()), (TaskState::Failed, 3));
    let said = more.status.message.as_ref().and_then(|message| message.first_text()).unwrap_or_default();
    assert_eq!(said, "TOO_LARGE: more than 3000 bytes of large parts");
}
