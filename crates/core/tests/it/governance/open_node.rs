//! A node that asks nobody who they are: calls are placed by what agents pass on by themselves, and honest work is let through.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chancery_core::lineage::Attribution;
use chancery_core::{LineageRecord, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{CallContext, Caller, Error, ErrorKind, TaskId, TraceId};
use chancery_testkit::call_context;
use serde_json::{Value, json};

use crate::governance::governed_plane::{Elsewhere, GovernedPlane, Plan, caller, message, to};

/// What an agent was given with a task.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) task: TaskId,
    trace: TraceId,
    span: u64,
    tracestate: Arc<str>,
    context: Value,
    pub(super) hop_token: Option<Arc<str>>,
}

type Desk = Arc<Mutex<Vec<Given>>>;

/// An agent elsewhere that works until it is cancelled, or is done at once. One that is told to be quick is.
fn agent(desk: &Desk, quick: bool) -> impl TaskRunner {
    let desk = Arc::clone(desk);
    Elsewhere(move |turn: Turn, updates: TaskUpdateSink| {
        let delegation = &turn.delegation;
        let quick = quick || turn.message.first_text() == Some(QUICK);
        desk.lock().unwrap().push(Given {
            task: turn.task.id.clone(),
            trace: turn.trace,
            span: delegation.span().expect("a span goes out"),
            tracestate: delegation.tracestate(turn.tracestate.as_ref()).unwrap_or_default(),
            context: serde_json::to_value(delegation.context().expect("it has a place")).unwrap(),
            hop_token: delegation.hop_token(),
        });
        async move {
            if quick {
                return Ok(updates.complete(None));
            }
            turn.cancelled.cancelled().await;
            Ok(updates.canceled())
        }
    })
}

pub(super) struct Scene {
    pub(super) governed_plane: GovernedPlane,
    desk: Desk,
}

const AGENTS: [&str; 5] = ["a", "b", "c", "d", "quick"];
/// What an agent is told that is to be done at once.
const QUICK: &str = "quick";

fn scene(rules: &Value) -> Scene {
    scene_of(Plan::new(rules))
}

pub(super) fn scene_of(plan: Plan) -> Scene {
    let desk = Desk::default();
    let plan = AGENTS.iter().fold(plan, |plan, name| plan.agent(name, agent(&desk, *name == "quick")));
    Scene { governed_plane: plan.build(), desk }
}

impl Scene {
    /// Has an agent do a task at once, and answers what it was given. The task has ended.
    pub(super) async fn done(&self, context: &CallContext) -> Given {
        let task = self.governed_plane.say(context, QUICK).await.unwrap();
        let given = self.desk.lock().unwrap().iter().rev().find(|given| given.task == task.id).cloned();
        given.expect("the agent was asked")
    }

    /// Begins a task, and answers what its agent was given.
    pub(super) async fn begin(&self, context: &CallContext, said: Value) -> Result<Given, Error> {
        let task = self.governed_plane.begin(context, said).await?;
        let given = self.desk.lock().unwrap().iter().rev().find(|given| given.task == task.id).cloned();
        Ok(given.expect("the agent was asked"))
    }

    pub(super) async fn placed(&self, context: &CallContext, said: Value) -> Result<LineageRecord, ErrorKind> {
        let task = self.governed_plane.begin(context, said).await.map_err(|error| error.kind)?;
        let (governed, _) = self.governed_plane.plane.explain_task(&task.id).await.unwrap().unwrap();
        Ok(LineageRecord::clone(&governed.kinship))
    }
}

/// A call of somebody who proves nothing.
pub(super) fn open_to(agent: &str) -> CallContext {
    to(agent, call_context())
}

/// Passed on whole, as by OpenTelemetry with a span of the agent's own.
pub(super) fn instrumented(given: &Given, agent: &str) -> CallContext {
    let tracestate = Some(Arc::clone(&given.tracestate));
    CallContext { trace: given.trace, span: Some(0xabc), tracestate, ..open_to(agent) }
}

pub(super) fn traceparent_alone(given: &Given, agent: &str) -> CallContext {
    CallContext { trace: given.trace, span: Some(given.span), ..open_to(agent) }
}

pub(super) fn trace_id_alone(given: &Given, agent: &str) -> CallContext {
    CallContext { trace: given.trace, span: Some(0xabc), ..open_to(agent) }
}

