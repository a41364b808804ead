//! How tasks were governed: kept with them, found by task, tree and trace, and gone with them.

use std::sync::Arc;

use chancery_core::budget::{ActualSource, Amount, Caps, EstimateSource, SettledReservation};
use chancery_core::lineage::{AgentPath, Attribution, ClaimedContext};
use chancery_core::{
    Append, Appended, Fact, Governed, LedgerRow, LineageRecord, MicroUsd, Rule, Spend, Store, SweepPlan, TreeCost, Verdict,
};
use chancery_protocol::{TaskState, TraceId};

use crate::contract::sample::{
    Opened, ada, at, change, completed, creation, creation_with_key, decision, governed, governed_creation, on_every_store,
    pieces, record, spend, task,
};

on_every_store! {
    how_a_task_was_governed_is_read_back_whole,
    the_least_that_can_be_said_is_read_back_too,
    what_a_task_cost_stays_until_it_is_said_anew,
    a_task_from_before_is_governed_by_nothing_and_counted_nowhere,
    only_the_making_of_a_task_says_how_it_is_governed,
    an_append_that_is_not_recorded_changes_neither_cost_nor_decisions,
    a_tree_is_its_tasks_in_the_order_they_were_made,
    one_trace_may_have_several_trees,
    roots_are_found_among_many_and_across_gaps,
    what_is_left_of_a_tree_is_found_when_its_root_is_gone,
}

/// One that says everything there is to say.
fn everything() -> Governed {
    let kinship = LineageRecord {
        root: "root".into(),
        trace: TraceId(u128::MAX - 1),
        made: true,
        parent: Some("parent".into()),
        depth: u32::MAX,
        // Longer than a path of a stranger may be: it is our own.
        path: AgentPath::new((0..300).map(|number| format!("agent \"{number}\" \u{2192}").into())),
        attribution: Attribution::Ambiguous,
        claimed: Some(Box::new(ClaimedContext {
            trace_id: Some(TraceId(9)),
            parent_task_id: Some("claimed".into()),
            depth: Some(3),
            root_agent_id: Some("somebody".into()),
            visited_agents: AgentPath::new(["x".into()]),
            cut: true,
        })),
        skill: Some("".into()),
        allowance: Some(Caps { usd: Some(MicroUsd(i64::MAX)), tokens: Some(u64::MAX), tasks: None }),
    };
    let amount = |usd| Amount { usd: MicroUsd(usd), tokens: u64::MAX, tasks: 2 };
    let spend = Spend {
        reserved: amount(1),
        settled: amount(i64::MAX),
        overrun: amount(3),
        estimated_by: EstimateSource::Remainder,
        known_by: Some(ActualSource::Reported),
        settled_at: Some(at(77)),
        earlier: SettledReservation::default(),
    };
    let facts = vec![("number".into(), Fact::Number(u64::MAX)), ("text".into(), Fact::text("12"))];
    let verdicts =
        [Verdict { rule: Rule::Lineage, passed: true, facts: Vec::new() }, Verdict { rule: Rule::Policy, passed: false, facts }];
    Governed { kinship: Arc::new(kinship), spend, verdicts: verdicts.into() }
}

async fn how_a_task_was_governed_is_read_back_whole(Opened { store, .. }: Opened) {
    let task = task("t1");
    let all = everything();
    store.append(Append { governed: Some(Box::new(all.clone())), ..creation(&task) }).await.unwrap();
    assert_eq!(store.governed(&task.id).await.unwrap(), Some(all.clone()));
    let row = LedgerRow {
        task: task.id.clone(),
        context_id: task.context_id.clone(),
        dialect: task.dialect,
        link: None,
        agent: task.agent.clone(),
        owner: ada(),
        created_at: task.created_at,
        state: TaskState::Submitted,
        status_at: task.created_at,
        governed: all,
    };
    assert_eq!(store.tree(&"root".into()).await.unwrap(), [row]);

    use ActualSource::{Configured, Estimated, Measured, Reported};
    use EstimateSource::{Card, CardHint, Config, ConfigHint, Hint, None as Unknown, Observed, ObservedHint, Policy, Remainder};
    for estimated_by in [Unknown, Hint, Config, ConfigHint, Card, CardHint, Observed, ObservedHint, Policy, Remainder] {
        for known_by in [None, Some(Reported), Some(Configured), Some(Measured), Some(Estimated)] {
            let spend = Spend { estimated_by, known_by, ..Spend::default() };
            store.settle(&task.id, spend).await.unwrap();
            assert_eq!(store.governed(&task.id).await.unwrap().unwrap().spend, spend);
        }
    }
}

async fn the_least_that_can_be_said_is_read_back_too(Opened { store, .. }: Opened) {
    let task = task("t1");
    let kinship = LineageRecord {
        root: "t1".into(),
        trace: TraceId(1),
        made: false,
        parent: None,
        depth: 0,
        path: AgentPath::default(),
        attribution: Attribution::Root,
        claimed: None,
        skill: None,
        allowance: None,
    };
    let least = Governed { kinship: Arc::new(kinship), spend: Spend::default(), verdicts: [].into() };
    store.append(Append { governed: Some(Box::new(least.clone())), ..creation(&task) }).await.unwrap();
    assert_eq!(store.governed(&task.id).await.unwrap(), Some(least));
}

