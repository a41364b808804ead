//! `a2a.v1.A2AService`, the service of 0.3.

use chancery_protocol::Version;
use chancery_wire::pb::v0_3::{event, proto, reply, request};
use tonic::{Request, Response, Status};

use super::{Events, GrpcBackend, streaming, unary};

#[derive(Clone, Debug)]
pub(crate) struct Older(pub(super) GrpcBackend);

type Answer<T> = Result<Response<T>, Status>;
type Stream = Events<proto::StreamResponse>;

#[tonic::async_trait]
impl proto::a2a_service_server::A2aService for Older {
    type SendStreamingMessageStream = Stream;
    type TaskSubscriptionStream = Stream;

    async fn send_message(&self, call: Request<proto::SendMessageRequest>) -> Answer<proto::SendMessageResponse> {
        unary(&self.0, Version::V0_3, call, request::send_message, reply::sent).await
    }

    async fn send_streaming_message(&self, call: Request<proto::SendMessageRequest>) -> Answer<Stream> {
        streaming(&self.0, Version::V0_3, call, request::stream_message, event::write).await
    }

    async fn get_task(&self, call: Request<proto::GetTaskRequest>) -> Answer<proto::Task> {
        unary(&self.0, Version::V0_3, call, request::get_task, reply::task).await
    }

    async fn cancel_task(&self, call: Request<proto::CancelTaskRequest>) -> Answer<proto::Task> {
        unary(&self.0, Version::V0_3, call, request::cancel_task, reply::task).await
    }

    async fn task_subscription(&self, call: Request<proto::TaskSubscriptionRequest>) -> Answer<Stream> {
        streaming(&self.0, Version::V0_3, call, request::subscribe_to_task, event::write).await
    }

    async fn create_task_push_notification_config(
        &self,
        call: Request<proto::CreateTaskPushNotificationConfigRequest>,
    ) -> Answer<proto::TaskPushNotificationConfig> {
        unary(&self.0, Version::V0_3, call, request::create_push_config, reply::push_config).await
    }

    async fn get_task_push_notification_config(
        &self,
        call: Request<proto::GetTaskPushNotificationConfigRequest>,
    ) -> Answer<proto::TaskPushNotificationConfig> {
        unary(&self.0, Version::V0_3, call, request::get_push_config, reply::push_config).await
    }

    async fn list_task_push_notification_config(
        &self,
        call: Request<proto::ListTaskPushNotificationConfigRequest>,
    ) -> Answer<proto::ListTaskPushNotificationConfigResponse> {
        unary(&self.0, Version::V0_3, call, request::list_push_configs, reply::push_configs).await
    }

    async fn delete_task_push_notification_config(
        &self,
        call: Request<proto::DeleteTaskPushNotificationConfigRequest>,
    ) -> Answer<()> {
        unary(&self.0, Version::V0_3, call, request::delete_push_config, reply::push_config_deleted).await
    }

    async fn get_agent_card(&self, call: Request<proto::GetAgentCardRequest>) -> Answer<proto::AgentCard> {
        unary(&self.0, Version::V0_3, call, request::get_extended_card, reply::card).await
    }
}
