//! Bytes of answers that their callers have not taken yet, counted for each caller and for the node.
//!
//! A permit is taken before a task is read from the store and lives until its bytes are written or the connection is gone.

use std::sync::Arc;

use chancery_protocol::{CallAccount, Error};

use crate::byte_ledger::{ByteLedger, ByteLimits, BytePermit};
use crate::limits::TaskLimits;

/// Smaller answers are not counted: the limits on connections and streams bound them, and most calls take no lock this way.
pub const COUNTED_FROM: u64 = 4 * 1024;

/// Room for an answer of so many bytes.
pub type AnswerPermit = BytePermit;

/// Counts the bytes that are being answered.
#[derive(Debug, Default)]
pub(crate) struct AnswerLedger(Arc<ByteLedger>);

impl TaskLimits {
    pub(crate) fn answering(&self) -> ByteLimits {
        ByteLimits {
            per_caller: ("limits.answering_bytes_per_caller", self.answering_bytes_per_caller),
            per_node: ("limits.answering_bytes_per_node", self.answering_bytes_per_node),
            meaning: "are being answered and not read yet; read them, or try again later",
        }
    }
}

impl AnswerLedger {
    /// Room for an answer, or the reason for its refusal.
    pub(crate) fn reserve(&self, account: &CallAccount, bytes: u64, limits: &TaskLimits) -> Result<AnswerPermit, Error> {
        self.0.reserve(account, bytes, &limits.answering())
    }

    /// Room for an answer that cannot be refused any more. Who waits here holds no task: many may wait.
    pub(crate) async fn wait(&self, account: &CallAccount, bytes: u64, limits: &TaskLimits) -> AnswerPermit {
        self.0.wait(account, bytes, &limits.answering()).await
    }
}
