//! Requests, replies and events that every version can say.

use std::sync::Arc;

use chancery_protocol::*;
use chancery_wire::TaskNames;

/// Every pair that an agent client speaks.
pub(crate) use chancery_outbound::Interface as Speaks;

pub(crate) fn face(version: Version) -> TaskNames {
    let client_task_id = (version == Version::Original).then(|| "t-1".into());
    TaskNames { task_id: "t-1".into(), context_id: "c-1".into(), client_task_id, artifacts: vec!["0".into()], stays_open: false }
}

pub(crate) fn message(role: Role) -> Message {
    Message { context_id: Some("c-1".into()), task_id: Some("t-1".into()), ..Message::text(role, "m-1", "grüße\n& {\"a\":1}") }
}

pub(crate) fn status(state: TaskState) -> TaskStatus {
    TaskStatus {
        state,
        message: None,
        timestamp: Some(Timestamp::from_micros(1_763_200_000_123_000)),
        unknown: Default::default(),
    }
}

pub(crate) fn task(state: TaskState) -> Task {
    Task {
        id: "t-1".into(),
        context_id: "c-1".into(),
        status: status(state),
        artifacts: vec![Arc::new(Artifact::new("0", vec![Part::text("result")]))],
        history: Vec::new(),
        metadata: None,
        unknown: Default::default(),
    }
}

pub(crate) fn changed(state: TaskState) -> TaskEvent {
    TaskEvent::Status(StatusChange { status: status(state), metadata: None, unknown: Default::default() })
}

pub(crate) fn chunk(text: &str, append: bool, last_chunk: bool) -> TaskEvent {
    let artifact = Arc::new(Artifact::new("0", vec![Part::text(text)]));
    TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk, metadata: None, unknown: Default::default() })
}

pub(crate) fn push_config() -> PushConfig {
    PushConfig {
        tenant: None,
        id: Some("p 1".into()),
        task_id: Some("t-1".into()),
        url: "https://example.org/hook".into(),
        token: Some("once".into()),
        authentication: None,
    }
}

fn shown(version: Version) -> NamedTask {
    let client_task_id = (version == Version::Original).then(|| "t-1".into());
    NamedTask { task: Arc::new(task(TaskState::Completed)), dialect: version.into(), client_task_id }
}

pub(crate) fn send(version: Version) -> SendMessage {
    let original = version == Version::Original;
    let message = match original {
        // Neither messages nor follow-ups have names of their own there.
        true => Message { message_id: "".into(), task_id: None, ..message(Role::User) },
        false => message(Role::User),
    };
    SendMessage {
        tenant: None,
        message: Arc::new(message),
        configuration: SendConfiguration { history_length: Some(3), ..SendConfiguration::default() },
        metadata: None,
        client_task_id: original.then(|| "t-1".into()),
        unknown: Default::default(),
    }
}

/// One request per operation.
pub(crate) fn request(version: Version, operation: Operation) -> Request {
    let (tenant, id, task_id) = (None, TaskId::from("t-1"), TaskId::from("t-1"));
    let which = PushConfigRef { tenant: None, task_id, id: (version != Version::Original).then(|| "p 1".to_owned()) };
    match operation {
        Operation::SendMessage => Request::SendMessage(send(version)),
        Operation::StreamMessage => Request::StreamMessage(send(version)),
        Operation::GetTask => Request::GetTask(GetTask { tenant, id, history_length: Some(2) }),
        Operation::ListTasks => Request::ListTasks(ListTasks {
            context_id: Some("c & 1".into()),
            status: Some(TaskState::Working),
            page_size: Some(7),
            page_token: Some("next=?".into()),
            include_artifacts: true,
            ..ListTasks::default()
        }),
        Operation::CancelTask => Request::CancelTask(CancelTask { tenant, id, metadata: None }),
        Operation::SubscribeToTask => Request::SubscribeToTask(SubscribeToTask { tenant, id }),
        Operation::CreatePushConfig => {
            let id = push_config().id.filter(|_| version != Version::Original);
            Request::CreatePushConfig(PushConfig { id, ..push_config() })
        }
        Operation::GetPushConfig => Request::GetPushConfig(which),
        Operation::ListPushConfigs => {
            Request::ListPushConfigs(ListPushConfigs { tenant, task_id: id, page_size: None, page_token: None })
        }
        Operation::DeletePushConfig => Request::DeletePushConfig(which),
        Operation::GetExtendedCard => Request::GetExtendedCard(GetExtendedCard::default()),
    }
}

/// The reply of an operation that has one.
pub(crate) fn reply(version: Version, operation: Operation) -> Reply {
    let config = PushConfig { id: push_config().id.filter(|_| version != Version::Original), ..push_config() };
    match operation {
        Operation::SendMessage => Reply::Sent(Sent::Task(shown(version))),
        Operation::GetTask | Operation::CancelTask => Reply::Task(shown(version)),
        Operation::ListTasks => Reply::Tasks(TaskPage {
            tasks: vec![shown(version)],
            next_page_token: "more".into(),
            page_size: 7,
            total_size: 9,
            include_artifacts: true,
        }),
        Operation::CreatePushConfig | Operation::GetPushConfig => Reply::PushConfig(config),
        Operation::ListPushConfigs => {
            Reply::PushConfigs(PushConfigPage { configs: vec![config], next_page_token: String::new() })
        }
        Operation::DeletePushConfig => Reply::PushConfigDeleted,
        Operation::GetExtendedCard => Reply::Card(Arc::new(card(version))),
        Operation::StreamMessage | Operation::SubscribeToTask => panic!("is answered with events"),
    }
}

fn card(version: Version) -> AgentCard {
    let interface = AgentInterface {
        url: "http://127.0.0.1:4000/".into(),
        protocol_binding: "JSONRPC".into(),
        tenant: None,
        protocol_version: version.to_string(),
    };
    AgentCard {
        name: "Clerk".into(),
        description: "Files things".into(),
        version: "2.1".into(),
        supported_interfaces: vec![interface],
        default_input_modes: vec!["text/plain".into()],
        default_output_modes: vec!["text/plain".into()],
        ..AgentCard::default()
    }
}

/// With the tenant of the interface, as 1.0 repeats it.
pub(crate) fn with_tenant(mut request: Request) -> Request {
    let tenant = match &mut request {
        Request::SendMessage(send) | Request::StreamMessage(send) => &mut send.tenant,
        Request::GetTask(get) => &mut get.tenant,
        Request::ListTasks(list) => &mut list.tenant,
        Request::CancelTask(cancel) => &mut cancel.tenant,
        Request::SubscribeToTask(subscribe) => &mut subscribe.tenant,
        Request::CreatePushConfig(config) => &mut config.tenant,
        Request::GetPushConfig(which) | Request::DeletePushConfig(which) => &mut which.tenant,
        Request::ListPushConfigs(list) => &mut list.tenant,
        Request::GetExtendedCard(get) => &mut get.tenant,
    };
    *tenant = Some("acme corp".to_owned());
    request
}
