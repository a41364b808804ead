//! `chancery send`: a message to an agent, and what it answers.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use chancery::protocol::{
    Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, Task, TaskEvent, TaskState, TaskStatus,
};
use chancery_core::GOVERNANCE_EXTENSION;
use chancery_outbound::{Conditions, Peer, new_message_id};

use super::credentials::{Credentials, warn_of_plain};
use super::{Failure, Shared, bill, nearby, remark, show};

const EXAMPLES: &str = "\
Examples:
  chancery send hello                                     to the node on this machine
  chancery send parrot hello                              to its agent named parrot
  chancery send https://agent.example.org hello           to an agent elsewhere, over JSON-RPC of A2A 1.0
  chancery agents add URL --name parrot                   agents of other versions and bindings: by the node in front
  chancery send --stream 'stream 5 200'                   print the answer piece by piece
  chancery send --task TASK 'complete blue'               answer a task that asked for something
  echo long text | chancery send -                        take the text from stdin
  CHANCERY_KEY=$KEY chancery send hello                   as the caller with that key
  chancery send --sign-with agent.pem hello               as the agent with that key, by a signature

The answer's text goes to stdout; the task's id and state, and what it cost where the agent says so, go to stderr. With --json stdout has what the server sent,
an object a line.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Send {
    /// Whom to say it to, by URL or by the name it has on the node of this machine [default: that node's first agent], and what
    /// to say; `-` reads it from stdin
    #[arg(required = true, num_args = 1..=2, value_names = ["URL|NAME", "TEXT"])]
    words: Vec<String>,
    /// The agent's address [default: the node on this machine]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The agent's name on that node [default: the node's first]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Print events as they come
    #[arg(long)]
    stream: bool,
    /// The task to continue
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// The conversation a new task belongs to
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// The same key again attaches to the task it made the first time
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Print the task's id as soon as there is one, and leave it to run
    #[arg(long, conflicts_with = "stream")]
    no_wait: bool,
    /// How many seconds to wait for an answer
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    #[command(flatten)]
    credentials: Credentials,
}

impl Send {
    pub(super) async fn run(mut self, shared: &Shared) -> Result<(), Failure> {
        self.address()?;
        let (mut url, trust) = match &self.url {
            Some(url) => (url.clone(), None),
            None => nearby::place(shared).map(|place| (place.url, Some(place.trust)))?,
        };
        if let Some(agent) = &self.agent {
            url = format!("{}/agents/{agent}", url.trim_end_matches('/'));
        }
        let terms = self.credentials.terms(trust)?;
        let peer = Peer::with_terms(&url, Duration::from_secs(self.timeout), terms.clone())?;
        warn_of_plain(&peer, &terms);
        let conditions = Conditions {
            idempotency_key: self.idempotency_key.clone(),
            extensions: vec![GOVERNANCE_EXTENSION.to_owned()],
            ..Conditions::default()
        };
        let send = self.message()?;
        if self.stream {
            stream(&peer, send, &conditions, shared.json).await
        } else {
            ask(&peer, send, &conditions, shared.json).await
        }
    }

    /// The first of two words says whom, as the options do.
    fn address(&mut self) -> Result<(), Failure> {
        if self.words.len() < 2 {
            return Ok(());
        }
        let whom = self.words.remove(0);
        if self.url.is_some() || self.agent.is_some() {
            return Err(Failure::Usage(format!(
                "{whom:?} says whom to send to, and --url or --agent does too; quote a text of several words"
            )));
        }
        if whom.contains("://") {
            self.url = Some(whom);
        } else {
            self.agent = Some(whom);
        }
        Ok(())
    }

    fn message(&self) -> Result<SendMessage, Failure> {
        let text = match self.words.last().map(String::as_str).unwrap_or_default() {
            "-" => {
                let mut text = String::new();
                let read = std::io::stdin().read_to_string(&mut text);
                read.map_err(|error| Failure::Usage(format!("cannot read the text from stdin: {error}")))?;
                text
            }
            text => text.to_owned(),
        };
        // A message is part of what a key stands for, so the same key must make the same message.
        let message_id = self.idempotency_key.clone().unwrap_or_else(new_message_id);
        let mut message = Message::text(Role::User, message_id, text);
        message.task_id = self.task.as_deref().map(Into::into);
        message.context_id = self.context.as_deref().map(Into::into);
        let configuration = SendConfiguration { return_immediately: self.no_wait, ..SendConfiguration::default() };
        Ok(SendMessage {
            tenant: None,
            message: Arc::new(message),
            configuration,
            metadata: None,
            client_task_id: None,
            unknown: Default::default(),
        })
    }
}

