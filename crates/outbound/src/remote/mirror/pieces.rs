//! A message of a running task that its agent sends in pieces under one id.

use std::sync::Arc;

use chancery_protocol::{Message, Part, TaskEvent};

use super::{Mirror, Strange, as_progress, join_texts};

/// The pieces of one message that came one after the other.
#[derive(Debug)]
pub(super) struct MessagePieces {
    /// The chunk that was forwarded last. It stands for the message until the whole is forwarded.
    last: Arc<Message>,
    /// The parts of all pieces.
    parts: Vec<Part>,
    count: usize,
}

impl Mirror {
    /// A message event of an open task. Chunks are forwarded as they arrive; the whole follows before other
    /// words, or with [`Self::whole_at_the_end`].
    pub(in super::super) fn progress(&mut self, message: Arc<Message>) -> Result<Vec<TaskEvent>, Strange> {
        let mut news = self.whole_before(&message);
        match &mut self.pieces {
            Some(pieces) => {
                pieces.parts.extend(message.parts.iter().cloned());
                pieces.count += 1;
                pieces.last = Arc::clone(&message);
            }
            None if message.message_id.as_str().is_empty() => {}
            None => {
                let parts = message.parts.clone();
                self.pieces = Some(MessagePieces { last: Arc::clone(&message), parts, count: 1 });
            }
        }
        news.push(as_progress(message, None));
        self.noted(news)
    }

    /// The message that came in pieces, whole, if other words follow it.
    pub(super) fn whole_before(&mut self, words: &Message) -> Vec<TaskEvent> {
        match &self.pieces {
            Some(pieces) if pieces.last.message_id != words.message_id => self.whole_words(),
            _ => Vec::new(),
        }
    }

    /// The same at the end of a turn.
    pub(in super::super) fn whole_at_the_end(&mut self) -> Result<Vec<TaskEvent>, Strange> {
        let whole = self.whole_words();
        self.noted(whole)
    }

    /// The message that came in pieces, whole. Nothing, if there was one piece, or if the agent has said the whole itself.
    fn whole_words(&mut self) -> Vec<TaskEvent> {
        let Some(MessagePieces { last, parts, count }) = self.pieces.take() else { return Vec::new() };
        if count == 1 || self.has_other_words(&last) {
            return Vec::new();
        }
        let parts = join_texts(&parts).unwrap_or(parts);
        vec![as_progress(Arc::new(Message { parts, ..Arc::unwrap_or_clone(last) }), None)]
    }
}
