//! Runs a flow to its end in the background when its caller stops waiting.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// Runs in its caller's own flow as long as that is there: a caller that disconnects stops waiting, and
/// nothing else.
pub(crate) struct CarryOn<T: Send + 'static> {
    flow: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    background: TaskTracker,
}

impl<T: Send + 'static> CarryOn<T> {
    pub(crate) fn new(flow: impl Future<Output = T> + Send + 'static, background: &TaskTracker) -> Self {
        Self { flow: Some(Box::pin(flow)), background: background.clone() }
    }
}

impl<T: Send + 'static> Future for CarryOn<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(flow) = &mut self.flow else { return Poll::Pending };
        let done = flow.as_mut().poll(context);
        if done.is_ready() {
            self.flow = None;
        }
        done
    }
}

impl<T: Send + 'static> Drop for CarryOn<T> {
    fn drop(&mut self) {
        // Without a runtime there is no background either: the process is at its end.
        if let (Some(flow), Ok(runtime)) = (self.flow.take(), Handle::try_current()) {
            self.background.spawn_on(flow, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn what_is_given_up_is_done_all_the_same() {
        let background = TaskTracker::new();
        let (go, gone) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let flow = CarryOn::new(
            async move {
                let _ = gone.await;
                let _ = tell.send("done");
            },
            &background,
        );
        let mut flow = Box::pin(flow);
        assert!(futures::poll!(&mut flow).is_pending());
        drop(flow);
        go.send(()).unwrap();
        assert_eq!(told.await.unwrap(), "done");
    }

    #[tokio::test]
    async fn what_is_waited_for_is_not_done_twice() {
        let background = TaskTracker::new();
        assert_eq!(CarryOn::new(async { 7 }, &background).await, 7);
        assert!(background.is_empty());
    }
}
