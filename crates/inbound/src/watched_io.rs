//! A socket with a watch on it, which sees what each read and write comes to and may end the connection with an error.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Decides what the caller sees of a read or a write. By default, what the socket said.
pub(crate) trait IoWatch: Unpin {
    /// Sees the outcome of a read and the bytes that it added.
    fn after_read(&mut self, _context: &mut Context<'_>, read: Poll<io::Result<()>>, _bytes: &[u8]) -> Poll<io::Result<()>> {
        read
    }

    /// Sees the outcome of a write.
    fn after_write(&mut self, _context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        written
    }
}

/// A socket and its watch.
#[derive(Debug)]
pub(crate) struct WatchedIo<S, W> {
    stream: S,
    watch: W,
}

impl<S, W> WatchedIo<S, W> {
    pub(crate) fn under(stream: S, watch: W) -> Self {
        Self { stream, watch }
    }
}

impl<S: AsyncRead + Unpin, W: IoWatch> AsyncRead for WatchedIo<S, W> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.watch.after_read(context, read, &buffer.filled()[before..])
    }
}

impl<S: AsyncWrite + Unpin, W: IoWatch> AsyncWrite for WatchedIo<S, W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch.after_write(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watch.after_write(context, written)
    }
}
