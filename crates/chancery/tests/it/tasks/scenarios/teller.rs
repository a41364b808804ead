//! Tells one story over one transport in one version.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{
    CancelTask, ContextId, GetTask, ListTasks, Message, NamedTask, Reply, Request, Role, SendConfiguration, SendMessage, Sent,
    SubscribeToTask, TaskId, TaskState, Timestamp, Version,
};

use super::check::{self, Outcome};
use super::lines;
use super::story::{Page, Step, Story, Verb};
use super::watched::Watched;
use crate::support::patience::BOUND;
use crate::support::wire_client::{Conditions, Refusal, WireClient};

/// A task as the story knows it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) id: TaskId,
    pub(super) context: ContextId,
    /// When its status came about, where the step showed it.
    pub(super) at: Option<Timestamp>,
}

pub(crate) struct Teller {
    pub(super) client: WireClient,
    /// Told once per run, so that stories do not meet each other's tasks and keys.
    prefix: String,
    pub(super) known: HashMap<String, Known>,
    streams: HashMap<String, Watched>,
    next_page: String,
    messages: usize,
}

impl Teller {
    pub(crate) fn new(client: WireClient, story: &Story) -> Self {
        let prefix = format!("{}.{}", story.name, client.combination.name());
        Self { client, prefix, known: HashMap::new(), streams: HashMap::new(), next_page: String::new(), messages: 0 }
    }

