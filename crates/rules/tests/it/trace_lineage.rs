//! A call is put under the task it proves, the task it can only be, or under all it could be; never where it says it is.

use std::sync::LazyLock;

use chancery_protocol::{AgentId, ContextId, ErrorKind, TaskId, TraceId};
use chancery_rules::MicroUsd;
use chancery_rules::lineage::{
    AgentIdIndex, AgentRef, Allowance, Attribution, ClaimedContext, LONGEST_LINGER_S, Lineage, LineageConfig, LineageError,
    LineageFacts, OpenTask, Parent, PresentedToken, TaskContext, TokenCheck, TokenClaims, TraceMark, Unattributed, attribute,
};
use proptest::prelude::*;

static TARGET: LazyLock<AgentRef> = LazyLock::new(|| "target".into());

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
        holder: "worker".into(),
        context,
        context_id: format!("context-{id}").into(),
        remote_id: Some(format!("remote-{id}").into()),
        remote_context_id: Some(format!("remote-context-{id}").into()),
        remaining,
    }
}

static IDS: LazyLock<AgentIdIndex> = LazyLock::new(|| {
    AgentIdIndex::new([("worker".into(), AgentId::from_digest(&[1; 32])), ("target".into(), AgentId::from_digest(&[2; 32]))])
});

