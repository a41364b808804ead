//! The ADR's `discover`: cards are found, believed or not, and kept until they may have changed.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_identity::Jwks;
use chancery_outbound::discovery::{
    CardDiscovery, CardSettings, CardVerification, DiscoveryConfig, DiscoveryError, PeerLocation, Verification,
};
use chancery_outbound::guard::{GuardConfig, WayOut};
use chancery_protocol::{AgentId, Timestamp, Version};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use url::Url;

use super::pages::{CARD, Pages};
use super::scripted::{Asked, Script, Scripted, card};
use super::{conformance, in_front_of};
use crate::support::certificates::Signer;
use crate::support::line::Line;
use crate::support::patience::soon;
use crate::support::server::{Home, Server, Setup};

const JWKS: &str = "/.well-known/jwks.json";

fn discovery(url: &str) -> CardDiscovery {
    let way_out = WayOut::new(&GuardConfig::default(), &[Url::parse(url).expect("a URL")], &[]).expect("a way out");
    CardDiscovery::new(way_out.trusted().client(), DiscoveryConfig::default())
}

fn peer(url: &str, verify: CardVerification) -> PeerLocation {
    PeerLocation {
        name: "peer".into(),
        url: url.to_owned(),
        verify,
        agent_id: None,
        keys: Vec::new(),
        card: CardSettings::default(),
    }
}

fn now() -> Timestamp {
    Timestamp::default()
}

/// A node whose card and keys are shown at another address, where they can be changed.
struct Signed {
    pages: Pages,
    card: String,
    jwks: String,
    _node: Server,
}

impl Signed {
    async fn new() -> Self {
        let pages = Pages::open().await;
        let node = Setup::conformance().config(&format!("public_url = '{}'\n", pages.agent.url())).start();
        // As a proxy at that address passes requests on.
        let host = pages.agent.url().trim_start_matches("http://").to_owned();
        let get = async |path: &str| {
            let request =
                reqwest::Client::new().get(format!("{}{path}", node.url())).header("A2A-Version", "1.0").header("Host", &host);
            request.send().await.expect("an answer").text().await.expect("text")
        };
        let (card, jwks) = (get(CARD).await, get(JWKS).await);
        let signed = Self { pages, card, jwks, _node: node };
        signed.show(&signed.card);
        signed.pages.show(JWKS, &signed.jwks);
        signed
    }

    fn show(&self, card: &str) {
        self.pages.show(CARD, card);
    }

    fn url(&self) -> String {
        self.pages.agent.url()
    }

    /// The same with a word changed, which its signature does not cover.
    fn mutated(&self) -> String {
        assert!(self.card.contains("every state"), "{}", self.card);
        self.card.replacen("every state", "every secret", 1)
    }

    fn unsigned(&self) -> String {
        let mut card: Value = serde_json::from_str(&self.card).expect("JSON");
        card.as_object_mut().expect("an object").remove("signatures");
        card.to_string()
    }

