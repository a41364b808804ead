//! Names that callers give: idempotency keys and client-chosen task ids.

use std::sync::Arc;

use chancery_core::{Appended, EXPIRY_STEP, ExpiryPlan, Keyed, Names, SweepPlan, TaskRecord};
use chancery_protocol::{TaskState, Timestamp};

use crate::contract::sample::{Opened, ada, at, bob, change, creation, creation_with_key, on_every_store, record, task};

on_every_store! {
    a_known_key_leads_to_its_task_and_writes_nothing,
    keys_belong_to_their_owner,
    of_many_calls_with_the_same_key_exactly_one_is_recorded,
    an_expired_key_can_be_used_again,
    a_swept_key_is_free_and_the_next_tasks_key_stays,
    a_forgotten_task_frees_its_client_id_and_its_key_stays_for_its_time,
    expired_keys_go_a_few_at_a_time_and_are_counted_by_caller,
    a_task_that_is_taken_back_was_never_there_unless_it_has_gone_on,
    a_client_id_is_unique_to_its_owner,
    of_many_calls_with_the_same_client_id_exactly_one_is_recorded,
    the_servers_id_comes_before_the_clients,
    a_call_that_is_refused_for_its_client_id_takes_no_key,
}

fn expiry(now: i64, at_most: u64) -> ExpiryPlan {
    ExpiryPlan { now: at(now), at_most }
}

const LATER: Timestamp = Timestamp::from_micros(1_000_000);

fn named(id: &str, client_id: &str) -> Arc<TaskRecord> {
    Arc::new(TaskRecord { client_task_id: Some(client_id.into()), ..record(id, ada()) })
}

async fn a_known_key_leads_to_its_task_and_writes_nothing(Opened { store, .. }: Opened) {
    store.append(creation_with_key(&task("t1"), "k", 1, LATER)).await.unwrap();
    let known = Appended::KeyKnown { task: "t1".into(), fingerprint: [1; 32] };
    assert_eq!(store.append(creation_with_key(&task("t2"), "k", 1, LATER)).await.unwrap(), known);
    assert_eq!(store.append(creation_with_key(&task("t3"), "k", 2, LATER)).await.unwrap(), known);
    assert_eq!(store.find_any("t2").await.unwrap(), None);
    let keyed = Keyed { task: "t1".into(), fingerprint: [1; 32] };
    assert_eq!(store.keyed(&ada(), "k", at(0)).await.unwrap(), Some(keyed));
    assert_eq!(store.keyed(&ada(), "other", at(0)).await.unwrap(), None);
    assert_eq!(store.append(creation_with_key(&task("t2"), "other", 1, LATER)).await.unwrap(), Appended::Recorded);
}

async fn keys_belong_to_their_owner(Opened { store, .. }: Opened) {
    store.append(creation_with_key(&task("t1"), "k", 1, LATER)).await.unwrap();
    assert_eq!(store.keyed(&bob(), "k", at(0)).await.unwrap(), None);
    let of_bob = Arc::new(record("t2", bob()));
    assert_eq!(store.append(creation_with_key(&of_bob, "k", 2, LATER)).await.unwrap(), Appended::Recorded);
}

async fn of_many_calls_with_the_same_key_exactly_one_is_recorded(Opened { store, .. }: Opened) {
    let calls = (0..100_u8).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let task = task(&format!("t{number}"));
            (task.id.clone(), store.append(creation_with_key(&task, "k", number, LATER)).await.unwrap())
        })
    });
    let answers = futures::future::try_join_all(calls).await.unwrap();
    let recorded: Vec<_> = answers.iter().filter(|(_, answer)| *answer == Appended::Recorded).collect();
    assert_eq!(recorded.len(), 1);
    let winner = &recorded[0].0;
    for (id, answer) in &answers {
        if let Appended::KeyKnown { task, .. } = answer {
            assert_eq!(task, winner);
            assert_eq!(store.find_any(id.as_str()).await.unwrap(), None);
        }
    }
}

