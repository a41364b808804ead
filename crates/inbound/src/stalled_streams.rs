//! Streams of HTTP/2 whose reader takes nothing for too long are reset, also where the reader gives them no window at all.
//!
//! hyper runs each stream in a task of its own and polls the body inside of it. The body notes there what it did; from that the task
//! knows whether a piece waits for the reader, and since when.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use chancery_core::spawn_watched;
use hyper::rt::Executor;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

thread_local! {
    /// What the body did in the poll that runs now. Nothing outside of a stream of HTTP/2.
    static NOTE: Cell<Option<ReadState>> = const { Cell::new(None) };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadState {
    /// The body was not asked: a piece that waited for the reader still does.
    NotAsked,
    /// It gave a piece, or pieces it gave are not written yet.
    Unwritten,
    /// All it gave is written, and there is nothing more to give now.
    Waiting,
}

/// Whether a stream of HTTP/2 is being polled.
pub(crate) fn in_stream() -> bool {
    NOTE.get().is_some()
}

/// Notes the progress of the body. Outside of a stream it has no effect.
pub(crate) fn note(did: ReadState) {
    if in_stream() {
        NOTE.set(Some(did));
    }
}

/// Runs the streams of HTTP/2 connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamExecutor {
    patience: Duration,
}

impl StreamExecutor {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        let stream = WatchedStream { stream, patience: self.patience, unwritten_since: None, timer: None };
        spawn_watched("HTTP/2 stream", stream);
    }
}

pin_project! {
    /// A stream and the time since when its reader has taken nothing. Dropping the stream resets it.
    struct WatchedStream<F> {
        #[pin]
        stream: F,
        patience: Duration,
        unwritten_since: Option<Instant>,
        // Made on the first stall; most streams never have one.
        timer: Option<Pin<Box<Sleep>>>,
    }
}

impl<F: Future<Output = ()>> Future for WatchedStream<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        NOTE.set(Some(ReadState::NotAsked));
        let polled = this.stream.poll(context);
        let did = NOTE.replace(None);
        if polled.is_ready() {
            return polled;
        }
        match did {
            Some(ReadState::Unwritten) => *this.unwritten_since = Some(Instant::now()),
            Some(ReadState::Waiting) => *this.unwritten_since = None,
            Some(ReadState::NotAsked) | None => {}
        }
        let Some(since) = *this.unwritten_since else { return Poll::Pending };
        let deadline = since + *this.patience;
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        let late = timer.as_mut().poll(context);
        if late.is_ready() {
            tracing::debug!("reset a stream whose reader accepted no byte for limits.write_stall_ms");
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that does this in each poll, at once and then every ten seconds.
    async fn ended_after(did: &'static [ReadState]) -> Option<u64> {
        let begun = Instant::now();
        let (sender, ended) = tokio::sync::oneshot::channel::<()>();
        let stream = async move {
            let _held = sender;
            for did in did {
                note(*did);
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
            note(ReadState::NotAsked);
            std::future::pending::<()>().await;
        };
        StreamExecutor::new(Duration::from_secs(30)).execute(stream);
        let ended = tokio::time::timeout(Duration::from_secs(600), ended).await;
        ended.is_ok().then(|| begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_reset_when_a_piece_waits_for_its_reader_too_long() {
        use ReadState::{NotAsked, Unwritten, Waiting};
        assert_eq!(ended_after(&[Unwritten]).await, Some(30));
        assert_eq!(ended_after(&[Unwritten, NotAsked, NotAsked]).await, Some(30), "being polled is not being read");
        assert_eq!(ended_after(&[Unwritten, Unwritten, Unwritten]).await, Some(50), "each piece that is taken counts anew");
        assert_eq!(ended_after(&[Unwritten, Waiting]).await, None, "who has read all may wait for more");
        assert_eq!(ended_after(&[Waiting, NotAsked, Unwritten]).await, Some(50));
        assert!(!in_stream());
    }
}
