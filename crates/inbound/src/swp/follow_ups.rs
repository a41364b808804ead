//! Messages that go on with a task: which of them were said, so that none is said twice, and what came of the latest.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use chancery_wire::swp::Report;
use chancery_wire::swp::codec::{SwpLimits, a2a};

/// As many are remembered as tasks that have ended, with as many octets of results as one frame has.
#[derive(Debug)]
pub(super) struct FollowUpDedupe {
    /// What came of each, if that is known and there is room for it.
    results: HashMap<Bytes, Option<Report>>,
    /// In the order they were said.
    order: VecDeque<Bytes>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

impl FollowUpDedupe {
    pub(super) fn new(limits: &SwpLimits) -> Self {
        let (most, most_bytes) = (limits.max_closed_tasks as usize, limits.max_frame_bytes as usize);
        Self { results: HashMap::new(), order: VecDeque::new(), bytes: 0, most, most_bytes }
    }

    /// Whether it was not said before. From now on it was.
    pub(super) fn say(&mut self, task_id: &[u8]) -> bool {
        if self.results.contains_key(task_id) {
            return false;
        }
        while self.order.len() >= self.most.max(1) {
            let Some(oldest) = self.order.pop_front() else { break };
            self.drop_result(&oldest);
            self.results.remove(&oldest);
        }
        // A copy, because a slice would keep the whole frame in memory.
        let task_id = Bytes::copy_from_slice(task_id);
        self.order.push_back(task_id.clone());
        self.results.insert(task_id, None);
        true
    }

    /// It was refused, so that no agent received it.
    pub(super) fn take_back(&mut self, task_id: &[u8]) {
        self.drop_result(task_id);
        if self.results.remove(task_id).is_some() {
            self.order.retain(|said| said != task_id);
        }
    }

    /// Notes what came of it, and lets go of what came of others before if that is too much.
    pub(super) fn keep(&mut self, result: &a2a::TaskResult, report: &Report) {
        let bytes = size(result);
        let Some((task_id, _)) = self.results.get_key_value(&result.task_id) else { return };
        if bytes > self.most_bytes {
            return;
        }
        let task_id = task_id.clone();
        self.drop_result(&task_id);
        for at in 0..self.order.len() {
            if self.bytes + bytes <= self.most_bytes {
                break;
            }
            let older = self.order[at].clone();
            self.drop_result(&older);
        }
        self.bytes += bytes;
        let message = a2a::A2aMessage::Result(a2a::TaskResult { task_id: task_id.clone(), ..result.clone() });
        self.results.insert(task_id, Some(Report { message, given: report.given.clone() }));
    }

    pub(super) fn result(&self, task_id: &[u8]) -> Option<Report> {
        self.results.get(task_id).cloned().flatten()
    }

    fn drop_result(&mut self, task_id: &[u8]) {
        let dropped = self.results.get_mut(task_id).and_then(Option::take);
        if let Some(Report { message: a2a::A2aMessage::Result(result), .. }) = dropped {
            self.bytes -= size(&result);
        }
    }
}

fn size(result: &a2a::TaskResult) -> usize {
    result.task_id.len() + result.output.len() + result.error_message.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_wire::swp::Given;

    fn said(most: u32, most_bytes: u32) -> FollowUpDedupe {
        FollowUpDedupe::new(&SwpLimits { max_closed_tasks: most, max_frame_bytes: most_bytes, ..SwpLimits::default() })
    }

    fn keep(said: &mut FollowUpDedupe, task_id: &'static str, octets: usize) {
        let result = a2a::TaskResult::success(task_id.into(), vec![b'x'; octets].into());
        let report = Report { message: a2a::A2aMessage::Result(result.clone()), given: Given::default() };
        said.keep(&result, &report);
    }

    #[test]
    fn a_message_is_said_once_and_again_only_if_it_was_refused_or_long_ago() {
        let mut said = said(2, 100);
        assert!(said.say(b"a") && said.say(b"b"));
        assert!(!said.say(b"a") && !said.say(b"b"), "two are remembered");
        said.take_back(b"b");
        assert!(said.say(b"b"));
        assert!(said.say(b"c"), "and a third in place of the first");
        assert!(!said.say(b"b") && !said.say(b"c"));
        assert!(said.say(b"a"));
    }

    #[test]
    fn as_many_octets_of_results_are_kept_as_a_frame_has_and_the_latest_stay() {
        let mut said = said(9, 100);
        for task_id in ["a", "b", "c"] {
            said.say(task_id.as_bytes());
        }
        keep(&mut said, "a", 49);
        keep(&mut said, "b", 49);
        assert!(said.result(b"a").is_some() && said.result(b"b").is_some(), "a hundred, with the ids");
        keep(&mut said, "c", 1);
        assert!(said.result(b"a").is_none() && said.result(b"b").is_some() && said.result(b"c").is_some());
        assert!(!said.say(b"a"), "what came of it is forgotten, and not that it was said");
        keep(&mut said, "a", 100);
        assert!(said.result(b"a").is_none() && said.result(b"b").is_some(), "one that is too large leaves the others");
        keep(&mut said, "a", 99);
        assert!(said.result(b"a").is_some() && said.result(b"b").is_none() && said.result(b"c").is_none());
        keep(&mut said, "unsaid", 1);
        assert!(said.result(b"unsaid").is_none());
    }
}
