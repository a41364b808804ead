//! Connections that are cut around a commit: the writer finds out whether the batch is in, and sends it again if it is not.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::{Appended, Store};
use chancery_store::{PostgresOptions, PostgresStore};

use super::load::{Load, faults, open_recording};
use super::proxy::{CutPoint, FaultyProxy};
use crate::contract::sample::{creation, task};
use crate::server::TestDatabase;

const WRITERS: usize = 12;
const CUTS_AT_EACH_POINT: usize = 4;

/// Short times, so that a silent connection is given up soon.
fn by(database: &TestDatabase, proxy: &FaultyProxy) -> PostgresOptions {
    PostgresOptions {
        answer_timeout_ms: 500,
        idle_in_transaction_timeout_ms: 500,
        patience_ms: 30_000,
        ..PostgresOptions::at(database.url_by(proxy.port()))
    }
}

async fn database() -> TestDatabase {
    tokio::task::spawn_blocking(TestDatabase::make).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_at_any_point_of_a_batch_loses_nothing_and_writes_nothing_twice() {
    let database = database().await;
    let proxy = FaultyProxy::to(database.port()).await;
    let store = open_recording(by(&database, &proxy)).await;
    let load = Load::start(&store, "cut", WRITERS);
    for round in 0..CUTS_AT_EACH_POINT {
        for point in CutPoint::ALL {
            load.control.more(20).await;
            let before = proxy.cuts();
            proxy.cut(point, round);
            while proxy.cuts() == before {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    }
    load.control.more(50).await;
    assert_eq!(
        load.control.refused.load(std::sync::atomic::Ordering::SeqCst),
        0,
        "each batch was resolved within the callers' patience"
    );
    let known = load.stop().await;
    store.close(Duration::from_secs(20)).await.unwrap();
    let faults = faults(&database.url(), &known).await;
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(proxy.cuts(), CUTS_AT_EACH_POINT * CutPoint::ALL.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_in_doubt_is_answered_whether_it_was_in_or_not() {
    for (point, name) in [(CutPoint::AfterCommit, "in"), (CutPoint::BeforeCommit, "out")] {
        let database = database().await;
        let proxy = FaultyProxy::to(database.port()).await;
        let store = PostgresStore::open(by(&database, &proxy)).await.unwrap();
        store.append(creation(&task("first"))).await.unwrap();
        proxy.cut(point, 0);
        assert_eq!(store.append(creation(&task(name))).await.unwrap(), Appended::Recorded, "{point:?}");
        assert_eq!(proxy.cuts(), 1);
        let session = database.session().await;
        let batch: i64 = session.query_one("SELECT batch FROM writers WHERE NOT closed", &[]).await.unwrap().get(0);
        assert_eq!(batch, 2, "{point:?}: one batch for each of the two");
        store.append(creation(&task("last"))).await.unwrap();
        let tasks: i64 = session.query_one("SELECT count(*) FROM tasks", &[]).await.unwrap().get(0);
        assert_eq!(tasks, 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_of_a_batch_whose_row_was_closed_since_is_still_answered() {
    let database = Arc::new(database().await);
    let proxy = FaultyProxy::to(database.port()).await;
    let store = Arc::new(PostgresStore::open(by(&database, &proxy)).await.unwrap());
    store.append(creation(&task("first"))).await.unwrap();
    // The answer is swallowed, and the database is away until another owner has it.
    proxy.cut(CutPoint::AfterCommit, 0);
    let append = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.append(creation(&task("doubtful"))).await })
    };
    while proxy.cuts() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    proxy.set_away(true);
    let next = database.open().await;
    assert!(next.find_any("doubtful").await.unwrap().is_some());
    proxy.set_away(false);
    let answer = append.await.unwrap();
    assert!(matches!(answer, Ok(Appended::Recorded)), "it is in, so it is acknowledged: {answer:?}");
    let refused = store.append(creation(&task("late"))).await.unwrap_err();
    assert!(refused.to_string().contains("another node opened this database later"), "{refused}");
    assert_eq!(next.find_any("late").await.unwrap(), None);
}
