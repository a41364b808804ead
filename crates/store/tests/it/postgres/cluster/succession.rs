//! A node whose lease has ended gets one successor, which takes its tasks and shuts it out.

use std::collections::BTreeSet;
use std::time::Duration;

use chancery_core::{LeaseRenewal, Store, StoreTrouble, TaskHolder};
use chancery_protocol::TaskState;

use super::{Node, SHORT_LEASE, database};
use crate::contract::sample::{at, change, completed, creation, decision, pieces, task};

async fn join(database: &crate::server::TestDatabase) -> Node {
    Node::join(database.url(), SHORT_LEASE).await
}

/// All that a node held, in pages.
async fn inherited(node: &Node, from: &Node, page: usize) -> Vec<String> {
    let mut taken = Vec::new();
    loop {
        let page = node.cluster.take_inherited(from.number(), page).await.unwrap();
        if page.is_empty() {
            return taken;
        }
        taken.extend(page.iter().map(|stored| stored.task.id.to_string()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_candidates_one_succeeds_and_nothing_of_the_dead_node_gets_in() {
    let database = database().await;
    let dead = join(&database).await;
    let candidates = [join(&database).await, join(&database).await, join(&database).await];
    let parked = task("parked");
    for number in 0..7 {
        dead.store.append(creation(&task(&format!("t{number}")))).await.unwrap();
    }
    dead.store.append(creation(&parked)).await.unwrap();
    dead.store.append(change(&parked, 2, TaskState::InputRequired, at(2))).await.unwrap();
    completed(&*dead.store, "ended", 3).await;
    // A candidate that is late itself does not succeed, so they may have to try more than once.
    let mut successors = BTreeSet::new();
    while successors.is_empty() {
        let tries = candidates.iter().map(async |node| {
            node.renew().await;
            (node.number(), node.cluster.succeed(dead.number()).await.unwrap())
        });
        let answers = futures::future::join_all(tries).await;
        successors.extend(answers.into_iter().filter(|(_, is_successor)| *is_successor).map(|(node, _)| node));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(successors.len(), 1, "{successors:?}");
    let successor = candidates.iter().find(|node| successors.contains(&node.number())).unwrap();
    for node in candidates.iter().filter(|node| node.number() != successor.number()) {
        node.renew().await;
        assert!(!node.cluster.succeed(dead.number()).await.unwrap());
        assert!(inherited(node, &dead, 10).await.is_empty());
    }
    assert_eq!(successor.renew().await.inherited, [dead.number()]);

    // The zombie goes on, and nothing of it gets in.
    let refused = dead.store.append(pieces(&task("t0"), 2, 2)).await.unwrap_err();
    assert!(refused.to_string().contains("it has to join again"), "{refused}");
    assert_eq!(refused.trouble, StoreTrouble::Unavailable);
    dead.store.append(creation(&task("late"))).await.unwrap_err();
    dead.store.decide(decision("late", None)).await.unwrap_err();
    dead.cluster.release(&parked.id, true).await.unwrap_err();
    dead.cluster.take(&parked.id).await.unwrap_err();
    dead.store.check().await.unwrap_err();
    let by = successor.number();
    assert_eq!(dead.cluster.renew().await.unwrap(), LeaseRenewal::TakenOver { by });

    let taken = inherited(successor, &dead, 3).await;
    assert_eq!(taken, ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "parked"]);
    assert!(successor.renew().await.inherited.is_empty());
    successor.store.append(pieces(&task("t0"), 2, 2)).await.unwrap();
    assert_eq!(successor.store.find_any("late").await.unwrap(), None);
    let counts = "SELECT node, tasks FROM ended_counts WHERE tasks <> 0";
    let counts = database.session().await.query(counts, &[]).await.unwrap();
    assert_eq!(counts.iter().map(|row| (row.get(0), row.get(1))).collect::<Vec<(i64, i64)>>(), [(by.0, 1)]);
}

/// As a process that is stopped inside a batch: its session holds the row of its writer, and no timeout ends it. A session of the
/// same name in another database is somebody else's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_stopped_inside_a_transaction_does_not_hold_its_successor_up() {
    let database = database().await;
    let (dead, next) = (join(&database).await, join(&database).await);
    let held = task("held");
    dead.store.append(creation(&held)).await.unwrap();
    let session = database.session().await;
    let name =
        "SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE $1 LIMIT 1";
    let like = format!("chancery node {} of %", dead.number());
    let name: String = session.query_one(name, &[&like]).await.unwrap().get(0);
    let named = |url: String| format!("{url}?application_name={}", name.replace(' ', "%20"));
    let stopped = crate::server::session(&named(database.url())).await;
    let stranger = crate::server::session(&named(crate::server::url(database.port(), "postgres"))).await;
    let begin = format!(
        "SET idle_in_transaction_session_timeout = 0; BEGIN; UPDATE writers SET batch = batch + 1 WHERE node = {0};
         UPDATE tasks SET seq = 99 WHERE node = {0}",
        dead.number()
    );
    stopped.batch_execute(&begin).await.unwrap();
    next.succeed(dead.number()).await;
    assert_eq!(inherited(&next, &dead, 10).await, ["held"]);
    assert!(stopped.batch_execute("COMMIT").await.is_err(), "it was ended");
    stranger.batch_execute("SELECT 1").await.unwrap();
    assert_eq!(next.store.find_any("held").await.unwrap().unwrap().progress.seq, 1);
    next.store.append(pieces(&held, 2, 2)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_successor_had_not_taken_yet_goes_to_its_own_successor() {
    let database = database().await;
    let (first, second, third) = (join(&database).await, join(&database).await, join(&database).await);
    for id in ["a", "b", "c"] {
        first.store.append(creation(&task(id))).await.unwrap();
    }
    second.store.append(creation(&task("own"))).await.unwrap();
    let keep_third = async {
        loop {
            third.renew().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let succession = async {
        second.succeed(first.number()).await;
        assert_eq!(second.cluster.take_inherited(first.number(), 1).await.unwrap().len(), 1);
    };
    tokio::select! {
        () = succession => {}
        () = keep_third => {}
    }
    third.succeed(second.number()).await;
    let news = third.renew().await;
    assert_eq!(news.inherited, [first.number(), second.number()]);
    assert_eq!(inherited(&third, &first, 10).await, ["b", "c"]);
    assert_eq!(inherited(&third, &second, 10).await, ["a", "own"]);
    assert!(third.renew().await.inherited.is_empty());
}

/// The successor stopped between becoming it and closing the other's writer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_that_was_broken_off_is_finished_before_tasks_are_taken() {
    let database = database().await;
    let (dead, next) = (join(&database).await, join(&database).await);
    dead.store.append(creation(&task("t"))).await.unwrap();
    let session = database.session().await;
    let claim = "UPDATE nodes SET successor = $1 WHERE node = $2";
    session.execute(claim, &[&next.number().0, &dead.number().0]).await.unwrap();
    assert_eq!(next.renew().await.inherited, [dead.number()]);
    assert_eq!(inherited(&next, &dead, 10).await, ["t"]);
    dead.store.append(pieces(&task("t"), 2, 2)).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_that_leaves_hands_back_what_it_had_not_taken() {
    let database = database().await;
    let (dead, leaving, last) = (join(&database).await, join(&database).await, join(&database).await);
    dead.store.append(creation(&task("t"))).await.unwrap();
    leaving.succeed(dead.number()).await;
    leaving.cluster.leave().await.unwrap();
    last.succeed(dead.number()).await;
    assert_eq!(inherited(&last, &dead, 10).await, ["t"]);
    assert_eq!(last.cluster.holder(&"t".into()).await.unwrap(), Some(TaskHolder::ThisNode));
}
