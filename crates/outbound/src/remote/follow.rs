//! Follows a task at a remote agent to the end of its turn: by its stream, by another after a cut, or by
//! polling.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::routing::CallOutcome;
use chancery_core::{Finished, Link, MicroUsd, Passed, ReplyMode, RunError, TaskUpdateSink, WaitingTask};
use chancery_protocol::{
    ErrorKind, GetTask, Message, Request, StatusChange, SubscribeToTask, TaskEvent, TaskId, TaskState, TaskStatus, Unknown,
};
use chancery_wire::tolerant::{Leniencies, Leniency};

use super::ask::{AgentAnswer, failed_call, whole};
use super::limits::FollowLimits;
use super::mirror::Strange;
use super::mode::CallMode;
use super::replica::{Replica, ReplicaClient};
use super::rounds::{RoundOutcome, Rounds};
use super::{RemoteTurn, link};
use crate::client::ClientError;

/// An agent that does not show a task within this time has nothing to add to it.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// How following a task ended.
pub(super) enum FollowEnd {
    Turn(Result<Finished, RunError>),
    /// The agent refused the stream with its first event and did nothing: the message can be put to it as one call.
    NoStream,
}

pub(super) struct Follower {
    pub(super) replica_client: ReplicaClient,
    pub(super) replica: Arc<Replica>,
    pub(super) remote: Box<RemoteTurn>,
    /// Gone once the turn is over.
    pub(super) sink: Option<TaskUpdateSink>,
    /// In the place of the sink while the task waits for an authorisation that its agent goes on after.
    pub(super) waiting: Option<WaitingTask>,
    /// An ending that was received. It is forwarded once nothing can come after it.
    pub(super) ending: Option<StatusChange>,
    pub(super) limits: FollowLimits,
    /// The agent is polled, and not subscribed to.
    polls: bool,
    pub(super) cancel_sent: bool,
    /// How the turn ended says nothing against the agent.
    pub(super) blameless: bool,
    /// What the agent last said that the task cost.
    cost: Option<MicroUsd>,
    /// The link that was noted last.
    linked: Option<Link>,
}

impl Follower {
    pub(super) fn new(
        replica_client: ReplicaClient,
        replica: Arc<Replica>,
        remote: Box<RemoteTurn>,
        sink: TaskUpdateSink,
        limits: FollowLimits,
        mode: CallMode,
    ) -> Self {
        Self {
            replica_client,
            replica,
            remote,
            sink: Some(sink),
            waiting: None,
            ending: None,
            limits,
            polls: mode != CallMode::Stream,
            cancel_sent: false,
            blameless: false,
            cost: None,
            linked: None,
        }
    }

    /// What the turn says of the agent, now that it is over.
    pub(super) fn outcome(&self, ended: &Result<Finished, RunError>) -> CallOutcome {
        match ended {
            Ok(_) => CallOutcome::Succeeded,
            Err(_) if self.blameless => CallOutcome::Unjudged,
            Err(_) => CallOutcome::Failed,
        }
    }

    /// What the turn cost, if the agent said so. What it says of a task that it had before is for all turns, and not for this one.
    pub(super) fn cost(&self) -> Option<MicroUsd> {
        self.cost.filter(|_| self.remote.turn.link.is_none())
    }

    /// The turn and its sink, if nothing was forwarded yet.
    pub(super) fn into_parts(self) -> Option<(Box<RemoteTurn>, TaskUpdateSink)> {
        Some((self.remote, self.sink?))
    }

    /// `answer` is what the agent answered the message with; without one the task is looked for first.
    pub(super) async fn go_on(&mut self, mut answer: Option<AgentAnswer>) -> FollowEnd {
        let mut rounds = Rounds::default();
        let mut looked_again = false;
        loop {
            let heard = match answer.take() {
                Some(AgentAnswer::Whole(event)) => self.take_answer(event, looked_again).await,
                Some(AgentAnswer::Stream(stream)) => match self.listen(stream, looked_again).await {
                    Ok(Some(heard)) => Ok(heard),
                    Ok(None) => return FollowEnd::NoStream,
                    Err(error) => Err(error),
                },
                None => Ok(RoundOutcome::Nothing),
            };
            let heard = match heard {
                Ok(RoundOutcome::Over(finished)) => return FollowEnd::Turn(Ok(finished)),
                Ok(heard) => heard,
                Err(error) => return FollowEnd::Turn(Err(error)),
            };
            rounds.note(&heard);
            match Box::pin(self.wait_and_look(&mut rounds)).await {
                Ok(Ok(found)) => (answer, looked_again) = (found, true),
                Ok(Err(finished)) => return FollowEnd::Turn(Ok(finished)),
                Err(error) => return FollowEnd::Turn(Err(error)),
            }
        }
    }

