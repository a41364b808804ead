//! The gRPC door: both versions' services on the same port, one line per method.

mod events;
mod message_permit;
mod newer;
mod older;

use std::sync::Arc;

use chancery_core::{Answer, AnswerPermit, Chancery};
use chancery_identity::credentials::Known;
use chancery_protocol::{Binding, CallContext, Error, ErrorKind, PeerConnection, Reply, Request as Call, TaskEvent, Version};
use chancery_wire::pb::generated::{a2a_v1, lf_a2a_v1};
use chancery_wire::{TaskNames, errors};
use http::Request;
use http_body::Body;
use tonic::{Response, Status};
use tower::Service as _;

use self::events::GrpcEventBody;
pub(crate) use self::events::GrpcFrames;
pub(crate) use self::message_permit::MessagePermit;
use self::newer::Newer;
use self::older::Older;
use crate::card::PublishedCards;
use crate::context::{CallHead, Draft, NamedTenants, RequestedVersion};
use crate::doors::answer;
use crate::limits::InboundLimits;
use crate::response::{DoorBody, DoorResponse};
use crate::shared_events::SharedEvents;
use crate::signposts::{Signposts, Spot};

/// What tonic answers with.
pub(crate) type GrpcBody = tonic::body::Body;

type Events<T> = futures::stream::Empty<Result<T, Status>>;

/// What stands behind both services.
#[derive(Clone, Debug)]
pub(super) struct GrpcBackend {
    chancery: Chancery,
    published: PublishedCards,
    signposts: Arc<Signposts>,
    shared_events: Arc<SharedEvents>,
}

#[derive(Clone, Debug)]
pub(crate) struct GrpcDoors {
    newer: lf_a2a_v1::a2a_service_server::A2aServiceServer<Newer>,
    older: a2a_v1::a2a_service_server::A2aServiceServer<Older>,
}

impl GrpcDoors {
    pub(crate) fn new(
        chancery: Chancery,
        published: PublishedCards,
        signposts: Arc<Signposts>,
        shared_events: Arc<SharedEvents>,
        limits: &InboundLimits,
    ) -> Self {
        let behind = GrpcBackend { chancery, published, signposts, shared_events };
        let newer = lf_a2a_v1::a2a_service_server::A2aServiceServer::from_arc(Arc::new(Newer(behind.clone())));
        let older = a2a_v1::a2a_service_server::A2aServiceServer::from_arc(Arc::new(Older(behind)));
        Self {
            newer: newer.max_decoding_message_size(limits.body_bytes),
            older: older.max_decoding_message_size(limits.body_bytes),
        }
    }

    pub(crate) async fn call<B>(&self, request: Request<B>) -> DoorResponse
    where
        B: Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    {
        let answer = match version_of(request.uri().path()) {
            Some(Version::V1_0) => self.newer.clone().call(request).await,
            Some(_) => self.older.clone().call(request).await,
            None => Ok(Status::unimplemented("no such gRPC service here").into_http()),
        };
        match answer {
            Ok(mut response) => {
                let permit = response.extensions_mut().remove::<Arc<MessagePermit>>();
                match response.extensions_mut().remove::<GrpcEventBody>() {
                    Some(events) => response.map(|_| events.into_body()),
                    None => response.map(|body| DoorBody::grpc(body, permit)),
                }
            }
            Err(never) => match never {},
        }
    }

    pub(crate) fn refuse(error: &Error, path: &str) -> DoorResponse {
        errors::grpc(error, version_of(path).unwrap_or(Version::V1_0)).into_http().map(|body| DoorBody::grpc(body, None))
    }
}

fn version_of(path: &str) -> Option<Version> {
    match path.split('/').nth(1)? {
        lf_a2a_v1::a2a_service_server::SERVICE_NAME => Some(Version::V1_0),
        a2a_v1::a2a_service_server::SERVICE_NAME => Some(Version::V0_3),
        _ => None,
    }
}

