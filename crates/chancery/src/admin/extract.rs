//! What the admin API reads of a request: path, query and body, each refused in the one shape of its errors.

use axum::Json;
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
        let read = Json::from_request(request, state).await.map_err(|fault| match fault.status() {
            // JSON that is not what the operation takes is as bad a request as what is no JSON.
            StatusCode::UNPROCESSABLE_ENTITY => Fault::bad(fault.body_text()),
            status => Fault::new(status, fault.body_text()),
        });
        read.map(|Json(read)| Self(read))
    }
}
