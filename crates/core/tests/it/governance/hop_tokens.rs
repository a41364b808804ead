//! Hop tokens at the control plane: what does not hold is refused and recorded, what holds decides. Signatures are the
//! identity crate's; here a token is whatever the port says of it.

use std::sync::{Arc, Mutex};

use chancery_core::budget::Caps;
use chancery_core::lineage::{Attribution, TokenCheck, TokenClaims};
use chancery_core::{Delegation, ForeignToken, Hop, HopTokenService, MicroUsd, TokenTask};
use chancery_protocol::{CallContext, Caller, ErrorKind, Timestamp, TraceId};
use chancery_testkit::PlainSeal;
use serde_json::{Value, json};

use crate::governance::governed_plane::{GovernedPlane, Plan, agent_caller, caller, message, patient, quick, to};

/// What stands for the token of another node.
const OF_FOREIGN: &str = "0a1b2c3d@chancery=aGFuZGxl";

/// Remembers every token it made; a word instead of a token names the fault it has.
#[derive(Debug, Default)]
pub(crate) struct Desk(Mutex<Vec<Hop>>);

impl HopTokenService for Desk {
    fn mint(&self, hop: &Hop) -> Option<String> {
        let mut made = self.0.lock().unwrap();
        made.push(hop.clone());
        Some(format!("hop-{}", made.len() - 1))
    }

    fn read_foreign(&self, token: &str) -> ForeignToken {
        let cents = |usd| Caps { usd: Some(MicroUsd(usd)), tokens: None, tasks: None };
        match token {
            "foreign" => ForeignToken { members: vec![OF_FOREIGN.to_owned()], ..ForeignToken::default() },
            "poor" => ForeignToken { members: Vec::new(), budget: cents(10_000) },
            _ => ForeignToken::default(),
        }
    }

    fn read_member(&self, value: &str, now: Timestamp) -> Result<TokenTask, TokenCheck> {
        self.read(value, now)?.ok_or(TokenCheck::Malformed)
    }

    fn read(&self, token: &str, now: Timestamp) -> Result<Option<TokenTask>, TokenCheck> {
        if let Some(number) = token.strip_prefix("hop-") {
            let hop = self.0.lock().unwrap()[number.parse::<usize>().unwrap()].clone();
            return if now < hop.expires { Ok(Some(hop.task)) } else { Err(TokenCheck::Expired) };
        }
        match token {
            "foreign" | "poor" => Ok(None),
            "forged" => Err(TokenCheck::Signature),
            "old-key" => Err(TokenCheck::UnknownKey),
            "early" => Err(TokenCheck::NotYetValid),
            "huge" => Err(TokenCheck::TooLarge),
            _ => Err(TokenCheck::Malformed),
        }
    }
}

struct Scene {
    governed_plane: GovernedPlane,
    desk: Arc<Desk>,
    parent: Arc<chancery_protocol::Task>,
}

/// `a` works on a task for ada and holds a token of it.
async fn scene(rules: &Value) -> Scene {
    let desk = Arc::new(Desk::default());
    let mut plan = Plan::new(rules)
        .agent(
            "a",
            crate::governance::governed_plane::Acts(
                |turn: chancery_core::Turn, updates: chancery_core::TaskUpdateSink| async move {
                    turn.delegation.hop_token().expect("a token is made");
                    turn.cancelled.cancelled().await;
                    Ok(updates.canceled())
                },
            ),
        )
        .agent("b", quick())
        .agent("c", patient());
    plan.hops = Some(Arc::clone(&desk) as _);
    let governed_plane = plan.build();
    let parent = governed_plane.begin(&to("a", caller("ada")), Value::Null).await.unwrap();
    assert_eq!(desk.0.lock().unwrap().len(), 1);
    Scene { governed_plane, desk, parent }
}

fn with(token: &str, context: CallContext) -> CallContext {
    CallContext { hop_token: Some(token.into()), ..context }
}

