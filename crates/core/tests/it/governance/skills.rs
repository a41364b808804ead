//! Skills that callers make up: nothing is counted by them, so they are no way past what is counted by skill.

use chancery_core::budget::BudgetScope;
use chancery_protocol::ErrorKind;
use serde_json::{Value, json};

use crate::governance::governed_plane::{GovernedPlane, Plan, caller, patient, quick};

fn of(skill: &str) -> Value {
    json!({ "skill": skill })
}

fn skills_counted(governed_plane: &GovernedPlane) -> Vec<String> {
    let skills =
        governed_plane.plane.budgets().into_iter().filter(|(account, _)| matches!(account.scope(), BudgetScope::Skill { .. }));
    skills.map(|(account, _)| account.scope().to_string()).collect()
}

#[tokio::test]
async fn skills_that_nobody_lists_share_one_budget_with_calls_that_name_none() {
    let rules = json!({ "budget": { "skill": { "*": { "max_usd": "1", "window": "1d" } } }, "prices": { "a": "0.40" } });
    let governed_plane = Plan::new(&rules).skilled("a", &["search", "write"], quick()).build();
    let ada = caller("ada");
    for skill in ["search", "search", "write", "write"] {
        governed_plane.begin(&ada, of(skill)).await.expect("each on the card has its own");
    }
    governed_plane.begin(&ada, of("made-up-1")).await.unwrap();
    governed_plane.begin(&ada, of("made-up-2")).await.unwrap();
    for said in [of("made-up-3"), of("*"), of("a/*"), Value::Null, of("search")] {
        assert_eq!(governed_plane.begin(&ada, said.clone()).await.unwrap_err().kind, ErrorKind::BudgetExhausted, "{said}");
    }
    for number in 0..100 {
        governed_plane.begin(&ada, of(&format!("made-up-{number}"))).await.unwrap_err();
    }
    assert_eq!(skills_counted(&governed_plane).len(), 3, "{:?}", skills_counted(&governed_plane));
}

#[tokio::test]
async fn skills_that_nobody_lists_share_the_slots_of_a_caller() {
    let rules = json!({ "policy": { "default": { "max_concurrency": 1 } } });
    for listed in [&["search", "write"][..], &[]] {
        let governed_plane = Plan::new(&rules).skilled("a", listed, patient()).build();
        let ada = caller("ada");
        governed_plane.begin(&ada, of("made-up-1")).await.unwrap();
        for said in [of("made-up-2"), Value::Null] {
            assert_eq!(governed_plane.begin(&ada, said.clone()).await.unwrap_err().kind, ErrorKind::ConcurrencyFull, "{said}");
        }
        for skill in listed {
            governed_plane.begin(&ada, of(skill)).await.expect("one on the card has slots of its own");
        }
    }
}

/// An operator can know of skills that are on no card.
#[tokio::test]
async fn skills_that_the_operator_names_are_counted_and_judged_by_their_names() {
    let rules = json!({
        "budget": { "skill": { "a/deep": { "max_tasks": 1, "window": "1h" } } },
        "policy": { "default": { "allowed_skills": ["deep", "hidden", "wide"] }, "skill": { "wide": { "max_cost_usd": "0.01" } } },
        "prices": { "a": "0.02" },
    });
    let governed_plane = Plan::new(&rules).skilled("a", &["search"], quick()).build();
    let ada = caller("ada");
    governed_plane.begin(&ada, of("deep")).await.unwrap();
    assert_eq!(governed_plane.begin(&ada, of("deep")).await.unwrap_err().kind, ErrorKind::BudgetExhausted);
    assert_eq!(skills_counted(&governed_plane).len(), 1);
    assert_eq!(governed_plane.begin(&ada, of("wide")).await.unwrap_err().kind, ErrorKind::CostOverPolicy);
    governed_plane.begin(&ada, of("hidden")).await.expect("it is allowed by its name");
    let error = governed_plane.begin(&ada, of("made-up")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::SkillDenied);
    assert!(error.facts.contains(&("skill", "made-up".to_owned())), "{:?}", error.facts);
}

/// What is counted goes on where it was, although the name that was said is not kept for counting.
#[tokio::test]
async fn what_skills_that_nobody_lists_cost_is_known_after_a_restart() {
    let rules = json!({ "budget": { "skill": { "*": { "max_usd": "1", "window": "1d" } } }, "prices": { "a": "0.60" } });
    let governed_plane = Plan::new(&rules).skilled("a", &["search", "write"], quick()).build();
    governed_plane.begin(&caller("ada"), of("made-up-1")).await.unwrap();
    let mut plan = Plan::new(&rules).skilled("a", &["search", "write"], quick());
    plan.store = governed_plane.store.clone();
    let after = plan.build();
    after.plane.recover().await.unwrap();
    assert_eq!(after.begin(&caller("ada"), of("made-up-2")).await.unwrap_err().kind, ErrorKind::BudgetExhausted);
}
