//! Both gRPC services, through the generated clients.

use chancery_protocol::{Error, Reply, Request, Version};
use chancery_wire::pb::generated::{a2a_v1, lf_a2a_v1};
use chancery_wire::pb::{v0_3, v1};
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

use super::Conditions;
use super::events::EventStream;
use super::refusal::Refusal;

type Newer = lf_a2a_v1::a2a_service_client::A2aServiceClient<Channel>;
type Older = a2a_v1::a2a_service_client::A2aServiceClient<Channel>;

#[derive(Clone)]
pub(super) struct GrpcClient {
    channel: Channel,
    version: Version,
}

impl GrpcClient {
    pub(super) fn new(url: &str, version: Version) -> Self {
        Self { channel: Endpoint::from_shared(url.to_owned()).expect("a URL").connect_lazy(), version }
    }

    /// The message with its metadata around it.
    fn request<T>(&self, message: T, conditions: &Conditions) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        for (name, value) in conditions.headers() {
            request.metadata_mut().insert(name, value.parse().expect("visible ASCII"));
        }
        if self.version == Version::V1_0 {
            request.metadata_mut().insert("a2a-version", "1.0".parse().expect("visible ASCII"));
        }
        request
    }

    pub(super) async fn call(&self, request: &Request, conditions: &Conditions) -> Result<Reply, Refusal> {
        match self.version {
            Version::V1_0 => self.call_newer(request, conditions).await,
            _ => self.call_older(request, conditions).await,
        }
    }

    async fn call_newer(&self, request: &Request, conditions: &Conditions) -> Result<Reply, Refusal> {
        use v1::peer;
        let mut client = Newer::new(self.channel.clone());
        macro_rules! ask {
            ($method:ident($message:expr) -> $read:expr) => {
                read(client.$method(self.request($message, conditions)).await, $read)
            };
        }
        match request {
            Request::SendMessage(send) => ask!(send_message(peer::send_message(send)) -> peer::sent),
            Request::GetTask(get) => ask!(get_task(peer::get_task(get)) -> peer::task),
            Request::ListTasks(list) => ask!(list_tasks(peer::list_tasks(list)) -> peer::tasks),
            Request::CancelTask(cancel) => ask!(cancel_task(peer::cancel_task(cancel)) -> peer::task),
            Request::CreatePushConfig(config) => {
                ask!(create_task_push_notification_config(peer::create_push_config(config)) -> peer::push_config)
            }
            Request::GetPushConfig(which) => {
                ask!(get_task_push_notification_config(peer::get_push_config(which)) -> peer::push_config)
            }
            Request::ListPushConfigs(list) => {
                ask!(list_task_push_notification_configs(peer::list_push_configs(list)) -> peer::push_configs)
            }
            Request::DeletePushConfig(which) => {
                ask!(delete_task_push_notification_config(peer::delete_push_config(which)) -> |()| Ok(Reply::PushConfigDeleted))
            }
            Request::GetExtendedCard(get) => {
                let tenant = get.tenant.clone().unwrap_or_default();
                ask!(get_extended_agent_card(v1::proto::GetExtendedAgentCardRequest { tenant }) -> peer::card)
            }
            Request::StreamMessage(_) | Request::SubscribeToTask(_) => panic!("is answered with a stream"),
        }
    }

    async fn call_older(&self, request: &Request, conditions: &Conditions) -> Result<Reply, Refusal> {
        use v0_3::peer;
        let mut client = Older::new(self.channel.clone());
        macro_rules! ask {
            ($method:ident($message:expr) -> $read:expr) => {
                read(client.$method(self.request($message, conditions)).await, $read)
            };
        }
        match request {
            Request::SendMessage(send) => ask!(send_message(peer::send_message(send)) -> peer::sent),
            Request::GetTask(get) => ask!(get_task(peer::get_task(get)) -> peer::task),
            Request::CancelTask(cancel) => ask!(cancel_task(peer::cancel_task(cancel)) -> peer::task),
            Request::CreatePushConfig(config) => {
                ask!(create_task_push_notification_config(peer::create_push_config(config)) -> peer::push_config)
            }
            Request::GetPushConfig(which) => {
                ask!(get_task_push_notification_config(peer::get_push_config(which)) -> peer::push_config)
            }
            Request::ListPushConfigs(list) => {
                ask!(list_task_push_notification_config(peer::list_push_configs(list)) -> peer::push_configs)
            }
            Request::DeletePushConfig(which) => {
                ask!(delete_task_push_notification_config(peer::delete_push_config(which)) -> |()| Ok(Reply::PushConfigDeleted))
            }
            Request::GetExtendedCard(_) => ask!(get_agent_card(v0_3::proto::GetAgentCardRequest::default()) -> peer::card),
            Request::ListTasks(_) => panic!("the 0.3 service has no list"),
            Request::StreamMessage(_) | Request::SubscribeToTask(_) => panic!("is answered with a stream"),
        }
    }

    pub(super) async fn stream(&self, request: &Request, conditions: &Conditions) -> Result<EventStream, Refusal> {
        let mut newer = Newer::new(self.channel.clone());
        let mut older = Older::new(self.channel.clone());
        let opened = match (self.version, request) {
            (Version::V1_0, Request::StreamMessage(send)) => {
                let request = self.request(v1::peer::send_message(send), conditions);
                newer.send_streaming_message(request).await.map(EventStream::newer)
            }
            (Version::V1_0, Request::SubscribeToTask(subscribe)) => {
                let request = self.request(v1::peer::subscribe_to_task(subscribe), conditions);
                newer.subscribe_to_task(request).await.map(EventStream::newer)
            }
            (_, Request::StreamMessage(send)) => {
                let request = self.request(v0_3::peer::send_message(send), conditions);
                older.send_streaming_message(request).await.map(EventStream::older)
            }
            (_, Request::SubscribeToTask(subscribe)) => {
                let request = self.request(v0_3::peer::subscribe_to_task(subscribe), conditions);
                older.task_subscription(request).await.map(EventStream::older)
            }
            _ => panic!("is answered with one reply"),
        };
        opened.map_err(Refusal::Grpc)
    }

    pub(super) async fn call_nothing(&self) -> Refusal {
        let path = match self.version {
            Version::V1_0 => "/lf.a2a.v1.A2AService/Frobnicate",
            _ => "/a2a.v1.A2AService/Frobnicate",
        };
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        client.ready().await.expect("the server is there");
        let request = self.request(v1::proto::GetTaskRequest::default(), &Conditions::default());
        let codec = chancery_wire::pb::Codec::<v1::proto::GetTaskRequest, v1::proto::Task>::default();
        let answer = client.unary(request, path.parse().expect("a path"), codec).await;
        Refusal::Grpc(answer.expect_err("there is no such method"))
    }
}

fn read<T>(answer: Result<Response<T>, Status>, read: impl FnOnce(T) -> Result<Reply, Error>) -> Result<Reply, Refusal> {
    let message = answer.map_err(Refusal::Grpc)?.into_inner();
    Ok(read(message).unwrap_or_else(|fault| panic!("an answer nobody can read: {fault}")))
}