impl Scene {
    async fn refused(&self, context: &CallContext, check: &str) {
        let error = self.governed_plane.say(context, "go").await.map(drop).unwrap_err();
        assert_eq!(error.kind, ErrorKind::LineageInvalid, "{check}: {error}");
        assert!(error.facts.contains(&("check", check.to_owned())), "{check}: {:?}", error.facts);
        let decision = self.governed_plane.plane.decisions(1).await.unwrap().remove(0);
        assert_eq!(decision.refused.as_deref(), Some("LINEAGE_INVALID"));
        assert_eq!(decision.caller, context.caller.name, "the record says who brought it");
        let facts = &decision.verdicts.last().unwrap().facts;
        assert!(
            facts.iter().any(|(name, fact)| &**name == "check" && *fact == chancery_core::Fact::text(check.to_owned())),
            "{facts:?}"
        );
    }

    async fn attribution(&self, context: &CallContext, said: Value) -> (Attribution, Option<chancery_protocol::TaskId>, u32) {
        let task = self.governed_plane.send(context, message("go", said)).await.unwrap();
        let (governed, _) = self.governed_plane.plane.explain_task(&task.id).await.unwrap().unwrap();
        (governed.kinship.attribution, governed.kinship.parent.clone(), governed.kinship.depth)
    }

    /// A token that was changed before it was signed: what a stolen key could do.
    fn changed(&self, change: impl FnOnce(&mut TokenTask)) -> String {
        let mut made = self.desk.0.lock().unwrap();
        let mut hop = made[0].clone();
        change(&mut hop.task);
        made.push(hop);
        format!("hop-{}", made.len() - 1)
    }
}

#[tokio::test]
async fn a_token_that_holds_is_proof_in_a_header_and_in_metadata() {
    let scene = scene(&json!({})).await;
    let expected = (Attribution::Verified, Some(scene.parent.id.clone()), 1);
    assert_eq!(scene.attribution(&with("hop-0", to("b", agent_caller("a"))), Value::Null).await, expected);
    for member in ["ruvector", chancery_core::GOVERNANCE_EXTENSION] {
        let said = json!({ member: { "hop_token": "hop-0" } });
        assert_eq!(scene.attribution(&to("b", agent_caller("a")), said).await, expected);
    }
    // Among those of other nodes, ours is found.
    assert_eq!(scene.attribution(&with("foreign, hop-0", to("b", agent_caller("a"))), Value::Null).await, expected);
}

#[tokio::test]
async fn tokens_that_do_not_hold_are_refused_and_recorded() {
    let scene = scene(&json!({})).await;
    let by_a = || to("b", agent_caller("a"));
    for (token, check) in [
        ("forged", "signature"),
        ("old-key", "unknown_key"),
        ("early", "not_yet_valid"),
        ("huge", "too_large"),
        ("x", "malformed"),
    ] {
        scene.refused(&with(token, by_a()), check).await;
        scene.refused(&with(token, to("b", caller("eve"))), check).await;
        scene.refused(&with(&format!("foreign,{token},hop-0"), by_a()), check).await;
    }
    scene.refused(&with("hop-0", to("b", agent_caller("c"))), "audience").await;
    scene.refused(&with("hop-0", to("b", caller("eve"))), "audience").await;
    let abroad = CallContext { caller: Caller::new("other-tenant", "key-of-a"), ..by_a() };
    scene.refused(&with("hop-0", abroad), "tenant").await;
    let tasks = scene.governed_plane.store.logs().len();
    assert_eq!(tasks, 1, "none of them made a task");
}

#[tokio::test]
async fn widened_tokens_do_not_agree_with_the_task_they_name() {
    let scene = scene(&json!({})).await;
    let other = scene.governed_plane.begin(&to("c", caller("bob")), Value::Null).await.unwrap();
    let by_a = || to("b", agent_caller("a"));
    for token in [
        scene.changed(|named| named.place[0] ^= 1),
        scene.changed(|named| named.place[7] ^= 1),
        scene.changed(|named| named.task = other.id.clone()),
    ] {
        scene.refused(&with(&token, by_a()), "parent").await;
    }
    let gone = scene.changed(|named| named.task = "no-such-task".into());
    scene.refused(&with(&gone, by_a()), "closed_parent").await;
}

#[tokio::test]
async fn a_token_that_is_kept_beyond_its_task_or_its_time_is_refused() {
    let scene = scene(&json!({})).await;
    let by_a = with("hop-0", to("b", agent_caller("a")));
    scene.governed_plane.say(&by_a, "while it is good").await.unwrap();
    scene.governed_plane.say(&by_a, "as often as it likes").await.unwrap();
    scene.governed_plane.clock.advance(std::time::Duration::from_secs(3_601));
    scene.refused(&by_a, "expired").await;
    let other = scene_again().await;
    other.governed_plane.cancel(&to("a", caller("ada")), &other.parent.id).await.unwrap();
    other.refused(&by_a, "closed_parent").await;
}

