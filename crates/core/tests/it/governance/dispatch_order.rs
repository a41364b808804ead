//! Budget, recursion, selector, policy, executor: nothing of a later step runs when an earlier one refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use chancery_core::{Finished, FreezeScope, Rule, RunError, SelectorQuery, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, caller, message, quick, to};

/// Counts how often it is asked to choose and to work, and can be told to panic at either.
#[derive(Clone, Default)]
struct Watched {
    selected: Arc<AtomicU32>,
    ran: Arc<AtomicU32>,
    panics: bool,
}

#[async_trait]
impl TaskRunner for Watched {
    async fn run(&self, _turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        self.ran.fetch_add(1, Ordering::Relaxed);
        Ok(updates.complete(None))
    }

    fn select(&self, _asked: &SelectorQuery<'_>) -> Result<Option<Arc<str>>, Error> {
        self.selected.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "the selector was asked");
        Ok(Some("replica".into()))
    }
}

impl Watched {
    fn panicking() -> Self {
        Self { panics: true, ..Self::default() }
    }

    fn counts(&self) -> (u32, u32) {
        (self.selected.load(Ordering::Relaxed), self.ran.load(Ordering::Relaxed))
    }
}

async fn refused_by(
    governed_plane: &GovernedPlane,
    context: &chancery_protocol::CallContext,
    said: Value,
) -> (ErrorKind, Vec<(Rule, bool)>) {
    let error = governed_plane.send(context, message("work", said)).await.unwrap_err();
    let decision = error.facts.iter().find(|(name, _)| *name == "decision").map(|(_, id)| id.clone()).expect("a decision id");
    let decision = governed_plane.plane.explain_decision(&decision).await.unwrap().expect("the decision is kept");
    assert_eq!(decision.refused.as_deref(), Some(error.kind.reason()));
    (error.kind, decision.verdicts.iter().map(|verdict| (verdict.rule, verdict.passed)).collect())
}

#[tokio::test]
async fn an_exhausted_budget_never_asks_the_selector() {
    let watched = Watched::panicking();
    let governed_plane =
        Plan::new(&json!({ "budget": { "global": { "max_tasks_per_minute": 0 } } })).agent("a", watched.clone()).build();
    let (kind, verdicts) = refused_by(&governed_plane, &caller("ada"), Value::Null).await;
    assert_eq!(kind, ErrorKind::BudgetExhausted);
    assert_eq!(verdicts, [(Rule::Lineage, true), (Rule::Freeze, true), (Rule::Budget, false)]);
    assert_eq!(watched.counts(), (0, 0));
}

#[tokio::test]
async fn a_frozen_agent_never_asks_the_selector() {
    let watched = Watched::panicking();
    let governed_plane = Plan::new(&json!({})).agent("a", watched.clone()).build();
    governed_plane.plane.freeze(FreezeScope::Agent("a".into()), "operator", None).await.unwrap();
    let (kind, verdicts) = refused_by(&governed_plane, &caller("ada"), Value::Null).await;
    assert_eq!(kind, ErrorKind::Frozen);
    assert_eq!(verdicts, [(Rule::Lineage, true), (Rule::Freeze, false)]);
    assert_eq!(watched.counts(), (0, 0));
}

#[tokio::test]
async fn a_loop_never_asks_the_selector_and_its_budget_is_given_back() {
    let watched = Watched::panicking();
    let calls_back = Acts(|turn: Turn, updates: TaskUpdateSink| async move {
        let refused = turn.delegation.call("a", message("again", Value::Null).message.as_ref().clone()).await.unwrap_err();
        Ok(updates.fail(refused.kind.reason()))
    });
    let rules = json!({ "recursion": { "max_call_depth": 0 }, "budget": { "global": { "max_tasks_per_minute": 10 } } });
    let governed_plane = Plan::new(&rules).agent("b", calls_back).agent("a", watched.clone()).build();
    let task = governed_plane.say(&to("b", caller("ada")), "go").await.unwrap();
    assert_eq!(crate::governance::governed_plane::reason(&task), "RECURSION_DEPTH");
    assert_eq!(watched.counts(), (0, 0));
    let standing = governed_plane.standing("global").unwrap();
    assert_eq!((standing.settled.tasks, standing.reserved.tasks), (1, 0), "only the first call counts");
}

