//! Whoever has a message in hand can do nothing with it but deliver it once, where it was meant to go, while it is fresh; and keys
//! change without a message that cannot be verified.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chancery_identity::keys::{Cards, Push};
use chancery_identity::webhook::{
    Carries, HmacSecret, ID_HEADER, JWKS_MAX_AGE, JwtFault, KEPT_AFTER_USE, MAX_PUSH_JWT, MOST_SIGNATURES, PUBLISHED_BEFORE_USE,
    PushClaims, PushKeys, ReplayCheck, ReplayMemory, SIGNATURE_HEADER, Scheme, SecretSet, TIMESTAMP_HEADER, TokenFor,
    VerifiedWebhook, Verifier, VerifyFault, WebhookId, mint_push_jwt, rotate_push_keys, sign,
};
use chancery_identity::{Algorithm, Jwks, KeyRing, KeyUse, SigningKey};
use chancery_protocol::Timestamp;
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use serde_json::{Value, json};

const URL: &str = "https://a.example/hook";
const BODY: &[u8] = br#"{"statusUpdate":{"taskId":"t"}}"#;
const SENT: i64 = 1_800_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn secret(byte: u8) -> HmacSecret {
    HmacSecret::from_bytes(vec![byte; 32]).unwrap()
}

fn key(byte: u8) -> SigningKey<Push> {
    SigningKey::from_seed(&format!("{byte:02x}").repeat(32)).unwrap()
}

fn headers(id: &str, seconds: i64, signature: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ID_HEADER, id.parse().unwrap());
    headers.insert(TIMESTAMP_HEADER, seconds.into());
    headers.insert(SIGNATURE_HEADER, signature.parse().unwrap());
    headers
}

fn id(url: &str) -> String {
    WebhookId::new(url, 7, 42, Carries::Entry).to_string()
}

/// A message as it goes out: with both signatures, for `URL`.
fn message() -> HeaderMap {
    let signature = sign(&id(URL), SENT, BODY, [&secret(1)], [&key(1)]).unwrap().unwrap();
    headers(&id(URL), SENT, &signature)
}

fn by_secret() -> Verifier {
    Verifier::default().secret(secret(1)).url(URL)
}

fn by_key() -> Verifier {
    Verifier::default().keys(PushKeys::new([key(1).public().clone()])).url(URL)
}

fn fault(verifier: &Verifier, headers: &HeaderMap, now: i64) -> VerifyFault {
    verifier.verify(headers, BODY, at(now)).unwrap_err()
}

#[test]
fn a_message_is_what_it_says_to_whoever_has_either_key() {
    for (verifier, scheme) in [(by_secret(), Scheme::V1), (by_key(), Scheme::V1a)] {
        let made_of = Some(WebhookId::new(URL, 7, 42, Carries::Entry));
        let expected = VerifiedWebhook { id: id(URL), made_of, sent_at: at(SENT), scheme };
        assert_eq!(verifier.verify(&message(), BODY, at(SENT)), Ok(expected));
    }
}

/// F6: the same request again, at once.
#[test]
fn a_copy_is_known_by_its_id() {
    let (memory, message) = (ReplayMemory::default(), message());
    let verified = by_secret().verify(&message, BODY, at(SENT)).unwrap();
    assert_eq!(memory.begin(&verified.id, at(SENT)), ReplayCheck::Fresh);
    memory.taken(&verified.id, at(SENT));
    let copy = by_secret().verify(&message, BODY, at(SENT + 1)).unwrap();
    assert_eq!(memory.begin(&copy.id, at(SENT + 1)), ReplayCheck::Seen);
    // However late a copy passes for fresh, it is still remembered.
    let (early, late) = (at(SENT - 300), at(SENT + 300));
    let memory = ReplayMemory::default();
    by_secret().verify(&message, BODY, early).unwrap();
    memory.taken(&verified.id, early);
    by_secret().verify(&message, BODY, late).unwrap();
    assert_eq!(memory.begin(&verified.id, late), ReplayCheck::Seen);
}

