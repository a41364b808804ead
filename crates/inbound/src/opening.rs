//! A connection must open with something: what comes before its first request's head has a deadline of its own.
//!
//! The first bytes show which HTTP a connection speaks, and no other code limits the time until they arrive.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::watched_io::{IoWatch, WatchedIo};

const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A socket that must open in time.
pub(crate) type OpeningGuard<S> = WatchedIo<S, OpeningWatch>;

#[derive(Debug)]
pub(crate) struct OpeningWatch {
    patience: Duration,
    /// Bytes so far, all of them those of HTTP/2.
    matched: usize,
    /// Gone as soon as it is clear which HTTP this is: from then on hyper watches the time.
    timer: Option<Pin<Box<Sleep>>>,
    open: bool,
}

impl<S> OpeningGuard<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self::under(stream, OpeningWatch { patience, matched: 0, timer: None, open: false })
    }
}

impl OpeningWatch {
    fn look_at(&mut self, bytes: &[u8]) {
        let expected = &HTTP2[self.matched..];
        let length = expected.len().min(bytes.len());
        self.matched += length;
        // Nothing at all is the end of the stream.
        if bytes.is_empty() || bytes[..length] != expected[..length] || self.matched == HTTP2.len() {
            self.open = true;
            self.timer = None;
        }
    }
}

impl IoWatch for OpeningWatch {
    fn after_read(&mut self, context: &mut Context<'_>, read: Poll<io::Result<()>>, bytes: &[u8]) -> Poll<io::Result<()>> {
        if self.open {
            return read;
        }
        match read {
            Poll::Ready(Ok(())) => {
                self.look_at(bytes);
                Poll::Ready(Ok(()))
            }
            Poll::Pending => {
                let patience = self.patience;
                let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
                timer.as_mut().poll(context).map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the peer sent no data")))
            }
            failed => failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    async fn after(opening: &[u8]) -> io::Result<u8> {
        let (near, mut far) = tokio::io::duplex(64);
        far.write_all(opening).await?;
        let mut guarded = OpeningGuard::new(near, Duration::from_secs(30));
        let mut taken = vec![0; opening.len()];
        guarded.read_exact(&mut taken).await?;
        let late = chancery_core::spawn_watched("test", async move {
            tokio::time::sleep(Duration::from_secs(31)).await;
            far.write_all(b"x").await.map(|()| far)
        });
        let read = guarded.read_u8().await;
        late.abort();
        read
    }

    #[tokio::test(start_paused = true)]
    async fn only_those_who_have_opened_may_take_longer() {
        for opening in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n"] {
            assert_eq!(after(opening).await.unwrap_err().kind(), io::ErrorKind::TimedOut, "{opening:?}");
        }
        for opening in [&b"G"[..], b"PO", HTTP2, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore"] {
            assert_eq!(after(opening).await.unwrap(), b'x', "{opening:?}");
        }
    }
}
