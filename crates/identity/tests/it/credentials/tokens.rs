//! Tokens of issuers: signature, algorithm, audience, time, and who the subject is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwap;
use chancery_identity::credentials::{
    Accept, Authenticator, CallerRecord, Callers, Checks, Issuer, Issuers, KeySet, RefusalKind, TokenAlgorithm, TokenSubject,
};
use chancery_protocol::{IdentityProof, MayCall, Timestamp};
use serde_json::{Value, json};

use super::test_issuer::{AUD, ISS, Served, TestIssuer};
use super::{NOW_S, ask, at, bearer, callers, headers, now, who};

struct World {
    issuer: TestIssuer,
    served: Arc<Served>,
    callers: Arc<ArcSwap<Callers>>,
    authenticator: Authenticator,
}

fn listed() -> CallerRecord {
    let mut record = CallerRecord::new("ci");
    record.tokens.push(TokenSubject { issuer: "corp".to_owned(), subject: "ci@acme".to_owned() });
    record
}

fn world(adjust: impl FnOnce(&mut Issuer)) -> World {
    let issuer = TestIssuer::new();
    let served = Served::new(issuer.jwks());
    let callers = callers(vec![listed()]);
    let mut trusted = Issuer::new("corp", ISS, AUD);
    adjust(&mut trusted);
    let issuers = Issuers::new(vec![trusted]).unwrap();
    let checks = Checks { issuers, key_sets: served.clone(), ..Checks::new(callers.clone()) };
    World { issuer, served, callers, authenticator: Authenticator::new(checks) }
}

fn claims() -> Value {
    json!({"iss": ISS, "aud": AUD, "sub": "ci@acme", "iat": NOW_S, "exp": NOW_S + 600})
}

fn with(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}

fn ed() -> Value {
    json!({"alg": "EdDSA", "typ": "JWT", "kid": "ed"})
}

impl World {
    async fn ask(&self, token: &str, now: Timestamp) -> Result<String, RefusalKind> {
        who(ask(&self.authenticator, &bearer(token), None, now).await)
    }

    async fn ask_claims(&self, claims: Value) -> Result<String, RefusalKind> {
        self.ask(&self.issuer.token(&ed(), &claims), now()).await
    }
}

fn ci() -> Result<String, RefusalKind> {
    Ok("default/ci".to_owned())
}

#[tokio::test]
async fn a_token_of_each_algorithm_that_is_allowed_is_accepted() {
    let world = world(|_| {});
    for (alg, kid) in [("EdDSA", "ed"), ("Ed25519", "ed"), ("ES256", "ec"), ("RS256", "rsa")] {
        for header in [json!({"alg": alg, "kid": kid}), json!({"alg": alg}), json!({"alg": alg, "typ": "at+jwt", "kid": kid})] {
            assert_eq!(world.ask(&world.issuer.token(&header, &claims()), now()).await, ci(), "{header}");
        }
    }
    let token = world.issuer.token(&ed(), &claims());
    let known = ask(&world.authenticator, &bearer(&token), None, now()).await.unwrap();
    assert_eq!(known.standing.proof, IdentityProof::Token);
}

#[tokio::test]
async fn algorithms_that_prove_nothing_or_belong_to_another_key_are_refused() {
    let world = world(|_| {});
    let token = |alg: &str, header: Value| world.issuer.token_signed_as(alg, &header, &claims());
    for refused in [
        token("none", json!({"alg": "none"})),
        token("none", json!({"alg": "NONE"})),
        token("HS256", json!({"alg": "HS256", "kid": "ed"})),
        token("EdDSA", json!({"alg": "HS256", "kid": "ed"})),
        // Each key with an algorithm that is not its own.
        token("RS256", json!({"alg": "RS256", "kid": "ed"})),
        token("ES256", json!({"alg": "ES256", "kid": "rsa"})),
        token("EdDSA", json!({"alg": "EdDSA", "kid": "ec"})),
        // Good algorithms that this issuer may not use.
        token("RS256", json!({"alg": "PS256", "kid": "rsa"})),
        token("RS256", json!({"alg": "RS512", "kid": "rsa"})),
        token("ES256", json!({"alg": "ES384", "kid": "ec"})),
    ] {
        assert_eq!(world.ask(&refused, now()).await, Err(RefusalKind::WrongAlgorithm), "{refused}");
    }
    // The header says one, the signature is of another.
    for (alg, header) in [("EdDSA", json!({"alg": "ES256"})), ("RS256", json!({"alg": "EdDSA"})), ("none", ed())] {
        assert_eq!(world.ask(&token(alg, header), now()).await, Err(RefusalKind::BadSignature));
    }
    let only_ed = super::tokens::world(|issuer| issuer.algorithms = vec![TokenAlgorithm::EdDSA]);
    let rs256 = only_ed.issuer.token(&json!({"alg": "RS256", "kid": "rsa"}), &claims());
    assert_eq!(only_ed.ask(&rs256, now()).await, Err(RefusalKind::WrongAlgorithm));
}

