//! Calls an agent in one version and binding after the other, and says what works.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chancery::protocol::{
    CancelTask, ContextId, GetTask, Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, Task, TaskEvent, TaskId,
    Version,
};
use chancery_outbound::client::{AgentClient, AgentCredentials, CallConditions, ClientError, ClientLimits, Interface};
use chancery_outbound::guard::WayOut;
use chancery_outbound::new_message_id;
use chancery_outbound::remote::AgentNotes;
use chancery_wire::tolerant::Leniency;
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::super::super::show;

/// How long one call may take.
const WITHIN: Duration = Duration::from_secs(30);

/// How the agent is reached.
pub(super) struct Patient<'a> {
    pub(super) way_out: &'a WayOut,
    pub(super) limits: &'a ClientLimits,
    pub(super) credentials: &'a AgentCredentials,
    pub(super) headers: &'a [(HeaderName, HeaderValue)],
    /// Deviating answers are rejected.
    pub(super) is_strict: bool,
}

/// What calls at one interface came to.
pub(super) struct Trial {
    pub(super) interface: Interface,
    steps: Vec<(&'static str, Result<String, String>)>,
    /// How often the answers deviated from their version, by kind.
    deviations: BTreeMap<Leniency, u64>,
}

/// What a unary call brought: the task's names, where there is a task.
struct Answered {
    words: String,
    task: Option<TaskId>,
    context: Option<ContextId>,
}

impl Patient<'_> {
    /// Tries what the card lists, and other versions only if nothing of that answers.
    pub(super) async fn try_all(&self, candidates: &[Interface], listed: &[Interface]) -> Vec<Trial> {
        let is_listed = |one: &Interface| listed.iter().any(|other| (other.version, other.binding) == (one.version, one.binding));
        let mut trials = Vec::new();
        for interface in candidates.iter().filter(|one| is_listed(one)) {
            trials.push(self.try_one(interface).await);
        }
        for interface in candidates.iter().filter(|one| !is_listed(one)) {
            if trials.iter().any(Trial::answers) {
                break;
            }
            trials.push(self.try_one(interface).await);
        }
        trials
    }

    async fn try_one(&self, interface: &Interface) -> Trial {
        let url: Arc<str> = interface.url.as_str().into();
        let notes = Arc::new(AgentNotes::new(Arc::clone(&url), url, None));
        let mut trial = Trial { interface: interface.clone(), steps: Vec::new(), deviations: BTreeMap::new() };
        self.call_all(&mut trial, &notes).await;
        trial.deviations = notes.facts().leniencies;
        trial
    }

    async fn call_all(&self, trial: &mut Trial, notes: &Arc<AgentNotes>) {
        let interface = &trial.interface;
        let dialled = if interface.url.contains("://") { interface.url.clone() } else { format!("http://{}", interface.url) };
        let guard = self.way_out.guard_for(&dialled);
        let client = match AgentClient::new(guard, interface.clone(), self.limits.clone()) {
            Ok(client) => client.reading_by(Arc::clone(notes), self.is_strict),
            Err(error) => {
                trial.steps.push(("unary", Err(error.to_string())));
                return;
            }
        };
        let unary = self.send(&client, None, false).await;
        let (task, context) = unary.as_ref().map_or((None, None), |sent| (sent.task.clone(), sent.context.clone()));
        let is_dead = unary.is_err();
        trial.steps.push(("unary", unary.map(|sent| sent.words).map_err(|error| error.to_string())));
        let stream = self.stream(&client).await;
        let is_dead = is_dead && stream.is_err();
        trial.steps.push(("stream", stream.map_err(|error| error.to_string())));
        if is_dead {
            return;
        }
        if let Some(id) = task {
            trial.steps.push(("get", self.get(&client, id).await.map_err(|error| error.to_string())));
        }
        if let Some(context) = context {
            let again = self.send(&client, Some(context), false).await;
            trial.steps.push(("follow-up", again.map(|sent| sent.words).map_err(|error| error.to_string())));
        }
        trial.steps.push(("cancel", self.cancel(&client).await.map_err(|error| error.to_string())));
    }

    fn conditions(&self) -> CallConditions {
        CallConditions {
            credentials: self.credentials.clone(),
            headers: self.headers.to_vec(),
            deadline: Some(WITHIN),
            ..CallConditions::new(chancery_core::new_trace_id())
        }
    }

    fn message(client: &AgentClient, context: Option<ContextId>, at_once: bool) -> SendMessage {
        let message = Message { context_id: context, ..Message::text(Role::User, new_message_id(), "hello") };
        // The original protocol lets the client name the task.
        let is_original = client.interface().version == Version::Original;
        SendMessage {
            tenant: None,
            message: Arc::new(message),
            configuration: SendConfiguration { return_immediately: at_once, ..SendConfiguration::default() },
            metadata: None,
            client_task_id: is_original.then(|| new_message_id().into()),
            unknown: Default::default(),
        }
    }

