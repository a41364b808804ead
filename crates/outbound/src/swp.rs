//! One SWP connection by hand: what the command line speaks, with nothing between it and the frames.

use bytes::Bytes;
use chancery_wire::swp::Given;
use chancery_wire::swp::codec::{Envelope, FramePayload, Profile, SwpLimits, a2a};
use uuid::Uuid;

use crate::client::swp::{OpenSwpLine, SwpLinePool};
use crate::client::{ClientError, ClientLimits};
use crate::guard::{Guard, SlimWay};
use crate::terms::ClientCertificate;

/// An open connection.
#[derive(Debug)]
pub struct SwpLine(OpenSwpLine);

/// A task as it goes out.
#[derive(Clone, Debug, Default)]
pub struct SwpTask {
    /// A random id, if none is given.
    pub task_id: Option<Bytes>,
    pub kind: String,
    pub input: Bytes,
    pub given: Given,
}

impl SwpLine {
    pub async fn open(guard: &Guard, url: &str, own: Option<&ClientCertificate>) -> Result<Self, ClientError> {
        let lines = SwpLinePool::new(SlimWay::new(guard, url, own)?, &ClientLimits::default());
        lines.open().await.map(Self)
    }

    pub async fn send(&mut self, task: SwpTask) -> Result<Bytes, ClientError> {
        let id = Uuid::now_v7();
        let task_id = task.task_id.unwrap_or_else(|| Bytes::copy_from_slice(Uuid::now_v7().as_bytes()));
        let message = a2a::A2aMessage::Task(a2a::SwpTaskMessage { task_id: task_id.clone(), kind: task.kind, input: task.input });
        let msg_id = Bytes::copy_from_slice(id.as_bytes());
        // Such an id begins with the time it was made at, in milliseconds.
        let mut envelope =
            Envelope::new(Profile::A2a, message.msg_type(), msg_id, id.as_u64_pair().0 >> 16, message.to_payload());
        envelope.extensions = task.given.to_extensions();
        let frame = envelope.encode(&SwpLimits::default()).map_err(|reject| ClientError::not_understood(reject.to_string()))?;
        self.0.send(&frame, 1).await.map(|()| task_id)
    }

    /// The next message of the A2A profile; others are passed over.
    pub async fn next(&mut self) -> Result<a2a::A2aMessage, ClientError> {
        loop {
            if let FramePayload::A2a(message) = self.0.next().await?.payload {
                return Ok(message);
            }
        }
    }
}