pub(super) fn claimed(given: &Given) -> Value {
    json!({ "ruvector": { "context": given.context } })
}

pub(super) fn at_address_of(caller: &str, agent: &str) -> CallContext {
    CallContext { via: Some(caller.into()), ..open_to(agent) }
}

#[tokio::test]
async fn a_loop_of_two_is_refused_at_its_second_visit_whatever_the_agents_pass_on() {
    type Pass = fn(&Given, &str, &str) -> (CallContext, Value);
    let ways: [(&str, Pass, Attribution); 5] = [
        ("tracestate", |given, _, to| (instrumented(given, to), Value::Null), Attribution::Traced),
        ("traceparent", |given, _, to| (traceparent_alone(given, to), Value::Null), Attribution::Traced),
        ("trace id", |given, _, to| (trace_id_alone(given, to), Value::Null), Attribution::Inferred),
        ("ruvector.context", |given, _, to| (open_to(to), claimed(given)), Attribution::Claimed),
        ("address", |_, from, to| (at_address_of(from, to), Value::Null), Attribution::Inferred),
    ];
    for (way, pass, attribution) in ways {
        let scene = scene(&json!({ "budget": { "tree": { "max_usd": "0.10" } }, "prices": { "a": "0.02", "b": "0.02" } }));
        let of_a = scene.begin(&open_to("a"), Value::Null).await.unwrap();
        let (context, said) = pass(&of_a, "a", "b");
        let of_b = scene.begin(&context, said).await.unwrap_or_else(|error| panic!("{way}: {error}"));
        let (governed, _) = scene.governed_plane.plane.explain_task(&of_b.task).await.unwrap().unwrap();
        let kinship = &governed.kinship;
        assert_eq!((kinship.attribution, kinship.depth, &kinship.root), (attribution, 1, &of_a.task), "{way}");
        let (context, said) = pass(&of_b, "b", "a");
        let refused = scene.begin(&context, said).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::RecursionRevisit, "{way}: {refused}");
        assert_eq!(scene.desk.lock().unwrap().len(), 2, "{way}: 1 + 1 calls");
        // All is charged to the one tree: five calls of 0.02 fit into 0.10.
        let mut paid = 2;
        loop {
            let (context, said) = pass(&of_a, "a", "b");
            match scene.begin(&context, said).await {
                Ok(_) => paid += 1,
                Err(error) => break assert_eq!(error.kind, ErrorKind::BudgetExhausted, "{way}: {error}"),
            }
            assert!(paid <= 5, "{way}: {paid} calls are paid");
        }
    }
}

#[tokio::test]
async fn without_traces_and_claims_what_a_call_brings_places_nothing() {
    let scene = scene(&json!({ "lineage": { "traces": false, "claims": false } }));
    let given = scene.begin(&open_to("a"), Value::Null).await.unwrap();
    assert_eq!(&*given.tracestate, "", "no mark goes out");
    let given = Given { tracestate: "x=1".into(), ..given };
    for context in [instrumented(&given, "b"), traceparent_alone(&given, "b"), trace_id_alone(&given, "b")] {
        let kinship = scene.placed(&context, claimed(&given)).await.unwrap();
        assert_eq!((kinship.attribution, kinship.depth), (Attribution::Root, 0));
        assert!(kinship.claimed.is_some(), "it is shown");
    }
}

#[tokio::test]
async fn many_calls_of_a_client_in_one_trace_of_its_own_are_roots() {
    let scene = scene(&json!({}));
    let in_trace =
        |trace| CallContext { trace: TraceId(trace), span: Some(7), tracestate: Some("vendor=1".into()), ..open_to("a") };
    for _ in 0..50 {
        let kinship = scene.placed(&in_trace(5), Value::Null).await.unwrap();
        assert_eq!((kinship.attribution, kinship.made), (Attribution::Root, false));
    }
    // Neither does its context, nor what it refers to.
    let first = scene.governed_plane.begin(&open_to("a"), Value::Null).await.unwrap();
    let mut again = message("more", Value::Null);
    let mut said = again.message.as_ref().clone();
    said.context_id = Some(first.context_id.clone());
    said.reference_task_ids = vec![first.id.clone()];
    again.message = Arc::new(said);
    again.configuration.return_immediately = true;
    let second = scene.governed_plane.send(&open_to("a"), again).await.unwrap();
    let (governed, _) = scene.governed_plane.plane.explain_task(&second.id).await.unwrap().unwrap();
    assert_eq!(governed.kinship.attribution, Attribution::Root);
}

