//! The account of a task: what its turn was given, what its agent reports, and what it cost in the end.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{Message, MessageId, Role, StatusChange, TaskEvent, TaskState, TaskStatus, Timestamp};
use chancery_rules::budget::{Amount, Caps};

use super::{LiveTask, State};
use crate::govern::allot::{Allotment, SettledTurn, TurnStop};
use crate::govern::announce::{announce, withhold};
use crate::govern::node::TreeNode;
use crate::govern::report::CostReport;
use crate::ids::fresh_id;
use crate::memory_looks::{MemoryLook, MemoryLooks};
use crate::{Clock, Decision, RecordNote, Spend, TaskRecord};

/// What came of asking whether a task may go on with a message.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) decision: Arc<Decision>,
    pub(crate) held: Amount,
    /// What the task cost before, where this process has not seen it.
    pub(crate) before: Spend,
}

impl State {
    /// Settles and returns the allotment of the turn. Answers whether its caller requested the cost.
    fn settle(&mut self, now: impl FnOnce() -> Timestamp) -> Option<(SettledTurn, bool)> {
        let allotment = self.allotment.take()?;
        let announced = allotment.announced;
        let closed = allotment.close(&self.report, now());
        self.spent = Some(closed.spend);
        // Whoever is in line when the task ends gets nothing.
        self.spend = Some(if self.head.state.is_terminal() { closed.spend } else { self.spend() });
        Some((closed, announced))
    }

    /// What is held for messages whose turns have not begun.
    fn in_line(&self) -> Amount {
        let queued =
            self.queued.iter().filter_map(|queued_turn| queued_turn.allotment.as_ref()).map(|allotment| allotment.held.amount());
        queued.fold(self.promised, Amount::saturating_add)
    }

    /// What the task was given and cost, as it stands.
    fn spend(&self) -> Spend {
        let spend = match &self.allotment {
            Some(allotment) => allotment.spend(),
            None => Spend { reserved: Amount::default(), ..self.spent.unwrap_or_default() },
        };
        Spend { reserved: spend.reserved.saturating_add(self.in_line()), ..spend }
    }

    /// A message was taken; what was decided about it and what is held for it goes to the store with it.
    pub(super) fn promise(&mut self, admission: Admission) {
        let Admission { decision, held, before } = admission;
        self.decision = Some(decision);
        self.spent.get_or_insert(before);
        self.promised = self.promised.saturating_add(held);
        self.spend = Some(self.spend());
    }

    /// What the agent reports is weighed. If more is held for it now, the store learns that together with the report.
    fn weigh(&mut self) -> Option<TurnStop> {
        let allotment = self.allotment.as_mut()?;
        let before = allotment.held.amount();
        let stop = allotment.weigh(&self.report);
        if allotment.held.amount() != before {
            self.spend = Some(self.spend());
        }
        stop
    }

    /// An agent that got a stop reports a cancel; the task's caller learns the reason.
    pub(super) fn with_stop_reason(&self, event: TaskEvent, record: &TaskRecord) -> TaskEvent {
        match (event, &self.stop) {
            (TaskEvent::Status(change), Some(stop)) if change.status.state == TaskState::Canceled => {
                let message = Message {
                    context_id: Some(record.context_id.clone()),
                    task_id: Some(record.id.clone()),
                    ..Message::text(Role::Agent, MessageId::new(fresh_id()), stop.reason())
                };
                let status = TaskStatus { state: TaskState::Failed, message: Some(Arc::new(message)), ..change.status };
                TaskEvent::Status(StatusChange { status, metadata: change.metadata, unknown: change.unknown })
            }
            (event, _) => event,
        }
    }
}

impl LiveTask {
    /// Its place in a tree, while it is open.
    pub(crate) fn node(&self) -> Option<&Arc<TreeNode>> {
        self.node.get()
    }

    /// The first reader may have opened a task before it had a place.
    pub(crate) fn take_place(&self, node: Arc<TreeNode>) {
        let _ = self.node.set(node);
    }

