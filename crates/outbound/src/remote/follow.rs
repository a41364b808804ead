//! Follows a task at an agent elsewhere to the end of its turn: by its stream, after the stream is cut by another, and where
//! there is none by asking again and again.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use chancery_core::routing::Outcome;
use chancery_core::{Finished, Link, MicroUsd, Passed, RunError, TaskUpdateSink};
use chancery_protocol::{CancelTask, ErrorKind, GetTask, Request, SubscribeToTask, TaskEvent, TaskId, TaskState, Version};
use chancery_wire::Face;
use serde::{Deserialize, Serialize};

use super::ask::{Answer, is_about_the_agent, refused, whole};
use super::replica::{Replica, Spoken};
use super::{Errand, link};
use crate::client::{ClientError, EventStream};

/// How long an agent may take to end a stream after the last word of a turn.
const SEEN_OUT_WITHIN: Duration = Duration::from_secs(1);

/// Part of the `[peers]` section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FollowLimits {
    /// Times in a row that a task is looked for again without being shown that it is worked on.
    pub reconnects: u32,
    /// The first pause before looking again; each is twice as long as the one before.
    pub reconnect_ms: u64,
    /// The longest such pause.
    pub reconnect_most_ms: u64,
    /// The first pause between two looks at a task of an agent without streams.
    pub poll_ms: u64,
    pub poll_most_ms: u64,
}

impl Default for FollowLimits {
    fn default() -> Self {
        Self { reconnects: 6, reconnect_ms: 200, reconnect_most_ms: 10_000, poll_ms: 200, poll_most_ms: 5_000 }
    }
}

impl FollowLimits {
    pub(super) fn reconnect_pause(&self, misses: u32) -> Duration {
        pause(self.reconnect_ms, self.reconnect_most_ms, misses)
    }

    fn poll_pause(&self, misses: u32) -> Duration {
        pause(self.poll_ms, self.poll_most_ms, misses)
    }
}

fn pause(first_ms: u64, most_ms: u64, misses: u32) -> Duration {
    Duration::from_millis(first_ms.saturating_mul(1 << misses.min(16)).min(most_ms))
}

/// What came of listening for a while.
#[derive(Debug)]
enum Heard {
    /// The turn is over.
    Over(Finished),
    /// Something new, and more may come.
    News,
    /// Nothing new, but that the task is worked on.
    AtWork,
    Nothing,
}

impl Heard {
    /// The one and then the other.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (_, over @ Self::Over(_)) => over,
            (Self::Nothing, other) | (Self::AtWork, other @ Self::News) => other,
            (heard, _) => heard,
        }
    }
}

/// Rounds in a row, since something else was heard.
#[derive(Clone, Copy, Default)]
struct Rounds {
    /// Without news: pauses grow with them.
    quiet: u32,
    /// Without any sign that the task is worked on.
    in_vain: u32,
    /// In which the agent could not even be asked.
    failed: u32,
}

impl Rounds {
    fn note(&mut self, heard: &Heard) {
        let in_vain = if matches!(heard, Heard::Nothing) { self.in_vain.saturating_add(1) } else { 0 };
        let quiet = if matches!(heard, Heard::News) { 0 } else { self.quiet.saturating_add(1) };
        *self = Self { quiet, in_vain, ..*self };
    }
}

pub(super) struct Follower {
    spoken: Spoken,
    replica: Arc<Replica>,
    errand: Box<Errand>,
    /// Gone once the turn is over.
    sink: Option<TaskUpdateSink>,
    limits: FollowLimits,
    cancel_sent: bool,
    /// How the turn ended says nothing against the agent.
    blameless: bool,
    /// What the agent last said that the task cost.
    cost: Option<MicroUsd>,
    /// The link that was noted last.
    linked: Option<Link>,
}

impl Follower {
    pub(super) fn new(
        spoken: Spoken,
        replica: Arc<Replica>,
        errand: Box<Errand>,
        sink: TaskUpdateSink,
        limits: FollowLimits,
    ) -> Self {
        Self { spoken, replica, errand, sink: Some(sink), limits, cancel_sent: false, blameless: false, cost: None, linked: None }
    }

    /// What the turn says of the agent, now that it is over.
    pub(super) fn outcome(&self, ended: &Result<Finished, RunError>) -> Outcome {
        match ended {
            Ok(_) => Outcome::Succeeded,
            Err(_) if self.blameless => Outcome::Unjudged,
            Err(_) => Outcome::Failed,
        }
    }

    /// What the turn cost, if the agent said so. What it says of a task that it had before is for all turns, and not for this one.
    pub(super) fn cost(&self) -> Option<MicroUsd> {
        self.cost.filter(|_| self.errand.turn.link.is_none())
    }

