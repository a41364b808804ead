//! A node whose tasks are in a PostgreSQL database: it does what a node on a file does, and says what the database lacks.

mod outage;
mod restart;
mod start;
mod stories;
mod takeover;

use serde_json::Value;

use crate::support::line::Line;
use crate::support::server::{Home, Server};

/// A client's line to a server in this home.
fn line_to(home: &Home, server: &Server) -> Line {
    let token = std::fs::read_to_string(home.data().join("admin.token")).expect("a node with a folder has a token");
    Line::to(server.url(), &token)
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default()
}
