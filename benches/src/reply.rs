//! Reads one HTTP/1.1 answer with as little work as possible: status, length or chunks, and the events of a stream.

use anyhow::{Context, Result, bail, ensure};
use memchr::{memchr, memchr_iter, memmem};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// What has been understood of the answer so far.
#[derive(Debug, Clone, Copy)]
enum Framing {
    Head,
    Sized { end: usize },
    Chunked { next: usize },
    Whole,
}

/// One answer, whose buffers are kept from request to request.
#[derive(Debug)]
pub(crate) struct BenchReply {
    raw: Vec<u8>,
    unchunked: Vec<u8>,
    framing: Framing,
    status: u16,
    body_start: usize,
    chunked: bool,
}

impl BenchReply {
    pub(crate) fn new() -> Self {
        Self::with_capacity(16 * 1024)
    }

    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self {
            raw: Vec::with_capacity(bytes),
            unchunked: Vec::new(),
            framing: Framing::Head,
            status: 0,
            body_start: 0,
            chunked: false,
        }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn head(&self) -> &[u8] {
        &self.raw[..self.body_start]
    }

    /// The body read so far, without chunk framing.
    pub(crate) fn body(&self) -> &[u8] {
        if self.chunked { &self.unchunked } else { &self.raw[self.body_start..] }
    }

    /// How many events the body read so far holds.
    pub(crate) fn events(&self) -> usize {
        let body = self.body();
        let first = usize::from(body.starts_with(b"data:"));
        first + memchr_iter(b'\n', body).filter(|at| body[at + 1..].starts_with(b"data:")).count()
    }

    /// Reads one answer to its end.
    pub(crate) async fn read_whole(&mut self, stream: &mut TcpStream) -> Result<()> {
        self.start();
        loop {
            self.read_some(stream).await?;
            if self.advance()? {
                return Ok(());
            }
        }
    }

    /// Reads until one event of a stream has arrived, and leaves the stream open.
    pub(crate) async fn read_first_event(&mut self, stream: &mut TcpStream) -> Result<()> {
        self.start();
        loop {
            self.read_some(stream).await?;
            let whole = self.advance()?;
            if self.events() > 0 && memmem::find(self.body(), b"\n\n").is_some() {
                return Ok(());
            }
            ensure!(!whole, "the stream ended before its first event");
        }
    }

    fn start(&mut self) {
        self.raw.clear();
        self.unchunked.clear();
        self.framing = Framing::Head;
        self.body_start = 0;
        self.chunked = false;
    }

    async fn read_some(&mut self, stream: &mut TcpStream) -> Result<()> {
        if self.raw.capacity() - self.raw.len() < 4096 {
            self.raw.reserve(16 * 1024);
        }
        let got = stream.read_buf(&mut self.raw).await.context("reading")?;
        ensure!(got > 0, "the server closed the connection inside an answer");
        Ok(())
    }

    /// Takes in what has arrived; true once the answer is whole.
    fn advance(&mut self) -> Result<bool> {
        loop {
            match self.framing {
                Framing::Head => {
                    let Some(at) = memmem::find(&self.raw, b"\r\n\r\n") else {
                        return Ok(false);
                    };
                    self.body_start = at + 4;
                    self.understand_head()?;
                }
                Framing::Sized { end } => {
                    ensure!(self.raw.len() <= end, "bytes after the end of the answer");
                    if self.raw.len() < end {
                        return Ok(false);
                    }
                    self.framing = Framing::Whole;
                }
                Framing::Chunked { next } => {
                    let Some(after) = self.take_chunk(next)? else {
                        return Ok(false);
                    };
                    self.framing = after;
                }
                Framing::Whole => return Ok(true),
            }
        }
    }

    fn understand_head(&mut self) -> Result<()> {
        let head = &self.raw[..self.body_start];
        ensure!(head.starts_with(b"HTTP/1.1 "), "not an HTTP/1.1 answer");
        self.status = decimal(&head[9..12]).context("status")? as u16;
        let mut rest = head;
        while let Some(end) = memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if let Some(value) = header(line, b"content-length:") {
                let length = decimal(value).context("content-length")?;
                self.framing = Framing::Sized { end: self.body_start + length };
                return Ok(());
            }
            if header(line, b"transfer-encoding:").is_some() {
                self.chunked = true;
                self.framing = Framing::Chunked { next: self.body_start };
                return Ok(());
            }
        }
        if matches!(self.status, 204 | 304) {
            self.framing = Framing::Sized { end: self.body_start };
            return Ok(());
        }
        bail!("the answer has neither a length nor chunks")
    }

    fn take_chunk(&mut self, at: usize) -> Result<Option<Framing>> {
        let Some(line) = memchr(b'\n', &self.raw[at..]) else {
            return Ok(None);
        };
        let size = hexadecimal(&self.raw[at..at + line])?;
        let data = at + line + 1;
        let end = data + size + 2;
        if self.raw.len() < end {
            return Ok(None);
        }
        if size == 0 {
            ensure!(self.raw.len() == end, "bytes after the last chunk");
            return Ok(Some(Framing::Whole));
        }
        self.unchunked.extend_from_slice(&self.raw[data..data + size]);
        Ok(Some(Framing::Chunked { next: end }))
    }
}

fn header<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn decimal(text: &[u8]) -> Result<usize> {
    Ok(std::str::from_utf8(text)?.parse()?)
}

fn hexadecimal(text: &[u8]) -> Result<usize> {
    let text = std::str::from_utf8(text)?.trim();
    usize::from_str_radix(text, 16).with_context(|| format!("chunk size {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(bytes: &[u8], step: usize) -> Result<BenchReply> {
        let mut reply = BenchReply::new();
        let mut whole = false;
        for piece in bytes.chunks(step) {
            assert!(!whole, "whole before the last byte");
            reply.raw.extend_from_slice(piece);
            whole = reply.advance()?;
        }
        assert!(whole, "not whole at the last byte");
        Ok(reply)
    }

    #[test]
    fn a_sized_answer_is_whole_at_its_last_byte_however_it_is_cut() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx: y\r\n\r\nhello";
        for step in 1..bytes.len() {
            let reply = feed(bytes, step).expect("valid");
            assert_eq!((reply.status(), reply.body()), (200, &b"hello"[..]));
        }
    }

    #[test]
    fn a_chunked_stream_gives_its_events_however_it_is_cut() {
        let pieces = ["id: 1\ndata: {}", "\n\nid: 2\ndata: {}\n", "\ndata: x data:\n\n", ""];
        let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for piece in pieces {
            bytes.extend_from_slice(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes());
        }
        for step in 1..bytes.len() {
            let reply = feed(&bytes, step).expect("valid");
            assert_eq!(reply.events(), 3, "cut every {step} bytes");
        }
    }

    #[test]
    fn bytes_that_do_not_belong_to_the_answer_are_refused() {
        assert!(feed(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nhello", 100).is_err());
        assert!(feed(b"HTTP/1.1 200 OK\r\n\r\n", 100).is_err());
        assert!(feed(b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", 100).is_err());
    }
}
