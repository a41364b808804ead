//! Authenticates a call: its credentials become a caller, or the call is rejected.

use bytes::Bytes;
use chancery_identity::credentials::{CredentialRefusal, Known, PresentedCredentials, RequestFacts};
use chancery_protocol::{Caller, Error, ErrorKind, Version};
use chancery_wire::json::methods::method;
use chancery_wire::{json_rpc, scan};
use http::header::{ACCEPT, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use http_body::Body;
use http_body_util::{BodyExt as _, Limited};

use crate::context::RequestedVersion;
use crate::doors::Doors;
use crate::json_rpc::reads_events_only;
use crate::origin::ConnectionOrigin;
use crate::response::{self, DoorResponse};

/// How much of a body is read only to answer a rejected call in its own shape.
const PEEKED_BYTES: usize = 64 * 1024;

/// Authentication that may not be complete. Most callers are known by their headers; a signature also needs the body.
#[derive(Debug)]
pub(crate) enum PendingAuth {
    Known(Known),
    Signed(PresentedCredentials),
}

/// A call that was rejected, and the credentials that would be accepted.
#[derive(Debug)]
pub(crate) struct Rejection {
    pub(crate) error: Error,
    challenges: Vec<HeaderValue>,
}

impl From<Error> for Rejection {
    fn from(error: Error) -> Self {
        Self { error, challenges: Vec::new() }
    }
}

impl Rejection {
    /// Says on the response what would be accepted.
    pub(crate) fn challenge(self, mut response: DoorResponse) -> DoorResponse {
        for challenge in self.challenges {
            response.headers_mut().append(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl Doors {
    fn facts<'a>(&'a self, head: &'a Parts, body: &'a [u8]) -> RequestFacts<'a> {
        RequestFacts {
            method: &head.method,
            path_and_query: head.uri.path_and_query().map_or("/", |path| path.as_str()),
            headers: &head.headers,
            body,
            // Who signed for one agent's host has not signed for another's.
            meant_for: self.settings().signposts.host(head).map(|(_, sign)| &sign.authority),
        }
    }

    /// Checks what can be checked before the body is read: the rate of the address, and credentials in headers.
    pub(crate) async fn authenticate_head(&self, head: &Parts, origin: &ConnectionOrigin) -> Result<PendingAuth, Rejection> {
        self.count_address(origin)?;
        let authenticator = &self.settings().authenticator;
        let away = |refusal: CredentialRefusal| self.rejection(&refusal, origin);
        let mut presented = authenticator.present(&head.headers, origin.certificate.as_deref()).map_err(away)?;
        if presented.needs_body() {
            // The signature covers the body's digest, so that it can be checked before there is a body.
            authenticator.check_head(&mut presented, &self.facts(head, &[]), self.chancery().now()).map_err(away)?;
            return Ok(PendingAuth::Signed(presented));
        }
        self.recognise(presented, head, &[], origin).await.map(PendingAuth::Known)
    }

    /// The caller of a channel without headers: the owner of its certificate, or the anonymous caller of an
    /// open node.
    #[cfg(feature = "swp")]
    pub(crate) async fn know_channel(&self, origin: &ConnectionOrigin) -> Result<Known, Error> {
        let headers = http::HeaderMap::new();
        let nothing =
            RequestFacts { method: &http::Method::POST, path_and_query: "/", headers: &headers, body: &[], meant_for: None };
        let authenticator = &self.settings().authenticator;
        let presented = authenticator.present(&headers, origin.certificate.as_deref());
        let presented = presented.map_err(|refusal| self.rejection(&refusal, origin).error)?;
        let checked = authenticator.check(&presented, &nothing, self.chancery().now()).await;
        checked.map_err(|refusal| self.rejection(&refusal, origin).error)
    }

    /// The same for one call over it, which is counted.
    #[cfg(feature = "swp")]
    pub(crate) async fn know_caller(&self, origin: &ConnectionOrigin) -> Result<Known, Error> {
        self.count_address(origin)?;
        let known = self.know_channel(origin).await?;
        self.count_caller(&known.caller, origin)?;
        Ok(known)
    }

    /// Completes the authentication once the body is read.
    pub(crate) async fn authenticate_body(
        &self,
        pending: PendingAuth,
        head: &Parts,
        body: &Bytes,
        origin: &ConnectionOrigin,
    ) -> Result<Known, Rejection> {
        match pending {
            PendingAuth::Known(known) => Ok(known),
            PendingAuth::Signed(presented) => self.recognise(presented, head, body, origin).await,
        }
    }

    async fn recognise(
        &self,
        presented: PresentedCredentials,
        head: &Parts,
        body: &[u8],
        origin: &ConnectionOrigin,
    ) -> Result<Known, Rejection> {
        let checked = self.settings().authenticator.check(&presented, &self.facts(head, body), self.chancery().now()).await;
        let known = checked.map_err(|refusal| self.rejection(&refusal, origin))?;
        self.count_caller(&known.caller, origin)?;
        Ok(known)
    }

    fn count_address(&self, origin: &ConnectionOrigin) -> Result<(), Error> {
        self.rates().take_address(origin.address, self.settings().authenticator.is_open())
    }

    fn count_caller(&self, caller: &Caller, origin: &ConnectionOrigin) -> Result<(), Error> {
        self.rates().take_caller(caller, origin.address, self.settings().authenticator.is_open())
    }

    fn rejection(&self, refusal: &CredentialRefusal, origin: &ConnectionOrigin) -> Rejection {
        tracing::warn!(kind = ?refusal.kind, reason = %refusal.reason, address = ?origin.address, "rejected a call because of its credentials");
        let error = refusal.to_error();
        let challenges = match error.kind {
            ErrorKind::Unauthenticated => self.settings().authenticator.challenges(refusal),
            _ => Vec::new(),
        };
        Rejection { error, challenges }
    }

    /// The answer to a JSON-RPC call that was rejected before it was read: in its version and with its id, where a
    /// small look at it shows them.
    pub(crate) async fn reject_json_rpc<B>(
        &self,
        head: &Parts,
        body: B,
        origin: &ConnectionOrigin,
        away: Rejection,
    ) -> DoorResponse
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let bytes = self.peek(body, origin).await;
        self.reject_read(head, &bytes, away)
    }

    /// The body of a rejected call, if it is small. A body that stays unread has its connection closed, and a client that
    /// uses that connection again finds it gone.
    pub(crate) async fn peek<B>(&self, body: B, origin: &ConnectionOrigin) -> Bytes
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let most = body.size_hint().upper().and_then(|most| usize::try_from(most).ok()).unwrap_or(PEEKED_BYTES);
        let mut room = self.body_room(None, origin);
        if room.hold(most.min(PEEKED_BYTES)).is_err() {
            return Bytes::new();
        }
        let patience = self.settings().limits.body_read();
        let peeked = async { Limited::new(body.map_err(|_| "unread"), PEEKED_BYTES).collect().await.ok() };
        let bytes = tokio::time::timeout(patience, peeked).await.ok().flatten().map(http_body_util::Collected::to_bytes);
        bytes.unwrap_or_default()
    }

    /// The same for a call whose body is there.
    pub(crate) fn reject_read(&self, head: &Parts, body: &Bytes, away: Rejection) -> DoorResponse {
        let settings = self.settings();
        let read = |text| json_rpc::open(text, settings.limits.json_rpc_id_bytes).ok();
        let call = scan(body, &settings.json).ok().and_then(read);
        let asked = RequestedVersion::of(&head.headers, head.uri.query()).map_or(Version::V1_0, RequestedVersion::or_0_3);
        let called = call.as_ref().and_then(|call| method(&call.method));
        let version = match called {
            Some(method) if method.ambiguous && takes_anything(&head.headers) => Version::Original,
            Some(method) => method.version,
            None => asked,
        };
        let (error, id) = (&away.error, call.map_or("null", |call| call.id));
        let response = match called {
            // With its HTTP status, which says that the call was turned away at the door.
            Some(method) if reads_events_only(method) => {
                response::refused_stream(error, version, id, response::json_rpc_status(error))
            }
            _ => response::json_rpc_error(error, version, id),
        };
        away.challenge(response)
    }
}

/// Whether a call names no media type it wants. `tasks/get`, `tasks/cancel` and `tasks/resubscribe` are
/// methods of 0.3 and of the original protocol alike. Where the caller is unknown its task cannot tell which.
/// The JS client of 0.3 names a type and takes the original's code for missing credentials, -32001, for a
/// missing task. Its Python client uses HTTP 401 alone.
fn takes_anything(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).is_none_or(|accept| accept.as_bytes() == b"*/*")
}
