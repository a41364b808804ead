//! Calls for tasks that other nodes hold: each is answered once, or was not made.

use std::time::Duration;

use chancery_core::{
    Append, CallAnswer, ForwardedCall, ForwardedCallNumber, ForwardedCallState, Store, StoreTrouble, TaskHolder, Wakeup,
};
use chancery_protocol::TaskState;
use chancery_store::PostgresOptions;

use super::{LONG_LEASE, Node, SHORT_LEASE, database};
use crate::contract::sample::{at, change, creation, pieces, task};
use crate::postgres::proxy::{CutPoint, FaultyProxy};

fn call(id: &str, to: &Node) -> ForwardedCall {
    ForwardedCall { task: id.into(), to: to.number(), body: format!("call for {id}\0").into_bytes() }
}

fn answer(number: ForwardedCallNumber) -> CallAnswer {
    CallAnswer { number, body: b"done\0".to_vec() }
}

async fn two() -> (crate::server::TestDatabase, Node, Node) {
    let database = database().await;
    let (owner, asker) = (Node::join(database.url(), LONG_LEASE).await, Node::join(database.url(), LONG_LEASE).await);
    owner.store.append(creation(&task("t"))).await.unwrap();
    (database, owner, asker)
}

async fn until_woken(node: &Node, expected: Wakeup) {
    while node.cluster.next_wakeup().await != expected {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_for_the_holder_and_is_answered_with_the_append_that_it_is_about() {
    let (_database, owner, asker) = two().await;
    // What the start says is heard first.
    until_woken(&owner, Wakeup::ForwardedCall).await;
    let number = asker.cluster.forward(call("t", &owner)).await.unwrap().unwrap();
    until_woken(&owner, Wakeup::ForwardedCall).await;
    assert!(owner.renew().await.has_forwarded_calls);
    assert!(!asker.renew().await.has_forwarded_calls);
    let received = owner.cluster.received_calls(10).await.unwrap();
    assert_eq!(received.len(), 1);
    assert_eq!((received[0].number, received[0].from, received[0].task.as_str()), (number, asker.number(), "t"));
    assert_eq!(received[0].body, b"call for t\0");
    assert_eq!(asker.cluster.forwarded(number).await.unwrap(), ForwardedCallState::Waiting);

    let append = Append { answers: Some(answer(number)), ..pieces(&task("t"), 2, 3) };
    owner.store.append(append).await.unwrap();
    until_woken(&asker, Wakeup::ForwardedAnswer(number)).await;
    assert_eq!(asker.cluster.forwarded(number).await.unwrap(), ForwardedCallState::Answered(b"done\0".to_vec()));
    assert!(!asker.cluster.withdraw_forwarded(number).await.unwrap());
    assert!(owner.cluster.received_calls(10).await.unwrap().is_empty());

    // A second append for the same call is refused, and so is a second answer.
    let append = Append { answers: Some(answer(number)), ..pieces(&task("t"), 4, 4) };
    let refused = owner.store.append(append).await.unwrap_err();
    assert_eq!(refused.trouble, StoreTrouble::CallWithdrawn, "{refused}");
    assert!(!owner.cluster.answer(answer(number)).await.unwrap());
    assert_eq!(owner.store.find_any("t").await.unwrap().unwrap().progress.seq, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_answered_without_an_append_and_oldest_calls_come_first() {
    let (_database, owner, asker) = two().await;
    let mut numbers = Vec::new();
    for _ in 0..5 {
        numbers.push(asker.cluster.forward(call("t", &owner)).await.unwrap().unwrap());
    }
    let first = owner.cluster.received_calls(3).await.unwrap();
    assert_eq!(first.iter().map(|call| call.number).collect::<Vec<_>>(), numbers[..3]);
    for number in &numbers {
        assert!(owner.cluster.answer(answer(*number)).await.unwrap());
        until_woken(&asker, Wakeup::ForwardedAnswer(*number)).await;
    }
    assert!(!asker.cluster.answer(answer(numbers[0])).await.unwrap(), "it was not forwarded to this node");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_withdrawn_is_not_made() {
    let (_database, owner, asker) = two().await;
    let number = asker.cluster.forward(call("t", &owner)).await.unwrap().unwrap();
    assert!(!owner.cluster.withdraw_forwarded(number).await.unwrap(), "it is not its own");
    assert!(asker.cluster.withdraw_forwarded(number).await.unwrap());
    assert!(asker.cluster.withdraw_forwarded(number).await.unwrap(), "asked again after a lost answer");
    assert!(owner.cluster.received_calls(10).await.unwrap().is_empty());
    let refused = Append { answers: Some(answer(number)), ..pieces(&task("t"), 2, 2) };
    let (refused, neighbour) = futures::join!(owner.store.append(refused), owner.store.append(creation(&task("neighbour"))));
    assert_eq!(refused.unwrap_err().trouble, StoreTrouble::CallWithdrawn);
    neighbour.unwrap();
    assert_eq!(owner.store.find_any("t").await.unwrap().unwrap().progress.seq, 1);
    assert!(!owner.cluster.answer(answer(number)).await.unwrap());
    // The task goes on as before.
    owner.store.append(pieces(&task("t"), 2, 2)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_goes_only_to_the_node_that_holds_the_task() {
    let (_database, owner, asker) = two().await;
    assert_eq!(asker.cluster.forward(call("none", &owner)).await.unwrap(), None);
    assert_eq!(owner.cluster.forward(call("t", &asker)).await.unwrap(), None);
    owner.cluster.release(&"t".into(), false).await.unwrap();
    assert_eq!(asker.cluster.forward(call("t", &owner)).await.unwrap(), None);
    assert_eq!(asker.cluster.take(&"t".into()).await.unwrap(), Some(TaskHolder::ThisNode));
    asker.store.append(change(&task("t"), 2, TaskState::Completed, at(2))).await.unwrap();
    assert_eq!(owner.cluster.forward(call("t", &asker)).await.unwrap(), None, "it has ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_to_a_node_that_releases_a_task_or_leaves_have_moved() {
    let (_database, owner, asker) = two().await;
    for id in ["a", "b"] {
        owner.store.append(creation(&task(id))).await.unwrap();
    }
    let mut numbers = Vec::new();
    for id in ["t", "a", "b"] {
        numbers.push(asker.cluster.forward(call(id, &owner)).await.unwrap().unwrap());
    }
    owner.cluster.release(&"t".into(), false).await.unwrap();
    until_woken(&asker, Wakeup::ForwardedAnswer(numbers[0])).await;
    assert_eq!(asker.cluster.forwarded(numbers[0]).await.unwrap(), ForwardedCallState::Moved);
    assert_eq!(asker.cluster.forwarded(numbers[1]).await.unwrap(), ForwardedCallState::Waiting);
    owner.cluster.leave().await.unwrap();
    for number in &numbers {
        assert_eq!(asker.cluster.forwarded(*number).await.unwrap(), ForwardedCallState::Moved);
        assert!(!owner.cluster.answer(answer(*number)).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_to_a_node_that_is_gone_have_moved_to_its_successor() {
    let database = database().await;
    let (owner, asker) = (Node::join(database.url(), SHORT_LEASE).await, Node::join(database.url(), SHORT_LEASE).await);
    owner.store.append(creation(&task("t"))).await.unwrap();
    let number = asker.cluster.forward(call("t", &owner)).await.unwrap().unwrap();
    asker.succeed(owner.number()).await;
    until_woken_or_moved(&asker, number).await;
    // One that is left before the task is taken has moved then.
    let late = asker.cluster.forward(call("t", &owner)).await.unwrap().unwrap();
    assert_eq!(asker.cluster.take_inherited(owner.number(), 10).await.unwrap().len(), 1);
    assert_eq!(asker.cluster.forwarded(late).await.unwrap(), ForwardedCallState::Moved);
    assert_eq!(asker.cluster.holder(&"t".into()).await.unwrap(), Some(TaskHolder::ThisNode));
    assert!(owner.cluster.answer(answer(number)).await.is_err(), "its writer is closed");
    assert_eq!(owner.cluster.forward(call("t", &asker)).await.unwrap(), None, "nor does it forward anything");
}

async fn until_woken_or_moved(asker: &Node, number: ForwardedCallNumber) {
    while asker.cluster.forwarded(number).await.unwrap() != ForwardedCallState::Moved {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Each call is withdrawn while its append is under way: exactly one of the two happens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_withdrawn_or_answered_and_never_both() {
    let (_database, owner, asker) = two().await;
    let (mut seq, mut answered) = (1, 0);
    for round in 0..60 {
        let number = asker.cluster.forward(call("t", &owner)).await.unwrap().unwrap();
        let append = Append { answers: Some(answer(number)), ..pieces(&task("t"), seq + 1, seq + 1) };
        let withdraw = async {
            tokio::time::sleep(Duration::from_micros(50 * (round % 30))).await;
            asker.cluster.withdraw_forwarded(number).await.unwrap()
        };
        let (written, withdrawn) = futures::join!(owner.store.append(append), withdraw);
        match (&written, withdrawn) {
            (Ok(_), false) => {
                seq += 1;
                answered += 1;
            }
            (Err(refused), true) => assert_eq!(refused.trouble, StoreTrouble::CallWithdrawn, "{refused}"),
            both => panic!("{both:?}"),
        }
        assert_eq!(owner.store.find_any("t").await.unwrap().unwrap().progress.seq, seq);
    }
    println!("{answered} of 60 were answered");
}

/// A call is forwarded while its task is released: it is not left, or it has moved. It never waits for nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_meets_the_release_of_its_task_does_not_wait_for_nobody() {
    let (_database, owner, asker) = two().await;
    let (mut left, id) = (0, "t".into());
    for _ in 0..40 {
        let (number, released) = futures::join!(asker.cluster.forward(call("t", &owner)), owner.cluster.release(&id, false));
        released.unwrap();
        if let Some(number) = number.unwrap() {
            left += 1;
            assert_eq!(asker.cluster.forwarded(number).await.unwrap(), ForwardedCallState::Moved);
        }
        assert_eq!(owner.cluster.take(&id).await.unwrap(), Some(TaskHolder::ThisNode));
    }
    println!("{left} of 40 were left before the release");
}

/// Wherever the holder's connection is cut, the call is answered once, with the entry that it is about.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_answered_once_wherever_the_connection_is_cut() {
    let database = database().await;
    let proxy = FaultyProxy::to(database.port()).await;
    let options = PostgresOptions {
        answer_timeout_ms: 500,
        idle_in_transaction_timeout_ms: 500,
        patience_ms: 30_000,
        ..PostgresOptions::at(database.url_by(proxy.port()))
    };
    let (owner, asker) = (Node::join_with(options).await, Node::join(database.url(), LONG_LEASE).await);
    owner.store.append(creation(&task("t"))).await.unwrap();
    for (seq, point) in (2..).zip(CutPoint::ALL) {
        let number = asker.cluster.forward(call("t", &owner)).await.unwrap().unwrap();
        proxy.cut(point, 0);
        let append = Append { answers: Some(answer(number)), ..pieces(&task("t"), seq, seq) };
        owner.store.append(append).await.unwrap();
        assert_eq!(asker.cluster.forwarded(number).await.unwrap(), ForwardedCallState::Answered(b"done\0".to_vec()));
        assert_eq!(owner.store.entries(&"t".into(), 0, 100).await.unwrap().len() as u64, seq, "{point:?}");
        until_woken(&asker, Wakeup::ForwardedAnswer(number)).await;
    }
    assert_eq!(proxy.cuts(), CutPoint::ALL.len());
}
