//! Several credentials at once: fine if they mean the same caller.

use chancery_identity::credentials::{Authenticator, CallerRecord, Checks, RefusalKind, SignatureRules};
use chancery_protocol::IdentityProof;
use rcgen::{CertificateParams, KeyPair};

use super::signing::{Agent, PATH, request};
use super::{ask_with, callers, now, with_key};

const KEY: &str = "0123456789abcdef";
const OTHER_KEY: &str = "another-key-of-16";

fn certificate(name: &str) -> Vec<u8> {
    CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

fn node(agent: &Agent) -> Authenticator {
    let mut all = with_key("all", KEY);
    all.certificates.push("dns:all.example".parse().unwrap());
    all.agent_ids.push(agent.id());
    let mut other = with_key("other", OTHER_KEY);
    other.certificates.push("dns:other.example".parse().unwrap());
    let records: Vec<CallerRecord> = vec![all, other];
    let signatures = SignatureRules::new(vec!["https://node.example".parse().unwrap()]).unwrap();
    Authenticator::new(Checks { signatures: Some(signatures), client_certificates: true, ..Checks::new(callers(records)) })
}

#[tokio::test]
async fn credentials_of_one_caller_go_together_and_the_strongest_proof_is_told() {
    let agent = Agent::new();
    let node = node(&agent);
    let (key, der) = (super::bearer(KEY), certificate("all.example"));
    let known = ask_with(&node, &request(&key), Some(&der), now()).await.unwrap();
    assert_eq!((&*known.caller.name, known.standing.proof), ("all", IdentityProof::Certificate));
    for certificate in [None, Some(&der[..])] {
        let mut headers = agent.sign(PATH, now(), if certificate.is_some() { "1" } else { "2" });
        headers.insert("authorization", key["authorization"].clone());
        let known = ask_with(&node, &request(&headers), certificate, now()).await.unwrap();
        assert_eq!((&*known.caller.name, known.standing.proof), ("all", IdentityProof::Signature));
        assert_eq!(known.standing.agent_id, Some(agent.id()));
    }
}

#[tokio::test]
async fn credentials_of_two_callers_are_refused_and_one_bad_credential_spoils_a_good_one() {
    let agent = Agent::new();
    let node = node(&agent);
    let (ours, others, strangers) = (certificate("all.example"), certificate("other.example"), certificate("stranger.example"));
    for (key, signed, der, expected) in [
        (Some(KEY), false, Some(&others), RefusalKind::Conflict),
        (Some(OTHER_KEY), false, Some(&ours), RefusalKind::Conflict),
        (Some(OTHER_KEY), true, None, RefusalKind::Conflict),
        (None, true, Some(&others), RefusalKind::Conflict),
        (Some(KEY), false, Some(&strangers), RefusalKind::Unknown),
        (Some("a-key-nobody-has"), false, Some(&ours), RefusalKind::Unknown),
        (Some("a-key-nobody-has"), true, None, RefusalKind::Unknown),
    ] {
        let mut headers = if signed { agent.sign(PATH, now(), "n") } else { http::HeaderMap::new() };
        if let Some(key) = key {
            headers.insert("x-api-key", key.parse().unwrap());
        }
        let refusal = ask_with(&node, &request(&headers), der.map(Vec::as_slice), now()).await.unwrap_err();
        assert_eq!(refusal.kind, expected, "{key:?} {signed} {refusal}");
    }
    // The nonce of a request that was refused for another reason is not used up.
    let headers = agent.sign(PATH, now(), "n");
    assert!(ask_with(&node, &request(&headers), None, now()).await.is_ok());
}

#[tokio::test]
async fn a_bad_signature_is_not_made_good_by_a_key() {
    let agent = Agent::new();
    let node = node(&agent);
    let mut headers = agent.sign("/other", now(), "n");
    headers.insert("x-api-key", KEY.parse().unwrap());
    assert_eq!(ask_with(&node, &request(&headers), None, now()).await.unwrap_err().kind, RefusalKind::BadSignature);
}
