//! `/admin/v1/memory` of a build without the feature `memory-tier`: every operation answers that there is no tier.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;

use super::AdminState;
use super::fault::Fault;

pub(super) fn routes(_: AdminState) -> Router {
    Router::new().route("/admin/v1/memory", any(refuse)).route("/admin/v1/memory/{*operation}", any(refuse))
}

async fn refuse() -> Fault {
    Fault::new(StatusCode::CONFLICT, "this build does not have the feature `memory-tier`".to_owned())
}
