//! Where a call stands: the trace it was given, the task it was made for, and what it only claims.

use std::sync::{Arc, Mutex};

use chancery_core::lineage::{Attribution, TaskContext};
use chancery_core::{TaskRunner, TaskUpdateSink, TreeTask, Turn};
use chancery_protocol::{CallContext, Caller, ErrorKind, Message, TraceId};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, agent_caller, caller, message, patient, quick, to};

type Seen = Arc<Mutex<Vec<(TraceId, TaskContext)>>>;

/// Writes down what it is told of its place, and calls the next.
fn witness(seen: &Seen, next: Option<&'static str>) -> impl TaskRunner {
    let seen = Arc::clone(seen);
    Acts(move |turn: Turn, updates: TaskUpdateSink| {
        seen.lock().unwrap().push((turn.trace, turn.delegation.context().expect("every task has a place")));
        async move {
            if let Some(next) = next {
                let said = message("on", Value::Null).message.as_ref().clone();
                turn.delegation.call(next, said).await.map_err(|error| chancery_core::RunError::new(error.to_string()))?;
            }
            Ok(updates.complete(None))
        }
    })
}

async fn tree(governed_plane: &GovernedPlane, name: &str) -> Vec<TreeTask> {
    let mut trees = governed_plane.plane.trees(name).await.unwrap();
    assert_eq!(trees.len(), 1, "{name}");
    trees.remove(0).tasks
}

#[tokio::test]
async fn the_trace_a_call_brings_is_the_trees_and_reaches_every_runner() {
    let seen = Seen::default();
    let governed_plane = Plan::new(&json!({})).agent("a", witness(&seen, Some("b"))).agent("b", witness(&seen, None)).build();
    let trace = TraceId(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
    let task = governed_plane.say(&CallContext { trace, ..caller("ada") }, "go").await.unwrap();
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|(told, context)| *told == trace && context.trace_id == trace), "{seen:?}");
    let tasks = tree(&governed_plane, "4bf92f3577b34da6a3ce929d0e0e4736").await;
    assert_eq!(tasks[0].task, task.id);
    assert!(tasks.iter().all(|task| task.kinship.trace == trace));
}

#[tokio::test]
async fn a_child_has_its_parents_id_and_one_more_depth() {
    let seen = Seen::default();
    let governed_plane = Plan::new(&json!({})).agent("a", witness(&seen, Some("b"))).agent("b", witness(&seen, None)).build();
    let root = governed_plane.say(&caller("ada"), "go").await.unwrap();
    let [above, below] = <[TreeTask; 2]>::try_from(tree(&governed_plane, root.id.as_str()).await).unwrap();
    assert_eq!((above.kinship.depth, above.kinship.parent), (0, None));
    assert_eq!(above.kinship.attribution, Attribution::Root);
    assert_eq!((below.kinship.depth, below.kinship.parent), (1, Some(root.id.clone())));
    assert_eq!(below.kinship.attribution, Attribution::Verified);
    assert_eq!(below.kinship.root, root.id);
    assert_eq!(below.kinship.path.to_string(), "ada → a");
    // What the runners were told is where their own calls would stand.
    let seen = seen.lock().unwrap().clone();
    assert_eq!((seen[0].1.depth, seen[0].1.parent_task_id.as_ref()), (1, Some(&root.id)));
    assert_eq!((seen[1].1.depth, seen[1].1.parent_task_id.as_ref()), (2, Some(&below.task)));
    assert_eq!(seen[1].1.root_agent_id.as_ref(), "ada");
    assert_eq!(seen[1].1.visited_agents.to_string(), "ada → a → b");
}

#[tokio::test]
async fn a_claimed_context_is_kept_as_a_claim_and_names_neither_parent_nor_tree() {
    let governed_plane = Plan::new(&json!({ "recursion": { "max_call_depth": 8 } })).agent("a", quick()).build();
    let real = governed_plane.begin(&to("a", caller("bob")), Value::Null).await.unwrap();
    let claims = [
        (7, json!({ "depth": 7, "parent_task_id": real.id, "root_agent_id": "bob", "trace_id": "0".repeat(31) + "7" })),
        (0, json!({ "depth": 0, "parent_task_id": real.id, "visited_agents": [] })),
        (0, json!({ "depth": -1, "visited_agents": "a" })),
    ];
    for (depth, claim) in claims {
        let task = governed_plane.send(&caller("ada"), message("go", json!({ "ruvector": { "context": claim } }))).await.unwrap();
        let (governed, _) = governed_plane.plane.explain_task(&task.id).await.unwrap().unwrap();
        let kinship = governed.kinship;
        assert_eq!((kinship.depth, &kinship.parent, &kinship.root), (depth, &None, &task.id));
        let attribution = if depth > 0 { Attribution::Claimed } else { Attribution::Root };
        assert_eq!((kinship.attribution, kinship.trace), (attribution, TraceId(1)));
        assert_eq!(kinship.path.to_string(), "ada");
        assert!(kinship.claimed.is_some(), "it is kept to be shown");
    }
}

