//! Signed cards of the original protocol: the ADR's `card_signature`, and everything that must not pass for one.

use chancery_identity::cards::{
    CardFault, IdentityFacts, canonical_card_bytes, covered_original_card, sign_adr_card, sign_original_card, sign_rvagent_view,
    verify_card, verify_original_card, verify_rvagent_card,
};
use chancery_identity::keys::Cards;
use chancery_identity::{Algorithm, SigningKey, agent_id_from_pubkey, jcs, strict_json};
use serde_json::{Value, json};

use crate::common::{every_change, flips, key, original_card};

fn signed() -> Value {
    let mut card = original_card();
    card["metadata"]["ruvector"]["identity"] = IdentityFacts::of(&key(1), Some("https://agent.example/jwks")).unwrap().metadata();
    sign_original_card(&mut card, &key(1)).unwrap();
    card
}

#[test]
fn card_signature() {
    let mut card = original_card();
    let agent_id = sign_adr_card(&mut card, &key(1)).unwrap();
    assert_eq!(agent_id, agent_id_from_pubkey(key(1).public().raw().try_into().unwrap()));
    assert_eq!(card["agent_id"], agent_id.as_str());
    assert_eq!(card["signature"]["canonicalization"], "jcs");
    assert_eq!(verify_card(&card.to_string()).unwrap(), agent_id);
    assert_eq!(verify_card(&serde_json::to_string_pretty(&card).unwrap()).unwrap(), agent_id, "layout does not matter");

    let changes = every_change(&card);
    assert!(changes.len() > 60, "{}", changes.len());
    for (what, changed) in changes {
        match verify_card(&changed.to_string()) {
            Err(CardFault::CardSignatureInvalid(_)) => {}
            Err(CardFault::Unsigned) if what == "/signature removed" => {}
            other => panic!("{what}: {other:?}"),
        }
    }
}

