//! Wake-ups that this node has heard and not yet looked at, and whether one was lost.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chancery_core::{ForwardedCallNumber, Wakeup};
use chancery_protocol::TaskId;
use tokio::sync::Notify;

use super::message::WakeupMessage;
use super::news::ANY_NODE;

/// The last batch of each node with entries of watched tasks.
pub(super) type ToldBatches = HashMap<i64, i64>;

/// More tasks than this are not named one by one.
const MOST_TASKS: usize = 10_000;

/// What was heard of a node.
#[derive(Debug, Default)]
struct HeardNode {
    /// The number of its last message. Not known of a node that was there before this one listened.
    number: Option<u64>,
    told: i64,
}

#[derive(Debug, Default)]
struct InboxState {
    closed: bool,
    missed: bool,
    has_calls: bool,
    answers: BTreeSet<i64>,
    tasks: HashMap<TaskId, u64>,
    heard: HashMap<i64, HeardNode>,
    /// What the rows of the writers said at the renewal before.
    told_before: ToldBatches,
}

#[derive(Debug)]
pub(super) struct WakeupInbox {
    node: i64,
    state: Mutex<InboxState>,
    changed: Notify,
}

impl WakeupInbox {
    pub(super) fn new(node: i64) -> Self {
        Self { node, state: Mutex::default(), changed: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a wake-up. One flow calls it.
    pub(super) async fn next(&self) -> Wakeup {
        loop {
            if let Some(wakeup) = self.state().take() {
                return wakeup;
            }
            self.changed.notified().await;
        }
    }

    pub(super) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    /// This node listens again, after a time in which it did not. So many batches had been told of before.
    pub(super) fn start_over(&self, told: ToldBatches) {
        let mut state = self.state();
        state.heard = told.into_iter().map(|(node, told)| (node, HeardNode { number: None, told })).collect();
        state.miss();
        state.has_calls = true;
        drop(state);
        self.changed.notify_one();
    }

    pub(super) fn hear(&self, text: &str) {
        let Some(message) = WakeupMessage::read(text) else { return };
        if message.node == self.node {
            return;
        }
        let mut state = self.state();
        let heard = state.heard.entry(message.node).or_insert(HeardNode { number: Some(0), told: 0 });
        // One that was sent twice has the number of the last.
        let is_next = heard.number.is_none_or(|last| message.number <= last + 1);
        heard.number = Some(heard.number.map_or(message.number, |last| last.max(message.number)));
        heard.told = heard.told.max(message.told);
        if !is_next || message.all {
            state.miss();
        }
        for (task, seq) in message.tasks() {
            let newest = state.tasks.entry(task).or_default();
            *newest = seq.max(*newest);
        }
        if state.tasks.len() > MOST_TASKS || state.missed {
            state.miss();
        }
        state.has_calls |= message.calls_to.contains(&self.node);
        let is_own = |to: i64| to == self.node || to == ANY_NODE;
        state.answers.extend(message.answers.iter().filter(|(to, _)| is_own(*to)).map(|(_, number)| number));
        drop(state);
        self.changed.notify_one();
    }

    /// Compares what the rows of the writers say with what was heard. Answers whether a wake-up was lost: one that the rows had at
    /// the renewal before has had time to come.
    pub(super) fn compare(&self, told: ToldBatches) -> bool {
        let mut state = self.state();
        let state = &mut *state;
        let mut missed = false;
        for (node, before) in std::mem::take(&mut state.told_before) {
            let heard = state.heard.entry(node).or_insert(HeardNode { number: Some(0), told: 0 });
            if before > heard.told {
                missed = true;
                // All that is watched is read now, so this is heard too.
                heard.told = told.get(&node).copied().unwrap_or(before);
                heard.number = None;
            }
        }
        state.told_before = told;
        missed
    }
}

impl InboxState {
    /// All that is watched is to be read, so single tasks need no name.
    fn miss(&mut self) {
        self.missed = true;
        self.tasks.clear();
    }

    fn take(&mut self) -> Option<Wakeup> {
        if self.closed {
            return Some(Wakeup::Closed);
        }
        if std::mem::take(&mut self.missed) {
            return Some(Wakeup::Missed);
        }
        if std::mem::take(&mut self.has_calls) {
            return Some(Wakeup::ForwardedCall);
        }
        if let Some(number) = self.answers.pop_first() {
            return Some(Wakeup::ForwardedAnswer(ForwardedCallNumber(number)));
        }
        (!self.tasks.is_empty()).then(|| Wakeup::Tasks(std::mem::take(&mut self.tasks).into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(node: i64, number: u64, told: i64, tasks: &[(&str, u64)]) -> String {
        let tasks = tasks.iter().map(|(task, seq)| ((*task).to_owned(), *seq)).collect();
        WakeupMessage { node, number, told, tasks, calls_to: vec![], answers: vec![(1, 5), (3, 6)], all: false }.text()
    }

    #[tokio::test]
    async fn what_is_heard_is_added_up_until_somebody_looks() {
        let inbox = WakeupInbox::new(1);
        inbox.hear(&message(2, 1, 4, &[("a", 3)]));
        inbox.hear(&message(2, 2, 5, &[("a", 4)]));
        inbox.hear(&message(1, 9, 5, &[("own", 4)]));
        assert_eq!(inbox.next().await, Wakeup::ForwardedAnswer(ForwardedCallNumber(5)));
        assert_eq!(inbox.next().await, Wakeup::Tasks(vec![("a".into(), 4)]));
        inbox.close();
        assert_eq!(inbox.next().await, Wakeup::Closed);
    }

    #[tokio::test]
    async fn a_gap_in_the_numbers_of_a_node_is_a_wake_up_that_was_lost() {
        let inbox = WakeupInbox::new(1);
        inbox.hear(&message(2, 1, 4, &[("a", 3)]));
        inbox.hear(&message(2, 3, 6, &[("a", 5)]));
        assert_eq!(inbox.next().await, Wakeup::Missed);
        let first_of_a_new_node = WakeupInbox::new(1);
        first_of_a_new_node.hear(&message(2, 2, 4, &[("a", 3)]));
        assert_eq!(first_of_a_new_node.next().await, Wakeup::Missed);
    }

    #[test]
    fn a_wake_up_that_never_came_is_noticed_at_the_second_renewal_and_once() {
        let inbox = WakeupInbox::new(1);
        inbox.start_over([(2, 4)].into());
        assert!(!inbox.compare([(2, 4)].into()));
        assert!(!inbox.compare([(2, 7)].into()), "it may be on its way");
        assert!(inbox.compare([(2, 7)].into()));
        assert!(!inbox.compare([(2, 7)].into()));
        inbox.hear(&message(2, 40, 9, &[("a", 3)]));
        assert!(!inbox.compare([(2, 9)].into()));
        assert!(!inbox.compare([(2, 9), (3, 1)].into()));
        assert!(inbox.compare([(2, 9), (3, 1)].into()), "of a node that was never heard");
    }
}
