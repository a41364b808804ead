//! Runs a turn of a local agent: its updates are recorded as it yields, its panic or error becomes the task's reason.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use chancery_protocol::{Error, Message, MessageId, Role, StatusChange, TaskEvent, TaskState, TaskStatus, Unknown};
use chancery_rules::policy::PolicyError;
use chancery_rules::routing::CallOutcome;
use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::agents::Agent;
use crate::delegate::Delegation;
use crate::govern::allot::TurnStop;
use crate::ids::fresh_id;
use crate::live::{AfterTurn, LiveTask, QueuedTurn, TurnOrigin};
use crate::recording::PendingRecording;
use crate::service::ChanceryInner;
use crate::sink::{Finished, TaskUpdateSink};
use crate::{Link, MemoryRecall, RecordNote, RunError, StoreError, Turn};

/// How a turn came to its end.
enum End {
    /// The runner ended it through its sink.
    Finished(Finished),
    /// The runner gave up, or panicked.
    Failed(RunError),
    /// The runner did not stop in time after a cancel.
    Dropped,
}

impl End {
    /// What a turn says about an agent of this process.
    fn outcome(&self) -> CallOutcome {
        match self {
            Self::Finished(_) => CallOutcome::Succeeded,
            Self::Failed(error) if error.refusal.is_none() => CallOutcome::Failed,
            Self::Failed(_) | Self::Dropped => CallOutcome::Unjudged,
        }
    }
}

impl ChanceryInner {
    /// Starts a turn. Its first step runs in the caller's own flow, which is all a quick agent needs; the
    /// other steps run in the background, also after the caller disconnects. If that first step ends the turn, the
    /// caller gets what is left to record of it.
    pub(crate) async fn execute(
        self: &Arc<Self>,
        live: &Arc<LiveTask>,
        agent: &Arc<Agent>,
        queued_turn: QueuedTurn,
        token: CancellationToken,
        resumed: bool,
    ) -> Option<PendingRecording> {
        let turns = Arc::clone(self).turns(Arc::clone(live), Arc::clone(agent), queued_turn, token, resumed);
        let mut turns: Pin<Box<dyn Future<Output = Option<PendingRecording>> + Send>> = Box::pin(turns);
        match std::future::poll_fn(|context| Poll::Ready(turns.as_mut().poll(context))).await {
            Poll::Ready(recording) => recording,
            Poll::Pending => {
                self.in_background("turn", async move {
                    if let Some(recording) = turns.await {
                        recording.await;
                    }
                });
                None
            }
        }
    }

    /// The turn, and the ones that were put in line meanwhile.
    async fn turns(
        self: Arc<Self>,
        live: Arc<LiveTask>,
        agent: Arc<Agent>,
        queued_turn: QueuedTurn,
        token: CancellationToken,
        resumed: bool,
    ) -> Option<PendingRecording> {
        let mut next = (queued_turn, token, resumed);
        loop {
            let (queued_turn, token, resumed) = next;
            let span = live.span();
            let recording = self.turn(&live, &agent, queued_turn, token, resumed).instrument(span).await;
            next = match live.end_turn() {
                AfterTurn::Next(queued_turn, token) => (queued_turn, token, false),
                AfterTurn::Nothing => {
                    self.let_go_if_watched(&live);
                    if self.cluster.is_some() {
                        Box::pin(self.release_if_idle(&live)).await;
                    }
                    return recording;
                }
                AfterTurn::Cancel => {
                    drop(recording);
                    self.end_by_force(&live, TaskState::Canceled, None).await;
                    self.let_go_if_watched(&live);
                    return None;
                }
            };
        }
    }

