//! What agents call their own tasks places the calls that use those names; names that callers were given place nothing.

use std::sync::Arc;

use chancery_core::lineage::Attribution;
use chancery_core::{LineageRecord, Link, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{CallContext, Caller, ContextId, Error, ErrorKind, Message, SendMessage, Task, TaskId};
use chancery_testkit::call_context;
use serde_json::{Value, json};

use crate::governance::governed_plane::{Elsewhere, GovernedPlane, Plan, agent_caller, caller, message, to};

/// An agent elsewhere that has names of its own for everything, and works until it is cancelled.
fn naming(names: impl Fn(&Task) -> (TaskId, ContextId) + Send + Sync + 'static) -> impl TaskRunner {
    Elsewhere(move |turn: Turn, updates: TaskUpdateSink| {
        let (task, context) = names(&turn.task);
        updates.expect_link(&Link { peer: "peer".into(), task: Some(task), context: Some(context) });
        async move {
            turn.cancelled.cancelled().await;
            Ok(updates.canceled())
        }
    })
}

fn own_task(id: &TaskId) -> TaskId {
    format!("task-{id}").into()
}

fn own_context(id: &ContextId) -> ContextId {
    format!("context-{id}").into()
}

fn governed_plane(rules: &Value) -> GovernedPlane {
    let own = |task: &Task| (own_task(&task.id), own_context(&task.context_id));
    let echo = |task: &Task| (task.id.clone(), task.context_id.clone());
    let plan = ["a", "b", "c"].iter().fold(Plan::new(rules), |plan, name| plan.agent(name, naming(own)));
    plan.agent("echo", naming(echo)).build()
}

fn open_to(agent: &str) -> CallContext {
    to(agent, call_context())
}

fn saying(edit: impl FnOnce(&mut Message)) -> SendMessage {
    let mut send = message("on", Value::Null);
    let mut said = send.message.as_ref().clone();
    edit(&mut said);
    send.message = Arc::new(said);
    send.configuration.return_immediately = true;
    send
}

fn in_context(id: ContextId) -> SendMessage {
    saying(|said| said.context_id = Some(id))
}

fn referring(id: TaskId) -> SendMessage {
    saying(|said| said.reference_task_ids = vec![id])
}

async fn placed(
    governed_plane: &GovernedPlane,
    context: &CallContext,
    send: SendMessage,
) -> Result<(Arc<Task>, LineageRecord), Error> {
    let task = governed_plane.send(context, send).await?;
    let (governed, _) = governed_plane.plane.explain_task(&task.id).await.unwrap().unwrap();
    Ok((task, LineageRecord::clone(&governed.kinship)))
}

#[tokio::test]
async fn a_call_that_uses_an_agents_own_name_for_its_task_is_bounded_and_charged_there() {
    type Use = fn(&Task) -> SendMessage;
    let ways: [(&str, Use); 3] = [
        ("contextId", |task| in_context(own_context(&task.context_id))),
        ("referenceTaskIds", |task| referring(own_task(&task.id))),
        ("the id that a caller of the original protocol chooses", |task| SendMessage {
            client_task_id: Some(own_task(&task.id).as_str().into()),
            ..saying(|_| {})
        }),
    ];
    for (way, using) in ways {
        let governed_plane =
            governed_plane(&json!({ "budget": { "tree": { "max_usd": "0.10" } }, "prices": { "a": "0.02", "b": "0.02" } }));
        let of_a = governed_plane.begin(&open_to("a"), Value::Null).await.unwrap();
        let (_, kinship) =
            placed(&governed_plane, &open_to("b"), using(&of_a)).await.unwrap_or_else(|error| panic!("{way}: {error}"));
        let place = (kinship.attribution, kinship.depth, &kinship.root, kinship.parent.as_ref());
        assert_eq!(place, (Attribution::Claimed, 1, &of_a.id, Some(&of_a.id)), "{way}");
        let back = placed(&governed_plane, &open_to("a"), using(&of_a)).await.unwrap_err();
        assert_eq!(back.kind, ErrorKind::RecursionRevisit, "{way}: {back}");
        // Five calls of 0.02 fit into 0.10. A name that the caller chose for a task makes no second one.
        let mut paid = 2;
        while paid <= 5 && using(&of_a).client_task_id.is_none() {
            if let Err(error) = placed(&governed_plane, &open_to("b"), using(&of_a)).await {
                assert_eq!((error.kind, paid), (ErrorKind::BudgetExhausted, 5), "{way}: {error}");
                break;
            }
            paid += 1;
        }
        assert!(paid <= 5, "{way}: {paid} calls are paid");
    }
}

/// A host passes its own context down, and so do those it calls.
#[tokio::test]
async fn those_who_were_called_in_the_context_of_an_agent_go_by_its_name_too() {
    let governed_plane = governed_plane(&json!({}));
    let of_a = governed_plane.begin(&open_to("a"), Value::Null).await.unwrap();
    let name = own_context(&of_a.context_id);
    let (_, of_b) = placed(&governed_plane, &open_to("b"), in_context(name.clone())).await.unwrap();
    assert_eq!((of_b.depth, of_b.path.to_string()), (1, "caller → a".into()));
    let (_, of_c) = placed(&governed_plane, &open_to("c"), in_context(name.clone())).await.unwrap();
    assert_eq!((of_c.depth, &of_c.root), (2, &of_a.id), "from A or from B: as deep as the deeper");
    let back = placed(&governed_plane, &open_to("a"), in_context(name)).await.unwrap_err();
    assert_eq!(back.kind, ErrorKind::RecursionRevisit, "whoever of them calls A, A waits for it: {back}");
}

#[tokio::test]
async fn names_that_callers_were_given_place_nothing() {
    let governed_plane = governed_plane(&json!({}));
    for agent in ["a", "echo"] {
        let first = governed_plane.begin(&open_to(agent), Value::Null).await.unwrap();
        // A client goes on with its conversation, and CrewAI names the calls it made before.
        for send in [in_context(first.context_id.clone()), referring(first.id.clone())] {
            for target in [agent, "b"] {
                let (_, kinship) = placed(&governed_plane, &open_to(target), send.clone()).await.unwrap();
                assert_eq!((kinship.attribution, kinship.depth), (Attribution::Root, 0), "{agent} → {target}");
            }
        }
    }
    // An agent that names its own earlier call is not under that call.
    let of_a = governed_plane.begin(&open_to("a"), Value::Null).await.unwrap();
    let (earlier, _) = placed(&governed_plane, &open_to("b"), in_context(own_context(&of_a.context_id))).await.unwrap();
    let (_, kinship) = placed(&governed_plane, &open_to("c"), referring(earlier.id.clone())).await.unwrap();
    assert_eq!(kinship.attribution, Attribution::Root);
    let by_address = CallContext { via: Some("a".into()), ..open_to("c") };
    let governed_plane = house_with_one_task().await;
    let (earlier, _) = placed(&governed_plane, &by_address, saying(|_| {})).await.unwrap();
    let again = CallContext { via: Some("a".into()), ..open_to("b") };
    let (_, kinship) = placed(&governed_plane, &again, referring(earlier.id.clone())).await.unwrap();
    assert_eq!((kinship.attribution, kinship.depth), (Attribution::Inferred, 1), "under its own task, not under its call");
    // What is nobody's name is refused as before.
    let refused = placed(&governed_plane, &open_to("b"), referring("task-that-nobody-has-ever-had".into())).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::InvalidParams, "{refused}");
}

