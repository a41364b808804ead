//! Frames that wait to be written on one connection, bounded in number and in bytes.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use chancery_core::AnswerPermit;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Frames that may wait to be written before their makers wait too.
const WAITING_FRAMES: usize = 64;
/// Bytes of those frames. A larger frame waits alone.
const WAITING_BYTES: u32 = 64 * 1024;
/// Smaller frames are not counted: their number bounds them. They are written together.
const SMALL_FRAME: usize = 4 * 1024;

/// The input of the queue for makers of frames. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct FrameQueue {
    frames: mpsc::Sender<WaitingFrame>,
    room: Arc<Semaphore>,
}

/// A frame with the room it takes until it is written.
#[derive(Debug)]
pub(super) struct WaitingFrame {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
    _permit: Option<Arc<AnswerPermit>>,
}

/// The writer of frames has ended.
#[derive(Debug)]
pub(super) struct NobodyWrites;

impl FrameQueue {
    pub(super) fn new() -> (Self, mpsc::Receiver<WaitingFrame>) {
        let (frames, waiting) = mpsc::channel(WAITING_FRAMES);
        (Self { frames, room: Arc::new(Semaphore::new(WAITING_BYTES as usize)) }, waiting)
    }

    /// Puts a frame in line, once there is room for it.
    pub(super) async fn send(&self, bytes: Bytes, permit: Option<Arc<AnswerPermit>>) -> Result<(), NobodyWrites> {
        let room = if bytes.len() > SMALL_FRAME {
            let needed = u32::try_from(bytes.len()).unwrap_or(WAITING_BYTES).min(WAITING_BYTES);
            Some(Arc::clone(&self.room).acquire_many_owned(needed).await.map_err(|_| NobodyWrites)?)
        } else {
            None
        };
        let frame = WaitingFrame { bytes, _room: room, _permit: permit };
        self.frames.send(frame).await.map_err(|_| NobodyWrites)
    }

    /// Waits until no counted frame is in line. A reader of events for this connection waits with the next
    /// until then: events that are read and cannot be written use memory too.
    pub(super) async fn drained(&self) {
        drop(self.room.acquire_many(WAITING_BYTES).await);
    }

    /// Waits until the writer of frames has ended.
    pub(super) async fn closed(&self) {
        self.frames.closed().await;
    }
}

/// Writes queued frames at once, and closes when no sender is left.
pub(super) async fn write<W: AsyncWrite + Unpin>(mut outgoing: W, mut waiting: mpsc::Receiver<WaitingFrame>) {
    let mut batch = Vec::with_capacity(WAITING_FRAMES);
    let mut joined = BytesMut::new();
    while waiting.recv_many(&mut batch, WAITING_FRAMES).await > 0 {
        for frame in batch.drain(..) {
            if frame.bytes.len() <= SMALL_FRAME {
                joined.extend_from_slice(&frame.bytes);
                continue;
            }
            if outgoing.write_all(&joined).await.is_err() || outgoing.write_all(&frame.bytes).await.is_err() {
                return;
            }
            joined.clear();
        }
        if outgoing.write_all(&joined).await.is_err() || outgoing.flush().await.is_err() {
            return;
        }
        joined.clear();
    }
    let _ = outgoing.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn frames_wait_up_to_their_bytes_and_a_larger_one_waits_alone() {
        let (queue, mut waiting) = FrameQueue::new();
        let frame = |bytes: usize| Bytes::from(vec![0; bytes]);
        for _ in 0..2 {
            queue.send(frame(WAITING_BYTES as usize / 2), None).now_or_never().expect("there is room").unwrap();
        }
        queue.send(frame(SMALL_FRAME), None).now_or_never().expect("a small one always has room").unwrap();
        assert!(queue.send(frame(SMALL_FRAME + 1), None).now_or_never().is_none());
        assert!(queue.drained().now_or_never().is_none());
        for _ in 0..2 {
            drop(waiting.recv().await);
        }
        queue.drained().now_or_never().expect("the small one does not count");
        queue.send(frame(WAITING_BYTES as usize * 3), None).now_or_never().expect("it is alone").unwrap();
        drop(waiting);
        queue.send(frame(1), None).await.unwrap_err();
    }

    #[tokio::test]
    async fn small_and_large_frames_are_written_in_their_order() {
        let (near, mut far) = tokio::io::duplex(64);
        let (queue, waiting) = FrameQueue::new();
        let writing = chancery_core::spawn_watched("test", write(near, waiting));
        let sending = chancery_core::spawn_watched("test", async move {
            for (byte, count) in [(1, 3), (2, SMALL_FRAME + 1), (3, 2), (4, SMALL_FRAME), (5, SMALL_FRAME + 9)] {
                queue.send(vec![byte; count].into(), None).await.unwrap();
            }
        });
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert!(read.is_sorted() && read.len() == 3 + 2 + 3 * SMALL_FRAME + 10, "{}", read.len());
        sending.await.unwrap();
        writing.await.unwrap();
    }
}
