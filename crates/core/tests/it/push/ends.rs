//! F2: the process ends at a chosen point, over a real database: after an event was kept and before its lane is claimed, after a 2xx and
//! before that is kept, while it is being kept, and while a backlog is put together. What comes next sends one copy at most.
//!
//! A commit is whole or not there, which the store's own tests show with kills in the middle of writes: so "while" is both sides of it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::Store;
use chancery_core::notify::{Bounds, EngineConfig};
use chancery_store::{SqliteOptions, SqliteStore};

use crate::push::ending_outbox::{Doing, EndingOutbox, Side};
use crate::push::network::Network;
use crate::push::push_plane::{PushPlane, config};

const HOOK: &str = "https://hooks.example/a";
const BOUND: Duration = Duration::from_secs(60);

fn open(folder: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(folder.join("chancery.db"), SqliteOptions::default()).unwrap())
}

/// What is told of: entries one by one, pieces put together, or the task as it is instead of what led there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    Entries,
    /// With entries between them that are not for the webhook.
    FollowUps,
    Pieces,
    Picture,
}

impl Story {
    async fn happen(self, push_plane: &PushPlane) {
        match self {
            Self::Entries => drop(push_plane.task("3", HOOK).await),
            Self::FollowUps => {
                let task = push_plane.task("0 0 ask", HOOK).await;
                push_plane.send("0 0 ask", Some(task.id.clone()), None, false).await;
            }
            Self::Pieces => drop(push_plane.task("30", HOOK).await),
            Self::Picture => {
                let task = push_plane.task("0 0 ask", HOOK).await;
                for _ in 0..9 {
                    push_plane.send("1 0 ask", Some(task.id.clone()), None, false).await;
                }
            }
        }
    }
}

/// Ends a process there and lets the next one go on. Answers how many copies were sent, and whether the end came at all.
async fn copies(story: Story, doing: Doing, side: Side, well: usize) -> (usize, bool) {
    let folder = tempfile::tempdir().unwrap();
    let network = Network::kind();
    // The lease outlasts the test: nobody has to wait for it.
    let mut config = EngineConfig { bounds: Bounds { backlog_events: 8, ..Bounds::default() }, ..config() };
    config.notify.lease_ms = 600_000;
    config.notify.barrier_ms = 0;
    let store = open(folder.path());
    let ending = EndingOutbox::new(store.clone(), doing, side, well);
    let push_plane = PushPlane::built(store.clone(), ending.clone(), network.clone(), config.clone());
    // Everything has happened before the first is told, so that there is a backlog.
    story.happen(&push_plane).await;
    let engine = push_plane.start();
    tokio::select! {
        () = ending.ended.cancelled() => {}
        drained = push_plane.drained(BOUND) => assert!(drained),
    }
    // The last of all may be kept, and seen to be, a moment before its answer does not come.
    let ended = tokio::time::timeout(BOUND / 10, ending.ended.cancelled()).await.is_ok();
    engine.abort();
    push_plane.engine.abandon();
    drop(engine.await);
    store.close(BOUND).await.unwrap();
    drop((push_plane, ending, store));

    let store = open(folder.path());
    let push_plane = PushPlane::built(store.clone(), store, network.clone(), config);
    push_plane.start();
    assert!(push_plane.drained(BOUND).await, "{story:?} {doing:?} {side:?} {well}: {:?}", push_plane.lanes().await);
    let point = format!("{story:?} {doing:?} {side:?} {well}");
    let mut bodies: HashMap<Arc<str>, Arc<[u8]>> = HashMap::new();
    let (mut next, mut copies) = (1, 0);
    for seen in network.seen() {
        assert!(seen.taken, "{point}: everybody takes everything");
        let known = bodies.insert(seen.id.clone(), seen.body.clone());
        copies += usize::from(known.is_some());
        assert!(known.is_none_or(|known| known == seen.body), "{point}: two bodies under {}", seen.id);
        // The entry between two answers is what the caller said, which is no news to it.
        let skipped = u64::from(story == Story::FollowUps && seen.from == next + 1);
        let fits = seen.from <= next + skipped && seen.to + 1 >= next;
        assert!(fits, "{point}: {} to {} came where {next} was next", seen.from, seen.to);
        next = seen.to + 1;
    }
    let lane = push_plane.lanes().await.remove(0);
    assert_eq!((next, lane.cursor.head), (lane.cursor.tail + 1, lane.cursor.tail + 1), "{point}: not everything was told");
    (copies, ended)
}

#[tokio::test]
async fn wherever_a_process_ends_the_next_one_sends_one_copy_or_none() {
    for (story, doing, most) in [
        (Story::Entries, Doing::Claim, 1),
        (Story::Entries, Doing::Ack, 5),
        (Story::FollowUps, Doing::Ack, 3),
        (Story::Pieces, Doing::Ack, 3),
        (Story::Pieces, Doing::Pin, 1),
        (Story::Picture, Doing::Ack, 1),
        (Story::Picture, Doing::Pin, 1),
    ] {
        for (side, well) in [Side::Before, Side::After].into_iter().flat_map(|side| (0..most).map(move |well| (side, well))) {
            let (copies, ended) = copies(story, doing, side, well).await;
            assert!(ended, "{story:?} {doing:?} {side:?} {well}: it never came to that point");
            // A copy is sent where a 2xx was not kept, and nowhere else.
            let expected = usize::from(doing == Doing::Ack && side == Side::Before);
            assert_eq!(copies, expected, "{story:?} {doing:?} {side:?} {well}");
        }
    }
}