/// F6: after six minutes; and F5: a sender whose clock is off by four minutes is heard, by six it is not.
#[test]
fn a_message_is_fresh_for_five_minutes_either_way() {
    for verifier in [by_secret(), by_key()] {
        for now in [SENT - 300, SENT - 240, SENT, SENT + 240, SENT + 300] {
            assert!(verifier.verify(&message(), BODY, at(now)).is_ok(), "{now}");
        }
        assert_eq!(fault(&verifier, &message(), SENT + 301), VerifyFault::TooOld { seconds: 301 });
        assert_eq!(fault(&verifier, &message(), SENT + 360), VerifyFault::TooOld { seconds: 360 });
        assert_eq!(fault(&verifier, &message(), SENT - 301), VerifyFault::TooNew { seconds: 301 });
    }
}

/// F6: to another registration, with the same keys.
#[test]
fn a_message_for_one_receiver_is_worth_nothing_at_another() {
    let elsewhere = "https://b.example/hook";
    for verifier in [Verifier::default().secret(secret(1)), Verifier::default().keys(PushKeys::new([key(1).public().clone()]))] {
        assert_eq!(fault(&verifier.clone().url(elsewhere), &message(), SENT), VerifyFault::OtherAudience);
        assert!(verifier.clone().url(elsewhere).url(URL).verify(&message(), BODY, at(SENT)).is_ok(), "one that has two names");
        let mut renamed = message();
        renamed.insert(ID_HEADER, id(elsewhere).parse().unwrap());
        assert_eq!(fault(&verifier.url(elsewhere), &renamed, SENT), VerifyFault::BadSignature);
    }
    let signature = sign("msg_foreign", SENT, BODY, [&secret(1)], []).unwrap().unwrap();
    assert_eq!(fault(&by_secret(), &headers("msg_foreign", SENT, &signature), SENT), VerifyFault::OtherAudience);
    assert!(Verifier::default().secret(secret(1)).verify(&headers("msg_foreign", SENT, &signature), BODY, at(SENT)).is_ok());
}

/// F6: with a new time, another body, another id.
#[test]
fn nothing_that_is_signed_can_be_altered() {
    for verifier in [by_secret(), by_key()] {
        let mut altered = message();
        altered.insert(TIMESTAMP_HEADER, (SENT + 400).into());
        assert_eq!(fault(&verifier, &altered, SENT + 400), VerifyFault::BadSignature);
        assert_eq!(verifier.verify(&message(), b"{}", at(SENT)), Err(VerifyFault::BadSignature));
        let mut altered = message();
        altered.insert(ID_HEADER, WebhookId::new(URL, 7, 43, Carries::Entry).to_string().parse().unwrap());
        assert_eq!(fault(&verifier, &altered, SENT), VerifyFault::BadSignature);
    }
}

/// F6: the list in another order, one signature cut short, garbage among the good.
#[test]
fn one_good_signature_among_bad_ones_is_enough_and_a_part_of_one_is_not() {
    let message = message();
    let both = message[SIGNATURE_HEADER].to_str().unwrap();
    let (v1, v1a) = both.split_once(' ').unwrap();
    let with = |list: &str| headers(&id(URL), SENT, list);
    for good in [format!("{v1a} {v1}"), format!("v1,AAAA {v1} v2,xyz {v1a}"), format!("v1,%%% v1a,%%% {v1a} {v1} , v1 v1,")] {
        for verifier in [by_secret(), by_key()] {
            assert!(verifier.verify(&with(&good), BODY, at(SENT)).is_ok(), "{good}");
        }
    }
    for signature in [v1, v1a] {
        let (version, encoded) = signature.split_once(',').unwrap();
        let bytes = STANDARD.decode(encoded).unwrap();
        for length in 0..bytes.len() {
            let short = format!("{version},{}", STANDARD.encode(&bytes[..length]));
            let verifier = if version == "v1" { by_secret() } else { by_key() };
            assert_eq!(fault(&verifier, &with(&short), SENT), VerifyFault::BadSignature, "{short}");
        }
        let other_version = format!("{},{encoded}", if version == "v1" { "v1a" } else { "v1" });
        for verifier in [by_secret(), by_key()] {
            assert!(verifier.verify(&with(&other_version), BODY, at(SENT)).is_err());
        }
    }
    assert_eq!(fault(&by_secret(), &with(v1a), SENT), VerifyFault::NoKey);
    assert_eq!(fault(&by_key(), &with(v1), SENT), VerifyFault::NoKey);
    assert_eq!(fault(&by_key(), &with(""), SENT), VerifyFault::NoKey);
    let most = vec![v1; MOST_SIGNATURES].join(" ");
    assert!(by_secret().verify(&with(&most), BODY, at(SENT)).is_ok());
    assert_eq!(fault(&by_secret(), &with(&format!("{most} {v1}")), SENT), VerifyFault::TooManySignatures);
}

