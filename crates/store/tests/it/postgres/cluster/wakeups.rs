//! Entries of watched tasks are heard of at other nodes: each once and in order, whatever becomes of the wake-ups.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chancery_core::{Store, Wakeup};
use chancery_protocol::{TaskId, TaskState};
use chancery_store::{PostgresOptions, PostgresStore};

use super::lossy_proxy::LossyProxy;
use super::{LONG_LEASE, Node, database};
use crate::contract::sample::{at, change, creation, pieces, task};
use crate::postgres::proxy::{CutPoint, FaultyProxy};

/// Reads watched tasks as a node does: what it has seen of each, and nothing from memory.
struct Follower<'n> {
    node: &'n Node,
    seen: BTreeMap<TaskId, Vec<u64>>,
    named: usize,
    missed: usize,
}

impl<'n> Follower<'n> {
    async fn of(node: &'n Node, tasks: &[TaskId]) -> Self {
        let mut follower = Self { node, seen: BTreeMap::new(), named: 0, missed: 0 };
        for task in tasks {
            node.cluster.watch(task).await.unwrap();
            follower.seen.insert(task.clone(), Vec::new());
            follower.read(task).await;
        }
        follower
    }

    async fn read(&mut self, task: &TaskId) {
        let Some(seen) = self.seen.get_mut(task) else { return };
        let after = seen.last().copied().unwrap_or(0);
        let entries = self.node.store.entries(task, after, 1_000).await.unwrap();
        seen.extend(entries.iter().map(|entry| entry.seq));
    }

    async fn read_all(&mut self) {
        self.missed += 1;
        for task in self.seen.keys().cloned().collect::<Vec<_>>() {
            self.read(&task).await;
        }
    }

    /// Follows until every task has so many entries. It reads only what it is woken for.
    async fn follow(&mut self, last: u64) {
        let mut renewal = tokio::time::interval(Duration::from_millis(100));
        while self.seen.values().any(|seen| seen.last() != Some(&last)) {
            tokio::select! {
                wakeup = self.node.cluster.next_wakeup() => match wakeup {
                    Wakeup::Tasks(tasks) => {
                        self.named += tasks.len();
                        for (task, seq) in tasks {
                            self.read(&task).await;
                            let newest = self.seen.get(&task).and_then(|seen| seen.last().copied());
                            assert!(newest.is_none_or(|newest| newest >= seq), "{task} has entry {seq}, and it is not there to read");
                        }
                    }
                    Wakeup::Missed => self.read_all().await,
                    Wakeup::Closed => panic!("the store is open"),
                    Wakeup::ForwardedCall | Wakeup::ForwardedAnswer(_) => {}
                },
                _ = renewal.tick() => if self.node.renew().await.missed_wakeups {
                    self.read_all().await;
                },
            }
        }
    }

    fn check(&self, last: u64) {
        for (task, seen) in &self.seen {
            assert!(seen.iter().copied().eq(1..=last), "{task}: {seen:?}");
        }
    }
}

const TASKS: usize = 6;
const ENTRIES: u64 = 60;

