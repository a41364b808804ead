//! `lf.a2a.v1.A2AService`, the service of 1.0.

use chancery_protocol::Version;
use chancery_wire::pb::v1::{event, proto, reply, request};
use tonic::{Request, Response, Status};

use super::{Events, GrpcBackend, streaming, unary};

#[derive(Clone, Debug)]
pub(crate) struct Newer(pub(super) GrpcBackend);

type Answer<T> = Result<Response<T>, Status>;
type Stream = Events<proto::StreamResponse>;

#[tonic::async_trait]
impl proto::a2a_service_server::A2aService for Newer {
    type SendStreamingMessageStream = Stream;
    type SubscribeToTaskStream = Stream;

    async fn send_message(&self, call: Request<proto::SendMessageRequest>) -> Answer<proto::SendMessageResponse> {
        unary(&self.0, Version::V1_0, call, request::send_message, reply::sent).await
    }

    async fn send_streaming_message(&self, call: Request<proto::SendMessageRequest>) -> Answer<Stream> {
        streaming(&self.0, Version::V1_0, call, request::stream_message, event::write).await
    }

    async fn get_task(&self, call: Request<proto::GetTaskRequest>) -> Answer<proto::Task> {
        unary(&self.0, Version::V1_0, call, request::get_task, reply::task).await
    }

    async fn list_tasks(&self, call: Request<proto::ListTasksRequest>) -> Answer<proto::ListTasksResponse> {
        unary(&self.0, Version::V1_0, call, request::list_tasks, reply::tasks).await
    }

    async fn cancel_task(&self, call: Request<proto::CancelTaskRequest>) -> Answer<proto::Task> {
        unary(&self.0, Version::V1_0, call, request::cancel_task, reply::task).await
    }

    async fn subscribe_to_task(&self, call: Request<proto::SubscribeToTaskRequest>) -> Answer<Stream> {
        streaming(&self.0, Version::V1_0, call, request::subscribe_to_task, event::write).await
    }

    async fn create_task_push_notification_config(
        &self,
        call: Request<proto::TaskPushNotificationConfig>,
    ) -> Answer<proto::TaskPushNotificationConfig> {
        unary(&self.0, Version::V1_0, call, request::create_push_config, reply::push_config).await
    }

    async fn get_task_push_notification_config(
        &self,
        call: Request<proto::GetTaskPushNotificationConfigRequest>,
    ) -> Answer<proto::TaskPushNotificationConfig> {
        unary(&self.0, Version::V1_0, call, request::get_push_config, reply::push_config).await
    }

    async fn list_task_push_notification_configs(
        &self,
        call: Request<proto::ListTaskPushNotificationConfigsRequest>,
    ) -> Answer<proto::ListTaskPushNotificationConfigsResponse> {
        unary(&self.0, Version::V1_0, call, request::list_push_configs, reply::push_configs).await
    }

    async fn delete_task_push_notification_config(
        &self,
        call: Request<proto::DeleteTaskPushNotificationConfigRequest>,
    ) -> Answer<()> {
        unary(&self.0, Version::V1_0, call, request::delete_push_config, reply::push_config_deleted).await
    }

    async fn get_extended_agent_card(&self, call: Request<proto::GetExtendedAgentCardRequest>) -> Answer<proto::AgentCard> {
        unary(&self.0, Version::V1_0, call, request::get_extended_card, reply::card).await
    }
}