    /// Pauses, and looks for the task again. The inner error is a turn that ended meanwhile.
    async fn wait_and_look(&mut self, rounds: &mut Rounds) -> Result<Result<Option<AgentAnswer>, Finished>, RunError> {
        if let RoundOutcome::Over(finished) = self.wait(*rounds).await? {
            return Ok(Err(finished));
        }
        match self.look_again().await {
            Ok(found) => {
                rounds.failed = 0;
                Ok(Ok(Some(found)))
            }
            Err(error) if is_gone(&error) => Err(self.lost("the agent no longer knows the task")),
            // What cannot be read now will not be readable later.
            Err(error @ ClientError::NotUnderstood(_)) if self.remote.unreadable.is_none() => {
                Err(failed_call(&error, &self.replica_client.client.interface().url))
            }
            Err(error @ ClientError::NotUnderstood(_)) => Err(self.lost(&error.public().message)),
            Err(error) => {
                tracing::warn!(peer = self.replica.name(), url = self.replica.address().url, %error, "cannot read a task at its agent");
                rounds.failed += 1;
                if rounds.failed > self.limits.reconnects {
                    self.blameless = matches!(error, ClientError::Busy { .. });
                    return Err(RunError::new(error.public().message));
                }
                Ok(Ok(None))
            }
        }
    }

    /// Why the turn failed, with the first event that could not be read, if there was one.
    pub(super) fn lost(&self, reason: &str) -> RunError {
        match &self.remote.unreadable {
            Some(unreadable) => RunError::new(format!("{reason}; {unreadable}"))
                .with_fact("url", self.replica_client.client.interface().url.clone())
                .with_fact("event", unreadable.number.to_string())
                .with_fact("member", unreadable.fault.path.clone())
                .with_fact("shape", unreadable.fault.shape.clone()),
            None => RunError::new(reason.to_owned()),
        }
    }

    /// Takes the one answer to a message, or what a poll shows.
    async fn take_answer(&mut self, event: TaskEvent, looked_again: bool) -> Result<RoundOutcome, RunError> {
        let task = match event {
            TaskEvent::Created(task) => task,
            event => {
                let news = self.remote.mirror.apply(None, event).map_err(|strange| self.not_believed(&strange))?;
                return self.pass(news, false).await;
            }
        };
        self.remote.mirror.identify(&task.id, &task.context_id).map_err(|strange| self.not_believed(&strange))?;
        let state = task.status.state;
        if !state.is_terminal() && self.remote.turn.cancelled.is_cancelled() && self.can_cancel() {
            // It could not be told before it named the task.
            if let over @ RoundOutcome::Over(_) = Box::pin(self.cancel()).await? {
                return Ok(over);
            }
        }
        if !looked_again && self.polls && is_at_work(state) && self.remote.turn.reply_mode == ReplyMode::Blocking {
            self.replica.notes().count(&Leniencies::from([Leniency::EarlyAnswer]));
        }
        let news = self.remote.mirror.apply_picture(&task).map_err(|strange| self.not_believed(&strange))?;
        if state.is_terminal() && !looked_again && !self.remote.mirror.has_content() {
            return Box::pin(self.settle(news)).await;
        }
        self.pass(news, false).await.map(|heard| or_at_work(heard, state))
    }

    /// Forwards an ending without content, after a read of the task has shown no content.
    async fn settle(&mut self, news: Vec<TaskEvent>) -> Result<RoundOutcome, RunError> {
        self.pass(news, true).await?;
        // A look that fails shows nothing either.
        let _ = Box::pin(self.look()).await?;
        self.end().await
    }

    /// Forwards the received ending, with texts in one piece for a caller that did not request a stream.
    pub(super) async fn end(&mut self) -> Result<RoundOutcome, RunError> {
        let Some(ending) = self.ending.take() else { return Ok(RoundOutcome::Nothing) };
        let streams = self.remote.turn.reply_mode == ReplyMode::Stream;
        let mut last = self.remote.mirror.whole_at_the_end().map_err(|strange| self.not_believed(&strange))?;
        if !streams {
            last.extend(self.remote.mirror.joined());
        }
        last.push(TaskEvent::Status(ending));
        self.pass(last, false).await
    }

