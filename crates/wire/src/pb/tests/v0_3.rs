//! Every request, reply, event and card of 0.3 comes back from its bytes, except what 0.3 has no place for.

use std::sync::Arc;

use chancery_protocol::*;
use prost_types::value::Kind;
use serde_json::json;

use super::{samples, through_bytes};
use crate::TaskNames;
use crate::pb::v0_3::proto::{self, part::Part as Content};
use crate::pb::v0_3::{card, event, peer, reply, request};
use crate::pb::v1::proto::{AgentCardSignature, AgentExtension, OAuthFlows as Flows};

#[test]
fn a_sent_message_comes_back_with_every_field() {
    for return_immediately in [true, false] {
        let mut send = samples::send();
        send.configuration.return_immediately = return_immediately;
        let bytes = || through_bytes(peer::send_message(&send));
        assert_eq!(bytes().configuration.unwrap().blocking, !return_immediately);
        assert_eq!(request::send_message(bytes()).unwrap(), Request::SendMessage(send.clone()));
        assert_eq!(request::stream_message(bytes()).unwrap(), Request::StreamMessage(send.clone()));
    }
}

#[test]
fn callers_wait_only_when_they_say_so() {
    let immediately = |configuration: Option<proto::SendMessageConfiguration>| {
        let message = peer::send_message(&samples::send()).request;
        let request = proto::SendMessageRequest { request: message, configuration, metadata: None };
        let Request::SendMessage(send) = request::send_message(through_bytes(request)).unwrap() else { panic!() };
        send.configuration.return_immediately
    };
    assert!(immediately(None));
    assert!(immediately(Some(proto::SendMessageConfiguration::default())));
    assert!(!immediately(Some(proto::SendMessageConfiguration { blocking: true, ..Default::default() })));
}

#[test]
fn a_history_length_of_zero_is_unset() {
    let get = |history_length| request::get_task(proto::GetTaskRequest { name: "tasks/t".into(), history_length }).unwrap();
    let of = |history_length| Request::GetTask(GetTask { tenant: None, id: "t".into(), history_length });
    assert_eq!(get(0), of(None));
    assert_eq!(get(2), of(Some(2)));
    assert_eq!(get(-2), of(Some(-2)));
}

#[test]
fn requests_about_tasks_come_back_with_every_field() {
    let get = GetTask { tenant: None, id: "t-1".into(), history_length: Some(4) };
    assert_eq!(peer::get_task(&get).name, "tasks/t-1");
    assert_eq!(request::get_task(through_bytes(peer::get_task(&get))).unwrap(), Request::GetTask(get));
    let cancel = CancelTask { tenant: None, id: "t-1".into(), metadata: None };
    assert_eq!(request::cancel_task(through_bytes(peer::cancel_task(&cancel))).unwrap(), Request::CancelTask(cancel));
    let subscribe = SubscribeToTask { tenant: None, id: "t-1".into() };
    let bytes = through_bytes(peer::subscribe_to_task(&subscribe));
    assert_eq!(request::subscribe_to_task(bytes).unwrap(), Request::SubscribeToTask(subscribe));
    assert_eq!(request::get_extended_card(Default::default()).unwrap(), Request::GetExtendedCard(Default::default()));
}

#[test]
fn requests_about_push_configurations_come_back_with_every_field() {
    let config = samples::push_config();
    let bytes = through_bytes(peer::create_push_config(&config));
    assert_eq!(bytes.config.as_ref().unwrap().name, "tasks/t-1/pushNotificationConfigs/p-1");
    assert_eq!(request::create_push_config(bytes).unwrap(), Request::CreatePushConfig(config));
    for id in [None, Some("p-1".to_owned())] {
        let which = PushConfigRef { tenant: None, task_id: "t-1".into(), id };
        let bytes = through_bytes(peer::get_push_config(&which));
        assert_eq!(request::get_push_config(bytes).unwrap(), Request::GetPushConfig(which));
    }
    let which = PushConfigRef { tenant: None, task_id: "t-1".into(), id: Some("p-1".into()) };
    let bytes = through_bytes(peer::delete_push_config(&which));
    assert_eq!(request::delete_push_config(bytes).unwrap(), Request::DeletePushConfig(which));
    let full = ListPushConfigs { tenant: None, task_id: "t-1".into(), page_size: Some(9), page_token: Some("n".into()) };
    let bare = ListPushConfigs { page_size: None, page_token: None, ..full.clone() };
    for list in [full, bare] {
        let bytes = through_bytes(peer::list_push_configs(&list));
        assert_eq!(request::list_push_configs(bytes).unwrap(), Request::ListPushConfigs(list));
    }
}

