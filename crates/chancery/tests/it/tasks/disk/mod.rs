//! What a node does when its disk is full, its database is damaged, or a file of its folder is gone.

mod damaged;
mod full;
mod lost_files;

use serde_json::Value;

use crate::support::server::Server;

/// Status and body of `/readyz`.
pub(crate) async fn readiness(server: &Server) -> (u16, Value) {
    let answer = reqwest::get(format!("{}/readyz", server.url())).await.expect("the server answers");
    (answer.status().as_u16(), answer.json().await.expect("with JSON"))
}
