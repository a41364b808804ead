//! The fence: a later owner closes the writer's row, and nothing of the former owner gets in from then on.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::{Store, StoreTrouble};
use chancery_store::{PostgresOptions, PostgresStore};

use super::load::{Load, faults, open_recording};
use super::proxy::FaultyProxy;
use crate::contract::sample::{at, change, creation, task};
use crate::server::TestDatabase;
use chancery_protocol::TaskState;

async fn database() -> TestDatabase {
    tokio::task::spawn_blocking(TestDatabase::make).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_former_owner_gets_in_after_a_takeover() {
    let database = database().await;
    let former = database.open().await;
    let (open, other) = (task("open"), task("other"));
    former.append(creation(&open)).await.unwrap();
    let owner = database.open().await;
    let late = [creation(&task("late")), change(&open, 2, TaskState::Completed, at(2))];
    for append in late {
        let refused = former.append(append).await.unwrap_err();
        assert!(refused.to_string().contains("another node opened this database later"), "{refused}");
        assert_eq!(refused.trouble, StoreTrouble::Unavailable);
    }
    let refused = former.decide(crate::contract::sample::decision("late", None)).await.unwrap_err();
    assert!(refused.to_string().contains("another node opened this database later"), "{refused}");
    assert!(former.check().await.is_err(), "it is not ready");
    assert_eq!(owner.find_any("late").await.unwrap(), None);
    assert_eq!(owner.find_any("open").await.unwrap().unwrap().progress.seq, 1);
    assert!(owner.decisions(10).await.unwrap().is_empty());
    owner.append(creation(&other)).await.unwrap();
    owner.check().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_is_closed_by_hand_shuts_the_writer_out() {
    let database = database().await;
    let store = database.open().await;
    store.append(creation(&task("before"))).await.unwrap();
    database.session().await.batch_execute("UPDATE writers SET closed = true").await.unwrap();
    store.append(creation(&task("after"))).await.unwrap_err();
    assert_eq!(store.find_any("after").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_lost_confirmed_commits_is_found_out() {
    let database = database().await;
    let store = database.open().await;
    for id in ["a", "b", "c"] {
        store.append(creation(&task(id))).await.unwrap();
    }
    // As a standby that was behind has it after a failover.
    database.session().await.batch_execute("UPDATE writers SET batch = 1 WHERE NOT closed").await.unwrap();
    let refused = store.append(creation(&task("d"))).await.unwrap_err();
    assert!(refused.to_string().contains("the database lost commits that it had confirmed"), "{refused}");
    assert!(refused.to_string().contains("batch 3 was confirmed, and the newest it has is 1"), "{refused}");
    assert_eq!(store.find_any("d").await.unwrap(), None);
}

/// Owners follow each other under load, each while the one before it still writes. Answers what is wrong with the database then, and
/// how many appends of former owners were acknowledged after their takeover. Without the fence there is no record either: its
/// numbers would keep a former owner out too.
async fn takeovers(fenced: bool, takeovers: usize) -> (Vec<String>, u64) {
    let database = database().await;
    let mut known = super::load::KnownTasks::new();
    let mut late = 0;
    let mut previous: Option<(Arc<dyn Store>, Load)> = None;
    for number in 0..takeovers {
        let proxy = FaultyProxy::to(database.port()).await;
        if !fenced {
            proxy.take_fence_out();
        }
        let options = PostgresOptions { patience_ms: 2_000, ..PostgresOptions::at(database.url_by(proxy.port())) };
        let store = if fenced { open_recording(options).await } else { Arc::new(PostgresStore::open(options).await.unwrap()) };
        if let Some((former, load)) = previous.take() {
            let acknowledged = &load.control.acknowledged;
            // What was under way at the takeover has been answered once another write of the former owner is.
            let probe = format!("probe of {number}");
            late += u64::from(former.append(creation(&task(&probe))).await.is_ok());
            let before = acknowledged.load(std::sync::atomic::Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(200)).await;
            late += acknowledged.load(std::sync::atomic::Ordering::SeqCst) - before;
            known.extend(load.stop().await);
        }
        let load = Load::start(&store, &format!("owner-{number}"), 6);
        load.control.more(30).await;
        previous = Some((store, load));
    }
    if let Some((store, load)) = previous {
        known.extend(load.stop().await);
        store.close(Duration::from_secs(20)).await.unwrap();
    }
    let faults = if fenced { faults(&database.url(), &known).await } else { Vec::new() };
    (faults, late)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_that_follow_each_other_under_load_leave_one_whole_log() {
    let (faults, late) = takeovers(true, 5).await;
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(late, 0, "writes of former owners were acknowledged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_fence_the_oracle_finds_the_fault() {
    let (_, late) = takeovers(false, 5).await;
    assert!(late > 0, "no write of a former owner was acknowledged, so the other test shows nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_waits_for_the_batch_that_is_under_way() {
    let database = database().await;
    let former = PostgresStore::open(PostgresOptions::at(database.url())).await.unwrap();
    // A session in a transaction sees one picture of the others' state, so another one watches.
    let (session, watcher) = (database.session().await, database.session().await);
    former.append(creation(&task("first"))).await.unwrap();
    // A batch is held in its middle: somebody has the row that it needs next.
    session.batch_execute("BEGIN; LOCK TABLE log IN EXCLUSIVE MODE").await.unwrap();
    let former = Arc::new(former);
    let batch = {
        let former = Arc::clone(&former);
        tokio::spawn(async move { former.append(creation(&task("second"))).await })
    };
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE 'chancery node%'
                 AND datname = current_database()";
    while watcher.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let url = database.url();
    let taking = tokio::spawn(async move { PostgresStore::open(PostgresOptions::at(url)).await.unwrap() });
    let both = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while watcher.query_one(both, &[]).await.unwrap().get::<_, i64>(0) < 2 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    session.batch_execute("COMMIT").await.unwrap();
    batch.await.unwrap().unwrap();
    let owner = taking.await.unwrap();
    assert!(owner.find_any("second").await.unwrap().is_some(), "it was acknowledged, and the new owner has it");
}
