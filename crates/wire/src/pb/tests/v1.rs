//! Every request, reply, event and card of 1.0 comes back from its bytes as it went.

use std::sync::Arc;

use chancery_protocol::*;

use super::{samples, through_bytes};
use crate::TaskNames;
use crate::pb::v1::{card, event, peer, reply, request};

fn tenant() -> Option<String> {
    Some("acme".to_owned())
}

#[test]
fn a_sent_message_comes_back_with_every_field() {
    let mut message = samples::message(Role::User);
    message.parts.extend(samples::parts_of_1_0());
    message.reference_task_ids = vec!["t-8".into(), "t-9".into()];
    let mut full = SendMessage { tenant: tenant(), message: Arc::new(message), ..samples::send() };
    if let Some(config) = &mut full.configuration.task_push_notification_config {
        config.tenant = tenant();
        config.task_id = Some("t-1".into());
    }
    let bare = SendMessage {
        tenant: None,
        message: Arc::new(Message::text(Role::User, "m", "hi")),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    };
    let none = SendMessage {
        configuration: SendConfiguration { history_length: Some(0), ..SendConfiguration::default() },
        ..bare.clone()
    };
    for send in [full, bare, none] {
        let bytes = || through_bytes(peer::send_message(&send));
        assert_eq!(request::send_message(bytes()).unwrap(), Request::SendMessage(send.clone()));
        assert_eq!(request::stream_message(bytes()).unwrap(), Request::StreamMessage(send.clone()));
    }
}

#[test]
fn requests_about_tasks_come_back_with_every_field() {
    for history_length in [None, Some(0), Some(5), Some(-1)] {
        let get = GetTask { tenant: tenant(), id: "t".into(), history_length };
        assert_eq!(request::get_task(through_bytes(peer::get_task(&get))).unwrap(), Request::GetTask(get));
    }
    let cancel = CancelTask { tenant: tenant(), id: "t".into(), metadata: Some(samples::metadata("cancel")) };
    assert_eq!(request::cancel_task(through_bytes(peer::cancel_task(&cancel))).unwrap(), Request::CancelTask(cancel));
    let subscribe = SubscribeToTask { tenant: tenant(), id: "t".into() };
    let bytes = through_bytes(peer::subscribe_to_task(&subscribe));
    assert_eq!(request::subscribe_to_task(bytes).unwrap(), Request::SubscribeToTask(subscribe));
    let full = ListTasks {
        tenant: tenant(),
        context_id: Some("c".into()),
        status: Some(TaskState::InputRequired),
        page_size: Some(0),
        page_token: Some("next".into()),
        history_length: Some(0),
        status_timestamp_after: Some(Timestamp::from_micros(1_700_000_000_000_001)),
        include_artifacts: true,
    };
    for list in [full, ListTasks::default()] {
        assert_eq!(request::list_tasks(through_bytes(peer::list_tasks(&list))).unwrap(), Request::ListTasks(list));
    }
}

#[test]
fn requests_about_push_configurations_come_back_with_every_field() {
    let config = PushConfig { tenant: tenant(), ..samples::push_config() };
    let bytes = through_bytes(peer::create_push_config(&config));
    assert_eq!(request::create_push_config(bytes).unwrap(), Request::CreatePushConfig(config));
    let which = PushConfigRef { tenant: tenant(), task_id: "t".into(), id: Some("p".into()) };
    let bytes = through_bytes(peer::get_push_config(&which));
    assert_eq!(request::get_push_config(bytes).unwrap(), Request::GetPushConfig(which.clone()));
    let bytes = through_bytes(peer::delete_push_config(&which));
    assert_eq!(request::delete_push_config(bytes).unwrap(), Request::DeletePushConfig(which));
    let full = ListPushConfigs { tenant: tenant(), task_id: "t".into(), page_size: Some(9), page_token: Some("n".into()) };
    let bare = ListPushConfigs { tenant: None, task_id: "t".into(), page_size: None, page_token: None };
    for list in [full, bare] {
        let bytes = through_bytes(peer::list_push_configs(&list));
        assert_eq!(request::list_push_configs(bytes).unwrap(), Request::ListPushConfigs(list));
    }
}