async fn house_with_one_task() -> GovernedPlane {
    let governed_plane = governed_plane(&json!({}));
    governed_plane.begin(&open_to("a"), Value::Null).await.unwrap();
    governed_plane
}

/// Counters and common words are nobody's own.
#[tokio::test]
async fn a_name_of_fifteen_bytes_places_nothing_and_one_of_sixteen_does() {
    for (length, attribution) in [(15, Attribution::Root), (16, Attribution::Claimed)] {
        let name = "n".repeat(length);
        let given = ContextId::from(&*name);
        let agent = naming(move |task: &Task| (task.id.clone(), given.clone()));
        let governed_plane =
            Plan::new(&json!({})).agent("a", agent).agent("b", crate::governance::governed_plane::patient()).build();
        governed_plane.begin(&open_to("a"), Value::Null).await.unwrap();
        let (_, kinship) = placed(&governed_plane, &open_to("b"), in_context(ContextId::from(&*name))).await.unwrap();
        assert_eq!(kinship.attribution, attribution, "{length}");
    }
}

#[tokio::test]
async fn a_name_goes_with_its_task_and_without_claims_there_is_none() {
    let governed_plane = governed_plane(&json!({}));
    let of_a = governed_plane.begin(&open_to("a"), Value::Null).await.unwrap();
    governed_plane.cancel(&open_to("a"), &of_a.id).await.unwrap();
    let name = own_context(&of_a.context_id);
    let (_, kinship) = placed(&governed_plane, &open_to("b"), in_context(name)).await.unwrap();
    assert_eq!(kinship.attribution, Attribution::Root);
    let governed_plane = self::governed_plane(&json!({ "lineage": { "claims": false } }));
    let of_a = governed_plane.begin(&open_to("a"), Value::Null).await.unwrap();
    let (_, kinship) = placed(&governed_plane, &open_to("b"), in_context(own_context(&of_a.context_id))).await.unwrap();
    assert_eq!(kinship.attribution, Attribution::Root);
    placed(&governed_plane, &open_to("b"), referring(own_task(&of_a.id))).await.unwrap_err();
}

