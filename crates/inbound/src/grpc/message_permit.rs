//! Passes the permit of a gRPC answer around tonic, which turns the message into bytes, to the bytes until they are written.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use chancery_core::AnswerPermit;

use crate::unwritten::UnwrittenBuffers;

/// The permit of a message that is with tonic, and the bytes that came out of it.
#[derive(Debug)]
pub(crate) struct MessagePermit {
    permit: Mutex<Option<AnswerPermit>>,
    unwritten: Arc<UnwrittenBuffers>,
}

impl MessagePermit {
    pub(super) fn new(permit: AnswerPermit) -> Self {
        Self { permit: Mutex::new(Some(permit)), unwritten: Arc::default() }
    }

    /// Bytes as they come from tonic: one message is one piece, which holds the permit.
    pub(crate) fn count(&self, bytes: Bytes) -> Bytes {
        match self.permit.lock().unwrap_or_else(PoisonError::into_inner).take() {
            None => bytes,
            Some(mut permit) => {
                permit.set(bytes.len() as u64);
                self.unwritten.count(bytes, Some(Arc::new(permit)))
            }
        }
    }

    pub(crate) fn unwritten(&self) -> Arc<UnwrittenBuffers> {
        Arc::clone(&self.unwritten)
    }
}
