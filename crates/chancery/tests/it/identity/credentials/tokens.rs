//! Tokens (JWT) of an issuer whose keys are fetched.

use chancery_protocol::{Binding, Version};
use serde_json::{Value, json};

use super::test_issuer::{AUD, ISS};
use super::{TestIssuer, assert_accepted, assert_turned_away, hello, operate, seconds_from_now, server};
use crate::support::patience::soon;
use crate::support::server::Home;
use crate::support::wire_client::{Combination, RawClient};

const JSON_RPC: Combination = Combination { version: Version::V1_0, binding: Binding::JsonRpc };

fn claims(change: Value) -> Value {
    let mut claims = TestIssuer::claims("planner");
    for (name, value) in change.as_object().expect("an object") {
        match value {
            Value::Null => drop(claims.as_object_mut().expect("an object").remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    claims
}

#[tokio::test]
async fn a_token_is_good_for_its_time_its_node_and_its_algorithm() {
    let issuer = TestIssuer::start().await;
    let home = Home::new();
    let server = server(&home, &issuer.config("[callers.planner]\ntoken = { issuer = 'acme', subject = 'planner' }"));
    let client = RawClient::new(server.url());
    let header = |alg: &str, kid: &str| json!({ "alg": alg, "kid": kid, "typ": "JWT" });
    let good = issuer.token(&claims(json!({})));
    let (start, signature) = good.rsplit_once('.').expect("three parts");
    let stranger = TestIssuer::start().await;
    // The clocks may be five minutes apart: each case is minutes away from that edge.
    let cases = [
        ("good", good.clone(), true),
        ("one of several audiences", issuer.token(&claims(json!({ "aud": ["https://other.example", AUD] }))), true),
        ("expired, within the leeway", issuer.token(&claims(json!({ "exp": seconds_from_now(-150) }))), true),
        ("not yet good, within the leeway", issuer.token(&claims(json!({ "nbf": seconds_from_now(150) }))), true),
        ("expired", issuer.token(&claims(json!({ "exp": seconds_from_now(-600) }))), false),
        ("not yet good", issuer.token(&claims(json!({ "nbf": seconds_from_now(600) }))), false),
        ("without an end", issuer.token(&claims(json!({ "exp": null }))), false),
        ("for two days", issuer.token(&claims(json!({ "exp": seconds_from_now(172_800) }))), false),
        ("without the time it was issued", issuer.token(&claims(json!({ "iat": null }))), false),
        ("for another audience", issuer.token(&claims(json!({ "aud": "https://other.example" }))), false),
        ("for no audience", issuer.token(&claims(json!({ "aud": null }))), false),
        ("of another issuer", issuer.token(&claims(json!({ "iss": format!("{ISS}/") }))), false),
        ("of a subject nobody listed", issuer.token(&claims(json!({ "sub": "stranger" }))), false),
        ("a good key's algorithm that is not listed", issuer.signed(&header("ES256", "ec"), &claims(json!({}))), false),
        ("the public key as a secret", issuer.signed(&header("HS256", "ed"), &claims(json!({}))), false),
        ("unsigned", issuer.signed(&header("none", "ed"), &claims(json!({}))), false),
        ("signed by somebody else", stranger.token(&claims(json!({}))), false),
        ("without its signature", format!("{start}."), false),
        ("another's signature", format!("{start}.{}", signature.chars().rev().collect::<String>()), false),
    ];
    for combination in Combination::ALL {
        for (what, token, accepted) in &cases {
            let answer = client.ask(&hello(combination).with("authorization", &format!("Bearer {token}"))).await;
            if *accepted {
                assert_accepted(&answer, what);
            } else {
                assert_turned_away(combination, &answer, what);
            }
        }
        // A token is no API key.
        let misplaced = client.ask(&hello(combination).with("x-api-key", &good)).await;
        assert_turned_away(combination, &misplaced, "in the header of keys");
    }
}

#[tokio::test]
async fn a_revoked_caller_is_turned_away_although_its_token_is_good_and_remembered() {
    let issuer = TestIssuer::start().await;
    let home = Home::new();
    let server = server(&home, &issuer.config(""));
    let (client, http) = (RawClient::new(server.url()), reqwest::Client::new());
    let bearer = format!("Bearer {}", issuer.token(&TestIssuer::claims("ci")));
    for combination in Combination::ALL {
        let answer = client.ask(&hello(combination).with("authorization", &bearer)).await;
        assert_turned_away(combination, &answer, "nobody yet");
    }
    let record = json!({ "name": "ci", "tokens": [{ "issuer": "acme", "subject": "ci" }] });
    operate(&http, &home, &server, "callers", &record).await;
    for combination in Combination::ALL {
        assert_accepted(&client.ask(&hello(combination).with("authorization", &bearer)).await, "added");
    }
    operate(&http, &home, &server, "callers/ci/revoke", &json!({})).await;
    for combination in Combination::ALL {
        let answer = client.ask(&hello(combination).with("authorization", &bearer)).await;
        assert_turned_away(combination, &answer, "revoked");
    }
}

#[tokio::test]
async fn an_issuer_that_answers_without_keys_locks_nobody_out_and_strangers_cause_few_fetches() {
    let issuer = TestIssuer::start().await;
    let home = Home::new();
    let callers = "[callers.planner]\ntoken = { issuer = 'acme', subject = 'planner' }\n[jwks]\nrefresh_s = 1\n\
                   [identity]\ntokens_remembered_s = 0";
    let server = server(&home, &issuer.config(callers));
    let client = RawClient::new(server.url());
    let ask = async |token: String| client.ask(&hello(JSON_RPC).with("authorization", &format!("Bearer {token}"))).await;
    assert_accepted(&ask(issuer.token(&claims(json!({})))).await, "while there are keys");
    issuer.publish(&json!({ "keys": [] }));
    let (before, header) = (issuer.fetches(), json!({ "alg": "EdDSA", "kid": "nobody's", "typ": "JWT" }));
    soon("a stranger has caused a fetch", async || {
        assert_turned_away(JSON_RPC, &ask(issuer.signed(&header, &claims(json!({})))).await, "a key nobody has");
        (issuer.fetches() > before).then_some(())
    })
    .await;
    assert_accepted(&ask(issuer.token(&claims(json!({})))).await, "after an answer without keys");
    let fetched = issuer.fetches();
    for _ in 0..20 {
        assert_turned_away(JSON_RPC, &ask(issuer.signed(&header, &claims(json!({})))).await, "a key nobody has");
    }
    assert!(issuer.fetches() <= fetched + 5, "20 calls caused {} fetches", issuer.fetches() - fetched);
}