    async fn turn(
        self: &Arc<Self>,
        live: &Arc<LiveTask>,
        agent: &Arc<Agent>,
        queued_turn: QueuedTurn,
        token: CancellationToken,
        resumed: bool,
    ) -> Option<PendingRecording> {
        let task = match self.bring_back(live).await {
            Ok(task) => task,
            Err(error) => {
                let reason = format!("the node cannot read the task: {}", error.message);
                self.end_by_force(live, TaskState::Failed, Some(reason)).await;
                return None;
            }
        };
        if let Some(member) = &self.cluster {
            // Its message may have been recorded a while ago. Another node may work on the task by now.
            Box::pin(member.wait_until_fresh()).await;
        }
        let (clock, limits) = (Arc::clone(&self.clock), Arc::clone(&self.limits.load()));
        let sink = TaskUpdateSink::new(Arc::clone(live), clock, limits, self.part_store.get().cloned());
        let time_limit = live.time_limit();
        let deadline = time_limit.map(|limit| self.clock.now() + limit);
        let delegation = Delegation::new(
            self,
            Arc::clone(&live.record),
            live.node().cloned(),
            deadline,
            live.granted(agent.runner.keeps_links()),
            queued_turn.brought,
            queued_turn.tracestate.clone(),
        );
        let (link, context_link) =
            if agent.runner.keeps_links() { self.links(live, queued_turn.turn_origin).await } else { (None, None) };
        let turn = Turn {
            task,
            message: queued_turn.message,
            metadata: queued_turn.metadata,
            unknown: queued_turn.unknown,
            caller: live.record.owner.clone(),
            cancelled: token,
            resumed,
            link,
            context_link,
            trace: queued_turn.trace,
            tracestate: queued_turn.tracestate,
            extensions: queued_turn.extensions,
            reply_mode: queued_turn.reply_mode,
            selected: queued_turn.selected,
            delegation,
            memory: self.memory.get().map(|_| MemoryRecall::new(self, live, queued_turn.presenter)),
        };
        let measured = self.measured(agent);
        let (mut ending, mut recording) = {
            let mut run = AssertUnwindSafe(agent.runner.run(turn, sink)).catch_unwind();
            // Made only for a runner that does not finish at once.
            let mut overdue = None;
            std::future::poll_fn(|context| {
                let ending = match run.poll_unpin(context) {
                    Poll::Ready(Ok(Ok(finished))) => Poll::Ready(End::Finished(finished)),
                    Poll::Ready(Ok(Err(error))) => Poll::Ready(End::Failed(error)),
                    Poll::Ready(Err(panic)) => Poll::Ready(End::Failed(RunError::new(panic_text(panic.as_ref())))),
                    Poll::Pending => {
                        let overdue = overdue.get_or_insert_with(|| Box::pin(self.overdue(live, time_limit)));
                        overdue.as_mut().poll(context).map(|()| End::Dropped)
                    }
                };
                // While the runner goes on, what it said is recorded in the background.
                let recording = self.record(live, context);
                ending.map(|ending| (ending, recording))
            })
            .await
        };
        if let End::Finished(finished) = &mut ending
            && finished.has_last_words()
        {
            drop(recording);
            Box::pin(finished.take()).await;
            recording = self.start_recording(live).await;
        }
        if let Some(measured) = measured {
            measured.end(ending.outcome());
        }
        if !matches!(ending, End::Finished(_)) || live.is_turn_cancelled() {
            drop(recording.take());
            if self.end_unfinished(live, agent, ending).await {
                return None;
            }
        }
        if live.settle_turn(&*self.clock) {
            // The task waits for its caller; what it cost so far is known.
            self.govern.queues.ring();
            recording = self.start_recording(live).await.or(recording);
        }
        recording
    }

    /// Ends the task of a turn that its runner did not end, or that was cancelled. `true` if the task was withdrawn.
    async fn end_unfinished(self: &Arc<Self>, live: &Arc<LiveTask>, agent: &Agent, ending: End) -> bool {
        let stopped = live.stopped_because();
        let is_cancelled = live.is_turn_cancelled();
        match (ending, stopped) {
            (End::Failed(RunError { reason, refusal, not_begun, facts }), None) if !is_cancelled => {
                if !facts.is_empty() {
                    Box::pin(self.keep_unreadable(live, facts)).await;
                }
                if self.withdrawn(live, refusal).await {
                    return true;
                }
                if not_begun {
                    live.give_back_unused();
                }
                self.end_by_force(live, TaskState::Failed, Some(reason)).await;
            }
            (_, Some(reason)) => self.end_by_force(live, TaskState::Failed, Some(reason)).await,
            (ending, None) => {
                // What is not known of an agent elsewhere is said: it may work on.
                let unconfirmed = match ending {
                    _ if !agent.runner.keeps_links() => None,
                    End::Finished(_) => None,
                    End::Failed(why) => Some(why.reason),
                    End::Dropped => Some("the agent did not confirm in time that it stopped".to_owned()),
                };
                if let Some(reason) = &unconfirmed {
                    live.set_unconfirmed(reason.clone());
                }
                self.end_by_force(live, TaskState::Canceled, unconfirmed).await;
            }
        }
        false
    }

