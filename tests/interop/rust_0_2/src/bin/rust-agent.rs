//! An agent with the official Rust SDK: `rust-agent BINDING` serves every binding, lists that one first, and prints its URL.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2a::{
    A2AError, AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Artifact, Message, Part, PartContent, Role,
    StreamResponse, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use a2a_grpc::GrpcHandler;
use a2a_pb::proto::a2a_service_server::A2aServiceServer;
use a2a_server::agent_card::agent_card_router;
use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::rest::rest_router;
use a2a_server::{AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryTaskStore, StaticAgentCard};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_stream::wrappers::TcpListenerStream;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

/// Obeys the first word of a message.
#[derive(Default)]
struct Obedient {
    /// Those who sleep, by task, to be woken when it is cancelled.
    asleep: Arc<Mutex<HashMap<String, Arc<Notify>>>>,
}

#[async_trait::async_trait]
impl AgentExecutor for Obedient {
    fn execute(&self, context: ExecutorContext) -> Events {
        let work = Work { task_id: context.task_id.clone(), context_id: context.context_id.clone() };
        let text = context.message.as_ref().map(text).unwrap_or_default();
        let (verb, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let ended = |state| work.status(state, Some(rest));
        let then = match (verb, rest.parse::<u64>()) {
            ("message", _) => {
                let said = Message { context_id: Some(work.context_id), ..Message::new(Role::Agent, vec![Part::text(rest)]) };
                return events([StreamResponse::Message(said)]);
            }
            ("sleep", Ok(millis)) => return events(work.start(context)).chain(self.sleep(work, millis)).boxed(),
            ("stream", Ok(number)) => {
                let id = a2a::new_artifact_id();
                let chunks = (0..number).map(|n| work.chunk(&id, &format!("chunk {n}"), n > 0, n + 1 == number));
                chunks.chain([work.status(TaskState::Completed, None)]).collect()
            }
            ("ask", _) => vec![ended(TaskState::InputRequired)],
            ("fail", _) => vec![ended(TaskState::Failed)],
            ("reject", _) => vec![ended(TaskState::Rejected)],
            _ => {
                let whole = if verb == "complete" { rest } else { &text };
                vec![work.chunk(&a2a::new_artifact_id(), whole, false, true), work.status(TaskState::Completed, None)]
            }
        };
        events(work.start(context).into_iter().chain(then).collect::<Vec<_>>())
    }

    fn cancel(&self, context: ExecutorContext) -> Events {
        let sleeper = self.asleep.lock().unwrap_or_else(PoisonError::into_inner).remove(&context.task_id);
        if let Some(sleeper) = sleeper {
            sleeper.notify_one();
        }
        let work = Work { task_id: context.task_id, context_id: context.context_id };
        events([work.status(TaskState::Canceled, None)])
    }
}

impl Obedient {
    /// Completes after that time, and says nothing when woken: whoever cancels says it.
    fn sleep(&self, work: Work, millis: u64) -> Events {
        let woken = Arc::new(Notify::new());
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner).insert(work.task_id.clone(), woken.clone());
        let slept = async move {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(millis)) => Some(Ok(work.status(TaskState::Completed, None))),
                () = woken.notified() => None,
            }
        };
        stream::once(slept).filter_map(|event| async { event }).boxed()
    }
}

/// One turn of one task.
struct Work {
    task_id: String,
    context_id: String,
}

impl Work {
    /// The task itself where it is new, or that it goes on.
    fn start(&self, context: ExecutorContext) -> Vec<StreamResponse> {
        if context.stored_task.is_some() {
            return vec![self.status(TaskState::Working, None)];
        }
        let status = TaskStatus { state: TaskState::Working, message: None, timestamp: None };
        let (id, context_id) = (self.task_id.clone(), self.context_id.clone());
        let history = context.message.map(|message| vec![message]);
        vec![StreamResponse::Task(Task { id, context_id, status, artifacts: None, history, metadata: None })]
    }

    fn status(&self, state: TaskState, said: Option<&str>) -> StreamResponse {
        let message = said.map(|said| Message::new(Role::Agent, vec![Part::text(said)]));
        let status = TaskStatus { state, message, timestamp: None };
        let (task_id, context_id) = (self.task_id.clone(), self.context_id.clone());
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent { task_id, context_id, status, metadata: None })
    }

    fn chunk(&self, id: &str, text: &str, append: bool, last: bool) -> StreamResponse {
        let parts = vec![Part::text(text)];
        let artifact =
            Artifact { artifact_id: id.into(), name: None, description: None, parts, metadata: None, extensions: None };
        StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            artifact,
            append: Some(append),
            last_chunk: Some(last),
            metadata: None,
        })
    }
}

fn events(said: impl IntoIterator<Item = StreamResponse, IntoIter: Send + 'static>) -> Events {
    stream::iter(said.into_iter().map(Ok)).boxed()
}

fn text(message: &Message) -> String {
    message
        .parts
        .iter()
        .filter_map(|part| if let PartContent::Text(text) = &part.content { Some(text.as_str()) } else { None })
        .collect()
}

fn card(first: &str, http: &str, grpc: &str) -> AgentCard {
    let mut listed = [("JSONRPC", format!("{http}/rpc")), ("HTTP+JSON", http.into()), ("GRPC", format!("http://{grpc}"))];
    listed.sort_by_key(|(binding, _)| *binding != first);
    let interface = |(binding, url): &(&str, String)| AgentInterface {
        url: url.clone(),
        protocol_binding: (*binding).into(),
        protocol_version: "1.0".into(),
        tenant: None,
    };
    AgentCard {
        name: "Rust agent".into(),
        description: "Does what it is told.".into(),
        version: "1".into(),
        supported_interfaces: listed.iter().map(interface).collect(),
        capabilities: capabilities(),
        default_input_modes: vec!["text/plain".into()],
        default_output_modes: vec!["text/plain".into()],
        skills: vec![AgentSkill {
            id: "obey".into(),
            name: "Obey".into(),
            description: "Obeys the first word.".into(),
            tags: vec!["interop".into()],
            examples: None,
            input_modes: None,
            output_modes: None,
            security_requirements: None,
        }],
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: None,
        security_requirements: None,
        signatures: None,
    }
}

fn capabilities() -> AgentCapabilities {
    AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let first = std::env::args().nth(1).ok_or("usage: rust-agent BINDING")?;
    let (http, grpc) = (TcpListener::bind("127.0.0.1:0").await?, TcpListener::bind("127.0.0.1:0").await?);
    let url = format!("http://{}", http.local_addr()?);
    let card = card(&first, &url, &grpc.local_addr()?.to_string());
    let handler = DefaultRequestHandler::new(Obedient::default(), InMemoryTaskStore::new()).with_capabilities(capabilities());
    let handler = Arc::new(handler);
    let app = rest_router(handler.clone())
        .nest("/rpc", jsonrpc_router(handler.clone()))
        .merge(agent_card_router(Arc::new(StaticAgentCard::new(card))));
    let service = tonic::transport::Server::builder().add_service(A2aServiceServer::new(GrpcHandler::new(handler)));
    println!("{url}");
    tokio::try_join!(async { service.serve_with_incoming(TcpListenerStream::new(grpc)).await.map_err(Failure::from) }, async {
        axum::serve(http, app).await.map_err(Failure::from)
    },)?;
    Ok(())
}
