//! Any bytes as a card: verifying never panics and never believes what our key did not sign; what can be signed then verifies.
#![no_main]

use std::sync::LazyLock;

use chancery_identity::cards::{
    CardShape, VerifyRules, card_key_urls, sign_card, sign_original_card, verify_card, verify_card_signatures, verify_card_value,
    verify_original_card, verify_rvagent_card,
};
use chancery_identity::keys::Cards;
use chancery_identity::{Jwk, Jwks, SigningKey, strict_json};
use libfuzzer_sys::fuzz_target;

/// Nobody signs with this key but this target, after it has verified.
static KEY: LazyLock<SigningKey<Cards>> = LazyLock::new(|| SigningKey::from_seed(&"5a".repeat(32)).expect("a seed of 32 bytes"));

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let keys = Jwks { keys: vec![Jwk::of(KEY.public(), None)] };
    let rules = VerifyRules { card_url: Some("https://agent.example/card".to_owned()), jku_origins: Vec::new() };
    assert!(verify_card_signatures(text, &keys, &rules).is_err());
    let _ = card_key_urls(text, &rules);
    let _ = verify_card(text);
    let _ = serde_json::from_str::<Jwks>(text).map(|keys| verify_card_signatures(text, &keys, &rules));
    let Ok(card) = strict_json::parse(text) else { return };
    let _ = verify_rvagent_card(&card);

    for shape in [CardShape::V1_0, CardShape::V0_3] {
        let mut signed = card.clone();
        if sign_card(&mut signed, shape, &[&*KEY], None).is_ok() {
            let verified = verify_card_signatures(&signed.to_string(), &keys, &rules).expect("what we sign verifies");
            assert_eq!(verified.by.len(), 1);
        }
    }
    let mut signed = card;
    if let Ok(agent) = sign_original_card(&mut signed, &KEY) {
        assert_eq!(verify_card_value(&signed).ok().as_ref(), Some(&agent));
        assert_eq!(verify_original_card(&signed).ok().as_ref(), Some(&agent));
    }
});
