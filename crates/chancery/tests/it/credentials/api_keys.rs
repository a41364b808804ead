//! API keys: in either header, in both, added, rotated and revoked while the node runs.

use chancery_identity::credentials::KeyHash;
use serde_json::json;

use super::{assert_accepted, assert_turned_away, hello, operate, server};
use crate::server::Home;
use crate::wire_client::{Combination, RawClient};

const GOOD: &str = "the-key-of-the-planner";
const OTHER: &str = "the-key-of-the-auditor";

#[tokio::test]
async fn a_key_is_taken_from_either_header_and_two_different_ones_from_none() {
    let home = Home::new();
    let (good, other) = (KeyHash::of(GOOD), KeyHash::of(OTHER));
    let server = server(&home, &format!("[callers.planner]\nkey_hash = '{good}'\n[callers.auditor]\nkey_hash = '{other}'\n"));
    let client = RawClient::new(server.url());
    let bearer = |key: &str| ("authorization", format!("Bearer {key}"));
    let header = |key: &str| ("x-api-key", key.to_owned());
    for combination in Combination::ALL {
        for (what, headers, accepted) in [
            ("X-API-Key", vec![header(GOOD)], true),
            ("Bearer", vec![bearer(GOOD)], true),
            ("bearer, small", vec![("authorization", format!("bearer {GOOD}"))], true),
            ("the same in both", vec![header(GOOD), bearer(GOOD)], true),
            ("nothing", vec![], false),
            ("two good ones of two callers", vec![header(GOOD), bearer(OTHER)], false),
            ("a good and a bad one", vec![header(GOOD), bearer("no-key-of-anybody")], false),
            ("two in one header's name", vec![header(GOOD), header(OTHER)], false),
            ("one of nobody", vec![header("no-key-of-anybody")], false),
            ("one that is nearly right", vec![header(&GOOD[..GOOD.len() - 1])], false),
            ("its hash", vec![header(&good.to_string())], false),
            ("an empty one", vec![header("")], false),
            ("another scheme", vec![("authorization", "Basic cGxhbm5lcjp4".to_owned())], false),
        ] {
            let call = headers.iter().fold(hello(combination), |call, (name, value)| call.with(name, value));
            let answer = client.ask(&call).await;
            if accepted {
                assert_accepted(&answer, what);
            } else {
                assert_turned_away(combination, &answer, what);
            }
            assert!(!format!("{answer:?}").contains(GOOD), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn an_added_key_works_at_once_until_it_is_rotated_out_or_revoked() {
    let home = Home::new();
    let server = server(&home, &format!("[callers.planner]\nkey_hash = '{}'\n", KeyHash::of(GOOD)));
    let (client, http) = (RawClient::new(server.url()), reqwest::Client::new());
    let post = async |path: &str, body| operate(&http, &home, &server, path, &body).await;
    let key = |answer: &serde_json::Value| answer["key"].as_str().expect("a key").to_owned();
    let added = key(&post("callers", json!({ "name": "ci" })).await);
    let check = async |what: &str, key: &str, accepted: bool| {
        for combination in Combination::ALL {
            let answer = client.ask(&hello(combination).with("x-api-key", key)).await;
            if accepted {
                assert_accepted(&answer, what);
            } else {
                assert_turned_away(combination, &answer, what);
            }
        }
    };
    check("added", &added, true).await;
    let second = key(&post("callers/ci/rotate", json!({ "overlap_seconds": 3600 })).await);
    check("within the overlap", &added, true).await;
    check("the new one", &second, true).await;
    let third = key(&post("callers/ci/rotate", json!({ "overlap_seconds": 0 })).await);
    check("expired", &added, false).await;
    check("expired", &second, false).await;
    check("the newest", &third, true).await;
    post("callers/ci/revoke", json!({})).await;
    check("revoked", &third, false).await;
    check("of the config", GOOD, true).await;
}
