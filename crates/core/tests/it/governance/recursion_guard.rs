//! How deep calls may go, and to whom they may not come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use chancery_core::{TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{ErrorKind, Sent};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, Plan, caller, message, quick, reason, to};

/// Calls the agent its message names first, with the rest of the message, and says what came of it.
fn passes_on() -> impl TaskRunner {
    Acts(|turn: Turn, updates: TaskUpdateSink| async move {
        let text = turn.message.first_text().unwrap_or_default();
        let Some((next, rest)) = text.split_once(' ') else { return Ok(updates.complete(None)) };
        let said = message(rest, Value::Null).message.as_ref().clone();
        match turn.delegation.call(next, said).await {
            Ok(Sent::Task(shown)) if shown.task.status.state == chancery_protocol::TaskState::Completed => {
                Ok(updates.complete(None))
            }
            Ok(Sent::Task(shown)) => Ok(updates.fail(reason(&shown.task))),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Ok(updates.fail(error.message.into_owned())),
        }
    })
}

#[tokio::test]
async fn depth_eight_is_dispatched_and_nine_is_refused() {
    let last = Arc::new(AtomicU32::new(0));
    let mut plan = Plan::new(&json!({}));
    for depth in 0..=9_u32 {
        let last = Arc::clone(&last);
        plan = plan.agent(
            &format!("a{depth}"),
            Acts(move |turn: Turn, updates: TaskUpdateSink| {
                last.store(turn.delegation.context().unwrap().depth - 1, Ordering::Relaxed);
                async move {
                    let next = format!("a{}", depth + 1);
                    match turn.delegation.call(&next, message("on", Value::Null).message.as_ref().clone()).await {
                        Ok(Sent::Task(shown)) => Ok(updates.fail(reason(&shown.task))),
                        Ok(other) => panic!("{other:?}"),
                        Err(error) => Ok(updates.fail(error.message.into_owned())),
                    }
                }
            }),
        );
    }
    let governed_plane = plan.build();
    let task = governed_plane.say(&caller("ada"), "go").await.unwrap();
    assert_eq!(last.load(Ordering::Relaxed), 8, "the deepest that ran");
    let reason = reason(&task);
    assert!(reason.starts_with("RECURSION_DEPTH"), "{reason}");
    assert!(reason.contains("depth 9"), "{reason}");
    assert!(reason.contains("ada → a0 → a1 → a2 → a3 → a4 → a5 → a6 → a7 → a8 → a9"), "{reason}");
}

#[tokio::test]
async fn a_call_that_comes_back_is_refused_with_its_path_and_kept_as_a_decision_of_its_tree() {
    let governed_plane = Plan::new(&json!({})).agent("A", passes_on()).agent("B", passes_on()).agent("C", passes_on()).build();
    let task = governed_plane.say(&caller("ada"), "B C A end").await.unwrap();
    let reason = reason(&task);
    assert!(reason.starts_with("RECURSION_REVISIT"), "{reason}");
    assert!(reason.contains("A → B → C → A"), "{reason}");
    let tree = governed_plane.plane.trees(task.id.as_str()).await.unwrap();
    assert_eq!(tree[0].tasks.len(), 3, "the refused call made no task");
    let decision = governed_plane.plane.decisions(10).await.unwrap().pop().expect("the refusal is kept");
    assert_eq!(decision.refused.as_deref(), Some("RECURSION_REVISIT"));
    assert_eq!(decision.root.as_ref(), Some(&task.id), "it says in which tree");
    assert_eq!(decision.trace, Some(tree[0].trace));
}

#[tokio::test]
async fn who_is_on_the_allowlist_may_be_come_back_to() {
    let rules = json!({ "recursion": { "revisit_allowlist": ["A"] } });
    let governed_plane = Plan::new(&rules).agent("A", passes_on()).agent("B", passes_on()).agent("C", passes_on()).build();
    let task = governed_plane.say(&caller("ada"), "B C A end").await.unwrap();
    assert_eq!(task.status.state, chancery_protocol::TaskState::Completed, "{}", reason(&task));
    let task = governed_plane.say(&caller("ada"), "B C B end").await.unwrap();
    assert!(reason(&task).contains("A → B → C → B"), "{}", reason(&task));
}

#[tokio::test]
async fn without_the_revisit_rule_a_loop_runs_to_the_depth_limit() {
    let rules = json!({ "recursion": { "deny_revisit": false, "max_call_depth": 3 } });
    let governed_plane = Plan::new(&rules).agent("A", passes_on()).agent("B", passes_on()).build();
    let task = governed_plane.say(&caller("ada"), "B A B A B A").await.unwrap();
    assert!(reason(&task).starts_with("RECURSION_DEPTH"), "{}", reason(&task));
    assert_eq!(governed_plane.plane.trees(task.id.as_str()).await.unwrap()[0].tasks.len(), 4, "depths 0 to 3");
}

#[tokio::test]
async fn an_agent_that_has_ended_may_be_called_again() {
    // B is called twice, one after the other: no loop.
    let twice = Acts(|turn: Turn, updates: TaskUpdateSink| async move {
        for _ in 0..2 {
            turn.delegation
                .call("B", message("end", Value::Null).message.as_ref().clone())
                .await
                .map_err(|error| chancery_core::RunError::new(error.message.into_owned()))?;
        }
        Ok(updates.complete(None))
    });
    let governed_plane = Plan::new(&json!({})).agent("A", twice).agent("B", quick()).build();
    let task = governed_plane.say(&to("A", caller("ada")), "go").await.unwrap();
    assert_eq!(task.status.state, chancery_protocol::TaskState::Completed, "{}", reason(&task));
}

#[tokio::test]
async fn a_caller_by_an_agents_name_is_not_taken_for_the_agent() {
    let governed_plane = Plan::new(&json!({})).agent("A", quick()).build();
    governed_plane.say(&to("A", caller("A")), "go").await.expect("nobody waits for this call");
    let error = governed_plane.say(&to("nobody", caller("A")), "go").await.unwrap_err();
    assert_ne!(error.kind, ErrorKind::RecursionRevisit);
}
