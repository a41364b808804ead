//! The turns of a task: one at a time, the next message waits in line.

use std::sync::Arc;

use chancery_protocol::{AgentId, Error, Message, Metadata, Role, SendMessage, TaskEvent, Timestamp, TraceId, Unknown};
use chancery_rules::budget::Amount;
use tokio_util::sync::CancellationToken;

use super::{LiveTask, NotTaken, State};
use crate::ReplyMode;
use crate::govern::allot::{Allotment, TurnStop};
use crate::limits::TaskLimits;

/// What follows a turn.
#[derive(Debug)]
pub(crate) enum AfterTurn {
    Nothing,
    /// The next message in line, whose turn has begun.
    Next(QueuedTurn, CancellationToken),
    /// The task was cancelled and has not ended yet.
    Cancel,
}

/// A message with what came beside it.
#[derive(Debug)]
pub(crate) struct QueuedTurn {
    pub(crate) message: Arc<Message>,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) unknown: Unknown<SendMessage>,
    pub(crate) trace: TraceId,
    pub(crate) tracestate: Option<Arc<str>>,
    pub(crate) extensions: Vec<String>,
    pub(crate) reply_mode: ReplyMode,
    pub(crate) turn_origin: TurnOrigin,
    /// Who was chosen to do the work.
    pub(crate) selected: Option<Arc<str>>,
    /// What its turn was given.
    pub(crate) allotment: Option<Box<Allotment>>,
    /// The hop tokens that came with it.
    pub(crate) brought: Option<Arc<str>>,
    /// The agent that said it, where the call proved that it is one.
    pub(crate) presenter: Option<AgentId>,
}

/// Where a message stands: what of it can have happened before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnOrigin {
    /// It makes a task in a conversation of its own.
    OpensAll,
    /// It makes a task in a conversation its caller names.
    OpensTask,
    GoesOn,
}

impl QueuedTurn {
    /// The last message to the task, for a turn that resumes another one.
    pub(crate) fn again(live: &LiveTask) -> Option<Self> {
        let message = live.task().history.iter().rev().find(|message| message.role == Role::User).cloned()?;
        let trace = live.node().map_or_else(|| TraceId(uuid::Uuid::now_v7().as_u128()), |node| node.kinship.trace);
        Some(Self {
            message,
            metadata: None,
            unknown: Unknown::none(),
            trace,
            tracestate: None,
            extensions: Vec::new(),
            reply_mode: ReplyMode::default(),
            turn_origin: TurnOrigin::GoesOn,
            selected: None,
            allotment: None,
            brought: None,
            presenter: None,
        })
    }
}

impl State {
    fn begin(&mut self, mut queued_turn: QueuedTurn) -> (QueuedTurn, CancellationToken) {
        let token = CancellationToken::new();
        self.turn = Some(token.clone());
        self.stop = None;
        self.last_word = None;
        self.cancel_answered = false;
        self.allotment = queued_turn.allotment.take();
        if let Some(allotment) = &mut self.allotment {
            // A message that waited in line did not know what the turns before it cost.
            allotment.begin(self.spent);
        }
        (queued_turn, token)
    }

    /// Tells the running turn how many messages wait for its end.
    fn show_queue(&mut self) {
        let waiting = self.queued.len();
        self.publish(|visible| visible.queued = waiting);
    }

    pub(super) fn halt(&mut self, stop: TurnStop) {
        self.stop.get_or_insert(stop);
        if let Some(turn) = &self.turn {
            turn.cancel();
        }
    }
}

impl LiveTask {
    /// Whether a turn works on it, or is about to.
    pub(crate) fn is_worked_on(&self) -> bool {
        let state = self.lock();
        state.turn.is_some() || !state.queued.is_empty()
    }

    /// Begins the turn of a follow-up message that was taken.
    pub(crate) fn begin_next_turn(&self, queued_turn: QueuedTurn) -> Option<(QueuedTurn, CancellationToken)> {
        let mut state = self.lock();
        state.arriving -= 1;
        let held = queued_turn.allotment.as_ref().map_or_else(Amount::default, |allotment| allotment.held.amount());
        state.promised = state.promised.saturating_sub(held);
        drop(state);
        self.begin_turn(queued_turn)
    }

