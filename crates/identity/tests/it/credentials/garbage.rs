//! Anything at all in the headers and the certificate: refused, never a panic, never somebody.

use chancery_identity::credentials::{
    Accept, Authenticator, Checks, Issuer, Issuers, KeySet, RequestFacts, SignatureRules, content_digest,
};
use http::{HeaderMap, HeaderValue, Method};
use proptest::prelude::*;

use super::signing::{Agent, BODY, PATH, request};
use super::test_issuer::{AUD, ISS, Served, TestIssuer};
use super::{ask_with, callers, now, with_key};

fn node(agent: &Agent) -> Authenticator {
    let mut record = with_key("ci", "0123456789abcdef");
    record.agent_ids.push(agent.id());
    let issuer = Issuer { accept: Accept::Any, ..Issuer::new("corp", ISS, AUD) };
    Authenticator::new(Checks {
        issuers: Issuers::new(vec![issuer]).unwrap(),
        key_sets: Served::new(serde_json::json!({"keys": []})),
        signatures: Some(SignatureRules::new(vec!["https://node.example".parse().unwrap()]).unwrap()),
        client_certificates: true,
        ..Checks::new(callers(vec![record]))
    })
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn header_value() -> impl Strategy<Value = HeaderValue> {
    proptest::collection::vec(prop_oneof![0x20_u8..0x7f, 0x80_u8..=0xff], 0..200)
        .prop_map(|bytes| HeaderValue::from_bytes(&bytes).unwrap())
}

/// Close to what is right, so that it comes further than the first check.
fn signature_input() -> impl Strategy<Value = HeaderValue> {
    let piece = prop_oneof![
        Just("a=(".to_owned()),
        Just("\"@method\" \"@path\" \"@authority\" \"content-digest\"".to_owned()),
        Just(");created=1800000000".to_owned()),
        Just(";nonce=\"1\"".to_owned()),
        Just(";alg=\"ed25519\"".to_owned()),
        Just(";keyid=\"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs\"".to_owned()),
        Just(",".to_owned()),
        "[ -~]{0,5}",
    ];
    proptest::collection::vec(piece, 0..10).prop_map(|pieces| HeaderValue::try_from(pieces.concat()).unwrap())
}

proptest! {
    #[test]
    fn garbage_in_any_header_is_nobody(
        authorization in proptest::option::of(header_value()),
        key in proptest::option::of(header_value()),
        signature in proptest::option::of(header_value()),
        input in proptest::option::of(prop_oneof![header_value(), signature_input()]),
        certificate in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..100)),
        path in "[ -~]{0,20}",
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in [("authorization", authorization), ("x-api-key", key), ("signature", signature), ("signature-input", input)] {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        headers.insert("content-digest", content_digest(BODY).parse().unwrap());
        let node = node(&Agent::new());
        let facts = RequestFacts { method: &Method::POST, path_and_query: &path, headers: &headers, body: BODY, meant_for: None };
        prop_assert!(run(ask_with(&node, &facts, certificate.as_deref(), now())).is_err());
    }

    #[test]
    fn garbage_shaped_like_a_token_is_nobody(header in "\\PC{0,40}", claims in "\\PC{0,40}", signature in "[A-Za-z0-9_-]{0,90}") {
        use base64::Engine as _;
        let text = |text: String| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
        let headers = super::bearer(&format!("{}.{}.{signature}", text(header), text(claims)));
        prop_assert!(run(ask_with(&node(&Agent::new()), &request(&headers), None, now())).is_err());
    }

    #[test]
    fn a_signed_request_with_one_bit_of_its_headers_changed_is_nobody(which in 0..3_usize, at in any::<prop::sample::Index>(), bit in 0..7_u32) {
        let agent = Agent::new();
        let node = node(&agent);
        let mut headers = agent.sign(PATH, now(), "nonce");
        let name = ["signature", "signature-input", "content-digest"][which];
        let mut bytes = headers[name].as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        // What cannot stand in a header cannot be sent.
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            headers.insert(name, value);
            prop_assert!(run(ask_with(&node, &request(&headers), None, now())).is_err());
        }
    }

    #[test]
    fn no_document_makes_the_key_set_parser_panic(text in "\\PC{0,100}", x in "\\PC{0,50}", kty in "(OKP|EC|RSA|oct)") {
        let _ = KeySet::parse(text.as_bytes());
        let jwks = serde_json::json!({"keys": [{"kty": kty, "crv": "Ed25519", "x": x, "y": x, "n": x, "e": x}]});
        let _ = KeySet::read(&jwks);
    }
}

#[test]
fn keys_that_are_only_shaped_like_keys_verify_nothing() {
    let issuer = TestIssuer::new();
    let weak = serde_json::json!({"keys": [
        {"kty": "RSA", "kid": "rsa", "n": "AQAB", "e": "AQAB"},
        {"kty": "EC", "crv": "P-256", "kid": "ec", "x": "A".repeat(43), "y": "A".repeat(43)},
        {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": "A".repeat(43)},
    ]});
    assert_eq!(KeySet::read(&weak).unwrap().len(), 3);
    let trusted = Issuer { accept: Accept::Any, ..Issuer::new("corp", ISS, AUD) };
    let checks =
        Checks { issuers: Issuers::new(vec![trusted]).unwrap(), key_sets: Served::new(weak), ..Checks::new(callers(Vec::new())) };
    let node = Authenticator::new(checks);
    let claims = serde_json::json!({"iss": ISS, "aud": AUD, "sub": "x", "exp": super::NOW_S + 60});
    for alg in ["RS256", "ES256", "EdDSA"] {
        let token = issuer.token(&serde_json::json!({"alg": alg}), &claims);
        assert!(run(ask_with(&node, &request(&super::bearer(&token)), None, now())).is_err(), "{alg}");
    }
}