    async fn agent_id(&self) -> AgentId {
        let found = discovery(&self.url()).card(&peer(&self.url(), CardVerification::Require), now()).await.expect("a card");
        match &found.verification {
            Verification::Verified { agent_ids, .. } => agent_ids.first().expect("an Ed25519 key").clone(),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discover() {
    let node = conformance();
    let found = discovery(node.url()).card(&peer(node.url(), CardVerification::Require), now()).await.expect("a card");
    assert_eq!((found.card.name.as_str(), found.version), ("Conformance", Version::V1_0));
    assert_eq!(found.verification.name(), "verified");
    assert!(found.card.skills.iter().any(|skill| skill.id == "conformance"));
    assert_eq!(found.url, format!("{}{CARD}", node.url()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_is_kept_and_asked_for_again_with_its_tag() {
    let pages = Pages::open().await;
    let url = pages.agent.url();
    pages.show(CARD, &card(&url, json!({})).to_string());
    let (discovery, peer) = (discovery(&url), peer(&url, CardVerification::IfPresent));
    let asked = || pages.agent.count(CARD);

    let first = discovery.card(&peer, now()).await.expect("a card");
    let again = discovery.card(&peer, now() + Duration::from_secs(299)).await.expect("the same card");
    assert!(Arc::ptr_eq(&first, &again));
    assert_eq!(asked(), 1, "a young card is not asked for");

    let renewed = discovery.card(&peer, now() + Duration::from_secs(300)).await.expect("the same card");
    assert_eq!(asked(), 2);
    assert!(pages.agent.all()[1].headers.contains_key("if-none-match"), "{:?}", pages.agent.all()[1]);
    assert_eq!((&renewed.digest, &renewed.text), (&first.digest, &first.text));
    discovery.card(&peer, now() + Duration::from_secs(599)).await.expect("the same card");
    assert_eq!(asked(), 2, "young again");

    pages.show(CARD, &card(&url, json!({ "streaming": true })).to_string());
    let changed = discovery.refresh(&peer, now() + Duration::from_secs(600)).await.expect("the new card");
    assert_ne!((&changed.digest, &changed.structure), (&first.digest, &first.structure));
    assert_eq!(changed.card.capabilities.streaming, Some(true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_want_a_card_at_once_fetch_it_once() {
    let pages = Pages::open().await;
    let url = pages.agent.url();
    pages.show(CARD, &card(&url, json!({})).to_string());
    let (discovery, peer) = (discovery(&url), peer(&url, CardVerification::IfPresent));
    let all = futures::future::join_all((0..50).map(|_| discovery.card(&peer, now()))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(pages.agent.count(CARD), 1);
}

/// Those who came while it was asked get what became of that; who comes later asks anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_want_a_card_that_cannot_be_had_learn_it_from_one_fetch() {
    let cue = Arc::new(Semaphore::new(0));
    let waiting = Arc::clone(&cue);
    let later = move |_: &Asked| Script::default().wait(&waiting).followed_by(Script::page(503, "text/plain", "later"));
    let agent = Scripted::start(|_| later).await;
    let (discovery, peer) = (discovery(&agent.url()), peer(&agent.url(), CardVerification::IfPresent));
    let wanted = futures::future::join_all((0..50).map(|_| discovery.card(&peer, now())));
    let all = futures::future::join3(wanted, discovery.refresh(&peer, now()), async {
        soon("the agent is asked", async || (agent.count(CARD) == 1).then_some(())).await;
        cue.add_permits(1000);
    });
    let (all, refreshed, ()) = all.await;
    assert!(refreshed.is_err() && all.iter().all(Result::is_err));
    assert_eq!(agent.count(CARD), 1);
    assert!(discovery.card(&peer, now()).await.is_err());
    assert!(discovery.refresh(&peer, now()).await.is_err());
    assert_eq!(agent.count(CARD), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_that_had_a_tag_and_moved_is_found_where_it_is_now() {
    const OLD: &str = "/.well-known/agent.json";
    let pages = Pages::open().await;
    let url = pages.agent.url();
    let (discovery, peer) = (discovery(&url), peer(&url, CardVerification::IfPresent));
    pages.show(OLD, &card(&url, json!({})).to_string());
    let found = discovery.card(&peer, now()).await.expect("a card");
    assert_eq!(found.url, format!("{url}{OLD}"));
    pages.hide(OLD);
    assert!(discovery.refresh(&peer, now()).await.is_err());
    pages.show(CARD, &card(&url, json!({ "streaming": true })).to_string());
    let moved = discovery.refresh(&peer, now()).await.expect("a card");
    assert_eq!((moved.url.as_str(), moved.card.capabilities.streaming), (&*format!("{url}{CARD}"), Some(true)));
    let last = pages.agent.all().pop().expect("it was asked");
    assert!(!last.headers.contains_key("if-none-match"), "the tag is another card's: {last:?}");
}

/// At the root of the host there may be another agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_that_cannot_be_had_just_now_is_not_looked_for_elsewhere() {
    let pages = Pages::open().await;
    let (root, own) = (pages.agent.url(), format!("/agents/a{CARD}"));
    let url = format!("{root}/agents/a");
    pages.show(CARD, &card(&root, json!({ "streaming": true })).to_string());
    let (discovery, peer) = (discovery(&url), peer(&url, CardVerification::IfPresent));
    // Neither before there was a card, nor when there is one with a tag.
    for _ in 0..2 {
        pages.show(&own, "");
        assert!(discovery.refresh(&peer, now()).await.is_err());
        assert_eq!(pages.agent.count(CARD), 0, "it is another's");
        pages.show(&own, &card(&url, json!({})).to_string());
        assert_eq!(discovery.refresh(&peer, now()).await.expect("a card").url, format!("{root}{own}"));
    }
    pages.hide(&own);
    assert_eq!(discovery.refresh(&peer, now()).await.expect("a card").url, format!("{root}{CARD}"), "it is gone from there");
    pages.show(&own, &card(&url, json!({})).to_string());
    assert_eq!(discovery.refresh(&peer, now()).await.expect("a card").url, format!("{root}{own}"), "and found again");
}

/// Whoever serves the card can add to it what its signatures leave out, in the spellings that a reader takes as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_vouched_for_is_not_read_from_a_signed_card() {
    let signed = Signed::new().await;
    let require = peer(&signed.url(), CardVerification::Require);
    let good = discovery(&signed.url()).card(&require, now()).await.expect("a card");
    let mut forged: Value = serde_json::from_str(&signed.card).expect("JSON");
    forged["icon_url"] = json!("https://elsewhere.example/icon");
    forged["documentation_url"] = json!("https://elsewhere.example/documentation");
    forged["skills"][0]["input_modes"] = json!(["application/x-elsewhere"]);
    forged["capabilities"]["extended_agent_card"] = json!(true);
    signed.show(&forged.to_string());
    let found = discovery(&signed.url()).card(&require, now()).await.expect("a card");
    assert_eq!(found.verification.name(), "verified");
    assert_eq!(found.text, forged.to_string(), "it is kept as it came");
    assert_eq!((&found.card, &found.structure), (&good.card, &good.structure));
}

/// What became of it, in a word.
async fn outcome(url: &str, peer: &PeerLocation) -> &'static str {
    match discovery(url).card(peer, now()).await {
        Ok(found) => found.verification.name(),
        Err(DiscoveryError::CardSignatureInvalid { .. }) => "refused",
        Err(DiscoveryError::Discovery { .. }) => "Discovery",
        Err(DiscoveryError::Transport { .. }) => "Transport",
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_much_a_card_has_to_prove_is_set_per_agent() {
    let signed = Signed::new().await;
    let (url, id) = (signed.url(), signed.agent_id().await);
    let other: AgentId = "ab".repeat(32).parse().expect("an id");
    let modes = [CardVerification::Off, CardVerification::IfPresent, CardVerification::Require];
    let rows = [
        ("signed", signed.card.clone(), true, None::<&AgentId>, ["not looked at", "verified", "verified"]),
        ("unsigned", signed.unsigned(), true, None, ["not looked at", "unsigned", "refused"]),
        ("changed", signed.mutated(), true, None, ["not looked at", "refused", "refused"]),
        ("signed, its keys nowhere", signed.card.clone(), false, None, ["not looked at", "no key", "refused"]),
        // Who it must be has to be proven whatever else is asked.
        ("signed by the one it must be", signed.card.clone(), true, Some(&id), ["verified"; 3]),
        ("signed by another", signed.card.clone(), true, Some(&other), ["refused"; 3]),
        ("unsigned, and must be somebody", signed.unsigned(), true, Some(&id), ["refused"; 3]),
        ("changed, and must be somebody", signed.mutated(), true, Some(&id), ["refused"; 3]),
    ];
    for (what, card, keys, agent_id, expected) in rows {
        signed.show(&card);
        signed.pages.show(JWKS, if keys { &signed.jwks } else { "{\"keys\":[]}" });
        for (verify, expected) in modes.into_iter().zip(expected) {
            let peer = PeerLocation { agent_id: agent_id.cloned(), ..peer(&url, verify) };
            assert_eq!(outcome(&url, &peer).await, expected, "{what}, {verify:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_that_is_malformed_or_says_alg_none_is_refused_and_an_empty_list_is_absent() {
    let pages = Pages::open().await;
    let url = pages.agent.url();
    let protected = |header: &str| URL_SAFE_NO_PAD.encode(header);
    let signature = URL_SAFE_NO_PAD.encode([7; 64]);
    let rows = [
        (json!([]), "unsigned"),
        (json!(null), "unsigned"),
        (json!([{ "protected": protected(r#"{"alg":"EdDSA"}"#), "signature": signature }]), "no key"),
        (json!([{ "protected": protected(r#"{"alg":"none"}"#), "signature": "" }]), "refused"),
        (json!([{ "protected": protected(r#"{"alg":"HS256"}"#), "signature": signature }]), "refused"),
        (json!([{ "protected": "", "signature": "" }]), "refused"),
        (json!([{ "protected": protected(r#"{"alg":"EdDSA"}"#), "signature": "!" }]), "refused"),
        (json!([{}]), "refused"),
        (json!([7]), "refused"),
        (json!({}), "refused"),
        (json!("signed"), "refused"),
    ];
    for (signatures, expected) in rows {
        let mut card = card(&url, json!({}));
        card["signatures"] = signatures.clone();
        pages.show(CARD, &card.to_string());
        assert_eq!(outcome(&url, &peer(&url, CardVerification::IfPresent)).await, expected, "{signatures}");
        let refused = outcome(&url, &peer(&url, CardVerification::Require)).await;
        assert_eq!(refused, "refused", "{signatures}");
        assert_eq!(outcome(&url, &peer(&url, CardVerification::Off)).await, "not looked at", "{signatures}");
    }
    let refusal = discovery(&url).card(&peer(&url, CardVerification::IfPresent), now()).await.expect_err("the last of them");
    assert!(refusal.to_string().contains("its signatures are not a list"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pinned_key_is_the_only_one_that_counts() {
    let (signed, stranger) = (Signed::new().await, Signed::new().await);
    let keys = |jwks: &str| {
        let jwks: Jwks = serde_json::from_str(jwks).expect("keys");
        jwks.keys.iter().filter_map(|jwk| jwk.public_key().ok()).collect::<Vec<_>>()
    };
    let url = signed.url();
    let pinned = |jwks: &str| PeerLocation { keys: keys(jwks), ..peer(&url, CardVerification::Require) };
    assert_eq!(outcome(&url, &pinned(&signed.jwks)).await, "verified");
    assert_eq!(outcome(&url, &pinned(&stranger.jwks)).await, "refused");
    assert_eq!(signed.pages.agent.count(JWKS), 0, "keys that are known are not fetched");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_card_is_a_discovery_error() {
    let pages = Pages::open().await;
    let url = pages.agent.url();
    assert_eq!(outcome(&url, &peer(&url, CardVerification::Off)).await, "Discovery", "nothing there at all");
    let good = card(&url, json!({})).to_string();
    let mut nowhere = card(&url, json!({}));
    nowhere["supportedInterfaces"] = json!([]);
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let broken = [
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        "\"card\"".to_owned(),
        "<html>".to_owned(),
        good[..good.len() / 2].to_owned(),
        format!("{good}{good}"),
        good.replace("\"name\"", "\"name\":1,\"name\""),
        nowhere.to_string(),
        format!("{{\"name\":{deep}}}"),
    ];
    for text in broken {
        pages.show(CARD, &text);
        let outcome = outcome(&url, &peer(&url, CardVerification::IfPresent)).await;
        assert_eq!(outcome, "Discovery", "{}", text.chars().take(200).collect::<String>());
    }
    let readable = [
        good.replace("\"Scripted\"", "7"),
        good.replace("\"skills\":[", "\"skills\":[null,"),
        good.replace("\"capabilities\":{}", "\"capabilities\":\"all\""),
        good.clone(),
    ];
    for text in readable {
        pages.show(CARD, &text);
        assert_eq!(outcome(&url, &peer(&url, CardVerification::IfPresent)).await, "unsigned", "what can be read is: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cannot_be_reached_safely_is_a_transport_error() {
    let (home, authority) = (Home::new(), Signer::new("an authority nobody knows"));
    let signed = authority.node();
    std::fs::write(home.path().join("node.pem"), &signed.certificate).expect("the home takes files");
    std::fs::write(home.path().join("node.key"), &signed.key).expect("the home takes files");
    let node = Setup::in_home(&home).config("[tls]\ncert_file = 'node.pem'\nkey_file = 'node.key'\n").start();
    assert!(node.url().starts_with("https://"));
    assert_eq!(outcome(node.url(), &peer(node.url(), CardVerification::Off)).await, "Transport", "a certificate of strangers");

    let plain = conformance();
    let over_tls = plain.url().replace("http://", "https://");
    assert_eq!(outcome(&over_tls, &peer(&over_tls, CardVerification::Off)).await, "Transport", "no TLS there");
    let url = plain.url().to_owned();
    plain.kill();
    assert_eq!(outcome(&url, &peer(&url, CardVerification::Off)).await, "Transport", "nobody there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_card_is_refused_is_not_called_and_the_log_says_whom_it_is_about() {
    let signed = Signed::new().await;
    let id = signed.agent_id().await;
    signed.show(&signed.mutated());
    let other = "cd".repeat(32);
    for (pinned, named) in [(id.to_string(), vec![id.to_string()]), (other.clone(), vec![other.clone(), id.to_string()])] {
        if pinned == other {
            signed.show(&signed.card);
        }
        let gateway = in_front_of(&signed.url(), &format!("[agents.pinned]\nurl = '{}'\nagent_id = '{pinned}'\n", signed.url()));
        let sent = Line::to(gateway.url(), "").send("hello").await;
        assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_FAILED", "{sent}");
        let reason = sent["task"]["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
        assert!(reason.contains("is refused"), "{reason}");
        let log = gateway.log();
        let warned = log.lines().find(|line| line.contains("rejected the card of an agent") && line.contains("pinned#"));
        let warned = warned.unwrap_or_else(|| panic!("{log}"));
        assert!(warned.contains("WARN"), "{warned}");
        for id in named {
            assert!(warned.contains(&id), "{id} is not in {warned}");
        }
    }
    let calls: Vec<String> = signed.pages.agent.calls().iter().map(Asked::kind).collect();
    assert_eq!(calls, [""; 0], "nothing but cards and keys was asked for");
}