    pub(crate) async fn tell(mut self, story: &Story) -> Result<(), String> {
        let combination = self.client.combination;
        for (number, step) in (1..).zip(&story.steps).filter(|(_, step)| step.is_for(combination)) {
            let told = tokio::time::timeout(BOUND, self.step(step)).await;
            let told = told.unwrap_or_else(|_| Err("nothing came of it for too long".to_owned()));
            told.map_err(|fault| format!("step {number} ({:?} {:?}): {fault}", step.r#do, step.text.as_deref().unwrap_or("")))?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step.r#do {
            Verb::Send => self.send(step).await,
            Verb::Stream => {
                let request = Request::StreamMessage(self.message(step));
                self.watch(step, request).await
            }
            Verb::Subscribe => {
                let request = Request::SubscribeToTask(SubscribeToTask { tenant: None, id: self.task(step) });
                self.watch(step, request).await
            }
            Verb::Read => {
                let name = step.open.clone().ok_or("which stream?")?;
                let mut watched = self.streams.remove(&name).ok_or("no such stream is open")?;
                watched.read(step, &self.client).await?;
                self.streams.insert(name, watched);
                Ok(())
            }
            Verb::Get => {
                let get = GetTask { tenant: None, id: self.task(step), history_length: step.history_length };
                let outcome = self.call(Request::GetTask(get), step).await;
                self.settle(step, outcome)
            }
            Verb::Cancel => {
                let cancel = CancelTask { tenant: None, id: self.task(step), metadata: None };
                let outcome = self.call(Request::CancelTask(cancel), step).await;
                self.settle(step, outcome)
            }
            Verb::List => self.list(step).await,
            Verb::Await => self.wait_for(step).await,
            Verb::Push => self.webhooks(step).await,
            Verb::ExtendedCard => {
                let outcome = self.call(Request::GetExtendedCard(Default::default()), step).await;
                self.settle(step, outcome)
            }
            Verb::Nothing => check::nothing_there(&self.client.call_nothing().await, self.client.combination),
        }
    }

    pub(super) async fn call(&self, request: Request, step: &Step) -> Outcome {
        match self.client.call(&request, &self.conditions(step)).await {
            Ok(Reply::Sent(Sent::Task(NamedTask { task, .. })) | Reply::Task(NamedTask { task, .. })) => Outcome::Task(task),
            Ok(Reply::Sent(Sent::Message(message))) => Outcome::Message(message),
            Ok(Reply::Tasks(page)) => Outcome::Page(page),
            Ok(other) => Outcome::Other(format!("{other:?}")),
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    /// Holds the outcome against the step, and remembers the task under its new name.
    fn settle(&mut self, step: &Step, outcome: Outcome) -> Result<(), String> {
        check::outcome(self, &step.expect, &outcome)?;
        let own_id = self.own_id(step);
        match (&step.r#as, outcome) {
            (Some(name), Outcome::Task(task)) => {
                if let Some(own_id) = &own_id
                    && task.id != *own_id
                    && step.expect.reply.is_none()
                {
                    return Err(format!("the caller named it {own_id}, and it is shown as {}", task.id));
                }
                let id = own_id.unwrap_or_else(|| task.id.clone());
                self.known.insert(name.clone(), Known { id, context: task.context_id.clone(), at: task.status.timestamp });
            }
            (Some(name), Outcome::Message(message)) => {
                let context = message.context_id.clone().ok_or("a message without a context")?;
                // Nobody tells the id of a task that never was; the agent's words have none.
                self.known.insert(name.clone(), Known { id: TaskId::from(message.message_id.as_str()), context, at: None });
            }
            _ => {}
        }
        Ok(())
    }

    async fn send(&mut self, step: &Step) -> Result<(), String> {
        let request = Request::SendMessage(self.message(step));
        let Some(times) = step.times else {
            let outcome = self.call(request, step).await;
            return self.settle(step, outcome);
        };
        let conditions = self.conditions(step);
        let calls = (0..times).map(|_| self.client.call(&request, &conditions));
        let replies: Result<Vec<Reply>, Refusal> = futures::future::join_all(calls).await.into_iter().collect();
        for reply in replies.map_err(|refusal| format!("{refusal:?}"))? {
            let Reply::Sent(Sent::Task(NamedTask { task, .. })) = reply else { return Err("no task".to_owned()) };
            if let Some(name) = &step.r#as
                && let Some(first) = self.known.get(name)
                && first.id != task.id
            {
                return Err(format!("{} and {} came of one key", first.id, task.id));
            }
            self.settle(step, Outcome::Task(task))?;
        }
        Ok(())
    }

    async fn watch(&mut self, step: &Step, request: Request) -> Result<(), String> {
        let resumed = step.last_event_id.as_deref().and_then(|id| id.parse().ok());
        let stream = match self.client.stream(&request, &self.conditions(step)).await {
            Ok(stream) => stream,
            Err(refusal) => return self.settle(step, Outcome::Refused(refusal)),
        };
        if let Some(error) = &step.expect.error {
            return Err(format!("a stream instead of {error}"));
        }
        let mut watched = Watched::new(stream, resumed);
        watched.read(step, &self.client).await?;
        if let Some(name) = &step.r#as {
            let known = watched.known().ok_or("the stream names no task")?;
            let id = self.own_id(step).unwrap_or_else(|| known.id.clone());
            self.known.insert(name.clone(), Known { id, ..known });
        }
        match &step.open {
            Some(name) => {
                self.streams.insert(name.clone(), watched);
            }
            None => watched.must_be_over().await?,
        }
        Ok(())
    }

    async fn list(&mut self, step: &Step) -> Result<(), String> {
        let state = step
            .state
            .as_ref()
            .map(|word| TaskState::ALL.into_iter().find(|state| lines::state(*state) == *word).expect("a state of the protocol"));
        let page_token = step.page.map(|page| match page {
            Page::Next => self.next_page.clone(),
            Page::Tampered => tampered(&self.next_page),
        });
        let list = ListTasks {
            context_id: step.context.as_ref().map(|name| self.context(name)),
            status: state,
            page_size: step.page_size,
            page_token,
            history_length: step.history_length,
            status_timestamp_after: step.since.as_ref().and_then(|name| self.known.get(name)?.at),
            include_artifacts: step.with_artifacts,
            ..ListTasks::default()
        };
        let outcome = self.call(Request::ListTasks(list), step).await;
        if let Outcome::Page(page) = &outcome {
            self.next_page.clone_from(&page.next_page_token);
        }
        self.settle(step, outcome)
    }

    async fn wait_for(&self, step: &Step) -> Result<(), String> {
        let get = GetTask { tenant: None, id: self.task(step), history_length: None };
        loop {
            let outcome = self.call(Request::GetTask(get.clone()), step).await;
            if check::outcome(self, &step.expect, &outcome).is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(super) fn task(&self, step: &Step) -> TaskId {
        let name = step.task.as_deref().unwrap_or_default();
        self.known.get(name).map_or_else(|| TaskId::from(format!("{}.{name}", self.prefix)), |known| known.id.clone())
    }

    fn context(&self, name: &str) -> ContextId {
        self.known.get(name).map_or_else(|| ContextId::from(format!("{}.{name}", self.prefix)), |known| known.context.clone())
    }

    pub(super) fn conditions(&self, step: &Step) -> Conditions {
        Conditions {
            last_event_id: step.last_event_id.clone(),
            idempotency_key: step.idempotency_key.as_ref().map(|key| format!("{}.{key}", self.prefix)),
            ..Conditions::default()
        }
    }

    /// The original has its clients name the task they make.
    fn own_id(&self, step: &Step) -> Option<TaskId> {
        let makes_one = matches!(step.r#do, Verb::Send | Verb::Stream | Verb::Push) && step.task.is_none();
        let name = step.idempotency_key.as_ref().or(step.r#as.as_ref());
        let own = name.map_or_else(|| format!("message-{}", self.messages), |name| format!("own-{name}"));
        let own = TaskId::from(format!("{}.{own}", self.prefix));
        (makes_one && self.client.combination.version == Version::Original).then_some(own)
    }

    pub(super) fn message(&mut self, step: &Step) -> SendMessage {
        self.messages += 1;
        // A retry is the same message once more, down to its id.
        let id = match &step.idempotency_key {
            Some(key) => format!("{}.{key}", self.prefix),
            None => format!("{}.message-{}", self.prefix, self.messages),
        };
        let mut message = Message::text(Role::User, id.as_str(), step.text.as_deref().unwrap_or_default());
        message.task_id = step.task.as_ref().map(|_| self.task(step));
        message.context_id = step.context.as_ref().map(|name| self.context(name));
        SendMessage {
            tenant: None,
            message: Arc::new(message),
            configuration: SendConfiguration {
                history_length: step.history_length,
                return_immediately: !step.wait,
                ..SendConfiguration::default()
            },
            metadata: None,
            client_task_id: self.own_id(step).map(|id| id.as_str().into()),
            unknown: Default::default(),
        }
    }
}

/// The token with its middle character replaced by another of the same alphabet.
pub(crate) fn tampered(token: &str) -> String {
    let middle = token.len() / 2;
    let other = if token[middle..].starts_with('A') { "B" } else { "A" };
    format!("{}{other}{}", &token[..middle], &token[middle + 1..])
}