fn facts(open: &[OpenTask]) -> LineageFacts<'_> {
    LineageFacts {
        tenant: "t",
        caller: "worker".into(),
        known_agent: true,
        target: &TARGET,
        token: PresentedToken::Nothing,
        mark: TraceMark::Nothing,
        open,
        tree: &[],
        named: &[],
        claimed_tree: &[],
        ended: None,
        claimed: None,
        agent_ids: &IDS,
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
    LineageFacts { token: PresentedToken::Good(Box::new(claims), Box::new(parent)), ..facts(&[]) }
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
        let facts = LineageFacts { token: PresentedToken::Faulty(check), unattributed: Unattributed::Root, ..facts(&[]) };
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
    let foreign = LineageFacts { token: PresentedToken::Foreign, ..facts(&one) };
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
        // This node's own mark of a task that the caller works on is as good as its token.
        let task = marked_task();
        let marked = LineageFacts { mark: TraceMark::Open(task.clone()), unattributed: Unattributed::Deny, ..facts(open) };
        assert_eq!(attribute(&marked).unwrap().attribution, Attribution::Traced);
        let of_another = TraceMark::Open(held_by("searcher", task));
        let marked = LineageFacts { mark: of_another, unattributed: Unattributed::Deny, ..facts(open) };
        assert_eq!(attribute(&marked).unwrap_err(), LineageError::Required);
        let root = LineageFacts { unattributed: Unattributed::Root, ..facts(open) };
        assert_eq!(attribute(&root).unwrap().attribution, Attribution::Root);
    }
    let stranger = LineageFacts { unattributed: Unattributed::Deny, known_agent: false, ..facts(&[]) };
    assert_eq!(attribute(&stranger).unwrap().attribution, Attribution::Root);
    let config: LineageConfig = serde_json::from_str(r#"{"unattributed":"deny"}"#).unwrap();
    assert_eq!((config.unattributed, LineageConfig::default().unattributed), (Unattributed::Deny, Unattributed::Infer));
    serde_json::from_str::<LineageConfig>(r#"{"unattributed":"guess"}"#).unwrap_err();
}

fn marked_task() -> OpenTask {
    open("m", 3, &["user", "planner"], usd(5))
}

fn claim(text: &str) -> ClaimedContext {
    serde_json::from_str(text).unwrap()
}

/// A caller that is no agent of this node.
fn stranger<'a>() -> LineageFacts<'a> {
    LineageFacts { caller: "somebody".into(), known_agent: false, ..facts(&[]) }
}

fn held_by(holder: &str, task: OpenTask) -> OpenTask {
    OpenTask { holder: holder.into(), ..task }
}

#[test]
fn a_claim_only_makes_a_call_deeper_and_its_path_longer() {
    let tasks = [open("x", 1, &["user", "planner"], usd(5))];
    let shallow =
        claim(r#"{"trace_id":"0af7651916cd43dd8448eb211c80319c","depth":0,"visited_agents":[],"root_agent_id":"king"}"#);
    let lineage = attribute(&LineageFacts { claimed: Some(&shallow), ..facts(&tasks) }).unwrap();
    assert_eq!(lineage, attribute(&facts(&tasks)).unwrap());
    let deep = claim(r#"{"depth":7,"visited_agents":["planner","critic"]}"#);
    let lineage = attribute(&LineageFacts { claimed: Some(&deep), ..facts(&tasks) }).unwrap();
    assert_eq!((lineage.attribution, lineage.context.depth, parent(&lineage)), (Attribution::Claimed, 7, Some("x")));
    assert_eq!(lineage.context.visited_agents.to_string(), "user → planner → worker → critic");
    // Another node writes where the calls of the agent would stand that it calls, and names agents of its own.
    let told = LineageFacts { claimed: Some(&deep), token: PresentedToken::Foreign, ..stranger() };
    let from_node = attribute(&told).unwrap();
    assert_eq!((from_node.context.depth, from_node.context.visited_agents.to_string()), (6, "somebody".into()));
    // Those that it names by their AgentIDs count: an agent of this node, and one of its own by the name of one of ours.
    let distinct = claim(r#"{"depth":2,"visited_agents":["planner","other#02020202","worker#0a0b0c0d"]}"#);
    let from_node = attribute(&LineageFacts { claimed: Some(&distinct), token: PresentedToken::Foreign, ..stranger() }).unwrap();
    assert_eq!(from_node.context.visited_agents.to_string(), "somebody → target → worker#0a0b0c0d");
    let root = attribute(&LineageFacts { claimed: Some(&deep), ..stranger() }).unwrap();
    assert_eq!((root.attribution, root.context.depth, root.root_task), (Attribution::Claimed, 7, None));
    // Of a tree that is open it counts as one more place the call may come from.
    let lineage = attribute(&LineageFacts { claimed: Some(&shallow), claimed_tree: &tasks, ..stranger() }).unwrap();
    assert_eq!((lineage.attribution, lineage.context.depth, parent(&lineage)), (Attribution::Claimed, 2, Some("x")));
}

#[test]
fn a_mark_in_the_trace_places_its_holder_and_strangers_exactly_and_binds_other_agents() {
    let marked = held_by("searcher", open("m", 1, &["user", "planner"], usd(5)));
    let by_stranger = attribute(&LineageFacts { mark: TraceMark::Open(marked.clone()), ..stranger() }).unwrap();
    let holder = LineageFacts { caller: "searcher".into(), ..facts(&[]) };
    let by_holder = attribute(&LineageFacts { mark: TraceMark::Open(marked.clone()), ..holder }).unwrap();
    for lineage in [by_stranger, by_holder] {
        assert_eq!((lineage.attribution, lineage.context.depth, parent(&lineage)), (Attribution::Traced, 2, Some("m")));
        assert_eq!(lineage.context.visited_agents.to_string(), "user → planner → searcher");
    }
    // An agent with a task of its own is bound by both.
    let own = [open("x", 2, &["client"], usd(1))];
    let both = attribute(&LineageFacts { mark: TraceMark::Open(marked.clone()), ..facts(&own) }).unwrap();
    assert_eq!((both.attribution, both.context.depth, both.remaining), (Attribution::Ambiguous, 2, usd(1)));
    for agent in ["user", "planner", "searcher", "client", "worker"] {
        assert!(both.context.visited_agents.contains(agent), "{agent}: {}", both.context.visited_agents);
    }
    let alone = attribute(&LineageFacts { mark: TraceMark::Open(marked.clone()), ..facts(&[]) }).unwrap();
    assert_eq!(alone.context.visited_agents.to_string(), "user → planner → searcher → worker");
    // One that has ended counts where nothing is open, and for its holder.
    let late = attribute(&LineageFacts { mark: TraceMark::Ended(marked.clone()), ..stranger() }).unwrap();
    assert_eq!((late.attribution, late.context.depth), (Attribution::Late, 2));
    let inferred = attribute(&LineageFacts { mark: TraceMark::Ended(marked), ..facts(&own) }).unwrap();
    assert_eq!((inferred.attribution, parent(&inferred)), (Attribution::Inferred, Some("x")));
}

#[test]
fn in_a_tree_a_call_comes_back_only_if_it_does_so_from_everywhere() {
    let target: AgentRef = "b".into();
    let a = held_by("a", open("a", 1, &["user"], usd(5)));
    let c = held_by("c", open("c", 1, &["user", "a", "b"], usd(3)));
    let d = held_by("d", open("d", 1, &["user", "a"], usd(4)));
    // D under A calls B, while A → B → C is open: C waits for B, D and A do not.
    let tree = [a.clone(), c.clone(), d];
    let lineage = attribute(&LineageFacts { target: &target, tree: &tree, ..stranger() }).unwrap();
    assert_eq!((lineage.attribution, lineage.context.depth), (Attribution::Ambiguous, 3), "as deep as the deepest");
    assert_eq!(lineage.context.visited_agents.to_string(), "user → a → d");
    assert_eq!(lineage.remaining, usd(3));
    // From C alone it is a loop.
    let lineage = attribute(&LineageFacts { target: &target, tree: &[c], ..stranger() }).unwrap();
    assert_eq!((lineage.attribution, parent(&lineage)), (Attribution::Inferred, Some("c")));
    assert!(lineage.context.visited_agents.contains("b"));
    let lineage = attribute(&LineageFacts { target: &target, tree: &[a], ..stranger() }).unwrap();
    assert_eq!((lineage.attribution, parent(&lineage)), (Attribution::Inferred, Some("a")));
}

#[test]
fn an_agents_own_name_for_its_task_places_the_call_and_never_loosens_its_place() {
    let named = [held_by("a", open("x", 1, &["user", "planner"], usd(5)))];
    let lineage = attribute(&LineageFacts { named: &named, ..stranger() }).unwrap();
    assert_eq!((lineage.attribution, lineage.context.depth, parent(&lineage)), (Attribution::Claimed, 2, Some("x")));
    assert_eq!((lineage.context.visited_agents.to_string(), lineage.remaining), ("user → planner → a".into(), usd(5)));
    // The agent calls itself: its own task is the only place the call can come from.
    let target: AgentRef = "a".into();
    let itself = attribute(&LineageFacts { named: &named, target: &target, ..stranger() }).unwrap();
    assert!(itself.context.visited_agents.contains("a"));
    // A mark in the trace is exact. What the message names beside it changes nothing.
    let marked = || TraceMark::Open(held_by("b", open("m", 2, &["client"], usd(1))));
    let traced = attribute(&LineageFacts { mark: marked(), ..stranger() }).unwrap();
    assert_eq!(attribute(&LineageFacts { mark: marked(), named: &named, ..stranger() }).unwrap(), traced);
    // A tree that is known by its trace pays. The named task makes the call deeper.
    let tree = [held_by("b", open("m", 2, &["client"], usd(1)))];
    let both = attribute(&LineageFacts { tree: &tree, named: &named, ..stranger() }).unwrap();
    assert_eq!((both.attribution, both.context.depth, parent(&both)), (Attribution::Claimed, 2, Some("m")));
    assert_eq!(both.context.visited_agents.to_string(), "client → b → user → planner → a");
    // An open task counts before one that has ended.
    let ended = open("e", 3, &["client"], usd(1));
    let lineage = attribute(&LineageFacts { named: &named, ended: Some(&ended), ..facts(&[]) }).unwrap();
    assert_eq!((lineage.attribution, parent(&lineage)), (Attribution::Claimed, Some("x")));
}

#[test]
fn what_comes_after_the_end_is_under_the_ended_task() {
    let ended = open("x", 1, &["user", "planner"], usd(5));
    let lineage = attribute(&LineageFacts { ended: Some(&ended), ..facts(&[]) }).unwrap();
    assert_eq!((lineage.attribution, lineage.context.depth, parent(&lineage)), (Attribution::Late, 2, Some("x")));
    let by_token = attribute(&presented(claims(&ended), Parent::Ended(ended.clone()))).unwrap();
    assert_eq!((by_token.attribution, by_token.context.depth), (Attribution::Late, 2));
}

/// A busy agent calls on for a task it has answered: its token or mark names that task with proof. The tasks it works on meanwhile
/// bound the call too, so an old token gives it no better place. Refusing the token, or charging the other tree, broke honest work.
#[test]
fn a_late_call_of_a_busy_agent_is_under_the_ended_task_and_bound_by_its_open_ones() {
    let ended = open("x", 1, &["user", "planner"], usd(5));
    let own = [open("y", 2, &["client"], usd(1)), open("z", 3, &["client", "target", "critic", "editor"], usd(7))];
    let by_token = LineageFacts { open: &own, ..presented(claims(&ended), Parent::Ended(ended.clone())) };
    let by_mark = LineageFacts { mark: TraceMark::Ended(ended.clone()), ..facts(&own) };
    for facts in [by_token, by_mark] {
        let lineage = attribute(&facts).unwrap();
        assert_eq!((lineage.attribution, parent(&lineage)), (Attribution::Late, Some("x")));
        assert_eq!((lineage.context.trace_id, &lineage.root_task), (TraceId(1), &Some(ended.root.clone())));
        assert_eq!((lineage.context.depth, lineage.remaining), (4, usd(1)), "as deep as the deepest, as poor as the poorest");
        for agent in ["user", "planner", "client", "target", "critic", "editor", "worker"] {
            assert!(lineage.context.visited_agents.contains(agent), "{agent}: {}", lineage.context.visited_agents);
        }
        let candidates: Vec<&str> = lineage.candidates.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(candidates, ["x", "z", "y"]);
    }
    // The mark of a task that another agent had proves nothing of this one: its own open tasks decide.
    let of_another = LineageFacts { mark: TraceMark::Ended(held_by("searcher", ended.clone())), ..facts(&own[..1]) };
    let lineage = attribute(&of_another).unwrap();
    assert_eq!((lineage.attribution, parent(&lineage)), (Attribution::Inferred, Some("y")));
    // A token is still checked, and a cancelled task places nothing.
    let other_tenant = presented(TokenClaims { tenant: "other".into(), ..claims(&ended) }, Parent::Ended(ended.clone()));
    assert_eq!(attribute(&LineageFacts { open: &own, ..other_tenant }), Err(LineageError::Invalid(TokenCheck::Tenant)));
    let closed = presented(claims(&ended), Parent::Closed);
    assert_eq!(attribute(&LineageFacts { open: &own, ..closed }), Err(LineageError::Invalid(TokenCheck::ClosedParent)));
}

#[test]
fn the_section_has_its_defaults_and_its_edge() {
    let config = |text: &str| serde_json::from_str::<LineageConfig>(text);
    let plain = config("{}").unwrap();
    assert_eq!((plain.traces, plain.claims, plain.linger_s), (true, true, 60));
    assert_eq!(config(&format!(r#"{{"linger_s":{LONGEST_LINGER_S}}}"#)).unwrap().linger_s, LONGEST_LINGER_S);
    config(&format!(r#"{{"linger_s":{}}}"#, LONGEST_LINGER_S + 1)).unwrap_err();
    for (bytes, is_good) in [(255, false), (256, true), (16_384, true), (16_385, false)] {
        assert_eq!(config(&format!(r#"{{"max_bytes":{bytes}}}"#)).is_ok(), is_good, "{bytes}");
    }
    for (tasks, is_good) in [(99, false), (100, true), (1_000_000, true), (1_000_001, false)] {
        assert_eq!(config(&format!(r#"{{"max_ended":{tasks}}}"#)).is_ok(), is_good, "{tasks}");
    }
    assert_eq!((plain.max_bytes, plain.max_ended), (4_096, 10_000));
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
    /// Whatever a call brings, it is never shallower, shorter or richer than every task it may come from.
    #[test]
    fn nothing_a_call_brings_opens_anything(
        own in prop::collection::vec(any_task(), 0..3),
        tree in prop::collection::vec(any_task(), 0..4),
        named in prop::collection::vec(any_task(), 0..3),
        claimed_tree in prop::collection::vec(any_task(), 0..3),
        marked in prop::option::of((any_task(), any::<bool>(), "[a-e]", any::<bool>())),
        late_token in prop::option::of(any_task()),
        ended in prop::option::of(any_task()),
        claimed in prop::option::of((prop::option::of(0u32..12), prop::collection::vec("[a-e]", 0..4))),
        known_agent in any::<bool>(),
        target in "[a-e]",
    ) {
        let target: AgentRef = target.into();
        let own = if known_agent { own } else { Vec::new() };
        let mark = match marked {
            Some((task, true, holder, _)) => TraceMark::Open(held_by(&holder, task)),
            Some((task, false, holder, false)) => TraceMark::Ended(held_by(&holder, task)),
            // It was the caller's.
            Some((task, false, _, true)) => TraceMark::Ended(task),
            None => TraceMark::Nothing,
        };
        let claimed = claimed.map(|(depth, agents)| {
            claim(&serde_json::json!({ "depth": depth.unwrap_or(0), "visited_agents": agents }).to_string())
        });
        let facts = LineageFacts {
            known_agent,
            target: &target,
            mark: mark.clone(),
            tree: &tree,
            named: &named,
            claimed_tree: &claimed_tree,
            ended: ended.as_ref().filter(|_| own.is_empty()),
            claimed: claimed.as_ref(),
            token: late_token.as_ref().map_or(PresentedToken::Nothing, |task| {
                PresentedToken::Good(Box::new(claims(task)), Box::new(Parent::Ended(task.clone())))
            }),
            ..facts(&own)
        };
        let lineage = attribute(&facts).unwrap();
        let marked = match &mark {
            TraceMark::Open(task) | TraceMark::Ended(task) => Some(task),
            TraceMark::Nothing => None,
        };
        let known: Vec<&OpenTask> = own.iter().chain(&tree).chain(&named).chain(&claimed_tree).chain(&ended).chain(marked).chain(&late_token).collect();
        for task in &lineage.candidates {
            prop_assert!(known.contains(&task));
            prop_assert!(lineage.context.depth > task.context.depth);
            prop_assert_eq!(lineage.remaining.and(task.remaining), lineage.remaining);
            for agent in task.context.visited_agents.to_vec() {
                prop_assert!(lineage.context.visited_agents.contains(&agent));
            }
            prop_assert!(lineage.context.visited_agents.contains(&task.holder));
        }
        // Its own open tasks bind an agent whatever else it brings.
        if let Some(deepest) = own.iter().map(|task| task.context.depth).min() {
            prop_assert!(lineage.context.depth > deepest);
        }
        // What comes late is bound by all of them.
        if lineage.attribution == Attribution::Late {
            for task in &own {
                prop_assert!(lineage.context.depth > task.context.depth && lineage.candidates.contains(task));
            }
        }
        if let Some(claimed) = claimed.as_ref().filter(|_| late_token.is_none()) {
            prop_assert!(lineage.context.depth >= claimed.depth.unwrap_or(0));
            for agent in claimed.visited_agents.to_vec() {
                prop_assert!(lineage.context.visited_agents.contains(&agent));
            }
        }
        let nothing = own.is_empty()
            && tree.is_empty()
            && named.is_empty()
            && claimed_tree.is_empty()
            && mark == TraceMark::Nothing
            && late_token.is_none()
            && ended.is_none();
        prop_assert_eq!(lineage.root_task.is_none(), nothing);
    }

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
