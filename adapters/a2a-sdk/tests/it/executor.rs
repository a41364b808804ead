//! An executor as a user of the SDK would write it: what it does is chosen by the text of the message.

use std::collections::HashMap;
use std::sync::Arc;

use chancery_a2a_sdk::a2a::{
    A2AError, Artifact, Message, Part, Role, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};
use chancery_a2a_sdk::a2a_server::{AgentExecutor, ExecutorContext};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::{Mutex, Notify, mpsc};

type Word = Result<StreamResponse, A2AError>;

/// Far more updates at once than may wait for the store.
pub(crate) const BURST: usize = 5_000;

/// What an executor was called with.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) cancel: bool,
    pub(crate) text: Option<String>,
    pub(crate) history: Option<usize>,
    pub(crate) metadata: Option<HashMap<String, serde_json::Value>>,
    pub(crate) user: Option<String>,
    pub(crate) tenant: Option<String>,
}

pub(crate) struct Scripted {
    heard: mpsc::UnboundedSender<Heard>,
    /// Lets go of executors that wait.
    pub(crate) released: Arc<Notify>,
}

impl Scripted {
    pub(crate) fn new() -> (Self, Mutex<mpsc::UnboundedReceiver<Heard>>) {
        let (heard, receiver) = mpsc::unbounded_channel();
        (Self { heard, released: Arc::default() }, Mutex::new(receiver))
    }

    fn note(&self, context: &ExecutorContext, cancel: bool) {
        let heard = Heard {
            cancel,
            text: context.message.as_ref().and_then(Message::text).map(str::to_owned),
            history: context.stored_task.as_ref().map(|task| task.history.as_ref().map_or(0, Vec::len)),
            metadata: context.metadata.clone(),
            user: context.user.as_ref().map(|user| user.name.clone()),
            tenant: context.tenant.clone(),
        };
        self.heard.send(heard).expect("the test listens");
    }
}

impl AgentExecutor for Scripted {
    fn execute(&self, context: ExecutorContext) -> BoxStream<'static, Word> {
        self.note(&context, false);
        let text = context.message.as_ref().and_then(Message::text).unwrap_or_default().to_owned();
        let by = Narrator(context);
        let released = Arc::clone(&self.released);
        let wait = move || {
            let released = Arc::clone(&released);
            stream::once(async move { released.notified().await }).filter_map(|()| async { None })
        };
        let words = match text.as_str() {
            "chunks" => vec![
                by.task(TaskState::Submitted),
                by.status(TaskState::Working, Some("on it")),
                by.chunk("one ", false, false),
                by.chunk("two ", true, false),
                by.chunk("three", true, true),
                by.status(TaskState::Completed, Some("done")),
            ],
            "burst" => {
                let piece = |number| by.chunk("x", number > 0, number + 1 == BURST);
                (0..BURST).map(piece).chain([by.status(TaskState::Completed, None)]).collect()
            }
            "ask" => vec![by.status(TaskState::Working, None), by.status(TaskState::InputRequired, Some("which one?"))],
            "the left one" => vec![by.status(TaskState::Completed, Some("the left one it is"))],
            "chat" => vec![by.message("still: which one?")],
            "message" => vec![by.message("no task needed"), by.status(TaskState::Failed, Some("too late"))],
            "late message" => {
                vec![by.chunk("x", false, true), by.message("by the way"), by.status(TaskState::Completed, None)]
            }
            "error" => vec![by.status(TaskState::Working, None), Err(A2AError::internal("the model is out of order"))],
            "panic" => return stream::once(async { panic!("lost my head") }).boxed(),
            "panic at once" => panic!("never had one"),
            "nothing" => vec![],
            "fade" => vec![by.status(TaskState::Working, None), by.chunk("x", false, true)],
            "twice" => vec![
                by.status(TaskState::Completed, Some("first")),
                by.status(TaskState::Failed, Some("second")),
                by.chunk("third", false, true),
            ],
            "fail" => vec![by.failure()],
            "reject" => vec![by.status(TaskState::Rejected, Some("not my trade"))],
            "snapshot" => vec![by.task(TaskState::Working), by.whole_task(), by.whole_task()],
            "elsewhere" => vec![by.elsewhere()],
            "stateless" => vec![by.status(TaskState::Unspecified, None)],
            "orphan" => vec![by.chunk("x", true, true)],
            "authorise" => {
                let first = stream::iter([by.status(TaskState::AuthRequired, Some("log in over there"))]);
                let rest = stream::iter([by.status(TaskState::Working, None), by.status(TaskState::Completed, Some("thanks"))]);
                return first.chain(wait()).chain(rest).boxed();
            }
            "work" | "work deaf" | "work stubborn" => {
                return stream::iter([by.status(TaskState::Working, None)]).chain(stream::pending()).boxed();
            }
            "work until told" => {
                let last = stream::iter([by.chunk("half done", false, true), Err(A2AError::internal("interrupted"))]);
                return stream::iter([by.status(TaskState::Working, None)]).chain(wait()).chain(last).boxed();
            }
            "work to the end" => {
                let last = stream::iter([by.status(TaskState::Completed, Some("was done already"))]);
                return stream::iter([by.status(TaskState::Working, None)]).chain(wait()).chain(last).boxed();
            }
            other => panic!("no script for {other}"),
        };
        stream::iter(words).boxed()
    }

    fn cancel(&self, context: ExecutorContext) -> BoxStream<'static, Word> {
        self.note(&context, true);
        let history = context.stored_task.as_ref().and_then(|task| task.history.as_ref());
        let text = history.and_then(|history| history[0].text()).unwrap_or_default().to_owned();
        let by = Narrator(context);
        match text.as_str() {
            "work deaf" => stream::empty().boxed(),
            "work stubborn" => stream::iter([Err(A2AError::task_not_cancelable(&by.0.task_id))]).boxed(),
            "work until told" | "work to the end" => {
                self.released.notify_one();
                stream::pending().boxed()
            }
            _ => stream::iter([by.status(TaskState::Canceled, Some("put down"))]).boxed(),
        }
    }
}

