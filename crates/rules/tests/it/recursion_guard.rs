//! Depth 8 goes through and 9 does not; nobody who waits for a call is called again for it, whatever the calls were.

use std::collections::HashSet;

use chancery_protocol::{ErrorKind, TraceId};
use chancery_rules::lineage::{AgentRef, TaskContext};
use chancery_rules::recursion::{MOST_CALL_DEPTH, RecursionError, RecursionPolicy};
use proptest::prelude::*;

fn root(caller: &str) -> TaskContext {
    TaskContext::root(TraceId(7), caller.into())
}

/// The call that the last of them makes.
fn chain(agents: &[&str]) -> TaskContext {
    let (first, rest) = agents.split_first().unwrap();
    rest.iter().fold(root(first), |context, agent| context.child(format!("task of {agent}").into(), (*agent).into()))
}

fn numbered(depth: u32) -> TaskContext {
    (0..depth).fold(root("caller"), |context, number| context.child(number.to_string().into(), format!("agent-{number}").into()))
}

#[test]
fn depth_eight_is_dispatched_and_nine_is_refused() {
    let policy = RecursionPolicy::default();
    for depth in 0..=8 {
        assert_eq!(policy.check(&numbered(depth), &"new".into()), Ok(()), "depth {depth}");
    }
    let refused = policy.check(&numbered(9), &"new".into()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RecursionDepth);
    assert!(matches!(refused, RecursionError::Depth { depth: 9, limit: 8, .. }));
    assert_eq!(refused.path().len(), 11, "everybody is named: {refused}");
}

#[test]
fn a_call_back_to_where_it_came_from_is_refused_with_its_path() {
    let policy = RecursionPolicy::default();
    let context = chain(&["A", "B", "C"]);
    let refused = policy.check(&context, &"A".into()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RecursionRevisit);
    assert!(refused.to_string().ends_with(": A → B → C → A"), "{refused}");
    for back in ["B", "C"] {
        assert_eq!(policy.check(&context, &back.into()).unwrap_err().kind(), ErrorKind::RecursionRevisit);
    }
    assert_eq!(policy.check(&context, &"D".into()), Ok(()));
    assert_eq!(policy.check(&root("A"), &"A".into()).unwrap_err().path().to_string(), "A → A");
}

#[test]
fn a_legitimate_child_at_depth_one_passes() {
    assert_eq!(RecursionPolicy::default().check(&chain(&["A", "B"]), &"C".into()), Ok(()));
}

#[test]
fn an_allowed_agent_may_be_called_again_but_not_too_deep() {
    let policy = RecursionPolicy { revisit_allowlist: vec!["A".into()], ..RecursionPolicy::default() };
    assert_eq!(policy.check(&chain(&["A", "B", "C"]), &"A".into()), Ok(()));
    assert_eq!(policy.check(&chain(&["A", "B", "C"]), &"B".into()).unwrap_err().kind(), ErrorKind::RecursionRevisit);
    assert_eq!(policy.check(&numbered(9), &"A".into()).unwrap_err().kind(), ErrorKind::RecursionDepth);
    let free = RecursionPolicy { deny_revisit: false, ..RecursionPolicy::default() };
    assert_eq!(free.check(&chain(&["A", "B", "A", "B"]), &"A".into()), Ok(()));
    assert_eq!(free.check(&numbered(9), &"A".into()).unwrap_err().kind(), ErrorKind::RecursionDepth);
}

#[test]
fn an_agent_with_two_names_is_one_agent() {
    let policy = RecursionPolicy::default();
    let context = chain(&["A", "writer", "C"]);
    let names: [AgentRef; 1] = ["writer".into()];
    assert_eq!(policy.check(&context, &"author".into()), Ok(()));
    let refused = policy.check_names(&context, &"author".into(), &names).unwrap_err();
    assert_eq!(refused.path().to_string(), "A → writer → C → author");
}

#[test]
fn the_section_says_what_is_wrong_with_it() {
    let read = |text: &str| serde_json::from_str::<RecursionPolicy>(text);
    assert_eq!(read("{}").unwrap(), RecursionPolicy::default());
    assert_eq!(read(&format!(r#"{{"max_call_depth":{MOST_CALL_DEPTH}}}"#)).unwrap().max_call_depth, MOST_CALL_DEPTH);
    let too_deep = read(&format!(r#"{{"max_call_depth":{}}}"#, MOST_CALL_DEPTH + 1)).unwrap_err().to_string();
    assert!(too_deep.contains("must be from 0 to 64"), "{too_deep}");
    read(r#"{"max_depth":3}"#).unwrap_err();
    read(r#"{"max_call_depth":-1}"#).unwrap_err();
}

/// Plays calls over a few agents: each takes an open call and lets its agent call another. Gives every call that got through.
fn played(policy: &RecursionPolicy, moves: &[(usize, usize)]) -> Vec<(TaskContext, AgentRef)> {
    let agents: Vec<AgentRef> = (0..6).map(|number| format!("agent-{number}").into()).collect();
    let mut through: Vec<(TaskContext, AgentRef)> = Vec::new();
    for (step, (from, to)) in moves.iter().enumerate() {
        let context = match through.len() {
            0 => root("agent-0"),
            open => {
                let (context, holder) = &through[from % open];
                context.child(step.to_string().into(), holder.clone())
            }
        };
        let target = &agents[to % agents.len()];
        if policy.check(&context, target).is_ok() {
            through.push((context, target.clone()));
        }
    }
    through
}

proptest! {
    #[test]
    fn no_cycle_ever_passes(moves in prop::collection::vec((0usize..1000, 0usize..1000), 1..80)) {
        for (context, target) in played(&RecursionPolicy::default(), &moves) {
            let path = context.visited_agents.then(target).to_vec();
            prop_assert_eq!(path.iter().collect::<HashSet<_>>().len(), path.len(), "{:?}", path);
            prop_assert!(context.depth <= 8);
        }
    }

    #[test]
    fn without_the_revisit_rule_the_depth_still_ends_it(moves in prop::collection::vec((0usize..1000, 0usize..1000), 1..120)) {
        let policy = RecursionPolicy { deny_revisit: false, max_call_depth: 5, ..RecursionPolicy::default() };
        prop_assert!(played(&policy, &moves).iter().all(|(context, _)| context.depth <= 5));
    }
}
