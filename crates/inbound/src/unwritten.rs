//! Bytes on their way to a caller: they hold their room among the answers until they are written, and say when they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use chancery_core::AnswerPermit;
use futures::task::AtomicWaker;

/// The buffers of one answer that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct UnwrittenBuffers {
    buffers: AtomicUsize,
    waker: AtomicWaker,
}

/// A buffer that counts for as long as a holder of its bytes exists: hyper and h2 release them when they are
/// written, or when the stream or its connection is gone.
struct CountedBuffer<B> {
    bytes: B,
    of: Arc<UnwrittenBuffers>,
    _permit: Option<Arc<AnswerPermit>>,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for CountedBuffer<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl<B> Drop for CountedBuffer<B> {
    fn drop(&mut self) {
        if self.of.buffers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.of.waker.wake();
        }
    }
}

impl UnwrittenBuffers {
    /// These bytes, counted.
    pub(crate) fn count<B>(self: &Arc<Self>, bytes: B, permit: Option<Arc<AnswerPermit>>) -> Bytes
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        self.buffers.fetch_add(1, Ordering::AcqRel);
        Bytes::from_owner(CountedBuffer { bytes, of: Arc::clone(self), _permit: permit })
    }

    /// Ready once all is written.
    pub(crate) fn poll_written(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.buffers.load(Ordering::Acquire) == 0 {
            return Poll::Ready(());
        }
        self.waker.register(context.waker());
        // It may have been written before the waker was there.
        if self.buffers.load(Ordering::Acquire) == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// The bytes of one whole answer, with its room set to their number.
pub(crate) fn counted(bytes: Vec<u8>, mut permit: AnswerPermit) -> (Bytes, Arc<UnwrittenBuffers>) {
    permit.set(bytes.len() as u64);
    let unwritten = Arc::new(UnwrittenBuffers::default());
    (unwritten.count(bytes, Some(Arc::new(permit))), unwritten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn all_is_written_when_the_last_slice_of_the_last_buffer_is_gone() {
        let unwritten = Arc::new(UnwrittenBuffers::default());
        let (mut first, second) = (unwritten.count(vec![1, 2, 3], None), unwritten.count(vec![4], None));
        let piece = first.split_to(1);
        let mut written = std::pin::pin!(std::future::poll_fn(|context| unwritten.poll_written(context)));
        drop((first, second));
        assert!(written.as_mut().now_or_never().is_none(), "a slice is left");
        let waiting = chancery_core::spawn_watched("test", async move { drop(piece) });
        written.await;
        waiting.await.unwrap();
    }
}
