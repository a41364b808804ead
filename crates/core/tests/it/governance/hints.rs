//! What a caller expects its call to cost: it can raise what is held, within bounds, and never lower it. With
//! a known price no cap is passed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chancery_core::{Fact, MicroUsd, Rule, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{AgentCard, ErrorKind, TaskId};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, agent_caller, caller, message, patient, quick, to, until};

/// What hostile callers say: nothing, next to nothing, about right, far too much.
const HINTS: [&str; 6] = ["0", "0.000001", "0.05", "0.1", "10", "8999999999.999999"];
const TOKENS: [u64; 4] = [0, 1, 100, u64::MAX];

fn hint(call: usize) -> Value {
    json!({ "ruvector": { "estimate": { "usd": HINTS[call % HINTS.len()], "tokens": TOKENS[call % TOKENS.len()] } } })
}

/// Counts its runs, and is done when all may be.
fn counted(ran: &Arc<AtomicU64>, go: &watch::Sender<bool>) -> impl TaskRunner {
    let (ran, go) = (Arc::clone(ran), go.subscribe());
    Acts(move |_turn: Turn, updates: TaskUpdateSink| {
        ran.fetch_add(1, Ordering::Relaxed);
        let mut go = go.clone();
        async move {
            let _ = go.wait_for(|go| *go).await;
            Ok(updates.complete(None))
        }
    })
}

