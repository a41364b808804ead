//! A hop token says what was put in it, to the node that made it, for as long as it lasts, and nothing else passes for one.

use std::time::Duration;

use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_identity::hop_token::{
    BudgetCaps, CLOCK_LEEWAY, ForeignClaims, HopClaims, HopTokenFault, HopTokens, MAX_HOP_TOKEN, MAX_HOP_TOKEN_LIFE, MintFault,
};
use chancery_identity::keys::{self, Receipts};
use chancery_identity::{Algorithm, KeyRing, KeyUse, SigningKey};
use chancery_protocol::Timestamp;
use proptest::prelude::*;

const SEED: &str = "0707070707070707070707070707070707070707070707070707070707070707";
const NODE: &str = "0a1b2c3d";
/// Where the claims begin in the bytes of a body, and how long the mark behind them is.
const CLAIMS: usize = 2;
const MARK: usize = 16;

fn at(seconds: u64) -> Timestamp {
    Timestamp::default() + Duration::from_secs(seconds)
}

fn ring() -> KeyRing {
    let mut ring = KeyRing::default();
    ring.give(&SigningKey::<keys::HopTokens>::from_seed(SEED).unwrap(), None, at(0)).unwrap();
    ring
}

fn tokens() -> HopTokens {
    HopTokens::new(NODE, &ring())
}

fn claims() -> HopClaims {
    HopClaims {
        parent_task: "0193a4a0-7c1f-7d6b-8d0e-7f5a0c9b1e2d".into(),
        place: *b"12345678",
        budget: BudgetCaps { micro_usd: Some(50_000), tokens: None },
        issued_at: at(1_000),
        expires_at: at(1_060),
        id: 0x1234,
    }
}

fn minted(claims: &HopClaims) -> String {
    tokens().mint(claims, &[]).unwrap()
}

fn bytes_of(token: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap()
}

/// Marks content of one's own with the right key, as only the node itself can.
fn marked(mut content: Vec<u8>) -> String {
    let key = SigningKey::<keys::HopTokens>::from_seed(SEED).unwrap().marking().unwrap();
    let mark = hmac::sign(&key, &[NODE.as_bytes(), &content].concat());
    content.extend_from_slice(&mark.as_ref()[..MARK]);
    format!("{NODE}.{}", URL_SAFE_NO_PAD.encode(content))
}

fn content_of(token: &str) -> Vec<u8> {
    let mut content = bytes_of(token);
    content.truncate(content.len() - MARK);
    content
}

fn fault(token: &str) -> HopTokenFault {
    tokens().verify(token, at(1_001)).unwrap_err()
}

#[test]
fn a_token_says_what_was_put_in_it_and_so_does_its_body_alone() {
    for budget in [(None, None), (Some(0), None), (None, Some(u64::MAX)), (Some(u64::MAX), Some(7))] {
        let claims = HopClaims { budget: BudgetCaps { micro_usd: budget.0, tokens: budget.1 }, ..claims() };
        let token = minted(&claims);
        assert_eq!(tokens().verify(&token, at(1_001)), Ok(claims.clone()));
        assert_eq!(tokens().verify_body(token.split('.').nth(1).unwrap(), at(1_001)), Ok(claims));
    }
    assert_eq!(
        content_of(&marked(content_of(&minted(&claims())))),
        content_of(&minted(&claims())),
        "the test marks as the node does"
    );
    assert!(tokens().verify(&marked(content_of(&minted(&claims()))), at(1_001)).is_ok());
}

#[test]
fn a_token_is_short_whatever_it_says() {
    let length = |micro_usd, tokens| minted(&HopClaims { budget: BudgetCaps { micro_usd, tokens }, ..claims() }).len();
    assert_eq!((length(None, None), length(Some(1), None), length(Some(u64::MAX), Some(u64::MAX))), (80, 91, 101));
}

#[test]
fn a_task_that_is_no_uuid_and_times_beyond_the_form_make_no_token() {
    let unwritten = |claims: &HopClaims| assert_eq!(tokens().mint(claims, &[]), Err(MintFault::Unwritten));
    unwritten(&HopClaims { parent_task: "parent".into(), ..claims() });
    unwritten(&HopClaims { issued_at: at(1 << 32), expires_at: at((1 << 32) + 1), ..claims() });
    let last = HopClaims { issued_at: at((1 << 32) - 1), expires_at: at((1 << 32) + 9), ..claims() };
    assert_eq!(tokens().verify(&minted(&last), at(1 << 32)), Ok(last));
}