async fn spent(store: &dyn Store, id: &str) -> Spend {
    store.governed(&id.into()).await.unwrap().unwrap().spend
}

async fn what_a_task_cost_stays_until_it_is_said_anew(Opened { store, .. }: Opened) {
    let task = task("t1");
    store.append(Append { spend: Some(spend(1, None)), ..governed_creation(&task, "t1", 1) }).await.unwrap();
    assert_eq!(spent(&*store, "t1").await, spend(1, None), "what the append says counts, not what came with the call");
    store.append(pieces(&task, 2, 2)).await.unwrap();
    assert_eq!(spent(&*store, "t1").await, spend(1, None));
    store.append(Append { spend: Some(spend(2, Some(5))), ..pieces(&task, 3, 3) }).await.unwrap();
    assert_eq!(spent(&*store, "t1").await, spend(2, Some(5)));
    store.settle(&task.id, spend(3, Some(6))).await.unwrap();
    assert_eq!(spent(&*store, "t1").await, spend(3, Some(6)));
    let untouched = governed(&task, "t1", 1);
    let now = store.governed(&task.id).await.unwrap().unwrap();
    assert_eq!((now.kinship, now.verdicts), (untouched.kinship, untouched.verdicts));
    assert_eq!(store.entries(&task.id, 0, 100).await.unwrap().len(), 3, "settling says nothing in the log");
}

async fn a_task_from_before_is_governed_by_nothing_and_counted_nowhere(Opened { store, .. }: Opened) {
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    // Its log goes on all the same.
    store.append(Append { spend: Some(spend(1, Some(1))), ..pieces(&task, 2, 2) }).await.unwrap();
    assert_eq!(store.find_any("t1").await.unwrap().unwrap().progress.seq, 2);
    assert_eq!(store.governed(&task.id).await.unwrap(), None);
    assert_eq!(store.tree(&task.id).await.unwrap(), []);
    assert_eq!(store.ledger(at(0)).await.unwrap(), chancery_core::LedgerSnapshot::default());
    for id in ["t1", "nobody"] {
        let refusal = store.settle(&id.into(), spend(1, None)).await.unwrap_err().to_string();
        assert!(refusal.contains(id), "{refusal}");
        assert_eq!(store.governed(&id.into()).await.unwrap(), None);
    }
}

async fn only_the_making_of_a_task_says_how_it_is_governed(Opened { store, .. }: Opened) {
    let task = task("t1");
    store.append(governed_creation(&task, "t1", 1)).await.unwrap();
    let again = Append { governed: Some(Box::new(everything())), ..pieces(&task, 2, 2) };
    let refusal = store.append(again).await.unwrap_err().to_string();
    assert!(refusal.contains("t1"), "{refusal}");
    assert_eq!(store.governed(&task.id).await.unwrap(), Some(governed(&task, "t1", 1)));
    assert_eq!(store.find_any("t1").await.unwrap().unwrap().progress.seq, 1);
}

async fn an_append_that_is_not_recorded_changes_neither_cost_nor_decisions(Opened { store, .. }: Opened) {
    let (first, second) = (task("t1"), task("t2"));
    let keyed = |task: &Arc<_>, root| Append {
        governed: Some(Box::new(governed(task, root, 1))),
        decision: Some(decision(root, Some(root))),
        ..creation_with_key(task, "k", 7, at(1_000_000))
    };
    assert_eq!(store.append(keyed(&first, "t1")).await.unwrap(), Appended::Recorded);
    let known = store.append(keyed(&second, "t2")).await.unwrap();
    assert!(matches!(known, Appended::KeyKnown { .. }), "{known:?}");
    assert_eq!(store.governed(&second.id).await.unwrap(), None);
    let out_of_turn =
        Append { spend: Some(spend(9, None)), decision: Some(decision("late", Some("t1"))), ..pieces(&first, 5, 5) };
    store.append(out_of_turn).await.unwrap_err();
    assert_eq!(spent(&*store, "t1").await, Spend::default());
    let again = Append { decision: Some(decision("again", Some("t1"))), ..governed_creation(&first, "t2", 2) };
    store.append(again).await.unwrap_err();
    assert_eq!(store.governed(&first.id).await.unwrap(), Some(governed(&first, "t1", 1)));
    assert_eq!(store.decisions(100).await.unwrap(), [(*decision("t1", Some("t1"))).clone()]);
    assert_eq!(store.roots(TraceId(1)).await.unwrap(), ["t1".into()]);
    assert_eq!(store.tree(&"t2".into()).await.unwrap(), []);
}

pub(crate) async fn tree_ids(store: &dyn Store, root: &str) -> Vec<String> {
    store.tree(&root.into()).await.unwrap().iter().map(|row| row.task.to_string()).collect()
}

