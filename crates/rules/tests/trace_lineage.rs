//! A call is put under the task it proves, the task it can only be, or under all it could be; never where it says it is.

use chancery_protocol::{ContextId, ErrorKind, TaskId, TraceId};
use chancery_rules::MicroUsd;
use chancery_rules::lineage::{
    Allowance, Attribution, ClaimedContext, Lineage, LineageConfig, LineageError, LineageFacts, OpenTask, Parent, Presented,
    TaskContext, TokenCheck, TokenClaims, Unattributed, attribute,
};
use proptest::prelude::*;

fn usd(micros: i64) -> Allowance {
    Allowance { usd: Some(MicroUsd(micros)), tokens: None }
}

/// A task of `holder`, as deep as there are agents between.
fn open(id: &str, trace: u128, above: &[&str], remaining: Allowance) -> OpenTask {
    let (first, rest) = above.split_first().unwrap();
    let root = TaskContext::root(TraceId(trace), (*first).into());
    let context = rest.iter().fold(root, |context, agent| context.child(format!("{id}-{agent}").into(), (*agent).into()));
    OpenTask {
        id: id.into(),
        root: format!("root-of-{trace}").into(),
        context,
        context_id: format!("context-{id}").into(),
        remote_id: Some(format!("remote-{id}").into()),
        remote_context_id: Some(format!("remote-context-{id}").into()),
        remaining,
    }
}

fn facts(open: &[OpenTask]) -> LineageFacts<'_> {
    LineageFacts {
        tenant: "t",
        caller: "worker".into(),
        known_agent: true,
        token: Presented::Nothing,
        open,
        context_id: None,
        reference_task_ids: &[],
        traceparent: None,
        unattributed: Unattributed::Infer,
        new_trace: TraceId(99),
    }
}

fn claims(task: &OpenTask) -> TokenClaims {
    TokenClaims {
        tenant: "t".into(),
        root_task: task.root.clone(),
        parent_task: task.id.clone(),
        trace_id: task.context.trace_id,
        depth: task.context.depth,
        audience: "worker".into(),
    }
}

fn presented(claims: TokenClaims, parent: Parent) -> LineageFacts<'static> {
    LineageFacts { token: Presented::Good(Box::new(claims), Box::new(parent)), ..facts(&[]) }
}

fn parent(lineage: &Lineage) -> Option<&str> {
    lineage.context.parent_task_id.as_ref().map(TaskId::as_str)
}

#[test]
fn a_good_token_puts_the_call_one_deeper_under_its_task() {
    let task = open("x", 1, &["user", "planner"], usd(5));
    let lineage = attribute(&presented(claims(&task), Parent::Open(task.clone()))).unwrap();
    assert_eq!((lineage.attribution, parent(&lineage), lineage.context.depth), (Attribution::Verified, Some("x"), 2));
    assert_eq!(lineage.context.visited_agents.to_string(), "user → planner → worker");
    assert_eq!((lineage.context.trace_id, lineage.root_task), (TraceId(1), Some(task.root.clone())));
    assert_eq!((lineage.remaining, &*lineage.context.root_agent_id), (usd(5), "user"));
}

#[test]
fn a_good_token_counts_whatever_else_is_open_or_said_or_configured() {
    let task = open("x", 1, &["user"], usd(5));
    let others = [open("y", 2, &["user", "a", "b"], usd(1)), open("z", 3, &["user"], usd(1))];
    for unattributed in [Unattributed::Infer, Unattributed::Deny, Unattributed::Root] {
        let facts = LineageFacts {
            open: &others,
            unattributed,
            traceparent: Some(TraceId(2)),
            ..presented(claims(&task), Parent::Open(task.clone()))
        };
        assert_eq!(parent(&attribute(&facts).unwrap()), Some("x"));
    }
}

#[test]
fn every_fault_of_a_token_refuses_the_call() {
    let task = open("x", 1, &["user", "planner"], usd(5));
    let good = claims(&task);
    let held = || Parent::Open(task.clone());
    for (facts, check) in [
        (presented(TokenClaims { tenant: "other".into(), ..good.clone() }, held()), TokenCheck::Tenant),
        (presented(TokenClaims { audience: "thief".into(), ..good.clone() }, held()), TokenCheck::Audience),
        (presented(good.clone(), Parent::Unknown), TokenCheck::UnknownParent),
        (presented(good.clone(), Parent::Closed), TokenCheck::ClosedParent),
        (presented(TokenClaims { depth: 0, ..good.clone() }, held()), TokenCheck::Parent),
        (presented(TokenClaims { depth: 2, ..good.clone() }, held()), TokenCheck::Parent),
        (presented(TokenClaims { trace_id: TraceId(2), ..good.clone() }, held()), TokenCheck::Parent),
        (presented(TokenClaims { root_task: "other".into(), ..good.clone() }, held()), TokenCheck::Parent),
        (presented(TokenClaims { parent_task: "other".into(), ..good.clone() }, held()), TokenCheck::Parent),
    ] {
        assert_eq!(attribute(&facts), Err(LineageError::Invalid(check)));
    }
    for check in [TokenCheck::Malformed, TokenCheck::Signature, TokenCheck::Expired, TokenCheck::UnknownKey] {
        // Not even where calls without any token are let in as roots.
        let facts = LineageFacts { token: Presented::Faulty(check), unattributed: Unattributed::Root, ..facts(&[]) };
        let refused = attribute(&facts).unwrap_err();
        assert_eq!((refused, refused.kind()), (LineageError::Invalid(check), ErrorKind::LineageInvalid));
    }
}

