//! One of every request and every reply, and a card.

use std::sync::Arc;

use chancery_protocol::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill, AuthenticationInfo, CancelTask,
    GetTask, HttpAuthScheme, ListPushConfigs, ListTasks, Message, PushConfig, PushConfigPage, PushConfigRef, Reply, Request,
    Role, SecurityRequirement, SecurityScheme, SendConfiguration, SendMessage, Sent, StringList, SubscribeToTask, TaskPage,
    TaskState,
};

use super::{AT, answered, bare_task, metadata, said, said_more, shown, task, task_with_more, unknown};

fn push_config() -> PushConfig {
    PushConfig {
        tenant: None,
        id: Some("push-1".into()),
        task_id: Some("task-1".into()),
        url: "https://hooks.example/a2a".into(),
        token: Some("token-1".into()),
        authentication: Some(AuthenticationInfo { scheme: "Bearer".into(), credentials: Some("secret".into()) }),
    }
}

fn send() -> SendMessage {
    SendMessage {
        tenant: Some("acme".into()),
        message: Arc::new(said()),
        configuration: SendConfiguration {
            accepted_output_modes: vec!["text/plain".into()],
            task_push_notification_config: Some(Box::new(PushConfig { task_id: None, ..push_config() })),
            history_length: Some(5),
            return_immediately: true,
        },
        metadata: metadata(r#"{"trace":"t"}"#),
        client_task_id: Some("client-1".into()),
        unknown: Default::default(),
    }
}

pub(crate) fn requests() -> Vec<(&'static str, Request)> {
    let tenant = || Some("acme".to_owned());
    let plain = SendMessage {
        tenant: None,
        message: Arc::new(Message::text(Role::User, "message-1", "hi")),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: Some("client-1".into()),
        unknown: Default::default(),
    };
    let more = SendMessage { message: Arc::new(said_more(Role::User)), unknown: unknown("params"), ..plain.clone() };
    let which = || PushConfigRef { tenant: tenant(), task_id: "task-1".into(), id: Some("push-1".into()) };
    vec![
        ("send", Request::SendMessage(send())),
        ("send-plain", Request::SendMessage(plain)),
        ("send-unknown", Request::SendMessage(more)),
        ("stream", Request::StreamMessage(send())),
        ("get", Request::GetTask(GetTask { tenant: tenant(), id: "task-1".into(), history_length: Some(3) })),
        (
            "list",
            Request::ListTasks(ListTasks {
                tenant: tenant(),
                context_id: Some("context-1".into()),
                status: Some(TaskState::Canceled),
                page_size: Some(10),
                page_token: Some("next".into()),
                history_length: Some(1),
                status_timestamp_after: Some(AT),
                include_artifacts: true,
            }),
        ),
        (
            "cancel",
            Request::CancelTask(CancelTask { tenant: tenant(), id: "task-1".into(), metadata: metadata(r#"{"why":"late"}"#) }),
        ),
        ("subscribe", Request::SubscribeToTask(SubscribeToTask { tenant: tenant(), id: "task-1".into() })),
        ("push-create", Request::CreatePushConfig(push_config())),
        ("push-get", Request::GetPushConfig(which())),
        (
            "push-list",
            Request::ListPushConfigs(ListPushConfigs {
                tenant: tenant(),
                task_id: "task-1".into(),
                page_size: Some(10),
                page_token: Some("next".into()),
            }),
        ),
        ("push-delete", Request::DeletePushConfig(which())),
        ("extended-card", Request::GetExtendedCard(Default::default())),
    ]
}

pub(crate) fn replies() -> Vec<(&'static str, Reply)> {
    let page = |include_artifacts| TaskPage {
        tasks: vec![shown(task()), shown(bare_task())],
        next_page_token: if include_artifacts { "next".into() } else { String::new() },
        page_size: 2,
        total_size: 4,
        include_artifacts,
    };
    let configs =
        vec![push_config(), PushConfig { id: Some("push-2".into()), token: None, authentication: None, ..push_config() }];
    vec![
        ("sent-task", Reply::Sent(Sent::Task(shown(task())))),
        ("sent-message", Reply::Sent(Sent::Message(Arc::new(answered())))),
        ("task", Reply::Task(shown(task()))),
        ("task-bare", Reply::Task(shown(bare_task()))),
        ("task-unknown", Reply::Task(shown(task_with_more()))),
        ("sent-message-unknown", Reply::Sent(Sent::Message(Arc::new(said_more(Role::Agent))))),
        ("tasks", Reply::Tasks(page(false))),
        ("tasks-with-artifacts", Reply::Tasks(page(true))),
        ("push-config", Reply::PushConfig(push_config())),
        ("push-configs", Reply::PushConfigs(PushConfigPage { configs, next_page_token: String::new() })),
        ("push-config-deleted", Reply::PushConfigDeleted),
        ("card", Reply::Card(Arc::new(card()))),
    ]
}

pub(crate) fn card() -> AgentCard {
    let interface = |url: &str, binding: &str, version: &str| AgentInterface {
        url: url.into(),
        protocol_binding: binding.into(),
        tenant: None,
        protocol_version: version.into(),
    };
    let bearer = HttpAuthScheme { description: None, scheme: "Bearer".into(), bearer_format: Some("JWT".into()) };
    AgentCard {
        name: "Echo".into(),
        description: "Says it again".into(),
        supported_interfaces: vec![
            interface("https://agent.example/", "JSONRPC", "1.0"),
            interface("https://agent.example/rest", "HTTP+JSON", "1.0"),
            interface("agent.example:443", "GRPC", "1.0"),
            interface("https://agent.example/", "JSONRPC", "0.3"),
            interface("https://agent.example/rest", "HTTP+JSON", "0.3"),
            interface("agent.example:443", "GRPC", "0.3"),
        ],
        provider: Some(AgentProvider { url: "https://example.com".into(), organization: "Example".into() }),
        version: "2.1.0".into(),
        documentation_url: Some("https://agent.example/docs".into()),
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            extensions: vec![AgentExtension {
                uri: "https://extensions.example/x".into(),
                description: "An example".into(),
                required: false,
                params: metadata(r#"{"level":1}"#),
            }],
            extended_agent_card: Some(true),
        },
        security_schemes: [("token".to_owned(), SecurityScheme::HttpAuth(bearer))].into(),
        security_requirements: vec![SecurityRequirement { schemes: [("token".to_owned(), StringList::default())].into() }],
        default_input_modes: vec!["text/plain".into()],
        default_output_modes: vec!["text/plain".into(), "application/json".into()],
        skills: vec![AgentSkill {
            id: "echo".into(),
            name: "Echo".into(),
            description: "Repeats the message".into(),
            tags: vec!["test".into()],
            examples: vec!["hello".into()],
            input_modes: vec!["text/plain".into()],
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        }],
        signatures: Vec::new(),
        icon_url: Some("https://agent.example/icon.png".into()),
    }
}
