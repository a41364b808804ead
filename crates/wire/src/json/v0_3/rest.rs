//! Version 0.3 over its REST paths, where the JSON is that of the 0.3 proto and not that of its JSON-RPC form.

mod event;
mod form;
mod members;
mod page;
pub(crate) mod part;
mod request;
mod request_members;

use std::sync::Arc;

use chancery_protocol::{
    AgentCard, CancelTask, Error, GetExtendedCard, GetTask, ListPushConfigs, NamedTask, Operation, Reply, Request,
    SubscribeToTask, TaskEvent,
};
use serde::de::IgnoredAny;

use self::event::EventMembers;
use self::form::ProtoForm;
use self::members::{PageMembers, TaskMembers};
use self::page::{PushPage, PushPageMembers};
use self::request::{RefMembers, RefView, TaskConfigMembers, TaskConfigView};
use self::request_members::{ListParams, SendMembers};
use super::card::Card;
use super::event::{EventView, WrappedView};
use super::page::Page;
use super::request::{SendView, set};
use super::task::TaskView;
use crate::codec::{Codec, TaskNames};
use crate::frames::Frames;
use crate::json::card::v0_3_rest;
use crate::json::decode::from_json;
use crate::json::peer::{answers_with_events, from_peer};
use crate::json::write::write;

/// The codec of version 0.3 over REST.
#[derive(Clone, Copy, Debug, Default)]
pub struct V0_3Rest;

