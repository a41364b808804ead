//! The answer to a request that is not meant for this node, in the shape its client reads.

use bytes::Bytes;
use chancery_protocol::{Error, Version};
use chancery_wire::errors;
use http::request::Parts;
use http::{Method, StatusCode};
use http_body::Body;

use crate::doors::Doors;
use crate::grpc::GrpcDoors;
use crate::origin::ConnectionOrigin;
use crate::response::{self, DoorResponse};
use crate::{listening, rest};

impl Doors {
    /// Says no in the binding and version of the call that the request would have been.
    pub(crate) async fn misaddressed<B>(
        &self,
        head: &Parts,
        origin: &ConnectionOrigin,
        body: B,
        is_grpc: bool,
        error: Error,
    ) -> DoorResponse
    where
        B: Body<Data = Bytes> + Unpin,
    {
        tracing::warn!(
            kind = ?error.kind,
            address = ?origin.address,
            host = ?head.headers.get("host"),
            %error,
            "rejected a request because of its Host or Origin; `hosts` lists the names of this node"
        );
        if is_grpc {
            return GrpcDoors::refuse(&error, head.uri.path());
        }
        let path = self.spot_of(head).map_or(head.uri.path(), |(_, path)| path);
        if matches!(path, "" | "/") && head.method == Method::POST {
            let status = StatusCode::from_u16(errors::http_status(error.kind, Version::V1_0));
            let mut response = self.reject_json_rpc(head, body, origin, error.into()).await;
            // Also where JSON-RPC would say 200: the request is refused for its HTTP.
            *response.status_mut() = status.unwrap_or(StatusCode::BAD_REQUEST);
            return response;
        }
        let version = match () {
            () if listening::is_listening(head, path) => Version::Original,
            // Read as a path of 0.3, `admin` would be a tenant.
            () if path.starts_with("/admin/") => Version::V1_0,
            () => rest::lookup(&head.method, path).map_or(Version::V1_0, |call| call.version),
        };
        response::rest_error(&error, version)
    }
}