#[tokio::test]
async fn a_token_changed_anywhere_is_refused() {
    let world = world(|_| {});
    let token = world.issuer.token(&ed(), &claims());
    for at in 0..token.len() {
        let mut changed = token.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        assert!(world.ask(std::str::from_utf8(&changed).unwrap(), now()).await.is_err(), "byte {at}");
    }
    let (unsigned, _) = token.rsplit_once('.').unwrap();
    for cut in [format!("{unsigned}."), format!("{token}."), format!(".{token}"), unsigned.to_owned(), format!("{token}.x")] {
        assert!(world.ask(&cut, now()).await.is_err(), "{cut}");
    }
    assert_eq!(world.ask(&token, now()).await, ci());
}

#[tokio::test]
async fn the_audience_must_be_this_node_and_the_issuer_the_trusted_one() {
    let world = world(|issuer| issuer.audiences.push("node".to_owned()));
    for (aud, expected) in [
        (json!(AUD), ci()),
        (json!(["other", "node"]), ci()),
        (json!("https://node.example/"), Err(RefusalKind::WrongAudience)),
        (json!("other"), Err(RefusalKind::WrongAudience)),
        (json!([]), Err(RefusalKind::WrongAudience)),
        (Value::Null, Err(RefusalKind::WrongAudience)),
        (json!(7), Err(RefusalKind::Malformed)),
    ] {
        assert_eq!(world.ask_claims(with(claims(), "aud", aud.clone())).await, expected, "{aud}");
    }
    for iss in ["https://login.example", "https://LOGIN.example/", "https://evil.example/", ""] {
        assert_eq!(world.ask_claims(with(claims(), "iss", json!(iss))).await, Err(RefusalKind::Unknown), "{iss}");
    }
    let stranger = TestIssuer::new();
    assert_eq!(world.ask(&stranger.token(&ed(), &claims()), now()).await, Err(RefusalKind::BadSignature));
}

#[tokio::test]
async fn a_token_is_good_until_sixty_seconds_after_its_end_and_no_second_longer() {
    let world = world(|_| {});
    let edge = |micros: i64| Timestamp::from_micros(at(NOW_S + 660).micros() + micros);
    let token = world.issuer.token(&ed(), &claims());
    assert_eq!(world.ask(&token, edge(0)).await, ci());
    assert_eq!(world.ask(&token, edge(1)).await, Err(RefusalKind::Expired));
    assert_eq!(world.ask(&token, edge(1_000_000)).await, Err(RefusalKind::Expired));
    // The same where nothing was remembered.
    let fresh = super::tokens::world(|_| {});
    assert_eq!(fresh.ask(&fresh.issuer.token(&ed(), &claims()), edge(1_000_000)).await, Err(RefusalKind::Expired));
    let strict = super::tokens::world(|issuer| issuer.leeway_s = 0);
    let token = strict.issuer.token(&ed(), &claims());
    assert_eq!(strict.ask(&token, at(NOW_S + 600)).await, ci());
    assert_eq!(strict.ask(&token, at(NOW_S + 601)).await, Err(RefusalKind::Expired));
}

#[tokio::test]
async fn a_token_from_the_future_is_good_only_within_the_leeway() {
    let world = world(|_| {});
    for claim in ["nbf", "iat"] {
        assert_eq!(world.ask_claims(with(claims(), claim, json!(NOW_S + 60))).await, ci(), "{claim}");
        assert_eq!(world.ask_claims(with(claims(), claim, json!(NOW_S + 61))).await, Err(RefusalKind::ClockSkew), "{claim}");
    }
}

#[tokio::test]
async fn a_token_without_an_end_or_with_no_dates_or_too_long_a_life_is_refused() {
    let world = world(|issuer| issuer.max_lifetime_s = 600);
    assert_eq!(world.ask_claims(claims()).await, ci());
    for (name, value) in [
        ("exp", Value::Null),
        ("exp", json!("2027-01-01")),
        ("exp", json!(-1)),
        ("exp", json!(1e300)),
        ("exp", json!(NOW_S + 601)),
        ("iat", Value::Null),
        ("nbf", json!("soon")),
    ] {
        assert_eq!(world.ask_claims(with(claims(), name, value.clone())).await, Err(RefusalKind::Malformed), "{name} {value}");
    }
    let fraction = with(claims(), "exp", json!(NOW_S as f64 + 599.5));
    assert_eq!(world.ask_claims(fraction).await, ci());
}