#[tokio::test]
async fn agents_side_by_side_may_call_each_other() {
    for pass in [instrumented, trace_id_alone] {
        let scene = scene(&json!({}));
        let of_a = scene.begin(&open_to("a"), Value::Null).await.unwrap();
        let of_b = scene.begin(&pass(&of_a, "b"), Value::Null).await.unwrap();
        let of_c = scene.begin(&pass(&of_a, "c"), Value::Null).await.unwrap();
        scene.begin(&pass(&of_b, "c"), Value::Null).await.expect("B calls C");
        scene.begin(&pass(&of_c, "b"), Value::Null).await.expect("C calls B");
    }
    // D under A calls B while A → B → C is open.
    for pass in [instrumented, trace_id_alone] {
        let scene = scene(&json!({}));
        let of_a = scene.begin(&open_to("a"), Value::Null).await.unwrap();
        let of_b = scene.begin(&pass(&of_a, "b"), Value::Null).await.unwrap();
        scene.begin(&pass(&of_b, "c"), Value::Null).await.unwrap();
        let of_d = scene.begin(&pass(&of_a, "d"), Value::Null).await.unwrap();
        scene.begin(&pass(&of_d, "b"), Value::Null).await.expect("D calls B");
    }
}

#[tokio::test]
async fn a_notified_receiver_begins_a_tree_of_its_own() {
    let scene = scene(&json!({}));
    let of_a = scene.begin(&open_to("a"), Value::Null).await.unwrap();
    let (key, _) = of_a.tracestate.split_once('=').unwrap();
    let detached = Given { tracestate: format!("{key}=-").into(), ..of_a };
    let kinship = scene.placed(&instrumented(&detached, "b"), Value::Null).await.unwrap();
    assert_eq!((kinship.attribution, kinship.depth), (Attribution::Root, 0));
}

#[tokio::test]
async fn a_claim_of_depth_and_of_a_visit_is_believed_against_its_caller() {
    let scene = scene(&json!({}));
    let claim = |context: Value| json!({ "ruvector": { "context": context } });
    let to_quick = open_to("quick");
    let refused = |context: Value| scene.placed(&to_quick, claim(context));
    let deep = refused(json!({ "depth": 99, "visited_agents": ["quick"] })).await.unwrap_err();
    assert_eq!(deep, ErrorKind::RecursionDepth);
    let visited = refused(json!({ "depth": 1, "visited_agents": ["quick"] })).await.unwrap_err();
    assert_eq!(visited, ErrorKind::RecursionRevisit);
    let let_through = scene.placed(&open_to("quick"), claim(json!({ "depth": 8, "visited_agents": ["x"] }))).await.unwrap();
    assert_eq!((let_through.attribution, let_through.depth), (Attribution::Claimed, 8));
    let shallow = scene.placed(&open_to("quick"), claim(json!({ "depth": 0, "visited_agents": [] }))).await.unwrap();
    assert_eq!((shallow.attribution, shallow.depth), (Attribution::Root, 0));
}

#[tokio::test]
async fn agents_that_answer_first_and_call_on_afterwards_are_bounded_by_depth_and_budget() {
    type Pass = fn(&Given, &str) -> CallContext;
    let ways: [Pass; 3] = [|_, to| at_address_of("quick", to), instrumented, traceparent_alone];
    for pass in ways {
        let rules = json!({ "budget": { "tree": { "max_usd": "1.00" } }, "prices": { "quick": "0.05" } });
        let scene = scene(&rules);
        let mut given = scene.begin(&open_to("quick"), Value::Null).await.unwrap();
        let root = given.task.clone();
        let mut depth = 0;
        let refused = loop {
            match scene.begin(&pass(&given, "quick"), Value::Null).await {
                Ok(next) => given = next,
                Err(error) => break error,
            }
            depth += 1;
            let (governed, _) = scene.governed_plane.plane.explain_task(&given.task).await.unwrap().unwrap();
            let kinship = &governed.kinship;
            assert_eq!((kinship.attribution, kinship.depth, &kinship.root), (Attribution::Late, depth, &root));
            assert!(depth <= 8);
        };
        assert_eq!((refused.kind, depth), (ErrorKind::RecursionDepth, 8), "{refused}");
        let tree = scene.governed_plane.standing("tree").expect("it is kept for as long as somebody may call for it");
        assert_eq!(tree.settled.usd, chancery_core::MicroUsd(450_000));
        // A minute later it is forgotten, and so is its budget.
        scene.governed_plane.clock.advance(Duration::from_secs(60));
        let kinship = scene.placed(&pass(&given, "b"), Value::Null).await.unwrap();
        assert_eq!(kinship.attribution, Attribution::Root);
        let open: Vec<_> = scene.governed_plane.plane.budgets().iter().map(|(account, _)| account.scope().to_string()).collect();
        assert!(!open.iter().any(|scope| scope.contains(root.as_str())), "{open:?}");
    }
}