impl Codec for V0_3Rest {
    fn name(&self) -> &'static str {
        "0.3 REST"
    }

    fn decode_request(&self, operation: Operation, params: &str) -> Result<Request, Error> {
        let named = || from_json::<RefMembers>(params);
        Ok(match operation {
            Operation::SendMessage => Request::SendMessage(from_json::<SendMembers>(params)?.into()),
            Operation::StreamMessage => Request::StreamMessage(from_json::<SendMembers>(params)?.into()),
            Operation::GetTask => {
                let named = named()?;
                Request::GetTask(GetTask { tenant: None, id: named.task()?, history_length: set(named.history_length) })
            }
            Operation::ListTasks => Request::ListTasks(from_json::<ListParams>(params)?.into()),
            Operation::CancelTask => {
                let named = named()?;
                Request::CancelTask(CancelTask { tenant: None, id: named.task()?, metadata: named.metadata })
            }
            Operation::SubscribeToTask => Request::SubscribeToTask(SubscribeToTask { tenant: None, id: named()?.task()? }),
            Operation::CreatePushConfig => Request::CreatePushConfig(named()?.into_new_push_config()?),
            Operation::GetPushConfig => Request::GetPushConfig(named()?.push_config()?),
            Operation::ListPushConfigs => {
                let named = named()?;
                let (task_id, page_size) = (named.task()?, named.page_size);
                Request::ListPushConfigs(ListPushConfigs { tenant: None, task_id, page_size, page_token: named.page_token })
            }
            Operation::DeletePushConfig => match named()?.push_config()? {
                which if which.id.is_some() => Request::DeletePushConfig(which),
                _ => return Err(Error::invalid_field("configId", "is required")),
            },
            Operation::GetExtendedCard => Request::GetExtendedCard(GetExtendedCard::default()),
        })
    }

    fn encode_request(&self, out: &mut Vec<u8>, request: &Request) -> Result<(), Error> {
        match request {
            Request::SendMessage(send) | Request::StreamMessage(send) => write(out, &SendView::<ProtoForm>::from(send)),
            Request::GetTask(get) => write(out, &RefView { history_length: set(get.history_length), ..RefView::of(&get.id) }),
            Request::ListTasks(list) => write(out, &ListParams::from(list)),
            Request::CancelTask(cancel) => write(out, &RefView { metadata: cancel.metadata.as_ref(), ..RefView::of(&cancel.id) }),
            Request::SubscribeToTask(subscribe) => write(out, &RefView::of(&subscribe.id)),
            Request::CreatePushConfig(config) => {
                let Some(id) = &config.task_id else {
                    return Err(Error::invalid_field("taskId", "is required"));
                };
                let (parent, config_id) = (Some(format!("tasks/{id}")), config.id.as_deref());
                write(out, &RefView { parent, config_id, config: Some(config.into()), ..RefView::of(id) });
            }
            Request::GetPushConfig(which) | Request::DeletePushConfig(which) => {
                write(out, &RefView { config_id: which.id.as_deref(), ..RefView::of(&which.task_id) });
            }
            Request::ListPushConfigs(list) => {
                let (page_size, page_token) = (list.page_size, list.page_token.as_deref());
                write(out, &RefView { page_size, page_token, ..RefView::of(&list.task_id) });
            }
            Request::GetExtendedCard(_) => out.extend_from_slice(b"{}"),
        }
        Ok(())
    }

    fn encode_reply(&self, out: &mut Vec<u8>, reply: &Reply) {
        match reply {
            Reply::Sent(sent) => write(out, &WrappedView::<ProtoForm>::from(sent)),
            Reply::Task(shown) => write(out, &TaskView::<ProtoForm>::from(&*shown.task)),
            Reply::Tasks(page) => write(out, &Page::<ProtoForm>::of(page)),
            Reply::PushConfig(config) => write(out, &TaskConfigView::from(config)),
            Reply::PushConfigs(page) => write(out, &PushPage::of(page)),
            Reply::PushConfigDeleted => out.extend_from_slice(b"{}"),
            Reply::Card(card) => out.extend_from_slice(&v0_3_rest(card)),
        }
    }

    fn encode_listed(&self, out: &mut Vec<u8>, shown: &NamedTask, include_artifacts: bool) {
        let view = if include_artifacts { TaskView::<ProtoForm>::with_artifacts } else { TaskView::without_artifacts };
        write(out, &view(shown));
    }

    fn decode_reply(&self, operation: Operation, result: &str) -> Result<Reply, Error> {
        Ok(match operation {
            Operation::SendMessage => Reply::Sent(from_peer::<EventMembers>(result)?.into_reply()?),
            Operation::GetTask | Operation::CancelTask => Reply::Task(from_peer::<TaskMembers>(result)?.into_shown()),
            Operation::ListTasks => Reply::Tasks(from_peer::<PageMembers>(result)?.into()),
            Operation::CreatePushConfig | Operation::GetPushConfig => {
                Reply::PushConfig(from_peer::<TaskConfigMembers>(result)?.into_model())
            }
            Operation::ListPushConfigs => Reply::PushConfigs(from_peer::<PushPageMembers>(result)?.into()),
            Operation::DeletePushConfig => from_peer::<IgnoredAny>(result).map(|_| Reply::PushConfigDeleted)?,
            Operation::GetExtendedCard => Reply::Card(Arc::new(self.decode_card(result)?)),
            Operation::StreamMessage | Operation::SubscribeToTask => return Err(answers_with_events(operation)),
        })
    }

    fn encode_event(&self, frames: &mut Frames, face: &TaskNames, event: &TaskEvent) {
        if let Some(event) = EventView::<ProtoForm>::of(face, event) {
            frames.push(&WrappedView::from(event), true);
        }
    }

    fn decode_event(&self, payload: &str) -> Result<(Option<TaskNames>, TaskEvent), Error> {
        from_peer::<EventMembers>(payload)?.into_event()
    }

    fn encode_card(&self, card: &AgentCard) -> Vec<u8> {
        v0_3_rest(card)
    }

    fn decode_card(&self, text: &str) -> Result<AgentCard, Error> {
        Ok(from_peer::<Card>(text)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::PushConfig;

    fn decode(operation: Operation, params: &str) -> Request {
        V0_3Rest.decode_request(operation, params).unwrap()
    }

    #[test]
    fn both_spellings_and_both_names_of_the_message_are_read_alike() {
        let snake = r#"{"request":{"message_id":"m","context_id":"c","role":"ROLE_USER","content":[{"text":"x"}]},
            "configuration":{"blocking":true,"history_length":"3","accepted_output_modes":["a"]}}"#;
        let camel = r#"{"message":{"messageId":"m","contextId":"c","role":1,"content":[{"text":"x"}]},
            "configuration":{"blocking":true,"historyLength":3,"acceptedOutputModes":["a"]}}"#;
        assert_eq!(decode(Operation::SendMessage, snake), decode(Operation::SendMessage, camel));
    }

    #[test]
    fn callers_wait_only_when_they_say_so() {
        for (configuration, immediately) in [("{}", true), (r#"{"blocking":false}"#, true), (r#"{"blocking":true}"#, false)] {
            let params =
                format!(r#"{{"request":{{"messageId":"m","role":"ROLE_USER","content":[]}},"configuration":{configuration}}}"#);
            let Request::SendMessage(send) = decode(Operation::SendMessage, &params) else { panic!() };
            assert_eq!(send.configuration.return_immediately, immediately);
        }
    }

    fn set(params: &str) -> PushConfig {
        match decode(Operation::CreatePushConfig, params) {
            Request::CreatePushConfig(config) => config,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_ways_clients_post_a_push_configuration_are_one() {
        let wrapped = r#"{"id":"t","parent":"tasks/t","configId":"p",
            "config":{"name":"tasks/t/pushNotificationConfigs/p","pushNotificationConfig":{"id":"p","url":"u"}}}"#;
        let snake = r#"{"taskId":"t","parent":"tasks/t","config_id":"p",
            "config":{"name":"tasks/t/pushNotificationConfigs/p","push_notification_config":{"url":"u"}}}"#;
        let bare = r#"{"id":"t","name":"tasks/t/pushNotificationConfigs/p","pushNotificationConfig":{"id":"p","url":"u"}}"#;
        assert_eq!(set(wrapped), set(snake));
        assert_eq!(set(wrapped), set(bare));
        let placeholder = r#"{"id":"t","config":{"name":"tasks/t/pushNotificationConfigs/None",
            "pushNotificationConfig":{"url":"u"}}}"#;
        assert_eq!(set(placeholder).id, None);
    }

    #[test]
    fn names_come_from_the_path_or_from_the_resource_name() {
        for params in [
            r#"{"id":"t","configId":"p"}"#,
            r#"{"taskId":"t","pushNotificationConfigId":"p"}"#,
            r#"{"taskId":"t","id":"p"}"#,
            r#"{"name":"tasks/t/pushNotificationConfigs/p"}"#,
        ] {
            let Request::GetPushConfig(which) = decode(Operation::GetPushConfig, params) else { panic!() };
            assert_eq!((which.task_id.as_str(), which.id.as_deref()), ("t", Some("p")), "{params}");
        }
        let error = V0_3Rest.decode_request(Operation::GetTask, r#"{"name":"tasks/"}"#).unwrap_err();
        assert_eq!(error.violations[0].field, "id");
    }

    #[test]
    fn canceled_has_two_spellings_and_the_older_one_is_written() {
        let task = |state: &str| format!(r#"{{"id":"t","contextId":"c","status":{{"state":{state}}}}}"#);
        for state in ["\"TASK_STATE_CANCELLED\"", "\"TASK_STATE_CANCELED\"", "5"] {
            let reply = V0_3Rest.decode_reply(Operation::GetTask, &task(state)).unwrap();
            let mut out = Vec::new();
            V0_3Rest.encode_reply(&mut out, &reply);
            assert_eq!(String::from_utf8(out).unwrap(), task("\"TASK_STATE_CANCELLED\""));
        }
    }

    #[test]
    fn the_card_declares_each_scheme_both_ways() {
        let text = r#"{"name":"n","description":"d","version":"1","capabilities":{},"skills":[],
            "supportedInterfaces":[{"url":"http://h","protocolBinding":"HTTP+JSON","protocolVersion":"0.3"}],
            "securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X"}}},
            "securityRequirements":[{"schemes":{"k":{"list":["s"]}}}]}"#;
        let card: AgentCard = serde_json::from_str(text).unwrap();
        let bytes = V0_3Rest.encode_card(&card);
        assert_eq!(V0_3Rest.decode_card(std::str::from_utf8(&bytes).unwrap()).unwrap(), card);
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(value["securitySchemes"]["k"]["in"], "header");
        assert_eq!(value["securitySchemes"]["k"]["apiKeySecurityScheme"]["location"], "header");
        assert_eq!(value["security"][0]["k"][0], "s");

        let proto = text.replace("securityRequirements", "security").replace("supportedInterfaces", "x");
        let proto = proto.replacen('{', r#"{"url":"http://h","preferredTransport":"HTTP+JSON","#, 1);
        assert_eq!(V0_3Rest.decode_card(&proto).unwrap(), card);
    }
}
