//! Requests signed by an agent's own key: for this node, for now, and once.

use serde_json::json;

use super::{TestAgent, assert_accepted, assert_turned_away, hello, operate, seconds_from_now, server};
use crate::support::server::{Home, Setup};
use crate::support::wire_client::{Combination, RawCall, RawClient};

fn replaced(mut call: RawCall, header: &'static str, from: &str, to: &str) -> RawCall {
    let value = call.headers[header].to_str().expect("ASCII").to_owned();
    assert!(value.contains(from), "{value}");
    call.headers.insert(header, value.replace(from, to).parse().expect("a header"));
    call
}

#[tokio::test]
async fn a_signed_request_is_good_for_this_node_for_its_time_and_once() {
    let (agent, stranger) = (TestAgent::random(), TestAgent::random());
    let home = Home::new();
    let server = server(&home, &format!("[callers.planner]\nagent_id = '{}'\n", agent.id));
    let (client, here) = (RawClient::new(server.url()), server.url());
    for combination in Combination::ALL {
        let signed = agent.sign(hello(combination), here);
        assert_accepted(&client.ask(&signed).await, "signed");
        assert_turned_away(combination, &client.ask(&signed).await, "replayed");
        // The window is five minutes: each case is minutes away from that edge.
        for (created, accepted) in [(-150, true), (150, true), (-600, false), (600, false)] {
            let answer = client.ask(&agent.sign_at(hello(combination), here, seconds_from_now(created))).await;
            let what = format!("signed {created} s from now");
            if accepted {
                assert_accepted(&answer, &what);
            } else {
                assert_turned_away(combination, &answer, &what);
            }
        }
        let fresh = || agent.sign(hello(combination), here);
        let mut other_body = fresh();
        other_body.body = hello(combination).with("x", "y").body;
        other_body.body.push(b' ');
        let unsigned_digest = {
            let mut call = fresh();
            let digest = chancery_identity::credentials::content_digest(&other_body.body);
            call.headers.insert("content-digest", digest.parse().expect("a header"));
            RawCall { body: other_body.body.clone(), ..call }
        };
        let mut half = fresh();
        half.headers.remove("signature-input");
        for (what, call) in [
            ("for another node", agent.sign(hello(combination), "https://other.example")),
            ("of an agent nobody listed", stranger.sign(hello(combination), here)),
            ("of another algorithm", replaced(fresh(), "signature-input", "ed25519", "rsa-v1_5-sha256")),
            ("with another nonce than was signed", replaced(fresh(), "signature-input", "nonce=\"", "nonce=\"x")),
            ("for another body", other_body),
            ("for another body, with its digest", unsigned_digest),
            ("half of it", half),
        ] {
            assert_turned_away(combination, &client.ask(&call).await, what);
        }
        let mut elsewhere = fresh();
        elsewhere.path.push_str("?more=1");
        assert_turned_away(combination, &client.ask(&elsewhere).await, "with a query nobody signed");
    }
}

#[tokio::test]
async fn a_signed_request_that_was_taken_is_turned_away_after_the_node_was_killed_and_started_again() {
    let agent = TestAgent::random();
    let home = Home::new();
    let config = format!("[callers.planner]\nagent_id = '{}'\n", agent.id);
    let server = Setup::in_home(&home).config(&config).start();
    let here = server.url().to_owned();
    let client = RawClient::new(&here);
    let mut taken = Vec::new();
    for combination in Combination::ALL {
        let signed = agent.sign(hello(combination), &here);
        assert_accepted(&client.ask(&signed).await, "signed");
        taken.push((combination, signed));
    }
    // Straight after the last answer, so that nothing was kept because there was time for it.
    server.kill();
    let address = here.trim_start_matches("http://");
    let _server = Setup::at(&home, address).config(&config).start();
    let client = RawClient::new(&here);
    for (combination, captured) in &taken {
        assert_turned_away(*combination, &client.ask(captured).await, "captured before the node was killed");
        assert_accepted(&client.ask(&agent.sign(hello(*combination), &here)).await, "signed afterwards");
    }
}

#[tokio::test]
async fn a_revoked_agent_is_turned_away() {
    let agent = TestAgent::random();
    let home = Home::new();
    let server = server(&home, &format!("[callers.planner]\nagent_id = '{}'\n", TestAgent::random().id));
    let (client, http) = (RawClient::new(server.url()), reqwest::Client::new());
    let ask = async |combination: Combination| client.ask(&agent.sign(hello(combination), server.url())).await;
    for combination in Combination::ALL {
        assert_turned_away(combination, &ask(combination).await, "nobody yet");
    }
    operate(&http, &home, &server, "callers", &json!({ "name": "ci", "agent_ids": [agent.id] })).await;
    for combination in Combination::ALL {
        assert_accepted(&ask(combination).await, "added");
    }
    operate(&http, &home, &server, "callers/ci/revoke", &json!({})).await;
    for combination in Combination::ALL {
        assert_turned_away(combination, &ask(combination).await, "revoked");
    }
}

#[tokio::test]
async fn only_agents_on_the_list_get_in_and_others_are_told_that_they_may_not() {
    let (listed, caller) = (TestAgent::random(), TestAgent::random());
    let home = Home::new();
    let config = format!("[identity]\nallow = ['{}']\n[callers.planner]\nagent_id = '{}'\n", listed.id, caller.id);
    let server = server(&home, &config);
    let client = RawClient::new(server.url());
    for combination in Combination::ALL {
        let answer = client.ask(&listed.sign(hello(combination), server.url())).await;
        assert_accepted(&answer, "listed");
        let answer = client.ask(&caller.sign(hello(combination), server.url())).await;
        super::assert_not_permitted(combination, &answer, "a caller that is not on the list");
    }
}
