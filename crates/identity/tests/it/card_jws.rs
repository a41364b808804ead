//! JSON Web Signatures on 1.0 and 0.3 cards: what verifies, and all that must not.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_identity::cards::{
    CardFault, CardShape, KeyHint, MAX_SIGNATURES, VerifiedCard, VerifyRules, card_key_urls, sign_card, verify_card_signatures,
};
use chancery_identity::keys::Cards;
use chancery_identity::{Algorithm, Jwk, Jwks, PublicKey, SigningKey, jcs, strict_json};
use serde_json::{Value, json};

use crate::common::{card_0_3, card_1_0, every_change, flips, key, sparse_card_1_0};

const BOTH: [Algorithm; 2] = [Algorithm::EdDsa, Algorithm::Es256];

fn set(keys: &[&SigningKey<Cards>]) -> Jwks {
    Jwks { keys: keys.iter().map(|key| Jwk::of(key.public(), None)).collect() }
}

fn verify(card: &Value, keys: &Jwks) -> Result<VerifiedCard, CardFault> {
    verify_card_signatures(&card.to_string(), keys, &VerifyRules::default())
}

fn refused(card: &Value, keys: &Jwks) -> String {
    match verify(card, keys) {
        Err(CardFault::CardSignatureInvalid(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

fn signed(mut card: Value, shape: CardShape, keys: &[&SigningKey<Cards>]) -> Value {
    sign_card(&mut card, shape, keys, None).unwrap();
    card
}

fn unsigned(card: &Value) -> Value {
    let mut card = card.clone();
    card.as_object_mut().unwrap().remove("signatures");
    card
}

fn header(signature: &Value) -> Value {
    let bytes = URL_SAFE_NO_PAD.decode(signature["protected"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn a_signed_card_verifies_and_is_covered_as_a_whole() {
    for algorithm in BOTH {
        let key = SigningKey::<Cards>::generate(algorithm).unwrap();
        for (card, shape) in [(card_1_0(), CardShape::V1_0), (card_0_3(), CardShape::V0_3)] {
            let card = signed(card, shape, &[&key]);
            let forms = if shape == CardShape::V1_0 { 1 } else { 2 };
            assert_eq!(card["signatures"].as_array().unwrap().len(), forms);
            assert_eq!(header(&card["signatures"][0]), json!({"alg": algorithm.as_str(), "kid": key.kid(), "typ": "JOSE"}));
            let verified = verify(&card, &set(&[&key])).unwrap();
            assert_eq!(verified.by.len(), 1);
            assert_eq!(verified.by[0].kid, key.kid());
            assert_eq!(verified.by[0].agent_id, key.agent_id());
            assert_eq!(verified.by[0].agent_id.is_some(), algorithm == Algorithm::EdDsa);
            assert_eq!((verified.unverified, verified.card), (0, unsigned(&card)));
        }
    }
}

#[test]
fn any_change_of_a_signed_card_is_refused() {
    let key = key(1);
    let card = signed(card_1_0(), CardShape::V1_0, &[&key]);
    for (what, changed) in every_change(&card) {
        match verify(&changed, &set(&[&key])) {
            Err(CardFault::CardSignatureInvalid(_)) => {}
            Err(CardFault::Unsigned) => assert!(what.starts_with("/signatures") && what.ends_with("removed"), "{what}"),
            Err(CardFault::NotACard(_)) => assert_eq!(what, "/signatures replaced"),
            // Nobody reads what is not in the schema, so it does not come out either.
            Ok(verified) if what == "/added added" => assert_eq!(verified.card, unsigned(&card)),
            other => panic!("{what}: {other:?}"),
        }
    }
}

/// The second form of 0.3 leaves out what is empty or there by default. That, and one of the two signatures, may go.
#[test]
fn a_change_of_a_signed_0_3_card_is_refused_unless_it_says_the_same() {
    let key = key(1);
    let card = signed(card_0_3(), CardShape::V0_3, &[&key]);
    let say_nothing = [
        "/security removed",
        "/security/0 removed",
        "/security/0/key removed",
        "/skills/0/tags removed",
        "/protocolVersion removed",
        "/preferredTransport removed",
        "/securitySchemes/key/type removed",
    ];
    let same = |mut card: Value| {
        let members = card.as_object_mut().unwrap();
        for (name, default) in [("protocolVersion", "0.3.0"), ("preferredTransport", "JSONRPC")] {
            assert_eq!(members.remove(name).unwrap_or(json!(default)), default);
        }
        members.remove("security");
        card["skills"][0].as_object_mut().unwrap().remove("tags");
        assert_eq!(card["securitySchemes"]["key"].as_object_mut().unwrap().remove("type").unwrap_or(json!("apiKey")), "apiKey");
        card
    };
    for (what, changed) in every_change(&card) {
        let verified = verify(&changed, &set(&[&key]));
        if what.starts_with("/signatures/") {
            assert_eq!(same(verified.unwrap().card), same(unsigned(&card)), "{what}: the other signature holds");
        } else if say_nothing.contains(&&*what) {
            assert_eq!(same(verified.unwrap().card), same(unsigned(&card)), "{what}");
        } else {
            assert!(verified.is_err(), "{what}: {verified:?}");
        }
    }
    let mut added = card.clone();
    added["securitySchemes"]["mtls"] = json!({"type": "mutualTLS"});
    assert_eq!(verify(&added, &set(&[&key])).unwrap().card["securitySchemes"].get("mtls"), None);
}

/// A flipped bit is refused, or what comes out as verified is what was signed, to the last member. For a card with empty members
/// that may also be the card without them: one of its two signatures covers no more.
fn flipping_changes_nothing_verified(card: Value, shape: CardShape) {
    let key = key(1);
    let keys = set(&[&key]);
    let text = serde_json::to_string_pretty(&signed(card, shape, &[&key])).unwrap();
    let canonical = |text: &str| jcs::canonical(&unsigned(&strict_json::parse(text).unwrap())).unwrap();
    let whole = verify_card_signatures(&text, &keys, &VerifyRules::default()).unwrap().card;
    let mut last: Value = serde_json::from_str(&text).unwrap();
    last["signatures"] = json!([last["signatures"].as_array_mut().unwrap().pop()]);
    let dense = verify(&last, &keys).unwrap().card;
    let (mut same, mut lesser, mut bad) = (0, 0, 0);
    for flipped in flips(&text) {
        match verify_card_signatures(&flipped, &keys, &VerifyRules::default()) {
            Ok(verified) if verified.card == whole => {
                // With one signature nothing may differ. With two, one may break in the list of signatures while the other
                // holds, and a default that is spelled out may go.
                assert!(whole != dense || canonical(&flipped) == canonical(&text), "{flipped}");
                same += 1;
            }
            Ok(verified) => {
                assert_eq!(verified.card, dense, "{flipped}");
                lesser += 1;
            }
            Err(_) => bad += 1,
        }
    }
    assert!(bad > 5_000 && same < bad, "{same} {lesser} {bad}");
    assert!(whole != dense || lesser == 0, "{lesser}");
}

#[test]
fn no_flipped_bit_changes_what_is_verified_of_a_1_0_card() {
    flipping_changes_nothing_verified(card_1_0(), CardShape::V1_0);
}

#[test]
fn no_flipped_bit_changes_what_is_verified_of_a_card_with_empty_members() {
    flipping_changes_nothing_verified(sparse_card_1_0(), CardShape::V1_0);
}

#[test]
fn no_flipped_bit_changes_what_is_verified_of_a_0_3_card() {
    flipping_changes_nothing_verified(card_0_3(), CardShape::V0_3);
}

#[test]
fn empty_members_get_a_signature_for_each_form() {
    let key = key(1);
    let card = signed(sparse_card_1_0(), CardShape::V1_0, &[&key]);
    assert_eq!(card["signatures"].as_array().unwrap().len(), 2);
    let with = |which: usize| {
        let mut one = card.clone();
        one["signatures"] = json!([card["signatures"][which]]);
        verify(&one, &set(&[&key])).unwrap().card
    };
    let presence = with(0);
    assert_eq!(presence["description"], "", "required members stay though empty");
    assert_eq!(presence["skills"][0]["tags"], json!([]));
    assert_eq!(presence["capabilities"]["pushNotifications"], false, "and so do flags that were set");
    assert_eq!(presence["securityRequirements"], json!([{"schemes": {"key": {}}}]));
    assert_eq!(presence["capabilities"]["extensions"][0].get("required"), None, "a default is not there");
    let dense = with(1);
    for gone in ["/description", "/skills/0/tags", "/securityRequirements", "/securitySchemes/mtls"] {
        assert_eq!(dense.pointer(gone), None, "{gone}");
    }
    assert_eq!(dense["capabilities"]["pushNotifications"], false);
    let both = verify(&card, &set(&[&key])).unwrap();
    assert_eq!((both.by.len(), both.unverified), (1, 0), "one key, however often it signed");
    assert_eq!(both.card, presence);
}

#[test]
fn what_comes_out_is_only_what_every_verified_key_signed() {
    let (whole, dense) = (key(1), key(2));
    let mut card = signed(sparse_card_1_0(), CardShape::V1_0, &[&whole, &dense]);
    // Without the second key's signature over the fuller form.
    card["signatures"].as_array_mut().unwrap().remove(1);
    let verified = verify(&card, &set(&[&whole, &dense])).unwrap();
    assert_eq!(verified.by.len(), 2);
    assert_eq!(verified.card.get("description"), None);
    assert_eq!(verify(&card, &set(&[&whole])).unwrap().card["description"], "");
}

#[test]
fn a_member_added_where_no_signature_looks_does_not_come_out() {
    let key = key(1);
    let mut card = signed(card_1_0(), CardShape::V1_0, &[&key]);
    card["url"] = json!("https://evil.example");
    card["securityRequirements"].as_array_mut().unwrap().push(json!({"schemes": {"key": {"list": []}}}));
    let verified = verify(&card, &set(&[&key])).unwrap();
    assert_eq!(verified.card, card_1_0());
}

#[test]
fn a_card_is_signed_in_its_own_shape_only() {
    let key = key(1);
    let mut hybrid = card_0_3();
    hybrid["supportedInterfaces"] = json!([]);
    for (mut card, shape) in
        [(card_1_0(), CardShape::V0_3), (card_0_3(), CardShape::V1_0), (hybrid, CardShape::V1_0), (json!([]), CardShape::V1_0)]
    {
        assert!(sign_card(&mut card, shape, &[&key], None).is_err(), "{shape:?}");
    }
    let mut nested = card_1_0();
    nested["capabilities"]["stateTransitionHistory"] = json!(true);
    let fault = sign_card(&mut nested, CardShape::V1_0, &[&key], None).unwrap_err().to_string();
    assert!(fault.contains("/capabilities/stateTransitionHistory"), "{fault}");
    let mut big = card_1_0();
    big["capabilities"]["extensions"][0]["params"]["n"] = json!(u64::MAX);
    assert!(matches!(sign_card(&mut big, CardShape::V1_0, &[&key], None), Err(CardFault::Canonical(_))));
}

/// The signature entry with another protected header, signed by `sign` over the new input.
fn forge(card: &Value, header: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> Value {
    let protected = URL_SAFE_NO_PAD.encode(header.to_string());
    let payload = jcs::canonical(&unsigned(card)).unwrap();
    let input = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload));
    let mut forged = unsigned(card);
    forged["signatures"] = json!([{"protected": protected, "signature": URL_SAFE_NO_PAD.encode(sign(input.as_bytes()))}]);
    forged
}

#[test]
fn only_the_named_algorithm_with_a_key_of_that_kind_verifies() {
    let (ed25519, es256) = (key(1), SigningKey::<Cards>::generate(Algorithm::Es256).unwrap());
    let card = card_1_0();
    let keys = set(&[&ed25519, &es256]);
    for name in ["none", "None", "NONE", "", "HS256", "HS384", "HS512", "RS256", "PS256", "ES384", "ES256K", "eddsa", "Ed448"] {
        for secret in [ed25519.public().raw(), es256.public().raw(), b"", b"secret"] {
            let header = json!({"alg": name, "kid": ed25519.kid(), "typ": "JOSE"});
            let mac = |input: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), input).as_ref().to_vec();
            assert!(refused(&forge(&card, &header, mac), &keys).contains("not allowed"), "{name}");
            assert!(refused(&forge(&card, &header, |_| Vec::new()), &keys).contains("not allowed"), "{name}");
        }
    }
    let made = signed(card.clone(), CardShape::V1_0, &[&ed25519]);
    let raw = URL_SAFE_NO_PAD.decode(made["signatures"][0]["signature"].as_str().unwrap()).unwrap();
    for header in [
        json!({"alg": "ES256", "kid": ed25519.kid(), "typ": "JOSE"}),
        json!({"kid": ed25519.kid(), "typ": "JOSE"}),
        json!({"alg": ["EdDSA"], "kid": ed25519.kid()}),
        json!({"alg": "EdDSA", "kid": 1}),
        json!({"alg": "EdDSA", "kid": ed25519.kid(), "typ": "JOSE", "crit": ["exp"], "exp": 1}),
        json!({"alg": "EdDSA", "kid": ed25519.kid(), "typ": "JOSE", "crit": []}),
        json!("EdDSA"),
    ] {
        refused(&forge(&card, &header, |_| raw.clone()), &keys);
    }
    // A key of one kind is never tried for the other, even if whoever has the keys offers it.
    let header = json!({"alg": "ES256", "kid": ed25519.kid(), "typ": "JOSE"});
    let offer = |_: &KeyHint<'_>| vec![ed25519.public().clone()];
    let forged = forge(&card, &header, |_| raw.clone()).to_string();
    assert!(verify_card_signatures(&forged, &offer, &VerifyRules::default()).is_err());
}

#[test]
fn the_unprotected_header_decides_nothing() {
    let key = key(1);
    let mut card = signed(card_1_0(), CardShape::V1_0, &[&key]);
    card["signatures"][0]["header"] = json!({"alg": "none", "kid": "x", "crit": ["y"]});
    assert_eq!(verify(&card, &set(&[&key])).unwrap().by[0].algorithm, Algorithm::EdDsa);
    let protected = URL_SAFE_NO_PAD.encode(json!({"kid": key.kid(), "typ": "JOSE"}).to_string());
    card["signatures"][0]["protected"] = json!(protected);
    card["signatures"][0]["header"] = json!({"alg": "EdDSA"});
    assert!(refused(&card, &set(&[&key])).contains("names no algorithm"));
}

#[test]
fn the_kid_is_a_hint_only() {
    let (right, wrong) = (key(1), key(2));
    let card = signed(card_1_0(), CardShape::V1_0, &[&right]);
    // The right key under another name, among others under no name or the right one.
    let named = |key: &SigningKey<Cards>, kid: Option<&str>| Jwk { kid: kid.map(str::to_owned), ..Jwk::of(key.public(), None) };
    let keys = Jwks { keys: vec![named(&wrong, Some(right.kid())), named(&right, Some("other")), named(&key(3), None)] };
    assert_eq!(verify(&card, &keys).unwrap().by[0].kid, right.kid());
    // The wrong key under the right name proves nothing.
    refused(&card, &Jwks { keys: vec![named(&wrong, Some(right.kid()))] });
    refused(&card, &Jwks::default());
    // A key that is published for another use does not sign cards.
    let mut push = Jwk::of(right.public(), Some(chancery_identity::KeyUse::Push));
    refused(&card, &Jwks { keys: vec![push.clone()] });
    push.key_use = Some("cards".to_owned());
    assert!(verify(&card, &Jwks { keys: vec![push] }).is_ok());
}

#[test]
fn one_good_signature_is_enough_and_counts_once() {
    let (good, other) = (key(1), key(2));
    let mut card = signed(card_1_0(), CardShape::V1_0, &[&other, &good]);
    let verified = verify(&card, &set(&[&good])).unwrap();
    assert_eq!((verified.by.len(), verified.unverified), (1, 1));
    assert_eq!(verified.by[0].kid, good.kid());
    assert_eq!(verify(&card, &set(&[&good, &other])).unwrap().by.len(), 2);

    let copy = card["signatures"][1].clone();
    card["signatures"] = json!([copy, copy, copy, {}, "x", null, {"protected": 1, "signature": 2}]);
    let verified = verify(&card, &set(&[&good])).unwrap();
    assert_eq!((verified.by.len(), verified.unverified), (1, 4));

    card["signatures"] = json!(vec![copy.clone(); MAX_SIGNATURES]);
    assert!(verify(&card, &set(&[&good])).is_ok());
    card["signatures"] = json!(vec![copy; MAX_SIGNATURES + 1]);
    assert!(matches!(verify(&card, &set(&[&good])), Err(CardFault::TooManySignatures(_))));
    let crowd: Vec<_> = (1..=MAX_SIGNATURES as u8 + 1).map(key).collect();
    let crowd: Vec<_> = crowd.iter().collect();
    assert!(sign_card(&mut card_1_0(), CardShape::V1_0, &crowd[1..], None).is_ok());
    assert!(matches!(sign_card(&mut card_1_0(), CardShape::V1_0, &crowd, None), Err(CardFault::NotSignable(_))));
}

#[test]
fn a_card_without_signatures_is_unsigned() {
    let card = signed(card_1_0(), CardShape::V1_0, &[&key(1)]);
    let keys = set(&[&key(1)]);
    for stripped in [
        unsigned(&card),
        {
            let mut card = card.clone();
            card["signatures"] = json!([]);
            card
        },
        {
            let mut card = card;
            card["signatures"] = Value::Null;
            card
        },
    ] {
        assert!(matches!(verify(&stripped, &keys), Err(CardFault::Unsigned)));
    }
    assert!(verify_card_signatures("{\"name\":1,\"name\":2}", &keys, &VerifyRules::default()).is_err());
}

#[test]
fn swapped_keys_and_signatures_of_other_cards_are_refused() {
    let (first, second) = (key(1), key(2));
    let card = signed(card_1_0(), CardShape::V1_0, &[&first]);
    refused(&card, &set(&[&second]));
    let mut another = card_1_0();
    another["name"] = json!("another");
    let another = signed(another, CardShape::V1_0, &[&first]);
    let mut mixed = card.clone();
    mixed["signatures"] = another["signatures"].clone();
    refused(&mixed, &set(&[&first]));
    let mut crossed = card;
    crossed["signatures"][0]["protected"] = signed(card_1_0(), CardShape::V1_0, &[&second])["signatures"][0]["protected"].clone();
    refused(&crossed, &set(&[&first, &second]));
}

#[test]
fn a_jku_is_shown_to_the_source_of_keys_only_if_it_is_accepted() {
    let key = key(1);
    let mut card = card_1_0();
    sign_card(&mut card, CardShape::V1_0, &[&key], Some("https://agent.example/.well-known/jwks.json")).unwrap();
    let text = card.to_string();
    let seen = std::cell::RefCell::new(Vec::new());
    let source = |hint: &KeyHint<'_>| -> Vec<PublicKey> {
        seen.borrow_mut().push(hint.jku.map(str::to_owned));
        vec![key.public().clone()]
    };
    let from = |url: &str| VerifyRules { card_url: Some(url.to_owned()), jku_origins: Vec::new() };
    let near = from("https://agent.example/.well-known/agent-card.json");
    let far = from("https://mirror.example/.well-known/agent-card.json");
    let verified = verify_card_signatures(&text, &source, &near).unwrap();
    assert_eq!(verified.by[0].jku.as_deref(), Some("https://agent.example/.well-known/jwks.json"));
    let verified = verify_card_signatures(&text, &source, &far).unwrap();
    assert_eq!(verified.by[0].jku, None);
    assert_eq!(*seen.borrow(), [Some("https://agent.example/.well-known/jwks.json".to_owned()), None]);
    assert_eq!(card_key_urls(&text, &near).unwrap(), ["https://agent.example/.well-known/jwks.json"]);
    assert!(card_key_urls(&text, &far).unwrap().is_empty());
}

#[test]
fn ed25519_by_its_newer_name_is_the_same_algorithm() {
    let key = key(1);
    let card = signed(card_1_0(), CardShape::V1_0, &[&key]);
    // The header is part of what is signed, so only a signer can use the other name: this one is refused for its signature.
    let header = json!({"alg": "Ed25519", "kid": key.kid(), "typ": "JOSE"});
    let raw = URL_SAFE_NO_PAD.decode(card["signatures"][0]["signature"].as_str().unwrap()).unwrap();
    assert!(refused(&forge(&card, &header, |_| raw.clone()), &set(&[&key])).contains("no EdDSA key"));
    let pair = aws_lc_rs::signature::Ed25519KeyPair::from_seed_unchecked(&[1; 32]).unwrap();
    let forged = forge(&card, &header, |input| pair.sign(input).as_ref().to_vec());
    assert_eq!(verify(&forged, &set(&[&key])).unwrap().by[0].algorithm, Algorithm::EdDsa);
}

/// One official SDK signs that way.
#[test]
fn a_card_that_is_signed_without_its_security_schemes_comes_out_without_them() {
    let pair = aws_lc_rs::signature::Ed25519KeyPair::from_seed_unchecked(&[1; 32]).unwrap();
    let mut schemeless = card_1_0();
    let schemes = schemeless.as_object_mut().unwrap().remove("securitySchemes").unwrap();
    let header = json!({"alg": "EdDSA", "kid": "k", "typ": "JOSE"});
    let mut card = forge(&schemeless, &header, |input| pair.sign(input).as_ref().to_vec());
    card["securitySchemes"] = schemes;
    card["securitySchemes"]["oauth"]["oauth2SecurityScheme"]["flows"]["clientCredentials"]["tokenUrl"] =
        json!("https://evil.example");
    assert_eq!(verify(&card, &set(&[&key(1)])).unwrap().card, schemeless);
    // A second signature of the same key over everything says more.
    let mut both = card_1_0();
    sign_card(&mut both, CardShape::V1_0, &[&key(1)], None).unwrap();
    both["signatures"].as_array_mut().unwrap().insert(0, card["signatures"][0].clone());
    assert_eq!(verify(&both, &set(&[&key(1)])).unwrap().card, card_1_0());
    // But nothing that we sign is as little as that.
    let mut changed = card_1_0();
    sign_card(&mut changed, CardShape::V1_0, &[&key(1)], None).unwrap();
    changed["securitySchemes"] = card["securitySchemes"].clone();
    refused(&changed, &set(&[&key(1)]));
}
