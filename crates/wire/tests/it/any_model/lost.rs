//! What each version cannot say, so that the rest can be held to come back unchanged.

use std::sync::Arc;

use chancery_protocol::{
    Artifact, Message, NamedTask, Part, PartContent, PushConfig, Reply, Request, SendMessage, Sent, StatusChange, Task,
    TaskEvent, TaskState, TaskStatus, Version,
};

/// A version and form as far as it loses something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    V1_0,
    V0_3,
    V0_3Rest,
    Original,
}

use Form::{Original, V0_3, V0_3Rest, V1_0};

impl Form {
    fn version(self) -> Version {
        match self {
            V1_0 => Version::V1_0,
            V0_3 | V0_3Rest => Version::V0_3,
            Original => Version::Original,
        }
    }

    fn part(self, part: Part) -> Part {
        match part.content {
            PartContent::Text(_) | PartContent::Data(_) if self != V1_0 => Part { filename: None, media_type: None, ..part },
            _ => part,
        }
    }

    fn parts(self, parts: Vec<Part>) -> Vec<Part> {
        parts.into_iter().map(|part| self.part(part)).collect()
    }

    fn message(self, message: &Message) -> Arc<Message> {
        let message = Message { parts: self.parts(message.parts.clone()), ..message.clone() };
        Arc::new(match self {
            V1_0 | V0_3 => message,
            V0_3Rest => Message { reference_task_ids: Vec::new(), ..message },
            Original => Message {
                metadata: message.metadata,
                unknown: message.unknown,
                ..Message::of_parts(message.role, "", message.parts)
            },
        })
    }

    fn status(self, status: &TaskStatus) -> TaskStatus {
        let state = match (self, status.state) {
            (Original, TaskState::Rejected) => TaskState::Failed,
            (Original, TaskState::AuthRequired) => TaskState::InputRequired,
            (_, state) => state,
        };
        TaskStatus { state, message: status.message.as_ref().map(|message| self.message(message)), ..status.clone() }
    }

    /// `index` is where the original finds the artifact again.
    fn artifact(self, artifact: &Artifact, index: &str) -> Arc<Artifact> {
        let artifact = Artifact { parts: self.parts(artifact.parts.clone()), ..artifact.clone() };
        Arc::new(match self {
            Original => Artifact { artifact_id: index.into(), extensions: Vec::new(), ..artifact },
            _ => artifact,
        })
    }

    fn task(self, task: &Task) -> Task {
        let artifacts = (0..).zip(&task.artifacts).map(|(index, artifact): (u32, _)| self.artifact(artifact, &index.to_string()));
        Task {
            status: self.status(&task.status),
            artifacts: artifacts.collect(),
            history: task.history.iter().map(|message| self.message(message)).collect(),
            ..task.clone()
        }
    }

    fn shown(self, shown: &NamedTask) -> NamedTask {
        let mut task = self.task(&shown.task);
        let client_task_id = shown.client_task_id.clone().filter(|_| self == Original);
        if let Some(id) = &client_task_id {
            task.id = (&**id).into();
        }
        NamedTask { task: Arc::new(task), dialect: self.version().into(), client_task_id }
    }

    fn push(self, config: &PushConfig) -> PushConfig {
        match self {
            V1_0 => config.clone(),
            V0_3 | V0_3Rest => PushConfig { tenant: None, ..config.clone() },
            Original => PushConfig { tenant: None, id: None, ..config.clone() },
        }
    }

    fn history_length(self, length: Option<i32>) -> Option<i32> {
        if matches!(self, V0_3 | V0_3Rest) { length.filter(|length| *length != 0) } else { length }
    }

    fn send(self, send: SendMessage) -> SendMessage {
        let mut send = send;
        let context_id = send.message.context_id.clone();
        let mut message = Message::clone(&self.message(&send.message));
        if self == Original {
            message.context_id = context_id;
            send.configuration.return_immediately = false;
        } else {
            send.client_task_id = None;
        }
        send.message = Arc::new(message);
        send.configuration.history_length = self.history_length(send.configuration.history_length);
        send.configuration.task_push_notification_config =
            send.configuration.task_push_notification_config.map(|config| Box::new(self.push(&config)));
        send
    }