#[test]
fn without_a_token_the_open_tasks_of_the_caller_decide() {
    let root = attribute(&facts(&[])).unwrap();
    assert_eq!((root.attribution, root.context.depth, parent(&root)), (Attribution::Root, 0, None));
    assert_eq!((root.context.visited_agents.to_string(), root.context.trace_id), ("worker".into(), TraceId(99)));
    assert!(root.candidates.is_empty() && root.root_task.is_none());

    let one = [open("x", 1, &["user", "planner"], usd(5))];
    let foreign = LineageFacts { token: Presented::Foreign, ..facts(&one) };
    for facts in [facts(&one), foreign] {
        let inferred = attribute(&facts).unwrap();
        assert_eq!((inferred.attribution, inferred.context.depth, parent(&inferred)), (Attribution::Inferred, 2, Some("x")));
        assert_eq!(inferred.context.visited_agents.to_string(), "user → planner → worker");
        assert_eq!(inferred.remaining, usd(5));
    }
}

#[test]
fn several_open_tasks_are_narrowed_in_order_by_context_references_and_trace() {
    let tasks =
        [open("x", 1, &["user"], usd(5)), open("y", 1, &["user", "planner"], usd(4)), open("z", 2, &["user", "planner"], usd(3))];
    let by_context = |id: &str| {
        let id = ContextId::new(id);
        let lineage = attribute(&LineageFacts { context_id: Some(&id), ..facts(&tasks) }).unwrap();
        (lineage.attribution, lineage.candidates[0].id.to_string())
    };
    assert_eq!(by_context("context-x"), (Attribution::Inferred, "x".into()));
    assert_eq!(by_context("remote-context-y"), (Attribution::Inferred, "y".into()));
    assert_eq!(by_context("unheard-of").0, Attribution::Ambiguous);

    for (reference, found) in [("z", "z"), ("remote-x", "x")] {
        let references = [TaskId::new("unheard-of"), TaskId::new(reference)];
        let lineage = attribute(&LineageFacts { reference_task_ids: &references, ..facts(&tasks) }).unwrap();
        assert_eq!((lineage.attribution, parent(&lineage)), (Attribution::Inferred, Some(found)));
    }
    let traced = |trace| attribute(&LineageFacts { traceparent: Some(TraceId(trace)), ..facts(&tasks) }).unwrap();
    assert_eq!(parent(&traced(2)), Some("z"));
    assert_eq!((traced(1).attribution, traced(1).candidates.len()), (Attribution::Ambiguous, 2));
    assert_eq!(traced(3).candidates.len(), 3);

    // What comes first outweighs the rest.
    let (context, references) = (ContextId::new("context-x"), [TaskId::new("z")]);
    let both = LineageFacts {
        context_id: Some(&context),
        reference_task_ids: &references,
        traceparent: Some(TraceId(2)),
        ..facts(&tasks)
    };
    assert_eq!(parent(&attribute(&both).unwrap()), Some("x"));
}

#[test]
fn an_ambiguous_call_is_bound_by_everything_it_may_come_from() {
    let tasks = [
        open("x", 1, &["user"], Allowance { usd: Some(MicroUsd(1)), tokens: None }),
        open("y", 2, &["client", "planner", "critic"], Allowance { usd: None, tokens: Some(70) }),
        open("z", 3, &["user", "editor"], Allowance { usd: Some(MicroUsd(9)), tokens: Some(80) }),
    ];
    let lineage = attribute(&facts(&tasks)).unwrap();
    assert_eq!((lineage.attribution, lineage.context.depth, parent(&lineage)), (Attribution::Ambiguous, 3, Some("y")));
    assert_eq!(lineage.context.visited_agents.to_string(), "client → planner → critic → user → editor → worker");
    assert_eq!(lineage.remaining, Allowance { usd: Some(MicroUsd(1)), tokens: Some(70) });
    let ids: Vec<_> = lineage.candidates.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["y", "z", "x"]);
}

