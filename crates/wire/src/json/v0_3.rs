//! Version 0.3 over JSON-RPC: `kind` tags, kebab-case states and a card of its own.

pub(crate) mod card;
mod event;
mod form;
mod kind;
mod members;
mod message;
mod page;
pub(crate) mod push;
mod request;
mod request_members;
pub mod rest;
mod security;
pub(crate) mod state;
mod task;
pub mod wrapped;

use std::sync::Arc;

use chancery_protocol::{
    AgentCard, Error, GetExtendedCard, NamedTask, Operation, PushConfigPage, Reply, Request, Sent, TaskEvent,
};
use serde::de::IgnoredAny;

use self::card::Card;
use self::event::EventView;
use self::form::TaggedForm;
use self::kind::Kind;
use self::members::{MessageMembers, PageMembers, TaskMembers};
use self::message::MessageView;
use self::page::Page;
use self::push::{TaskConfigMembers, TaskConfigView};
use self::request::{SendView, TaskParams, set};
use self::request_members::{ListParams, SendMembers};
use self::task::TaskView;
use super::decode::from_json;
use super::peer::{answers_with_events, from_peer, not_understood};
use super::write::{Each, write};
use crate::codec::{Codec, TaskNames};
use crate::frames::Frames;

/// The codec of version 0.3 over JSON-RPC.
#[derive(Clone, Copy, Debug, Default)]
pub struct V0_3;

