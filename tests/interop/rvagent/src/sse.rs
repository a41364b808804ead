//! Reads server-sent events off a response, as bare objects or wrapped in JSON-RPC results.

use reqwest::Response;
use rvagent_a2a::server::json_rpc::JsonRpcResponse;
use rvagent_a2a::types::{TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
use serde_json::Value;

use crate::checks::Failure;

/// One update, parsed with the crate's own types.
#[derive(Debug)]
pub enum Update {
    Status(TaskStatusUpdateEvent),
    Artifact(TaskArtifactUpdateEvent),
}

/// Reads until the event marked `final`, or the end of the stream.
pub async fn updates(mut response: Response) -> Result<Vec<Update>, Failure> {
    let mut unread = String::new();
    let mut seen = Vec::new();
    while let Some(bytes) = response.chunk().await? {
        unread.push_str(std::str::from_utf8(&bytes)?);
        while let Some((frame, rest)) = unread.split_once("\n\n") {
            let update = parse(frame)?;
            unread = rest.to_owned();
            let Some(update) = update else { continue };
            let last = matches!(&update, Update::Status(status) if status.final_);
            seen.push(update);
            if last {
                return Ok(seen);
            }
        }
    }
    Ok(seen)
}

fn parse(frame: &str) -> Result<Option<Update>, Failure> {
    let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let Some(data) = field("data:") else { return Ok(None) };
    let value: Value = serde_json::from_str(data)?;
    let update = match value.get("jsonrpc") {
        Some(_) => {
            let wrapped: JsonRpcResponse = serde_json::from_value(value)?;
            wrapped.result.ok_or_else(|| format!("an error inside the stream: {:?}", wrapped.error))?
        }
        None => {
            // Bare frames are told apart by their event name.
            let name = field("event:").unwrap_or_default();
            let wanted = if value.get("artifact").is_some() { "artifact" } else { "status" };
            if name != wanted {
                return Err(format!("event name {name:?} on {data}").into());
            }
            value
        }
    };
    Ok(Some(if update.get("artifact").is_some() {
        Update::Artifact(serde_json::from_value(update)?)
    } else {
        Update::Status(serde_json::from_value(update)?)
    }))
}