#[test]
fn a_token_lasts_to_its_end_and_an_hour_at_most() {
    let tokens = tokens();
    let token = minted(&claims());
    assert!(tokens.verify(&token, at(1_059)).is_ok());
    assert_eq!(tokens.verify(&token, at(1_060)), Err(HopTokenFault::Expired));
    assert!(tokens.verify(&token, at(1_000 - CLOCK_LEEWAY.as_secs())).is_ok());
    assert_eq!(tokens.verify(&token, at(999 - CLOCK_LEEWAY.as_secs())), Err(HopTokenFault::NotYet));
    // What ends within a second is good until that second is over, so that no token is over when it is made.
    let (issued_at, expires_at) = (at(1_000) + Duration::from_millis(200), at(1_000) + Duration::from_millis(700));
    let token = minted(&HopClaims { issued_at, expires_at, ..claims() });
    assert!(tokens.verify(&token, expires_at).is_ok());
    assert_eq!(tokens.verify(&token, at(1_001)), Err(HopTokenFault::Expired));
    let hour = HopClaims { issued_at, expires_at: issued_at + MAX_HOP_TOKEN_LIFE, ..claims() };
    let read = tokens.verify(&minted(&hour), issued_at).unwrap();
    assert_eq!(read.expires_at, at(1_000) + MAX_HOP_TOKEN_LIFE, "an hour and no more, from the second it was made in");
    let long = HopClaims { expires_at: at(1_000_000), ..claims() };
    let read = tokens.verify(&minted(&long), at(1_000)).unwrap();
    assert_eq!(read.expires_at, at(1_000) + MAX_HOP_TOKEN_LIFE);
    // Even if we marked it: the two bytes of its life are behind flags, task, place and the time of issue.
    let with_life = |seconds: u16| {
        let mut content = content_of(&minted(&claims()));
        content[CLAIMS + 29..CLAIMS + 31].copy_from_slice(&seconds.to_be_bytes());
        marked(content)
    };
    assert!(tokens.verify(&with_life(3_600), at(1_001)).is_ok());
    assert!(matches!(fault(&with_life(3_601)), HopTokenFault::Malformed(_)));
}

#[test]
fn a_token_of_another_node_is_told_apart_before_its_mark_is_looked_at() {
    let other = HopTokens::new("0a1b2c3e", &ring());
    let token = other.mint(&claims(), &[]).unwrap();
    assert_eq!(fault(&token), HopTokenFault::Foreign);
    assert_eq!(fault(&format!("{}AAAA", &token[..token.len() - 4])), HopTokenFault::Foreign);
    // Under our name it is not marked by us, although the key is the same.
    assert_eq!(fault(&token.replacen("0a1b2c3e", NODE, 1)), HopTokenFault::BadSignature);
    let jws = "eyJhbGciOiJFUzUxMiJ9.eyJpc3MiOiJodHRwczovL2lkcC5leGFtcGxlIn0.AAAA";
    assert_eq!(fault(jws), HopTokenFault::Foreign);
    assert!(matches!(fault(&jws.replace('.', ",")), HopTokenFault::Malformed(_)));
}

#[test]
fn another_key_or_another_use_of_the_key_makes_no_token() {
    let mut foreign_ring = KeyRing::default();
    foreign_ring.ensure(KeyUse::HopTokens, None, Algorithm::EdDsa, at(0)).unwrap();
    let impostor = HopTokens::new(NODE, &foreign_ring);
    assert_eq!(fault(&impostor.mint(&claims(), &[]).unwrap()), HopTokenFault::UnknownKey);
    // Their mark under our key's tag.
    let content = content_of(&minted(&claims()));
    let under = |key: &hmac::Key| {
        let mark = hmac::sign(key, &[NODE.as_bytes(), &content].concat());
        format!("{NODE}.{}", URL_SAFE_NO_PAD.encode([&content, &mark.as_ref()[..MARK]].concat()))
    };
    let theirs = foreign_ring.signing::<keys::HopTokens>(None, Algorithm::EdDsa, at(1)).unwrap().marking().unwrap();
    assert_eq!(fault(&under(&theirs)), HopTokenFault::BadSignature);
    // The same label, signed with the same secret for another use, gives another secret.
    let secret = SigningKey::<Receipts>::from_seed(SEED).unwrap().sign(b"the secret that marks hop tokens").unwrap();
    let secret = hmac::Key::new(hmac::HMAC_SHA256, digest::digest(&digest::SHA256, &secret).as_ref());
    assert_eq!(fault(&under(&secret)), HopTokenFault::BadSignature);
    let ours = SigningKey::<keys::HopTokens>::from_seed(SEED).unwrap().marking().unwrap();
    assert!(tokens().verify(&under(&ours), at(1_001)).is_ok());
}

#[test]
fn claims_of_another_shape_are_refused_even_if_we_marked_them() {
    let good = content_of(&minted(&claims()));
    let malformed = |content: Vec<u8>| {
        let token = marked(content.clone());
        assert!(matches!(fault(&token), HopTokenFault::Malformed(_)), "{content:?}");
    };
    for flags in [0x00, 0x01, 0x10, 0x12, 0x13, 0x14, 0x21, 0xff] {
        let mut bad = good.clone();
        bad[CLAIMS] = flags;
        // With 0x12 the eight bytes are a cap on tokens, which is as good.
        if flags != 0x12 {
            malformed(bad);
        }
    }
    for length in CLAIMS..good.len() {
        malformed(good[..length].to_vec());
    }
    malformed([&good[..], &[0]].concat());
    for no_token in
        ["", ".", "..", "a.b", "a.b.c", "0a1b2c3d", "0a1b2c3d.", "0a1b2c3d.%", "0A1B2C3D.AAAA", "é.é.é", "e30.e30.e30"]
    {
        assert!(matches!(fault(no_token), HopTokenFault::Malformed(_)), "{no_token}");
    }
}

