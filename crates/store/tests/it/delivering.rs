//! F10: deliveries over a database that somebody else holds for longer than we wait. Senders are told so, nothing is taken for delivered that
//! could not be kept as such, and afterwards nothing is missing.

#[allow(dead_code, reason = "core's own tests use the rest")]
mod network;
#[allow(dead_code, reason = "core's own tests use the rest")]
mod push_plane;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chancery_store::{SqliteOptions, SqliteStore};
use rusqlite::Connection;

use self::network::{Act, Network};
use self::push_plane::{PushPlane, config};

const HOOK: &str = "https://hooks.example/";
const BOUND: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_is_held_by_another_nothing_counts_as_delivered_and_afterwards_nothing_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chancery.db");
    let store = Arc::new(SqliteStore::open(&file, SqliteOptions::default()).unwrap());
    let other = Arc::new(Mutex::new(Connection::open(&file).unwrap()));
    // The second entry arrives, and before that can be kept somebody else begins to write.
    let script = {
        let (other, mut is_held) = (Arc::clone(&other), false);
        move |_: &_, seq: u64, _| {
            if seq == 2 && !std::mem::replace(&mut is_held, true) {
                other.lock().unwrap().execute_batch("BEGIN IMMEDIATE").unwrap();
            }
            Act::Answer(200)
        }
    };
    let mut config = config();
    // Short exchanges make short leases: what could not be kept is sent again soon.
    (config.exchange, config.notify.lease_ms, config.notify.barrier_ms) = (Duration::from_millis(100), 1, 0);
    let push_plane = PushPlane::built(store.clone(), store, Network::new(script), config);
    let task = push_plane.task("3", HOOK).await;
    push_plane.start();
    let arrives = async {
        while !push_plane.network.taken().iter().any(|seen| seen.to == 2) {
            tokio::time::sleep(Duration::from_millis(5)).await
        }
    };
    tokio::time::timeout(BOUND, arrives).await.unwrap();

    let refused = push_plane.try_send("0", None, Some(HOOK), true).await.unwrap_err();
    assert!(push_plane.lane(&task.id).await.cursor.head == 2, "it arrived, but nobody could write that down: {refused:?}");
    assert!(push_plane.network.seen().iter().all(|seen| seen.to <= 2), "and so the next one has to wait");
    other.lock().unwrap().execute_batch("ROLLBACK").unwrap();

    assert!(push_plane.drained(BOUND).await, "{:?}", push_plane.lanes().await);
    let seen = push_plane.network.seen();
    let order: Vec<u64> = seen.iter().map(|seen| seen.to).collect();
    let mut once = order.clone();
    once.dedup();
    assert_eq!(once, (1..=5).collect::<Vec<_>>(), "{order:?}");
    let second: Vec<_> = seen.iter().filter(|seen| seen.to == 2).collect();
    assert!(second.len() == 2 && second[0].body == second[1].body && second[0].id == second[1].id, "one copy: {order:?}");
    push_plane.task("0", HOOK).await;
    assert!(push_plane.drained(BOUND).await, "work goes on");
    assert_eq!(push_plane.lanes().await.len(), 2, "what was refused never was");
}
