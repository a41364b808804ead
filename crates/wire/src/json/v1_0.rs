//! Version 1.0: the model's own serde form, with the wrappers that replies and events wear.

mod event;
mod page;

use std::sync::Arc;

use chancery_protocol::{
    AgentCard, Error, NamedTask, Operation, PushConfig, PushConfigRef, Reply, Request, Sent, Task, TaskEvent, Version,
};
use serde::de::IgnoredAny;

use self::event::{Event, EventMembers};
use self::page::{Listed, Listing, ListingMembers, PushListing, PushListingMembers};

use super::decode::from_json;
use super::peer::{answers_with_events, from_peer, not_understood};
use super::write::write;
use crate::codec::{Codec, TaskNames};
use crate::frames::Frames;

/// The codec of version 1.0; JSON-RPC and REST share it.
#[derive(Clone, Copy, Debug, Default)]
pub struct V1_0;

impl Codec for V1_0 {
    fn name(&self) -> &'static str {
        "1.0"
    }

    fn decode_request(&self, operation: Operation, params: &str) -> Result<Request, Error> {
        Ok(match operation {
            Operation::SendMessage => Request::SendMessage(from_json(params)?),
            Operation::StreamMessage => Request::StreamMessage(from_json(params)?),
            Operation::GetTask => Request::GetTask(from_json(params)?),
            Operation::ListTasks => Request::ListTasks(from_json(params)?),
            Operation::CancelTask => Request::CancelTask(from_json(params)?),
            Operation::SubscribeToTask => Request::SubscribeToTask(from_json(params)?),
            Operation::CreatePushConfig => Request::CreatePushConfig(with_task(from_json(params)?)?),
            Operation::GetPushConfig => Request::GetPushConfig(with_id(from_json(params)?)?),
            Operation::ListPushConfigs => Request::ListPushConfigs(from_json(params)?),
            Operation::DeletePushConfig => Request::DeletePushConfig(with_id(from_json(params)?)?),
            // The one request that may come without parameters.
            Operation::GetExtendedCard => Request::GetExtendedCard(from_json::<Option<_>>(params)?.unwrap_or_default()),
        })
    }

    fn encode_request(&self, out: &mut Vec<u8>, request: &Request) -> Result<(), Error> {
        match request {
            Request::SendMessage(send) | Request::StreamMessage(send) => write(out, send),
            Request::GetTask(get) => write(out, get),
            Request::ListTasks(list) => write(out, list),
            Request::CancelTask(cancel) => write(out, cancel),
            Request::SubscribeToTask(subscribe) => write(out, subscribe),
            Request::CreatePushConfig(config) => write(out, config),
            Request::GetPushConfig(which) | Request::DeletePushConfig(which) => write(out, which),
            Request::ListPushConfigs(list) => write(out, list),
            Request::GetExtendedCard(get) => write(out, get),
        }
        Ok(())
    }

    fn encode_reply(&self, out: &mut Vec<u8>, reply: &Reply) {
        match reply {
            Reply::Sent(Sent::Task(shown)) => write(out, &Event::Task(&shown.task)),
            Reply::Sent(Sent::Message(message)) => write(out, &Event::Message(message)),
            Reply::Task(shown) => write(out, &*shown.task),
            Reply::Tasks(page) => write(out, &Listing::of(page)),
            Reply::PushConfig(config) => write(out, config),
            Reply::PushConfigs(page) => {
                write(out, &PushListing { configs: &page.configs, next_page_token: &page.next_page_token })
            }
            Reply::PushConfigDeleted => out.extend_from_slice(b"null"),
            Reply::Card(card) => write(out, &**card),
        }
    }

    fn encode_listed(&self, out: &mut Vec<u8>, shown: &NamedTask, include_artifacts: bool) {
        write(out, &Listed::of(shown, include_artifacts));
    }

    fn decode_reply(&self, operation: Operation, result: &str) -> Result<Reply, Error> {
        Ok(match operation {
            Operation::SendMessage => match from_peer(result)? {
                EventMembers { task: Some(task), message: None, .. } => Reply::Sent(Sent::Task(shown(task))),
                EventMembers { task: None, message: Some(message), .. } => Reply::Sent(Sent::Message(message)),
                _ => return Err(not_understood("a reply to a message has exactly one of task and message")),
            },
            Operation::GetTask | Operation::CancelTask => Reply::Task(shown(from_peer(result)?)),
            Operation::ListTasks => Reply::Tasks(from_peer::<ListingMembers>(result)?.into()),
            Operation::CreatePushConfig | Operation::GetPushConfig => Reply::PushConfig(from_peer(result)?),
            Operation::ListPushConfigs => Reply::PushConfigs(from_peer::<PushListingMembers>(result)?.into()),
            // Some answer null and some an empty object; both mean it is gone.
            Operation::DeletePushConfig => from_peer::<IgnoredAny>(result).map(|_| Reply::PushConfigDeleted)?,
            Operation::GetExtendedCard => Reply::Card(from_peer(result)?),
            Operation::StreamMessage | Operation::SubscribeToTask => return Err(answers_with_events(operation)),
        })
    }

    fn encode_event(&self, frames: &mut Frames, face: &TaskNames, event: &TaskEvent) {
        if let Some(event) = Event::of(face, event) {
            frames.push(&event, true);
        }
    }

    fn decode_event(&self, payload: &str) -> Result<(Option<TaskNames>, TaskEvent), Error> {
        from_peer::<EventMembers>(payload)?.into_event()
    }

    fn encode_card(&self, card: &AgentCard) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, card);
        out
    }

    fn decode_card(&self, text: &str) -> Result<AgentCard, Error> {
        from_peer(text)
    }
}