#[tokio::test]
async fn a_token_may_live_for_a_day_and_no_second_longer_unless_the_bound_is_lifted() {
    const DAY_S: i64 = 24 * 60 * 60;
    let (bounded, open) = (world(|_| {}), world(|issuer| issuer.max_lifetime_s = 0));
    let lives = |seconds: i64| with(claims(), "exp", json!(NOW_S + seconds));
    assert_eq!(bounded.ask_claims(lives(DAY_S)).await, ci());
    assert_eq!(bounded.ask_claims(lives(DAY_S + 1)).await, Err(RefusalKind::Malformed));
    // Issued an hour ago: what counts is the whole life of the token, not what is left of it.
    let older = with(lives(DAY_S - 3_599), "iat", json!(NOW_S - 3_600));
    assert_eq!(bounded.ask_claims(older).await, Err(RefusalKind::Malformed));
    let undated = with(claims(), "iat", Value::Null);
    assert_eq!(bounded.ask_claims(undated.clone()).await, Err(RefusalKind::Malformed));
    assert_eq!(open.ask_claims(lives(DAY_S + 1)).await, ci());
    assert_eq!(open.ask_claims(undated).await, ci());
}

#[tokio::test]
async fn tokens_for_other_purposes_are_refused() {
    let world = world(|_| {});
    for header in [
        json!({"alg": "EdDSA", "typ": "dpop+jwt"}),
        json!({"alg": "EdDSA", "typ": "logout+jwt"}),
        json!({"alg": "EdDSA", "cty": "JWT"}),
        json!({"alg": "EdDSA", "crit": ["b64"], "b64": false}),
        json!({"alg": "EdDSA", "typ": 1}),
        json!({"typ": "JWT"}),
    ] {
        let token = world.issuer.token_signed_as("EdDSA", &header, &claims());
        assert_eq!(world.ask(&token, now()).await, Err(RefusalKind::Malformed), "{header}");
    }
}

#[tokio::test]
async fn a_token_is_a_bearers_and_not_an_api_key() {
    let world = world(|_| {});
    let token = world.issuer.token(&ed(), &claims());
    let as_key = ask(&world.authenticator, &headers(&[("x-api-key", &token)]), None, now()).await;
    assert_eq!(as_key, Err(RefusalKind::Unknown));
    let both = headers(&[("x-api-key", &token), ("authorization", &format!("Bearer {token}"))]);
    assert_eq!(who(ask(&world.authenticator, &both, None, now()).await), ci());
}

#[tokio::test]
async fn a_key_that_is_not_in_the_set_is_asked_for_once_and_then_found_or_refused() {
    let world = world(|_| {});
    let rotated = TestIssuer::new();
    let token = rotated.token(&json!({"alg": "EdDSA", "kid": "new"}), &claims());
    assert_eq!(world.ask(&token, now()).await, Err(RefusalKind::Unknown));
    assert_eq!(world.served.refreshed.load(Ordering::Relaxed), 1);
    let mut jwks = rotated.jwks();
    jwks["keys"][0]["kid"] = json!("new");
    world.served.publish(jwks);
    assert_eq!(world.ask(&token, now()).await, ci());
    assert_eq!(world.served.refreshed.load(Ordering::Relaxed), 2);
    // What is no use anyway costs the issuer nothing.
    let asked = world.served.asked.load(Ordering::Relaxed);
    let expired = with(claims(), "exp", json!(NOW_S - 61));
    assert_eq!(world.ask(&rotated.token(&json!({"alg": "EdDSA", "kid": "x"}), &expired), now()).await, Err(RefusalKind::Expired));
    assert_eq!(world.served.asked.load(Ordering::Relaxed), asked);
}

#[tokio::test]
async fn an_issuer_that_cannot_be_reached_is_no_reason_to_accept_or_to_blame_the_caller() {
    let issuer = TestIssuer::new();
    let issuers = Issuers::new(vec![Issuer::new("corp", ISS, AUD)]).unwrap();
    let checks = Checks { issuers, key_sets: Served::unreachable(), ..Checks::new(callers(vec![listed()])) };
    let authenticator = Authenticator::new(checks);
    let token = issuer.token(&ed(), &claims());
    assert_eq!(ask(&authenticator, &bearer(&token), None, now()).await, Err(RefusalKind::Unavailable));
}

#[tokio::test]
async fn a_token_is_verified_once_and_a_revoked_subject_is_out_all_the_same() {
    let world = world(|_| {});
    let token = world.issuer.token(&ed(), &claims());
    for _ in 0..3 {
        assert_eq!(world.ask(&token, now()).await, ci());
    }
    assert_eq!(world.served.asked.load(Ordering::Relaxed), 1);
    assert_eq!(world.ask(&token, at(NOW_S + 300)).await, ci());
    assert_eq!(world.served.asked.load(Ordering::Relaxed), 2, "verified anew after five minutes");

    let mut record = listed();
    record.revoke();
    world.callers.store(Callers::new(vec![record]).unwrap().into());
    assert_eq!(world.ask(&token, at(NOW_S + 300)).await, Err(RefusalKind::Unknown));
}

