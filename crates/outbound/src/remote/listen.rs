//! Reads one stream of an agent to its end: nothing is final before, and what cannot be read is skipped and named.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::{RunError, WaitingTask};
use chancery_protocol::{Message, Task, TaskEvent, Version};
use tokio::time::{Instant, sleep_until};

use super::ask::{is_about_the_agent, refused};
use super::follow::Follower;
use super::mirror::join_texts;
use super::rounds::{RoundOutcome, Rounds};
use crate::client::{ClientError, EventStream, StreamedEvent};

/// How long a stream is read on after the last word of a turn: a whole task may follow.
const AFTER_THE_END: Duration = Duration::from_secs(1);

/// What one stream has brought so far.
struct Listening {
    heard: RoundOutcome,
    /// Nothing has come yet.
    is_first: bool,
    /// The stream was opened to look for the task again.
    looked_again: bool,
    /// Events were missed between a cut and the first event of this stream.
    missed_some: bool,
    /// Messages that came before any task: the answer, if no task follows.
    messages: Vec<Arc<Message>>,
    /// When the stream is left, because the turn has ended.
    until: Option<Instant>,
    /// The stream was cut.
    is_cut: bool,
}

/// The outcome of one step.
enum Step {
    GoOn,
    Leave,
    /// The agent refused to stream, and did nothing.
    NoStream,
    Over(RoundOutcome),
}

impl Follower {
    /// Reads a stream to its end or its cut: neither says that the task has ended. `None` if the agent refused the stream itself.
    pub(super) async fn listen(
        &mut self,
        mut stream: Box<EventStream>,
        looked_again: bool,
    ) -> Result<Option<RoundOutcome>, RunError> {
        let mut listening = Listening {
            heard: RoundOutcome::Nothing,
            is_first: true,
            looked_again,
            missed_some: false,
            messages: Vec::new(),
            until: None,
            is_cut: false,
        };
        let mut rounds = Rounds::default();
        loop {
            let cancelled = self.remote.turn.cancelled.clone();
            let next = tokio::select! {
                next = stream.next() => next,
                () = after_the_end(listening.until) => break,
                // The agent may wait for this very message before it says more.
                () = message_waits(self.waiting.as_ref()) => break,
                () = cancelled.cancelled(), if self.can_cancel() => {
                    match Box::pin(self.cancel()).await? {
                        over @ RoundOutcome::Over(_) => return Ok(Some(over)),
                        heard => listening.heard = listening.heard.and(heard),
                    }
                    continue;
                }
            };
            let step = match next {
                Ok(None) => Step::Leave,
                Ok(Some(heard)) => {
                    rounds = Rounds::default();
                    self.apply_event(&mut listening, heard).await?
                }
                Err(error) => {
                    let goes_on = stream.goes_on();
                    self.interrupted(&mut listening, &mut rounds, goes_on, error).await?
                }
            };
            match step {
                Step::GoOn => {}
                Step::Leave => break,
                Step::NoStream => return Ok(None),
                Step::Over(over) => return Ok(Some(over)),
            }
        }
        self.note_unreadable(&stream);
        let is_empty = listening.is_first && stream.unreadable().is_none() && !listening.is_cut;
        drop(stream);
        if is_empty && !looked_again {
            self.replica.notes().prefer(false, "a stream ended without an event");
        }
        self.conclude(listening).await.map(Some)
    }

    async fn apply_event(&mut self, listening: &mut Listening, heard: StreamedEvent) -> Result<Step, RunError> {
        let is_first = std::mem::take(&mut listening.is_first);
        // A task ends once. Only a whole picture of it may follow, with what was made before the end.
        let has_ended = self.ending.as_ref().is_some_and(|ending| ending.status.state.is_terminal());
        if has_ended && !matches!(&heard.event, TaskEvent::Created(task) if task.status.state.is_terminal()) {
            return Ok(Step::GoOn);
        }
        let event = match heard.event {
            // A message is the answer only if no task was shown and none follows.
            TaskEvent::Replied(message) if !self.remote.mirror.has_task() => {
                listening.messages.push(message);
                return Ok(Step::GoOn);
            }
            event => event,
        };
        let mut news = Vec::new();
        for message in listening.messages.drain(..) {
            news.extend(self.remote.mirror.progress(message).map_err(|strange| self.not_believed(&strange))?);
        }
        let is_picture = matches!(event, TaskEvent::Created(_));
        listening.missed_some |= is_first && listening.looked_again && !is_picture;
        if listening.missed_some && !is_picture {
            // Nobody says what came between the cut and this event. A look at the whole task does.
            let looked = Box::pin(self.look()).await?.unwrap_or(RoundOutcome::Nothing);
            return self.heard(listening, looked);
        }
        if let TaskEvent::Created(picture) = &event
            && is_first
            && listening.looked_again
        {
            let caught_up = Box::pin(self.catch_up(picture)).await?;
            return self.heard(listening, caught_up);
        }
        let opens = is_first && self.replica_client.version == Version::Original;
        let face = heard.face.as_ref();
        let mirror = &mut self.remote.mirror;
        let applied = match event {
            TaskEvent::Replied(message) => mirror.progress(message),
            event if opens => mirror.apply_first(face, event),
            event => mirror.apply(face, event),
        };
        news.extend(applied.map_err(|strange| self.not_believed(&strange))?);
        let passed = self.pass(news, true).await?;
        self.heard(listening, passed)
    }

    /// Forwards the news of a snapshot that came while no reader listened: status messages too, which only
    /// its history has. A snapshot whose history does not reach back to the last forwarded event shows less
    /// than a read of the task does.
    async fn catch_up(&mut self, picture: &Task) -> Result<RoundOutcome, RunError> {
        if !self.remote.mirror.reaches_back(picture)
            && let Ok(looked) = self.look().await?
        {
            return Ok(looked);
        }
        let news = self.remote.mirror.apply_picture(picture).map_err(|strange| self.not_believed(&strange))?;
        self.pass(news, true).await
    }

