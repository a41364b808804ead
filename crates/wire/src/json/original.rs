//! The original protocol: `tasks/send`, task ids chosen by the client, nothing but tasks.

pub(crate) mod card;
mod event;
mod request;
mod task;

use chancery_protocol::{AgentCard, Error, ErrorKind, NamedTask, Operation, Reply, Request, Sent, TaskEvent};

use self::card::Card;
use self::event::Writer;
use self::request::{SendMembers, SendView, TaskConfigMembers, TaskConfigView, TaskParams};
use self::task::{TaskMembers, TaskView};
use super::decode::from_json;
use super::peer::{answers_with_events, from_peer, not_understood};
use super::write::write;
use crate::codec::{Codec, TaskNames};
use crate::frames::Frames;

/// The codec of the original protocol. It also reads what `rvagent-a2a` sends and writes what that can read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Original;

impl Codec for Original {
    fn name(&self) -> &'static str {
        "original"
    }

    fn decode_request(&self, operation: Operation, params: &str) -> Result<Request, Error> {
        let task = || from_json::<TaskParams>(params);
        Ok(match operation {
            Operation::SendMessage => Request::SendMessage(from_json::<SendMembers>(params)?.into()),
            Operation::StreamMessage => Request::StreamMessage(from_json::<SendMembers>(params)?.into()),
            Operation::GetTask => Request::GetTask(task()?.into_get()),
            Operation::CancelTask => Request::CancelTask(task()?.into_cancel()),
            Operation::SubscribeToTask => Request::SubscribeToTask(task()?.into_subscribe()),
            Operation::CreatePushConfig => Request::CreatePushConfig(from_json::<TaskConfigMembers>(params)?.into()),
            Operation::GetPushConfig => Request::GetPushConfig(task()?.into_push_config()),
            Operation::ListTasks | Operation::ListPushConfigs | Operation::DeletePushConfig | Operation::GetExtendedCard => {
                return Err(no_such(operation, ErrorKind::MethodNotFound));
            }
        })
    }

    fn encode_request(&self, out: &mut Vec<u8>, request: &Request) -> Result<(), Error> {
        match request {
            Request::SendMessage(send) | Request::StreamMessage(send) => write(out, &SendView::of(send)?),
            Request::GetTask(get) => {
                write(out, &TaskParams { history_length: get.history_length, ..TaskParams::of(&get.id) });
            }
            Request::CancelTask(cancel) => {
                write(out, &TaskParams { metadata: cancel.metadata.clone(), ..TaskParams::of(&cancel.id) });
            }
            Request::SubscribeToTask(subscribe) => write(out, &TaskParams::of(&subscribe.id)),
            Request::CreatePushConfig(config) => write(out, &TaskConfigView::from(config)),
            Request::GetPushConfig(which) => write(out, &TaskParams::of(&which.task_id)),
            Request::ListTasks(_) | Request::ListPushConfigs(_) | Request::DeletePushConfig(_) | Request::GetExtendedCard(_) => {
                return Err(no_such(request.operation(), ErrorKind::UnsupportedOperation));
            }
        }
        Ok(())
    }

    fn encode_reply(&self, out: &mut Vec<u8>, reply: &Reply) {
        match reply {
            Reply::Sent(Sent::Task(shown)) | Reply::Task(shown) => write(out, &TaskView::from(shown)),
            Reply::Sent(Sent::Message(message)) => write(out, &TaskView::around(message)),
            Reply::PushConfig(config) => write(out, &TaskConfigView::from(config)),
            Reply::Card(card) => write(out, &Card::from(&**card)),
            // No request of this version asks for these.
            Reply::Tasks(_) | Reply::PushConfigs(_) | Reply::PushConfigDeleted => out.extend_from_slice(b"null"),
        }
    }

    /// No request of this version asks for a list.
    fn encode_listed(&self, _out: &mut Vec<u8>, _shown: &NamedTask, _include_artifacts: bool) {}

    fn decode_reply(&self, operation: Operation, result: &str) -> Result<Reply, Error> {
        Ok(match operation {
            Operation::SendMessage => Reply::Sent(Sent::Task(from_peer::<TaskMembers>(result)?.into())),
            Operation::GetTask | Operation::CancelTask => Reply::Task(from_peer::<TaskMembers>(result)?.into()),
            Operation::CreatePushConfig | Operation::GetPushConfig => {
                Reply::PushConfig(from_peer::<TaskConfigMembers>(result)?.into())
            }
            Operation::StreamMessage | Operation::SubscribeToTask => return Err(answers_with_events(operation)),
            Operation::ListTasks | Operation::ListPushConfigs | Operation::DeletePushConfig | Operation::GetExtendedCard => {
                return Err(not_understood("the original protocol has no such method"));
            }
        })
    }

    fn encode_event(&self, frames: &mut Frames, face: &TaskNames, event: &TaskEvent) {
        Writer::new(frames, face).event(event);
    }

    fn knows_artifacts_by_place(&self) -> bool {
        true
    }

    fn decode_event(&self, payload: &str) -> Result<(Option<TaskNames>, TaskEvent), Error> {
        event::read(payload)
    }

    fn encode_card(&self, card: &AgentCard) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, &Card::from(card));
        out
    }

    fn decode_card(&self, text: &str) -> Result<AgentCard, Error> {
        Ok(from_peer::<Card>(text)?.into())
    }
}