    /// `answer` is what the agent answered the message with; without one the task is looked for first.
    pub(super) async fn go_on(&mut self, mut answer: Option<Answer>) -> Result<Finished, RunError> {
        let mut rounds = Rounds::default();
        let mut looked_again = false;
        loop {
            let heard = match answer.take() {
                Some(Answer::Whole(event)) => self.pass(None, event, false).await?,
                Some(Answer::Stream(stream)) => self.read(stream, looked_again).await?,
                None => Heard::Nothing,
            };
            rounds.note(&heard);
            if let Heard::Over(finished) = heard {
                return Ok(finished);
            }
            if let Heard::Over(finished) = Box::pin(self.wait(rounds)).await? {
                return Ok(finished);
            }
            match Box::pin(self.look_again()).await {
                Ok(found) => (answer, rounds.failed, looked_again) = (Some(found), 0, true),
                Err(error) if is_gone(&error) => return Err(RunError::new("the agent no longer knows the task")),
                Err(error) => {
                    tracing::info!(peer = self.replica.name(), %error, "a task could not be looked at");
                    rounds.failed += 1;
                    if rounds.failed > self.limits.reconnects {
                        self.blameless = matches!(error, ClientError::Busy { .. });
                        return Err(RunError::new(error.public().message));
                    }
                }
            }
        }
    }

    /// Reads a stream to its end or its cut: neither says that the task has ended. One that can be taken up where it was cut is.
    async fn read(&mut self, mut stream: Box<EventStream>, looked_again: bool) -> Result<Heard, RunError> {
        let mut all = Heard::Nothing;
        let (mut first, mut missed_some) = (true, false);
        let mut rounds = Rounds::default();
        loop {
            let next = tokio::select! {
                next = stream.next() => next,
                () = self.errand.turn.cancelled.cancelled(), if self.can_cancel() => {
                    match Box::pin(self.cancel()).await? {
                        Heard::Over(finished) => return Ok(Heard::Over(finished)),
                        heard => all = all.and(heard),
                    }
                    continue;
                }
            };
            let heard = match next {
                Ok(Some(heard)) => heard,
                Ok(None) => break,
                // Instead of its first word: it did not take the message at all.
                Err(ClientError::Refused(error)) if first && !looked_again => {
                    self.blameless = !is_about_the_agent(error.kind);
                    return Err(refused(error));
                }
                Err(ClientError::Refused(error)) => return Err(RunError::new(error.message)),
                Err(error) => {
                    tracing::info!(peer = self.replica.name(), %error, "a stream broke off");
                    if !stream.goes_on() {
                        break;
                    }
                    rounds.note(&Heard::Nothing);
                    if let Heard::Over(finished) = Box::pin(self.wait(rounds)).await? {
                        return Ok(Heard::Over(finished));
                    }
                    continue;
                }
            };
            rounds = Rounds::default();
            let is_picture = matches!(heard.event, TaskEvent::Created(_) | TaskEvent::Replied(_));
            missed_some |= first && looked_again && !is_picture;
            let passed = if missed_some && !is_picture {
                // Nobody says what came between the cut and this event. A look at the whole task does.
                Box::pin(self.look()).await?
            } else {
                self.pass(heard.face.as_ref(), heard.event, first).await?
            };
            first = false;
            match passed {
                Heard::Over(finished) => {
                    see_out(stream).await;
                    return Ok(Heard::Over(finished));
                }
                heard => all = all.and(heard),
            }
        }
        if first && looked_again {
            // Some show nothing before there is news. Whether they still work on the task is then for a look to say.
            all = all.and(Box::pin(self.look()).await?);
        }
        Ok(all)
    }

    /// Passes on what a look at the task shows. A look that fails is left to the next one.
    async fn look(&mut self) -> Result<Heard, RunError> {
        let Some(id) = self.errand.mirror.names().0 else { return Ok(Heard::Nothing) };
        let conditions = self.replica.conditions(&self.errand.turn, &self.spoken);
        match whole(self.spoken.client.call(&get(id), &conditions).await) {
            Ok(Answer::Whole(event)) => self.pass(None, event, false).await,
            Ok(Answer::Stream(_)) => Ok(Heard::Nothing),
            Err(error) => {
                tracing::info!(peer = self.replica.name(), %error, "a task could not be looked at");
                Ok(Heard::Nothing)
            }
        }
    }

    /// Passes on what is new in something the agent said.
    async fn pass(&mut self, face: Option<&Face>, event: TaskEvent, first: bool) -> Result<Heard, RunError> {
        let opens = first && self.spoken.version == Version::Original;
        let at_work = is_at_work(&event);
        let news = if opens { self.errand.mirror.hear_first(face, event) } else { self.errand.mirror.hear(face, event) };
        let news = news.map_err(|strange| {
            tracing::warn!(peer = self.replica.name(), task = %self.errand.turn.task.id, ?strange, "an agent is not believed");
            RunError::new(strange.to_string())
        })?;
        let Some(mut sink) = self.sink.take() else { return Err(RunError::new("the turn is over")) };
        if news.is_empty() {
            self.sink = Some(sink);
            return Ok(if at_work { Heard::AtWork } else { Heard::Nothing });
        }
        let link = link(&self.replica, &self.errand.mirror);
        if self.linked.as_ref() != Some(&link) {
            sink.link(link.clone());
            self.linked = Some(link);
        }
        for event in news {
            self.cost = TaskUpdateSink::reported_cost(&event).or(self.cost);
            sink = match sink.pass(event).await? {
                Passed::Open(sink) => sink,
                Passed::Waiting(waiting) => return Ok(Heard::Over(waiting.finish())),
                Passed::Ended(finished) => return Ok(Heard::Over(finished)),
            };
        }
        self.sink = Some(sink);
        Ok(Heard::News)
    }

