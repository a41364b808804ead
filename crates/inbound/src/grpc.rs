//! The gRPC door: both versions' services on the same port, one line per method.

mod newer;
mod older;

use std::pin::Pin;
use std::sync::Arc;

use chancery_core::{Answer, Chancery, Next, Subscription};
use chancery_identity::credentials::Known;
use chancery_protocol::{Binding, CallContext, Error, ErrorKind, Reply, Request as Call, TaskEvent, Version};
use chancery_wire::pb::generated::{a2a_v1, lf_a2a_v1};
use chancery_wire::{Face, errors};
use futures::Stream;
use http::Request;
use http_body::Body;
use tonic::{Response, Status};
use tower::Service as _;

use self::newer::Newer;
use self::older::Older;
use crate::card::Published;
use crate::context::{Asked, Draft, settle_tenant};
use crate::doors::answer;
use crate::limits::InboundLimits;
use crate::response::{DoorBody, DoorResponse};
use crate::signposts::{Signposts, Spot};
use crate::sse::face;

type Events<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What stands behind both services.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    chancery: Chancery,
    published: Published,
    signposts: Arc<Signposts>,
}

#[derive(Clone, Debug)]
pub(crate) struct GrpcDoors {
    newer: lf_a2a_v1::a2a_service_server::A2aServiceServer<Newer>,
    older: a2a_v1::a2a_service_server::A2aServiceServer<Older>,
}

impl GrpcDoors {
    pub(crate) fn new(chancery: Chancery, published: Published, signposts: Arc<Signposts>, limits: &InboundLimits) -> Self {
        let behind = Behind { chancery, published, signposts };
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
            Ok(response) => response.map(DoorBody::Grpc),
            Err(never) => match never {},
        }
    }

    pub(crate) fn refuse(error: &Error, path: &str) -> DoorResponse {
        errors::grpc(error, version_of(path).unwrap_or(Version::V1_0)).into_http().map(DoorBody::Grpc)
    }
}

fn version_of(path: &str) -> Option<Version> {
    match path.split('/').nth(1)? {
        lf_a2a_v1::a2a_service_server::SERVICE_NAME => Some(Version::V1_0),
        a2a_v1::a2a_service_server::SERVICE_NAME => Some(Version::V0_3),
        _ => None,
    }
}

/// The context of a gRPC call. The service's package names the version; a header that names another is refused.
fn context<T>(request: &tonic::Request<T>, spot: &Spot, version: Version) -> Result<CallContext, Error> {
    let headers = request.metadata().clone().into_headers();
    match Asked::of(&headers, None)? {
        Asked::Nothing => {}
        asked => asked.agree(version, "this gRPC service")?,
    }
    let known = request.extensions().get::<Known>().cloned();
    let known = known.ok_or_else(|| Error::new(ErrorKind::Internal, "the call came past the door without a caller"))?;
    Draft { agent: spot.agent.clone(), known }.context(&headers, Binding::Grpc, version)
}

/// Reads a call and settles whose it is and which agent it is for. gRPC has no paths to mount agents under; hosts and tenants
/// say which.
fn understand<Q>(
    behind: &Behind,
    request: tonic::Request<Q>,
    version: Version,
    read: fn(Q) -> Result<Call, Error>,
) -> Result<(CallContext, Spot, Call), Error> {
    let mut spot = request.extensions().get::<Spot>().cloned().unwrap_or_default();
    let mut context = context(&request, &spot, version)?;
    let headers = request.metadata().clone().into_headers();
    let call = read(request.into_inner())?;
    settle_tenant(&mut context, &behind.signposts, &headers, None, call.tenant())?;
    spot.agent.clone_from(&context.agent);
    Ok((context, spot, call))
}

/// One call with one answer: read, ask, write.
async fn unary<Q, A>(
    behind: &Behind,
    version: Version,
    request: tonic::Request<Q>,
    read: fn(Q) -> Result<Call, Error>,
    write: fn(Reply) -> Result<A, Error>,
) -> Result<Response<A>, Status> {
    let answered = async {
        let (context, spot, call) = understand(behind, request, version, read)?;
        match answer(&behind.chancery, &context, call).await? {
            Answer::Reply(Reply::Card(card)) => {
                let signed = behind.published.extended_model(&spot, version);
                write(Reply::Card(signed.unwrap_or(card)))
            }
            Answer::Reply(reply) => write(reply),
            Answer::Stream(_) | Answer::Late(_) => {
                Err(Error::new(ErrorKind::Internal, "a stream was answered where one reply was asked for"))
            }
        }
    };
    answered.await.map(Response::new).map_err(|error| errors::grpc(&error, version))
}

/// One call answered by a stream of events.
async fn streaming<Q, E: Send + 'static>(
    behind: &Behind,
    version: Version,
    request: tonic::Request<Q>,
    read: fn(Q) -> Result<Call, Error>,
    write: fn(&Face, &TaskEvent) -> Option<E>,
) -> Result<Response<Events<E>>, Status> {
    let answered = async {
        let (context, _, call) = understand(behind, request, version, read)?;
        match answer(&behind.chancery, &context, call).await? {
            Answer::Stream(subscription) => Ok(events(subscription, version, write)),
            Answer::Reply(_) | Answer::Late(_) => {
                Err(Error::new(ErrorKind::Internal, "one reply was answered where a stream was asked for"))
            }
        }
    };
    answered.await.map(Response::new).map_err(|error| errors::grpc(&error, version))
}

fn events<E: Send + 'static>(
    subscription: Box<Subscription>,
    version: Version,
    write: fn(&Face, &TaskEvent) -> Option<E>,
) -> Events<E> {
    use futures::StreamExt as _;
    let face = face(&subscription);
    let batches = futures::stream::unfold(Some((subscription, face)), move |state| async move {
        let (mut subscription, face) = state?;
        match subscription.next().await {
            Ok(Next::Events(entries)) => {
                let batch: Vec<_> = entries.iter().filter_map(|entry| write(&face, &entry.event)).map(Ok).collect();
                Some((batch, Some((subscription, face))))
            }
            Ok(Next::Done) => None,
            Ok(Next::ShuttingDown) => {
                let error = Error::new(ErrorKind::Unavailable, "the node is shutting down; subscribe again");
                Some((vec![Err(errors::grpc(&error, version))], None))
            }
            Err(error) => Some((vec![Err(errors::grpc(&error, version))], None)),
        }
    });
    Box::pin(batches.flat_map(futures::stream::iter))
}