/// Exactly two kinds of changes may pass: of white space, and of how one and the same value is written. Both leave the canonical
/// form of the whole card as it was, signature included.
#[test]
fn no_flipped_bit_of_a_signed_card_passes_unless_it_says_the_same() {
    let text = serde_json::to_string_pretty(&signed()).unwrap();
    let meaning = jcs::canonical(&strict_json::parse(&text).unwrap()).unwrap();
    let mut passed = 0;
    let mut refused = 0;
    for flipped in flips(&text) {
        match verify_card(&flipped) {
            Ok(_) => {
                assert_eq!(jcs::canonical(&strict_json::parse(&flipped).unwrap()).unwrap(), meaning, "{flipped}");
                passed += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 10_000, "{refused}");
    // Of the bits of a space or a line feed, none makes the other; a few make a tab or a carriage return.
    assert!(passed < refused / 50, "{passed} passed");
}

#[test]
fn a_card_is_bound_to_the_agent_of_its_key() {
    let mut other = original_card();
    sign_adr_card(&mut other, &key(2)).unwrap();
    let good = {
        let mut card = original_card();
        sign_adr_card(&mut card, &key(1)).unwrap();
        card
    };
    for member in ["pubkey_ed25519", "sig_ed25519"] {
        let mut swapped = good.clone();
        swapped["signature"][member] = other["signature"][member].clone();
        assert!(matches!(verify_card(&swapped.to_string()), Err(CardFault::CardSignatureInvalid(_))), "{member}");
    }
    let mut whole = good.clone();
    whole["signature"] = other["signature"].clone();
    assert!(matches!(verify_card(&whole.to_string()), Err(CardFault::CardSignatureInvalid(_))));
    // Somebody else's key over our id: the signature is good, the id is not theirs.
    let mut claimed = good.clone();
    claimed["signature"] = Value::Null;
    let mut forged = original_card();
    sign_adr_card(&mut forged, &key(2)).unwrap();
    forged["agent_id"] = good["agent_id"].clone();
    assert!(matches!(verify_card(&forged.to_string()), Err(CardFault::CardSignatureInvalid(_))));
    assert!(matches!(verify_card(&claimed.to_string()), Err(CardFault::CardSignatureInvalid(_))));
    assert!(matches!(verify_card(&original_card().to_string()), Err(CardFault::Unsigned)));
}

#[test]
fn signatures_are_read_with_or_without_padding_and_in_no_other_way() {
    let good = signed();
    let rewritten = |edit: fn(&str) -> String| {
        let mut card = good.clone();
        for member in ["pubkey_ed25519", "sig_ed25519"] {
            card["signature"][member] = json!(edit(good["signature"][member].as_str().unwrap()));
        }
        verify_card(&card.to_string())
    };
    assert!(rewritten(str::to_owned).is_ok());
    assert!(rewritten(|text| text.trim_end_matches('=').to_owned()).is_ok());
    assert!(rewritten(|text| format!("{text}=")).is_err());
    assert!(rewritten(|text| format!(" {text}")).is_err());
    let mut more = good.clone();
    more["signature"]["alg"] = json!("none");
    assert!(verify_card(&more.to_string()).is_err(), "a signature has no other members");
    let mut form = good;
    form["signature"]["canonicalization"] = json!("JCS");
    assert!(verify_card(&form.to_string()).is_err());
}

#[test]
fn only_an_ed25519_key_signs_for_an_agent() {
    let es256 = SigningKey::<Cards>::generate(Algorithm::Es256).unwrap();
    assert!(matches!(sign_adr_card(&mut original_card(), &es256), Err(CardFault::Key(_))));
    assert!(matches!(sign_rvagent_view(&mut original_card(), &es256), Err(CardFault::Key(_))));
    assert!(IdentityFacts::of(&es256, None).is_err());
}

#[test]
fn what_cannot_be_canonical_is_neither_signed_nor_believed() {
    let mut card = original_card();
    card["metadata"]["big"] = json!(u64::MAX);
    assert!(matches!(sign_adr_card(&mut card, &key(1)), Err(CardFault::Canonical(_))));
    assert!(canonical_card_bytes(&json!([])).is_err());
    let text = signed().to_string();
    let twice = text.replacen("{\"agent_id\"", "{\"name\":\"first\",\"agent_id\"", 1);
    assert_ne!(twice, text);
    assert!(matches!(verify_card(&twice), Err(CardFault::Json(_))));
}

#[test]
fn one_card_serves_readers_of_both_signatures() {
    let card = signed();
    let agent_id = verify_card(&card.to_string()).unwrap();
    assert_eq!(verify_rvagent_card(&card).unwrap(), agent_id);
    assert_eq!(verify_original_card(&card).unwrap(), agent_id);
    assert_eq!(card["metadata"]["ruvector"]["identity"]["agent_id"], agent_id.as_str());
    // The outer signature covers the inner one.
    let mut stripped = card.clone();
    stripped["metadata"]["ruvector"].as_object_mut().unwrap().remove("signature");
    assert!(verify_card(&stripped.to_string()).is_err());
    // Signing again replaces both.
    let mut again = card.clone();
    sign_original_card(&mut again, &key(1)).unwrap();
    assert_eq!(again, card);
}

#[test]
fn two_signatures_of_two_agents_are_no_signature() {
    let mut card = original_card();
    sign_rvagent_view(&mut card, &key(2)).unwrap();
    sign_adr_card(&mut card, &key(1)).unwrap();
    assert!(verify_card(&card.to_string()).is_ok());
    assert!(verify_rvagent_card(&card).is_ok());
    assert!(matches!(verify_original_card(&card), Err(CardFault::CardSignatureInvalid(_))));
    assert!(matches!(verify_original_card(&original_card()), Err(CardFault::Unsigned)));
    let mut inner = original_card();
    sign_rvagent_view(&mut inner, &key(2)).unwrap();
    assert!(verify_original_card(&inner).is_ok());
    inner["agent_id"] = card["agent_id"].clone();
    assert!(matches!(verify_original_card(&inner), Err(CardFault::CardSignatureInvalid(_))));
}

#[test]
fn the_inner_signature_covers_what_its_readers_see() {
    let mut card = original_card();
    sign_rvagent_view(&mut card, &key(1)).unwrap();
    assert_eq!(verify_rvagent_card(&card).unwrap(), key(1).agent_id().unwrap());
    // Members its readers do not know, and members whose absence they take for what was there.
    let unseen = ["/documentationUrl", "/defaultInputModes", "/defaultOutputModes", "/inputModes", "/outputModes", "/added"];
    let unseen_within = ["/capabilities/stateTransitionHistory", "/skills/0/examples"];
    let filled_in = ["/capabilities/pushNotifications removed", "/skills/0/inputModes removed", "/skills/0/outputModes removed"];
    for (what, changed) in every_change(&card) {
        let free = unseen.iter().chain(&unseen_within).any(|prefix| what.starts_with(prefix)) || filled_in.contains(&&*what);
        assert_eq!(verify_rvagent_card(&changed).is_ok(), free, "{what}");
    }
}

#[test]
fn what_a_card_is_covered_by_is_all_of_it_or_what_the_inner_signature_knows() {
    assert_eq!(covered_original_card(&signed()).unwrap(), signed());
    let mut inner = original_card();
    sign_rvagent_view(&mut inner, &key(1)).unwrap();
    let covered = covered_original_card(&inner).unwrap();
    for added in ["documentationUrl", "iconUrl", "defaultInputModes", "agent_id"] {
        inner[added] = json!("https://elsewhere.example");
    }
    inner["skills"][0]["examples"] = json!(["elsewhere"]);
    assert!(verify_rvagent_card(&inner).is_ok());
    assert_eq!(covered_original_card(&inner).unwrap(), covered);
    assert_eq!((&covered["url"], &covered["metadata"]), (&inner["url"], &inner["metadata"]));
}