    fn heard(&mut self, listening: &mut Listening, heard: RoundOutcome) -> Result<Step, RunError> {
        if let over @ RoundOutcome::Over(_) = heard {
            return Ok(Step::Over(over));
        }
        // Any sign of the task is a sign that it is worked on.
        let heard = RoundOutcome::AtWork.and(heard);
        listening.heard = std::mem::replace(&mut listening.heard, RoundOutcome::Nothing).and(heard);
        listening.until = self.ending.as_ref().map(|_| listening.until.unwrap_or_else(|| Instant::now() + AFTER_THE_END));
        Ok(Step::GoOn)
    }

    /// What an error in the place of an event means.
    async fn interrupted(
        &mut self,
        listening: &mut Listening,
        rounds: &mut Rounds,
        goes_on: bool,
        error: ClientError,
    ) -> Result<Step, RunError> {
        match error {
            error if listening.is_first && !listening.looked_again && !self.remote.begun && error.is_no_streaming() => {
                self.replica.notes().prefer(false, format!("it refused a stream: {error}"));
                Ok(Step::NoStream)
            }
            // Instead of its first word: it did not take the message at all.
            ClientError::Refused(error) if listening.is_first && !listening.looked_again => {
                self.blameless = !is_about_the_agent(error.kind);
                let mut error = refused(error);
                // Faults of the agent are named where they are counted.
                if self.blameless {
                    error.reason = format!("agent {}: {}", self.replica.agent_name(), error.reason);
                }
                Err(error)
            }
            ClientError::Refused(error) => Err(RunError::new(error.message)),
            error => {
                tracing::warn!(peer = self.replica.name(), url = self.replica.address().url, %error, "the stream of an agent broke off");
                listening.is_cut = true;
                if !goes_on {
                    return Ok(Step::Leave);
                }
                rounds.note(&RoundOutcome::Nothing);
                match Box::pin(self.wait(*rounds)).await? {
                    over @ RoundOutcome::Over(_) => Ok(Step::Over(over)),
                    _ => Ok(Step::GoOn),
                }
            }
        }
    }

    /// Events that were skipped say that this agent is better asked for one answer.
    fn note_unreadable(&mut self, stream: &EventStream) {
        let Some(unreadable) = stream.unreadable() else { return };
        self.replica.notes().prefer(false, format!("{unreadable}"));
        self.remote.unreadable.get_or_insert_with(|| unreadable.clone());
        self.poll();
    }

    /// Ends the turn, if the stream has ended it, or says why it cannot go on.
    async fn conclude(&mut self, mut listening: Listening) -> Result<RoundOutcome, RunError> {
        let skipped = self.remote.unreadable.is_some();
        if self.ending.is_none() && !listening.messages.is_empty() {
            let reply = TaskEvent::Replied(joined(std::mem::take(&mut listening.messages)));
            let news = self.remote.mirror.apply(None, reply).map_err(|strange| self.not_believed(&strange))?;
            return self.pass(news, false).await;
        }
        if self.ending.is_some() {
            if skipped || !self.remote.mirror.has_content() {
                // Never completed with less than the agent has.
                let _ = Box::pin(self.look()).await?;
            }
            if skipped && !self.remote.mirror.has_content() {
                return Err(self.lost("the agent's answer could not be read"));
            }
            return self.end().await;
        }
        if let Some(finished) = self.still_waiting() {
            return Ok(RoundOutcome::Over(finished));
        }
        if !self.remote.mirror.has_task() {
            return match listening.is_cut {
                true => Err(self.lost("the connection to the agent was lost before it named the task")),
                false => Err(self.lost("the agent's stream ended without an answer")),
            };
        }
        // Some show nothing on a new stream before there is news: then a look says whether they are at work.
        let is_silent = listening.is_first && listening.looked_again;
        if listening.is_cut && !is_silent {
            return Ok(listening.heard);
        }
        // The stream came to its end and the task did not: a look says whether it is still worked on.
        match Box::pin(self.look()).await? {
            Ok(_) if self.ending.is_some() => self.end().await,
            Ok(RoundOutcome::Nothing) if listening.is_first => Ok(RoundOutcome::Nothing),
            Ok(heard) => Ok(listening.heard.and(heard)),
            Err(_) if listening.is_cut => Ok(listening.heard),
            Err(ClientError::Transport(_) | ClientError::Busy { .. }) => Ok(listening.heard),
            Err(ClientError::Refused(error)) if is_about_the_agent(error.kind) => Ok(listening.heard),
            Err(error) => {
                let reason =
                    format!("the agent's stream ended before the task, and a look at the task failed: {}", error.public());
                Err(self.lost(&reason))
            }
        }
    }
}

/// Several messages as one. Texts in pieces become one part.
fn joined(mut messages: Vec<Arc<Message>>) -> Arc<Message> {
    let Some(last) = messages.pop() else { unreachable!("only called with messages") };
    if messages.is_empty() {
        return last;
    }
    let mut whole = Arc::unwrap_or_clone(last);
    let mut parts: Vec<_> = messages.iter().flat_map(|message| message.parts.iter().cloned()).collect();
    parts.append(&mut whole.parts);
    whole.parts = join_texts(&parts).unwrap_or(parts);
    Arc::new(whole)
}

/// Comes back when the caller of a task that waits for an authorisation has sent a message.
async fn message_waits(waiting: Option<&WaitingTask>) {
    match waiting {
        Some(waiting) => waiting.message_waits().await,
        None => std::future::pending().await,
    }
}

async fn after_the_end(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