/// Writes what a stream shows of an event, alone. False for what this version does not tell.
pub(crate) fn write_event(out: &mut Vec<u8>, face: &TaskNames, event: &TaskEvent) -> bool {
    let event = Event::of(face, event);
    event.iter().for_each(|event| write(out, event));
    event.is_some()
}

fn with_task(config: PushConfig) -> Result<PushConfig, Error> {
    if config.task_id.is_some() { Ok(config) } else { Err(Error::invalid_field("taskId", "is required")) }
}

/// The model allows a missing id because 0.3 does; 1.0 does not.
fn with_id(which: PushConfigRef) -> Result<PushConfigRef, Error> {
    if which.id.is_some() { Ok(which) } else { Err(Error::invalid_field("id", "is required")) }
}

fn shown(task: Arc<Task>) -> NamedTask {
    NamedTask { task, dialect: Version::V1_0.into(), client_task_id: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{Artifact, Part, TaskPage, TaskState, TaskStatus};

    fn task() -> Arc<Task> {
        Arc::new(Task {
            id: "t".into(),
            context_id: "c".into(),
            status: TaskStatus { state: TaskState::Working, message: None, timestamp: None, unknown: Default::default() },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
            unknown: Default::default(),
        })
    }

    fn written(reply: &Reply) -> String {
        let mut out = Vec::new();
        V1_0.encode_reply(&mut out, reply);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_page_always_has_its_four_members_and_artifacts_only_when_asked_for() {
        let mut with = Task::clone(&task());
        with.artifacts.push(Arc::new(Artifact::new("a", vec![Part::text("x")])));
        let tasks = vec![shown(task()), shown(Arc::new(with))];
        let page = TaskPage { tasks, next_page_token: String::new(), page_size: 50, total_size: 2, include_artifacts: false };
        let text = written(&Reply::Tasks(page.clone()));
        assert!(!text.contains("artifacts"), "{text}");
        assert!(text.ends_with(r#""nextPageToken":"","pageSize":50,"totalSize":2}"#), "{text}");
        let text = written(&Reply::Tasks(TaskPage { include_artifacts: true, ..page }));
        assert!(text.contains(r#""artifacts":[]"#) && text.contains(r#""artifacts":[{"#), "{text}");
    }

    #[test]
    fn an_empty_object_and_null_both_say_deleted() {
        for text in ["null", "{}"] {
            assert_eq!(V1_0.decode_reply(Operation::DeletePushConfig, text).unwrap(), Reply::PushConfigDeleted);
        }
    }

    #[test]
    fn a_push_configuration_needs_its_task_and_its_id() {
        let field = |operation, params| V1_0.decode_request(operation, params).unwrap_err().violations[0].field.clone();
        assert_eq!(field(Operation::CreatePushConfig, r#"{"url":"http://h"}"#), "taskId");
        assert_eq!(field(Operation::GetPushConfig, r#"{"taskId":"t"}"#), "id");
        assert_eq!(field(Operation::DeletePushConfig, r#"{"task_id":"t","id":""}"#), "id");
    }

    #[test]
    fn what_a_peer_gets_wrong_is_the_peers_fault() {
        use chancery_protocol::ErrorKind::InvalidAgentResponse;
        for text in ["{}", "7", r#"{"task":{}}"#, r#"{"task":null,"message":null}"#] {
            assert_eq!(V1_0.decode_reply(Operation::SendMessage, text).unwrap_err().kind, InvalidAgentResponse, "{text}");
            assert_eq!(V1_0.decode_event(text).unwrap_err().kind, InvalidAgentResponse, "{text}");
        }
    }

    #[test]
    fn what_the_caller_said_is_not_shown_again() {
        let mut frames = Frames::bare();
        let face = TaskNames::of_task(&task());
        let said = chancery_protocol::Message::text(chancery_protocol::Role::User, "m", "hi");
        V1_0.encode_event(&mut frames, &face, &TaskEvent::Said(Arc::new(said)));
        assert!(frames.is_empty());
    }
}