    /// Waits before the task is looked at again, and stops it meanwhile if it is told to. An agent that streams is looked
    /// for only a few times in vain; one that shows that it is at work, or does not stream, is asked for as long as it answers.
    async fn wait(&mut self, Rounds { quiet, in_vain, .. }: Rounds) -> Result<Heard, RunError> {
        let most = self.limits.reconnects;
        if (self.spoken.streams && in_vain > most) || (self.cancel_sent && quiet > most) {
            return Err(RunError::new("the agent was lost while it worked on the task"));
        }
        let pause = if self.spoken.streams { self.limits.reconnect_pause(quiet) } else { self.limits.poll_pause(quiet) };
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(Heard::Nothing),
            () = self.errand.turn.cancelled.cancelled(), if self.can_cancel() => self.cancel().await,
        }
    }

    async fn look_again(&mut self) -> Result<Answer, ClientError> {
        let Some(id) = self.errand.mirror.names().0 else {
            return Err(ClientError::NotUnderstood("the agent has not named the task".to_owned()));
        };
        let conditions = self.replica.conditions(&self.errand.turn, &self.spoken);
        if self.spoken.streams {
            let subscribe = Request::SubscribeToTask(SubscribeToTask { tenant: None, id: id.clone() });
            match self.spoken.client.stream(&subscribe, &conditions).await {
                Ok(stream) => return Ok(Answer::Stream(Box::new(stream))),
                // A task that has ended cannot be subscribed to, in some versions; it can be looked at.
                Err(ClientError::Refused(error)) if error.kind != ErrorKind::TaskNotFound => {}
                Err(error) => return Err(error),
            }
        }
        whole(self.spoken.client.call(&get(id), &conditions).await)
    }

    /// Not before the agent has named the task: nothing else says which one is to stop.
    fn can_cancel(&self) -> bool {
        !self.cancel_sent && self.errand.mirror.names().0.is_some()
    }

    /// Tells the agent to stop. Its answer counts, because some never say on a stream that they did.
    async fn cancel(&mut self) -> Result<Heard, RunError> {
        self.cancel_sent = true;
        let Some(id) = self.errand.mirror.names().0 else { return Ok(Heard::Nothing) };
        let conditions = self.replica.conditions(&self.errand.turn, &self.spoken);
        let cancel = Request::CancelTask(CancelTask { tenant: None, id, metadata: None });
        match whole(self.spoken.client.call(&cancel, &conditions).await) {
            Ok(Answer::Whole(event)) => self.pass(None, event, false).await,
            Ok(Answer::Stream(_)) => Ok(Heard::Nothing),
            Err(error) => {
                tracing::info!(peer = self.replica.name(), %error, "an agent could not be told to stop");
                Ok(Heard::Nothing)
            }
        }
    }
}

fn get(id: TaskId) -> Request {
    Request::GetTask(GetTask { tenant: None, id, history_length: Some(0) })
}

/// Reads what is left of a stream that has nothing more to say, so that its connection can be used again. Mostly its end is
/// there already, or as soon as whoever reads the connection has had a turn; otherwise nobody waits for it, and a stream that
/// stays open is let go.
async fn see_out(mut stream: Box<EventStream>) {
    if has_ended(&mut stream).await {
        return;
    }
    tokio::task::yield_now().await;
    if !has_ended(&mut stream).await {
        tokio::spawn(async move {
            let rest = async { while let Ok(Some(_)) = stream.next().await {} };
            let _ = tokio::time::timeout(SEEN_OUT_WITHIN, rest).await;
        });
    }
}

/// Whether its end is there, without waiting for it.
async fn has_ended(stream: &mut EventStream) -> bool {
    let mut next = std::pin::pin!(stream.next());
    std::future::poll_fn(|context| Poll::Ready(matches!(next.as_mut().poll(context), Poll::Ready(Ok(None) | Err(_))))).await
}

/// Whether it shows a task that its agent has and goes on with.
fn is_at_work(event: &TaskEvent) -> bool {
    let goes_on = |state: TaskState| matches!(state, TaskState::Submitted | TaskState::Working);
    match event {
        TaskEvent::Created(task) => goes_on(task.status.state),
        TaskEvent::Status(change) => goes_on(change.status.state),
        TaskEvent::Artifact(_) => true,
        TaskEvent::Said(_) | TaskEvent::Replied(_) => false,
    }
}

fn is_gone(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(error) if error.kind == ErrorKind::TaskNotFound)
}