    /// Forwards the news from a read of the task, with an ending held back if there is one. A read that fails
    /// changes nothing.
    pub(super) async fn look(&mut self) -> Result<Result<RoundOutcome, ClientError>, RunError> {
        let Some(id) = self.remote.mirror.names().0 else { return Ok(Ok(RoundOutcome::Nothing)) };
        let mut conditions = self.replica.conditions(&self.remote.turn, &self.replica_client);
        // A caller waits for it, and the agent has said already how the task stands.
        conditions.deadline = Some(conditions.deadline.map_or(LOOK_WITHIN, |deadline| deadline.min(LOOK_WITHIN)));
        let task = match whole(self.replica_client.client.call(&get(id), &conditions).await) {
            Ok(AgentAnswer::Whole(TaskEvent::Created(task))) => task,
            Ok(_) => return Ok(Ok(RoundOutcome::Nothing)),
            Err(error) => {
                tracing::warn!(peer = self.replica.name(), url = self.replica.address().url, %error, "cannot read a task at its agent");
                return Ok(Err(error));
            }
        };
        let had_content = self.remote.mirror.has_content();
        let news = match self.remote.mirror.apply_picture(&task) {
            Ok(news) => news,
            // What was heard before stands; only the look has shown nothing.
            Err(strange) => return Ok(Err(ClientError::not_understood(self.not_believed(&strange).reason))),
        };
        if !had_content && self.remote.mirror.has_content() {
            self.replica.notes().count(&Leniencies::from([Leniency::AnswerOnlyInTask]));
        }
        let heard = self.pass(news, true).await?;
        Ok(Ok(or_at_work(heard, task.status.state)))
    }

    pub(super) fn not_believed(&self, strange: &Strange) -> RunError {
        let (peer, url, task) = (self.replica.name(), &self.replica.address().url, &self.remote.turn.task.id);
        tracing::warn!(peer, url, %task, %strange, "rejected an inconsistent answer of an agent");
        RunError::new(strange.to_string())
    }

    /// Forwards news. With `hold` an ending waits, because more events may come before the stream ends.
    pub(super) async fn pass(&mut self, news: Vec<TaskEvent>, hold: bool) -> Result<RoundOutcome, RunError> {
        self.replica.notes().count(&self.remote.mirror.take_leniencies());
        let mut passed_on = false;
        if news.is_empty() && !self.remote.begun && self.remote.mirror.is_only_accepted() {
            // The agent may work in silence from here on, and its caller may want to stop it.
            self.remote.begun = self.sink.as_ref().is_some_and(TaskUpdateSink::show_task);
        }
        for event in news {
            let event = if hold { self.held_back(event) } else { Some(event) };
            let Some(event) = event else { continue };
            passed_on = true;
            if let over @ RoundOutcome::Over(_) = self.pass_one(event, hold).await? {
                return Ok(over);
            }
        }
        Ok(if passed_on { RoundOutcome::News } else { RoundOutcome::Nothing })
    }

    /// Keeps an ending for later. What an earlier one said, and this one does not, is answered, to be said before it.
    fn held_back(&mut self, event: TaskEvent) -> Option<TaskEvent> {
        match event {
            TaskEvent::Status(change) if ends_turn(change.status.state) => {
                let ended = self.ending.as_ref().map(|ending| ending.status.state).filter(|state| state.is_terminal());
                if ended.is_some_and(|state| state != change.status.state) {
                    return None;
                }
                let before = self.ending.replace(change)?;
                let now = self.ending.as_ref().and_then(|change| change.status.message.as_ref());
                let said = before.status.message.filter(|said| now.is_none_or(|now| now.message_id != said.message_id))?;
                Some(super::mirror::as_progress(said, before.status.timestamp))
            }
            // After an end there are only words left to say.
            TaskEvent::Status(change) if self.ending.as_ref().is_some_and(|end| end.status.state.is_terminal()) => {
                change.status.message.map(|said| super::mirror::as_progress(said, change.status.timestamp))
            }
            event => Some(event),
        }
    }

    async fn pass_one(&mut self, event: TaskEvent, stream_goes_on: bool) -> Result<RoundOutcome, RunError> {
        if let Some(interrupted) = self.ending.take_if(|ending| ending.status.state.is_interrupted() && is_progress(&event)) {
            // The agent asked, and went on without an answer.
            Box::pin(self.pass_to_sink(TaskEvent::Status(interrupted), true)).await?;
        }
        self.pass_to_sink(event, stream_goes_on).await
    }