#[test]
fn the_id_of_a_new_push_configuration_comes_from_it_or_from_beside_it_and_never_from_the_placeholder() {
    let create = |id: &str, config_id: &str| {
        let config = proto::PushNotificationConfig { id: id.into(), url: "https://a".into(), ..Default::default() };
        let config = proto::TaskPushNotificationConfig {
            name: "tasks/t/pushNotificationConfigs/None".into(),
            push_notification_config: Some(config),
        };
        let (parent, config_id) = ("tasks/t".to_owned(), config_id.to_owned());
        let request = proto::CreateTaskPushNotificationConfigRequest { parent, config_id, config: Some(config) };
        let Request::CreatePushConfig(config) = request::create_push_config(request).unwrap() else { panic!() };
        config.id
    };
    assert_eq!(create("", ""), None);
    assert_eq!(create("", "beside").as_deref(), Some("beside"));
    assert_eq!(create("inside", "beside").as_deref(), Some("inside"));
}

#[test]
fn every_reply_comes_back_with_every_field() {
    let task = || samples::shown(samples::task(TaskState::Canceled), Version::V0_3);
    for sent in [Sent::Task(task()), Sent::Message(Arc::new(samples::message(Role::Agent)))] {
        let answer = Reply::Sent(sent);
        assert_eq!(peer::sent(through_bytes(reply::sent(answer.clone()).unwrap())).unwrap(), answer);
    }
    for shown in [task(), samples::shown(samples::bare_task(), Version::V0_3)] {
        let answer = Reply::Task(shown);
        assert_eq!(peer::task(through_bytes(reply::task(answer.clone()).unwrap())).unwrap(), answer);
    }
    let answer = Reply::PushConfig(samples::push_config());
    assert_eq!(peer::push_config(through_bytes(reply::push_config(answer.clone()).unwrap())).unwrap(), answer);
    let configs = vec![samples::push_config(), PushConfig { authentication: None, token: None, ..samples::push_config() }];
    let answer = Reply::PushConfigs(PushConfigPage { configs, next_page_token: "n".into() });
    assert_eq!(peer::push_configs(through_bytes(reply::push_configs(answer.clone()).unwrap())).unwrap(), answer);
    reply::push_config_deleted(Reply::PushConfigDeleted).unwrap();
    assert_eq!(reply::sent(Reply::PushConfigDeleted).unwrap_err().kind, ErrorKind::Internal);
    assert_eq!(reply::card(Reply::PushConfigDeleted).unwrap_err().kind, ErrorKind::Internal);
}

#[test]
fn every_event_comes_back_with_the_names_of_its_task() {
    let face = TaskNames::named("t-1".into(), "c-1".into());
    for shown in samples::events() {
        let bytes = through_bytes(event::write(&face, &shown).unwrap());
        assert_eq!(event::read(bytes).unwrap(), (Some(face.clone()), shown));
    }
    assert_eq!(event::write(&face, &TaskEvent::Said(Arc::new(samples::message(Role::User)))), None);
}