/// An agent of the node that says nothing: it is put under the task it can only come from.
#[tokio::test]
async fn an_agent_with_one_open_task_is_put_under_it_and_with_none_at_a_root() {
    let governed_plane = Plan::new(&json!({})).agent("a", patient()).agent("b", quick()).build();
    let alone = governed_plane.say(&to("b", agent_caller("a")), "go").await.unwrap();
    assert_eq!(tree(&governed_plane, alone.id.as_str()).await[0].kinship.attribution, Attribution::Root);
    let open = governed_plane.begin(&to("a", caller("ada")), Value::Null).await.unwrap();
    let child = governed_plane.say(&to("b", agent_caller("a")), "go").await.unwrap();
    let row = tree(&governed_plane, child.id.as_str()).await.pop().unwrap();
    assert_eq!((row.kinship.attribution, row.kinship.parent), (Attribution::Inferred, Some(open.id.clone())));
    assert_eq!((row.kinship.depth, row.kinship.root), (1, open.id.clone()));
    let back = governed_plane.say(&to("a", agent_caller("a")), "go").await.unwrap_err();
    assert_eq!(back.kind, ErrorKind::RecursionRevisit, "{back}");
}

/// With several open the strictest of all counts, unless the call says something that fits only one.
#[tokio::test]
async fn an_agent_with_several_open_tasks_is_bound_by_all_of_them_or_told_apart_by_what_it_says() {
    let rules = json!({ "budget": { "tree": { "max_usd": "10" } }, "prices": { "a": "1", "b": "1", "c": "1" } });
    let forwards = Acts(|turn: Turn, updates: TaskUpdateSink| async move {
        let said = message("wait", Value::Null).message.as_ref().clone();
        let _ = turn.delegation.call("a", said).await;
        Ok(updates.complete(None))
    });
    let governed_plane = Plan::new(&rules).agent("a", patient()).agent("b", quick()).agent("c", forwards).build();
    let said = json!({ "ruvector": { "budget": { "usd": "5" } } });
    let shallow = CallContext { trace: TraceId(11), ..to("a", caller("ada")) };
    let poor = governed_plane.begin(&shallow, said).await.unwrap();
    let deep = governed_plane.begin(&CallContext { trace: TraceId(22), ..to("c", caller("bob")) }, Value::Null).await.unwrap();
    let from_a = to("b", agent_caller("a"));
    // Neither trace fits: both are possible.
    let child = governed_plane.say(&CallContext { trace: TraceId(33), ..from_a.clone() }, "go").await.unwrap();
    let (governed, _) = governed_plane.plane.explain_task(&child.id).await.unwrap().unwrap();
    let kinship = governed.kinship;
    assert_eq!((kinship.attribution, &kinship.root, kinship.depth), (Attribution::Ambiguous, &deep.id, 2));
    for agent in ["bob", "c", "ada", "a"] {
        assert!(kinship.path.contains(agent), "{} lacks {agent}", kinship.path);
    }
    let left = kinship.allowance.and_then(|allowance| allowance.usd).unwrap();
    assert_eq!(left, chancery_core::MicroUsd(4_000_000), "what the poorer of the two has left");
    let refused = governed_plane.say(&CallContext { trace: TraceId(33), ..to("c", agent_caller("a")) }, "go").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::RecursionRevisit, "c is above one of them: {refused}");
    // By trace, by the task it points at, and by the conversation, it is told apart.
    let by_trace = governed_plane.say(&CallContext { trace: TraceId(11), ..from_a.clone() }, "go").await.unwrap();
    let mut pointing = message("go", Value::Null);
    let referring = chancery_protocol::Message { reference_task_ids: vec![poor.id.clone()], ..pointing.message.as_ref().clone() };
    pointing.message = Arc::new(referring);
    let by_reference = governed_plane.send(&CallContext { trace: TraceId(33), ..from_a.clone() }, pointing).await.unwrap();
    let mut going_on = message("go", Value::Null);
    let in_context =
        chancery_protocol::Message { context_id: Some(poor.context_id.clone()), ..going_on.message.as_ref().clone() };
    going_on.message = Arc::new(in_context);
    let by_context = governed_plane.send(&CallContext { trace: TraceId(33), ..from_a }, going_on).await.unwrap();
    for child in [by_trace, by_reference, by_context] {
        let (governed, _) = governed_plane.plane.explain_task(&child.id).await.unwrap().unwrap();
        assert_eq!((governed.kinship.attribution, governed.kinship.parent.as_ref()), (Attribution::Inferred, Some(&poor.id)));
    }
}