    async fn pass_to_sink(&mut self, event: TaskEvent, stream_goes_on: bool) -> Result<RoundOutcome, RunError> {
        let sink = self.sink.take().or_else(|| self.waiting.take().map(WaitingTask::go_on));
        let Some(mut sink) = sink else { return Err(RunError::new("the turn is over")) };
        let link = link(&self.replica, &self.remote.mirror);
        if self.linked.as_ref() != Some(&link) {
            sink.link(link.clone());
            self.linked = Some(link);
        }
        self.cost = TaskUpdateSink::reported_cost(&event).or(self.cost);
        let event = if self.remote.begun { as_end_of_task(event) } else { event };
        self.remote.begun = true;
        match sink.pass(event).await? {
            Passed::Open(sink) => self.sink = Some(sink),
            Passed::Waiting(waiting) if stream_goes_on => self.waiting = Some(waiting),
            Passed::Waiting(waiting) => return Ok(RoundOutcome::Over(waiting.finish())),
            Passed::Ended(finished) => return Ok(RoundOutcome::Over(finished)),
        }
        Ok(RoundOutcome::News)
    }

    /// The end of a turn that waits for an authorisation, if its agent has stopped saying anything.
    pub(super) fn still_waiting(&mut self) -> Option<Finished> {
        self.waiting.take().map(WaitingTask::finish)
    }

    /// Waits before the task is read again, and stops it meanwhile on a cancel. An agent that streams gets
    /// only a few futile reads. One that shows that it works, or is polled, is read for as long as it
    /// answers.
    pub(super) async fn wait(&mut self, Rounds { quiet, in_vain, .. }: Rounds) -> Result<RoundOutcome, RunError> {
        let most = self.limits.reconnects;
        if (!self.polls && in_vain > most) || (self.cancel_sent && quiet > most) {
            return Err(self.lost("the agent was lost while it worked on the task"));
        }
        let pause = if self.polls { self.limits.poll_pause(quiet) } else { self.limits.reconnect_pause(quiet) };
        let cancelled = self.remote.turn.cancelled.clone();
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(RoundOutcome::Nothing),
            () = cancelled.cancelled(), if self.can_cancel() => self.cancel().await,
        }
    }

    async fn look_again(&mut self) -> Result<AgentAnswer, ClientError> {
        let Some(id) = self.remote.mirror.names().0 else {
            return Err(ClientError::not_understood("the agent has not named the task".to_owned()));
        };
        let conditions = self.replica.conditions(&self.remote.turn, &self.replica_client);
        if !self.polls {
            let subscribe = Request::SubscribeToTask(SubscribeToTask { tenant: None, id: id.clone() });
            match self.replica_client.client.stream(&subscribe, &conditions).await {
                Ok(stream) => return Ok(AgentAnswer::Stream(Box::new(stream))),
                // A task that has ended cannot be subscribed to, in some versions; it can be looked at.
                Err(ClientError::Refused(error)) if error.kind != ErrorKind::TaskNotFound => {}
                Err(error) => return Err(error),
            }
        }
        whole(self.replica_client.client.call(&get(id), &conditions).await)
    }

    /// From now on the agent is polled.
    pub(super) fn poll(&mut self) {
        self.polls = true;
    }
}

fn get(id: TaskId) -> Request {
    Request::GetTask(GetTask { tenant: None, id, history_length: None })
}

/// Whether a turn is over with this state. An agent may continue by itself after an authorisation that was
/// given outside A2A.
fn ends_turn(state: TaskState) -> bool {
    state.is_terminal() || state == TaskState::InputRequired
}

fn is_progress(event: &TaskEvent) -> bool {
    matches!(event, TaskEvent::Status(change) if change.status.state == TaskState::Working)
}

/// A message of the agent that ends a task which its caller has been shown.
fn as_end_of_task(event: TaskEvent) -> TaskEvent {
    match event {
        TaskEvent::Replied(message) => TaskEvent::Status(completed_with(message)),
        event => event,
    }
}

fn completed_with(message: Arc<Message>) -> StatusChange {
    let status = TaskStatus { state: TaskState::Completed, message: Some(message), timestamp: None, unknown: Unknown::none() };
    StatusChange { status, metadata: None, unknown: Unknown::none() }
}

fn is_at_work(state: TaskState) -> bool {
    matches!(state, TaskState::Submitted | TaskState::Working)
}

fn or_at_work(heard: RoundOutcome, state: TaskState) -> RoundOutcome {
    match heard {
        RoundOutcome::Nothing if is_at_work(state) => RoundOutcome::AtWork,
        heard => heard,
    }
}

fn is_gone(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(error) if error.kind == ErrorKind::TaskNotFound)
}