/// Who calls and how. The service's package names the version; a header that names another is refused.
fn head<T>(request: &tonic::Request<T>, spot: &Spot, version: Version) -> Result<(Draft, CallHead), Error> {
    let headers = request.metadata().clone().into_headers();
    match RequestedVersion::of(&headers, None)? {
        RequestedVersion::Nothing => {}
        asked => asked.agree(version, "this gRPC service")?,
    }
    let known = request.extensions().get::<Known>().cloned();
    let known = known.ok_or_else(|| Error::new(ErrorKind::Internal, "the call came past the door without a caller"))?;
    let unlisted_at = request.extensions().get::<Option<PeerConnection>>().copied().flatten();
    Ok((Draft { agent: spot.agent.clone(), via: None, known, unlisted_at }, CallHead::read(&headers)?))
}

/// Reads a call and settles whose it is and which agent it is for. gRPC has no paths to mount agents under; hosts and tenants
/// say which.
fn understand<Q>(
    behind: &GrpcBackend,
    request: tonic::Request<Q>,
    version: Version,
    read: fn(Q) -> Result<Call, Error>,
) -> Result<(CallContext, Spot, Call), Error> {
    let mut spot = request.extensions().get::<Spot>().cloned().unwrap_or_default();
    let (draft, head) = head(&request, &spot, version)?;
    let call = read(request.into_inner())?;
    let named = NamedTenants { in_path: None, in_body: call.tenant() };
    let context = draft.context(head, named, &behind.signposts, Binding::Grpc, version)?;
    spot.agent.clone_from(&context.agent);
    Ok((context, spot, call))
}

/// One call with one answer: read, ask, write.
async fn unary<Q, A>(
    behind: &GrpcBackend,
    version: Version,
    request: tonic::Request<Q>,
    read: fn(Q) -> Result<Call, Error>,
    write: fn(Reply) -> Result<A, Error>,
) -> Result<Response<A>, Status> {
    let answered = async {
        let (context, spot, call) = understand(behind, request, version, read)?;
        Ok(match answer(&behind.chancery, &context, call).await? {
            Answer::Reply(Reply::Card(card)) => {
                let signed = behind.published.extended_model(&spot, version);
                Response::new(write(Reply::Card(signed.unwrap_or(card)))?)
            }
            Answer::Reply(reply) => Response::new(write(reply)?),
            Answer::Large(reply, permit) => with_permit(write(reply)?, Some(permit)),
            Answer::Page(page) => {
                let (page, permit) = page.collect().await;
                with_permit(write(Reply::Tasks(page))?, permit)
            }
            Answer::Stream(_) | Answer::Late(_) => {
                return Err(Error::new(ErrorKind::Internal, "a stream was answered where one reply was asked for"));
            }
        })
    };
    answered.await.map_err(|error| errors::grpc(&error, version))
}

/// A message whose bytes hold this permit until they are written.
fn with_permit<A>(message: A, permit: Option<AnswerPermit>) -> Response<A> {
    let mut response = Response::new(message);
    if let Some(permit) = permit {
        response.extensions_mut().insert(Arc::new(MessagePermit::new(permit)));
    }
    response
}

/// One call answered by a stream of events. tonic reads the call and writes the head; the events are written here, because readers
/// share the bytes of large ones. The body goes past tonic with the response, whose own stream is empty.
async fn streaming<Q, E: prost::Message + 'static>(
    behind: &GrpcBackend,
    version: Version,
    request: tonic::Request<Q>,
    read: fn(Q) -> Result<Call, Error>,
    write: fn(&TaskNames, &TaskEvent) -> Option<E>,
) -> Result<Response<Events<E>>, Status> {
    let answered = async {
        let (context, _, call) = understand(behind, request, version, read)?;
        match answer(&behind.chancery, &context, call).await? {
            Answer::Stream(subscription) => {
                let body = GrpcEventBody::new(subscription, version, Arc::clone(&behind.shared_events), write);
                let mut response = Response::new(futures::stream::empty());
                response.extensions_mut().insert(body);
                Ok(response)
            }
            _ => Err(Error::new(ErrorKind::Internal, "one reply was answered where a stream was asked for")),
        }
    };
    answered.await.map_err(|error| errors::grpc(&error, version))
}
