//! A deadline that moves often and is hardly ever reached, as the end of somebody's patience is.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

/// Moving the deadline costs nothing: the timer below is set again only when it rings too early.
#[derive(Debug, Default)]
pub struct Alarm(Option<Pin<Box<Sleep>>>);

pin_project! {
    /// Work with a deadline. Not an async function, because that would have room for the work twice.
    #[derive(Debug)]
    #[must_use = "nothing is done before it is awaited"]
    pub struct Unless<'a, F> {
        alarm: &'a mut Alarm,
        deadline: Instant,
        #[pin]
        work: F,
    }
}

impl<F: Future> Future for Unless<'_, F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.work.poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => this.alarm.poll_ring(*this.deadline, context).map(|()| None),
        }
    }
}

impl Alarm {
    /// What `work` comes to, or nothing if the deadline is there first.
    pub fn unless<F: Future>(&mut self, deadline: Instant, work: F) -> Unless<'_, F> {
        Unless { alarm: self, deadline, work }
    }

    fn poll_ring(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        while sleep.as_mut().poll(context).is_ready() {
            if sleep.deadline() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    async fn after(seconds: u64) -> u64 {
        sleep(Duration::from_secs(seconds)).await;
        seconds
    }

    #[tokio::test(start_paused = true)]
    async fn patience_ends_at_its_deadline_wherever_that_was_moved() {
        let mut alarm = Alarm::default();
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        assert_eq!(alarm.unless(at(10), after(4)).await, Some(4));
        // Moved on, it does not ring when it would have.
        assert_eq!(alarm.unless(at(14), after(9)).await, Some(9));
        assert_eq!(alarm.unless(at(20), after(30)).await, None);
        assert_eq!(begun.elapsed().as_secs(), 20);
        // Also after it rang, and also to an earlier time.
        assert_eq!(alarm.unless(at(90), after(1)).await, Some(1));
        assert_eq!(alarm.unless(at(23), after(30)).await, None);
        assert_eq!(begun.elapsed().as_secs(), 23);
        assert_eq!(alarm.unless(at(22), after(1)).await, None, "what is past is past");
        assert_eq!(alarm.unless(at(22), async { 0 }).await, Some(0), "but what is there is there");
    }
}
