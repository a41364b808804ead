//! Nodes join and leave a database, and one that wants it for itself does neither.

use std::time::Duration;

use chancery_core::{Store, TaskHolder};
use chancery_protocol::TaskState;
use chancery_store::{PostgresOptions, PostgresStore};

use super::{LONG_LEASE, Node, SHORT_LEASE, database};
use crate::contract::recording::{entries, scribe, stand};
use crate::contract::sample::{at, change, creation, listed_ids, task};

async fn close(node: Node) {
    node.store.close(Duration::from_secs(20)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_join_have_numbers_of_their_own_and_shut_nobody_out() {
    let database = database().await;
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(Node::join(database.url(), LONG_LEASE).await);
    }
    assert!(nodes.is_sorted_by_key(Node::number));
    for (number, node) in nodes.iter().enumerate() {
        let own = task(&format!("t{number}"));
        node.store.append(creation(&own)).await.unwrap();
        node.store.append(change(&own, 2, TaskState::Working, at(2))).await.unwrap();
        node.store.check().await.unwrap();
        assert_eq!(node.cluster.holder(&own.id).await.unwrap(), Some(TaskHolder::ThisNode));
        assert_eq!(nodes[(number + 1) % 3].cluster.holder(&own.id).await.unwrap(), Some(TaskHolder::OtherNode(node.number())));
    }
    assert_eq!(listed_ids(&*nodes[0].store).await.len(), 3);
    assert_eq!(nodes[0].cluster.holder(&"none".into()).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_the_database_for_itself_and_members_refuse_each_other_in_words() {
    let database = database().await;
    let owner = database.open().await;
    assert!(owner.cluster().is_none());
    let refused = PostgresStore::join(PostgresOptions::at(database.url())).await.unwrap_err().to_string();
    assert!(refused.contains("has this database for itself") && refused.contains("stop that node"), "{refused}");
    owner.append(creation(&task("t"))).await.unwrap();
    owner.close(Duration::from_secs(20)).await.unwrap();

    let member = Node::join(database.url(), LONG_LEASE).await;
    let refused = PostgresStore::open(PostgresOptions::at(database.url())).await.unwrap_err().to_string();
    assert!(refused.contains("1 nodes share this database") && refused.contains("stop them first"), "{refused}");
    member.store.append(creation(&task("of the member"))).await.unwrap();
    member.cluster.leave().await.unwrap();
    close(member).await;
    let owner = database.open().await;
    owner.append(change(&task("t"), 2, TaskState::Completed, at(2))).await.unwrap();
    owner.append(change(&task("of the member"), 2, TaskState::Completed, at(2))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_joins_once_the_lease_of_a_killed_owner_is_over_and_goes_on_with_its_turns() {
    let database = database().await;
    let options = PostgresOptions { lease_ms: 500, ..PostgresOptions::at(database.url()) };
    let owner = PostgresStore::open(options).await.unwrap();
    owner.append(creation(&task("running"))).await.unwrap();
    let parked = task("parked");
    owner.append(creation(&parked)).await.unwrap();
    owner.append(change(&parked, 2, TaskState::InputRequired, at(2))).await.unwrap();
    assert!(PostgresStore::join(PostgresOptions::at(database.url())).await.is_err(), "it renews its lease");
    // As after a kill: nobody renews the lease any more.
    let session = database.session().await;
    session.batch_execute("UPDATE nodes SET life = gen_random_uuid()").await.unwrap();
    let member = loop {
        match PostgresStore::join(PostgresOptions::at(database.url())).await {
            Ok(member) => break member,
            Err(refused) => assert!(refused.to_string().contains("for itself"), "{refused}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let cluster = member.cluster().unwrap();
    let taken = cluster.take_released(10).await.unwrap();
    assert_eq!(taken.iter().map(|stored| stored.task.id.as_str()).collect::<Vec<_>>(), ["running"]);
    assert_eq!(cluster.holder(&parked.id).await.unwrap(), Some(TaskHolder::Nobody));
    let refused = owner.append(creation(&task("late"))).await.unwrap_err();
    assert!(refused.to_string().contains("another node opened this database later"), "{refused}");
    assert_eq!(member.find_any("late").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_different_roles_do_not_join_each_other() {
    let database = database().await;
    let _member = Node::join(database.url(), LONG_LEASE).await;
    let role = format!("role_{}", uuid::Uuid::now_v7().simple());
    let session = database.session().await;
    session.batch_execute(&format!("CREATE ROLE {role} SUPERUSER LOGIN")).await.unwrap();
    let url = database.url().replace("postgres://postgres@", &format!("postgres://{role}@"));
    let refused = PostgresStore::join(PostgresOptions::at(url)).await.unwrap_err().to_string();
    assert!(refused.contains(&role) && refused.contains("give all nodes of a cluster one role"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_leaves_hands_over_what_it_holds_and_makes_nothing_more() {
    let database = database().await;
    let (leaving, staying) = (Node::join(database.url(), LONG_LEASE).await, Node::join(database.url(), LONG_LEASE).await);
    let (running, parked, ended) = (task("running"), task("parked"), task("ended"));
    for one in [&running, &parked, &ended] {
        leaving.store.append(creation(one)).await.unwrap();
    }
    leaving.store.append(change(&parked, 2, TaskState::InputRequired, at(2))).await.unwrap();
    leaving.store.append(change(&ended, 2, TaskState::Completed, at(2))).await.unwrap();
    assert!(!staying.renew().await.has_released_tasks);
    leaving.cluster.leave().await.unwrap();
    assert!(leaving.store.append(creation(&task("late"))).await.is_err());
    assert_eq!(leaving.cluster.take(&parked.id).await.unwrap(), Some(TaskHolder::Nobody));
    leaving.store.decide(crate::contract::sample::decision("d", None)).await.unwrap();
    let news = staying.renew().await;
    assert!(news.has_released_tasks && news.expired.is_empty());
    let taken = staying.cluster.take_released(10).await.unwrap();
    assert_eq!(taken.iter().map(|stored| stored.task.id.as_str()).collect::<Vec<_>>(), ["running"]);
    assert_eq!(staying.cluster.take(&parked.id).await.unwrap(), Some(TaskHolder::ThisNode));
    assert_eq!(staying.cluster.take(&ended.id).await.unwrap(), Some(TaskHolder::Nobody));
    assert!(!staying.renew().await.has_released_tasks);
    close(leaving).await;
    assert_eq!(staying.store.find_any("late").await.unwrap(), None);
    staying.store.append(change(&running, 2, TaskState::Completed, at(2))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_a_member_that_closes_ends_its_wake_ups_and_its_writer() {
    let database = database().await;
    let node = Node::join(database.url(), SHORT_LEASE).await;
    let waiting = {
        let cluster = std::sync::Arc::clone(&node.cluster);
        tokio::spawn(async move { while cluster.next_wakeup().await != chancery_core::Wakeup::Closed {} })
    };
    node.store.append(creation(&task("t"))).await.unwrap();
    node.store.close(Duration::from_secs(20)).await.unwrap();
    waiting.await.unwrap();
    let session = database.session().await;
    let open = "SELECT count(*) FROM writers WHERE NOT closed";
    assert_eq!(session.query_one(open, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_with_a_record_write_a_book_each() {
    let database = database().await;
    let join = async || {
        let options = PostgresOptions::at(database.url());
        PostgresStore::join_recording(options, Some(scribe())).await.unwrap()
    };
    let (one, two) = (join().await, join().await);
    for number in 0..20 {
        let (first, second) = (task(&format!("one-{number}")), task(&format!("two-{number}")));
        let (first, second) = futures::join!(one.append(creation(&first)), two.append(creation(&second)));
        first.unwrap();
        second.unwrap();
    }
    for store in [&one, &two] {
        stand(store).await.unwrap();
        assert_eq!(entries(store).await.len(), 20);
    }
}