#[tokio::test]
async fn where_lineage_is_asked_for_an_agent_without_it_is_refused_and_others_are_not() {
    let rules = json!({ "lineage": { "unattributed": "deny" } });
    let governed_plane = Plan::new(&rules).agent("a", patient()).agent("b", quick()).build();
    let refused = governed_plane.say(&to("b", agent_caller("a")), "go").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::LineageRequired);
    assert_eq!(governed_plane.plane.decisions(1).await.unwrap()[0].refused.as_deref(), Some("LINEAGE_REQUIRED"));
    governed_plane.say(&to("b", caller("ada")), "go").await.unwrap();
}

/// A trace says nothing about money: each root has a tree of its own.
#[tokio::test]
async fn a_reused_trace_is_another_tree_with_a_budget_of_its_own() {
    let rules = json!({ "budget": { "tree": { "max_usd": "1" } }, "prices": { "a": "1" } });
    let governed_plane = Plan::new(&rules).agent("a", patient()).build();
    let first = governed_plane.begin(&caller("ada"), Value::Null).await.unwrap();
    let second = governed_plane.begin(&caller("eve"), Value::Null).await.expect("it is not charged to the first");
    let trees = governed_plane.plane.trees(&TraceId(1).to_string()).await.unwrap();
    let roots: Vec<_> = trees.iter().map(|tree| &tree.root).collect();
    assert_eq!(roots, [&first.id, &second.id]);
}

/// Two tenants have keys of the same agent, which works for both.
#[tokio::test]
async fn a_call_is_never_put_into_the_tree_of_another_tenant() {
    let rules = json!({ "budget": { "tree": { "max_usd": "10" } }, "prices": { "a": "1", "b": "1" } });
    let governed_plane = Plan::new(&rules).agent("a", patient()).agent("b", quick()).build();
    let of_globex = |name: &str| Caller::new("globex", name);
    let eve = CallContext { caller: of_globex("eve"), trace: TraceId(22), ..to("a", caller("eve")) };
    let theirs = governed_plane.begin(&eve, json!({ "ruvector": { "budget": { "usd": "2" } } })).await.unwrap();
    // Nothing of its own is open: what the other tenant has going says nothing.
    let by_a = to("b", agent_caller("a"));
    let alone = governed_plane.say(&CallContext { trace: TraceId(22), ..by_a.clone() }, "go").await.unwrap();
    let (governed, _) = governed_plane.plane.explain_task(&alone.id).await.unwrap().unwrap();
    assert_eq!((governed.kinship.attribution, governed.kinship.depth), (Attribution::Root, 0));
    assert_eq!(governed.kinship.path.to_string(), "a");
    // Of two that are open it is the own one, although the other is poorer and its trace fits.
    let ours = governed_plane.begin(&to("a", caller("ada")), Value::Null).await.unwrap();
    let child = governed_plane.say(&CallContext { trace: TraceId(22), ..by_a.clone() }, "go").await.unwrap();
    let (governed, _) = governed_plane.plane.explain_task(&child.id).await.unwrap().unwrap();
    assert_eq!((governed.kinship.attribution, governed.kinship.parent.as_ref()), (Attribution::Inferred, Some(&ours.id)));
    let back = governed_plane.say(&CallContext { trace: TraceId(22), ..to("a", agent_caller("a")) }, "back").await.unwrap_err();
    assert_eq!(back.kind, ErrorKind::RecursionRevisit);
    assert!(!back.message.contains("eve"), "{back}");
    // Neither its task nor its conversation can be named.
    let mut naming = message("go", Value::Null);
    naming.message = Arc::new(Message { context_id: Some(theirs.context_id.clone()), ..naming.message.as_ref().clone() });
    governed_plane.send(&by_a, naming).await.unwrap_err();
    let mut pointing = message("go", Value::Null);
    pointing.message = Arc::new(Message { reference_task_ids: vec![theirs.id.clone()], ..pointing.message.as_ref().clone() });
    governed_plane.send(&by_a, pointing).await.unwrap_err();
    let tree = tree(&governed_plane, theirs.id.as_str()).await;
    assert_eq!(tree.len(), 1, "{tree:?}");
    // The other tenant's key of the same agent is under its own.
    let by_their_a = CallContext { caller: of_globex("key-of-a"), ..by_a };
    let child = governed_plane.say(&by_their_a, "go").await.unwrap();
    let (governed, _) = governed_plane.plane.explain_task(&child.id).await.unwrap().unwrap();
    assert_eq!(governed.kinship.parent.as_ref(), Some(&theirs.id));
}