async fn write_all(store: Arc<PostgresStore>, number: usize) {
    let task = task(&format!("t{number}"));
    for seq in 2..ENTRIES {
        store.append(pieces(&task, seq, seq)).await.unwrap();
        // Batches with one task and with several.
        if seq % 7 == number as u64 {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
    store.append(change(&task, ENTRIES, TaskState::Completed, at(9))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_see_every_entry_once_and_in_order_with_a_fifth_of_the_wake_ups_lost() {
    let database = database().await;
    let writer = Node::join(database.url(), LONG_LEASE).await;
    let lossy = LossyProxy::to(database.port(), 5).await;
    let watcher = Node::join(database.url_by(lossy.port()), LONG_LEASE).await;
    let sound = Node::join(database.url(), LONG_LEASE).await;
    let tasks: Vec<TaskId> = (0..TASKS).map(|number| format!("t{number}").into()).collect();
    for task_id in &tasks {
        writer.store.append(creation(&task(task_id.as_str()))).await.unwrap();
    }
    let mut followers = [Follower::of(&watcher, &tasks).await, Follower::of(&sound, &tasks).await];
    let writing: Vec<_> = (0..TASKS).map(|number| tokio::spawn(write_all(Arc::clone(&writer.store), number))).collect();
    let [lossy_follower, sound_follower] = &mut followers;
    futures::join!(lossy_follower.follow(ENTRIES), sound_follower.follow(ENTRIES));
    for one in writing {
        one.await.unwrap();
    }
    followers.iter().for_each(|follower| follower.check(ENTRIES));
    let (heard, lost) = lossy.counts();
    println!("{heard} wake-ups, {lost} lost, {} names", followers[0].named);
    assert!(lost > 0 && followers[0].missed > 0, "{heard} came, so the test shows nothing");
}

/// The last wake-up of all is lost: no later one shows the gap, only the row of the writer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_last_wake_up_that_is_lost_is_noticed_when_the_lease_is_renewed() {
    let database = database().await;
    let writer = Node::join(database.url(), LONG_LEASE).await;
    let deaf = LossyProxy::to(database.port(), 1).await;
    let watcher = Node::join(database.url_by(deaf.port()), LONG_LEASE).await;
    let watched = task("watched");
    writer.store.append(creation(&watched)).await.unwrap();
    let mut follower = Follower::of(&watcher, std::slice::from_ref(&watched.id)).await;
    writer.store.append(change(&watched, 2, TaskState::Completed, at(2))).await.unwrap();
    follower.follow(2).await;
    follower.check(2);
    assert_eq!(follower.named, 0);
    for _ in 0..3 {
        assert!(!watcher.renew().await.missed_wakeups, "it is noticed once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_was_cut_off_says_so_when_it_listens_again() {
    let database = database().await;
    let writer = Node::join(database.url(), LONG_LEASE).await;
    let proxy = LossyProxy::to(database.port(), usize::MAX).await;
    let watcher = Node::join(database.url_by(proxy.port()), LONG_LEASE).await;
    let watched = task("watched");
    writer.store.append(creation(&watched)).await.unwrap();
    let mut follower = Follower::of(&watcher, std::slice::from_ref(&watched.id)).await;
    for seq in 2..12 {
        proxy.cut();
        writer.store.append(pieces(&watched, seq, seq)).await.unwrap();
        follower.follow(seq).await;
    }
    follower.check(11);
}

/// A node dies between its commit and its wake-up: the row of its writer says that there was something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_up_that_dies_with_its_node_is_noticed() {
    let database = database().await;
    let proxy = FaultyProxy::to(database.port()).await;
    let options = PostgresOptions { answer_timeout_ms: 500, ..PostgresOptions::at(database.url_by(proxy.port())) };
    let (writer, watcher) = (Node::join_with(options).await, Node::join(database.url(), LONG_LEASE).await);
    let watched = task("watched");
    writer.store.append(creation(&watched)).await.unwrap();
    let mut follower = Follower::of(&watcher, std::slice::from_ref(&watched.id)).await;
    proxy.cut(CutPoint::AfterCommit, 0);
    let append = {
        let (store, watched) = (Arc::clone(&writer.store), Arc::clone(&watched));
        tokio::spawn(async move { store.append(pieces(&watched, 2, 2)).await })
    };
    while proxy.cuts() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    proxy.set_away(true);
    follower.follow(2).await;
    follower.check(2);
    append.abort();
}

/// The answer to the batch is lost, so the writer does not know which of the tasks are watched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_are_woken_for_a_batch_that_was_in_doubt() {
    let database = database().await;
    let proxy = FaultyProxy::to(database.port()).await;
    let options = PostgresOptions { answer_timeout_ms: 500, ..PostgresOptions::at(database.url_by(proxy.port())) };
    let (writer, watcher) = (Node::join_with(options).await, Node::join(database.url(), LONG_LEASE).await);
    let watched = task("watched");
    writer.store.append(creation(&watched)).await.unwrap();
    watcher.cluster.watch(&watched.id).await.unwrap();
    for (seq, point) in (2..).zip([CutPoint::AfterCommit, CutPoint::BeforeCommit, CutPoint::Silence]) {
        proxy.cut(point, 0);
        writer.store.append(pieces(&watched, seq, seq)).await.unwrap();
        loop {
            match watcher.cluster.next_wakeup().await {
                Wakeup::Tasks(tasks) if tasks.iter().any(|(task, newest)| *task == watched.id && *newest == seq) => break,
                _ => {}
            }
        }
    }
    assert_eq!(proxy.cuts(), 3);
}

/// A batch without a watched task wakes nobody, and leaves no trace that others would have to look at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_woken_for_tasks_that_nobody_watches() {
    let database = database().await;
    let (writer, other) = (Node::join(database.url(), LONG_LEASE).await, Node::join(database.url(), LONG_LEASE).await);
    let session = database.session().await;
    let (quiet, watched) = (task("quiet"), task("watched"));
    for one in [&quiet, &watched] {
        writer.store.append(creation(one)).await.unwrap();
    }
    let heard = Arc::new(AtomicBool::new(false));
    let waiting = {
        let (heard, cluster) = (Arc::clone(&heard), Arc::clone(&other.cluster));
        tokio::spawn(async move {
            loop {
                if let Wakeup::Tasks(tasks) = cluster.next_wakeup().await {
                    heard.store(true, Ordering::SeqCst);
                    return tasks;
                }
            }
        })
    };
    for seq in 2..20 {
        writer.store.append(pieces(&quiet, seq, seq)).await.unwrap();
    }
    let told = "SELECT max(told) FROM writers";
    assert_eq!(session.query_one(told, &[]).await.unwrap().get::<_, i64>(0), 0);
    assert!(!heard.load(Ordering::SeqCst));
    other.cluster.watch(&watched.id).await.unwrap();
    writer.store.append(pieces(&watched, 2, 2)).await.unwrap();
    assert_eq!(waiting.await.unwrap(), [(watched.id.clone(), 2)]);
    assert!(session.query_one(told, &[]).await.unwrap().get::<_, i64>(0) > 0);
}

/// A release is no entry, and streams at other nodes wait for it all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_are_woken_for_a_task_that_is_released() {
    let database = database().await;
    let (holder, other) = (Node::join(database.url(), LONG_LEASE).await, Node::join(database.url(), LONG_LEASE).await);
    let (watched, quiet) = (task("watched"), task("quiet"));
    for one in [&watched, &quiet] {
        holder.store.append(creation(one)).await.unwrap();
        holder.store.append(change(one, 2, TaskState::AuthRequired, at(2))).await.unwrap();
    }
    other.cluster.watch(&watched.id).await.unwrap();
    for one in [&quiet, &watched] {
        holder.cluster.release(&one.id, false).await.unwrap();
    }
    loop {
        if let Wakeup::Tasks(tasks) = other.cluster.next_wakeup().await {
            assert_eq!(tasks, [(watched.id.clone(), 2)]);
            break;
        }
    }
}

/// A task is taken back while another node watches it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_are_woken_for_a_task_that_is_taken_back() {
    let database = database().await;
    let (writer, other) = (Node::join(database.url(), LONG_LEASE).await, Node::join(database.url(), LONG_LEASE).await);
    let watched = task("watched");
    writer.store.append(creation(&watched)).await.unwrap();
    other.cluster.watch(&watched.id).await.unwrap();
    assert!(!other.store.withdraw(&watched.id, None).await.unwrap(), "another node holds it");
    assert!(writer.store.withdraw(&watched.id, None).await.unwrap());
    loop {
        if let Wakeup::Tasks(tasks) = other.cluster.next_wakeup().await {
            assert!(tasks.iter().any(|(task, _)| *task == watched.id));
            break;
        }
    }
    assert_eq!(other.store.find_any("watched").await.unwrap(), None);
}