    /// What an update says of cost is weighed; one that ends the task settles what its turn was given.
    pub(super) fn account(&self, state: &mut State, event: TaskEvent, at: Timestamp) -> TaskEvent {
        if let Some(report) = CostReport::of(&event) {
            state.report = state.report.and(report);
            if let Some(allotment) = &mut state.allotment {
                allotment.apply(report);
            }
            if !state.head.state.is_terminal()
                && state.stop.is_none()
                && let Some(stop) = state.weigh()
            {
                tracing::info!(task = %self.record.id, reason = stop.reason(), "the node stops a task");
                state.halt(stop);
            }
        }
        if !state.head.state.is_terminal() {
            return event;
        }
        if let Some(looks) = MemoryLooks::reported(&event) {
            state.decision = Some(self.record_of(looks, state.decision.take(), at));
        }
        let closed = state.settle(|| at);
        if closed.is_none() && state.promised != Amount::default() {
            // A message was taken whose turn will never begin.
            state.spend = state.spent.map(|spent| Spend { reserved: Amount::default(), ..spent });
        }
        if let Some(node) = self.node() {
            node.end(state.head.state, at);
        }
        match (closed, self.node()) {
            (Some((closed, true)), Some(node)) => {
                node.tell(closed.subtree);
                announce(event, node, &closed, &state.report, &state.memory_looks)
            }
            _ => withhold(event),
        }
    }

    /// Its agent read shared memory; the caller of the task learns that with its end.
    pub(crate) fn looked(&self, look: MemoryLook) {
        self.lock().memory_looks.add(look);
    }

    /// Goes into the record with the next update.
    pub(crate) fn note(&self, note: RecordNote) {
        self.lock().notes.push(note);
    }

    /// Nothing was done: what the turn was given is free again, as if it had never been asked for.
    pub(crate) fn give_back(&self) {
        let allotment = self.lock().allotment.take();
        if let Some(allotment) = allotment {
            allotment.release();
        }
        if let Some(node) = self.node() {
            node.withdraw();
        }
    }

    /// The turn did nothing, and its task ends with it: the allotment is free again, and the store gets that
    /// with the end.
    pub(crate) fn give_back_unused(&self) {
        let mut state = self.lock();
        if let Some(allotment) = state.allotment.take() {
            state.spend = Some(Spend { reserved: Amount::default(), ..allotment.before });
            allotment.release();
        }
    }

    /// A turn has ended and its task has not: what the turn cost is settled now, and waits for the store. Answers whether there
    /// was something to settle.
    pub(crate) fn settle_turn(&self, clock: &dyn Clock) -> bool {
        let mut state = self.lock();
        let settled = state.settle(|| clock.now()).is_some();
        if settled {
            state.stop = None;
        }
        settled
    }

    /// What was set aside for the running turn, where there is a cap on it.
    pub(crate) fn granted(&self, elsewhere: bool) -> Caps {
        self.lock().allotment.as_ref().map_or(Caps::NONE, |allotment| match elsewhere {
            true => allotment.granted_elsewhere(),
            false => allotment.granted(),
        })
    }

    /// What the turns of the task that are over cost, as far as this process has seen them.
    pub(crate) fn spent(&self) -> Option<Spend> {
        self.lock().spent
    }

    /// What a turn had been given that another process began and this one ends.
    pub(crate) fn give(&self, mut allotment: Box<Allotment>) {
        allotment.begin(None);
        self.lock().allotment = Some(allotment);
    }

    /// Stops the running turn for a reason its caller will read.
    pub(crate) fn halt(&self, stop: TurnStop) {
        self.lock().halt(stop);
    }

    /// The task was cancelled, and its remote agent did not confirm that it stopped.
    pub(crate) fn set_unconfirmed(&self, why: String) {
        self.lock().unconfirmed = Some(why);
    }

    pub(crate) fn not_confirmed(&self) -> Option<String> {
        self.lock().unconfirmed.clone()
    }

    /// Why the turn is being stopped.
    pub(crate) fn stopped_because(&self) -> Option<String> {
        self.lock().stop.as_ref().map(TurnStop::reason)
    }

    /// What the running turn does is logged in this.
    pub(crate) fn span(&self) -> tracing::Span {
        self.lock().allotment.as_ref().map_or_else(tracing::Span::none, |allotment| allotment.span.clone())
    }

    pub(crate) fn time_limit(&self) -> Option<Duration> {
        self.lock().allotment.as_ref().and_then(|allotment| allotment.time_limit())
    }
}
