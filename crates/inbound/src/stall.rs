//! A socket whose peer must take what is sent to it: one that takes nothing for too long is closed. It stands below TLS, which
//! takes what is written before the peer has.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use crate::watched_io::{IoWatch, WatchedIo};

/// A socket whose peer must read.
pub(crate) type StallGuard<S> = WatchedIo<S, StallWatch>;

#[derive(Debug)]
pub(crate) struct StallWatch {
    patience: Duration,
    /// Made on the first stall; most connections never have one.
    timer: Option<Pin<Box<Sleep>>>,
    stalled: bool,
}

impl<S> StallGuard<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self::under(stream, StallWatch { patience, timer: None, stalled: false })
    }
}

impl IoWatch for StallWatch {
    /// Returns the result of a write, unless writes have made no progress for too long.
    fn after_write(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = false;
            return written;
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        if !self.stalled {
            self.stalled = true;
            timer.as_mut().reset(Instant::now() + self.patience);
        }
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_given_up_and_a_slow_one_is_not() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut guarded = StallGuard::new(near, Duration::from_secs(30));
        let slow = chancery_core::spawn_watched("test", async move {
            let mut taken = [0; 1];
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                far.read_exact(&mut taken).await.unwrap();
            }
            far
        });
        guarded.write_all(b"0123456789ab").await.unwrap();
        let _far = slow.await.unwrap();
        assert_eq!(guarded.write_all(b"more").await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
