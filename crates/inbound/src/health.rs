//! The pages that load balancers and supervisors probe: whether the node is up, and whether it is ready.

use http::request::Parts;
use http::{Method, StatusCode};

use crate::doors::Doors;
use crate::response::{self, DoorResponse, JSON};

impl Doors {
    /// Whether the node is up, and whether it is ready.
    pub(crate) async fn health(&self, head: &Parts, path: &str) -> Option<DoorResponse> {
        if head.method != Method::GET && head.method != Method::HEAD {
            return None;
        }
        match path {
            "/livez" | "/healthz" => Some(response::whole(StatusCode::OK, JSON, br#"{"status":"ok"}"#.to_vec())),
            "/readyz" => Some(match self.chancery().check().await {
                Ok(()) => response::whole(StatusCode::OK, JSON, br#"{"status":"ready"}"#.to_vec()),
                Err(fault) => {
                    let body = serde_json::json!({ "status": "not ready", "reason": fault.to_string() });
                    response::whole(StatusCode::SERVICE_UNAVAILABLE, JSON, body.to_string().into_bytes())
                }
            }),
            _ => None,
        }
    }
}