/// Words about one task.
struct Narrator(ExecutorContext);

impl Narrator {
    fn message_of(&self, text: &str) -> Message {
        Message::new(Role::Agent, vec![Part::text(text)])
    }

    fn status_of(&self, state: TaskState, text: Option<&str>) -> TaskStatus {
        TaskStatus { state, message: text.map(|text| self.message_of(text)), timestamp: None }
    }

    fn update(&self, status: TaskStatus, metadata: Option<HashMap<String, serde_json::Value>>) -> Word {
        let (task_id, context_id) = self.0.task_info();
        Ok(StreamResponse::StatusUpdate(TaskStatusUpdateEvent { task_id, context_id, status, metadata }))
    }

    fn status(&self, state: TaskState, text: Option<&str>) -> Word {
        self.update(self.status_of(state, text), None)
    }

    fn chunk(&self, text: &str, append: bool, last_chunk: bool) -> Word {
        let (task_id, context_id) = self.0.task_info();
        Ok(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id,
            context_id,
            artifact: artifact("text", text),
            append: Some(append),
            last_chunk: Some(last_chunk),
            metadata: Some(HashMap::from([("length".to_owned(), text.len().into())])),
        }))
    }

    fn message(&self, text: &str) -> Word {
        Ok(StreamResponse::Message(self.message_of(text)))
    }

    fn failure(&self) -> Word {
        let parts = vec![Part::text("out of paper"), Part::data(serde_json::json!({"tray": 2}))];
        let status = TaskStatus { state: TaskState::Failed, message: Some(Message::new(Role::Agent, parts)), timestamp: None };
        self.update(status, Some(HashMap::from([("retry".to_owned(), true.into())])))
    }

    fn task_of(&self, status: TaskStatus) -> Task {
        let (id, context_id) = self.0.task_info();
        Task { id, context_id, status, artifacts: None, history: None, metadata: None }
    }

    fn task(&self, state: TaskState) -> Word {
        Ok(StreamResponse::Task(self.task_of(self.status_of(state, None))))
    }

    fn whole_task(&self) -> Word {
        let mut task = self.task_of(self.status_of(TaskState::Completed, Some("all of it")));
        let remark = Message { message_id: "remark".into(), ..self.message_of("on the way") };
        task.history = Some(self.0.message.iter().cloned().chain([remark]).collect());
        task.artifacts = Some(vec![artifact("a", "first"), artifact("b", "second")]);
        task.metadata = Some(HashMap::from([("pages".to_owned(), 2.into())]));
        Ok(StreamResponse::Task(task))
    }

    fn elsewhere(&self) -> Word {
        let task = self.task_of(self.status_of(TaskState::Completed, None));
        Ok(StreamResponse::Task(Task { id: "another".into(), ..task }))
    }
}

fn artifact(id: &str, text: &str) -> Artifact {
    Artifact {
        artifact_id: id.into(),
        name: None,
        description: None,
        parts: vec![Part::text(text)],
        metadata: None,
        extensions: None,
    }
}