    /// Begins a turn, or puts the message in line when one is running. A task that ended meanwhile has no more turns.
    pub(crate) fn begin_turn(&self, queued_turn: QueuedTurn) -> Option<(QueuedTurn, CancellationToken)> {
        let mut state = self.lock();
        if state.head.state.is_terminal() {
            return None;
        }
        if state.turn.is_some() {
            state.queued.push_back(queued_turn);
            state.show_queue();
            return None;
        }
        state.settled_before = state.visible.settled;
        Some(state.begin(queued_turn))
    }

    /// Ends a turn. A cancel that came too late for the turn to see it is seen here, under the same lock that took it.
    pub(crate) fn end_turn(&self) -> AfterTurn {
        let mut state = self.lock();
        let cancelled = state.turn.take().is_some_and(|turn| turn.is_cancelled());
        let is_terminal = state.head.state.is_terminal();
        if is_terminal || cancelled {
            state.queued.clear();
        }
        let next = state.queued.pop_front();
        state.show_queue();
        let Some(queued_turn) = next else {
            // Streams that waited for the agent to go on after its auth-required are over now.
            state.publish(|visible| visible.authorizing = false);
            return if cancelled && !is_terminal { AfterTurn::Cancel } else { AfterTurn::Nothing };
        };
        if !state.visible.authorizing {
            state.settled_before = state.visible.settled;
        }
        let (queued_turn, token) = state.begin(queued_turn);
        AfterTurn::Next(queued_turn, token)
    }

    /// Comes back when a message waits for the end of the running turn.
    pub(crate) async fn message_waits(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.watch().wait_for(|visible| visible.queued > 0).await;
    }

    /// Takes the update that a turn ends with.
    pub(crate) fn take_last(&self, event: TaskEvent, at: Timestamp, limits: &TaskLimits) -> Result<u64, NotTaken> {
        let mut state = self.lock();
        let seq = self.take_into(&mut state, event, at, limits)?;
        state.last_word = Some(seq);
        Ok(seq)
    }

    /// The running turn ends with what was taken last.
    pub(crate) fn end_with_last(&self) {
        let mut state = self.lock();
        state.last_word = Some(state.projected.seq);
    }

    /// Asks the running turn to stop. If none is running, this one begins, and only to stop.
    pub(crate) fn stop_with(&self, queued_turn: QueuedTurn) -> Option<(QueuedTurn, CancellationToken)> {
        let mut state = self.lock();
        if let Some(turn) = &state.turn {
            turn.cancel();
            return None;
        }
        let (queued_turn, token) = state.begin(queued_turn);
        token.cancel();
        Some((queued_turn, token))
    }

    /// Asks the running turn to stop. `false` when none is running.
    pub(crate) fn cancel_turn(&self) -> bool {
        let mut state = self.lock();
        state.cancel_refusal = None;
        state.turn.as_ref().map(CancellationToken::cancel).is_some()
    }

    /// The token of the running turn. A turn whose agent refused a cancel has another one than before.
    pub(crate) fn turn_token(&self) -> Option<CancellationToken> {
        self.lock().turn.clone()
    }

    pub(crate) fn is_turn_cancelled(&self) -> bool {
        self.lock().turn.as_ref().is_none_or(CancellationToken::is_cancelled)
    }

    /// Notes that the agent refused to stop: callers that wait for the cancel get its error, and the turn
    /// continues under another token. `None` if the turn has to stop anyway: a limit or an operator stops it,
    /// or it was broken off.
    pub(crate) fn refuse_cancel(&self, error: Error) -> Option<CancellationToken> {
        let mut state = self.lock();
        if state.stop.is_some() || state.turn.is_none() || state.visible.broken {
            return None;
        }
        let token = CancellationToken::new();
        state.turn = Some(token.clone());
        state.cancel_refusal = Some(error);
        state.publish(|visible| visible.cancels_refused += 1);
        Some(token)
    }

    /// Notes that the agent answered a cancel with the task, in any state: that snapshot is the answer to the
    /// caller.
    pub(crate) fn answer_cancel(&self) {
        self.lock().cancel_answered = true;
    }

    pub(crate) fn cancel_refusal(&self) -> Option<Error> {
        self.lock().cancel_refusal.clone()
    }

    pub(crate) fn is_cancel_answered(&self) -> bool {
        self.lock().cancel_answered
    }
}
