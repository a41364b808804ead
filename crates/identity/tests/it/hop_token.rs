//! A hop token says what was put in it, to the node that made it, for as long as it lasts, and nothing else passes for one.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_identity::hop_token::{
    BudgetCaps, CLOCK_LEEWAY, ForeignClaims, HopClaims, HopTokenFault, HopTokens, MAX_HOP_TOKEN, MAX_HOP_TOKEN_LIFE, MintFault,
    TokenAudience, path_digest,
};
use chancery_identity::keys::{self, Receipts};
use chancery_identity::{Algorithm, KeyRing, KeyUse, SigningKey};
use chancery_protocol::{AgentId, Timestamp, TraceId};
use proptest::prelude::*;
use serde_json::{Value, json};

const SEED: &str = "0707070707070707070707070707070707070707070707070707070707070707";

fn at(seconds: u64) -> Timestamp {
    Timestamp::default() + Duration::from_secs(seconds)
}

fn ring() -> KeyRing {
    let mut ring = KeyRing::default();
    ring.give(&SigningKey::<keys::HopTokens>::from_seed(SEED).unwrap(), None, at(0)).unwrap();
    ring
}

fn tokens() -> HopTokens {
    HopTokens::new("node-1", &ring())
}

fn claims() -> HopClaims {
    HopClaims {
        tenant: "t".into(),
        root_task: "root".into(),
        parent_task: "parent".into(),
        trace_id: TraceId(0xabc),
        depth: 2,
        path_digest: path_digest(&["user".into(), "planner".into(), "wr\"iter".into()]),
        marks: Some("0a1b2c3d@chancery=aGFuZGxl".into()),
        budget: BudgetCaps { micro_usd: Some(50_000), tokens: None },
        audience: TokenAudience { agent: "worker".into(), id: Some(AgentId::from_digest(&[7; 32])) },
        issued_at: at(1_000),
        expires_at: at(1_060),
        id: 0x1234,
    }
}

/// Signs a payload of one's own with the right key, as only the node itself can.
fn signed(header: &Value, payload: &str) -> String {
    let key = SigningKey::<keys::HopTokens>::from_seed(SEED).unwrap();
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let input = format!("{}.{}", encode(&header.to_string()), encode(payload));
    format!("{input}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(&key.marking().unwrap(), input.as_bytes())))
}

fn header() -> Value {
    let kid = SigningKey::<keys::HopTokens>::from_seed(SEED).unwrap().kid().to_owned();
    json!({ "alg": "HS256", "kid": kid, "typ": "chancery-hop+jwt" })
}

fn payload_of(token: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap()).unwrap()
}

fn fault(token: &str) -> HopTokenFault {
    tokens().verify(token, at(1_001)).unwrap_err()
}

#[test]
fn a_token_says_what_was_put_in_it_the_first_time_and_the_second() {
    let tokens = tokens();
    let token = tokens.mint(&claims()).unwrap();
    assert_eq!(*tokens.verify(&token, at(1_001)).unwrap(), claims());
    assert_eq!(*tokens.verify(&token, at(1_001)).unwrap(), claims());
    let bare = HopClaims {
        id: 0,
        audience: TokenAudience { agent: "x".into(), id: None },
        path_digest: path_digest(&[]),
        marks: None,
        ..claims()
    };
    assert_eq!(*tokens.verify(&tokens.mint(&bare).unwrap(), at(1_001)).unwrap(), bare);
    let payload = payload_of(&token);
    assert_eq!(payload["path_digest"], *path_digest(&["user".into(), "planner".into(), "wr\"iter".into()]));
    assert_eq!(payload.get("path"), None, "the path stays with the node that made the token");
}