    /// Takes a task back whose first message its agent refused before it said anything. `false` if there is more to it than that.
    async fn withdrawn(self: &Arc<Self>, live: &Arc<LiveTask>, refusal: Option<Box<Error>>) -> bool {
        let Some(refusal) = refusal.filter(|_| live.begin_withdrawal()) else { return false };
        let note = self.noted(|| RecordNote::Withdrawn { task: live.record.id.clone(), at: self.clock.now() });
        match self.store.withdraw(&live.record.id, note).await {
            Ok(true) => {
                self.open.drop_stale(live);
                live.give_back();
                self.govern.queues.ring();
                live.break_off(Some(*refusal));
                true
            }
            Ok(false) => false,
            Err(fault) => {
                tracing::error!(task = %live.record.id, error = &fault as &dyn std::error::Error, "cannot withdraw a task that its agent rejected");
                false
            }
        }
    }

    /// The links of a task and of its conversation. Unreadable links count as absent: the agent then gets a
    /// new conversation.
    async fn links(&self, live: &LiveTask, turn_origin: TurnOrigin) -> (Option<Link>, Option<Link>) {
        let record = &live.record;
        let unread = |fault: StoreError| {
            tracing::error!(task = %record.id, error = &fault as &dyn std::error::Error, "cannot read the links of a task; the agent receives the message without them");
            None
        };
        match turn_origin {
            // Nothing has happened yet that could have left a link.
            TurnOrigin::OpensAll => return (None, None),
            TurnOrigin::OpensTask => {}
            TurnOrigin::GoesOn => {
                let of_task = self.store.link(&record.id).await.unwrap_or_else(unread);
                if of_task.is_some() {
                    return (of_task, None);
                }
            }
        }
        (None, self.store.context_link(&record.owner, &record.agent, &record.context_id).await.unwrap_or_else(unread))
    }

    /// Returns when a runner has had its time after a stop. A runner that takes longer than allowed is
    /// stopped too.
    async fn overdue(&self, live: &LiveTask, time_limit: Option<Duration>) {
        let out_of_time = time_limit.map(|limit| (tokio::time::Instant::now() + limit, limit));
        // A turn whose agent refused a cancel goes on under another token.
        while let Some(token) = live.turn_token() {
            match out_of_time {
                None => token.cancelled().await,
                Some((until, limit)) => {
                    if tokio::time::timeout_at(until, token.cancelled()).await.is_err() {
                        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                        live.halt(TurnStop::Policy(PolicyError::Timeout { limit_ms }));
                    }
                }
            }
            tokio::time::sleep(self.limits.load().cancel_grace()).await;
            if live.is_turn_cancelled() {
                return;
            }
        }
    }

    /// Ends a task from outside its runner. A task that has ended already stays as it is.
    pub(crate) async fn end_by_force(self: &Arc<Self>, live: &Arc<LiveTask>, state: TaskState, reason: Option<String>) {
        let at = self.clock.now();
        let message = reason.map(|reason| {
            let mut message = Message::text(Role::Agent, MessageId::new(fresh_id()), reason);
            message.context_id = Some(live.record.context_id.clone());
            message.task_id = Some(live.record.id.clone());
            Arc::new(message)
        });
        let status = TaskStatus { state, message, timestamp: Some(at), unknown: Unknown::none() };
        let event = TaskEvent::Status(StatusChange { status, metadata: None, unknown: Unknown::none() });
        if let Ok(seq) = live.take(event, at, &self.limits.load()) {
            self.recorded(live, seq).await;
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the agent panicked: {}", text.unwrap_or("no reason given"))
}
