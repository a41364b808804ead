//! Forgets what has grown old: drained registrations of ended tasks, attempts, dead letters and receipts.

use std::time::Duration;

use chancery_protocol::Timestamp;

use super::engine::Engine;
use crate::push::LaneSweep;

const EVERY: Duration = Duration::from_secs(10 * 60);
/// At most this many of each kind at once, so that writers are never held up for long.
const STEP: u64 = 1_000;

impl Engine {
    pub(super) async fn keep_swept(&self) {
        loop {
            self.sweep().await;
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = self.stopping.cancelled() => return,
            }
        }
    }

    /// Deletes what is older than the config keeps.
    pub async fn sweep(&self) {
        loop {
            let (now, config) = (self.timeline.wall(), self.config.load_full());
            let before = |hours: u64| {
                let micros = i64::try_from(hours.saturating_mul(3_600_000_000)).unwrap_or(i64::MAX);
                Timestamp::from_micros(now.micros().saturating_sub(micros))
            };
            let plan = LaneSweep {
                drained_before: before(config.notify.keep_hours),
                dead_before: before(config.notify.keep_dead_hours),
                receipts_before: before(config.notify.keep_receipts_hours),
                at_most: STEP,
            };
            match self.outbox.sweep_lanes(plan).await {
                Ok(swept) if [swept.lanes, swept.dead, swept.receipts].contains(&STEP) => {
                    tokio::task::yield_now().await;
                }
                Ok(_) => return,
                Err(fault) => {
                    return tracing::error!(
                        error = &fault as &dyn std::error::Error,
                        "cannot delete old webhooks; the node tries again"
                    );
                }
            }
        }
    }
}