    async fn send(&self, client: &AgentClient, context: Option<ContextId>, at_once: bool) -> Result<Answered, ClientError> {
        let send = Request::SendMessage(Self::message(client, context, at_once));
        match client.call(&send, &self.conditions()).await? {
            Reply::Sent(Sent::Task(shown)) | Reply::Task(shown) => {
                let task = &shown.task;
                Ok(Answered { words: of_task(task), task: Some(task.id.clone()), context: Some(task.context_id.clone()) })
            }
            Reply::Sent(Sent::Message(message)) => {
                Ok(Answered { words: "a message".to_owned(), task: None, context: message.context_id.clone() })
            }
            _ => Err(ClientError::not_understood("it answered something that was not asked for".to_owned())),
        }
    }

    async fn stream(&self, client: &AgentClient) -> Result<String, ClientError> {
        let send = Request::StreamMessage(Self::message(client, None, false));
        let mut stream = client.stream(&send, &self.conditions()).await?;
        let (mut events, mut state) = (0_u32, None);
        while let Some(heard) = stream.next().await? {
            events += 1;
            state = match &heard.event {
                TaskEvent::Created(task) => Some(task.status.state),
                TaskEvent::Status(status) => Some(status.status.state),
                _ => state,
            };
        }
        let end = state.map_or("no task".to_owned(), show::state);
        match events {
            0 => Err(ClientError::not_understood("the stream had no event".to_owned())),
            _ => Ok(format!("{events} events, {end}")),
        }
    }

    async fn get(&self, client: &AgentClient, id: TaskId) -> Result<String, ClientError> {
        let get = Request::GetTask(GetTask { tenant: None, id, history_length: None });
        match client.call(&get, &self.conditions()).await? {
            Reply::Task(shown) => Ok(of_task(&shown.task)),
            _ => Err(ClientError::not_understood("it answered something that was not asked for".to_owned())),
        }
    }

    async fn cancel(&self, client: &AgentClient) -> Result<String, ClientError> {
        let Some(id) = self.send(client, None, true).await?.task else { return Ok("not possible: no task was made".to_owned()) };
        let cancel = Request::CancelTask(CancelTask { tenant: None, id, metadata: None });
        match client.call(&cancel, &self.conditions()).await {
            Ok(Reply::Task(shown)) => Ok(show::state(shown.task.status.state)),
            Ok(_) => Ok("answered".to_owned()),
            // A task that ended before is no fault of the agent's.
            Err(ClientError::Refused(error)) => Ok(format!("refused: {}", error.message)),
            Err(error) => Err(error),
        }
    }
}

fn of_task(task: &Task) -> String {
    let parts: usize = task.artifacts.iter().map(|artifact| artifact.parts.len()).sum();
    format!("{}, {parts} parts", show::state(task.status.state))
}

impl Trial {
    fn step(&self, name: &str) -> Option<&Result<String, String>> {
        self.steps.iter().find(|(step, _)| *step == name).map(|(_, came)| came)
    }

    pub(super) fn works(&self, name: &str) -> bool {
        self.step(name).is_some_and(Result::is_ok)
    }

    /// Whether a message can be put to the agent here in any way.
    pub(super) fn answers(&self) -> bool {
        self.works("unary") || self.works("stream")
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let Interface { url, binding, version, .. } = &self.interface;
        let mut lines = vec![format!("\nA2A {version} {} at {}", binding.as_str(), show::safe(url))];
        lines.extend(self.steps.iter().map(|(step, came)| match came {
            Ok(words) => format!("  {step:10} works: {}", show::safe(words)),
            Err(reason) => format!("  {step:10} fails: {}", show::safe(reason)),
        }));
        let names = json!(self.deviations);
        let counted = names.as_object().into_iter().flatten();
        lines.extend(counted.map(|(name, times)| format!("  {:10} {name} ({times})", "deviates")));
        lines
    }

    pub(super) fn to_json(&self) -> Value {
        let Interface { url, binding, version, .. } = &self.interface;
        let step = |(step, came): &(&'static str, Result<String, String>)| match came {
            Ok(words) => json!({ "step": step, "works": true, "answer": words }),
            Err(reason) => json!({ "step": step, "works": false, "reason": reason }),
        };
        let steps: Vec<Value> = self.steps.iter().map(step).collect();
        json!({ "url": url, "binding": binding.as_str(), "version": version, "steps": steps, "deviations": self.deviations })
    }
}

/// A trial with these outcomes.
#[cfg(test)]
pub(super) fn tried(interface: Interface, unary: bool, stream: bool) -> Trial {
    let came = |works: bool| if works { Ok("completed".to_owned()) } else { Err("no".to_owned()) };
    Trial { interface, steps: vec![("unary", came(unary)), ("stream", came(stream))], deviations: BTreeMap::new() }
}