fn no_such(operation: Operation, kind: ErrorKind) -> Error {
    Error::new(kind, format!("the original protocol has no method for {operation:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{
        Artifact, Message, NamedTask, Part, Role, SendMessage, Task, TaskState, TaskStatus, Timestamp, Version,
    };
    use std::sync::Arc;

    fn send(params: &str) -> SendMessage {
        match Original.decode_request(Operation::SendMessage, params).unwrap() {
            Request::SendMessage(send) => send,
            other => panic!("{other:?}"),
        }
    }

    fn task(state: TaskState, artifacts: usize) -> Task {
        Task {
            id: "server".into(),
            context_id: "s".into(),
            status: TaskStatus { state, message: None, timestamp: Some(Timestamp::from_micros(0)), unknown: Default::default() },
            artifacts: (0..artifacts).map(|n| Arc::new(Artifact::new(format!("{n}"), vec![Part::text("x")]))).collect(),
            history: Vec::new(),
            metadata: None,
            unknown: Default::default(),
        }
    }

    fn frames(event: &TaskEvent) -> String {
        let mut frames = Frames::bare();
        frames.set_event_id(9);
        let face = TaskNames {
            task_id: "server".into(),
            context_id: "s".into(),
            client_task_id: Some("mine".into()),
            artifacts: Vec::new(),
            stays_open: false,
        };
        Original.encode_event(&mut frames, &face, event);
        String::from_utf8(frames.take()).unwrap()
    }

    #[test]
    fn the_client_names_the_task_and_the_session() {
        let send = send(r#"{"id":"mine","sessionId":"s","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}"#);
        assert_eq!(send.client_task_id.as_deref(), Some("mine"));
        assert_eq!(send.message.context_id, Some("s".into()));
        assert_eq!((send.message.task_id.as_ref(), send.message.message_id.as_str()), (None, ""));
    }

    #[test]
    fn what_only_rvagent_sends_is_kept_in_the_metadata() {
        let send = send(
            r#"{"id":"t1","skill":"echo","message":{"role":"user","parts":[{"type":"data","data":[1]}],"metadata":null},
                "policy":{"max_tokens":5},"context":{"depth":0},"metadata":null}"#,
        );
        let vendor = send.metadata.unwrap().get("ruvector").unwrap();
        assert_eq!(vendor["skill"], "echo");
        assert_eq!(vendor["policy"]["max_tokens"], 5);
        assert_eq!(vendor["context"]["depth"], 0);
        assert_eq!(send.message.parts[0], Part::data(&serde_json::json!([1])));
    }

    #[test]
    fn what_only_rvagent_sends_goes_back_to_where_its_agents_look_for_it() {
        let send = send(r#"{"id":"t1","skill":"echo","message":{"role":"user","parts":[]},"context":{"depth":0}}"#);
        let mut out = Vec::new();
        Original.encode_request(&mut out, &Request::SendMessage(send)).unwrap();
        let written: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(written["skill"], "echo");
        assert_eq!(written["context"], serde_json::json!({ "depth": 0 }));
        assert_eq!(written.get("policy"), None);
    }

    #[test]
    fn tasks_are_shown_under_the_clients_name_with_states_it_knows() {
        let written = |state| {
            let shown = NamedTask {
                task: Arc::new(task(state, 1)),
                dialect: Version::Original.into(),
                client_task_id: Some("mine".into()),
            };
            let mut out = Vec::new();
            Original.encode_reply(&mut out, &Reply::Task(shown));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            written(TaskState::Rejected),
            r#"{"id":"mine","sessionId":"s","status":{"state":"failed","timestamp":"1970-01-01T00:00:00.000Z"},"artifacts":[{"parts":[{"type":"text","text":"x"}],"index":0}]}"#
        );
        assert!(written(TaskState::AuthRequired).contains(r#""state":"input-required""#));
    }

    #[test]
    fn a_created_task_is_its_status_then_its_artifacts_and_the_last_frame_has_the_id() {
        let text = frames(&TaskEvent::Created(Arc::new(task(TaskState::Working, 2))));
        let frames: Vec<_> = text.trim_end().split("\n\n").collect();
        assert_eq!(frames.len(), 3);
        assert!(frames[0].starts_with("event: status\ndata: {\"id\":\"mine\",\"status\""), "{text}");
        assert!(frames[1].starts_with("event: artifact\ndata: "), "{text}");
        assert!(frames[2].starts_with("event: artifact\nid: 9\ndata: "), "{text}");
    }

    #[test]
    fn a_status_that_ends_the_stream_comes_after_the_artifacts() {
        let text = frames(&TaskEvent::Created(Arc::new(task(TaskState::Completed, 1))));
        let frames: Vec<_> = text.trim_end().split("\n\n").collect();
        assert!(frames[0].starts_with("event: artifact\ndata: "), "{text}");
        assert!(frames[1].contains("id: 9\n") && frames[1].ends_with("\"final\":true}"), "{text}");
    }

    #[test]
    fn a_message_alone_is_shown_as_a_task_that_is_done() {
        let message = Message { context_id: Some("s".into()), ..Message::text(Role::Agent, "m", "hello") };
        let mut out = Vec::new();
        Original.encode_reply(&mut out, &Reply::Sent(Sent::Message(Arc::new(message.clone()))));
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with(r#"{"id":"m","sessionId":"s","status":{"state":"completed","message":{"role":"agent""#));
        assert!(frames(&TaskEvent::Replied(Arc::new(message))).ends_with("\"final\":true}\n\n"));
    }

    #[test]
    fn what_the_original_cannot_ask_is_refused() {
        let error = Original.decode_request(Operation::ListTasks, "{}").unwrap_err();
        assert_eq!(error.kind, ErrorKind::MethodNotFound);
        let error = Original.encode_request(&mut Vec::new(), &Request::GetExtendedCard(Default::default())).unwrap_err();
        assert_eq!(error.kind, ErrorKind::UnsupportedOperation);
    }
}