/// Two hundred calls at once, all of them begun before any is done: how many ran.
async fn two_hundred_at_once(rules: &Value) -> u64 {
    let (ran, go) = (Arc::new(AtomicU64::new(0)), watch::Sender::new(false));
    let governed_plane = Arc::new(Plan::new(rules).skilled("a", &["s"], counted(&ran, &go)).build());
    let call = |number: usize| {
        let (governed_plane, hint) = (Arc::clone(&governed_plane), hint(number));
        tokio::spawn(async move { governed_plane.begin(&caller("ada"), hint).await.map(drop).map_err(|error| error.kind) })
    };
    let mut admitted = 0;
    for call in (0..200).map(call).collect::<Vec<_>>() {
        match call.await.unwrap() {
            Ok(()) => admitted += 1,
            Err(kind) => assert_eq!(kind, ErrorKind::BudgetExhausted, "{rules}"),
        }
    }
    until(|| ran.load(Ordering::Relaxed) == admitted).await;
    go.send_replace(true);
    until(|| governed_plane.plane.budgets().iter().all(|(_, standing)| standing.reserved.tasks == 0)).await;
    crate::governance::fan_out::within_caps(&governed_plane.plane).unwrap();
    assert!(governed_plane.plane.budgets().iter().all(|(_, standing)| standing.overrun.usd == MicroUsd(0)), "{rules}");
    admitted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn at_a_configured_price_no_hint_passes_a_cap_of_any_scope_or_kind() {
    let windowed = |caps: Value| {
        let mut caps = caps;
        caps["window"] = json!("1h");
        caps
    };
    // A call costs 0.10 and 100 tokens, so ten of them fit each of these. The node has caps by the minute.
    for (caps, per_minute) in [
        (json!({ "max_usd": "1" }), json!({ "max_usd_per_minute": "1" })),
        (json!({ "max_tokens": 1_000 }), json!({ "max_tokens_per_minute": 1_000 })),
        (json!({ "max_tasks": 10 }), json!({ "max_tasks_per_minute": 10 })),
    ] {
        for budget in [
            json!({ "global": per_minute }),
            json!({ "tenant": { "*": windowed(caps.clone()) } }),
            json!({ "caller": { "ada": windowed(caps.clone()) } }),
            json!({ "agent": { "a": windowed(caps.clone()) } }),
            json!({ "skill": { "a/s": windowed(caps.clone()) } }),
        ] {
            let rules = json!({
                "budget": budget, "prices": { "a": "0.10" }, "token_prices": { "a": 100 },
                "policy": { "default": { "max_concurrency": 1_000 } },
            });
            let ran = two_hundred_at_once(&rules).await;
            assert!((1..=10).contains(&ran), "{ran} ran under {budget}");
        }
    }
}

/// Calls `b` two hundred times at once, with hints, and waits for all of them.
fn spreading() -> impl TaskRunner {
    Acts(|turn: Turn, updates: TaskUpdateSink| async move {
        let call = |number: usize| turn.delegation.call("b", message("on", hint(number)).message.as_ref().clone());
        futures::future::join_all((0..200).map(call)).await;
        Ok(updates.complete(None))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn at_a_configured_price_no_hint_passes_the_cap_of_a_tree() {
    for tree in [json!({ "max_usd": "1" }), json!({ "max_tokens": 1_000 }), json!({ "max_tasks": 10 })] {
        let (ran, go) = (Arc::new(AtomicU64::new(0)), watch::Sender::new(true));
        let rules = json!({
            "budget": { "tree": tree }, "prices": { "a": "0", "b": "0.10" }, "token_prices": { "a": 0, "b": 100 },
            "policy": { "default": { "max_concurrency": 1_000 } },
        });
        let governed_plane = Plan::new(&rules).agent("a", spreading()).agent("b", counted(&ran, &go)).build();
        governed_plane.say(&caller("ada"), "go").await.unwrap();
        let ran = ran.load(Ordering::Relaxed);
        assert!((1..=10).contains(&ran), "{ran} ran under {tree}");
    }
}

fn of_estimate(usd: &str) -> Value {
    json!({ "ruvector": { "estimate": { "usd": usd } } })
}

async fn facts(governed_plane: &GovernedPlane, task: &TaskId) -> Value {
    let (governed, _) = governed_plane.plane.explain_task(task).await.unwrap().unwrap();
    let budget = governed.verdicts.iter().find(|verdict| verdict.rule == Rule::Budget).unwrap();
    let text = |fact: &Fact| serde_json::to_value(fact).unwrap();
    budget.facts.iter().map(|(name, fact)| (name.to_string(), text(fact))).collect::<serde_json::Map<_, _>>().into()
}

#[tokio::test]
async fn it_is_kept_what_was_asked_for_and_what_was_held() {
    let rules = json!({ "budget": { "caller": { "*": { "max_usd": "50", "window": "1h" } } }, "prices": { "a": "0.05" } });
    for (asked, held, source) in
        [("0", "0.05", "config"), ("0.05", "0.05", "config"), ("0.2", "0.20", "config+hint"), ("10", "0.50", "config+hint")]
    {
        let governed_plane = Plan::new(&rules).agent("a", patient()).build();
        let task = governed_plane.begin(&caller("ada"), of_estimate(asked)).await.unwrap();
        let facts = facts(&governed_plane, &task.id).await;
        assert_eq!((&facts["estimate_usd"], &facts["source"]), (&json!(held), &json!(source)), "{facts}");
        let usd: MicroUsd = serde_json::from_value(facts["hint_usd"].clone()).unwrap();
        assert_eq!(usd, MicroUsd::parse(asked).unwrap(), "{facts}");
        assert_eq!(governed_plane.standing("caller:tenant/ada").unwrap().reserved.usd, MicroUsd::parse(held).unwrap());
        let (governed, _) = governed_plane.plane.explain_task(&task.id).await.unwrap().unwrap();
        assert_eq!(governed.spend.estimated_by.as_str(), source);
    }
}

#[tokio::test]
async fn a_price_on_a_card_is_raised_and_never_lowered_either_and_a_silent_agent_costs_its_price() {
    let price = json!({ "price": { "per_call_usd": "0.05", "per_call_tokens": 7 } });
    let extension = json!({ "uri": chancery_core::GOVERNANCE_EXTENSION, "params": price });
    let card: AgentCard = serde_json::from_value(json!({
        "name": "a", "description": "a", "version": "1", "capabilities": { "extensions": [extension] }, "skills": [],
        "defaultInputModes": ["*/*"], "defaultOutputModes": [], "supportedInterfaces": [],
    }))
    .unwrap();
    let rules = json!({ "budget": { "caller": { "*": { "max_usd": "50", "max_tokens": 500, "window": "1h" } } } });
    for (asked, held, tokens, source) in
        [("0", 50_000, 0, "card"), ("0.2", 200_000, 70, "card+hint"), ("10", 500_000, 500, "card+hint")]
    {
        let (ran, go) = (Arc::new(AtomicU64::new(0)), watch::Sender::new(false));
        let governed_plane = Plan::new(&rules).carded("a", card.clone(), counted(&ran, &go)).build();
        let said = json!({ "ruvector": { "estimate": { "usd": asked, "tokens": tokens } } });
        let task = governed_plane.begin(&caller("ada"), said).await.unwrap();
        let reserved = governed_plane.standing("caller:tenant/ada").unwrap().reserved;
        assert_eq!((reserved.usd, reserved.tokens), (MicroUsd(held), tokens.clamp(7, 70)), "{asked}");
        assert_eq!(facts(&governed_plane, &task.id).await["source"], source);
        go.send_replace(true);
        until(|| governed_plane.standing("caller:tenant/ada").unwrap().settled.usd > MicroUsd(0)).await;
        let settled = governed_plane.standing("caller:tenant/ada").unwrap().settled;
        assert_eq!((settled.usd, settled.tokens), (MicroUsd(50_000), 7), "a hint is no bill");
    }
}

#[tokio::test]
async fn one_call_with_a_huge_hint_does_not_lock_everybody_out() {
    for shared in
        [json!({ "global": { "max_usd_per_minute": "10" } }), json!({ "tenant": { "*": { "max_usd": "10", "window": "1m" } } })]
    {
        for prices in [json!({}), json!({ "a": "0.01" }), json!({ "a": "1" }), json!({ "a": "2.5" })] {
            let rules = json!({ "budget": shared, "prices": prices });
            let governed_plane = Plan::new(&rules).agent("a", patient()).build();
            governed_plane.begin(&caller("eve"), of_estimate("10")).await.unwrap();
            for other in ["ada", "bob", "cleo"] {
                let call = governed_plane.begin(&caller(other), Value::Null).await;
                assert!(call.is_ok(), "{other} is locked out under {rules}: {call:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_hint_above_the_policy_is_refused_and_one_that_makes_no_sense_as_well() {
    let rules = json!({
        "budget": { "caller": { "*": { "max_usd": "1000", "window": "1h" } } },
        "policy": { "default": { "max_cost_usd": "0.05", "max_tokens": 100 } }, "prices": { "a": "0.001", "b": "0.001" },
    });
    let governed_plane = Plan::new(&rules).agent("a", quick()).build();
    let ada = caller("ada");
    let asked =
        async |estimate: Value| governed_plane.send(&ada, message("go", json!({ "ruvector": { "estimate": estimate } }))).await;
    asked(json!({ "usd": "0.05", "tokens": 100 })).await.unwrap();
    for above in [json!({ "usd": "0.050001" }), json!({ "usd": "10" }), json!({ "tokens": 101 })] {
        let error = asked(above).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::CostOverPolicy, "{error}");
    }
    for nonsense in
        [json!({ "usd": "-1" }), json!({ "usd": -0.5 }), json!({ "usd": "NaN" }), json!({ "tokens": -1 }), json!("10")]
    {
        let error = asked(nonsense).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidParams, "{error}");
    }
    assert_eq!(governed_plane.standing("caller:tenant/ada").unwrap().reserved.usd, MicroUsd(0), "refused calls hold nothing");
}

/// An agent's own calls are callers' calls: what it says of them lowers nothing.
#[tokio::test]
async fn a_hint_of_nothing_under_a_hop_or_without_one_costs_the_price() {
    let rules = json!({ "budget": { "tree": { "max_usd": "0.30" } }, "prices": { "a": "0.10", "b": "0.10" } });
    let governed_plane = Plan::new(&rules).agent("a", patient()).agent("b", patient()).build();
    governed_plane.begin(&caller("ada"), of_estimate("0")).await.unwrap();
    let b = to("b", agent_caller("a"));
    for _ in 0..2 {
        governed_plane.begin(&b, of_estimate("0")).await.unwrap();
    }
    let error = governed_plane.begin(&b, of_estimate("0")).await.unwrap_err();
    assert!(error.message.starts_with("BUDGET_EXHAUSTED tree="), "{error}");
}
