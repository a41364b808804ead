//! Both gRPC services, through the generated clients and the guard's connector.

use std::error::Error as _;
use std::time::Duration;

use chancery_protocol::{Error, ErrorKind, Operation, Reply, Request, Version};
use chancery_wire::pb::generated::{a2a_v1, lf_a2a_v1};
use chancery_wire::pb::{v0_3, v1};
use chancery_wire::{TaskNames, errors};
use http::HeaderMap;
use tokio::time::timeout;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status, Streaming};

use super::events::{EventSource, Silence, StreamedEvent};
use super::interface::Interface;
use super::limits::ClientLimits;
use super::{ClientError, Transport, WasSent};
use crate::guard::{Guard, GuardError};

type Newer = lf_a2a_v1::a2a_service_client::A2aServiceClient<Channel>;
type Older = a2a_v1::a2a_service_client::A2aServiceClient<Channel>;

#[derive(Debug)]
pub(super) struct GrpcAgent {
    channel: Channel,
    version: Version,
    limits: ClientLimits,
}

impl GrpcAgent {
    pub(super) fn new(guard: &Guard, interface: &Interface, limits: &ClientLimits) -> Result<Self, ClientError> {
        let url = url(guard, &interface.url);
        let target = guard.check(&url).map_err(|blocked| ClientError::from(GuardError::from(blocked)))?;
        let header_bytes = u32::try_from(guard.config().response_header_bytes).unwrap_or(u32::MAX);
        let endpoint = Endpoint::from_shared(target.url().to_string())
            .and_then(|endpoint| endpoint.user_agent(concat!("chancery/", env!("CARGO_PKG_VERSION"))))
            .map_err(|fault| ClientError::from(GuardError::Request(fault.to_string())))?
            .http2_max_header_list_size(header_bytes);
        let channel = endpoint.connect_with_connector_lazy(guard.h2_connector());
        Ok(Self { channel, version: interface.version, limits: limits.clone() })
    }

    fn newer(&self, most_bytes: usize) -> Newer {
        Newer::new(self.channel.clone()).max_decoding_message_size(most_bytes)
    }

    fn older(&self, most_bytes: usize) -> Older {
        Older::new(self.channel.clone()).max_decoding_message_size(most_bytes)
    }

    pub(super) async fn call(&self, request: &Request, headers: &HeaderMap, left: Duration) -> Result<Reply, ClientError> {
        let answer = timeout(left, async {
            match self.version {
                Version::V1_0 => self.call_newer(request, headers).await,
                _ => self.call_older(request, headers).await,
            }
        });
        answer.await.unwrap_or_else(|_| Err(out_of_time()))
    }

    async fn call_newer(&self, request: &Request, headers: &HeaderMap) -> Result<Reply, ClientError> {
        use v1::peer;
        let mut client = self.newer(self.limits.answer_bytes);
        macro_rules! ask {
            ($method:ident($message:expr) -> $read:expr) => {
                read(client.$method(with_headers($message, headers)).await, request.operation(), $read)
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
            Request::StreamMessage(_) | Request::SubscribeToTask(_) => Err(no_method(request.operation())),
        }
    }

    async fn call_older(&self, request: &Request, headers: &HeaderMap) -> Result<Reply, ClientError> {
        use v0_3::peer;
        let mut client = self.older(self.limits.answer_bytes);
        macro_rules! ask {
            ($method:ident($message:expr) -> $read:expr) => {
                read(client.$method(with_headers($message, headers)).await, request.operation(), $read)
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
            Request::ListTasks(_) | Request::StreamMessage(_) | Request::SubscribeToTask(_) => {
                Err(no_method(request.operation()))
            }
        }
    }

    pub(super) async fn stream(
        &self,
        request: &Request,
        headers: &HeaderMap,
        left: Duration,
    ) -> Result<EventSource, ClientError> {
        let (mut newer, mut older) = (self.newer(self.limits.event_bytes), self.older(self.limits.event_bytes));
        let operation = request.operation();
        let opened = timeout(left, async {
            match (self.version, request) {
                (Version::V1_0, Request::StreamMessage(send)) => {
                    let request = with_headers(v1::peer::send_message(send), headers);
                    newer.send_streaming_message(request).await.map(Messages::newer)
                }
                (Version::V1_0, Request::SubscribeToTask(subscribe)) => {
                    let request = with_headers(v1::peer::subscribe_to_task(subscribe), headers);
                    newer.subscribe_to_task(request).await.map(Messages::newer)
                }
                (_, Request::StreamMessage(send)) => {
                    let request = with_headers(v0_3::peer::send_message(send), headers);
                    older.send_streaming_message(request).await.map(Messages::older)
                }
                (_, Request::SubscribeToTask(subscribe)) => {
                    let request = with_headers(v0_3::peer::subscribe_to_task(subscribe), headers);
                    older.task_subscription(request).await.map(Messages::older)
                }
                _ => Err(Status::internal("has one answer and no stream")),
            }
        });
        let messages = opened.await.map_err(|_| out_of_time())?.map_err(|status| fault(&status, operation))?;
        Ok(EventSource::Grpc(Box::new(GrpcEventStream { messages, operation, silence: Silence::new(self.limits.read()) })))
    }
}

/// `host:port` is how cards name gRPC. Without TLS it is spoken only where the operator allows that.
fn url(guard: &Guard, listed: &str) -> String {
    if listed.contains("://") {
        return listed.to_owned();
    }
    let plain = format!("http://{listed}");
    if guard.check(&plain).is_ok() { plain } else { format!("https://{listed}") }
}

fn with_headers<T>(message: T, headers: &HeaderMap) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    *request.metadata_mut() = MetadataMap::from_headers(headers.clone());
    request
}

fn read<T>(
    answer: Result<Response<T>, Status>,
    operation: Operation,
    read: impl FnOnce(T) -> Result<Reply, Error>,
) -> Result<Reply, ClientError> {
    let message = answer.map_err(|status| fault(&status, operation))?.into_inner();
    read(message).map_err(|fault| ClientError::not_understood(fault.to_string()))
}

#[derive(Debug)]
enum Messages {
    Newer(Streaming<v1::proto::StreamResponse>),
    Older(Streaming<v0_3::proto::StreamResponse>),
}

impl Messages {
    fn newer(response: Response<Streaming<v1::proto::StreamResponse>>) -> Self {
        Self::Newer(response.into_inner())
    }