    /// What is left of a request; nothing if the version cannot ask it.
    pub(crate) fn request(self, request: &Request) -> Option<Request> {
        let tenant = |tenant: Option<String>| tenant.filter(|_| self == V1_0);
        Some(match request.clone() {
            Request::SendMessage(mut send) => {
                send.tenant = tenant(send.tenant);
                Request::SendMessage(self.send(send))
            }
            Request::StreamMessage(mut send) => {
                send.tenant = tenant(send.tenant);
                Request::StreamMessage(self.send(send))
            }
            Request::GetTask(mut get) => {
                get.tenant = tenant(get.tenant);
                get.history_length = self.history_length(get.history_length);
                Request::GetTask(get)
            }
            Request::CancelTask(mut cancel) => {
                cancel.tenant = tenant(cancel.tenant);
                Request::CancelTask(cancel)
            }
            Request::SubscribeToTask(mut subscribe) => {
                subscribe.tenant = tenant(subscribe.tenant);
                Request::SubscribeToTask(subscribe)
            }
            Request::CreatePushConfig(config) => Request::CreatePushConfig(self.push(&config)),
            Request::GetPushConfig(mut which) => {
                which.tenant = tenant(which.tenant);
                which.id = which.id.filter(|_| self != Original);
                Request::GetPushConfig(which)
            }
            _ if self == Original => return None,
            Request::ListTasks(mut list) => {
                list.tenant = tenant(list.tenant);
                list.history_length = self.history_length(list.history_length);
                Request::ListTasks(list)
            }
            Request::ListPushConfigs(mut list) => {
                list.tenant = tenant(list.tenant);
                if self == V0_3 {
                    (list.page_size, list.page_token) = (None, None);
                }
                Request::ListPushConfigs(list)
            }
            Request::DeletePushConfig(mut which) => {
                which.tenant = tenant(which.tenant);
                Request::DeletePushConfig(which)
            }
            Request::GetExtendedCard(mut get) => {
                get.tenant = tenant(get.tenant);
                Request::GetExtendedCard(get)
            }
        })
    }

    /// What is left of a reply; nothing if the version has no such reply.
    pub(crate) fn reply(self, reply: &Reply) -> Option<Reply> {
        Some(match reply.clone() {
            Reply::Sent(Sent::Task(shown)) => Reply::Sent(Sent::Task(self.shown(&shown))),
            Reply::Task(shown) => Reply::Task(self.shown(&shown)),
            Reply::PushConfig(config) => Reply::PushConfig(self.push(&config)),
            _ if self == Original => return None,
            Reply::Sent(Sent::Message(message)) => Reply::Sent(Sent::Message(self.message(&message))),
            Reply::Tasks(mut page) => {
                for shown in &mut page.tasks {
                    let mut task = self.shown(shown);
                    if !page.include_artifacts {
                        Arc::make_mut(&mut task.task).artifacts.clear();
                    }
                    *shown = task;
                }
                // An empty list of artifacts says that they were asked for, but the model has nowhere to keep it.
                page.include_artifacts = page.tasks.iter().any(|shown| !shown.task.artifacts.is_empty());
                Reply::Tasks(page)
            }
            Reply::PushConfigs(mut page) => {
                page.configs = page.configs.iter().map(|config| self.push(config)).collect();
                page.next_page_token = if self == V0_3 { String::new() } else { page.next_page_token };
                Reply::PushConfigs(page)
            }
            Reply::PushConfigDeleted => Reply::PushConfigDeleted,
            Reply::Card(card) => Reply::Card(card),
        })
    }

    /// What is left of an event; nothing if the version shows it as something else.
    pub(crate) fn event(self, event: &TaskEvent) -> Option<TaskEvent> {
        Some(match event.clone() {
            TaskEvent::Status(StatusChange { status, metadata, unknown }) => {
                TaskEvent::Status(StatusChange { status: self.status(&status), metadata, unknown })
            }
            TaskEvent::Artifact(mut chunk) => {
                // Which index it gets is the codec's own affair; its artifacts test holds it steady.
                chunk.artifact = self.artifact(&chunk.artifact, "");
                TaskEvent::Artifact(chunk)
            }
            _ if self == Original => return None,
            TaskEvent::Created(task) => TaskEvent::Created(Arc::new(self.task(&task))),
            TaskEvent::Replied(message) => TaskEvent::Replied(self.message(&message)),
            TaskEvent::Said(message) => TaskEvent::Said(message),
        })
    }
}