async fn an_expired_key_can_be_used_again(Opened { store, .. }: Opened) {
    let made_at = |id: &str, time| Arc::new(TaskRecord { created_at: at(time), ..record(id, ada()) });
    store.append(creation_with_key(&made_at("t1", 0), "k", 1, at(100))).await.unwrap();
    let early = store.append(creation_with_key(&made_at("t2", 99), "k", 1, at(199))).await.unwrap();
    assert!(matches!(early, Appended::KeyKnown { .. }));
    assert!(store.keyed(&ada(), "k", at(99)).await.unwrap().is_some(), "its last moment");
    assert_eq!(store.keyed(&ada(), "k", at(100)).await.unwrap(), None);
    let late = store.append(creation_with_key(&made_at("t2", 100), "k", 2, at(200))).await.unwrap();
    assert_eq!(late, Appended::Recorded);
    let again = store.append(creation_with_key(&made_at("t3", 150), "k", 2, at(250))).await.unwrap();
    assert_eq!(again, Appended::KeyKnown { task: "t2".into(), fingerprint: [2; 32] });
    assert_eq!(store.keyed(&ada(), "k", at(150)).await.unwrap(), Some(Keyed { task: "t2".into(), fingerprint: [2; 32] }));
}

async fn a_swept_key_is_free_and_the_next_tasks_key_stays(Opened { store, .. }: Opened) {
    let made_at = |id: &str, time| Arc::new(TaskRecord { created_at: at(time), ..record(id, ada()) });
    let first = made_at("t1", 0);
    store.append(creation_with_key(&first, "k", 1, at(100))).await.unwrap();
    store.append(change(&first, 2, TaskState::Completed, at(1))).await.unwrap();
    assert!(!store.expire(expiry(100, 10)).await.unwrap());
    // Free even for a clock that is behind the sweep's.
    assert_eq!(store.append(creation_with_key(&made_at("t2", 50), "k", 2, at(300))).await.unwrap(), Appended::Recorded);

    // The first task goes, and must not take the key along that is another's now.
    let plan = SweepPlan { keep_at_most: Some(0), at_most: 10, ..SweepPlan::default() };
    assert_eq!(store.sweep(plan).await.unwrap(), 1);
    let known = store.append(creation_with_key(&made_at("t3", 160), "k", 3, at(400))).await.unwrap();
    assert_eq!(known, Appended::KeyKnown { task: "t2".into(), fingerprint: [2; 32] });
}

async fn a_forgotten_task_frees_its_client_id_and_its_key_stays_for_its_time(Opened { store, .. }: Opened) {
    let first = named("t1", "mine");
    store.append(creation_with_key(&first, "k", 1, LATER)).await.unwrap();
    store.append(change(&first, 2, TaskState::Failed, at(1))).await.unwrap();
    let plan = SweepPlan { keep_at_most: Some(0), at_most: 10, ..SweepPlan::default() };
    assert_eq!(store.sweep(plan).await.unwrap(), 1);
    assert_eq!(store.find(&ada(), "mine", Names::ServerOrClient).await.unwrap(), None);
    let known = Keyed { task: "t1".into(), fingerprint: [1; 32] };
    assert_eq!(store.keyed(&ada(), "k", at(2)).await.unwrap(), Some(known));
    let again = store.append(creation_with_key(&named("t2", "mine"), "k", 1, LATER)).await.unwrap();
    assert_eq!(again, Appended::KeyKnown { task: "t1".into(), fingerprint: [1; 32] });
    assert_eq!(store.find_any("t2").await.unwrap(), None);
    assert!(!store.expire(expiry(LATER.micros(), 10)).await.unwrap());
    assert_eq!(store.append(creation_with_key(&named("t2", "mine"), "k", 1, LATER)).await.unwrap(), Appended::Recorded);
}

async fn expired_keys_go_a_few_at_a_time_and_are_counted_by_caller(Opened { store, .. }: Opened) {
    for number in 0..6 {
        let task = task(&format!("t{number}"));
        store.append(creation_with_key(&task, &format!("k{number}"), 1, at(100 + number))).await.unwrap();
    }
    let of_bob = Arc::new(record("t6", bob()));
    store.append(creation_with_key(&of_bob, "k", 1, at(EXPIRY_STEP + 100))).await.unwrap();
    let counted = async || {
        let mut kept = store.kept_keys().await.unwrap();
        kept.sort_by_key(|kept| kept.owner.name.clone());
        kept.into_iter().map(|kept| (kept.owner, kept.step, kept.keys)).collect::<Vec<_>>()
    };
    assert_eq!(counted().await, [(ada(), 0, 6), (bob(), 1, 1)]);
    let left = async || {
        let mut left = Vec::new();
        for number in 0..6 {
            if store.keyed(&ada(), &format!("k{number}"), at(0)).await.unwrap().is_some() {
                left.push(number);
            }
        }
        left
    };
    assert!(!store.expire(expiry(99, 10)).await.unwrap());
    assert_eq!(left().await, [0, 1, 2, 3, 4, 5], "none has expired");
    assert!(store.expire(expiry(103, 2)).await.unwrap(), "more are due");
    assert_eq!(left().await, [2, 3, 4, 5]);
    while store.expire(expiry(103, 2)).await.unwrap() {}
    assert_eq!(left().await, [4, 5]);
    assert_eq!(counted().await, [(ada(), 0, 2), (bob(), 1, 1)]);
}

