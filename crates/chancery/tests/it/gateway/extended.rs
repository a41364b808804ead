//! The extended card of an agent elsewhere: fetched with the node's credentials, shown as ours, and only to callers who prove
//! who they are.

use chancery_identity::Jwks;
use chancery_identity::cards::{VerifyRules, verify_card_signatures};
use chancery_identity::credentials::KeyHash;
use chancery_protocol::{Binding, Reply, Request, Version};
use chancery_wire::Codec as _;
use chancery_wire::json::{v0_3::V0_3, v1_0::V1_0};
use chancery_wire::pb;
use serde_json::{Value, json};

use super::one_way::{cards_of, path};
use super::pages::{CARD, Pages};
use super::scripted::{Script, Scripted, card};
use super::{ANYWHERE_HERE, QUICK};
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, RawAnswer, RawCall, RawClient};

const CALLER: &str = "the-key-of-a-caller-in-front";
const GATEWAY: &str = "the-key-of-the-gateway-itself";

fn started(setup: impl FnOnce(Setup) -> Setup, config: &str) -> Server {
    let home = Home::new();
    let data = home.data();
    setup(Setup::in_home(&home)).args(["--memory", "--data"]).args([data]).config(config).start()
}

/// A node whose agent has something to show to those it knows.
fn back() -> Server {
    let skills = "extended_skills = [{ id = 'audit', name = 'Audit', description = 'Shows what was said.', tags = ['audit'] }]";
    let callers = format!("[callers.gateway]\nkey_hash = '{}'\n", KeyHash::of(GATEWAY));
    started(|setup| setup, &format!("[agents.echo]\nrun = 'echo'\n{skills}\n{callers}"))
}

fn front(url: &str, more: &str) -> Server {
    let agent = format!("[agents.front]\nurl = '{url}'\n{more}\n");
    let callers = format!("[callers.someone]\nkey_hash = '{}'\n", KeyHash::of(CALLER));
    started(|setup| setup.env("BACK_KEY", GATEWAY), &format!("{QUICK}{ANYWHERE_HERE}{agent}{callers}"))
}

const KNOWN: &str = "credentials = { api_key_env = 'BACK_KEY' }";