impl Codec for V0_3 {
    fn name(&self) -> &'static str {
        "0.3"
    }

    fn decode_request(&self, operation: Operation, params: &str) -> Result<Request, Error> {
        let task = || from_json::<TaskParams>(params);
        Ok(match operation {
            Operation::SendMessage => Request::SendMessage(from_json::<SendMembers>(params)?.into()),
            Operation::StreamMessage => Request::StreamMessage(from_json::<SendMembers>(params)?.into()),
            Operation::GetTask => Request::GetTask(task()?.into_get()),
            Operation::ListTasks => Request::ListTasks(from_json::<ListParams>(params)?.into()),
            Operation::CancelTask => Request::CancelTask(task()?.into_cancel()),
            Operation::SubscribeToTask => Request::SubscribeToTask(task()?.into_subscribe()),
            Operation::CreatePushConfig => Request::CreatePushConfig(from_json::<TaskConfigMembers>(params)?.into()),
            Operation::GetPushConfig => Request::GetPushConfig(task()?.into_push_config()),
            Operation::ListPushConfigs => Request::ListPushConfigs(task()?.into_push_configs()),
            Operation::DeletePushConfig => match task()?.into_push_config() {
                which if which.id.is_some() => Request::DeletePushConfig(which),
                _ => return Err(Error::invalid_field("pushNotificationConfigId", "is required")),
            },
            Operation::GetExtendedCard => {
                // Nothing in it counts, but it has to be JSON.
                from_json::<IgnoredAny>(params)?;
                Request::GetExtendedCard(GetExtendedCard::default())
            }
        })
    }

    fn encode_request(&self, out: &mut Vec<u8>, request: &Request) -> Result<(), Error> {
        match request {
            Request::SendMessage(send) | Request::StreamMessage(send) => write(out, &SendView::<TaggedForm>::from(send)),
            Request::GetTask(get) => {
                write(out, &TaskParams { history_length: set(get.history_length), ..TaskParams::of(&get.id) });
            }
            Request::ListTasks(list) => write(out, &ListParams::from(list)),
            Request::CancelTask(cancel) => {
                write(out, &TaskParams { metadata: cancel.metadata.clone(), ..TaskParams::of(&cancel.id) });
            }
            Request::SubscribeToTask(subscribe) => write(out, &TaskParams::of(&subscribe.id)),
            Request::CreatePushConfig(config) => write(out, &TaskConfigView::from(config)),
            Request::GetPushConfig(which) | Request::DeletePushConfig(which) => {
                write(out, &TaskParams { push_notification_config_id: which.id.clone(), ..TaskParams::of(&which.task_id) });
            }
            Request::ListPushConfigs(list) => write(out, &TaskParams::of(&list.task_id)),
            Request::GetExtendedCard(_) => out.extend_from_slice(b"{}"),
        }
        Ok(())
    }

    fn encode_reply(&self, out: &mut Vec<u8>, reply: &Reply) {
        match reply {
            Reply::Sent(Sent::Task(shown)) | Reply::Task(shown) => write(out, &TaskView::<TaggedForm>::from(&*shown.task)),
            Reply::Sent(Sent::Message(message)) => write(out, &MessageView::<TaggedForm>::from(&**message)),
            Reply::Tasks(page) => write(out, &Page::<TaggedForm>::of(page)),
            Reply::PushConfig(config) => write(out, &TaskConfigView::from(config)),
            Reply::PushConfigs(page) => write(out, &Each(&page.configs, TaskConfigView::from)),
            Reply::PushConfigDeleted => out.extend_from_slice(b"null"),
            Reply::Card(card) => write(out, &Card::from(&**card)),
        }
    }

    fn encode_listed(&self, out: &mut Vec<u8>, shown: &NamedTask, include_artifacts: bool) {
        let view =
            if include_artifacts { TaskView::<TaggedForm>::with_artifacts } else { TaskView::<TaggedForm>::without_artifacts };
        write(out, &view(shown));
    }

    fn decode_reply(&self, operation: Operation, result: &str) -> Result<Reply, Error> {
        Ok(match operation {
            Operation::SendMessage => Reply::Sent(match Kind::peek(result)? {
                Kind::Task => Sent::Task(from_peer::<TaskMembers>(result)?.into_shown()),
                Kind::Message => Sent::Message(Arc::new(from_peer::<MessageMembers>(result)?.into())),
                _ => return Err(not_understood("a message is answered with a task or a message, not with an update")),
            }),
            Operation::GetTask | Operation::CancelTask => Reply::Task(from_peer::<TaskMembers>(result)?.into_shown()),
            Operation::ListTasks => Reply::Tasks(from_peer::<PageMembers>(result)?.into()),
            Operation::CreatePushConfig | Operation::GetPushConfig => {
                Reply::PushConfig(from_peer::<TaskConfigMembers>(result)?.into())
            }
            Operation::ListPushConfigs => {
                let configs = from_peer::<Vec<TaskConfigMembers>>(result)?.into_iter().map(Into::into).collect();
                Reply::PushConfigs(PushConfigPage { configs, next_page_token: String::new() })
            }
            Operation::DeletePushConfig => from_peer::<IgnoredAny>(result).map(|_| Reply::PushConfigDeleted)?,
            Operation::GetExtendedCard => Reply::Card(Arc::new(self.decode_card(result)?)),
            Operation::StreamMessage | Operation::SubscribeToTask => return Err(answers_with_events(operation)),
        })
    }

    fn encode_event(&self, frames: &mut Frames, face: &TaskNames, event: &TaskEvent) {
        if let Some(event) = EventView::<TaggedForm>::of(face, event) {
            frames.push(&event, true);
        }
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

/// Writes what a stream shows of an event, alone. False for what this version does not tell.
pub(crate) fn write_event(out: &mut Vec<u8>, face: &TaskNames, event: &TaskEvent) -> bool {
    let event = EventView::<TaggedForm>::of(face, event);
    event.iter().for_each(|event| write(out, event));
    event.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{ErrorKind, SendMessage};

    fn send(params: &str) -> Result<SendMessage, Error> {
        match V0_3.decode_request(Operation::SendMessage, params)? {
            Request::SendMessage(send) => Ok(send),
            other => panic!("{other:?}"),
        }
    }

    fn with_configuration(configuration: &str) -> SendMessage {
        let message = r#"{"messageId":"m","role":"user","parts":[]}"#;
        send(&format!(r#"{{"message":{message},"configuration":{configuration}}}"#)).unwrap()
    }

    #[test]
    fn what_asks_for_nothing_has_to_be_json_too() {
        let ask = |params: &str| V0_3.decode_request(Operation::GetExtendedCard, params);
        assert!(ask("{}").is_ok() && ask(r#"{"a":[1]}"#).is_ok());
        assert!(ask("{]}").is_err() && ask("{}}").is_err());
    }

    #[test]
    fn callers_wait_unless_they_say_otherwise() {
        for (configuration, immediately) in [("null", false), ("{}", false), (r#"{"blocking":null}"#, false)] {
            assert_eq!(with_configuration(configuration).configuration.return_immediately, immediately);
        }
        assert!(!with_configuration(r#"{"blocking":true}"#).configuration.return_immediately);
        assert!(with_configuration(r#"{"blocking":false}"#).configuration.return_immediately);
    }

    #[test]
    fn a_history_length_of_zero_says_nothing() {
        assert_eq!(with_configuration(r#"{"historyLength":0}"#).configuration.history_length, None);
        assert_eq!(with_configuration(r#"{"historyLength":2}"#).configuration.history_length, Some(2));
        let get = V0_3.decode_request(Operation::GetTask, r#"{"id":"t","historyLength":0}"#).unwrap();
        assert!(matches!(get, Request::GetTask(get) if get.history_length.is_none()));
    }

    #[test]
    fn the_first_of_several_schemes_is_the_one_used() {
        let config = r#"{"pushNotificationConfig":{"url":"u","authentication":{"schemes":["A","B"],"credentials":"c"}}}"#;
        let push = with_configuration(config).configuration.task_push_notification_config.unwrap();
        assert_eq!(push.authentication.unwrap().scheme, "A");
    }

    #[test]
    fn a_message_may_lack_its_kind_but_not_have_another() {
        assert!(send(r#"{"message":{"kind":"message","messageId":"m","role":"user","parts":[]}}"#).is_ok());
        let error = send(r#"{"message":{"kind":"task","messageId":"m","role":"user","parts":[]}}"#).unwrap_err();
        assert_eq!(error.violations[0].field, "message.kind");
    }

    #[test]
    fn faults_name_the_field_in_this_versions_spelling() {
        let message = |rest: &str| format!(r#"{{"message":{{"messageId":"m","role":"user",{rest}}}}}"#);
        for (params, field) in [
            ("{}".to_owned(), "message"),
            (r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}"#.to_owned(), "message.role"),
            (message(r#""parts":[{"text":"a"}]"#), "message.parts[0].kind"),
            (message(r#""parts":[{"kind":"text","text":"a"},{"kind":"text"}]"#), "message.parts[1].text"),
            (message(r#""parts":[{"kind":"file","file":{"bytes":"*"}}]"#), "message.parts[0].file.bytes"),
            (message(r#""parts":[{"kind":"data","data":1}]"#), "message.parts[0]"),
            (message(r#""parts":[{"kind":"sound"}]"#), "message.parts[0].kind"),
            (message(r#""contextId":7"#), "message.contextId"),
        ] {
            let error = send(&params).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidParams);
            assert_eq!(error.violations[0].field, field, "{params}: {error}");
        }
    }

    #[test]
    fn only_deleting_needs_the_configurations_id() {
        let params = r#"{"id":"t"}"#;
        assert!(V0_3.decode_request(Operation::GetPushConfig, params).is_ok());
        let error = V0_3.decode_request(Operation::DeletePushConfig, params).unwrap_err();
        assert_eq!(error.violations[0].field, "pushNotificationConfigId");
    }

    #[test]
    fn results_without_a_kind_are_known_by_their_members() {
        let status = r#""status":{"state":"working"}"#;
        let event = |text: &str| V0_3.decode_event(text).unwrap().1;
        assert!(matches!(event(&format!(r#"{{"id":"t","contextId":"c",{status}}}"#)), TaskEvent::Created(_)));
        assert!(matches!(event(&format!(r#"{{"taskId":"t","contextId":"c",{status}}}"#)), TaskEvent::Status(_)));
        assert!(matches!(event(r#"{"messageId":"m","role":"agent","parts":[]}"#), TaskEvent::Replied(_)));
    }
}
