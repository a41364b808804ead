//! The extended card: only for those who prove who they are, for them alone, and signed like the public one.

use chancery_identity::Jwks;
use chancery_identity::cards::{VerifyRules, verify_card_signatures};
use chancery_identity::credentials::KeyHash;
use chancery_protocol::{Binding, Reply, Request, Version};
use chancery_wire::Codec as _;
use chancery_wire::json::{v0_3::V0_3, v1_0::V1_0};
use chancery_wire::pb;

use super::{assert_turned_away, server};
use crate::support::server::Home;
use crate::support::wire_client::{Combination, RawAnswer, RawCall, RawClient};

const KEY: &str = "the-key-of-the-planner";

/// The card as text that can be verified. Over gRPC it is the same card in another form.
fn card_of(combination: Combination, answer: &RawAnswer) -> String {
    let read = |reply: Result<Reply, chancery_protocol::Error>| match reply {
        Ok(Reply::Card(card)) => card,
        other => panic!("no card: {other:?}"),
    };
    match (combination.binding, combination.version) {
        (Binding::Grpc, Version::V1_0) => text(V1_0.encode_card(&read(pb::v1::peer::card(answer.message())))),
        (Binding::Grpc, _) => text(V0_3.encode_card(&read(pb::v0_3::peer::card(answer.message())))),
        (Binding::JsonRpc, _) => answer.json()["result"].to_string(),
        (Binding::Rest, _) => answer.text(),
        (Binding::Swp, _) => panic!("the profile has no extended cards"),
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("JSON is text")
}

#[tokio::test]
async fn it_is_private_and_signed_at_every_door_and_nobodys_without_credentials() {
    let home = Home::new();
    let skills = "extended_skills = [{ id = 'audit', name = 'Audit', description = 'Shows what was said.', tags = ['audit'] }]";
    let config = format!("[agents.echo]\nrun = 'echo'\n{skills}\n[callers.planner]\nkey_hash = '{}'\n", KeyHash::of(KEY));
    let server = server(&home, &config);
    let client = RawClient::new(server.url());
    let keys: Jwks =
        reqwest::get(format!("{}/.well-known/jwks.json", server.url())).await.expect("an answer").json().await.expect("keys");
    let public = reqwest::get(format!("{}/.well-known/agent-card.json", server.url())).await.expect("an answer");
    assert!(!public.text().await.expect("text").contains("audit"), "what is in it is not for everybody");
    let mut told = 0;
    for combination in Combination::ALL {
        let Some(call) = RawCall::of(combination, &Request::GetExtendedCard(Default::default())) else { continue };
        assert_turned_away(combination, &client.ask(&call).await, "no credentials");
        let bad = client.ask(&call.clone().with("x-api-key", "no-key-of-anybody")).await;
        assert_turned_away(combination, &bad, "bad credentials");
        let answer = client.ask(&call.with("x-api-key", KEY)).await;
        assert!(!answer.is_refusal(), "{answer:?}");
        if combination.binding != Binding::Grpc {
            assert!(answer.header("cache-control").is_some_and(|value| value.starts_with("private")), "{answer:?}");
        }
        let card = card_of(combination, &answer);
        assert!(card.contains("audit"), "{card}");
        told += 1;
        if (combination.binding, combination.version) == (Binding::Grpc, Version::V0_3) {
            // 0.3's protobuf shape leaves out members that its JSON has, so no signature over the JSON would hold.
            assert!(!card.contains("\"signatures\""), "{card}");
            continue;
        }
        let rules = VerifyRules { card_url: Some(server.url().to_owned()), ..VerifyRules::default() };
        let verified =
            verify_card_signatures(&card, &keys, &rules).unwrap_or_else(|fault| panic!("{combination:?} {fault}: {card}"));
        assert_eq!((verified.by.len(), verified.unverified), (2, 0), "{combination:?}: EdDSA and ES256");
        assert!(verified.card.to_string().contains("audit"), "what was signed is the extended card");
    }
    assert_eq!(told, 6, "the original protocol has none");
}

#[tokio::test]
async fn an_open_node_has_none() {
    let home = Home::new();
    let skills = "extended_skills = [{ id = 'audit', name = 'Audit', description = 'Shows what was said.', tags = ['audit'] }]";
    let server = server(&home, &format!("[agents.echo]\nrun = 'echo'\n{skills}\n"));
    let client = RawClient::new(server.url());
    for combination in Combination::ALL {
        let Some(call) = RawCall::of(combination, &Request::GetExtendedCard(Default::default())) else { continue };
        let answer = client.ask(&call).await;
        assert!(answer.is_refusal() && !answer.text().contains("Shows what"), "{answer:?}");
    }
}