fn shown(combination: Combination, answer: &RawAnswer) -> String {
    let read = |reply: Result<Reply, chancery_protocol::Error>| match reply {
        Ok(Reply::Card(card)) => card,
        other => panic!("no card: {other:?}"),
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("JSON is text");
    match (combination.binding, combination.version) {
        (Binding::Grpc, Version::V1_0) => text(V1_0.encode_card(&read(pb::v1::peer::card(answer.message())))),
        (Binding::Grpc, _) => text(V0_3.encode_card(&read(pb::v0_3::peer::card(answer.message())))),
        (Binding::JsonRpc, _) => answer.json()["result"].to_string(),
        (Binding::Rest, _) => answer.text(),
        (Binding::Swp, _) => panic!("the profile has no extended cards"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_shown_at_every_door_with_our_addresses_and_our_signature_to_callers_we_know() {
    let back = back();
    let gateway = front(back.url(), &format!("{KNOWN}\nverify = 'require'"));
    let client = RawClient::new(gateway.url());
    let keys: Jwks = serde_json::from_str(&client.get("/.well-known/jwks.json", None).await.text()).expect("keys");
    let public = client.get(CARD, Some("1.0")).await.text();
    let says: Value = serde_json::from_str(&public).expect("a card");
    assert_eq!(says["capabilities"]["extendedAgentCard"], true, "{public}\n{}", gateway.log());
    assert!(!public.contains("audit"), "{public}");
    let mut told = 0;
    for combination in Combination::ALL {
        let Some(call) = RawCall::of(combination, &Request::GetExtendedCard(Default::default())) else { continue };
        assert!(client.ask(&call).await.is_refusal(), "{}: nobody", combination.name());
        let answer = client.ask(&call.with("x-api-key", CALLER)).await;
        let card = shown(combination, &answer);
        assert!(card.contains("audit") && card.contains(gateway.url()), "{}: {card}", combination.name());
        assert!(!card.contains(back.url()), "{}: {card}", combination.name());
        told += 1;
        if combination.binding == Binding::Grpc {
            continue;
        }
        let rules = VerifyRules { card_url: Some(gateway.url().to_owned()), ..VerifyRules::default() };
        let verified = verify_card_signatures(&card, &keys, &rules).unwrap_or_else(|fault| panic!("{fault}: {card}"));
        assert_eq!(verified.by.len(), 2, "{card}");
        assert!(card.contains(r#""extendedVerification":"verified""#), "{card}");
    }
    assert_eq!(told, 6, "the original protocol has none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_fetched_over_every_version_and_binding_that_has_one() {
    let back = back();
    let cards = cards_of(back.url()).await;
    for combination in Combination::ALL.into_iter().filter(|one| one.version != Version::Original) {
        let gateway = front(&format!("{}{}", cards.url(), path(combination)), &format!("{KNOWN}\nverify = 'off'"));
        let client = RawClient::new(gateway.url());
        let call = RawCall::of(Combination::ALL[0], &Request::GetExtendedCard(Default::default())).expect("a call");
        let answer = client.ask(&call.with("x-api-key", CALLER)).await;
        assert!(answer.text().contains("audit"), "{}: {answer:?}\n{}", combination.name(), gateway.log());
    }
}

/// The card is signed, and what is shown to those it knows is not: nobody says that it is of the same agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pinned_agents_is_signed_by_whoever_signed_the_card_that_was_approved() {
    let pages = Pages::open().await;
    let skills = "extended_skills = [{ id = 'audit', name = 'Audit', description = 'Shows what was said.', tags = ['audit'] }]";
    let callers = format!("[callers.gateway]\nkey_hash = '{}'\n", KeyHash::of(GATEWAY));
    let public_url = format!("public_url = '{}'", pages.agent.url());
    let back = started(|setup| setup, &format!("{public_url}\n[agents.echo]\nrun = 'echo'\n{skills}\n{callers}"));
    let client = RawClient::new(back.url());
    // As a proxy at that address passes requests on.
    let host = pages.agent.url().trim_start_matches("http://").to_owned();
    for path in [CARD, "/.well-known/jwks.json"] {
        let request =
            reqwest::Client::new().get(format!("{}{path}", back.url())).header("A2A-Version", "1.0").header("Host", &host);
        pages.show(path, &request.send().await.expect("an answer").text().await.expect("text"));
    }
    let asked = RawCall::of(Combination::ALL[0], &Request::GetExtendedCard(Default::default())).expect("a call");
    let asked = asked.with("host", &host);
    let mut signed = client.ask(&asked.clone().with("x-api-key", GATEWAY)).await.json();
    // Calls of the gateway have this id.
    signed["id"] = json!("1");
    let mut unsigned = signed.clone();
    unsigned["result"].as_object_mut().expect("a card").remove("signatures");
    let path = url::Url::parse(&card_url(&client).await).expect("a URL").path().to_owned();
    for (extended, pin, shown) in [(&signed, true, true), (&unsigned, false, true), (&unsigned, true, false)] {
        pages.show(&path, &extended.to_string());
        let gateway = front(&pages.agent.url(), &format!("{KNOWN}\npin = {pin}"));
        let answer = RawClient::new(gateway.url()).ask(&asked.clone().with("x-api-key", CALLER)).await;
        assert_eq!(answer.text().contains("audit"), shown, "pinned: {pin}, {answer:?}\n{}", gateway.log());
    }
}

/// Where the card says that JSON-RPC is spoken.
async fn card_url(client: &RawClient) -> String {
    let card: Value = serde_json::from_str(&client.get(CARD, Some("1.0")).await.text()).expect("a card");
    let listed = card["supportedInterfaces"].as_array().expect("addresses").iter();
    let spoken = listed.filter(|one| one["protocolBinding"] == "JSONRPC").find_map(|one| one["url"].as_str());
    spoken.expect("it speaks JSON-RPC").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_none_where_the_agent_shows_none_to_us_or_its_signature_does_not_fit() {
    let asked = RawCall::of(Combination::ALL[0], &Request::GetExtendedCard(Default::default())).expect("a call");
    let none_of = async |gateway: &Server| {
        let client = RawClient::new(gateway.url());
        let answer = client.ask(&asked.clone().with("x-api-key", CALLER)).await;
        assert!(answer.is_refusal(), "{answer:?}");
        let card: Value = serde_json::from_str(&client.get(CARD, Some("1.0")).await.text()).expect("a card");
        assert_ne!(card["capabilities"]["extendedAgentCard"], true, "{card}");
        assert_ne!(card["name"], "front", "the card itself is shown: {card}");
    };
    let back = back();
    none_of(&front(back.url(), "")).await;
    let unsigned = Scripted::start(|url| {
        let mut public = card(url, json!({ "extendedAgentCard": true }));
        let extended = public.clone();
        public["description"] = json!("in public");
        let public = Script::json(&public);
        move |asked: &super::scripted::Asked| match asked.path.contains(".well-known") {
            true => public.clone(),
            false => {
                let mut forged = extended.clone();
                forged["signatures"] = json!([{ "protected": "eyJhbGciOiJFUzI1NiJ9", "signature": "AAAA" }]);
                Script::result(asked, &forged)
            }
        }
    })
    .await;
    let home = Home::new();
    let keys = home.path().join("keys.json");
    std::fs::write(&keys, RawClient::new(back.url()).get("/.well-known/jwks.json", None).await.body).expect("a file");
    none_of(&front(&unsigned.url(), &format!("card_keys = '{}'", keys.display()))).await;
    assert_eq!(unsigned.count("GetExtendedAgentCard"), 1, "it was asked for and not believed");
}
