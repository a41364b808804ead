//! Connections to one SWP peer: each carries one task at a time, and is kept for the next as long as the peer can be expected to.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chancery_wire::swp::codec::{Reader, Received, SwpLimits, Timestamps};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use crate::client::limits::ClientLimits;
use crate::client::{ClientError, Transport};
use crate::guard::{SlimWay, Stream};

/// Peers count frames in windows of a second. Ours is a little longer, because theirs begins when ours has.
const WINDOW: Duration = Duration::from_millis(1_100);
/// Shorter than any peer of ours waits before it closes.
const IDLE: Duration = Duration::from_secs(30);
const READ_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub(crate) struct SwpLinePool {
    way: SlimWay,
    frames_per_window: u32,
    most_idle: usize,
    limits: SwpLimits,
    idle: Mutex<Vec<OpenSwpLine>>,
}

/// One open connection.
pub(crate) struct OpenSwpLine {
    stream: Box<dyn Stream>,
    reader: Reader,
    used_at: Instant,
    window_began: Instant,
    frames: u32,
}

impl std::fmt::Debug for OpenSwpLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").field("frames", &self.frames).finish_non_exhaustive()
    }
}

impl SwpLinePool {
    pub(crate) fn new(way: SlimWay, limits: &ClientLimits) -> Self {
        let most = u32::try_from(limits.event_bytes).unwrap_or(u32::MAX);
        // Answers repeat the id of what they answer, and come as fast as the peer works.
        let of_answers = SwpLimits {
            max_frame_bytes: most,
            max_payload_bytes: most,
            duplicate_window_ms: 0,
            max_frames_per_window: u32::MAX,
            ..SwpLimits::default()
        };
        let idle = Mutex::default();
        Self { way, frames_per_window: limits.swp_frames, most_idle: limits.swp_idle, limits: of_answers, idle }
    }

    /// One that is open and may take so many frames more, if there is one.
    pub(super) fn idle(&self, frames: u32) -> Option<OpenSwpLine> {
        let now = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|line| now.duration_since(line.used_at) < IDLE);
        let fit = idle.iter().rposition(|line| line.sent(now) + frames <= self.frames_per_window)?;
        Some(idle.swap_remove(fit))
    }

    pub(crate) async fn open(&self) -> Result<OpenSwpLine, ClientError> {
        let stream = self.way.open().await?;
        let now = Instant::now();
        Ok(OpenSwpLine { stream, reader: Reader::new(self.limits.clone()), used_at: now, window_began: now, frames: 0 })
    }

    /// Takes back a line on which nothing is under way.
    pub(super) fn give_back(&self, mut line: OpenSwpLine) {
        if !line.reader.buffer().is_empty() {
            return;
        }
        line.used_at = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.most_idle {
            idle.push(line);
        }
    }
}

impl OpenSwpLine {
    /// How many frames of the current window are used up.
    fn sent(&self, now: Instant) -> u32 {
        if now.duration_since(self.window_began) >= WINDOW { 0 } else { self.frames }
    }

    pub(crate) async fn send(&mut self, frames: &Bytes, count: u32) -> Result<(), ClientError> {
        let now = Instant::now();
        if now.duration_since(self.window_began) >= WINDOW {
            (self.window_began, self.frames) = (now, 0);
        }
        self.frames += count;
        let sent = async {
            self.stream.write_all(frames).await?;
            self.stream.flush().await
        };
        sent.await.map_err(|fault| ClientError::Transport(Transport::Connection(fault.to_string())))
    }

    /// The next frame of the peer. Nothing that was read is lost when the wait is given up.
    pub(crate) async fn next(&mut self) -> Result<Received, ClientError> {
        let not_understood = |reject: &dyn std::fmt::Display| ClientError::not_understood(reject.to_string());
        loop {
            if let Some(body) = self.reader.next_frame().map_err(|reject| not_understood(&reject))? {
                return self.reader.read(body, Timestamps::Ignored, 0).map_err(|reject| not_understood(&reject));
            }
            self.reader.buffer().reserve(READ_BYTES);
            let cut = |why: String| ClientError::Transport(Transport::Cut(why));
            match self.stream.read_buf(self.reader.buffer()).await {
                Ok(0) => return Err(cut("the peer has closed the connection".to_owned())),
                Ok(_) => {}
                Err(fault) => return Err(cut(fault.to_string())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::{Guard, GuardConfig};

    fn lines(frames: u32, idle: usize) -> SwpLinePool {
        let config = GuardConfig { allow_nets: vec!["127.0.0.0/8".parse().unwrap()], allow_http: true, ..GuardConfig::default() };
        let guard = Guard::new(config, &[]).unwrap();
        let limits = ClientLimits { swp_frames: frames, swp_idle: idle, ..ClientLimits::default() };
        SwpLinePool::new(SlimWay::new(&guard, "swp://127.0.0.1:9009", None).unwrap(), &limits)
    }

    fn line() -> OpenSwpLine {
        let now = Instant::now();
        let (near, far) = tokio::io::duplex(1024);
        std::mem::forget(far);
        OpenSwpLine {
            stream: Box::new(near),
            reader: Reader::new(SwpLimits::default()),
            used_at: now,
            window_began: now,
            frames: 0,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_takes_as_many_frames_as_a_window_holds_and_as_many_again_in_the_next() {
        let lines = lines(4, 2);
        let mut one = line();
        one.send(&Bytes::from_static(b"x"), 2).await.unwrap();
        lines.give_back(one);
        let mut one = lines.idle(2).expect("room for two more");
        one.send(&Bytes::from_static(b"x"), 2).await.unwrap();
        lines.give_back(one);
        assert!(lines.idle(1).is_none());
        tokio::time::sleep(WINDOW).await;
        assert!(lines.idle(4).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_lines_are_kept_and_none_for_long() {
        let lines = lines(4, 2);
        (0..3).for_each(|_| lines.give_back(line()));
        assert_eq!(lines.idle.lock().unwrap().len(), 2);
        tokio::time::sleep(IDLE).await;
        assert!(lines.idle(1).is_none());
    }
}
