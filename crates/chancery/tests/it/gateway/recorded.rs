//! What the record of a gateway says of other agents: who was given work for whom, and which cards were fetched.

use std::sync::Arc;

use chancery_evidence::bundle::verify;
use chancery_evidence::record::types;
use chancery_identity::credentials::KeyHash;
use chancery_protocol::{Binding, Version};
use serde_json::{Value, json};

use super::one_way::{cards_of, path};
use super::relay::{Relay, Route};
use super::{ANYWHERE_HERE, QUICK};
use crate::operating::cli::run;
use crate::support::patience::eventually;
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::Combination;

/// The events of a bundle that a stranger can check. None while there is nothing to export.
fn exported(home: &Home, arguments: &[&str]) -> Vec<Value> {
    let file = home.path().join("bundle.tar.gz");
    let ran = run(home, [&["evidence", "export", "-o", &file.to_string_lossy()], arguments].concat());
    if ran.code != Some(0) {
        return Vec::new();
    }
    verify(&std::fs::read(&file).expect("a bundle"), &[]).expect("a sound bundle").0.events
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["data"]).collect()
}

/// The agent `a` is elsewhere, and asks `b`, which is inside the node, for each task it is given.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_delegation_that_the_node_made_is_in_the_bundle_of_its_trace_with_lineage_and_attribution() {
    for (echoes, attribution) in [(true, "verified"), (false, "inferred")] {
        let (home, listen) = (Home::new(), lasting_address());
        let route = Route::to(format!("http://{listen}/agents/b"))
            .passing_on(move |asked| {
                let token = asked.headers.get("chancery-hop-token").filter(|_| echoes);
                (token.map(|token| ("chancery-hop-token".to_owned(), token.clone())).into_iter().collect(), Value::Null)
            })
            .with_key("key-of-agent-a-0001");
        let agent = Relay::start(move || route.clone()).await;
        let callers =
            "[callers.user]\nkey_env = 'KEY_USER'\n[callers.ka]\nkey_env = 'KEY_A'\nagent = 'a'\n[agents.b]\nrun = 'echo'\n";
        let config = format!("{QUICK}{ANYWHERE_HERE}{callers}[agents.a]\nurl = '{}'\nstream = 'always'\n", agent.agent.url());
        let setup = Setup::at(&home, listen).config(&config).env("KEY_USER", "key-of-the-user-0001");
        let node = setup.env("KEY_A", "key-of-agent-a-0001").start();

        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
        let request = reqwest::Client::new().post(format!("{}/agents/a", node.url())).header("A2A-Version", "1.0");
        let sent: Value =
            request.header("x-api-key", "key-of-the-user-0001").json(&body).send().await.unwrap().json().await.unwrap();
        let root = sent["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{sent}\n{}", node.log())).to_owned();

        let events = exported(&home, &[]);
        let delegated = of_kind(&events, types::DELEGATED);
        assert_eq!(delegated.len(), 2, "{delegated:?}");
        let (first, second) = (delegated[0], delegated[1]);
        assert_eq!((&first["agent"], &first["remote"], &first["task"]), (&json!("a"), &json!(true), &json!(root)));
        assert_eq!((&first["attribution"], &first["delegator"], &first["depth"]), (&json!("root"), &Value::Null, &json!(0)));
        assert_eq!((&second["agent"], &second["remote"], &second["delegator"]), (&json!("b"), &json!(false), &json!("a")));
        assert_eq!((&second["parent"], &second["root"], &second["depth"]), (&json!(root), &json!(root), &json!(1)));
        assert_eq!(second["attribution"], attribution, "{second}");
        assert_eq!(second["path"].as_array().and_then(|path| path.last()), Some(&json!("a")), "{second}");
        assert_eq!(first["trace"], second["trace"]);
        let trace = exported(&home, &["--trace", first["trace"].as_str().unwrap()]);
        assert_eq!(of_kind(&trace, types::DELEGATED).len(), 2, "both are in the bundle of the trace");
    }
}

const GATEWAY: &str = "the-key-of-the-gateway-itself";

/// A node whose agent shows more to those it knows.
fn back() -> Server {
    let skills = "extended_skills = [{ id = 'audit', name = 'Audit', description = 'Shows what was said.', tags = ['audit'] }]";
    let callers = format!("[callers.gateway]\nkey_hash = '{}'\n", KeyHash::of(GATEWAY));
    let home = Home::new();
    let data = home.data();
    let config = format!("[agents.echo]\nrun = 'echo'\n{skills}\n{callers}");
    Setup::in_home(&home).args(["--memory", "--data"]).args([data]).config(&config).start()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extended_card_that_was_fetched_is_recorded_and_sets_its_flag_for_agents_of_0_3() {
    let back = back();
    let cards = Arc::new(cards_of(back.url()).await);
    for version in [Version::V0_3, Version::V1_0] {
        for (credentials, fetched) in [("credentials = { api_key_env = 'BACK_KEY' }", true), ("", false)] {
            let home = Home::new();
            let url = format!("{}{}", cards.url(), path(Combination { version, binding: Binding::JsonRpc }));
            let agent = format!("[agents.front]\nurl = '{url}'\nverify = 'off'\n{credentials}\n");
            let callers = "[callers.someone]\nkey_env = 'SOMEONE_KEY'\n";
            let setup = Setup::in_home(&home).config(&format!("{QUICK}{ANYWHERE_HERE}{agent}{callers}"));
            let _node = setup.env("BACK_KEY", GATEWAY).env("SOMEONE_KEY", "the-key-of-a-caller-in-front").start();
            let count = 1 + usize::from(fetched);
            let events = eventually("the cards are recorded", || {
                Some(exported(&home, &[])).filter(|events| of_kind(events, types::CARD).len() >= count)
            });
            let cards = of_kind(&events, types::CARD);
            let extended: Vec<_> = cards.iter().filter(|card| card["extended"] == true).collect();
            assert_eq!((cards.len(), extended.len()), (count, usize::from(fetched)), "{cards:?}");
            assert!(extended.iter().all(|card| card["sha256"] != cards[0]["sha256"] && card["bytes"].as_u64() > Some(0)));
            let packets = of_kind(&events, "assay.adapter.a2a.agent.capabilities");
            let flags: Vec<_> = packets
                .iter()
                .map(|packet| {
                    let found = &packet["discovery"];
                    (found["agent_card_visible"] == true, found["extended_card_access_visible"] == true)
                })
                .collect();
            let expected: &[_] = match (version, fetched) {
                (Version::V0_3, true) => &[(true, false), (false, true)],
                (Version::V0_3, false) => &[(true, false)],
                _ => &[],
            };
            assert_eq!(flags, expected, "{version}");
        }
    }
}