async fn a_tree_is_its_tasks_in_the_order_they_were_made(Opened { store, .. }: Opened) {
    // Not in the order of their names.
    for (id, root) in [("m", "m"), ("z", "m"), ("b", "b"), ("c", "b"), ("a", "m"), ("y", "m")] {
        store.append(governed_creation(&task(id), root, 1)).await.unwrap();
    }
    completed(&*store, "ungoverned", 1).await;
    store.append(change(&task("a"), 2, TaskState::Completed, at(50))).await.unwrap();
    assert_eq!(tree_ids(&*store, "m").await, ["m", "z", "a", "y"]);
    assert_eq!(tree_ids(&*store, "b").await, ["b", "c"]);
    for no_root in ["z", "ungoverned", "nobody"] {
        assert!(tree_ids(&*store, no_root).await.is_empty(), "{no_root}");
    }
    let page = async |root: &str, after: Option<&str>, limit: usize| {
        let rows = store.tree_page(&root.into(), after.map(Into::into).as_ref(), limit).await.unwrap();
        rows.iter().map(|row| row.task.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page("m", None, 3).await, ["m", "z", "a"]);
    assert_eq!(page("m", Some("a"), 3).await, ["y"]);
    assert_eq!(page("m", Some("m"), 1).await, ["z"]);
    assert!(page("m", Some("y"), 3).await.is_empty() && page("m", Some("nobody"), 3).await.is_empty());
    let tree = store.tree(&"m".into()).await.unwrap();
    let costs = store.tree_costs(&"m".into()).await.unwrap();
    let of_rows = tree.iter().map(|row| {
        let cost = row.governed.spend.settled.saturating_add(row.governed.spend.overrun);
        TreeCost { task: row.task.clone(), parent: row.governed.kinship.parent.clone(), cost }
    });
    assert_eq!(costs, of_rows.collect::<Vec<_>>());
    assert_eq!(store.tree_page(&"m".into(), None, 100).await.unwrap(), tree);
    assert_eq!((tree[2].state, tree[2].status_at), (TaskState::Completed, at(50)));
    assert_eq!((tree[3].state, tree[3].status_at), (TaskState::Submitted, at(1_000)));
}

async fn one_trace_may_have_several_trees(Opened { store, .. }: Opened) {
    for (id, root, trace) in [("r2", "r2", 7), ("r1", "r1", 7), ("c", "r2", 7), ("r3", "r3", 8)] {
        store.append(governed_creation(&task(id), root, trace)).await.unwrap();
    }
    assert_eq!(store.roots(TraceId(7)).await.unwrap(), ["r2".into(), "r1".into()]);
    assert_eq!(store.roots(TraceId(8)).await.unwrap(), ["r3".into()]);
    assert_eq!(store.roots(TraceId(9)).await.unwrap(), []);
    assert_eq!(tree_ids(&*store, "r2").await, ["r2", "c"]);
}

async fn roots_are_found_among_many_and_across_gaps(Opened { store, .. }: Opened) {
    let make = async |number: u32, id: &str, trace: u128| {
        store.append(governed_creation(&task(id), id, trace)).await.unwrap();
        if !number.is_multiple_of(2_000) {
            store.append(change(&task(id), 2, TaskState::Completed, at(1))).await.unwrap();
        }
    };
    let ids: Vec<_> = (0..5_000).map(|number| format!("t{number:04}")).collect();
    let all = (0..).zip(&ids).map(|(number, id)| make(number, id, u128::from(number % 1_000)));
    futures::future::join_all(all).await;
    let found = store.roots(TraceId(0)).await.unwrap();
    assert_eq!(found, [0, 1_000, 2_000, 3_000, 4_000].map(|number| ids[number].as_str().into()));
    let plan = SweepPlan { keep_at_most: Some(0), at_most: 10_000, ..SweepPlan::default() };
    assert_eq!(store.sweep(plan).await.unwrap(), 4_997);
    let left = store.roots(TraceId(0)).await.unwrap();
    assert_eq!(left, [0, 2_000, 4_000].map(|number| ids[number].as_str().into()));
}

async fn what_is_left_of_a_tree_is_found_when_its_root_is_gone(Opened { store, .. }: Opened) {
    // As earlier versions left it: they forgot a root before what was done for it had ended.
    for id in ["a", "b"] {
        store.append(governed_creation(&Arc::new(record(id, ada())), "r", 1)).await.unwrap();
    }
    store.append(change(&task("a"), 2, TaskState::Completed, at(2))).await.unwrap();
    let plan = |older_than| SweepPlan { older_than: Some(at(older_than)), at_most: 10, ..SweepPlan::default() };
    assert_eq!(store.governed(&"r".into()).await.unwrap(), None);
    assert_eq!(store.roots(TraceId(1)).await.unwrap(), []);
    assert_eq!(tree_ids(&*store, "r").await, ["a", "b"]);
    let counted: Vec<_> = store.ledger(at(100)).await.unwrap().tasks.into_iter().map(|row| row.task).collect();
    assert_eq!(counted, ["a".into(), "b".into()], "what has ended belongs to a tree that has not");
    store.append(change(&task("b"), 2, TaskState::Completed, at(3))).await.unwrap();
    assert_eq!(store.sweep(plan(3)).await.unwrap(), 1);
    assert_eq!(tree_ids(&*store, "r").await, ["b"]);
}