#[test]
fn headers_that_are_missing_doubled_or_odd_are_named() {
    for name in [ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER] {
        let mut missing = message();
        missing.remove(name);
        assert_eq!(fault(&by_secret(), &missing, SENT), VerifyFault::Missing(name));
        let mut doubled = message();
        doubled.append(name, doubled[name].clone());
        assert_eq!(fault(&by_secret(), &doubled, SENT), VerifyFault::Malformed(name));
        let mut odd = message();
        odd.insert(name, HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(fault(&by_secret(), &odd, SENT), VerifyFault::Malformed(name));
    }
    for time in ["", " 1800000000", "+1800000000", "01800000000", "1.8e9", "99999999999999999999"] {
        let mut odd = message();
        odd.insert(TIMESTAMP_HEADER, time.parse().unwrap());
        assert_eq!(fault(&by_secret(), &odd, SENT), VerifyFault::Malformed(TIMESTAMP_HEADER), "{time}");
    }
    let mut dotted = message();
    dotted.insert(ID_HEADER, HeaderValue::from_static("a.b"));
    assert_eq!(fault(&by_secret(), &dotted, SENT), VerifyFault::Malformed(ID_HEADER));
}

#[test]
fn a_key_for_something_else_signs_no_message() {
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::Cards, None, Algorithm::EdDsa, at(SENT)).unwrap();
    ring.ensure(KeyUse::Push, None, Algorithm::EdDsa, at(SENT)).unwrap();
    ring.ensure(KeyUse::Push, None, Algorithm::Es256, at(SENT)).unwrap();
    let keys = PushKeys::from_jwks(&Jwks::of(&ring, at(SENT)));
    assert_eq!(keys.ed25519().count(), 1);
    let signing = ring.signing::<Push>(None, Algorithm::EdDsa, at(SENT)).unwrap();
    assert_eq!(keys.ed25519().next(), Some(signing.public()));
    assert!(ring.signing::<Cards>(None, Algorithm::EdDsa, at(SENT)).is_some_and(|key| key.kid() != signing.kid()));
}

/// F12, shared secrets: a receiver that knows only the old one, then one that knows only the new one.
#[test]
fn no_message_fails_while_a_secret_changes_and_the_old_one_ends_with_its_grace() {
    let grace = 3_600;
    let mut set = SecretSet::new(secret(1));
    set.rotate(secret(2), Duration::from_secs(grace), at(SENT)).unwrap();
    let verify = |byte, now: i64| {
        let signature = sign(&id(URL), now, BODY, set.signing(at(now)), []).unwrap().unwrap();
        Verifier::default().secret(secret(byte)).verify(&headers(&id(URL), now, &signature), BODY, at(now))
    };
    let end = SENT + i64::try_from(grace).unwrap();
    for now in (SENT..end).step_by(60).chain([end - 1]) {
        assert!(verify(1, now).is_ok() && verify(2, now).is_ok(), "{now}");
    }
    assert_eq!(verify(1, end).unwrap_err(), VerifyFault::BadSignature);
    assert!(verify(2, end).is_ok());
}

