//! Tasks over SWP as load: the same frame again and again, each time with ids nobody has used.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use anyhow::{Context, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use chancery_wire::swp::codec::{Envelope, FramePayload, Profile, Reader, SwpLimits, Timestamps, a2a};
use chancery_wire::swp::{Convention, Given};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const MSG_ID: &[u8; 16] = b"<the message id>";
const TASK_ID: &[u8; 16] = b"<the id of task>";

/// The frame with marks where its ids go. `path` is the agent's name.
pub(crate) fn frame(path: &str, text: &str) -> Bytes {
    let kind = path.trim_matches('/').to_owned();
    let task = a2a::SwpTaskMessage { task_id: Bytes::from_static(TASK_ID), kind, input: Bytes::copy_from_slice(text.as_bytes()) };
    let message = a2a::A2aMessage::Task(task);
    let msg_id = Bytes::from_static(MSG_ID);
    let mut envelope = Envelope::new(Profile::A2a, message.msg_type(), msg_id, 1_771_513_334_652, message.to_payload());
    envelope.extensions = Given { convention: Some(Convention::Text), ..Given::default() }.to_extensions();
    envelope.encode(&SwpLimits::default()).unwrap_or_default()
}

/// One connection's side of it.
pub(crate) struct Exchange {
    frame: BytesMut,
    msg_id: usize,
    task_id: usize,
    reader: Reader,
    next: u128,
}

impl Exchange {
    pub(crate) fn new(frame: &[u8]) -> Result<Self> {
        let place = |mark: &[u8]| memmem::find(frame, mark).context("a frame without its marks");
        let answers = SwpLimits { duplicate_window_ms: 0, max_frames_per_window: u32::MAX, ..SwpLimits::default() };
        let start = RandomState::new().build_hasher().finish();
        Ok(Self {
            frame: BytesMut::from(frame),
            msg_id: place(MSG_ID)?,
            task_id: place(TASK_ID)?,
            reader: Reader::new(answers),
            next: u128::from(start) << 64,
        })
    }

    /// Gives a task and waits for its result: how many octets came back, and in how many events.
    pub(crate) async fn run(&mut self, stream: &mut TcpStream) -> Result<(usize, usize)> {
        self.next += 1;
        for place in [self.msg_id, self.task_id] {
            self.frame[place..place + 16].copy_from_slice(&self.next.to_be_bytes());
        }
        stream.write_all(&self.frame).await.context("writing")?;
        let (mut octets, mut events) = (0, 0);
        loop {
            while let Some(body) = self.reader.next_frame()? {
                match self.reader.read(body, Timestamps::Ignored, 0)?.payload {
                    FramePayload::A2a(a2a::A2aMessage::Event(_)) => events += 1,
                    FramePayload::A2a(a2a::A2aMessage::Result(result)) => {
                        ensure!(result.ok, "a bad answer: {}", result.error_message);
                        return Ok((octets, events));
                    }
                    other => bail!("a bad answer: {other:?}"),
                }
            }
            self.reader.buffer().reserve(4096);
            let read = stream.read_buf(self.reader.buffer()).await.context("reading")?;
            ensure!(read > 0, "the server closed the connection");
            octets += read;
        }
    }
}
