//! One SWP connection: frames in, each to its profile; frames out, in the order they were made.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chancery_core::spawn_watched;
use chancery_identity::credentials::Known;
use chancery_protocol::{AgentName, Error, ErrorKind, IdentityProof};
use chancery_wire::swp::codec::a2a::{self, SwpHandshake};
use chancery_wire::swp::codec::agdisc::{self, Doc};
use chancery_wire::swp::codec::{
    Envelope, FramePayload, FrameReason, MessageEffect, Reader, Received, Reject, SwpCode, SwpTaskState,
};
use chancery_wire::swp::refusal;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::queue::{self, FrameQueue};
use super::scope::CallerTasks;
use super::task::{Ended, TaskSession, Work};
use super::traces::Traces;
use super::{SwpSettings, millis};
use crate::doors::Doors;
use crate::doors_handle::DoorsHandle;
use crate::origin::ConnectionOrigin;
use crate::signposts::Spot;

/// How long a connection that is closed waits for its peer to have read the last of it.
const LINGER: Duration = Duration::from_millis(500);
/// Read from the socket at once.
const READ_BYTES: usize = 8 * 1024;
/// How long a card may be kept without asking again, as over HTTP.
const CARD_AGE_MS: u64 = 3_600_000;

pub(super) struct SwpConnection {
    doors_handle: DoorsHandle,
    origin: ConnectionOrigin,
    known: Known,
    settings: SwpSettings,
    scope: Arc<CallerTasks>,
    traces: Traces,
    /// Tasks that are reported on here.
    own: HashSet<Bytes>,
    /// Those and the ones that were: what this peer has heard of.
    told: HashSet<Bytes>,
    running: JoinSet<(Bytes, Ended)>,
    stop: CancellationToken,
    began: Instant,
}

/// Why a connection is over.
enum Over {
    /// The peer has closed, or the node stops, or nothing was said for too long.
    Done(&'static str),
    Refused(Reject),
    /// TLS failed after the handshake: a record that was changed on its way cannot be decrypted.
    Tampered(io::Error),
}

impl From<Reject> for Over {
    fn from(reject: Reject) -> Self {
        Self::Refused(reject)
    }
}

impl SwpConnection {
    pub(super) fn new(
        doors_handle: DoorsHandle,
        origin: ConnectionOrigin,
        known: Known,
        scope: Arc<CallerTasks>,
        stop: CancellationToken,
    ) -> Self {
        let settings = doors_handle.doors().settings().swp.clone();
        Self {
            traces: Traces::new(&settings.limits),
            doors_handle,
            origin,
            known,
            settings,
            scope,
            own: HashSet::new(),
            told: HashSet::new(),
            running: JoinSet::new(),
            stop,
            began: Instant::now(),
        }
    }

    pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(mut self, stream: S) {
        let (mut incoming, outgoing) = tokio::io::split(stream);
        let (frames, waiting) = FrameQueue::new();
        let mut writer = spawn_watched("SWP writer", queue::write(outgoing, waiting));
        let over = self.serve(&mut incoming, &frames).await;
        let address = self.origin.address;
        match over {
            Over::Done(why) => tracing::debug!(?address, why, "an SWP connection ended"),
            Over::Refused(reject) => {
                let (code, reason) = (reject.code(), reject.reason().name());
                tracing::warn!(?address, caller = %self.known.caller.name, %code, reason, %reject, "rejected an SWP frame and closed its connection");
            }
            Over::Tampered(error) => {
                let (caller, code) = (&self.known.caller.name, SwpCode::SecurityPolicy);
                tracing::warn!(?address, %caller, %code, %error, "closed an SWP connection whose TLS failed");
            }
        }
        // What is under way goes on in the service; only nobody here reports on it any more.
        self.running.shutdown().await;
        drop(frames);
        if timeout(LINGER, &mut writer).await.is_err() {
            // A peer that takes nothing would keep the socket open for longer than it has its place.
            writer.abort();
        }
        let _ = timeout(LINGER, drain(&mut incoming)).await;
    }