async fn scene_again() -> Scene {
    scene(&json!({})).await
}

#[tokio::test]
async fn a_token_expires_with_the_time_its_task_may_take() {
    let scene = scene(&json!({ "policy": { "default": { "max_duration_ms": 60_000 } } })).await;
    let hop = scene.desk.0.lock().unwrap()[0].clone();
    assert_eq!(hop.expires.micros() - hop.issued.micros(), 60_000_000);
}

#[tokio::test]
async fn a_token_of_another_node_says_nothing_and_inference_decides() {
    let scene = scene(&json!({})).await;
    let inferred = scene.attribution(&with("foreign", to("b", agent_caller("a"))), Value::Null).await;
    assert_eq!(inferred, (Attribution::Inferred, Some(scene.parent.id.clone()), 1));
    let root = scene.attribution(&with("foreign", to("b", caller("eve"))), Value::Null).await;
    assert_eq!(root, (Attribution::Root, None, 0));
}

/// What is beside a good token in clear text is not read.
#[tokio::test]
async fn edited_claims_beside_a_good_token_decide_nothing() {
    let scene = scene(&json!({})).await;
    let said = json!({ "ruvector": { "context": { "depth": 0, "visited_agents": [], "trace_id": "0".repeat(31) + "9" } } });
    let placed = scene.attribution(&with("hop-0", to("b", agent_caller("a"))), said.clone()).await;
    assert_eq!(placed, (Attribution::Verified, Some(scene.parent.id.clone()), 1));
    let back = scene.governed_plane.send(&with("hop-0", to("a", agent_caller("a"))), message("back", said)).await.unwrap_err();
    assert_eq!(back.kind, ErrorKind::RecursionRevisit);
}

/// Nobody is asked who they are: whoever brings the token is taken for whom it was given to, and can still not widen it.
#[tokio::test]
async fn on_an_open_node_the_token_itself_says_who_calls() {
    let scene = scene(&json!({})).await;
    let open = to("b", chancery_testkit::call_context());
    let expected = (Attribution::Verified, Some(scene.parent.id.clone()), 1);
    assert_eq!(scene.attribution(&with("hop-0", open), Value::Null).await, expected);
    let back = scene.governed_plane.say(&with("hop-0", to("a", chancery_testkit::call_context())), "back").await.unwrap_err();
    assert_eq!(back.kind, ErrorKind::RecursionRevisit);
}

/// What the running turn of the agent can send along.
async fn delegation(said: Value, rules: &Value, context: CallContext) -> (GovernedPlane, Delegation) {
    let kept: Arc<Mutex<Option<Delegation>>> = Arc::default();
    let keeping = Arc::clone(&kept);
    let keeps =
        crate::governance::governed_plane::Acts(move |turn: chancery_core::Turn, updates: chancery_core::TaskUpdateSink| {
            *keeping.lock().unwrap() = Some(turn.delegation.clone());
            async move {
                turn.cancelled.cancelled().await;
                Ok(updates.canceled())
            }
        });
    let mut plan = Plan::new(rules).agent("a", keeps);
    plan.hops = Some(Arc::new(Desk::default()));
    let governed_plane = plan.build();
    governed_plane.begin(&context, said).await.unwrap();
    let delegation = kept.lock().unwrap().take().unwrap();
    (governed_plane, delegation)
}

#[tokio::test]
async fn a_token_is_made_anew_ten_minutes_before_its_end_while_the_task_goes_on() {
    let (governed_plane, delegation) = delegation(Value::Null, &json!({}), caller("ada")).await;
    let token = || delegation.hop_token().unwrap().to_string();
    assert_eq!(token(), "hop-0");
    governed_plane.clock.advance(std::time::Duration::from_micros(3_000_000_000 - 1));
    assert_eq!(token(), "hop-0", "it is still good for long enough");
    governed_plane.clock.advance(std::time::Duration::from_micros(1));
    assert_eq!((token(), token()), ("hop-1".to_owned(), "hop-1".to_owned()));
    governed_plane.clock.advance(std::time::Duration::from_secs(7_200));
    assert_eq!(token(), "hop-2");
}

