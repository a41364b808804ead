//! The first-attempt barrier: a receiver that looks for notifications right after an answer finds them.

use tokio::time::Instant;

use crate::live::LiveTask;
use crate::push::{LaneFilter, LaneState};
use crate::service::ChanceryInner;

/// Registrations of one task that are looked at.
const MOST_LANES: usize = 1_000;

impl ChanceryInner {
    /// Waits until everything up to the visible entry was tried once, or cannot be for now. It never waits
    /// for long, and not at all for tasks without a registration.
    pub(crate) async fn first_attempts(&self, live: &LiveTask) {
        let Some(push) = &self.push else { return };
        let most = push.notifier.barrier();
        if !live.has_webhooks() || most.is_zero() {
            return;
        }
        let began = Instant::now();
        // Longer than that is not waited, whatever the store does.
        let _ = tokio::time::timeout(most, self.tried_once(live)).await;
        push.notifier.metrics.barrier.add(began.elapsed());
    }

    async fn tried_once(&self, live: &LiveTask) {
        let Some(push) = &self.push else { return };
        let (task, seq) = (&live.record.id, live.visible().seq);
        let now = self.clock.now();
        let mut listening = push.notifier.first_attempts.listen(task);
        let filter = LaneFilter { task: Some(task.clone()), ..LaneFilter::default() };
        let Ok(page) = push.outbox.lanes(&filter, 0, MOST_LANES).await else { return };
        let waits = page.lanes.iter().filter(|lane| {
            let cursor = &lane.cursor;
            cursor.state == LaneState::Active
                && cursor.head <= seq.min(cursor.tail)
                && cursor.attempt == 0
                && (cursor.is_held() || cursor.next_at <= now)
        });
        let waits = waits.map(|lane| lane.number()).collect();
        listening.all_reached(waits, seq).await;
    }
}
