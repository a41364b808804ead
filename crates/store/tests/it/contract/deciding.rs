//! What was decided about calls that made no task, and what is frozen.

use chancery_core::{Append, Decision, Freeze, FreezeScope, Store, SweepPlan};
use chancery_protocol::TaskState;

use crate::contract::sample::{Opened, at, change, creation, decision, on_every_store, pieces, task};

on_every_store! {
    a_decision_is_read_back_whole,
    decisions_are_listed_newest_first_and_those_of_a_task_oldest_first,
    a_decision_that_is_kept_again_stays_as_it_was,
    a_sweep_keeps_the_newest_decisions,
    decisions_outlive_the_task_they_were_about,
    a_freeze_holds_until_it_is_thawed,
    a_freeze_of_the_same_scope_replaces_the_other,
}

async fn ids(store: &dyn Store, limit: usize) -> Vec<String> {
    store.decisions(limit).await.unwrap().iter().map(|decision| decision.id.to_string()).collect()
}

async fn a_decision_is_read_back_whole(Opened { store, .. }: Opened) {
    let refused = decision("d1", None);
    store.decide(refused.clone()).await.unwrap();
    assert_eq!(store.decision("d1").await.unwrap(), Some((*refused).clone()));
    assert_eq!(store.decision("d2").await.unwrap(), None);
    let least = Decision { root: None, trace: None, refused: None, verdicts: Vec::new(), id: "d2".into(), ..(*refused).clone() };
    store.decide(least.clone().into()).await.unwrap();
    assert_eq!(store.decision("d2").await.unwrap(), Some(least));
}

async fn decisions_are_listed_newest_first_and_those_of_a_task_oldest_first(Opened { store, .. }: Opened) {
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    store.decide(decision("z", None)).await.unwrap();
    store.append(Append { decision: Some(decision("y", Some("t1"))), ..pieces(&task, 2, 2) }).await.unwrap();
    store.decide(decision("a", Some("t2"))).await.unwrap();
    store.append(Append { decision: Some(decision("b", Some("t1"))), ..pieces(&task, 3, 3) }).await.unwrap();
    assert_eq!(ids(&*store, 100).await, ["b", "a", "y", "z"]);
    assert_eq!(ids(&*store, 2).await, ["b", "a"]);
    assert!(ids(&*store, 0).await.is_empty());
    let before = async |id: &str, limit: usize| {
        let listed = store.decisions_before(id, limit).await.unwrap();
        listed.iter().map(|decision| decision.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(before("b", 2).await, ["a", "y"]);
    assert_eq!(before("y", 100).await, ["z"]);
    assert!(before("z", 100).await.is_empty() && before("nothing", 100).await.is_empty());
    let of_task: Vec<_> = store.decisions_of(&task.id).await.unwrap().iter().map(|decision| decision.id.to_string()).collect();
    assert_eq!(of_task, ["y", "b"]);
    assert_eq!(store.decisions_of(&"t3".into()).await.unwrap(), []);
}

async fn a_decision_that_is_kept_again_stays_as_it_was(Opened { store, .. }: Opened) {
    store.decide(decision("d1", None)).await.unwrap();
    store.decide(decision("d2", None)).await.unwrap();
    store.decide(decision("d1", Some("t1"))).await.unwrap();
    assert_eq!(ids(&*store, 10).await, ["d2", "d1"]);
    assert_eq!(store.decision("d1").await.unwrap(), Some((*decision("d1", None)).clone()));
    assert_eq!(store.decisions_of(&"t1".into()).await.unwrap(), []);
}

async fn a_sweep_keeps_the_newest_decisions(Opened { store, .. }: Opened) {
    for number in 0..6 {
        store.decide(decision(&format!("d{number}"), (number % 2 == 0).then_some("t1"))).await.unwrap();
    }
    let plan = |keep, at_most| SweepPlan { keep_decisions: keep, at_most, ..SweepPlan::default() };
    for (keep, at_most, left) in [(None, 9, 6), (Some(6), 9, 6), (Some(3), 2, 4), (Some(3), 2, 3), (Some(3), 2, 3)] {
        assert_eq!(store.sweep(plan(keep, at_most)).await.unwrap(), 0, "only tasks are counted");
        assert_eq!(ids(&*store, 100).await.len(), left, "{keep:?}");
    }
    assert_eq!(ids(&*store, 100).await, ["d5", "d4", "d3"]);
    assert_eq!(store.decision("d2").await.unwrap(), None);
    assert_eq!(store.decisions_of(&"t1".into()).await.unwrap().len(), 1);
    store.sweep(plan(Some(0), 100)).await.unwrap();
    assert!(ids(&*store, 100).await.is_empty());
    store.decide(decision("d0", Some("t1"))).await.unwrap();
    assert_eq!(ids(&*store, 100).await, ["d0"]);
    assert_eq!(store.decisions_of(&"t1".into()).await.unwrap().len(), 1);
}

async fn decisions_outlive_the_task_they_were_about(Opened { store, .. }: Opened) {
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    let end = change(&task, 2, TaskState::Completed, at(1));
    store.append(Append { decision: Some(decision("d", Some("t1"))), ..end }).await.unwrap();
    let plan = SweepPlan { keep_at_most: Some(0), at_most: 10, ..SweepPlan::default() };
    assert_eq!(store.sweep(plan).await.unwrap(), 1);
    assert_eq!(store.decisions_of(&task.id).await.unwrap().len(), 1);
}

fn freeze(scope: FreezeScope, by: &str, why: Option<&str>) -> Freeze {
    Freeze { scope, by: by.into(), at: at(9), why: why.map(Into::into) }
}

async fn a_freeze_holds_until_it_is_thawed(Opened { store, .. }: Opened) {
    // One name in several scopes: each is its own.
    let scopes = [
        FreezeScope::Tree("x".into()),
        FreezeScope::Caller("acme/ada".into()),
        FreezeScope::Caller("x".into()),
        FreezeScope::Agent("x".into()),
        FreezeScope::Tenant("x".into()),
        FreezeScope::Everything,
    ];
    let all: Vec<_> = scopes.iter().map(|scope| freeze(scope.clone(), "op", Some("too \"expensive\""))).collect();
    for freeze in all.iter().rev() {
        store.freeze(freeze.clone()).await.unwrap();
    }
    assert_eq!(store.freezes().await.unwrap(), all);
    for (gone, scope) in scopes.iter().enumerate() {
        assert!(store.thaw(scope, None).await.unwrap());
        assert!(!store.thaw(scope, None).await.unwrap(), "it was thawed already");
        assert_eq!(store.freezes().await.unwrap(), all[gone + 1..]);
    }
}

async fn a_freeze_of_the_same_scope_replaces_the_other(Opened { store, .. }: Opened) {
    let scope = FreezeScope::Tenant("acme".into());
    store.freeze(freeze(scope.clone(), "one", Some("why"))).await.unwrap();
    store.freeze(freeze(scope.clone(), "two", None)).await.unwrap();
    assert_eq!(store.freezes().await.unwrap(), [freeze(scope, "two", None)]);
}
