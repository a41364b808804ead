//! A subscription on a task where nothing happens costs nothing while nothing happens.

use std::time::Duration;

use chancery::agents::BuiltIn;
use chancery::config::TaskLimits;
use chancery_store::{MemoryStore, SqliteOptions, SqliteStore};

use super::costs::cpu_ticks;
use super::{Kept, serve};
use crate::support::bare_service::BareService;
use crate::support::server::Home;

const SUBSCRIPTIONS: usize = 200;
/// A tick is 10 ms. A poll a second of 200 readers would take far more than this.
const TICKS_MORE: u64 = 6;
const WATCHED_FOR: Duration = Duration::from_secs(3);

#[tokio::test]
async fn idle_subscriptions_take_no_processor_time() {
    let home = Home::new();
    let (server, line) = serve(&home, Kept::OnDisk, "");
    let mut parked = Vec::new();
    for _ in 0..20 {
        parked.push(line.send("ask").await["task"]["id"].take());
    }
    let spent = async || {
        let before = cpu_ticks(&server);
        // What is measured is what happens in a time, so time has to pass.
        tokio::time::sleep(WATCHED_FOR).await;
        cpu_ticks(&server) - before
    };
    let alone = spent().await;
    let mut subscriptions = Vec::new();
    for number in 0..SUBSCRIPTIONS {
        let mut events = line.subscribe(&parked[number % parked.len()]).await;
        events.next().await.unwrap().expect("a first event");
        subscriptions.push(events);
    }
    let watched = spent().await;
    println!("{alone} ticks alone, {watched} with {SUBSCRIPTIONS} idle subscriptions");
    assert!(watched <= alone + TICKS_MORE, "{alone} ticks alone, {watched} with {SUBSCRIPTIONS} idle subscriptions");
}

#[tokio::test]
async fn idle_subscriptions_never_ask_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let limits = TaskLimits { streams_per_caller: 1000, ..TaskLimits::default() };
    let sqlite = SqliteStore::open(folder.path().join("tasks.db"), SqliteOptions::default()).unwrap();
    let workshops = [
        BareService::new(MemoryStore::new(), BuiltIn::Conformance.runner(), limits.clone()),
        BareService::new(sqlite, BuiltIn::Conformance.runner(), limits),
    ];
    for bare_service in workshops {
        let mut readers = Vec::new();
        for _ in 0..SUBSCRIPTIONS {
            let parked = bare_service.send("ask").await;
            let mut subscription = bare_service.subscribe(&parked.id).await;
            subscription.next().await.expect("the task");
            readers.push(tokio::spawn(async move { subscription.next().await.is_ok() }));
        }
        let before = bare_service.store.reads();
        tokio::time::sleep(WATCHED_FOR).await;
        assert_eq!(bare_service.store.reads(), before, "nobody asked");
        assert!(readers.iter().all(|reader| !reader.is_finished()), "and everybody still listens");
        readers.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
