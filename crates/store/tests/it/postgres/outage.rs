//! A database that is away: calls wait as long as their patience, then callers are told to come back, and nothing is half done.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chancery_core::{Appended, Names, Store};
use chancery_store::{PostgresOptions, PostgresStore};

use super::load::{KnownTask, KnownTasks, Load, faults, open_recording, says_come_back};
use super::proxy::FaultyProxy;
use crate::contract::sample::{ada, creation, pieces, task};
use crate::server::{PostgresServer, TestDatabase};

async fn database() -> TestDatabase {
    tokio::task::spawn_blocking(TestDatabase::make).await.unwrap()
}

fn patient(url: String, patience_ms: u64) -> PostgresOptions {
    PostgresOptions { patience_ms, ..PostgresOptions::at(url) }
}

/// Waits until the store says of itself that it is ready, or that it is not.
async fn until_ready(store: &dyn Store, ready: bool) {
    while store.check().await.is_ok() != ready {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_is_away_callers_are_told_to_come_back_and_nothing_is_written_later() {
    let database = database().await;
    let proxy = FaultyProxy::to(database.port()).await;
    let store = PostgresStore::open(patient(database.url_by(proxy.port()), 300)).await.unwrap();
    let known = task("known");
    store.append(creation(&known)).await.unwrap();
    proxy.set_away(true);
    until_ready(&store, false).await;
    let refused = store.append(creation(&task("refused"))).await.unwrap_err();
    assert!(says_come_back(&refused), "{refused:?}");
    let refused = store.find(&ada(), "known", Names::Server).await.unwrap_err();
    assert!(says_come_back(&refused), "{refused:?}");
    assert!(says_come_back(&store.append(pieces(&known, 2, 3)).await.unwrap_err()));

    proxy.set_away(false);
    until_ready(&store, true).await;
    store.append(pieces(&known, 2, 4)).await.unwrap();
    assert_eq!(store.find_any("refused").await.unwrap(), None, "whoever was told to come back finds nothing made meanwhile");
    assert_eq!(store.find_any("known").await.unwrap().unwrap().progress.seq, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_for_a_database_that_comes_back_in_time() {
    let database = database().await;
    let proxy = FaultyProxy::to(database.port()).await;
    let store = Arc::new(PostgresStore::open(patient(database.url_by(proxy.port()), 60_000)).await.unwrap());
    store.append(creation(&task("known"))).await.unwrap();
    proxy.set_away(true);
    let append = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.append(creation(&task("waited"))).await })
    };
    let find = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.find_any("known").await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!append.is_finished() && !find.is_finished());
    proxy.set_away(false);
    assert_eq!(append.await.unwrap().unwrap(), Appended::Recorded);
    assert!(find.await.unwrap().unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_can_be_closed_while_its_database_is_away() {
    let database = database().await;
    let proxy = FaultyProxy::to(database.port()).await;
    let store = PostgresStore::open(patient(database.url_by(proxy.port()), 200)).await.unwrap();
    proxy.set_away(true);
    store.append(creation(&task("refused"))).await.unwrap_err();
    store.close(Duration::from_secs(30)).await.unwrap();
    assert_eq!(store.append(creation(&task("later"))).await.unwrap_err().to_string(), "the store is closed");
    assert_eq!(store.find_any("later").await.unwrap_err().to_string(), "the store is closed");
    assert_eq!(store.check().await.unwrap_err().to_string(), "the store is closed");
}

const CRASHES: usize = 5;

/// The server ends as it does in a crash, and comes back, while writers go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_of_the_database_under_load_lose_nothing_that_was_acknowledged() {
    let mut server = tokio::task::spawn_blocking(|| PostgresServer::start(true)).await.unwrap();
    let options = PostgresOptions { answer_timeout_ms: 1_000, ..patient(server.url("postgres"), 60_000) };
    let store = open_recording(options).await;
    let load = Load::start(&store, "crash", 12);
    for _ in 0..CRASHES {
        load.control.more(60).await;
        server = tokio::task::spawn_blocking(move || {
            server.stop_at_once();
            server.go_on();
            server
        })
        .await
        .unwrap();
    }
    load.control.more(60).await;
    assert_eq!(load.control.refused.load(Ordering::SeqCst), 0, "every call waited until the database was back");
    let known = load.stop().await;
    store.close(Duration::from_secs(20)).await.unwrap();
    let faults = faults(&server.url("postgres"), &known).await;
    assert!(faults.is_empty(), "{faults:#?}");
}

/// With less patience than the database is away, callers get errors. What they asked for was made or not, and is whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_impatient_callers_asked_for_was_made_or_not_and_never_in_part() {
    let database = database().await;
    let proxy = FaultyProxy::to(database.port()).await;
    let store = open_recording(patient(database.url_by(proxy.port()), 1_000)).await;
    let load = Load::start(&store, "hasty", 12);
    for _ in 0..3 {
        load.control.more(30).await;
        proxy.set_away(true);
        let refused = load.control.refused.load(Ordering::SeqCst);
        while load.control.refused.load(Ordering::SeqCst) < refused + 12 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        proxy.set_away(false);
    }
    load.control.more(30).await;
    let known = load.stop().await;
    store.close(Duration::from_secs(20)).await.unwrap();
    let faults = faults(&database.url(), &known).await;
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The oracle has to find a store that answers before it commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oracle_finds_answers_that_came_before_the_commit() {
    let database = database().await;
    let proxy = FaultyProxy::to(database.port()).await;
    let sound = open_recording(patient(database.url_by(proxy.port()), 150)).await;
    let hasty: Arc<dyn Store> = Arc::new(chancery_testkit::HookedStore::answering_before_commit(Arc::clone(&sound)));
    proxy.set_away(true);
    let mut known = KnownTasks::new();
    for id in ["a", "b"] {
        hasty.append(creation(&task(id))).await.unwrap();
        known.insert(id.to_owned(), KnownTask { acknowledged: 1, in_doubt: Vec::new() });
    }
    sound.close(Duration::from_secs(20)).await.unwrap();
    proxy.set_away(false);
    let faults = faults(&database.url(), &known).await;
    assert!(faults.iter().any(|fault| fault.contains("was acknowledged")), "{faults:?}");
}
