//! Anything the model can hold, for properties to be tried on.

pub(crate) mod lost;

use std::sync::Arc;

use bytes::Bytes;
use chancery_protocol::{
    Artifact, ArtifactChunk, AuthenticationInfo, CancelTask, GetExtendedCard, GetTask, Json, ListPushConfigs, ListTasks, Message,
    Metadata, NamedTask, OpenObject, Part, PartContent, PushConfig, PushConfigPage, PushConfigRef, Reply, Request, Role,
    SendConfiguration, SendMessage, Sent, StatusChange, SubscribeToTask, Task, TaskEvent, TaskPage, TaskState, TaskStatus,
    Timestamp, Unknown, Version,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;

/// Any text, with what needs escaping more often than chance would have it.
fn text() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        4 => proptest::char::range(' ', '~'),
        1 => proptest::sample::select(vec!['"', '\\', '\n', '\r', '\0', '\u{1f}', '\u{7f}', '\u{2028}', 'é', '\u{1f980}']),
        1 => any::<char>(),
    ];
    vec(one, 0..8).prop_map(String::from_iter)
}

/// Text where empty means absent.
fn some_text() -> impl Strategy<Value = String> {
    text().prop_map(|text| format!("{text}x"))
}

fn id() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9:._-]{1,6}"
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has finite numbers", |number| number.is_finite()).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[a-z]{1,3}", inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// An object with something in it: older versions cannot keep an empty one apart from none.
fn metadata() -> impl Strategy<Value = Metadata> {
    btree_map("[a-z]{1,3}", value(), 1..3).prop_map(|map| Metadata::from_object(map.into_iter().collect()))
}

/// JSON in spellings that a reader who only keeps what it means would not write again.
fn spelled() -> impl Strategy<Value = Json> {
    let odd = vec![
        "1.0e5",
        "0.10",
        "-0",
        "12345678901234567890",
        "1E-2",
        r#""\u0041\/\ud83e\udd80""#,
        "[ 1 ,2]",
        r#"{"b" : 1.50,"a":{}}"#,
        "null",
    ];
    prop_oneof![
        proptest::sample::select(odd).prop_map(|text| Json::parse(text.to_owned()).expect("JSON")),
        value().prop_map(|value| Json::from_value(&value)),
    ]
}

/// Names of all kinds, those included that the protocol has elsewhere. What it has here is not taken in.
fn unknown<T: OpenObject>() -> impl Strategy<Value = Unknown<T>> {
    let known_elsewhere = vec!["url", "name", "final", "text", "index", "skill", "$unknown", "tenant", "file", "state", "id"];
    let name = prop_oneof![text(), proptest::sample::select(known_elsewhere).prop_map(str::to_owned)];
    let members = prop_oneof![2 => Just(Vec::new()), 1 => vec((name, spelled()), 1..4)];
    members.prop_map(|members| {
        let mut unknown = Unknown::none();
        for (name, value) in members {
            unknown.insert(&name, value);
        }
        unknown
    })
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        text().prop_map(PartContent::Text),
        // Never text, which over 0.3 REST could be taken for base64 within base64.
        vec(any::<u8>(), 0..6).prop_map(|bytes| PartContent::Raw(Bytes::from([&bytes[..], b"\xff"].concat()))),
        text().prop_map(PartContent::Url),
        value().prop_map(|value| PartContent::Data(Json::from_value(&value))),
    ];
    (content, option::of(metadata()), option::of(some_text()), option::of(some_text()), unknown())
        .prop_map(|(content, metadata, filename, media_type, unknown)| Part { content, metadata, filename, media_type, unknown })
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::User), Just(Role::Agent)]
}

prop_compose! {
    fn message()(
        message_id in id(), context_id in option::of(id()), task_id in option::of(id()), role in role(),
        parts in vec(part(), 0..4), metadata in option::of(metadata()), extensions in vec(text(), 0..2),
        reference_task_ids in vec(id(), 0..2), unknown in unknown(),
    ) -> Message {
        Message {
            unknown,
            context_id: context_id.map(Into::into),
            task_id: task_id.map(Into::into),
            metadata,
            extensions,
            reference_task_ids: reference_task_ids.into_iter().map(Into::into).collect(),
            ..Message::of_parts(role, message_id, parts)
        }
    }
}