#[tokio::test]
async fn the_selector_is_asked_before_the_policy() {
    let watched = Watched::default();
    let rules = json!({ "policy": { "default": { "allowed_skills": ["x"] } } });
    let governed_plane = Plan::new(&rules).agent("a", watched.clone()).build();
    let (kind, verdicts) = refused_by(&governed_plane, &caller("ada"), json!({ "skill": "y" })).await;
    assert_eq!(kind, ErrorKind::SkillDenied);
    let order = [Rule::Lineage, Rule::Freeze, Rule::Budget, Rule::Recursion, Rule::Selector];
    let expected: Vec<_> = order.map(|rule| (rule, true)).into_iter().chain([(Rule::Policy, false)]).collect();
    assert_eq!(verdicts, expected);
    assert_eq!(watched.counts(), (1, 0), "chosen, and not run");
}

#[tokio::test]
async fn a_selector_with_nobody_to_choose_gives_everything_back() {
    struct Nobody;
    #[async_trait]
    impl TaskRunner for Nobody {
        async fn run(&self, _turn: Turn, _updates: TaskUpdateSink) -> Result<Finished, RunError> {
            panic!("nobody was chosen")
        }

        fn select(&self, _asked: &SelectorQuery<'_>) -> Result<Option<Arc<str>>, Error> {
            Err(Error::new(ErrorKind::NoEligiblePeer, "nobody is there"))
        }
    }
    let rules = json!({ "budget": { "global": { "max_tasks_per_minute": 1 } } });
    let governed_plane = Plan::new(&rules).agent("a", Nobody).agent("b", quick()).build();
    let (kind, _) = refused_by(&governed_plane, &caller("ada"), Value::Null).await;
    assert_eq!(kind, ErrorKind::NoEligiblePeer);
    governed_plane.say(&to("b", caller("ada")), "there is still room for one").await.unwrap();
}

#[tokio::test]
async fn what_is_let_through_says_so_rule_by_rule_in_their_order() {
    let watched = Watched::default();
    let governed_plane = Plan::new(&json!({})).agent("a", watched.clone()).build();
    let task = governed_plane.say(&caller("ada"), "go").await.unwrap();
    assert_eq!(watched.counts(), (1, 1));
    let (governed, later) = governed_plane.plane.explain_task(&task.id).await.unwrap().expect("it is explained");
    assert!(later.is_empty());
    let rules: Vec<Rule> = governed.verdicts.iter().map(|verdict| verdict.rule).collect();
    assert_eq!(rules, [Rule::Lineage, Rule::Freeze, Rule::Budget, Rule::Recursion, Rule::Selector, Rule::Policy]);
    assert!(governed.verdicts.iter().all(|verdict| verdict.passed));
}

/// A selector that panics is a fault of the agent, not of the caller's budget.
#[tokio::test]
async fn a_selector_that_panics_leaves_nothing_held() {
    let rules = json!({ "budget": { "global": { "max_tasks_per_minute": 1 } } });
    let governed_plane = Plan::new(&rules).agent("a", Watched::panicking()).agent("b", quick()).build();
    let plane = governed_plane.plane.clone();
    let asking = tokio::spawn(async move {
        plane.call(&caller("ada"), chancery_protocol::Request::SendMessage(message("work", Value::Null))).await.map(drop)
    });
    assert!(asking.await.unwrap_err().is_panic());
    assert_eq!(governed_plane.standing("global").unwrap().reserved.tasks, 0);
    governed_plane.say(&to("b", caller("ada")), "there is still room for one").await.unwrap();
    governed_plane.plane.freeze(FreezeScope::Everything, "operator", None).await.expect("nobody holds the list of freezes");
}