/// F12, published keys: receivers that keep what they fetched for as long as they may, whenever they fetched it.
#[test]
fn no_message_fails_while_a_published_key_changes_however_old_the_receivers_copy_is() {
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::Push, None, Algorithm::EdDsa, at(SENT)).unwrap();
    let old_kid = ring.signing::<Push>(None, Algorithm::EdDsa, at(SENT)).unwrap().kid().to_owned();
    let rotated_at = SENT + 1_000;
    let fetched = |ring: &KeyRing, now: i64| PushKeys::from_jwks(&Jwks::of(ring, at(now)));
    let before = ring.clone();
    rotate_push_keys(&mut ring, at(rotated_at)).unwrap();
    let max_age = i64::try_from(JWKS_MAX_AGE.as_secs()).unwrap();
    let used_from = rotated_at + i64::try_from(PUBLISHED_BEFORE_USE.as_secs()).unwrap();
    assert_eq!(PUBLISHED_BEFORE_USE, 2 * JWKS_MAX_AGE);
    for now in (SENT..used_from + 2_000).step_by(10) {
        let node = if now < rotated_at { &before } else { &ring };
        let signing = node.signing::<Push>(None, Algorithm::EdDsa, at(now)).unwrap();
        assert_eq!(signing.kid() == old_kid, now < used_from, "{now}");
        let signature = sign(&id(URL), now, BODY, [], [&signing]).unwrap().unwrap();
        for age in [0, 1, max_age / 2, max_age] {
            let then = (now - age).max(SENT);
            let keys = fetched(if then < rotated_at { &before } else { &ring }, then);
            let verified = Verifier::default().keys(keys).verify(&headers(&id(URL), now, &signature), BODY, at(now));
            assert!(verified.is_ok(), "sent at {now}, keys from {then}: {verified:?}");
        }
    }
    // What the old key signed last verifies for a day more, and then not.
    let last = before.signing::<Push>(None, Algorithm::EdDsa, at(used_from)).unwrap();
    let signature = sign(&id(URL), used_from, BODY, [], [&last]).unwrap().unwrap();
    let late = Verifier::default().tolerance(Duration::from_secs(1_000_000));
    let kept_until = used_from + i64::try_from(KEPT_AFTER_USE.as_secs()).unwrap();
    let verify = |now| late.clone().keys(fetched(&ring, now)).verify(&headers(&id(URL), used_from, &signature), BODY, at(now));
    assert!(verify(kept_until - 1).is_ok());
    assert_eq!(verify(kept_until).unwrap_err(), VerifyFault::BadSignature);
}

fn claims() -> PushClaims {
    PushClaims::new("https://node.example/card", URL, &id(URL), "task-1", BODY, at(SENT))
}

fn token_keys() -> PushKeys {
    PushKeys::new([key(1).public().clone()])
}

fn expected(id: &str) -> TokenFor<'_> {
    TokenFor { audience: URL, issuer: None, id: Some(id), body: BODY }
}

fn verify(token: &str) -> Result<PushClaims, JwtFault> {
    token_keys().verify_jwt(token, &expected(&id(URL)), at(SENT))
}

/// Signed by the right key, whatever it says. A test can do that only through the crate's own signing, so the header is the real one.
fn token_of(claims: &PushClaims) -> String {
    mint_push_jwt(&key(1), claims).unwrap()
}

#[test]
fn a_token_is_for_one_receiver_one_message_one_body_and_five_minutes() {
    let token = token_of(&claims());
    assert_eq!(verify(&token), Ok(claims()));
    let (keys, id) = (token_keys(), id(URL));
    let fault = |expected: TokenFor<'_>, now| keys.verify_jwt(&token, &expected, at(now)).err();
    let ours = expected(&id);
    assert_eq!(fault(TokenFor { audience: "https://b.example/hook", ..ours }, SENT), Some(JwtFault::Audience));
    assert_eq!(fault(TokenFor { id: Some("msg_other"), ..ours }, SENT), Some(JwtFault::OtherMessage));
    assert_eq!(fault(TokenFor { id: None, ..ours }, SENT), None, "receivers that know no ids");
    assert_eq!(fault(TokenFor { body: b"{}", ..ours }, SENT), Some(JwtFault::OtherBody));
    assert_eq!(fault(TokenFor { issuer: Some("https://node.example/card"), ..ours }, SENT), None);
    assert_eq!(fault(TokenFor { issuer: Some("https://other.example/card"), ..ours }, SENT), Some(JwtFault::Issuer));
    assert_eq!(fault(ours, SENT + 359), None);
    assert_eq!(fault(ours, SENT + 360), Some(JwtFault::Expired));
    assert_eq!(fault(ours, SENT - 60), None);
    assert_eq!(fault(ours, SENT - 61), Some(JwtFault::NotYet));
    let others = PushKeys::new([key(2).public().clone()]);
    assert_eq!(others.verify_jwt(&token, &ours, at(SENT)), Err(JwtFault::UnknownKey));
    let long = PushClaims { exp: SENT + 301, ..claims() };
    assert!(matches!(verify(&token_of(&long)), Err(JwtFault::Malformed(_))));
    let backwards = PushClaims { exp: SENT - 1, ..claims() };
    assert!(matches!(verify(&token_of(&backwards)), Err(JwtFault::Malformed(_))));
    let p256 = SigningKey::<Push>::generate(Algorithm::Es256).unwrap();
    let token = mint_push_jwt(&p256, &claims()).unwrap();
    assert!(PushKeys::new([p256.public().clone()]).verify_jwt(&token, &ours, at(SENT)).is_ok());
}