prop_compose! {
    fn artifact()(
        artifact_id in id(), name in option::of(some_text()), description in option::of(some_text()),
        parts in vec(part(), 0..3), metadata in option::of(metadata()), extensions in vec(text(), 0..2), unknown in unknown(),
    ) -> Artifact {
        Artifact { name, description, metadata, extensions, unknown, ..Artifact::new(artifact_id, parts) }
    }
}

/// To the millisecond, as times are written.
fn time() -> impl Strategy<Value = Timestamp> {
    (0..4_000_000_000_000_i64).prop_map(|millis| Timestamp::from_micros(millis * 1000))
}

fn state() -> impl Strategy<Value = TaskState> {
    proptest::sample::select(TaskState::ALL.to_vec())
}

prop_compose! {
    fn status()(
        state in state(), message in option::of(message()), timestamp in option::of(time()), unknown in unknown(),
    ) -> TaskStatus {
        TaskStatus { state, message: message.map(Arc::new), timestamp, unknown }
    }
}

prop_compose! {
    fn task()(
        id in id(), context_id in id(), status in status(), artifacts in vec(artifact(), 0..3),
        history in vec(message(), 0..3), metadata in option::of(metadata()), unknown in unknown(),
    ) -> Task {
        Task {
            id: id.into(),
            context_id: context_id.into(),
            status,
            artifacts: artifacts.into_iter().map(Arc::new).collect(),
            history: history.into_iter().map(Arc::new).collect(),
            metadata,
            unknown,
        }
    }
}

prop_compose! {
    fn push_config()(
        tenant in option::of(some_text()), id in option::of(id()), task_id in id(), url in text(),
        token in option::of(some_text()),
        authentication in option::of((some_text(), option::of(some_text()))),
    ) -> PushConfig {
        let authentication = authentication.map(|(scheme, credentials)| AuthenticationInfo { scheme, credentials });
        PushConfig { tenant, id, task_id: Some(task_id.into()), url, token, authentication }
    }
}

prop_compose! {
    fn send()(
        tenant in option::of(some_text()), message in message(), metadata in option::of(metadata()),
        accepted_output_modes in vec(text(), 0..2), push in option::of(push_config()), history_length in option::of(any::<i32>()),
        return_immediately in any::<bool>(), client_task_id in id(), unknown in unknown(),
    ) -> SendMessage {
        SendMessage {
            tenant,
            message: Arc::new(message),
            configuration: SendConfiguration {
                accepted_output_modes,
                task_push_notification_config: push.map(|push| Box::new(PushConfig { task_id: None, ..push })),
                history_length,
                return_immediately,
            },
            metadata,
            client_task_id: Some(client_task_id.into()),
            unknown,
        }
    }
}

fn which(id_needed: bool) -> impl Strategy<Value = PushConfigRef> {
    (option::of(some_text()), id(), option::of(id())).prop_map(move |(tenant, task_id, id)| PushConfigRef {
        tenant,
        task_id: task_id.into(),
        id: if id_needed { id.or(Some("c".into())) } else { id },
    })
}

pub(crate) fn request() -> impl Strategy<Value = Request> {
    let tenant = || option::of(some_text());
    let get = (tenant(), id(), option::of(any::<i32>())).prop_map(|(tenant, id, history_length)| GetTask {
        tenant,
        id: id.into(),
        history_length,
    });
    let filter = (option::of(id()), option::of(state()), option::of(time()), any::<bool>());
    let list = (tenant(), filter, option::of(any::<i32>()), option::of(id()), option::of(any::<i32>())).prop_map(
        |(tenant, (context_id, status, status_timestamp_after, include_artifacts), page_size, page_token, history_length)| {
            let context_id = context_id.map(Into::into);
            ListTasks {
                tenant,
                context_id,
                status,
                page_size,
                page_token,
                history_length,
                status_timestamp_after,
                include_artifacts,
            }
        },
    );
    let cancel = (tenant(), id(), option::of(metadata())).prop_map(|(tenant, id, metadata)| CancelTask {
        tenant,
        id: id.into(),
        metadata,
    });
    let subscribe = (tenant(), id()).prop_map(|(tenant, id)| SubscribeToTask { tenant, id: id.into() });
    let configs =
        (tenant(), id(), option::of(any::<i32>()), option::of(id())).prop_map(|(tenant, task_id, page_size, page_token)| {
            ListPushConfigs { tenant, task_id: task_id.into(), page_size, page_token }
        });
    prop_oneof![
        3 => send().prop_map(Request::SendMessage),
        1 => send().prop_map(Request::StreamMessage),
        1 => get.prop_map(Request::GetTask),
        1 => list.prop_map(Request::ListTasks),
        1 => cancel.prop_map(Request::CancelTask),
        1 => subscribe.prop_map(Request::SubscribeToTask),
        1 => push_config().prop_map(Request::CreatePushConfig),
        1 => which(true).prop_map(Request::GetPushConfig),
        1 => configs.prop_map(Request::ListPushConfigs),
        1 => which(true).prop_map(Request::DeletePushConfig),
        1 => proptest::option::of(id()).prop_map(|tenant| Request::GetExtendedCard(GetExtendedCard { tenant })),
    ]
}