async fn ask(peer: &Peer, send: SendMessage, conditions: &Conditions, json: bool) -> Result<(), Failure> {
    let answered = peer.call(&Request::SendMessage(send), conditions).await?;
    if json {
        show::print_json(&answered.result);
    }
    match answered.reply {
        Reply::Sent(Sent::Task(shown)) => {
            if !json {
                show_task(&shown.task);
            }
            conclude(shown.task.id.as_str(), &shown.task.status, bill::line(shown.task.metadata.as_ref()))
        }
        Reply::Sent(Sent::Message(message)) => {
            if !json {
                show::print_line(&show::message(&message));
            }
            tell(bill::line(message.metadata.as_ref()));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What a task came to: its artifacts, or what it said last. A task that goes on is shown by its id.
fn show_task(task: &Task) {
    let said = task.status.message.as_deref();
    if !task.status.state.is_terminal() && !task.status.state.is_interrupted() {
        show::print_line(&show::safe(task.id.as_str()));
        return;
    }
    for artifact in &task.artifacts {
        show::print_line(&show::parts(&artifact.parts));
    }
    if let Some(message) = said.filter(|_| task.status.state.is_interrupted() || succeeded_without_artifact(task)) {
        show::print_line(&show::message(message));
    }
}

fn succeeded_without_artifact(task: &Task) -> bool {
    task.status.state == TaskState::Completed && task.artifacts.is_empty()
}

/// What it cost goes to stderr: it is not the answer.
fn tell(bill: Option<String>) {
    if let Some(bill) = bill {
        remark(&bill);
    }
}

/// Says on stderr how the task stands and what it cost, and whether that is a failure.
fn conclude(id: &str, status: &TaskStatus, bill: Option<String>) -> Result<(), Failure> {
    let (id, state) = (show::safe(id), show::state(status.state));
    let reason = status.message.as_deref().map(|message| format!(": {}", show::message(message))).unwrap_or_default();
    match status.state {
        TaskState::Failed | TaskState::Rejected | TaskState::Canceled => {
            tell(bill);
            Err(Failure::Refused(format!("task {id} {state}{reason}")))
        }
        TaskState::InputRequired | TaskState::AuthRequired => {
            remark(&format!("task {id} {state}; go on with: chancery send --task {id} TEXT"));
            Ok(())
        }
        _ => {
            remark(&format!("task {id} {state}"));
            tell(bill);
            Ok(())
        }
    }
}

async fn stream(peer: &Peer, send: SendMessage, conditions: &Conditions, json: bool) -> Result<(), Failure> {
    let mut events = peer.stream(&Request::StreamMessage(send), conditions).await?;
    let mut shown = Shown::default();
    while let Some(streamed) = events.next().await? {
        if json {
            show::print_json(&streamed.result);
        }
        shown.take(&streamed.event, json);
    }
    shown.end_line();
    shown.conclude()
}

/// What a stream has shown so far.
#[derive(Default)]
struct Shown {
    id: Option<String>,
    status: Option<TaskStatus>,
    replied: bool,
    bill: Option<String>,
    /// Text was printed and the line is still open.
    open_line: bool,
}

impl Shown {
    fn take(&mut self, event: &TaskEvent, json: bool) {
        match event {
            TaskEvent::Created(task) => {
                self.id = Some(task.id.to_string());
                self.status = Some(task.status.clone());
                if !json {
                    remark(&format!("task {} {}", show::safe(task.id.as_str()), show::state(task.status.state)));
                }
            }
            TaskEvent::Status(change) => {
                self.status = Some(change.status.clone());
                self.bill = bill::line(change.metadata.as_ref()).or(self.bill.take());
                if let Some(message) = change.status.message.as_deref().filter(|_| !json) {
                    self.end_line();
                    // What is asked of the caller is a result; what is said on the way is not.
                    if change.status.state.is_interrupted() {
                        show::print_line(&show::message(message));
                    } else if !change.status.state.is_terminal() {
                        remark(&format!("{}: {}", show::state(change.status.state), show::message(message)));
                    }
                }
            }
            TaskEvent::Artifact(chunk) if !json => {
                if !chunk.append {
                    self.end_line();
                }
                let text = show::parts(&chunk.artifact.parts);
                self.open_line = !text.ends_with('\n') && (self.open_line || !text.is_empty());
                show::print(&text);
            }
            TaskEvent::Replied(message) => {
                self.replied = true;
                self.bill = bill::line(message.metadata.as_ref());
                if !json {
                    show::print_line(&show::message(message));
                }
            }
            TaskEvent::Artifact(_) | TaskEvent::Said(_) => {}
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.open_line) {
            show::print("\n");
        }
    }

    fn conclude(self) -> Result<(), Failure> {
        match (self.id, self.status) {
            _ if self.replied => {
                tell(self.bill);
                Ok(())
            }
            (Some(id), Some(status)) if status.state.is_terminal() || status.state.is_interrupted() => {
                conclude(&id, &status, self.bill)
            }
            (Some(id), _) => Err(Failure::Unreachable(format!(
                "the stream ended before the task did; see what becomes of it with: chancery tasks watch {}",
                show::safe(&id)
            ))),
            (None, _) => Err(Failure::Unreachable("the stream ended before it began".to_owned())),
        }
    }
}
