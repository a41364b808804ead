//! A recording that waits for the store: driven by the call that waits for it, otherwise in the background.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::live::{LiveTask, Visible};
use crate::service::ChanceryInner;

/// What a recording does: it appends and shows updates until no more of them wait.
pub(crate) type RecordingFlow = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A caller that waits for the end of a turn drives the recording of it, so that the store wakes that caller directly.
/// A holder that drops the recording moves it to the background.
#[must_use = "dropping it moves the recording to a task of its own"]
pub(crate) struct PendingRecording {
    inner: Arc<ChanceryInner>,
    flow: Option<RecordingFlow>,
    /// A stop of the node waits for it, in the background and at a caller alike.
    _counted: TaskTrackerToken,
}

impl fmt::Debug for PendingRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingRecording")
    }
}

impl PendingRecording {
    /// A flow that was polled once and waits for the store.
    pub(crate) fn new(inner: &Arc<ChanceryInner>, flow: RecordingFlow) -> Self {
        Self { inner: Arc::clone(inner), flow: Some(flow), _counted: inner.background.token() }
    }

    /// Drives the recording until the task has come that far. The rest of it, if there is any, goes on in the
    /// background: other flows may have added updates.
    pub(crate) async fn until(mut self, live: &LiveTask, is_enough: impl Fn(&Visible) -> bool) {
        std::future::poll_fn(|context| {
            let recorded = Pin::new(&mut self).poll(context);
            if is_enough(&live.visible()) { Poll::Ready(()) } else { recorded }
        })
        .await;
    }
}

impl Future for PendingRecording {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(flow) = &mut self.flow else { return Poll::Ready(()) };
        let recorded = flow.as_mut().poll(context);
        if recorded.is_ready() {
            self.flow = None;
        }
        recorded
    }
}

impl Drop for PendingRecording {
    fn drop(&mut self) {
        // Without a runtime there is no background either: the process is at its end.
        if let (Some(flow), Ok(_)) = (self.flow.take(), Handle::try_current()) {
            self.inner.in_background("recording", flow);
        }
    }
}
