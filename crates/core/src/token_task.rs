//! The task that a hop token names, with a digest that ties the token to what is on record of the task.

use chancery_protocol::TaskId;
use chancery_rules::lineage::TokenClaims;

use crate::Seal;

/// The task that a hop token names, and a digest of its place in its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenTask {
    /// The task.
    pub task: TaskId,
    /// A digest of its place in the tree.
    pub place: [u8; 8],
}

impl TokenTask {
    /// Names a task by what is on record of it. A token that names it otherwise does not agree with the record.
    pub fn of(claims: &TokenClaims, seal: &dyn Seal) -> Self {
        let TokenClaims { tenant, root_task, parent_task, trace_id, depth, audience } = claims;
        let mut content = Vec::with_capacity(256);
        for text in [&**tenant, root_task.as_str(), parent_task.as_str(), &**audience] {
            content.extend_from_slice(&(text.len() as u64).to_be_bytes());
            content.extend_from_slice(text.as_bytes());
        }
        content.extend_from_slice(&trace_id.0.to_be_bytes());
        content.extend_from_slice(&depth.to_be_bytes());
        let [a, b, c, d, e, f, g, h, ..] = seal.digest(&content);
        Self { task: parent_task.clone(), place: [a, b, c, d, e, f, g, h] }
    }
}