#[tokio::test]
async fn a_token_that_ends_with_its_task_is_not_made_anew() {
    let rules = json!({ "policy": { "default": { "max_duration_ms": 3_000_000 } } });
    let (governed_plane, delegation) = delegation(Value::Null, &rules, caller("ada")).await;
    for _ in 0..3 {
        assert_eq!(delegation.hop_token().as_deref(), Some("hop-0"));
        governed_plane.clock.advance(std::time::Duration::from_secs(1_000));
    }
}

/// The token itself would make each hop longer than the one before.
#[tokio::test]
async fn tokens_of_other_nodes_go_on_as_their_members_of_tracestate_wherever_they_came() {
    let mut delegations = vec![delegation(Value::Null, &json!({}), with("foreign", caller("ada"))).await];
    for member in ["ruvector", chancery_core::GOVERNANCE_EXTENSION] {
        let said = json!({ member: { "hop_token": "foreign" } });
        delegations.push(delegation(said, &json!({}), caller("ada")).await);
    }
    for (_house, delegation) in &delegations {
        let sent = delegation.lineage_headers(None);
        assert_eq!(sent.hop_token.as_deref(), Some("hop-0"), "ours alone");
        let state = sent.tracestate.unwrap();
        assert_eq!(state.split(',').nth(1), Some(OF_FOREIGN), "{state}");
        // One that came with the trace is newer.
        let newer = OF_FOREIGN.replace("=", "=newer");
        let state = delegation.lineage_headers(Some(&newer.as_str().into())).tracestate.unwrap();
        assert!(state.ends_with(&newer) && !state.contains(OF_FOREIGN), "{state}");
    }
}

#[tokio::test]
async fn the_budget_in_a_token_of_another_node_caps_the_tree_it_begins_and_raises_none() {
    for (asked, capped) in [
        (Value::Null, 10_000),
        (json!({ "ruvector": { "budget": { "usd": 5 } } }), 10_000),
        (json!({ "ruvector": { "budget": { "usd": "0.001" } } }), 1_000),
    ] {
        let (_house, delegation) = delegation(asked.clone(), &json!({}), with("poor", caller("ada"))).await;
        assert_eq!(delegation.granted().usd, Some(MicroUsd(capped)), "{asked}");
    }
}

#[tokio::test]
async fn what_does_not_fit_into_the_bytes_of_lineage_is_left_out_and_our_own_mark_never_is() {
    for (max_bytes, token) in [(256, true), (2_048, true)] {
        let rules = json!({ "lineage": { "max_bytes": max_bytes } });
        let (_house, delegation) = delegation(Value::Null, &rules, with("foreign", caller("ada"))).await;
        let vendors: String = (0..20).map(|number| format!("vendor{number}=0123456789012345,")).collect();
        let sent = delegation.lineage_headers(Some(&vendors.as_str().into()));
        assert!(sent.bytes <= max_bytes, "{max_bytes}: {}", sent.bytes);
        let state = sent.tracestate.unwrap();
        assert!(state.split('=').next().unwrap().ends_with("@chancery"), "{state}");
        assert_eq!(sent.hop_token.is_some(), token);
        assert_eq!(state.contains("vendor10"), max_bytes == 2_048, "{state}");
    }
}

#[test]
fn every_claim_counts_and_no_border_between_two_can_be_moved() {
    let claims = TokenClaims {
        tenant: "acme".into(),
        root_task: "root".into(),
        parent_task: "parent".into(),
        trace_id: TraceId(1),
        depth: 2,
        audience: "worker".into(),
    };
    let others = [
        TokenClaims { tenant: "acm".into(), root_task: "eroot".into(), ..claims.clone() },
        TokenClaims { tenant: "lab".into(), ..claims.clone() },
        TokenClaims { root_task: "other".into(), ..claims.clone() },
        TokenClaims { parent_task: "other".into(), ..claims.clone() },
        TokenClaims { trace_id: TraceId(3), ..claims.clone() },
        TokenClaims { depth: 1, ..claims.clone() },
        TokenClaims { audience: "other".into(), ..claims.clone() },
    ];
    let place = |claims: &TokenClaims| TokenTask::of(claims, &PlainSeal).place;
    assert_eq!(place(&claims), place(&claims.clone()));
    for other in others {
        assert_ne!(place(&claims), place(&other), "{other:?}");
    }
}
