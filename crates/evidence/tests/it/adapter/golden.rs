//! Every fixture the freezes name, in both modes: the printed batch, and the digests of the sheet.

use std::fs;
use std::path::PathBuf;

use chancery_evidence::adapter::{
    AdapterError, AdapterErrorKind, ConversionMode, Input, Options, RawPayloadRef, RawPayloads, digest_canonical_json,
};

use super::{BOTH, adapter, convert};

/// What the sheet says of a fixture that becomes a batch: its raw bytes there, and the digests of payload and batch (§6, §6.1).
struct Golden {
    name: &'static str,
    modes: &'static [ConversionMode],
    raw: (&'static str, u64),
    payload: &'static str,
    batch: &'static str,
    discovery: &'static str,
    handoff: &'static str,
}

// §5.3
pub(crate) const DISCOVERY_DEFAULT: &str = "26b4d9c0105f4cc26d4b413e7b6b27effe5829f9f319a60b91ca490fd7776a13";
pub(crate) const DISCOVERY_AGENT_CARD: &str = "93f5c26d149e7400d38104c4479f332df4df23df0d1f4d25aef252aac87b9769";
const DISCOVERY_BOTH: &str = "9d0f24e430e00ee3ec1bc595cb59e6e7d7d5b12c0c90e102ea4d26ad3890e665";
pub(crate) const DISCOVERY_EXTENDED: &str = "13e23c6783de838b52ca92d787569bccd3cadc0f8900f1bf76b42262959f77ba";
pub(crate) const HANDOFF_DEFAULT: &str = "60e992b4881c03d816cd94929856d8c8cade113f62273d42a8a75412533a294a";
const HANDOFF_TYPED: &str = "e478af7359a254678c90b5eb2737d63f79c6d667a2b5c4bc323442f07d09d33b";
pub(crate) const HANDOFF_PARTIAL: &str = "0be260743587b9594018a4ab7809560157be088be0372a8ae7c7faa6a744effe";

const GOLDEN: [Golden; 9] = [
    Golden {
        name: "a2a_happy_agent_capabilities",
        modes: &BOTH,
        raw: ("aa6a946c712b846059d9d06c707967c13b5cd8ab1fe24cb7a943f9d0451c3410", 386),
        payload: "227109937b9aa6e4917fa8f323280906cc19e5242f3b8ee00f96b45635764c59",
        batch: "b12116fac5d551baae90ca9a7e69a3b3f5f2dd107ff10b190eb5787130b9b03b",
        discovery: DISCOVERY_DEFAULT,
        handoff: HANDOFF_DEFAULT,
    },
    Golden {
        name: "a2a_happy_agent_capabilities_g4_agent_card",
        modes: &BOTH,
        raw: ("4c7f2c7957cab5eab3e2df59c5f627604a1a96d0881eca843a3d41d7cce8c77c", 451),
        payload: "1a8217a586951b5dc943b33e01368322a6e80d77acf4421b95566ecf1b4576d5",
        batch: "7d9e9eb11be9a6c0a840f915f88d1647a8c65dc7ff5effab7724bbbc9dc9f336",
        discovery: DISCOVERY_AGENT_CARD,
        handoff: HANDOFF_DEFAULT,
    },
    Golden {
        name: "a2a_happy_agent_capabilities_g4_both_visible",
        modes: &BOTH,
        raw: ("435d56f554547a313012764bed14e0b1fb06546a152557393aac66453a47de90", 478),
        payload: "ffe8e425c35710a62c02951371d13137fd334a104401d94ee3e65c14c017fde8",
        batch: "8bbf3cca19be3fb411fceaeb4036bb4d406ee2b644fbe31a31a484f3fd41cb22",
        discovery: DISCOVERY_BOTH,
        handoff: HANDOFF_DEFAULT,
    },
    Golden {
        name: "a2a_happy_agent_capabilities_g4_extended",
        modes: &BOTH,
        raw: ("6c94283179e8051b001b999292c59009fd2b2028c4cf4db3f12546436a8cc957", 437),
        payload: "82edf39f7219369140240d856616546a85c9969590cbe16505aea0cd54633d61",
        batch: "0950fae0d59742fac3eda11bec35627e0009039392299d84c4378afd4d4e5a75",
        discovery: DISCOVERY_EXTENDED,
        handoff: HANDOFF_DEFAULT,
    },
    Golden {
        name: "a2a_happy_artifact_shared",
        modes: &BOTH,
        raw: ("ebcdce586bfa8bbccb130cb37b03e92377dc3d497dc5c34ccb389f8caf6366a9", 305),
        payload: "6c3beef2be4cfebe484072e31e0e3dc08f123829ce915f5ccbc2ec0de03a5b48",
        batch: "470156e3258ddf9a5c7245f578fa056fe101547972281db3b9395df1ad344aac",
        discovery: DISCOVERY_DEFAULT,
        handoff: HANDOFF_DEFAULT,
    },
    Golden {
        name: "a2a_happy_task_requested",
        modes: &BOTH,
        raw: ("c43b7dc113152137ec19cb248338543bdcf27bf8c437fc2a63305233d59fce21", 419),
        payload: "097f947c2862866cc33d97ad593ffe718abdd7e93c36d21597f83289c408c140",
        batch: "910aec399af7efdc224881eaedd29cf51f296c9983204927affcf99c194d8518",
        discovery: DISCOVERY_DEFAULT,
        handoff: HANDOFF_TYPED,
    },
    // The freeze asks for this packet and has none (K1-A §7). Its digests come from an implementation of the sheet in another language.
    Golden {
        name: "a2a_happy_task_updated",
        modes: &BOTH,
        raw: ("b34d6a5178e6ca79b3619918ea490a02689cf217f97a46e6ce51ee9894db7de3", 366),
        payload: "cb2901b1ed03f10928d56d3a5c12a3451de93abd345a28481d721b25ceb21562",
        batch: "d3226e83305539d1ade433bc34e977b88cbfb59c5bf9b19af77e7dbd1f0c0dbe",
        discovery: DISCOVERY_DEFAULT,
        handoff: HANDOFF_DEFAULT,
    },
    Golden {
        name: "a2a_negative_invalid_event_type",
        modes: &[ConversionMode::Lenient],
        raw: ("18fec158ed5952c190643fbc8e53eee6e24ef4380a9a8dd1d5960aedba4e8dde", 237),
        payload: "67d63ab7197f3343da1acc379e9fec719aad428778cc8f37f94f14c1d21bbccc",
        batch: "784b5b0833f0fb1cef432588001fe0a473e34bd9437e7aaad4e384fe7edb3b36",
        discovery: DISCOVERY_DEFAULT,
        handoff: HANDOFF_DEFAULT,
    },
    Golden {
        name: "a2a_negative_missing_task_id",
        modes: &[ConversionMode::Lenient],
        raw: ("892558c4e7bc0adf24f28ba439a8f5122f0ca6c34cf4ff8381821d1cbc24fe34", 274),
        payload: "3c8a83df7c3ba78c22c5dc66ab254fbab8f34b72c272b2879d3f43b0498443fd",
        batch: "dab684c20691be2e4a3fd4175d78b451e8eda873ab1f26a13087bb4cdf7a5476",
        discovery: DISCOVERY_DEFAULT,
        handoff: HANDOFF_PARTIAL,
    },
];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    fs::read(folder("packets").join(name).with_extension("json")).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

/// Refers to every packet as the sheet does to its own. Our fixtures say the same in other bytes, so only the reference differs.
struct AsTheSheetHasIt(&'static str, u64);

impl RawPayloads for AsTheSheetHasIt {
    fn keep(&self, _: &[u8], media_type: &str) -> Result<RawPayloadRef, AdapterError> {
        Ok(RawPayloadRef { sha256: self.0.to_owned(), size_bytes: self.1, media_type: media_type.to_owned() })
    }
}

#[test]
fn batches_payloads_and_both_frozen_objects_have_the_digests_of_the_sheet() {
    for golden in &GOLDEN {
        let packet = fixture(golden.name);
        for mode in golden.modes {
            let store = AsTheSheetHasIt(golden.raw.0, golden.raw.1);
            let batch = adapter().convert(&Input::json(&packet), &Options::from(*mode), &store).unwrap();
            let data = &batch.events[0].data;
            let name = golden.name;
            assert_eq!(digest_canonical_json(&data.discovery).unwrap(), golden.discovery, "{name} {mode:?}: discovery");
            assert_eq!(digest_canonical_json(&data.handoff).unwrap(), golden.handoff, "{name} {mode:?}: handoff");
            assert_eq!(digest_canonical_json(data).unwrap(), golden.payload, "{name} {mode:?}: payload");
            assert_eq!(digest_canonical_json(&batch).unwrap(), golden.batch, "{name} {mode:?}: batch");
        }
    }
}

#[test]
fn batches_are_printed_as_they_were_before_and_the_same_each_time() {
    for golden in &GOLDEN {
        let packet = fixture(golden.name);
        let file = folder("batches").join(golden.name).with_extension("json");
        for mode in golden.modes {
            let printed = serde_json::to_string_pretty(&convert(&packet, *mode).unwrap()).unwrap() + "\n";
            for _ in 0..3 {
                let again = serde_json::to_string_pretty(&convert(&packet, *mode).unwrap()).unwrap() + "\n";
                assert_eq!(printed, again);
            }
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                fs::write(&file, &printed).unwrap();
            }
            let expected = fs::read_to_string(&file).unwrap_or_else(|fault| panic!("{}: {fault}", golden.name));
            assert_eq!(printed, expected, "{} {mode:?}", golden.name);
        }
    }
}

#[test]
fn the_negative_fixtures_end_in_the_errors_of_the_sheet() {
    for (name, mode, kind, message) in [
        (
            "a2a_negative_invalid_event_type",
            ConversionMode::Strict,
            AdapterErrorKind::StrictLossinessViolation,
            "unsupported event_type in strict mode",
        ),
        (
            "a2a_negative_missing_task_id",
            ConversionMode::Strict,
            AdapterErrorKind::Measurement,
            "missing required field: task.id",
        ),
        ("a2a_negative_malformed", ConversionMode::Strict, AdapterErrorKind::Measurement, "invalid A2A payload JSON: "),
        ("a2a_negative_malformed", ConversionMode::Lenient, AdapterErrorKind::Measurement, "invalid A2A payload JSON: "),
    ] {
        let error = convert(&fixture(name), mode).unwrap_err();
        assert_eq!(error.kind, kind, "{name} {mode:?}");
        // What the parser adds is its own affair.
        assert!(error.message.starts_with(message), "{name} {mode:?}: {error}");
    }
}

#[test]
fn every_fixture_is_in_the_table_or_malformed() {
    let mut names: Vec<String> = GOLDEN.iter().map(|golden| format!("{}.json", golden.name)).collect();
    let sorted = |folder: PathBuf| {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    names.sort();
    assert_eq!(sorted(folder("batches")), names);
    names.push("a2a_negative_malformed.json".to_owned());
    names.sort();
    assert_eq!(sorted(folder("packets")), names);
}