#[test]
fn a_token_lasts_to_its_end_and_an_hour_at_most() {
    let tokens = tokens();
    for expected in 0..2 {
        let token = tokens.mint(&claims()).unwrap();
        assert!(tokens.verify(&token, at(1_059)).is_ok(), "{expected}");
        assert_eq!(tokens.verify(&token, at(1_060)), Err(HopTokenFault::Expired));
        assert!(tokens.verify(&token, at(1_000 - CLOCK_LEEWAY.as_secs())).is_ok());
        assert_eq!(tokens.verify(&token, at(999 - CLOCK_LEEWAY.as_secs())), Err(HopTokenFault::NotYet));
    }
    // What ends within a second is good until that second is over, so that no token is over when it is made.
    let (issued_at, expires_at) = (at(1_000) + Duration::from_millis(200), at(1_000) + Duration::from_millis(700));
    let token = tokens.mint(&HopClaims { issued_at, expires_at, ..claims() }).unwrap();
    assert!(tokens.verify(&token, expires_at).is_ok());
    assert_eq!(tokens.verify(&token, at(1_001)), Err(HopTokenFault::Expired));
    let hour = HopClaims { issued_at, expires_at: issued_at + MAX_HOP_TOKEN_LIFE, ..claims() };
    let read = tokens.verify(&tokens.mint(&hour).unwrap(), issued_at).unwrap();
    assert_eq!(read.expires_at, at(1_000) + MAX_HOP_TOKEN_LIFE, "an hour and no more, from the second it was made in");
    let long = HopClaims { expires_at: at(1_000_000), ..claims() };
    let read = tokens.verify(&tokens.mint(&long).unwrap(), at(1_000)).unwrap();
    assert_eq!(read.expires_at, at(1_000) + MAX_HOP_TOKEN_LIFE);
    let mut widened = payload_of(&tokens.mint(&claims()).unwrap());
    widened["exp"] = json!(1_000 + MAX_HOP_TOKEN_LIFE.as_secs());
    assert!(tokens.verify(&signed(&header(), &widened.to_string()), at(1_001)).is_ok());
    widened["exp"] = json!(1_001 + MAX_HOP_TOKEN_LIFE.as_secs());
    assert!(matches!(fault(&signed(&header(), &widened.to_string())), HopTokenFault::Malformed(_)));
}