#[test]
fn every_reply_comes_back_with_every_field() {
    let task = || samples::shown(samples::task(TaskState::Completed), Version::V1_0);
    for sent in [Sent::Task(task()), Sent::Message(Arc::new(samples::message(Role::Agent)))] {
        let answer = Reply::Sent(sent);
        assert_eq!(peer::sent(through_bytes(reply::sent(answer.clone()).unwrap())).unwrap(), answer);
    }
    for shown in [task(), samples::shown(samples::bare_task(), Version::V1_0)] {
        let answer = Reply::Task(shown);
        assert_eq!(peer::task(through_bytes(reply::task(answer.clone()).unwrap())).unwrap(), answer);
    }
    let answer = Reply::PushConfig(samples::push_config());
    assert_eq!(peer::push_config(through_bytes(reply::push_config(answer.clone()).unwrap())).unwrap(), answer);
    let configs = vec![samples::push_config(), PushConfig { authentication: None, token: None, ..samples::push_config() }];
    let answer = Reply::PushConfigs(PushConfigPage { configs, next_page_token: "n".into() });
    assert_eq!(peer::push_configs(through_bytes(reply::push_configs(answer.clone()).unwrap())).unwrap(), answer);
    reply::push_config_deleted(Reply::PushConfigDeleted).unwrap();
}

#[test]
fn a_page_of_tasks_shows_artifacts_only_to_who_asked() {
    let tasks = vec![samples::shown(samples::task(TaskState::Failed), Version::V1_0)];
    let page = TaskPage { tasks, next_page_token: "n".into(), page_size: 50, total_size: 51, include_artifacts: true };
    let answer = Reply::Tasks(page.clone());
    assert_eq!(peer::tasks(through_bytes(reply::tasks(answer.clone()).unwrap())).unwrap(), answer);

    let without = reply::tasks(Reply::Tasks(TaskPage { include_artifacts: false, ..page })).unwrap();
    assert!(without.tasks[0].artifacts.is_empty());
    assert_eq!(without.tasks[0].history.len(), 2);
}

#[test]
fn a_reply_of_another_kind_is_an_internal_error() {
    assert_eq!(reply::sent(Reply::PushConfigDeleted).unwrap_err().kind, ErrorKind::Internal);
    assert_eq!(reply::task(Reply::PushConfigDeleted).unwrap_err().kind, ErrorKind::Internal);
    assert_eq!(reply::tasks(Reply::PushConfigDeleted).unwrap_err().kind, ErrorKind::Internal);
    assert_eq!(reply::push_config(Reply::PushConfigDeleted).unwrap_err().kind, ErrorKind::Internal);
    assert_eq!(reply::push_configs(Reply::PushConfigDeleted).unwrap_err().kind, ErrorKind::Internal);
    assert_eq!(reply::card(Reply::PushConfigDeleted).unwrap_err().kind, ErrorKind::Internal);
    assert_eq!(reply::push_config_deleted(Reply::PushConfig(samples::push_config())).unwrap_err().kind, ErrorKind::Internal);
}

#[test]
fn every_event_comes_back_with_the_names_of_its_task() {
    let face = TaskNames::named("t-1".into(), "c-1".into());
    for shown in samples::events() {
        let bytes = through_bytes(event::write(&face, &shown).unwrap());
        assert_eq!(event::read(bytes).unwrap(), (Some(face.clone()), shown));
    }
}

#[test]
fn what_the_caller_said_is_not_shown_to_streams() {
    let face = TaskNames::named("t-1".into(), "c-1".into());
    assert_eq!(event::write(&face, &TaskEvent::Said(Arc::new(samples::message(Role::User)))), None);
}

#[test]
fn a_card_comes_back_with_every_field() {
    let mut full = samples::card("1.0");
    full.supported_interfaces[0].tenant = tenant();
    full.security_schemes.insert("device".into(), samples::oauth2(samples::device_code()));
    full.security_schemes.insert(
        "pkce".into(),
        samples::oauth2(OAuthFlows::AuthorizationCode(AuthorizationCodeFlow {
            authorization_url: "https://example.org/a".into(),
            token_url: "https://example.org/t".into(),
            refresh_url: None,
            scopes: Default::default(),
            pkce_required: true,
        })),
    );
    // Presence matters where a card is signed.
    let said_no = AgentCapabilities {
        streaming: Some(false),
        push_notifications: Some(false),
        extended_agent_card: Some(false),
        extensions: Vec::new(),
    };
    let explicit = AgentCard {
        capabilities: said_no,
        documentation_url: Some(String::new()),
        icon_url: Some(String::new()),
        ..AgentCard::default()
    };
    for sample in [full, AgentCard::default(), explicit] {
        assert_eq!(card::read(through_bytes(card::write(&sample))).unwrap(), sample);
        let answer = Reply::Card(Arc::new(sample));
        assert_eq!(peer::card(through_bytes(reply::card(answer.clone()).unwrap())).unwrap(), answer);
    }
    assert_eq!(request::get_extended_card(Default::default()).unwrap(), Request::GetExtendedCard(Default::default()));
}
