//! A TCP stream that confirms what came as soon as it has read it, where the other side waits for that.
//!
//! A server that writes small pieces without `TCP_NODELAY` holds each back until the one before is confirmed, and a system that
//! expects to write soon waits 40 ms with the confirmation. Together they make every answer in two pieces take that long. A pause
//! of that length in the middle of an answer gives such a server away; from then on confirmations are not put off. One that only
//! paused to think is taken for such too, which costs a system call for each read and changes nothing else.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// About as long as Linux puts a confirmation off, at least and at most.
const PUT_OFF: std::ops::RangeInclusive<Duration> = Duration::from_millis(35)..=Duration::from_millis(220);

#[derive(Debug)]
pub(super) struct Prompt {
    stream: TcpStream,
    /// Something was read, and not yet waited for more.
    has_read: bool,
    /// When all that came was read, and nothing was written since.
    drained_at: Option<Instant>,
    /// The other side waits for confirmations.
    is_waited_for: bool,
}

impl Prompt {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, has_read: false, drained_at: None, is_waited_for: false }
    }

    fn heard(&mut self) {
        self.has_read = true;
        if let Some(drained_at) = self.drained_at.take() {
            self.is_waited_for |= PUT_OFF.contains(&drained_at.elapsed());
        }
    }

    fn drained(&mut self) {
        if !std::mem::take(&mut self.has_read) {
            return;
        }
        if self.is_waited_for {
            confirm(&self.stream);
        } else {
            self.drained_at = Some(Instant::now());
        }
    }

    fn written(&mut self) {
        // What was read is confirmed with what was written, and whatever comes next is an answer to it.
        self.drained_at = None;
    }
}

/// Applies to the bytes received so far; afterwards the system uses its own timing again.
fn confirm(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    if let Err(fault) = stream.set_quickack(true) {
        tracing::debug!(%fault, "cannot set TCP_QUICKACK");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

impl AsyncRead for Prompt {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        match &read {
            Poll::Pending => self.drained(),
            Poll::Ready(Ok(())) if buffer.filled().len() > before => self.heard(),
            Poll::Ready(_) => {}
        }
        read
    }
}

impl AsyncWrite for Prompt {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written();
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, parts: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.written();
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const EXCHANGES: usize = 30;

    /// Answers each byte with two pieces, the second of which waits for the first to be confirmed.
    async fn in_pieces(listener: TcpListener) {
        while let Ok((mut stream, _)) = listener.accept().await {
            chancery_core::spawn_watched("test", async move {
                stream.set_nodelay(false)?;
                while stream.read_u8().await.is_ok() {
                    stream.write_all(b"one ").await?;
                    stream.write_all(b"two!").await?;
                }
                io::Result::Ok(())
            });
        }
    }

    /// How long the usual exchange takes.
    async fn usual(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Duration {
        let mut taken = Vec::new();
        for _ in 0..EXCHANGES {
            let since = Instant::now();
            stream.write_all(b"?").await.unwrap();
            let mut answer = [0; 8];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"one two!");
            taken.push(since.elapsed());
        }
        taken.sort_unstable();
        taken[EXCHANGES / 2]
    }

    #[tokio::test]
    #[cfg_attr(not(target_os = "linux"), ignore = "only Linux can be told to confirm at once")]
    async fn a_server_that_waits_for_confirmations_gets_them() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = chancery_core::spawn_watched("test", in_pieces(listener));
        let connect = || async {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            stream
        };
        let (plain, prompt) = (usual(connect().await).await, usual(Prompt::new(connect().await)).await);
        println!("the usual exchange: {plain:?} without, {prompt:?} with prompt confirmations");
        assert!(plain >= *PUT_OFF.start(), "the system does not put confirmations off, and this shows nothing: {plain:?}");
        assert!(prompt < plain, "{prompt:?} and {plain:?}");
        server.abort();
    }

    #[tokio::test]
    async fn a_pause_that_is_the_callers_own_gives_nobody_away() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut prompt = Prompt::new(stream);
        for pause in [50, 0, 50] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            prompt.write_all(b"?").await.unwrap();
            server.read_u8().await.unwrap();
            server.write_all(b"whole").await.unwrap();
            let mut answer = [0; 5];
            prompt.read_exact(&mut answer).await.unwrap();
            assert!(futures::poll!(std::pin::pin!(prompt.read_u8())).is_pending());
        }
        assert!(!prompt.is_waited_for);
    }
}