#[test]
fn a_token_of_somebody_else_is_told_apart_before_its_signature_is_looked_at() {
    let other = HopTokens::new("node-2", &ring());
    let token = other.mint(&claims()).unwrap();
    assert_eq!(fault(&token), HopTokenFault::Foreign { issuer: "node-2".into() });
    let spoilt = format!("{}AAAA", &token[..token.len() - 4]);
    assert_eq!(fault(&spoilt), HopTokenFault::Foreign { issuer: "node-2".into() });
    let stranger = signed(&json!({ "alg": "ES512" }), r#"{"iss":"https://idp.example","sub":"x"}"#);
    assert_eq!(fault(&stranger), HopTokenFault::Foreign { issuer: "https://idp.example".into() });
    let long = signed(&header(), &json!({ "iss": "x".repeat(1_000) }).to_string());
    assert_eq!(fault(&long), HopTokenFault::Foreign { issuer: "x".repeat(256) });
}

#[test]
fn another_key_another_use_or_another_algorithm_signs_no_token() {
    let mut foreign_ring = KeyRing::default();
    foreign_ring.ensure(KeyUse::HopTokens, None, Algorithm::EdDsa, at(0)).unwrap();
    let impostor = HopTokens::new("node-1", &foreign_ring);
    let token = impostor.mint(&claims()).unwrap();
    assert_eq!(fault(&token), HopTokenFault::UnknownKey);

    let real = tokens().mint(&claims()).unwrap();
    let signed_part = real.rsplit_once('.').unwrap().0;
    // Their signature under our key's name.
    let key = foreign_ring.signing::<keys::HopTokens>(None, Algorithm::EdDsa, at(1)).unwrap();
    let theirs = hmac::sign(&key.marking().unwrap(), signed_part.as_bytes());
    assert_eq!(fault(&format!("{signed_part}.{}", URL_SAFE_NO_PAD.encode(theirs))), HopTokenFault::BadSignature);
    // The very same secret, used for something else.
    let receipt = SigningKey::<Receipts>::from_seed(SEED).unwrap().sign(signed_part.as_bytes()).unwrap();
    let signature = URL_SAFE_NO_PAD.encode(&receipt);
    assert!(matches!(fault(&format!("{signed_part}.{signature}")), HopTokenFault::Malformed(_)), "a signature is no mark");
    assert_eq!(fault(&format!("{signed_part}.{}", URL_SAFE_NO_PAD.encode(&receipt[..32]))), HopTokenFault::BadSignature);
    // The same label, signed with the same secret for another use, gives another secret.
    let secret = SigningKey::<Receipts>::from_seed(SEED).unwrap().sign(b"the secret that marks hop tokens").unwrap();
    let secret = hmac::Key::new(hmac::HMAC_SHA256, digest::digest(&digest::SHA256, &secret).as_ref());
    let mark = URL_SAFE_NO_PAD.encode(hmac::sign(&secret, signed_part.as_bytes()));
    assert_eq!(fault(&format!("{signed_part}.{mark}")), HopTokenFault::BadSignature);

    let payload = payload_of(&real).to_string();
    let kid = header()["kid"].clone();
    for header in [
        json!({ "alg": "none", "kid": kid, "typ": "chancery-hop+jwt" }),
        json!({ "alg": "ES512", "kid": kid, "typ": "chancery-hop+jwt" }),
        json!({ "alg": "ES256", "kid": kid, "typ": "chancery-hop+jwt" }),
        json!({ "alg": "HS256", "kid": kid, "typ": "JOSE" }),
        json!({ "alg": "HS256", "kid": kid }),
        json!({ "alg": "HS256", "typ": "chancery-hop+jwt" }),
        json!({ "alg": "HS256", "kid": kid, "typ": "chancery-hop+jwt", "crit": ["x"] }),
        json!([]),
    ] {
        assert!(matches!(fault(&signed(&header, &payload)), HopTokenFault::Malformed(_)), "{header}");
    }
    assert!(matches!(fault(&format!("{signed_part}.")), HopTokenFault::Malformed(_)));
}

#[test]
fn claims_of_another_shape_are_refused_even_if_we_signed_them() {
    let good = payload_of(&tokens().mint(&claims()).unwrap());
    assert!(tokens().verify(&signed(&header(), &good.to_string()), at(1_001)).is_ok());
    for (member, value) in [
        ("path", json!(["user"])),
        ("marks", json!(7)),
        ("path_digest", json!("")),
        ("depth", json!(-1)),
        ("depth", json!("2")),
        ("trace", json!("zz")),
        ("jti", json!("1")),
        ("iat", json!(1_000.5)),
        ("exp", json!(999)),
        ("iat", json!(-9_007_199_254_740_991_i64)),
        ("aud", json!("worker")),
        ("aud", json!({ "agent": "worker", "admin": true })),
        ("budget", json!({ "micro_usd": -1 })),
        ("budget", json!({ "subtree": "x" })),
        ("more", json!(1)),
        ("tenant", json!(null)),
    ] {
        let mut bad = good.clone();
        bad[member] = value;
        assert!(matches!(fault(&signed(&header(), &bad.to_string())), HopTokenFault::Malformed(_)), "{member}");
    }
    let twice = good.to_string().replacen('{', r#"{"tenant":"other","#, 1);
    assert!(matches!(fault(&signed(&header(), &twice)), HopTokenFault::Malformed(_)));
    for no_token in ["", ".", "..", "a.b", "a.b.c", "a.b.c.d", "e30.e30.", "e30.e30.e30", "é.é.é"] {
        assert!(matches!(fault(no_token), HopTokenFault::Malformed(_)), "{no_token}");
    }
}

#[test]
fn a_token_is_at_most_so_long() {
    let tokens = tokens();
    let with = |length: usize| HopClaims { tenant: "x".repeat(length).into(), ..claims() };
    let length = |path: usize| tokens.mint(&with(path)).map(|token| token.len());
    let longest = (1..MAX_HOP_TOKEN).rev().find(|path| length(*path).is_ok()).unwrap();
    assert!((MAX_HOP_TOKEN - 1..=MAX_HOP_TOKEN).contains(&length(longest).unwrap()));
    assert_eq!(length(longest + 1), Err(MintFault::TooLarge));
    let token = tokens.mint(&with(longest)).unwrap();
    assert!(tokens.verify(&token, at(1_001)).is_ok());
    assert_eq!(fault(&"x".repeat(MAX_HOP_TOKEN + 1)), HopTokenFault::TooLarge);
    assert!(matches!(fault(&"x".repeat(MAX_HOP_TOKEN)), HopTokenFault::Malformed(_)));
}

#[test]
fn a_token_has_the_same_length_however_long_its_path_is() {
    let length = |agents: usize| {
        let path: Vec<Arc<str>> = (0..agents).map(|number| format!("{number:0>64}").into()).collect();
        tokens().mint(&HopClaims { path_digest: path_digest(&path), ..claims() }).unwrap().len()
    };
    assert_eq!(length(0), length(65));
}

#[test]
fn other_nodes_find_a_budget_and_a_member_of_tracestate_in_a_token_and_nothing_else_in_its_place() {
    let member_of = |token: &str| ForeignClaims::of(token).and_then(|claims| claims.marks.into_iter().next());
    let with = |mark: Option<&str>| tokens().mint(&HopClaims { marks: mark.map(Arc::from), ..claims() }).unwrap();
    let mark = "0a1b2c3d@chancery=aGFuZGxl-_";
    assert_eq!(member_of(&with(Some(mark))).as_deref(), Some(mark));
    assert_eq!(member_of(&with(None)), None);
    let long = format!("0a1b2c3d@chancery={}", "x".repeat(257));
    let several = with(Some(&format!("{mark},a=1,0a1b2c3e@chancery=y")));
    assert_eq!(ForeignClaims::of(&several).unwrap().marks, [mark, "0a1b2c3e@chancery=y"]);
    assert_eq!(ForeignClaims::of(&with(Some(&[mark; 9].join(",")))).unwrap().marks.len(), 8);
    for bad in ["", "0a1b2c3d@chancery", "0a1b2c3d@chancery=", "0A1b2c3d@chancery=x", "a@chancery=x", "0a1b2c3d@other=x", &long] {
        assert_eq!(member_of(&with(Some(bad))), None, "{bad}");
    }
    for no_token in ["", "a.b.c", "a.e30", &"x".repeat(MAX_HOP_TOKEN + 1)] {
        assert_eq!(ForeignClaims::of(no_token), None, "{no_token}");
    }
    let budget = |token: &str| ForeignClaims::of(token).unwrap().budget;
    assert_eq!(budget(&with(None)), BudgetCaps { micro_usd: Some(50_000), tokens: None });
    assert_eq!(budget(&signed(&header(), r#"{"iss":"x","budget":{"micro_usd":-1}}"#)), BudgetCaps::default());
    assert_eq!(budget("e30.e30.e30"), BudgetCaps::default());
}

#[test]
fn tokens_of_an_older_key_hold_until_it_retires_and_not_a_moment_longer() {
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::HopTokens, None, Algorithm::EdDsa, at(0)).unwrap();
    let tokens = HopTokens::new("node-1", &ring);
    let old = tokens.mint(&HopClaims { expires_at: at(4_000), ..claims() }).unwrap();
    ring.rotate(KeyUse::HopTokens, None, Duration::from_secs(100), Duration::from_secs(500), at(1_000)).unwrap();
    tokens.take_keys(&ring);
    let kid = |token: &str| token.split('.').next().unwrap().to_owned();
    // The new key signs after its lead, without anybody having to say so.
    assert_eq!(kid(&tokens.mint(&claims()).unwrap()), kid(&old));
    let later = HopClaims { issued_at: at(1_100), expires_at: at(1_200), ..claims() };
    assert_ne!(kid(&tokens.mint(&later).unwrap()), kid(&old));
    assert!(tokens.verify(&old, at(1_599)).is_ok());
    assert_eq!(tokens.verify(&old, at(1_600)), Err(HopTokenFault::UnknownKey));
    tokens.take_keys(&KeyRing::default());
    assert_eq!(tokens.verify(&old, at(1_001)), Err(HopTokenFault::UnknownKey), "what is known of a key goes with it");
    assert_eq!(tokens.mint(&claims()), Err(MintFault::NoKey));
}

#[test]
fn two_paths_never_have_one_digest_by_moving_a_border() {
    let digest = |names: &[&str]| path_digest(&names.iter().map(|name| (*name).into()).collect::<Vec<_>>());
    assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
    assert_ne!(digest(&["abc"]), digest(&["abc", ""]));
    assert_ne!(digest(&[]), digest(&[""]));
}

proptest! {
    #[test]
    fn a_token_with_any_byte_changed_is_refused(place in any::<prop::sample::Index>(), byte in 32u8..127) {
        let tokens = tokens();
        let mut token = tokens.mint(&claims()).unwrap().into_bytes();
        let place = place.index(token.len());
        prop_assume!(token[place] != byte);
        token[place] = byte;
        let token = String::from_utf8(token).unwrap();
        prop_assert!(tokens.verify(&token, at(1_001)).is_err());
    }

    #[test]
    fn no_text_breaks_it(text in ".{0,200}", parts in prop::collection::vec("[A-Za-z0-9_-]{0,40}", 0..5)) {
        prop_assert!(tokens().verify(&text, at(1_001)).is_err());
        prop_assert!(tokens().verify(&parts.join("."), at(1_001)).is_err());
    }
}
