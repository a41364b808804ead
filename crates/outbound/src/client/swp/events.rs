//! The reports on one task as a stream of events, over as many connections as that takes.

use std::collections::VecDeque;
use std::sync::Arc;

use chancery_protocol::Error;
use chancery_wire::swp::codec::{FramePayload, a2a};
use chancery_wire::swp::{ReportFault, ReportReader};

use super::Ready;
use super::line::{OpenSwpLine, SwpLinePool};
use crate::client::events::{Silence, StreamedEvent};
use crate::client::limits::ClientLimits;
use crate::client::{ClientError, Transport};

/// Pauses before a task is sent again grow so many times, and then no more.
const PAUSES: u32 = 6;

#[derive(Debug)]
pub(crate) struct SwpEvents {
    lines: Arc<SwpLinePool>,
    /// Gone once the result is there, and while a new one is looked for.
    line: Option<OpenSwpLine>,
    ready: Ready,
    reader: ReportReader,
    waiting: VecDeque<StreamedEvent>,
    silence: Silence,
    /// Whether the peer repeats all events to a client that sends the same task again.
    retells: bool,
    /// Whether the line may have been closed before it got the task.
    reused: bool,
    /// Reports that were heard, and those to pass over because they were heard before.
    heard: usize,
    skip: usize,
    /// How often the task was sent again since something was heard.
    tried: u32,
    /// The same since something new was heard: pauses grow with it.
    quiet: u32,
    limits: ClientLimits,
    ended: bool,
}

impl SwpEvents {
    pub(super) async fn open(
        lines: Arc<SwpLinePool>,
        ready: Ready,
        reader: ReportReader,
        retells: bool,
        limits: &ClientLimits,
    ) -> Result<Self, ClientError> {
        let mut kept = lines.idle(ready.count);
        if let Some(line) = &mut kept
            && line.send(&ready.frames, ready.count).await.is_err()
        {
            kept = None;
        }
        let reused = kept.is_some();
        let line = match kept {
            Some(line) => line,
            None => begin(&lines, &ready).await?,
        };
        Ok(Self {
            lines,
            line: Some(line),
            ready,
            reader,
            waiting: VecDeque::new(),
            silence: Silence::new(limits.read()),
            retells,
            reused,
            heard: 0,
            skip: 0,
            tried: 0,
            quiet: 0,
            limits: limits.clone(),
            ended: false,
        })
    }

    pub(crate) async fn next(&mut self) -> Result<Option<StreamedEvent>, ClientError> {
        loop {
            if let Some(heard) = self.waiting.pop_front() {
                return Ok(Some(heard));
            }
            if self.ended {
                return Ok(None);
            }
            let Some(line) = &mut self.line else {
                self.again().await?;
                continue;
            };
            match self.silence.hold(line.next()).await.and_then(|received| received) {
                Ok(received) => self.take(received.payload, &received.envelope.extensions)?,
                Err(ClientError::Transport(Transport::Cut(why))) if self.may_repeat() => {
                    tracing::debug!(why, heard = self.heard, "an SWP connection was cut; the client sends the task again");
                    self.line = None;
                    if self.tried >= self.tries() {
                        return Err(ClientError::Transport(Transport::Cut(why)));
                    }
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// The same task again is the same task: a peer that never got it takes it now, one that retells goes on.
    fn may_repeat(&self) -> bool {
        let unheard = self.heard == 0 && self.reused;
        self.ready.may_repeat && (self.retells || unheard)
    }

    fn tries(&self) -> u32 {
        self.limits.retries.max(1)
    }

    /// Whether a reader that continues after a fault may yet get events.
    pub(crate) fn goes_on(&self) -> bool {
        self.line.is_none() && !self.ended && self.may_repeat()
    }

    /// The client makes some tries in a row by itself. After those it makes one for each request of the
    /// reader, who takes the pauses.
    async fn again(&mut self) -> Result<(), ClientError> {
        loop {
            if self.quiet > 0 && self.tried < self.tries() {
                tokio::time::sleep(self.limits.retry_pause((self.quiet - 1).min(PAUSES))).await;
            }
            (self.tried, self.quiet) = (self.tried.saturating_add(1), self.quiet.saturating_add(1));
            match begin(&self.lines, &self.ready).await {
                Ok(line) => {
                    (self.line, self.silence) = (Some(line), Silence::new(self.limits.read()));
                    (self.reused, self.skip) = (false, self.heard);
                    return Ok(());
                }
                Err(fault) if self.tried < self.tries() => tracing::debug!(%fault, "cannot reach an SWP peer; trying again"),
                Err(fault) => return Err(fault),
            }
        }
    }

    fn take(&mut self, payload: FramePayload, extensions: &chancery_wire::swp::codec::Extensions) -> Result<(), ClientError> {
        self.tried = 0;
        let FramePayload::A2a(message) = payload else { return Ok(()) };
        if message.task_id().is_some_and(|task_id| *task_id != self.ready.task_id) {
            return Err(ClientError::not_understood("it spoke of a task that it was not given on this line".to_owned()));
        }
        let is_result = matches!(message, a2a::A2aMessage::Result(_));
        let heard = match message {
            a2a::A2aMessage::Handshake(_) => return Ok(()),
            a2a::A2aMessage::Task(_) => return Err(ClientError::not_understood("it gave the task back".to_owned())),
            a2a::A2aMessage::Event(_) if self.skip > 0 => {
                self.skip -= 1;
                return Ok(());
            }
            a2a::A2aMessage::Event(event) => self.reader.event(event, extensions),
            a2a::A2aMessage::Result(result) => self.reader.result(result, extensions),
        };
        (self.heard, self.quiet) = (self.heard + 1, 0);
        if is_result {
            self.ended = true;
            if let Some(line) = self.line.take() {
                self.lines.give_back(line);
            }
        }
        let heard = heard.map_err(|misheard| match misheard {
            ReportFault::Refused(refusal) => ClientError::Refused(refusal),
            ReportFault::NotUnderstood(Error { message, .. }) => ClientError::not_understood(message.into_owned()),
        })?;
        self.waiting.extend(heard.into_iter().map(|(face, event)| StreamedEvent { face, event, id: None }));
        Ok(())
    }
}

async fn begin(lines: &SwpLinePool, ready: &Ready) -> Result<OpenSwpLine, ClientError> {
    let mut line = lines.open().await?;
    line.send(&ready.frames, ready.count).await?;
    Ok(line)
}
