//! Makes updates durable, then visible: the only way from a runner's word to a reader's eye.

use std::sync::Arc;
use std::task::{Context, Poll};

use crate::live::{LiveTask, ToRecord, Visible};
use crate::recording::{PendingRecording, RecordingFlow};
use crate::service::ChanceryInner;
use crate::snapshots;
use crate::{Append, Appended, Spend, StoreError, StoreTrouble};

impl ChanceryInner {
    /// Records what waits, here and now if the store answers at once. Otherwise the caller gets the recording: it
    /// may drive it, or drop it into the background. All updates that were taken since the last time become durable
    /// in one append.
    pub(crate) fn record(self: &Arc<Self>, live: &Arc<LiveTask>, context: &mut Context<'_>) -> Option<PendingRecording> {
        if !live.start_recording() {
            return None;
        }
        let mut flow: RecordingFlow = Box::pin(Arc::clone(self).recording(Arc::clone(live)));
        flow.as_mut().poll(context).is_pending().then(|| PendingRecording::new(self, flow))
    }

    async fn recording(self: Arc<Self>, live: Arc<LiveTask>) {
        while let Some(ToRecord { progress, entries, link, spend, decision, notes, answers }) = live.next_to_record() {
            if entries.is_empty() {
                self.record_spend(&live, spend).await;
                continue;
            }
            let decided = decision.is_some();
            let append = || Append {
                task: Arc::clone(&live.record),
                creation: None,
                progress,
                entries: entries.clone(),
                link: link.clone(),
                governed: None,
                spend,
                decision: decision.clone(),
                register: None,
                notes: notes.clone(),
                answers: answers.clone(),
            };
            let appended = match self.append(append()).await {
                Err(fault) if fault.trouble == StoreTrouble::Away => Box::pin(self.append_later(&append, fault)).await,
                appended => appended,
            };
            match appended {
                Ok(recorded @ (Appended::Recorded | Appended::RecordedToTell | Appended::RecordedBehind)) => {
                    if recorded != Appended::Recorded {
                        // Before it shows: whoever waits for the end looks at it then.
                        live.mark_webhooks();
                    }
                    let visible = live.show(&entries, &self.limits.load());
                    if recorded == Appended::RecordedToTell {
                        self.ring();
                    }
                    if decided {
                        self.retention.one_more_decided();
                    }
                    if visible.terminal {
                        self.retention.one_more_ended(progress.bytes);
                        self.govern.queues.ring();
                    }
                    if visible.settled == visible.seq && visible.seq >= snapshots::MIN_ENTRIES && !visible.message_only {
                        self.keep_snapshot_of(&live).await;
                    }
                }
                Ok(other) => {
                    tracing::error!(task = %live.record.id, ?other, "the store took an update for a new task: this is a defect");
                    return self.give_up(&live);
                }
                Err(fault) => {
                    tracing::error!(task = %live.record.id, error = &fault as &dyn std::error::Error, "cannot store the updates of a task; its turn ends");
                    return self.give_up(&live);
                }
            }
        }
        self.let_go_if_watched(&live);
        if self.cluster.is_some() {
            Box::pin(self.release_if_idle(&live)).await;
        }
    }

    /// Appends entries. The node that forwarded a message may have withdrawn it meanwhile: it stays, without the answer, for it is
    /// in line already.
    pub(crate) async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        let again = append.answers.is_some().then(|| Box::new(Append { answers: None, ..append.clone() }));
        match (self.store.append(append).await, again) {
            (Err(fault), Some(again)) if fault.trouble == StoreTrouble::CallWithdrawn => self.store.append(*again).await,
            (answer, _) => answer,
        }
    }

    /// What a turn cost that ended without its task. It goes the way of the updates, so that the last word is the last written.
    async fn record_spend(&self, live: &LiveTask, spend: Option<Spend>) {
        let Some(spend) = spend else { return };
        if let Err(fault) = self.store.settle(&live.record.id, spend).await {
            tracing::error!(task = %live.record.id, error = &fault as &dyn std::error::Error, "cannot store the cost of a turn");
        }
    }

    /// Wakes the engine: there may be something for webhooks to receive.
    pub(crate) fn ring(&self) {
        if let Some(push) = &self.push {
            push.notifier.ring();
        }
    }

    /// Records waiting updates, if no other flow does.
    pub(crate) async fn start_recording(self: &Arc<Self>, live: &Arc<LiveTask>) -> Option<PendingRecording> {
        std::future::poll_fn(|context| Poll::Ready(self.record(live, context))).await
    }

    /// Nothing more comes of this one. It leaves the list, so that the next call starts from what the store has.
    fn give_up(self: &Arc<Self>, live: &Arc<LiveTask>) {
        live.break_off(None);
        if let Some(node) = live.node()
            && !live.visible().terminal
        {
            self.govern.trees.reopen(node);
        }
        self.open.drop_stale(live);
        if !live.visible().terminal {
            self.end_later(live.record.id.clone());
        }
    }

    /// Records what waits and comes back when it is visible, or will never be.
    pub(crate) async fn recorded(self: &Arc<Self>, live: &Arc<LiveTask>, seq: u64) {
        let is_recorded = |visible: &Visible| visible.seq >= seq || visible.broken;
        if let Some(recording) = self.start_recording(live).await {
            recording.until(live, is_recorded).await;
        }
        if !is_recorded(&live.visible()) {
            // The sender lives in `live`, so waiting cannot fail.
            let _ = live.watch().wait_for(is_recorded).await;
        }
    }
}