#[tokio::test]
async fn a_mark_of_another_tenants_task_places_nothing_where_callers_prove_who_they_are() {
    let scene = scene(&json!({}));
    let theirs = scene.begin(&to("a", CallContext { caller: Caller::new("globex", "eve"), ..caller("eve") }), Value::Null).await;
    let theirs = theirs.unwrap();
    let ada = caller("ada");
    for brought in [instrumented(&theirs, "b"), traceparent_alone(&theirs, "b"), trace_id_alone(&theirs, "b")] {
        let context = CallContext { caller: ada.caller.clone(), standing: Arc::clone(&ada.standing), ..brought };
        let kinship = scene.placed(&context, Value::Null).await.unwrap();
        assert_eq!((kinship.attribution, kinship.depth), (Attribution::Root, 0));
    }
    // The trace of a tree counts for whoever began it, and for nobody else of the tenant.
    let ours = scene.begin(&to("a", caller("ada")), Value::Null).await.unwrap();
    for (name, attribution) in [("ada", Attribution::Inferred), ("bob", Attribution::Root)] {
        let known = caller(name);
        let context = CallContext { caller: known.caller, standing: known.standing, ..trace_id_alone(&ours, "b") };
        assert_eq!(scene.placed(&context, Value::Null).await.unwrap().attribution, attribution, "{name}");
    }
}

#[tokio::test]
async fn an_agent_at_the_address_of_another_is_refused() {
    let scene = scene(&json!({}));
    let of_a = crate::governance::governed_plane::agent_caller("a");
    let context = CallContext { via: Some("b".into()), ..to("c", of_a) };
    let refused = scene.governed_plane.begin(&context, Value::Null).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::LineageInvalid);
    assert!(refused.facts.contains(&("check", "address".to_owned())), "{:?}", refused.facts);
    // A caller that is no agent by its credentials is the one whose address it uses.
    scene.begin(&to("a", caller("ada")), Value::Null).await.unwrap();
    let by_address = CallContext { via: Some("a".into()), ..to("b", caller("ada")) };
    assert_eq!(scene.placed(&by_address, Value::Null).await.unwrap().attribution, Attribution::Inferred);
}

#[tokio::test]
async fn an_address_is_its_agents_until_a_day_after_it_was_rotated() {
    let scene = scene(&json!({}));
    let plane = &scene.governed_plane.plane;
    let secret = plane.agent_secret("a");
    assert_eq!((secret.len(), plane.agent_at(&secret).as_deref()), (26, Some("a")));
    assert_ne!(secret, plane.agent_secret("b"));
    for wrong in ["", "x", &secret[1..], &secret.to_uppercase(), &format!("{secret}a")] {
        assert_eq!(plane.agent_at(wrong), None, "{wrong}");
    }
    let rotation = chancery_core::AddressRotation { generation: 1, rotated_at: plane.now() };
    plane.set_address_rotations([("a".into(), rotation)].into());
    let newer = plane.agent_secret("a");
    assert_ne!(secret, newer);
    for (hours, old_holds) in [(0, true), (23, true), (1, false)] {
        scene.governed_plane.clock.advance(Duration::from_secs(hours * 3_600));
        assert_eq!(plane.agent_at(&newer).as_deref(), Some("a"));
        assert_eq!(plane.agent_at(&secret).is_some(), old_holds, "after {hours} hours more");
    }
}
