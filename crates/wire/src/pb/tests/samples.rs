//! One value of every kind with every field set, so that a field a conversion forgets makes a round trip fail.

use std::sync::Arc;

use bytes::Bytes;
use chancery_protocol::*;
use serde_json::json;

pub(super) fn metadata(mark: &str) -> Metadata {
    let object = json!({"mark": mark, "list": [1, null, {"deep": [true, 0.25]}], "empty": {}});
    Metadata::try_from(Json::from_value(&object)).unwrap()
}

pub(super) fn parts() -> Vec<Part> {
    let full = |content, mark: &str| Part {
        content,
        metadata: Some(metadata(mark)),
        filename: Some(format!("{mark}.bin")),
        media_type: Some("application/octet-stream".into()),
        unknown: Default::default(),
    };
    vec![
        full(PartContent::Raw(Bytes::from_static(b"\x00\xff\xfe")), "raw"),
        full(PartContent::Url("https://example.org/a".into()), "url"),
        Part { filename: None, media_type: None, ..full(PartContent::Text("héllo".into()), "text") },
        Part { filename: None, media_type: None, ..full(PartContent::Data(Json::from_value(&json!({"a": [1, 2]}))), "data") },
        Part::text(""),
    ]
}

/// Data that is no object, and the texts around text and data that only 1.0 has a place for.
pub(super) fn parts_of_1_0() -> Vec<Part> {
    let data = [json!(null), json!(7), json!("text"), json!([1, {"a": "b"}]), json!(false)];
    let mut parts: Vec<Part> = data.iter().map(Part::data).collect();
    let text = Part { filename: Some("t.md".into()), media_type: Some("text/markdown".into()), ..Part::text("x") };
    parts.extend([text, Part { media_type: Some("application/json".into()), ..Part::data(&json!({})) }]);
    parts
}

pub(super) fn message(role: Role) -> Message {
    Message {
        message_id: "m-1".into(),
        context_id: Some("c-1".into()),
        task_id: Some("t-1".into()),
        role,
        parts: parts(),
        metadata: Some(metadata("message")),
        extensions: vec!["https://example.org/ext".into(), "urn:two".into()],
        reference_task_ids: Vec::new(),
        unknown: Default::default(),
    }
}

pub(super) fn artifact() -> Artifact {
    Artifact {
        artifact_id: "a-1".into(),
        name: Some("report".into()),
        description: Some("what was found".into()),
        parts: parts(),
        metadata: Some(metadata("artifact")),
        extensions: vec!["urn:artifact".into()],
        unknown: Default::default(),
    }
}

pub(super) fn status(state: TaskState) -> TaskStatus {
    TaskStatus {
        state,
        message: Some(Arc::new(message(Role::Agent))),
        timestamp: Some(Timestamp::from_micros(1_763_200_000_123_456)),
        unknown: Default::default(),
    }
}

pub(super) fn task(state: TaskState) -> Task {
    Task {
        id: "t-1".into(),
        context_id: "c-1".into(),
        status: status(state),
        artifacts: vec![Arc::new(artifact()), Arc::new(Artifact::new("a-2", vec![Part::text("bare")]))],
        history: vec![Arc::new(message(Role::User)), Arc::new(Message::text(Role::Agent, "m-2", "bare"))],
        metadata: Some(metadata("task")),
        unknown: Default::default(),
    }
}

pub(super) fn bare_task() -> Task {
    let status = TaskStatus { state: TaskState::Submitted, message: None, timestamp: None, unknown: Default::default() };
    Task {
        id: "t".into(),
        context_id: "c".into(),
        status,
        artifacts: vec![],
        history: vec![],
        metadata: None,
        unknown: Default::default(),
    }
}

pub(super) fn shown(task: Task, dialect: Version) -> NamedTask {
    NamedTask { task: Arc::new(task), dialect: dialect.into(), client_task_id: None }
}

/// Every event that a stream shows.
pub(super) fn events() -> Vec<TaskEvent> {
    let states = TaskState::ALL.map(|state| {
        TaskEvent::Status(StatusChange {
            status: status(state),
            metadata: Some(metadata(state.name())),
            unknown: Default::default(),
        })
    });
    let chunk = |append, last_chunk| {
        TaskEvent::Artifact(ArtifactChunk {
            artifact: Arc::new(artifact()),
            append,
            last_chunk,
            metadata: Some(metadata("chunk")),
            unknown: Default::default(),
        })
    };
    let bare = StatusChange { status: bare_task().status, metadata: None, unknown: Default::default() };
    let mut events = vec![
        TaskEvent::Created(Arc::new(task(TaskState::Working))),
        TaskEvent::Created(Arc::new(Task { id: "t-1".into(), context_id: "c-1".into(), ..bare_task() })),
        TaskEvent::Replied(Arc::new(message(Role::Agent))),
        TaskEvent::Status(bare),
        chunk(false, false),
        chunk(true, false),
        chunk(false, true),
    ];
    events.extend(states);
    events
}

pub(super) fn push_config() -> PushConfig {
    PushConfig {
        tenant: None,
        id: Some("p-1".into()),
        task_id: Some("t-1".into()),
        url: "https://example.org/hook".into(),
        token: Some("once".into()),
        authentication: Some(AuthenticationInfo { scheme: "Bearer".into(), credentials: Some("secret".into()) }),
    }
}