async fn a_task_that_is_taken_back_was_never_there_unless_it_has_gone_on(Opened { store, .. }: Opened) {
    let first = named("t1", "mine");
    store.append(creation_with_key(&first, "k", 1, LATER)).await.unwrap();
    assert!(store.withdraw(&first.id, None).await.unwrap());
    assert!(!store.withdraw(&first.id, None).await.unwrap(), "once");
    assert_eq!(store.find_any("t1").await.unwrap(), None);
    assert_eq!(store.keyed(&ada(), "k", at(0)).await.unwrap(), None);
    assert_eq!(store.find(&ada(), "mine", Names::ServerOrClient).await.unwrap(), None);
    assert!(store.entries(&first.id, 0, 10).await.unwrap().is_empty() && store.unfinished().await.unwrap().is_empty());
    assert!(store.append(change(&first, 2, TaskState::Working, at(1))).await.is_err());
    let second = named("t2", "mine");
    assert_eq!(store.append(creation_with_key(&second, "k", 1, LATER)).await.unwrap(), Appended::Recorded);
    store.append(change(&second, 2, TaskState::Failed, at(1))).await.unwrap();
    assert!(!store.withdraw(&second.id, None).await.unwrap());
    assert_eq!(store.entries(&second.id, 0, 10).await.unwrap().len(), 2);
    let plan = SweepPlan { keep_at_most: Some(0), at_most: 10, ..SweepPlan::default() };
    assert_eq!(store.sweep(plan).await.unwrap(), 1, "what is finished is still counted right");
}

async fn a_client_id_is_unique_to_its_owner(Opened { store, .. }: Opened) {
    store.append(creation(&named("t1", "mine"))).await.unwrap();
    let known = Appended::ClientIdKnown { task: "t1".into() };
    assert_eq!(store.append(creation(&named("t2", "mine"))).await.unwrap(), known);
    assert_eq!(store.find_any("t2").await.unwrap(), None);

    let of_bob = Arc::new(TaskRecord { client_task_id: Some("mine".into()), ..record("t3", bob()) });
    assert_eq!(store.append(creation(&of_bob)).await.unwrap(), Appended::Recorded);
    for (owner, id) in [(ada(), "t1"), (bob(), "t3")] {
        let found = store.find(&owner, "mine", Names::ServerOrClient).await.unwrap().unwrap();
        assert_eq!(found.task.id.as_str(), id);
        assert_eq!(store.find(&owner, "mine", Names::Server).await.unwrap(), None);
    }
}

async fn of_many_calls_with_the_same_client_id_exactly_one_is_recorded(Opened { store, .. }: Opened) {
    let calls = (0..100).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.append(creation(&named(&format!("t{number}"), "mine"))).await.unwrap() })
    });
    let answers = futures::future::try_join_all(calls).await.unwrap();
    assert_eq!(answers.iter().filter(|answer| **answer == Appended::Recorded).count(), 1);
}

async fn the_servers_id_comes_before_the_clients(Opened { store, .. }: Opened) {
    store.append(creation(&named("t1", "t2"))).await.unwrap();
    store.append(creation(&task("t2"))).await.unwrap();
    let found = store.find(&ada(), "t2", Names::ServerOrClient).await.unwrap().unwrap();
    assert_eq!(found.task.id.as_str(), "t2");
}

async fn a_call_that_is_refused_for_its_client_id_takes_no_key(Opened { store, .. }: Opened) {
    store.append(creation(&named("t1", "mine"))).await.unwrap();
    let refused = store.append(creation_with_key(&named("t2", "mine"), "k", 1, LATER)).await.unwrap();
    assert_eq!(refused, Appended::ClientIdKnown { task: "t1".into() });
    assert_eq!(store.append(creation_with_key(&task("t3"), "k", 1, LATER)).await.unwrap(), Appended::Recorded);
}
