//! Reads server-sent events off a response, as bare objects or wrapped in JSON-RPC results, with the crate's own types.

use reqwest::Response;
use rvagent_a2a::server::json_rpc::JsonRpcResponse;
use rvagent_a2a::types::{TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
use serde_json::Value;

use crate::checks::Failure;

#[derive(Debug)]
pub enum Update {
    Status(TaskStatusUpdateEvent),
    Artifact(TaskArtifactUpdateEvent),
}

pub struct Updates {
    response: Response,
    unread: String,
}

impl Updates {
    pub fn of(response: Response) -> Self {
        Self { response, unread: String::new() }
    }

    /// The next update, or nothing at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Update>, Failure> {
        loop {
            while let Some((frame, rest)) = self.unread.split_once("\n\n") {
                let update = parse(frame)?;
                self.unread = rest.to_owned();
                if update.is_some() {
                    return Ok(update);
                }
            }
            match self.response.chunk().await? {
                Some(bytes) => self.unread.push_str(std::str::from_utf8(&bytes)?),
                None => return Ok(None),
            }
        }
    }

    /// Every update that is left, up to the one marked `final`, where readers of this protocol stop.
    pub async fn rest(mut self) -> Result<Vec<Update>, Failure> {
        let mut seen = Vec::new();
        while let Some(update) = self.next().await? {
            let last = matches!(&update, Update::Status(status) if status.final_);
            seen.push(update);
            if last {
                break;
            }
        }
        Ok(seen)
    }
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