#[test]
fn a_token_with_another_algorithm_another_key_or_altered_parts_is_refused() {
    let token = token_of(&claims());
    let [_, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else { panic!("three parts") };
    let with_header = |header: Value| format!("{}.{payload}.{signature}", URL_SAFE_NO_PAD.encode(header.to_string()));
    let kid = key(1).kid().to_owned();
    assert_eq!(verify(&with_header(json!({ "alg": "none", "kid": kid }))), Err(JwtFault::Algorithm));
    assert_eq!(verify(&with_header(json!({ "alg": "HS256", "kid": kid }))), Err(JwtFault::Algorithm));
    assert_eq!(verify(&with_header(json!({ "alg": "RS256", "kid": kid }))), Err(JwtFault::Algorithm));
    assert_eq!(verify(&with_header(json!({ "kid": kid }))), Err(JwtFault::Algorithm));
    assert_eq!(verify(&with_header(json!({ "alg": "ES256", "kid": kid }))), Err(JwtFault::UnknownKey), "a key has one algorithm");
    assert_eq!(verify(&with_header(json!({ "alg": "EdDSA" }))), Err(JwtFault::UnknownKey));
    assert_eq!(verify(&with_header(json!({ "alg": "EdDSA", "kid": kid }))), Err(JwtFault::BadSignature), "the header is signed");
    assert!(matches!(verify(&with_header(json!({ "alg": "EdDSA", "kid": kid, "crit": [] }))), Err(JwtFault::Malformed(_))));
    for at in 0..token.len() {
        let mut altered = token.clone().into_bytes();
        altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
        assert!(verify(std::str::from_utf8(&altered).unwrap()).is_err(), "byte {at}");
    }
    for odd in ["", ".", "..", "a.b", "a.b.c.d", &"a".repeat(MAX_PUSH_JWT + 1)] {
        assert!(matches!(verify(odd), Err(JwtFault::Malformed(_))), "{odd:.20}");
    }
    let signed_message = key(1).sign_push("a", 1, b"x").unwrap();
    let passed_on = format!("{}.{}", &token[..token.rfind('.').unwrap()], URL_SAFE_NO_PAD.encode(signed_message));
    assert_eq!(verify(&passed_on), Err(JwtFault::BadSignature), "no signature of a message makes a token");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_signed_verifies_and_any_other_bit_does_not(
        body in prop::collection::vec(any::<u8>(), 0..200),
        lane in any::<u64>(),
        seq in any::<u64>(),
        seconds in 0..4_000_000_000_i64,
        flip in any::<prop::sample::Index>(),
        by_hmac in any::<bool>(),
    ) {
        let id = WebhookId::new(URL, lane, seq, Carries::Entry).to_string();
        let signature = sign(&id, seconds, &body, [&secret(1)], [&key(1)]).unwrap().unwrap();
        let verifier = if by_hmac { by_secret() } else { by_key() };
        let headers = headers(&id, seconds, &signature);
        prop_assert!(verifier.verify(&headers, &body, at(seconds)).is_ok());
        let mut altered = body.clone();
        altered.push(0);
        let bit = flip.index(altered.len() * 8);
        altered[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(verifier.verify(&headers, &altered, at(seconds)), Err(VerifyFault::BadSignature));
    }

    #[test]
    fn no_header_however_odd_panics_or_passes(
        id in "[ -~]{0,60}",
        time in "[ -~]{0,24}|-?[0-9]{1,20}",
        signature in "([ -~]{0,80}|v1a?,[A-Za-z0-9+/=]{0,90}( v1a?,[A-Za-z0-9+/=]{0,90}){0,3})",
    ) {
        let mut headers = HeaderMap::new();
        for (name, text) in [(ID_HEADER, &id), (TIMESTAMP_HEADER, &time), (SIGNATURE_HEADER, &signature)] {
            headers.insert(name, HeaderValue::from_str(text).unwrap());
        }
        prop_assert!(by_secret().verify(&headers, BODY, at(SENT)).is_err());
        prop_assert!(by_key().verify(&headers, BODY, at(SENT)).is_err());
    }

    #[test]
    fn no_token_however_odd_panics_or_passes(token in "[A-Za-z0-9_.=-]{0,200}") {
        prop_assert!(verify(&token).is_err());
    }
}
