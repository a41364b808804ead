//! The scripted agent's gRPC services, both versions of them.

use std::pin::Pin;

use chancery_protocol::{Error, Reply, Request, TaskEvent};
use chancery_wire::pb::generated::{a2a_v1, lf_a2a_v1};
use chancery_wire::pb::{v0_3, v1};
use chancery_wire::{TaskNames, errors};
use futures::{Stream, StreamExt as _};
use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tonic::Status;
use tower_service::Service as _;

use super::agent::{Answer, Behaviour, Body, Step};
use super::samples::face;

#[derive(Clone)]
pub(crate) struct Services {
    newer: lf_a2a_v1::a2a_service_server::A2aServiceServer<Newer>,
    older: a2a_v1::a2a_service_server::A2aServiceServer<Older>,
}

#[derive(Clone)]
struct Newer(Behaviour);

#[derive(Clone)]
struct Older(Behaviour);

impl Services {
    pub(crate) fn new(behaviour: &Behaviour) -> Self {
        Self {
            newer: lf_a2a_v1::a2a_service_server::A2aServiceServer::new(Newer(behaviour.clone())),
            older: a2a_v1::a2a_service_server::A2aServiceServer::new(Older(behaviour.clone())),
        }
    }

    pub(crate) async fn call(mut self, request: http::Request<Incoming>) -> Response<Body> {
        let newer = request.uri().path().starts_with("/lf.a2a.v1.A2AService/");
        let response = if newer { self.newer.call(request).await } else { self.older.call(request).await };
        let response = match response {
            Ok(response) => response,
            Err(never) => match never {},
        };
        response.map(|body| body.map_err(Into::into).boxed_unsync())
    }
}

type Answered<T> = Result<tonic::Response<T>, Status>;
type Events<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn unary<Q, A>(
    behaviour: &Behaviour,
    call: tonic::Request<Q>,
    read: fn(Q) -> Result<Request, Error>,
    write: fn(Reply) -> Result<A, Error>,
) -> Answered<A> {
    let headers = call.metadata().clone().into_headers();
    match behaviour.answer(read(call.into_inner()).unwrap(), headers) {
        Answer::Reply(reply) => Ok(tonic::Response::new(write(reply).unwrap())),
        Answer::Refusal(error) => Err(errors::grpc(&error, behaviour.version)),
        Answer::Events(_) => panic!("one answer was asked for"),
    }
}

fn streaming<Q, E: Send + 'static>(
    behaviour: &Behaviour,
    call: tonic::Request<Q>,
    read: fn(Q) -> Result<Request, Error>,
    write: fn(&TaskNames, &TaskEvent) -> Option<E>,
) -> Answered<Events<E>> {
    let headers = call.metadata().clone().into_headers();
    let version = behaviour.version;
    let steps = match behaviour.answer(read(call.into_inner()).unwrap(), headers) {
        Answer::Events(steps) => steps,
        Answer::Refusal(error) => return Err(errors::grpc(&error, version)),
        Answer::Reply(_) => panic!("a stream was asked for"),
    };
    let parts = futures::stream::iter(steps).filter_map(move |step| async move {
        match step {
            Step::Event(event) => write(&face(version), &event).map(Ok),
            Step::Heartbeat => None,
            Step::Pause(pause) => {
                tokio::time::sleep(pause).await;
                None
            }
            Step::Fail(error) => Some(Err(errors::grpc(&error, version))),
            // The nearest to a broken connection that one stream can show; raw agents break connections.
            Step::Cut => panic!("the agent falls over"),
        }
    });
    Ok(tonic::Response::new(Box::pin(parts)))
}

macro_rules! service {
    ($service:path, $on:ident, $version:ident, { $($method:ident($asked:ident) -> $answered:ty, $read:ident, $write:ident;)* },
     { $($stream:ident: $named:ident($stream_asked:ident), $stream_read:ident;)* }) => {
        #[tonic::async_trait]
        impl $service for $on {
            $(type $named = Events<$version::proto::StreamResponse>;)*
            $(async fn $method(&self, call: tonic::Request<$version::proto::$asked>) -> Answered<$answered> {
                unary(&self.0, call, $version::request::$read, $version::reply::$write)
            })*
            $(async fn $stream(&self, call: tonic::Request<$version::proto::$stream_asked>) -> Answered<Self::$named> {
                streaming(&self.0, call, $version::request::$stream_read, $version::event::write)
            })*
        }
    };
}

service!(lf_a2a_v1::a2a_service_server::A2aService, Newer, v1, {
    send_message(SendMessageRequest) -> v1::proto::SendMessageResponse, send_message, sent;
    get_task(GetTaskRequest) -> v1::proto::Task, get_task, task;
    list_tasks(ListTasksRequest) -> v1::proto::ListTasksResponse, list_tasks, tasks;
    cancel_task(CancelTaskRequest) -> v1::proto::Task, cancel_task, task;
    create_task_push_notification_config(TaskPushNotificationConfig) -> v1::proto::TaskPushNotificationConfig,
        create_push_config, push_config;
    get_task_push_notification_config(GetTaskPushNotificationConfigRequest) -> v1::proto::TaskPushNotificationConfig,
        get_push_config, push_config;
    list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest)
        -> v1::proto::ListTaskPushNotificationConfigsResponse, list_push_configs, push_configs;
    delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest) -> (), delete_push_config, push_config_deleted;
    get_extended_agent_card(GetExtendedAgentCardRequest) -> v1::proto::AgentCard, get_extended_card, card;
}, {
    send_streaming_message: SendStreamingMessageStream(SendMessageRequest), stream_message;
    subscribe_to_task: SubscribeToTaskStream(SubscribeToTaskRequest), subscribe_to_task;
});

service!(a2a_v1::a2a_service_server::A2aService, Older, v0_3, {
    send_message(SendMessageRequest) -> v0_3::proto::SendMessageResponse, send_message, sent;
    get_task(GetTaskRequest) -> v0_3::proto::Task, get_task, task;
    cancel_task(CancelTaskRequest) -> v0_3::proto::Task, cancel_task, task;
    create_task_push_notification_config(CreateTaskPushNotificationConfigRequest) -> v0_3::proto::TaskPushNotificationConfig,
        create_push_config, push_config;
    get_task_push_notification_config(GetTaskPushNotificationConfigRequest) -> v0_3::proto::TaskPushNotificationConfig,
        get_push_config, push_config;
    list_task_push_notification_config(ListTaskPushNotificationConfigRequest)
        -> v0_3::proto::ListTaskPushNotificationConfigResponse, list_push_configs, push_configs;
    delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest) -> (), delete_push_config, push_config_deleted;
    get_agent_card(GetAgentCardRequest) -> v0_3::proto::AgentCard, get_extended_card, card;
}, {
    send_streaming_message: SendStreamingMessageStream(SendMessageRequest), stream_message;
    task_subscription: TaskSubscriptionStream(TaskSubscriptionRequest), subscribe_to_task;
});