fn shown() -> impl Strategy<Value = NamedTask> {
    let one = |(task, client): (Task, String)| NamedTask {
        task: Arc::new(task),
        dialect: Version::V1_0.into(),
        client_task_id: Some(client.into()),
    };
    (task(), id()).prop_map(one)
}

pub(crate) fn reply() -> impl Strategy<Value = Reply> {
    let page = (vec(shown(), 0..3), text(), any::<i32>(), any::<i32>(), any::<bool>()).prop_map(
        |(tasks, next_page_token, page_size, total_size, include_artifacts)| TaskPage {
            tasks,
            next_page_token,
            page_size,
            total_size,
            include_artifacts,
        },
    );
    let configs =
        (vec(push_config(), 0..3), text()).prop_map(|(configs, next_page_token)| PushConfigPage { configs, next_page_token });
    prop_oneof![
        3 => shown().prop_map(|shown| Reply::Sent(Sent::Task(shown))),
        1 => message().prop_map(|message| Reply::Sent(Sent::Message(Arc::new(message)))),
        2 => shown().prop_map(Reply::Task),
        1 => page.prop_map(Reply::Tasks),
        1 => push_config().prop_map(Reply::PushConfig),
        1 => configs.prop_map(Reply::PushConfigs),
        1 => Just(Reply::PushConfigDeleted),
    ]
}

pub(crate) fn event() -> impl Strategy<Value = TaskEvent> {
    let change = (status(), option::of(metadata()), unknown()).prop_map(|(status, metadata, unknown)| StatusChange {
        status,
        metadata,
        unknown,
    });
    let chunk = (artifact(), any::<bool>(), any::<bool>(), option::of(metadata()), unknown()).prop_map(
        |(artifact, append, last_chunk, metadata, unknown)| ArtifactChunk {
            artifact: Arc::new(artifact),
            append,
            last_chunk,
            metadata,
            unknown,
        },
    );
    prop_oneof![
        task().prop_map(|task| TaskEvent::Created(Arc::new(task))),
        message().prop_map(|message| TaskEvent::Replied(Arc::new(message))),
        change.prop_map(TaskEvent::Status),
        chunk.prop_map(TaskEvent::Artifact),
    ]
}

/// JSON that uses the protocol's own names, for anything.
pub(crate) fn loose_json() -> impl Strategy<Value = String> {
    let names = vec![
        "id",
        "name",
        "message",
        "request",
        "task",
        "kind",
        "type",
        "parts",
        "content",
        "text",
        "file",
        "data",
        "metadata",
        "role",
        "status",
        "state",
        "artifact",
        "artifacts",
        "messageId",
        "contextId",
        "taskId",
        "bytes",
        "fileWithBytes",
        "configuration",
        "config",
        "pushNotificationConfig",
        "authentication",
        "schemes",
        "url",
        "capabilities",
        "security",
        "securitySchemes",
        "flows",
        "skills",
        "supportedInterfaces",
        "final",
        "index",
        "sessionId",
    ];
    let words = vec!["text", "file", "data", "user", "ROLE_USER", "working", "TASK_STATE_WORKING", "message", "task", "aGk=", ""];
    let leaf = prop_oneof![value(), proptest::sample::select(words).prop_map(Value::from)];
    let tree = leaf.prop_recursive(4, 32, 5, move |inner| {
        let named = (proptest::sample::select(names.clone()), inner.clone());
        prop_oneof![
            1 => vec(inner, 0..3).prop_map(Value::from),
            4 => vec(named, 0..6).prop_map(|all| all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    });
    tree.prop_map(|value| value.to_string())
}
