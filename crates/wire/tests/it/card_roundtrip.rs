//! Cards of other agents survive being read and written again, in every version.

use std::path::Path;

use chancery_wire::Codec;
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v0_3::rest::V0_3Rest;
use chancery_wire::json::v1_0::V1_0;
use serde_json::Value;

/// The cards of a version, by file name.
fn cards(version: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cards").join(version);
    let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let cards: Vec<_> = files.map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap())).collect();
    assert!(cards.len() >= 2, "{version} has too few cards");
    cards
}

#[test]
fn card_roundtrip() {
    let versions: [(&str, &dyn Codec); 3] = [("1.0", &V1_0), ("0.3", &V0_3), ("original", &Original)];
    for (version, codec) in versions {
        for (name, text) in cards(version) {
            let card = codec.decode_card(&text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            let again: Value = serde_json::from_slice(&codec.encode_card(&card)).unwrap();
            assert_eq!(again, serde_json::from_str::<Value>(&text).unwrap(), "{name}");
        }
    }
}

#[test]
fn the_rest_form_of_a_0_3_card_reads_as_the_same_card() {
    for (name, text) in cards("0.3") {
        let card = V0_3.decode_card(&text).unwrap();
        let over_rest = String::from_utf8(V0_3Rest.encode_card(&card)).unwrap();
        assert_eq!(V0_3Rest.decode_card(&over_rest).unwrap(), card, "{name}");
    }
}

#[test]
fn unknown_members_of_a_card_are_ignored() {
    let versions: [(&str, &dyn Codec); 3] = [("1.0", &V1_0), ("0.3", &V0_3), ("original", &Original)];
    for (version, codec) in versions {
        for (name, text) in cards(version) {
            let with_more = text.replacen('{', r#"{"x-unknown":{"a":[1]},"#, 1);
            assert_eq!(codec.decode_card(&with_more).unwrap(), codec.decode_card(&text).unwrap(), "{name}");
        }
    }
}