#[test]
fn a_status_is_final_when_the_task_ends_or_waits_for_the_caller() {
    let face = TaskNames::named("t".into(), "c".into());
    for state in TaskState::ALL {
        let change = StatusChange { status: samples::status(state), metadata: None, unknown: Default::default() };
        let shown = event::write(&face, &TaskEvent::Status(change)).unwrap();
        let Some(proto::stream_response::Payload::StatusUpdate(update)) = shown.payload else { panic!() };
        assert_eq!(update.r#final, state.is_terminal() || state.is_interrupted(), "{}", state.name());
    }
}

fn through_0_3(part: Part) -> (proto::Part, Part) {
    let message = Message::of_parts(Role::Agent, "m", vec![part]);
    let face = TaskNames::named("t".into(), "c".into());
    let written = event::write(&face, &TaskEvent::Replied(Arc::new(message))).unwrap();
    let Some(proto::stream_response::Payload::Msg(shown)) = &written.payload else { panic!() };
    let on_the_wire = shown.content[0].clone();
    let (_, TaskEvent::Replied(back)) = event::read(through_bytes(written)).unwrap() else { panic!() };
    (on_the_wire, back.parts[0].clone())
}

#[test]
fn data_that_is_no_object_is_wrapped_marked_and_comes_back() {
    for value in [json!(null), json!(7), json!("text"), json!([1, {"a": "b"}]), json!(false)] {
        for metadata in [None, Some(samples::metadata("kept"))] {
            let part = Part { metadata, ..Part::data(&value) };
            let (shown, back) = through_0_3(part.clone());
            let Some(Content::Data(data)) = shown.part else { panic!() };
            assert_eq!(data.data.unwrap().fields.keys().collect::<Vec<_>>(), ["value"]);
            assert_eq!(shown.metadata.unwrap().fields["data_part_compat"].kind, Some(Kind::BoolValue(true)));
            assert_eq!(back, part);
        }
    }
}

#[test]
fn an_object_that_only_looks_wrapped_stays_as_it_is() {
    let unmarked = Part::data(&json!({"value": 1}));
    assert_eq!(through_0_3(unmarked.clone()).1, unmarked);
    let metadata = Metadata::try_from(Json::from_value(&json!({"data_part_compat": true}))).unwrap();
    let empty = Part { metadata: Some(metadata), ..Part::data(&json!({"other": 1})) };
    assert_eq!(through_0_3(empty.clone()).1, empty);
}

#[test]
fn text_and_data_lose_the_names_0_3_has_no_place_for() {
    let (_, text) =
        through_0_3(Part { filename: Some("t.md".into()), media_type: Some("text/markdown".into()), ..Part::text("x") });
    assert_eq!(text, Part::text("x"));
    let (_, data) = through_0_3(Part { media_type: Some("application/json".into()), ..Part::data(&json!({})) });
    assert_eq!(data, Part::data(&json!({})));
}

#[test]
fn a_card_comes_back_without_its_signatures() {
    let full = AgentCard { signatures: Vec::new(), ..samples::card("0.3") };
    let written = through_bytes(card::write(&samples::card("0.3")));
    assert_eq!((written.protocol_version.as_str(), written.url.as_str()), ("0.3.0", "127.0.0.1:4000"));
    assert_eq!((written.preferred_transport.as_str(), written.additional_interfaces.len()), ("GRPC", 3));
    assert_eq!(card::read(written).unwrap(), full);
    let answer = Reply::Card(Arc::new(full));
    assert_eq!(peer::card(through_bytes(reply::card(answer.clone()).unwrap())).unwrap(), answer);
}

#[test]
fn only_the_addresses_that_speak_0_3_are_shown() {
    let mut sample = samples::card("1.0");
    sample.supported_interfaces[1].protocol_version = "0.3.0".into();
    let written = card::write(&sample);
    assert_eq!((written.preferred_transport.as_str(), written.additional_interfaces.len()), ("JSONRPC", 1));
    assert_eq!(card::write(&samples::card("1.0")).url, "");
}

#[test]
fn what_0_3_cannot_say_about_oauth_is_left_out_and_then_fails_closed() {
    let mut sample = samples::card("0.3");
    sample.security_schemes = [("device".to_owned(), samples::oauth2(samples::device_code()))].into();
    let written = card::write(&sample);
    let bare = crate::pb::v1::proto::SecurityScheme { ..written.security_schemes["device"].clone() };
    let Some(crate::pb::v1::proto::security_scheme::Scheme::Oauth2SecurityScheme(oauth)) = bare.scheme else { panic!() };
    assert_eq!(oauth.flows, Some(Flows { flow: None }));
    let back = card::read(through_bytes(written)).unwrap();
    assert!(back.security_schemes.is_empty());
    assert_eq!(back.security_requirements, sample.security_requirements);
}

#[test]
fn a_peers_card_is_read_with_its_signatures_and_its_own_spelling_of_addresses() {
    let read = card::read(proto::AgentCard {
        url: "http://127.0.0.1:5000/".into(),
        preferred_transport: "GRPC".into(),
        signatures: vec![AgentCardSignature { protected: "p".into(), signature: "s".into(), header: None }],
        capabilities: Some(proto::AgentCapabilities {
            extensions: vec![AgentExtension { uri: "urn:x".into(), ..Default::default() }],
            ..Default::default()
        }),
        ..Default::default()
    });
    let read = read.unwrap();
    assert_eq!(read.supported_interfaces[0].url, "127.0.0.1:5000");
    assert_eq!(read.signatures[0].signature, "s");
    assert_eq!(read.capabilities.extensions[0].uri, "urn:x");
    assert_eq!(read.capabilities.streaming, None);
    let unnamed = card::read(proto::AgentCard { url: "http://h".into(), ..Default::default() }).unwrap();
    assert_eq!(unnamed.supported_interfaces[0].protocol_binding, "JSONRPC");
}

#[test]
fn faults_are_named_by_the_fields_of_0_3() {
    let field = |result: Result<Request, Error>| result.unwrap_err().violations[0].field.clone();
    assert_eq!(field(request::send_message(Default::default())), "request");
    let mut send = peer::send_message(&samples::send());
    send.request.as_mut().unwrap().content[2] = proto::Part::default();
    assert_eq!(field(request::send_message(send.clone())), "request.content[2]");
    send.request.as_mut().unwrap().content[2].part = Some(Content::File(Default::default()));
    assert_eq!(field(request::send_message(send.clone())), "request.content[2].file");
    send.request.as_mut().unwrap().content.clear();
    send.configuration.as_mut().unwrap().push_notification = Some(Default::default());
    assert_eq!(field(request::send_message(send)), "configuration.push_notification.url");
    assert_eq!(field(request::get_task(Default::default())), "name");
    assert_eq!(field(request::cancel_task(Default::default())), "name");
    assert_eq!(field(request::subscribe_to_task(Default::default())), "name");
    assert_eq!(field(request::list_push_configs(Default::default())), "parent");
    assert_eq!(field(request::create_push_config(Default::default())), "parent");
    let name = "tasks/t/pushNotificationConfigs/".to_owned();
    assert_eq!(field(request::delete_push_config(proto::DeleteTaskPushNotificationConfigRequest { name })), "name");
    let parent = "tasks/t".to_owned();
    let bare = proto::CreateTaskPushNotificationConfigRequest { parent, ..Default::default() };
    assert_eq!(field(request::create_push_config(bare)), "config.push_notification_config");
    assert_eq!(peer::task(Default::default()).unwrap_err().kind, ErrorKind::InvalidAgentResponse);
}
