//! Follows the tasks that other nodes work on: their entries are read from the store, and shown to the readers here.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{Error, ErrorKind, TaskId};

use super::membership::Membership;
use crate::find::{PAGE_BYTES, come_back, internal};
use crate::live::LiveTask;
use crate::service::ChanceryInner;
use crate::{StoreError, Stored, TaskHolder, Wakeup};

/// The pause before another attempt at a store that failed.
const AFTER_FAULT: Duration = Duration::from_millis(200);

/// A task that is followed, and the entry up to which it has to be read. Without a number it is read to its end.
type Behind = (Arc<LiveTask>, Option<u64>);

impl ChanceryInner {
    /// Reads what is new of the followed tasks at each wake-up, until the node ends.
    pub(super) async fn follow_others(self: Arc<Self>) {
        let Some(member) = &self.cluster else { return };
        let mut reads_all = false;
        loop {
            if reads_all {
                match self.read_all(member).await {
                    Ok(()) => reads_all = false,
                    Err(fault) => {
                        tracing::warn!(error = &fault as &dyn std::error::Error, "cannot read what other nodes recorded");
                        tokio::select! {
                            () = member.ended() => return,
                            () = tokio::time::sleep(AFTER_FAULT) => continue,
                        }
                    }
                }
            }
            let wakeup = tokio::select! {
                biased;
                () = member.ended() => return,
                () = member.missed.notified() => Wakeup::Missed,
                wakeup = member.port.next_wakeup() => wakeup,
            };
            match wakeup {
                Wakeup::Tasks(tasks) => reads_all = self.read_woken(member, &tasks).await.is_err(),
                Wakeup::Missed => {
                    reads_all = true;
                    member.waiting.wake_all();
                    member.received.notify_one();
                }
                Wakeup::ForwardedCall => member.received.notify_one(),
                Wakeup::ForwardedAnswer(number) => member.waiting.wake(number),
                Wakeup::Closed => return,
            }
        }
    }

    async fn read_woken(&self, member: &Membership, tasks: &[(TaskId, u64)]) -> Result<(), StoreError> {
        let followed = |id: &TaskId| self.open.get(id).filter(|live| live.is_following());
        let behind = tasks.iter().filter_map(|(id, seq)| Some((followed(id)?, Some(*seq))));
        self.read_new(member, behind.collect()).await
    }

    async fn read_all(&self, member: &Membership) -> Result<(), StoreError> {
        let followed = self.open.all().into_iter().filter(|live| live.is_following() && !live.visible().terminal);
        self.read_new(member, followed.map(|live| (live, None)).collect()).await
    }

    /// Brings one followed task up to date: up to an entry, or to its end.
    pub(super) async fn catch_up(&self, member: &Membership, live: &Arc<LiveTask>, seq: Option<u64>) -> Result<(), Error> {
        self.read_new(member, vec![(Arc::clone(live), seq)]).await.map_err(internal)
    }

    /// Reads what is missing of all these tasks, in one query unless a task is far behind, and shows it.
    async fn read_new(&self, member: &Membership, mut behind: Vec<Behind>) -> Result<(), StoreError> {
        while !behind.is_empty() {
            let asked: Vec<_> = behind.iter().map(|(live, _)| (live.record.id.clone(), live.visible().seq)).collect();
            let read = self.store.entries_of(&asked, PAGE_BYTES).await?;
            let limits = self.limits.load();
            let mut left = Vec::new();
            for ((live, seq), entries) in behind.into_iter().zip(read) {
                live.show_followed(&entries, &limits);
                // Its entries are shown as they are recorded, if this node has taken it meanwhile.
                if !live.is_following() {
                    continue;
                }
                if entries.is_empty() || seq.is_some_and(|seq| live.visible().seq >= seq) {
                    self.look_at_holder(member, &live).await?;
                } else {
                    left.push((live, seq));
                }
            }
            behind = left;
        }
        Ok(())
    }

    /// What the entries of a followed task do not say: whether its agent goes on by itself, and whether it was withdrawn.
    async fn look_at_holder(&self, member: &Membership, live: &Arc<LiveTask>) -> Result<(), StoreError> {
        if !live.is_following() {
            return Ok(());
        }
        if live.asks_for_authorization() {
            match member.port.holder(&live.record.id).await? {
                Some(TaskHolder::Nobody) | None => live.stop_authorizing(),
                Some(TaskHolder::ThisNode | TaskHolder::OtherNode(_)) => live.go_on_authorizing(),
            }
        }
        // Only a task of which nothing was said yet is withdrawn.
        if live.visible().seq == 1 && self.store.find_any(live.record.id.as_str()).await?.is_none() {
            self.open.drop_stale(live);
            live.break_off(Some(withdrawn()));
        }
        Ok(())
    }

    /// Whether agents that wait for an authorization go on is known by who holds their tasks. A task that is released has no new entry.
    pub(super) async fn look_at_authorizing(&self, member: &Membership) {
        let asking = self.open.all().into_iter().filter(|live| live.is_following() && live.visible().authorizing);
        for live in asking {
            if let Err(fault) = self.look_at_holder(member, &live).await {
                tracing::debug!(task = %live.record.id, error = &fault as &dyn std::error::Error, "cannot look who holds a task");
            }
        }
    }

    /// The task with room for what is going on with it, where another node may work on it.
    pub(crate) async fn open_shared(self: &Arc<Self>, member: &Membership, stored: Stored) -> Result<Arc<LiveTask>, Error> {
        let id = &stored.task.id;
        loop {
            if let Some(live) = self.open.get(id) {
                self.bring_up_to(member, &live, stored.progress.seq).await?;
                return Ok(live);
            }
            // Before it is read: whatever comes after the read wakes this node up.
            if !stored.progress.state.is_terminal() {
                member.port.watch(id).await.map_err(internal)?;
            }
            let _turn = self.large_read(&stored).await;
            if self.open.get(id).is_some() {
                continue;
            }
            let loaded = self.load(&stored).await?.following();
            let live = self.open.add(loaded);
            if !live.visible().terminal {
                // What came between the read and its place in the list woke nobody here.
                self.catch_up(member, &live, None).await?;
            }
            return Ok(live);
        }
    }

    /// A call that found a task at an entry sees it there too, and follows it with wake-ups.
    async fn bring_up_to(&self, member: &Membership, live: &Arc<LiveTask>, seq: u64) -> Result<(), Error> {
        if live.is_unwatched() {
            self.watch_from_now(live).await?;
        } else if live.is_following() && live.visible().seq < seq {
            self.catch_up(member, live, Some(seq)).await?;
        }
        Ok(())
    }

    /// Follows a task with wake-ups that was followed without them. To be called before its entries are waited for.
    pub(crate) async fn watch_from_now(&self, live: &Arc<LiveTask>) -> Result<(), Error> {
        let Some(member) = &self.cluster else { return Ok(()) };
        member.port.watch(&live.record.id).await.map_err(internal)?;
        self.catch_up(member, live, None).await?;
        live.set_watched();
        Ok(())
    }

    /// Whether what memory has of a task is what the store has.
    pub(crate) fn memory_counts(&self, live: &LiveTask) -> bool {
        self.cluster.as_ref().is_none_or(|member| !live.is_following() && member.is_fresh())
    }
}

/// The answer to readers of a task that its agent has refused at another node.
fn withdrawn() -> Error {
    let error = come_back("the agent refused the message that made this task, and the task was withdrawn; send it again");
    debug_assert_eq!(error.kind, ErrorKind::Unavailable);
    error
}
