//! What the admin API reads of a request: path, query and body, each refused in the one shape of its errors.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::fault::Fault;

/// The query parameters of a call.
pub(super) struct AdminQuery<T>(pub(super) T);

/// The JSON body of a call.
pub(super) struct AdminBody<T>(pub(super) T);

/// The parts of the path that vary.
pub(super) struct AdminPath<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for AdminQuery<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let Query(read) = Query::from_request_parts(parts, state).await.map_err(|fault| Fault::bad(fault.body_text()))?;
        Ok(Self(read))
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for AdminPath<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let Path(read) = Path::from_request_parts(parts, state).await.map_err(|fault| Fault::bad(fault.body_text()))?;
        Ok(Self(read))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for AdminBody<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, state: &S) -> Result<Self, Fault> {
        let (parts, body) = request.into_parts();
        let whole = Bytes::from_request(Request::from_parts(parts.clone(), body), state).await;
        let whole = whole.map_err(|fault| Fault::new(fault.status(), fault.body_text()))?;
        // A list would be read as the members of an object in their order, and an empty one as an object without any.
        let is_object = whole.trim_ascii_start().first() == Some(&b'{');
        let read = Json::from_request(Request::from_parts(parts, Body::from(whole)), state).await;
        let Json(read) = read.map_err(|fault| match fault.status() {
            // JSON that is not what the operation takes is as bad a request as what is no JSON.
            StatusCode::UNPROCESSABLE_ENTITY => Fault::bad(fault.body_text()),
            status => Fault::new(status, fault.body_text()),
        })?;
        if is_object { Ok(Self(read)) } else { Err(Fault::bad("the body is not a JSON object")) }
    }
}
