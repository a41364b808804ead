//! `GET /admin/v1/evidence/bundle` of a build without the feature `evidence-bundles`: every call is refused.

use axum::http::StatusCode;
use axum::routing::{MethodRouter, get};

use crate::admin::AdminState;
use crate::admin::fault::Fault;

pub(super) fn route() -> MethodRouter<AdminState> {
    get(refuse)
}

async fn refuse() -> Fault {
    Fault::new(StatusCode::CONFLICT, "this build does not have the feature `evidence-bundles`".to_owned())
}