#[test]
fn the_setting_decides_about_agents_that_send_no_token() {
    let one = [open("x", 1, &["user"], usd(5))];
    let several = [one[0].clone(), open("y", 2, &["user"], usd(5))];
    for open in [&[][..], &one, &several] {
        let denied = LineageFacts { unattributed: Unattributed::Deny, ..facts(open) };
        assert_eq!(attribute(&denied).unwrap_err().kind(), ErrorKind::LineageRequired);
        let root = LineageFacts { unattributed: Unattributed::Root, ..facts(open) };
        assert_eq!(attribute(&root).unwrap().attribution, Attribution::Root);
    }
    let stranger = LineageFacts { unattributed: Unattributed::Deny, known_agent: false, ..facts(&[]) };
    assert_eq!(attribute(&stranger).unwrap().attribution, Attribution::Root);
    let config: LineageConfig = serde_json::from_str(r#"{"unattributed":"deny"}"#).unwrap();
    assert_eq!((config.unattributed, LineageConfig::default().unattributed), (Unattributed::Deny, Unattributed::Infer));
    serde_json::from_str::<LineageConfig>(r#"{"unattributed":"guess"}"#).unwrap_err();
}

#[test]
fn a_caller_that_is_no_agent_is_not_taken_for_the_agent_of_its_name() {
    let user = attribute(&LineageFacts { caller: "echo".into(), known_agent: false, ..facts(&[]) }).unwrap();
    assert_eq!(user.context.visited_agents.to_string(), "caller/echo");
    assert!(!user.context.visited_agents.contains("echo"));
}

#[test]
fn a_forged_context_is_a_claim_and_moves_nothing() {
    let forged = r#"{"trace_id":"0af7651916cd43dd8448eb211c80319c","depth":0,"visited_agents":[],"root_agent_id":"king"}"#;
    let claim: ClaimedContext = serde_json::from_str(forged).unwrap();
    let tasks = [open("x", 1, &["user", "planner"], usd(5))];
    // There is no place in the facts where a claim could be put but the trace it names, and that only chooses among open tasks.
    let lineage = attribute(&LineageFacts { traceparent: claim.trace_id, ..facts(&tasks) }).unwrap();
    assert_eq!(lineage, attribute(&facts(&tasks)).unwrap());
    assert_eq!(lineage.context.depth, 2);
}

fn any_task() -> impl Strategy<Value = OpenTask> {
    let agents = prop::collection::vec("[a-e]", 1..5);
    (0u32..1000, 1u128..4, agents, prop::option::of(0i64..10), prop::option::of(0u64..10)).prop_map(
        |(id, trace, agents, usd, tokens)| {
            let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
            open(&id.to_string(), trace, &agents, Allowance { usd: usd.map(MicroUsd), tokens })
        },
    )
}

proptest! {
    #[test]
    fn attribution_never_widens(
        tasks in prop::collection::vec(any_task(), 0..6),
        trace in prop::option::of(1u128..5),
        context in prop::option::of(0u32..1000),
        references in prop::collection::vec(0u32..1000, 0..3),
    ) {
        let context = context.map(|id| ContextId::new(format!("context-{id}")));
        let references: Vec<TaskId> = references.into_iter().map(|id| id.to_string().into()).collect();
        let facts = LineageFacts {
            context_id: context.as_ref(),
            reference_task_ids: &references,
            traceparent: trace.map(TraceId),
            ..facts(&tasks)
        };
        let lineage = attribute(&facts).unwrap();
        prop_assert_eq!(lineage.candidates.is_empty(), tasks.is_empty());
        for task in &lineage.candidates {
            prop_assert!(tasks.contains(task));
            prop_assert!(lineage.context.depth > task.context.depth);
            prop_assert_eq!(lineage.remaining.and(task.remaining), lineage.remaining);
            for agent in task.context.visited_agents.to_vec() {
                prop_assert!(lineage.context.visited_agents.contains(&agent));
            }
        }
        prop_assert_eq!(lineage.context.visited_agents.backwards().next().map(|last| &**last), Some("worker"));
        let expected = match lineage.candidates.len() {
            0 => Attribution::Root,
            1 => Attribution::Inferred,
            _ => Attribution::Ambiguous,
        };
        prop_assert_eq!(lineage.attribution, expected);
        // The order in which the store lists open tasks changes nothing.
        let turned: Vec<_> = tasks.iter().rev().cloned().collect();
        let again = attribute(&LineageFacts { open: &turned, ..facts }).unwrap();
        prop_assert_eq!(again.context.depth, lineage.context.depth);
        prop_assert_eq!(again.remaining, lineage.remaining);
    }

    #[test]
    fn a_child_is_one_deeper_keeps_its_root_and_adds_its_caller(agents in prop::collection::vec("[a-z]{1,8}", 1..40)) {
        let mut context = TaskContext::root(TraceId(5), "root".into());
        for (number, agent) in agents.iter().enumerate() {
            let child = context.child(number.to_string().into(), agent.as_str().into());
            prop_assert_eq!(child.depth, context.depth + 1);
            prop_assert_eq!(child.visited_agents.len(), context.visited_agents.len() + 1);
            prop_assert_eq!((child.trace_id, &child.root_agent_id), (context.trace_id, &context.root_agent_id));
            for visited in context.visited_agents.backwards() {
                prop_assert!(child.visited_agents.contains(visited));
            }
            prop_assert!(child.visited_agents.contains(agent));
            prop_assert_eq!(child.parent_task_id, Some(number.to_string().into()));
            context = context.child(number.to_string().into(), agent.as_str().into());
        }
        let written = serde_json::to_string(&context).unwrap();
        prop_assert_eq!(serde_json::from_str::<TaskContext>(&written).unwrap(), context);
    }
}
