//! What an agent said that only the history of its task shows.

use std::sync::Arc;

use chancery_protocol::{Message, Role, Task};

use super::Mirror;

impl Mirror {
    /// The agent's messages in a task's history that were not forwarded, or with other words, in their order.
    pub(super) fn unheard(&self, picture: &Task) -> Vec<Arc<Message>> {
        // Some frameworks show the conversation of the whole context; messages of earlier tasks name theirs.
        let is_of_task = |message: &Message| message.task_id.as_ref().is_none_or(|task| *task == picture.id);
        let is_last = |message: &Message| {
            let last = picture.status.message.as_ref();
            last.is_some_and(|last| !last.message_id.as_str().is_empty() && last.message_id == message.message_id)
        };
        // What comes before the last that is known here was said to somebody else, or in another turn.
        let is_known = |message: &Message| {
            let is_reworded = message.role == Role::Agent && self.has_other_words(message);
            self.said.contains(&message.message_id) && !is_reworded
        };
        let known = picture.history.iter().rposition(|message| is_known(message));
        let mut unmatched: Vec<&Message> = self.passed_on().collect();
        let new = picture.history.iter().skip(known.map_or(0, |place| place + 1)).filter(|message| {
            let is_candidate = message.role == Role::Agent && !message.parts.is_empty();
            is_candidate && is_of_task(message) && !is_last(message) && !take_equal(&mut unmatched, message)
        });
        new.cloned().collect()
    }

    /// Whether the history of a picture holds a message that is known here, and so all that came after it.
    pub(in super::super) fn reaches_back(&self, picture: &Task) -> bool {
        picture.history.iter().any(|message| self.said.contains(&message.message_id))
    }

    /// The forwarded messages of the agent.
    fn passed_on(&self) -> impl Iterator<Item = &Message> {
        let words = self.seen.history.iter().chain(self.seen.status.message.iter());
        words.map(|message| &**message).filter(|message| message.role == Role::Agent)
    }
}

/// Removes a message with the same words. Some frameworks give a message another id each time they show it;
/// each forwarded message stands for one of the history.
fn take_equal(unmatched: &mut Vec<&Message>, message: &Message) -> bool {
    let place = unmatched.iter().position(|known| known.parts == message.parts);
    place.map(|place| unmatched.swap_remove(place)).is_some()
}
