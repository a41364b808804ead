//! Bodies of requests with room for their bytes: counted as they arrive, and until the node has taken the call.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chancery_core::{ByteLedger, ByteLimits, BytePermit, COUNTED_FROM};
use chancery_identity::credentials::Known;
use chancery_protocol::{CallAccount, Error};
use http::request::Parts;
use http_body::Body;

use crate::authenticate::{PendingAuth, Rejection};
use crate::body;
use crate::doors::Doors;
use crate::limits::InboundLimits;
use crate::origin::ConnectionOrigin;

/// A gRPC message comes after a flag and its length.
const GRPC_FRAME: usize = 5;

/// How long the room of a body is held at most while its call is answered. By then its task is recorded: what it waits for is its
/// agent.
const HELD_WHILE_ANSWERED: Duration = Duration::from_secs(3);

impl InboundLimits {
    pub(crate) fn reading(&self) -> ByteLimits {
        ByteLimits {
            per_caller: ("limits.reading_bytes_per_caller", self.reading_bytes_per_caller),
            per_node: ("limits.reading_bytes_per_node", self.reading_bytes_per_node),
            meaning: "of request bodies are being read or worked on; try again later",
        }
    }
}

/// Room for one body, taken as it arrives.
#[derive(Debug)]
pub(crate) struct BodyRoom {
    ledger: Arc<ByteLedger>,
    account: CallAccount,
    limits: ByteLimits,
    permit: Option<BytePermit>,
}

impl BodyRoom {
    /// Room for a body that has so many bytes now, or the reason for its refusal. Small bodies are not counted.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Error> {
        let bytes = bytes as u64;
        match &mut self.permit {
            _ if bytes <= COUNTED_FROM => Ok(()),
            None => self.ledger.reserve(&self.account, bytes, &self.limits).map(|permit| self.permit = Some(permit)),
            Some(permit) => permit.extend(bytes.saturating_sub(permit.bytes()), &self.limits),
        }
    }
}

/// A body that was read, with its room.
#[derive(Debug)]
pub(crate) struct ReadBody {
    bytes: Bytes,
    permit: Option<BytePermit>,
}

impl Deref for ReadBody {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.bytes
    }
}

impl ReadBody {
    /// The bytes, and what holds their room while the call is answered.
    pub(crate) fn into_parts(self) -> (Bytes, HeldRoom) {
        (self.bytes, HeldRoom(self.permit))
    }

    pub(crate) fn take_room(&mut self) -> HeldRoom {
        HeldRoom(self.permit.take())
    }
}

/// The room of a body whose call is being answered.
#[derive(Debug)]
pub(crate) struct HeldRoom(Option<BytePermit>);

impl HeldRoom {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Answers a call. The room is given back with the answer, or sooner if that takes long.
    pub(crate) async fn during<T>(self, answer: impl Future<Output = T>) -> T {
        let mut answer = std::pin::pin!(answer);
        if let Some(permit) = self.0 {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                () = tokio::time::sleep(HELD_WHILE_ANSWERED) => drop(permit),
            }
        }
        answer.await
    }
}

impl Doors {
    /// Room for the body of a request whose caller may not be known yet.
    pub(crate) fn body_room(&self, pending: Option<&PendingAuth>, origin: &ConnectionOrigin) -> BodyRoom {
        let known = match pending {
            Some(PendingAuth::Known(known)) => Some(known),
            Some(PendingAuth::Signed(_)) | None => None,
        };
        let (ledger, limits) = (Arc::clone(self.rates().reading()), self.settings().limits.reading());
        BodyRoom { ledger, account: origin.account(known), limits, permit: None }
    }

    /// Reads a body that its transport wraps in so many bytes.
    pub(crate) async fn read_body<B>(
        &self,
        body: B,
        frame: usize,
        pending: &PendingAuth,
        origin: &ConnectionOrigin,
    ) -> Result<ReadBody, Error>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let mut room = self.body_room(Some(pending), origin);
        let bytes = body::read_framed(body, frame, &self.settings().limits, &mut room).await?;
        Ok(ReadBody { bytes, permit: room.permit })
    }

    /// What a gRPC call passes before tonic reads it.
    pub(crate) async fn enter_grpc<B>(
        &self,
        head: &Parts,
        origin: &ConnectionOrigin,
        body: B,
    ) -> Result<(Known, ReadBody), Rejection>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let pending = self.authenticate_head(head, origin).await?;
        let body = self.read_body(body, GRPC_FRAME, &pending, origin).await?;
        let known = self.authenticate_body(pending, head, &body, origin).await?;
        Ok((known, body))
    }
}

#[cfg(test)]
pub(crate) fn room_for_tests(ledger: &Arc<ByteLedger>, number: u64, limits: &InboundLimits) -> BodyRoom {
    let peer = chancery_protocol::PeerConnection::new([192, 0, 2, 1].into(), number);
    BodyRoom { ledger: Arc::clone(ledger), account: CallAccount::Connection(peer), limits: limits.reading(), permit: None }
}