    fn older(response: Response<Streaming<v0_3::proto::StreamResponse>>) -> Self {
        Self::Older(response.into_inner())
    }

    async fn next(&mut self) -> Result<Option<Result<(Option<TaskNames>, chancery_protocol::TaskEvent), Error>>, Status> {
        Ok(match self {
            Self::Newer(stream) => stream.message().await?.map(v1::event::read),
            Self::Older(stream) => stream.message().await?.map(v0_3::event::read),
        })
    }
}

/// gRPC has no heartbeats of its own and many servers refuse frequent pings, so a quiet stream counts as cut after the
/// time silence may last.
#[derive(Debug)]
pub(super) struct GrpcEventStream {
    messages: Messages,
    operation: Operation,
    silence: Silence,
}

impl GrpcEventStream {
    pub(super) async fn next(&mut self) -> Result<Option<StreamedEvent>, ClientError> {
        match self.silence.hold(self.messages.next()).await? {
            Ok(None) => Ok(None),
            Ok(Some(Ok((face, event)))) => Ok(Some(StreamedEvent { face, event, id: None })),
            Ok(Some(Err(fault))) => Err(ClientError::not_understood(fault.to_string())),
            Err(status) => Err(match fault(&status, self.operation) {
                ClientError::Transport(transport) => ClientError::Transport(Transport::Cut(transport.to_string())),
                fault => fault,
            }),
        }
    }
}

fn out_of_time() -> ClientError {
    ClientError::Transport(Transport::OutOfTime { sent: WasSent::Maybe })
}

fn no_method(operation: Operation) -> ClientError {
    let message = format!("the agent's gRPC service has no method for {operation:?}");
    ClientError::NotAsked(Error::new(ErrorKind::UnsupportedOperation, message))
}

/// Tells the peer's own status from what happened on the way: only the latter has a source, or one of tonic's texts.
fn fault(status: &Status, operation: Operation) -> ClientError {
    let mut next = status.source();
    while let Some(cause) = next {
        if let Some(fault) = cause.downcast_ref::<GuardError>() {
            return fault.clone().into();
        }
        next = cause.source();
    }
    let text = || status.message().to_owned();
    match status.source() {
        Some(source) if source.is::<prost::DecodeError>() => return ClientError::not_understood(source.to_string()),
        Some(source) => return ClientError::Transport(Transport::Connection(format!("{}: {source}", status.message()))),
        None => {}
    }
    match (status.code(), status.message()) {
        (Code::OutOfRange, message) if message.starts_with("Error, decoded message length too large") => {
            ClientError::not_understood(text())
        }
        (Code::Unknown, message) if message.starts_with("protocol error: missing grpc-status") => {
            ClientError::Transport(Transport::Cut(text()))
        }
        (Code::Internal, "Unexpected EOF decoding stream.") => ClientError::Transport(Transport::Cut(text())),
        (Code::Internal, message) if message == "Missing response message." || message.starts_with("protocol error:") => {
            page(message, operation).map_or_else(|| ClientError::not_understood(text()), ClientError::Refused)
        }
        _ => ClientError::Refused(errors::read::grpc(status, operation)),
    }
}

/// A proxy in front of an agent may answer with a page of its own; its status shows the fault.
fn page(message: &str, operation: Operation) -> Option<Error> {
    let (_, status) = message.rsplit_once(" with status: ")?;
    let status: u16 = status.get(..3)?.parse().ok()?;
    let kind = errors::read::of_http_status(status, operation).filter(|_| status >= 400)?;
    Some(Error::new(kind, format!("the agent answered with HTTP status {status}")))
}
