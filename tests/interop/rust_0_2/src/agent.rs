//! One client of one binding, chosen from the fetched card, with the requests the checks make.

use std::sync::Arc;

use a2a::{
    A2AError, AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    GetTaskRequest, ListTaskPushNotificationConfigsRequest, ListTasksRequest, ListTasksResponse, Message, Part, PartContent,
    Role, SendMessageConfiguration, SendMessageRequest, SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task,
    TaskPushNotificationConfig,
};
use a2a_client::agent_card::AgentCardResolver;
use a2a_client::{A2AClient, A2AClientFactory, BoxStream, Transport};
use a2a_grpc::GrpcTransportFactory;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;
pub type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

pub struct Agent {
    base: String,
    pub binding: &'static str,
    client: A2AClient<Box<dyn Transport>>,
}

/// What a message carries besides its text.
#[derive(Default)]
pub struct Options {
    pub context_id: Option<String>,
    pub task_id: Option<String>,
    pub return_immediately: bool,
}

impl Agent {
    pub async fn new(base: &str, binding: &'static str) -> Result<Self, Failure> {
        let mut card = fetch(base).await?;
        card.supported_interfaces.retain(|interface| interface.protocol_binding == binding);
        let factory = A2AClientFactory::builder().register(Arc::new(GrpcTransportFactory::default())).build();
        Ok(Self { base: base.to_owned(), binding, client: factory.create_from_card(&card).await? })
    }

    pub async fn card(&self) -> Result<AgentCard, Failure> {
        fetch(&self.base).await
    }

    pub async fn send(&self, text: &str, options: Options) -> Result<SendMessageResponse, A2AError> {
        self.client.send_message(&request(text, options)).await
    }

    /// A send that must answer with a task.
    pub async fn task(&self, text: &str, options: Options) -> Result<Task, Failure> {
        match self.send(text, options).await? {
            SendMessageResponse::Task(task) => Ok(task),
            SendMessageResponse::Message(message) => Err(format!("a message instead of a task: {message:?}").into()),
        }
    }

    pub async fn stream(&self, text: &str) -> Result<Events, A2AError> {
        self.client.send_streaming_message(&request(text, Options::default())).await
    }

    pub async fn get(&self, id: &str, history_length: Option<i32>) -> Result<Task, A2AError> {
        self.client.get_task(&GetTaskRequest { id: id.into(), history_length, tenant: None }).await
    }

    pub async fn list(&self, request: &ListTasksRequest) -> Result<ListTasksResponse, A2AError> {
        self.client.list_tasks(request).await
    }

    pub async fn cancel(&self, id: &str) -> Result<Task, A2AError> {
        self.client.cancel_task(&CancelTaskRequest { id: id.into(), metadata: None, tenant: None }).await
    }

    pub async fn subscribe(&self, id: &str) -> Result<Events, A2AError> {
        self.client.subscribe_to_task(&SubscribeToTaskRequest { id: id.into(), tenant: None }).await
    }

    pub async fn create_push(&self, task_id: &str, url: &str) -> Result<TaskPushNotificationConfig, A2AError> {
        let config = TaskPushNotificationConfig {
            url: url.into(),
            id: Some("hook".into()),
            task_id: task_id.into(),
            token: None,
            authentication: None,
            tenant: None,
        };
        self.client.create_push_config(&config).await
    }

    pub async fn get_push(&self, task_id: &str) -> Result<TaskPushNotificationConfig, A2AError> {
        let which = GetTaskPushNotificationConfigRequest { task_id: task_id.into(), id: "hook".into(), tenant: None };
        self.client.get_push_config(&which).await
    }

    pub async fn list_push(&self, task_id: &str) -> Result<Vec<TaskPushNotificationConfig>, A2AError> {
        let list =
            ListTaskPushNotificationConfigsRequest { task_id: task_id.into(), page_size: None, page_token: None, tenant: None };
        Ok(self.client.list_push_configs(&list).await?.configs)
    }

    pub async fn delete_push(&self, task_id: &str) -> Result<(), A2AError> {
        let which = DeleteTaskPushNotificationConfigRequest { task_id: task_id.into(), id: "hook".into(), tenant: None };
        self.client.delete_push_config(&which).await
    }
}

async fn fetch(base: &str) -> Result<AgentCard, Failure> {
    Ok(AgentCardResolver::new(None).resolve(base).await?)
}

fn request(text: &str, options: Options) -> SendMessageRequest {
    let mut message = Message::new(Role::User, vec![Part::text(text)]);
    message.context_id = options.context_id;
    message.task_id = options.task_id;
    let configuration = SendMessageConfiguration {
        accepted_output_modes: None,
        task_push_notification_config: None,
        history_length: None,
        return_immediately: Some(options.return_immediately),
    };
    SendMessageRequest { message, configuration: Some(configuration), metadata: None, tenant: None }
}

pub fn texts(parts: &[Part]) -> Vec<&str> {
    parts.iter().filter_map(|part| if let PartContent::Text(text) = &part.content { Some(text.as_str()) } else { None }).collect()
}

/// The texts of each artifact of a task.
pub fn artifacts(task: &Task) -> Vec<Vec<&str>> {
    task.artifacts.iter().flatten().map(|artifact| texts(&artifact.parts)).collect()
}
