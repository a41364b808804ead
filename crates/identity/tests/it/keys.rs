//! Keys sign for one use only, and rotate without a moment in which nobody can verify.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chancery_identity::cards::{
    CardShape, VerifyRules, canonical_card_bytes, sign_adr_card, sign_card, verify_card, verify_card_signatures,
};
use chancery_identity::keys::{Cards, HopTokens, MAX_OLD_KEYS, MemoryGrants, OwnFormat as _, Push, Receipts, RingFault};
use chancery_identity::{Algorithm, Jwk, Jwks, KeyRing, KeyUse, SigningKey};
use chancery_protocol::Timestamp;
use secrecy::ExposeSecret as _;
use serde_json::json;

const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const BOTH: [Algorithm; 2] = [Algorithm::EdDsa, Algorithm::Es256];

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

#[test]
fn a_seed_gives_the_key_of_rfc_8032() {
    let key = SigningKey::<Cards>::from_seed(SEED).unwrap();
    let public: String = key.public().raw().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(public, "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    let base64 = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
    assert_eq!(SigningKey::<Cards>::from_seed(base64).unwrap().kid(), key.kid());
    assert_eq!(SigningKey::<Cards>::from_seed("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").unwrap().kid(), key.kid());
    for bad in ["", "9d61", &SEED[1..], &SEED.replace('9', "x"), "AAAA"] {
        assert!(SigningKey::<Cards>::from_seed(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_kid_is_the_thumbprint_of_rfc_8037() {
    let jwk: Jwk = serde_json::from_value(
        json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "d": "ignored", "more": 1}),
    )
    .unwrap();
    assert_eq!(jwk.public_key().unwrap().kid(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

#[test]
fn a_key_survives_pkcs8_and_jwk() {
    for algorithm in BOTH {
        let key = SigningKey::<Receipts>::generate(algorithm).unwrap();
        let der = key.to_pkcs8().unwrap();
        let again = SigningKey::<Receipts>::from_pkcs8(der.expose_secret()).unwrap();
        assert_eq!((again.kid(), again.algorithm()), (key.kid(), algorithm));
        let jwk = Jwk::of(key.public(), Some(KeyUse::Receipts));
        let public = serde_json::from_str::<Jwk>(&serde_json::to_string(&jwk).unwrap()).unwrap().public_key().unwrap();
        assert_eq!(&public, key.public());
        assert!(public.verify::<Receipts>(b"m", &again.sign(b"m").unwrap()));
        assert!(!public.verify::<Receipts>(b"n", &again.sign(b"m").unwrap()));
    }
    assert!(SigningKey::<Cards>::from_pkcs8(b"nothing").is_err());
    assert!(SigningKey::<Cards>::from_pem("nothing").is_err());
}

#[test]
fn a_key_is_read_from_pem() {
    // The key of RFC 8410, §10.3.
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    let key = SigningKey::<Push>::from_pem(pem).unwrap();
    let public: String = key.public().raw().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(public, "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1");
}

#[test]
fn keys_others_publish_are_taken_only_for_what_they_are() {
    let good = Jwk::of(SigningKey::<Cards>::generate(Algorithm::EdDsa).unwrap().public(), None);
    assert!(good.public_key().is_ok());
    let point = Jwk::of(SigningKey::<Cards>::generate(Algorithm::Es256).unwrap().public(), None);
    for bad in [
        Jwk { alg: Some("ES256".into()), ..good.clone() },
        Jwk { alg: Some("HS256".into()), ..good.clone() },
        Jwk { public_use: Some("enc".into()), ..good.clone() },
        Jwk { kty: "RSA".into(), ..good.clone() },
        Jwk { kty: "oct".into(), ..good.clone() },
        Jwk { crv: Some("X25519".into()), ..good.clone() },
        Jwk { x: None, ..good.clone() },
        Jwk { x: Some("AA".into()), ..good },
        Jwk { y: point.x.clone(), ..point },
    ] {
        assert!(bad.public_key().is_err(), "{bad:?}");
    }
}

type Verify = Box<dyn Fn(&[u8], &[u8]) -> bool>;

/// Signatures of one and the same key under every use, as each use makes and verifies them. Nobody should do this, and a ring
/// refuses it; if somebody does, still no signature may pass for another.
#[test]
fn a_signature_for_one_use_never_verifies_as_another() {
    let cards = SigningKey::<Cards>::from_seed(SEED).unwrap();
    let hops = SigningKey::<HopTokens>::from_seed(SEED).unwrap();
    let push = SigningKey::<Push>::from_seed(SEED).unwrap();
    let receipts = SigningKey::<Receipts>::from_seed(SEED).unwrap();
    let grants = SigningKey::<MemoryGrants>::from_seed(SEED).unwrap();

    let mut card = json!({"supportedInterfaces": [{"url": "m"}], "name": "m"});
    let payload = card.to_string();
    sign_card(&mut card, CardShape::V1_0, &[&cards], None).unwrap();
    let part = |name: &str| card["signatures"][0][name].as_str().unwrap().to_owned();
    let mut adr = json!({"name": "m"});
    sign_adr_card(&mut adr, &cards).unwrap();

    // What each use signs, offered to every other use as its message.
    let messages: Vec<Vec<u8>> = vec![
        b"m".to_vec(),
        format!("{}.{}", part("protected"), URL_SAFE_NO_PAD.encode(payload)).into_bytes(),
        canonical_card_bytes(&adr).unwrap(),
        b"m.1.m".to_vec(),
        [HopTokens::PREFIX, b"m"].concat(),
        [Receipts::PREFIX, b"m"].concat(),
        [MemoryGrants::PREFIX, b"m"].concat(),
    ];
    let mut signatures: Vec<(&str, Vec<u8>)> = vec![
        ("card of 1.0", URL_SAFE_NO_PAD.decode(part("signature")).unwrap()),
        ("card of the ADR", STANDARD.decode(adr["signature"]["sig_ed25519"].as_str().unwrap()).unwrap()),
    ];
    for message in &messages {
        signatures.push(("hop token", hops.sign(message).unwrap()));
        signatures.push(("receipt", receipts.sign(message).unwrap()));
        signatures.push(("memory grant", grants.sign(message).unwrap()));
        signatures.push(("push", push.sign_push("m", 1, message).unwrap()));
    }

    let keys = Jwks { keys: vec![Jwk::of(cards.public(), None)] };
    let public = || cards.public().clone();
    let (for_hops, for_receipts, for_push, for_grants) = (public(), public(), public(), public());
    let verifiers: Vec<(&str, Verify)> = vec![
        ("hop token", Box::new(move |message, signature| for_hops.verify::<HopTokens>(message, signature))),
        ("receipt", Box::new(move |message, signature| for_receipts.verify::<Receipts>(message, signature))),
        ("memory grant", Box::new(move |message, signature| for_grants.verify::<MemoryGrants>(message, signature))),
        ("push", Box::new(move |message, signature| for_push.verify_push("m", 1, message, signature))),
        (
            "card of 1.0",
            Box::new(move |_, signature| {
                let mut card = card.clone();
                card["signatures"][0]["signature"] = json!(URL_SAFE_NO_PAD.encode(signature));
                verify_card_signatures(&card.to_string(), &keys, &VerifyRules::default()).is_ok()
            }),
        ),
        (
            "card of the ADR",
            Box::new(move |_, signature| {
                let mut adr = adr.clone();
                adr["signature"]["sig_ed25519"] = json!(STANDARD.encode(signature));
                verify_card(&adr.to_string()).is_ok()
            }),
        ),
    ];
    let mut kinds = BTreeSet::new();
    for (made_for, signature) in &signatures {
        for (verified_as, verify) in &verifiers {
            if messages.iter().any(|message| verify(message, signature)) {
                assert_eq!(made_for, verified_as, "a signature passes for another");
                kinds.insert(made_for);
            }
        }
    }
    assert_eq!(kinds.len(), 6, "each verifies as what it is: {kinds:?}");
    assert!(push.sign_push("{\"a\":1}", 1, b"").is_err() && push.sign_push("a.b", 1, b"").is_err());
}

#[test]
fn a_ring_makes_missing_keys_once_and_keeps_them() {
    let mut ring = KeyRing::default();
    assert!(ring.ensure(KeyUse::Cards, Some("echo"), Algorithm::EdDsa, at(1)).unwrap());
    assert!(!ring.ensure(KeyUse::Cards, Some("echo"), Algorithm::EdDsa, at(2)).unwrap());
    assert!(ring.ensure(KeyUse::Cards, Some("echo"), Algorithm::Es256, at(2)).unwrap());
    assert!(ring.ensure(KeyUse::HopTokens, None, Algorithm::EdDsa, at(2)).unwrap());
    let kid = |ring: &KeyRing| ring.signing::<Cards>(Some("echo"), Algorithm::EdDsa, at(3)).unwrap().kid().to_owned();
    assert!(ring.signing::<Cards>(None, Algorithm::EdDsa, at(3)).is_none());
    assert!(ring.signing::<Push>(None, Algorithm::EdDsa, at(3)).is_none());

    let json = ring.to_json().unwrap();
    let again = KeyRing::from_json(json.expose_secret()).unwrap();
    assert_eq!(kid(&again), kid(&ring));
    assert_eq!(again.to_json().unwrap().expose_secret(), json.expose_secret());
    assert_eq!(Jwks::of(&again, at(3)), Jwks::of(&ring, at(3)));
}

#[test]
fn nothing_private_is_printed_or_published() {
    let mut ring = KeyRing::default();
    for algorithm in BOTH {
        ring.ensure(KeyUse::Cards, None, algorithm, at(1)).unwrap();
    }
    let json = ring.to_json().unwrap();
    let file: serde_json::Value = serde_json::from_str(json.expose_secret()).unwrap();
    let shown =
        format!("{ring:?} {json:?} {:?} {}", Jwks::of(&ring, at(1)), serde_json::to_string(&Jwks::of(&ring, at(1))).unwrap());
    for record in file["keys"].as_array().unwrap() {
        let der = STANDARD.decode(record["pkcs8"].as_str().unwrap()).unwrap();
        let key = SigningKey::<Cards>::from_pkcs8(&der).unwrap();
        // The private scalar or seed is somewhere in the file's bytes; none of their windows may be shown in any encoding we use.
        for window in der.windows(16).filter(|window| !key.public().raw().windows(16).any(|public| public == *window)) {
            let hex: String = window.iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(!shown.contains(&hex) && !shown.contains(&format!("{window:?}")));
        }
        assert!(!shown.contains(record["pkcs8"].as_str().unwrap()));
        assert!(!format!("{key:?}").contains("pkcs8"));
    }
    assert!(!shown.contains("\"d\""));
}

#[test]
fn rotation_publishes_first_then_signs_then_retires() {
    let mut ring = KeyRing::default();
    let (lead, overlap) = (Duration::from_secs(100), Duration::from_secs(1000));
    for algorithm in BOTH {
        ring.ensure(KeyUse::Cards, None, algorithm, at(0)).unwrap();
    }
    ring.ensure(KeyUse::Receipts, None, Algorithm::EdDsa, at(0)).unwrap();
    let kid = |ring: &KeyRing, now| ring.signing::<Cards>(None, Algorithm::EdDsa, at(now)).unwrap().kid().to_owned();
    let published = |ring: &KeyRing, now| -> Vec<String> {
        ring.published(at(now)).filter(|one| one.key_use == KeyUse::Cards).map(|one| one.kid.to_string()).collect()
    };
    let old = kid(&ring, 10);
    let made = ring.rotate(KeyUse::Cards, None, lead, overlap, at(10)).unwrap();
    assert_eq!(made.len(), 2, "one for each algorithm");
    assert_eq!(published(&ring, 10).len(), 4, "new ones are published at once");
    assert_eq!(kid(&ring, 109), old, "and do not sign yet");
    let new = kid(&ring, 110);
    assert_ne!(new, old);
    assert!(published(&ring, 1109).contains(&old), "the old one stays published");
    assert_eq!(published(&ring, 1110).len(), 2, "and ends");
    assert!(!published(&ring, 1110).contains(&old));
    assert_eq!(ring.prune(at(1109)), 0);
    assert_eq!(ring.prune(at(1110)), 2);
    assert_eq!(kid(&ring, 5000), new);
    assert!(matches!(ring.rotate(KeyUse::Push, None, lead, overlap, at(0)), Err(RingFault::NoKey)));
}

#[test]
fn at_every_moment_of_repeated_rotation_what_signs_is_published() {
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::Push, None, Algorithm::EdDsa, at(0)).unwrap();
    for now in 0..400 {
        if now % 7 == 0 {
            match ring.rotate(KeyUse::Push, None, Duration::from_secs(now % 13), Duration::from_secs(20), at(now as i64)) {
                Ok(_) | Err(RingFault::TooManyOldKeys) => {}
                Err(fault) => panic!("{fault}"),
            }
        }
        ring.prune(at(now as i64));
        let signing = ring.signing::<Push>(None, Algorithm::EdDsa, at(now as i64)).expect("always a key");
        assert!(ring.published(at(now as i64)).any(|one| *one.kid == *signing.kid()));
    }
}

#[test]
fn old_keys_do_not_pile_up() {
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::Push, None, Algorithm::EdDsa, at(0)).unwrap();
    let mut rotate =
        |now| ring.rotate(KeyUse::Push, None, Duration::ZERO, Duration::from_secs(1000), at(now)).map(|made| made.len());
    for now in 0..MAX_OLD_KEYS as i64 {
        assert_eq!(rotate(now).unwrap(), 1);
    }
    assert!(matches!(rotate(20), Err(RingFault::TooManyOldKeys)));
    assert_eq!(rotate(1000).unwrap(), 1, "once the first has retired there is room again");
}

#[test]
fn a_given_key_comes_first_and_is_never_written() {
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::Cards, None, Algorithm::EdDsa, at(0)).unwrap();
    let given = SigningKey::<Cards>::from_seed(SEED).unwrap();
    ring.give(&given, None, at(5)).unwrap();
    assert_eq!(ring.signing::<Cards>(None, Algorithm::EdDsa, at(5)).unwrap().kid(), given.kid());
    assert!(!ring.to_json().unwrap().expose_secret().contains(given.kid()));
    assert!(ring.published(at(5)).any(|one| *one.kid == *given.kid() && one.given));
    let rotated = ring.rotate(KeyUse::Cards, None, Duration::ZERO, Duration::ZERO, at(6));
    assert!(matches!(rotated, Err(RingFault::Given)));
    let for_another_use = SigningKey::<Receipts>::from_seed(SEED).unwrap();
    assert!(matches!(ring.give(&for_another_use, None, at(6)), Err(RingFault::Twice(_))));
}

#[test]
fn a_damaged_or_foreign_ring_is_refused() {
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::Cards, None, Algorithm::EdDsa, at(0)).unwrap();
    let text = ring.to_json().unwrap().expose_secret().to_owned();
    let edited = |edit: &dyn Fn(&mut serde_json::Value)| {
        let mut file: serde_json::Value = serde_json::from_str(&text).unwrap();
        edit(&mut file);
        KeyRing::from_json(&file.to_string())
    };
    assert!(edited(&|_| {}).is_ok());
    assert!(matches!(edited(&|file| file["version"] = json!(2)), Err(RingFault::OtherFormat(2))));
    assert!(matches!(edited(&|file| file["keys"][0]["kid"] = json!("other")), Err(RingFault::Damaged(_))));
    assert!(matches!(edited(&|file| file["keys"][0]["algorithm"] = json!("ES256")), Err(RingFault::Damaged(_))));
    assert!(matches!(edited(&|file| file["keys"][0]["pkcs8"] = json!("AAAA")), Err(RingFault::Damaged(_))));
    assert!(matches!(edited(&|file| file["keys"][0]["use"] = json!("everything")), Err(RingFault::Unreadable(_))));
    assert!(matches!(edited(&|file| file["more"] = json!(1)), Err(RingFault::Unreadable(_))));
    let twice = edited(&|file| {
        let key = file["keys"][0].clone();
        file["keys"].as_array_mut().unwrap().push(key);
    });
    assert!(matches!(twice, Err(RingFault::Twice(_))));
    assert!(KeyRing::from_json("").is_err());
}