pub(super) fn send() -> SendMessage {
    SendMessage {
        tenant: None,
        message: Arc::new(message(Role::User)),
        configuration: SendConfiguration {
            accepted_output_modes: vec!["text/plain".into(), "image/png".into()],
            task_push_notification_config: Some(Box::new(PushConfig { task_id: None, ..push_config() })),
            history_length: Some(3),
            return_immediately: true,
        },
        metadata: Some(metadata("request")),
        client_task_id: None,
        unknown: Default::default(),
    }
}

fn requirement(name: &str) -> SecurityRequirement {
    let scopes = StringList { list: vec!["read".into(), "write".into()] };
    SecurityRequirement { schemes: [(name.to_owned(), scopes), ("none".to_owned(), StringList::default())].into() }
}

fn scopes() -> std::collections::BTreeMap<String, String> {
    [("read".to_owned(), "may read".to_owned()), ("write".to_owned(), String::new())].into()
}

pub(super) fn device_code() -> OAuthFlows {
    OAuthFlows::DeviceCode(DeviceCodeFlow {
        device_authorization_url: "https://example.org/device".into(),
        token_url: "https://example.org/token".into(),
        refresh_url: Some("https://example.org/refresh".into()),
        scopes: scopes(),
    })
}

/// The flows that both versions have.
fn flows() -> Vec<OAuthFlows> {
    let (authorization_url, token_url) = ("https://example.org/authorize".to_owned(), "https://example.org/token".to_owned());
    let refresh_url = Some("https://example.org/refresh".to_owned());
    vec![
        OAuthFlows::AuthorizationCode(AuthorizationCodeFlow {
            authorization_url: authorization_url.clone(),
            token_url: token_url.clone(),
            refresh_url: refresh_url.clone(),
            scopes: scopes(),
            pkce_required: false,
        }),
        OAuthFlows::ClientCredentials(ClientCredentialsFlow {
            token_url: token_url.clone(),
            refresh_url: refresh_url.clone(),
            scopes: scopes(),
        }),
        OAuthFlows::Implicit(ImplicitFlow { authorization_url, refresh_url: refresh_url.clone(), scopes: scopes() }),
        OAuthFlows::Password(PasswordFlow { token_url, refresh_url, scopes: scopes() }),
    ]
}

pub(super) fn oauth2(flows: OAuthFlows) -> SecurityScheme {
    let metadata_url = Some("https://example.org/.well-known/oauth".to_owned());
    SecurityScheme::OAuth2(OAuth2Scheme { description: Some("by flow".into()), flows, oauth2_metadata_url: metadata_url })
}

/// A card of interfaces in `version`, with what both versions can say about an agent.
pub(super) fn card(version: &str) -> AgentCard {
    let interface = |binding: &str, at: &str| AgentInterface {
        url: at.into(),
        protocol_binding: binding.into(),
        tenant: None,
        protocol_version: version.into(),
    };
    let mut schemes: std::collections::BTreeMap<String, SecurityScheme> =
        flows().into_iter().enumerate().map(|(index, flow)| (format!("flow-{index}"), oauth2(flow))).collect();
    let described = || Some("described".to_owned());
    schemes.extend([
        (
            "key".to_owned(),
            SecurityScheme::ApiKey(ApiKeyScheme {
                description: described(),
                location: "header".into(),
                name: "x-api-key".into(),
            }),
        ),
        (
            "http".to_owned(),
            SecurityScheme::HttpAuth(HttpAuthScheme {
                description: described(),
                scheme: "bearer".into(),
                bearer_format: Some("JWT".into()),
            }),
        ),
        (
            "oidc".to_owned(),
            SecurityScheme::OpenIdConnect(OpenIdConnectScheme {
                description: described(),
                open_id_connect_url: "https://example.org/oidc".into(),
            }),
        ),
        ("mtls".to_owned(), SecurityScheme::MutualTls(MutualTlsScheme { description: described() })),
    ]);
    AgentCard {
        name: "Clerk".into(),
        description: "Files things".into(),
        supported_interfaces: vec![
            interface("GRPC", "127.0.0.1:4000"),
            interface("JSONRPC", "http://127.0.0.1:4000/"),
            interface("HTTP+JSON", "http://127.0.0.1:4000"),
        ],
        provider: Some(AgentProvider { url: "https://example.org".into(), organization: "Example".into() }),
        version: "2.1".into(),
        documentation_url: Some("https://example.org/docs".into()),
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(true),
            extensions: vec![AgentExtension {
                uri: "urn:ext".into(),
                description: "an extension".into(),
                required: true,
                params: Some(metadata("params")),
            }],
            extended_agent_card: Some(true),
        },
        security_schemes: schemes,
        security_requirements: vec![requirement("flow-0"), requirement("key")],
        default_input_modes: vec!["text/plain".into()],
        default_output_modes: vec!["text/plain".into(), "image/png".into()],
        skills: vec![AgentSkill {
            id: "file".into(),
            name: "Filing".into(),
            description: "Puts things away".into(),
            tags: vec!["order".into()],
            examples: vec!["file this".into()],
            input_modes: vec!["text/plain".into()],
            output_modes: vec!["application/json".into()],
            security_requirements: vec![requirement("http")],
        }],
        signatures: vec![AgentCardSignature {
            protected: "e30".into(),
            signature: "c2ln".into(),
            header: Some(metadata("header")),
        }],
        icon_url: Some("https://example.org/icon.png".into()),
    }
}