#[tokio::test]
async fn an_issuer_trusted_with_all_makes_callers_that_cannot_pass_for_others() {
    let world = world(|issuer| {
        issuer.accept = Accept::Any;
        issuer.tenant_claim = Some("org".to_owned());
        issuer.may_call = MayCall::Only(vec!["echo".parse().unwrap()]);
    });
    let claims = |sub: &str, org: Value| with(with(claims(), "sub", json!(sub)), "org", org);
    for (sub, name) in [("bob", "acme/corp:bob"), ("a/b:c", "acme/corp:a%2Fb%3Ac"), ("../x", "acme/corp:..%2Fx")] {
        assert_eq!(world.ask_claims(claims(sub, json!("acme"))).await, Ok(name.to_owned()));
    }
    let token = world.issuer.token(&ed(), &claims("bob", json!("acme")));
    let known = ask(&world.authenticator, &bearer(&token), None, now()).await.unwrap();
    assert_eq!(known.standing.may_call, MayCall::Only(vec!["echo".parse().unwrap()]));
    // A listed subject stays who the record says, whatever the token says of its tenant.
    assert_eq!(world.ask_claims(claims("ci@acme", json!("acme"))).await, ci());
    for org in [Value::Null, json!(""), json!("Other Tenant"), json!(7)] {
        assert_eq!(world.ask_claims(claims("bob", org.clone())).await, Err(RefusalKind::Malformed), "{org}");
    }
    for sub in [json!(""), Value::Null, json!(5)] {
        let claims = with(claims("", json!("acme")), "sub", sub.clone());
        assert_eq!(world.ask_claims(claims).await, Err(RefusalKind::Malformed), "{sub}");
    }
}

#[tokio::test]
async fn an_issuer_trusted_with_listed_subjects_makes_no_other_callers() {
    let world = world(|_| {});
    assert_eq!(world.ask_claims(with(claims(), "sub", json!("bob"))).await, Err(RefusalKind::Unknown));
    let by_claim = super::tokens::world(|issuer| issuer.caller_claim = "client_id".to_owned());
    assert_eq!(by_claim.ask_claims(with(claims(), "client_id", json!("ci@acme"))).await, ci());
    assert_eq!(by_claim.ask_claims(claims()).await, Err(RefusalKind::Malformed));
}

#[test]
fn a_key_set_holds_keys_for_signatures_and_passes_over_all_others() {
    let issuer = TestIssuer::new();
    let mut jwks = issuer.jwks();
    assert_eq!(KeySet::read(&jwks).unwrap().len(), 3);
    let good = jwks["keys"][0].clone();
    let mut add = |change: Value| {
        let mut key = good.clone();
        key.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        jwks["keys"].as_array_mut().unwrap().push(key);
    };
    add(json!({"use": "enc"}));
    add(json!({"key_ops": ["encrypt"]}));
    add(json!({"alg": "HS256"}));
    add(json!({"crv": "X25519"}));
    add(json!({"x": "AAAA"}));
    add(json!({"kty": "oct", "k": "AAAA"}));
    add(json!({"kty": "unheard-of"}));
    add(json!({"kid": 7}));
    jwks["keys"].as_array_mut().unwrap().push(json!("not even an object"));
    assert_eq!(KeySet::read(&jwks).unwrap().len(), 3);

    let many = |count| json!({"keys": vec![&good; count]}).to_string();
    assert_eq!(KeySet::parse(many(64).as_bytes()).unwrap().len(), 64);
    for bad in [&many(65), "", "[]", "{}", "{\"keys\":1}"] {
        assert!(KeySet::parse(bad.as_bytes()).is_err());
    }
}

#[test]
fn all_faults_of_all_issuers_are_told_at_once() {
    let mut bad = Issuer::new("Bad Name", "not-a-url", "");
    bad.algorithms.clear();
    bad.leeway_s = 301;
    bad.caller_claim.clear();
    let faults = Issuers::new(vec![bad, Issuer::new("a", ISS, AUD), Issuer::new("a", ISS, AUD)]).unwrap_err();
    assert_eq!(faults.len(), 8, "{faults:#?}");
    let read: Issuer = serde_json::from_value(json!({"issuer": ISS, "audiences": [AUD]})).unwrap();
    assert_eq!(read, Issuer { name: String::new(), ..Issuer::new("", ISS, AUD) });
    for refused in ["none", "HS256", "HS512", "eddsa"] {
        let issuer = json!({"issuer": ISS, "audiences": [AUD], "algorithms": [refused]});
        assert!(serde_json::from_value::<Issuer>(issuer).is_err(), "{refused}");
    }
}