    /// Reads frames until there is a reason to stop.
    async fn serve<R: AsyncRead + Unpin>(&mut self, incoming: &mut R, frames: &FrameQueue) -> Over {
        let mut reader = Reader::new(self.settings.limits.clone());
        let mut heard_at = Instant::now();
        // When the frame began that is not all there yet.
        let mut begun_at = None;
        loop {
            loop {
                match reader.next_frame() {
                    Ok(Some(body)) => {
                        (heard_at, begun_at) = (Instant::now(), None);
                        if let Err(reject) = self.take(&mut reader, body, frames).await {
                            return reject.into();
                        }
                    }
                    Ok(None) => break,
                    Err(reject) => return reject.into(),
                }
            }
            if !reader.buffer().is_empty() {
                begun_at.get_or_insert_with(Instant::now);
            }
            reader.buffer().reserve(READ_BYTES);
            // Whoever waits for results need not say anything, but a frame that was begun has to come.
            let may_be_late = self.running.is_empty() || begun_at.is_some();
            let late_at = begun_at.unwrap_or(heard_at) + self.settings.idle();
            tokio::select! {
                biased;
                read = incoming.read_buf(reader.buffer()) => match read {
                    Ok(0) => return reader.finish().map_or_else(Over::from, |()| Over::Done("the peer has closed")),
                    Ok(_) => {}
                    Err(fault) if fault.kind() == io::ErrorKind::InvalidData => return Over::Tampered(fault),
                    Err(_) => return Over::Done("the connection was lost"),
                },
                Some(ended) = self.running.join_next() => {
                    match ended {
                        Ok((task_id, Ended::Reported)) => drop(self.own.remove(&task_id)),
                        // Whoever was let in and is no longer has no channel here.
                        Ok((_, Ended::TurnedAway)) => return Reject::from(FrameReason::SecurityPolicy).into(),
                        Err(_) => {}
                    }
                    heard_at = heard_at.max(Instant::now());
                }
                () = sleep_until(late_at), if may_be_late => return Over::Done("nothing was said for swp.idle_ms"),
                () = self.stop.cancelled() => return Over::Done("the node stops"),
                () = frames.closed() => return Over::Done("the peer takes nothing"),
            }
        }
    }

    /// One frame, to its profile.
    async fn take(&mut self, reader: &mut Reader, body: Bytes, frames: &FrameQueue) -> Result<(), Reject> {
        let doors = self.doors_handle.doors();
        let timestamps = self.settings.timestamps(doors.chancery().now());
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Received { envelope, payload } = reader.read(body, timestamps, elapsed)?;
        if envelope.flags != 0 {
            tracing::debug!(flags = envelope.flags, "an SWP envelope has unknown flags");
        }
        match payload {
            FramePayload::A2a(a2a::A2aMessage::Handshake(handshake)) => {
                self.greeted(&handshake);
                Ok(())
            }
            FramePayload::A2a(a2a::A2aMessage::Task(task)) => self.task(&doors, envelope, task, frames).await,
            FramePayload::A2a(report) => Err(self.reported(&doors, &envelope, &report, frames).await),
            FramePayload::Agdisc(agdisc::AgdiscMessage::Get(get)) => {
                let answer = card(&doors, &get);
                self.answer(&doors, &envelope, answer.msg_type(), answer.to_payload(), frames).await
            }
            FramePayload::Agdisc(_) => Err(FrameReason::UnsupportedMsgType.into()),
            FramePayload::Obs(message) => match self.traces.apply(message)? {
                Some(answer) => self.answer(&doors, &envelope, answer.msg_type(), answer.to_payload(), frames).await,
                None => Ok(()),
            },
            FramePayload::Opaque(..) => Err(FrameReason::UnknownProfile.into()),
        }
    }

    /// A handshake is a claim, unless it is what the channel has proved already. Neither changes anything.
    fn greeted(&self, handshake: &SwpHandshake) {
        let standing = &self.known.standing;
        let is_own = |name: &str| name == handshake.agent_id;
        let proven = standing.proof != IdentityProof::None
            && (is_own(&self.known.caller.name)
                || standing.agent.as_deref().is_some_and(is_own)
                || standing.agent_id.as_ref().is_some_and(|id| is_own(id.as_str())));
        tracing::debug!(
            agent_id = handshake.agent_id,
            proven,
            capabilities = handshake.capabilities.len(),
            "an SWP peer sent its AgentID"
        );
    }