/// All that a call can bring, of a task that another tenant began, in all combinations.
#[tokio::test]
async fn whatever_a_known_caller_brings_it_is_never_put_into_the_tree_of_another_tenant() {
    const TOKENLESS: u32 = 5;
    let globex = |context: CallContext| CallContext { caller: Caller::new("globex", "eve"), ..context };
    for callers_own in [false, true] {
        for mask in 0..1 << TOKENLESS {
            let brings = |bit: u32| mask >> bit & 1 == 1;
            let governed_plane = governed_plane(&json!({}));
            let theirs = governed_plane.begin(&globex(to("a", caller("eve"))), Value::Null).await.unwrap();
            let (governed, _) = governed_plane.plane.explain_task(&theirs.id).await.unwrap().unwrap();
            let trace = governed.kinship.trace;
            if callers_own {
                governed_plane.begin(&to("a", caller("ada")), Value::Null).await.unwrap();
            }
            for by in [caller("ada"), agent_caller("a"), agent_caller("b")] {
                let mut context = to("c", by);
                if brings(0) {
                    (context.trace, context.span) = (trace, Some(7));
                }
                if brings(1) {
                    context.via = context.standing.agent.clone().or(Some("a".into()));
                }
                let claim = json!({ "ruvector": { "context": { "trace_id": trace, "depth": 0, "visited_agents": [] } } });
                let mut send = message("on", if brings(2) { claim } else { Value::Null });
                let mut said = send.message.as_ref().clone();
                said.context_id = brings(3).then(|| own_context(&theirs.context_id));
                send.client_task_id = brings(4).then(|| own_task(&theirs.id).as_str().into());
                send.message = Arc::new(said);
                send.configuration.return_immediately = true;
                let (_, kinship) = placed(&governed_plane, &context, send).await.unwrap();
                assert_ne!(kinship.root, theirs.id, "{mask:05b}, {callers_own}: {:?}", context.caller);
                assert_ne!(kinship.parent.as_ref(), Some(&theirs.id), "{mask:05b}");
            }
        }
    }
}

/// A tree of one's own is charged, by whoever of the tenant began it and nobody else.
#[tokio::test]
async fn where_callers_prove_who_they_are_a_name_counts_for_the_one_who_began_the_tree() {
    let governed_plane = governed_plane(&json!({}));
    let ours = governed_plane.begin(&to("a", caller("ada")), Value::Null).await.unwrap();
    for (name, attribution) in [("ada", Attribution::Claimed), ("bob", Attribution::Root)] {
        let send = in_context(own_context(&ours.context_id));
        let (_, kinship) = placed(&governed_plane, &to("b", caller(name)), send).await.unwrap();
        assert_eq!(kinship.attribution, attribution, "{name}");
    }
}