#[test]
fn a_longer_token_is_neither_made_nor_read() {
    let member = format!("0a1b2c3e@chancery={}", "x".repeat(256));
    let with = |count: usize| tokens().mint(&claims(), &vec![&*member; count]).map(|token| token.len());
    let most = (MAX_HOP_TOKEN - minted(&claims()).len()) / (256 + 10);
    assert!(with(most).is_ok_and(|length| length <= MAX_HOP_TOKEN));
    assert_eq!(with(most + 1), Err(MintFault::TooLarge));
    assert_eq!(fault(&"x".repeat(MAX_HOP_TOKEN + 1)), HopTokenFault::TooLarge);
    assert!(matches!(fault(&"x".repeat(MAX_HOP_TOKEN)), HopTokenFault::Malformed(_)));
}

#[test]
fn other_nodes_find_a_budget_and_members_of_tracestate_in_a_token_and_nothing_else() {
    let with = |members: &[&str]| tokens().mint(&claims(), members).unwrap();
    let read = |token: &str| ForeignClaims::of(token).unwrap();
    let (member, bare) = ("0a1b2c3e@chancery=aGFuZGxl-_", with(&[]));
    let own = format!("{NODE}@chancery={}", bare.split('.').nth(1).unwrap());
    assert_eq!(read(&bare).marks, [&*own]);
    assert_eq!(read(&with(&[member, "0a1b2c3f@chancery=y"])).marks, [&*own, member, "0a1b2c3f@chancery=y"]);
    assert_eq!(read(&with(&[member; 9])).marks.len(), 8);
    let long = format!("0a1b2c3d@chancery={}", "x".repeat(257));
    for bad in ["", "0a1b2c3d@chancery", "0a1b2c3d@chancery=", "0A1b2c3d@chancery=x", "a@chancery=x", "a1@other=x", &long] {
        assert_eq!(with(&[bad]), bare, "{bad}: what is no member of a node is left out");
    }
    for tail in [".0a1b2c3e", ".0a1b2c3e.", ".x.y", ".0a1b2c3e.%"] {
        assert_eq!(read(&format!("{bare}{tail}")).marks, [&*own], "{tail}");
    }
    assert_eq!(read(&bare).budget, BudgetCaps { micro_usd: Some(50_000), tokens: None });
    for no_token in ["", "a.b.c", "a.e30", "0a1b2c3d.AAAA", &"x".repeat(MAX_HOP_TOKEN + 1)] {
        assert_eq!(ForeignClaims::of(no_token), None, "{no_token}");
    }
}

#[test]
fn tokens_of_an_older_key_hold_until_it_retires_and_not_a_moment_longer() {
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::HopTokens, None, Algorithm::EdDsa, at(0)).unwrap();
    let tokens = HopTokens::new(NODE, &ring);
    let old = tokens.mint(&HopClaims { expires_at: at(4_000), ..claims() }, &[]).unwrap();
    ring.rotate(KeyUse::HopTokens, None, Duration::from_secs(100), Duration::from_secs(500), at(1_000)).unwrap();
    tokens.take_keys(&ring);
    let key = |token: &str| bytes_of(token)[..CLAIMS].to_vec();
    // The new key marks after its lead, without anybody having to say so.
    assert_eq!(key(&tokens.mint(&claims(), &[]).unwrap()), key(&old));
    let later = HopClaims { issued_at: at(1_100), expires_at: at(1_200), ..claims() };
    assert_ne!(key(&tokens.mint(&later, &[]).unwrap()), key(&old));
    assert!(tokens.verify(&old, at(1_599)).is_ok());
    assert_eq!(tokens.verify(&old, at(1_600)), Err(HopTokenFault::UnknownKey));
    tokens.take_keys(&KeyRing::default());
    assert_eq!(tokens.verify(&old, at(1_001)), Err(HopTokenFault::UnknownKey), "what is known of a key goes with it");
    assert_eq!(tokens.mint(&claims(), &[]), Err(MintFault::NoKey));
}

proptest! {
    #[test]
    fn a_token_with_any_byte_changed_is_refused(place in any::<prop::sample::Index>(), byte in 32u8..127) {
        let mut token = minted(&claims()).into_bytes();
        let place = place.index(token.len());
        prop_assume!(token[place] != byte);
        token[place] = byte;
        let token = String::from_utf8(token).unwrap();
        prop_assert!(tokens().verify(&token, at(1_001)).is_err());
    }

    #[test]
    fn no_text_breaks_it(text in ".{0,200}", parts in prop::collection::vec("[A-Za-z0-9_-]{0,40}", 0..5)) {
        for token in [text, parts.join("."), format!("{NODE}.{}", parts.join("."))] {
            prop_assert!(tokens().verify(&token, at(1_001)).is_err());
            let _ = ForeignClaims::of(&token);
        }
    }
}
