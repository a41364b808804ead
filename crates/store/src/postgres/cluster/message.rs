//! Wake-ups as nodes send them: small JSON texts, numbered by their sender so that a lost one is noticed.

use chancery_protocol::TaskId;
use serde::{Deserialize, Serialize};

use super::forwarded::CallOfNode;
use super::news::WakeupNews;

/// A server refuses texts of 8,000 bytes and more.
const MOST_BYTES: usize = 7_900;

/// What a message has beside its lists takes at most so much.
const FRAME_BYTES: usize = 160;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WakeupMessage {
    pub(super) node: i64,
    /// Counts the messages of a node.
    pub(super) number: u64,
    /// The last batch with entries of watched tasks that this message and those before it tell of.
    pub(super) told: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tasks: Vec<(String, u64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) calls_to: Vec<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) answers: Vec<CallOfNode>,
    /// A task has a name that fits into no message: all that is watched is to be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) all: bool,
}

/// Numbers the messages of this node.
#[derive(Debug)]
pub(super) struct MessageWriter {
    node: i64,
    number: u64,
    told: i64,
}

impl MessageWriter {
    pub(super) fn new(node: i64) -> Self {
        Self { node, number: 0, told: 0 }
    }

    fn next(&mut self) -> WakeupMessage {
        self.number += 1;
        let (node, number, told) = (self.node, self.number, self.told);
        WakeupMessage { node, number, told, tasks: Vec::new(), calls_to: Vec::new(), answers: Vec::new(), all: false }
    }

    /// The news in as few messages as they fit into. Only the last one has the number of the newest batch.
    pub(super) fn write(&mut self, news: WakeupNews) -> Vec<WakeupMessage> {
        let mut messages = Vec::new();
        let mut open = self.next();
        let mut room = MOST_BYTES - FRAME_BYTES;
        let mut is_all = false;
        let mut place = |writer: &mut Self, open: &mut WakeupMessage, bytes: usize| {
            if bytes > room {
                let full = std::mem::replace(open, writer.next());
                messages.push(full);
                room = MOST_BYTES - FRAME_BYTES;
            }
            room -= bytes;
        };
        for (task, seq) in news.tasks {
            let item = (task.as_str().to_owned(), seq);
            let bytes = json_bytes(&item);
            if bytes > MOST_BYTES - FRAME_BYTES {
                is_all = true;
                continue;
            }
            place(self, &mut open, bytes);
            open.tasks.push(item);
        }
        for node in news.calls_to {
            place(self, &mut open, json_bytes(&node));
            open.calls_to.push(node);
        }
        for answer in news.answers {
            place(self, &mut open, json_bytes(&answer));
            open.answers.push(answer);
        }
        self.told = self.told.max(news.told);
        open.told = self.told;
        open.all = is_all;
        messages.push(open);
        messages
    }
}

/// With the comma behind it.
fn json_bytes(item: &impl Serialize) -> usize {
    serde_json::to_string(item).map_or(MOST_BYTES, |text| text.len() + 1)
}

impl WakeupMessage {
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// None of a text that is of some other program, or of a version to come.
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = (TaskId, u64)> {
        self.tasks.iter().map(|(task, seq)| (TaskId::new(task.as_str()), *seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_go_in_several_messages_that_are_short_and_numbered() {
        let mut news = WakeupNews::default();
        for number in 0..2_000 {
            news.add_task(&TaskId::new(format!("task \u{1} \"{number}\"")), number);
        }
        news.set_batch(7);
        news.calls_to.extend([3, 4]);
        news.answers.extend((0..500).map(|number| (9, i64::MAX - number)));
        let mut writer = MessageWriter::new(17);
        let messages = writer.write(news);
        assert!(messages.len() > 3);
        assert!(messages.iter().zip(1..).all(|(message, number)| message.number == number));
        let (last, first) = messages.split_last().unwrap();
        assert!(first.iter().all(|message| message.told == 0) && last.told == 7);
        let mut tasks = 0;
        for message in &messages {
            let text = message.text();
            assert!(text.len() < 8_000, "{}", text.len());
            assert_eq!(WakeupMessage::read(&text).as_ref(), Some(message));
            tasks += message.tasks().count();
        }
        assert_eq!(tasks, 2_000);
        assert_eq!(messages.iter().map(|message| message.answers.len()).sum::<usize>(), 500);
        assert_eq!(writer.write(WakeupNews::of_call(5))[0].number, messages.len() as u64 + 1);
    }

    #[test]
    fn a_name_that_fits_into_no_message_says_that_all_is_to_be_read() {
        let mut news = WakeupNews::default();
        news.add_task(&TaskId::new("x".repeat(9_000)), 1);
        let messages = MessageWriter::new(1).write(news);
        assert!(messages.len() == 1 && messages[0].all && messages[0].tasks.is_empty());
    }

    #[test]
    fn a_text_of_another_program_is_no_message() {
        assert_eq!(WakeupMessage::read("hello"), None);
    }
}