    async fn task(
        &mut self,
        doors: &Doors,
        envelope: Envelope,
        task: a2a::SwpTaskMessage,
        frames: &FrameQueue,
    ) -> Result<(), Reject> {
        let message = a2a::A2aMessage::Task(task);
        let held = self.scope.hold(&message);
        let a2a::A2aMessage::Task(task) = message else { return Err(FrameReason::Internal.into()) };
        let told = self.told.contains(&task.task_id);
        let (outcome, held) = match held {
            Ok((MessageEffect::AlreadyStarted { state: SwpTaskState::Open }, _)) if told => return Ok(()),
            Ok(held) => held,
            Err(reject) => {
                let refused = refusal(task.task_id, &refused(&reject, told).ok_or(reject)?).message;
                return self.answer(doors, &envelope, refused.msg_type(), refused.to_payload(), frames).await;
            }
        };
        let repeated = matches!(outcome, MessageEffect::AlreadyStarted { .. });
        // Who has heard all of it already hears only the end again.
        let only_result = told && repeated;
        let trace = self.traces.of(&task.task_id, &envelope.msg_id);
        let session = TaskSession {
            doors: doors.clone(),
            origin: self.origin.clone(),
            scope: Arc::clone(&self.scope),
            frames: frames.clone(),
            limits: self.settings.limits.clone(),
        };
        // A copy, because a slice would keep the whole frame in memory.
        let task_id = Bytes::copy_from_slice(&task.task_id);
        self.own.insert(task_id.clone());
        if self.told.len() >= self.settings.limits.max_closed_tasks as usize {
            self.told.clone_from(&self.own);
        }
        self.told.insert(task_id.clone());
        self.running.spawn(async move {
            let ended = session.work(Work { envelope, task, trace, repeated, only_result }, held).await;
            (task_id, ended)
        });
        Ok(())
    }

    /// Events and results are for the sender of a task, and here that is this side. A peer that reports on an
    /// unknown task gets an error before the connection closes.
    async fn reported(&self, doors: &Doors, envelope: &Envelope, report: &a2a::A2aMessage, frames: &FrameQueue) -> Reject {
        let judged = self.scope.judge(report);
        let reject = judged.err().unwrap_or_else(|| FrameReason::WrongParty.into());
        if let (FrameReason::UnknownTask, Some(task_id)) = (reject.reason(), report.task_id()) {
            let told = refusal(task_id.clone(), &Error::task_not_found());
            let _ = self.answer(doors, envelope, told.message.msg_type(), told.message.to_payload(), frames).await;
        }
        reject
    }

    async fn answer(
        &self,
        doors: &Doors,
        to: &Envelope,
        msg_type: u64,
        payload: Bytes,
        frames: &FrameQueue,
    ) -> Result<(), Reject> {
        let frame = to.reply(msg_type, millis(doors.chancery().now()), payload).encode(&self.settings.limits)?;
        // Nobody to send it to is noticed where the connection is watched.
        let _ = frames.send(frame, None).await;
        Ok(())
    }
}

/// What a task is refused with that is not taken, where its refusal cannot be mistaken for the end of another of the same id.
fn refused(reject: &Reject, told: bool) -> Option<Error> {
    match reject.reason() {
        FrameReason::TooManyOpenTasks => {
            let message = "swp.max_open_tasks tasks have no result yet";
            Some(Error::new(ErrorKind::LimitReached, message).with_fact("limit", "swp.max_open_tasks"))
        }
        FrameReason::TaskConflict if !told => {
            Some(Error::new(ErrorKind::IdempotencyConflict, "this task id was used with other content"))
        }
        _ => None,
    }
}

/// The card of the agent of that name, or of the first one.
fn card(doors: &Doors, get: &agdisc::GetCard) -> agdisc::AgdiscMessage {
    let agent = (!get.agent_id.is_empty()).then(|| AgentName::from(get.agent_id.as_str()));
    let Some((card, etag)) = doors.published().newest(&Spot { agent, ..Spot::default() }) else {
        let message = "no agent of that name is served here".to_owned();
        return agdisc::AgdiscMessage::Failure(agdisc::Failure { code: SwpCode::NotFound.to_string(), message });
    };
    let agent_id = get.agent_id.clone();
    get.answer(Doc { agent_id, schema_revision: "1.0".to_owned(), card_payload: card, etag, max_age_ms: CARD_AGE_MS })
}

/// Reads what the peer still sends: closing a socket with something unread in it may cost the peer our last words.
async fn drain<R: AsyncRead + Unpin>(incoming: &mut R) {
    let mut left = [0; 1024];
    for _ in 0..64 {
        if !matches!(incoming.read(&mut left).await, Ok(read) if read > 0) {
            return;
        }
    }
}
