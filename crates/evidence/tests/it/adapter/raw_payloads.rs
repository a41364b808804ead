//! §7 of the sheet: what the keeper of raw packets takes, and what its errors do to a conversion.

use chancery_evidence::adapter::{
    self, AdapterError, AdapterErrorKind, AttachmentPolicy, ConversionMode, Input, MemoryRawPayloads, Options, RawPayloadRef,
    RawPayloads,
};

use super::golden::fixture;
use super::{BOTH, Echo, adapter as sheet_adapter};

fn memory() -> MemoryRawPayloads {
    MemoryRawPayloads::new(AttachmentPolicy::new(8192, ["application/json", "application/x.a-b+json"]))
}

#[test]
fn packets_are_kept_before_they_are_read_and_once() {
    let store = memory();
    assert!(store.is_empty());
    for name in ["a2a_negative_malformed", "a2a_happy_task_requested"] {
        for mode in BOTH {
            let _ = adapter::convert(&fixture(name), mode, &store);
        }
        let reference = RawPayloadRef::of(&fixture(name), "application/json");
        assert_eq!(store.get(&reference.sha256), Some(fixture(name)));
    }
    assert_eq!(store.len(), 2);
    let batch = adapter::convert(&fixture("a2a_happy_task_requested"), ConversionMode::Strict, &store).unwrap();
    let reference = RawPayloadRef::of(&fixture("a2a_happy_task_requested"), "application/json");
    assert_eq!(batch.lossiness.raw_payload_ref, Some(reference));
    assert_eq!(batch.events[0].data.adapter_version, env!("CARGO_PKG_VERSION"));
    assert!(!format!("{store:?}").contains("task"), "nothing of a packet is in logs");
}

#[test]
fn the_policy_caps_size_first_and_then_looks_at_the_media_type() {
    let policy = AttachmentPolicy::new(4, ["application/json", "application/x.a-b+json"]);
    for (size, media_type, admitted) in [
        (4, "application/json", Ok("application/json")),
        (0, " Application/JSON ; charset=utf-8", Ok("application/json")),
        (4, "application/X.a-b+json", Ok("application/x.a-b+json")),
        (5, "", Err("payload exceeds attachment policy max_payload_bytes (4)")),
        (4, "", Err("attachment media type must not be empty")),
        (4, " ; charset=utf-8", Err("attachment media type must not be empty")),
        (4, "json", Err("attachment media type is invalid")),
        (4, "/json", Err("attachment media type is invalid")),
        (4, "application/", Err("attachment media type is invalid")),
        (4, "application/json/x", Err("attachment media type is invalid")),
        (4, "application/js on", Err("attachment media type is invalid")),
        (4, "application/js_on", Err("attachment media type is invalid")),
        (4, "application/jsön", Err("attachment media type is invalid")),
        (4, "Text/Plain", Err("unsupported attachment media type: text/plain")),
    ] {
        let got = policy.admit(&vec![b' '; size], media_type);
        let admitted = admitted.map(str::to_owned).map_err(AdapterError::measurement);
        assert_eq!(got, admitted, "7: {size} {media_type:?}");
    }
}

#[test]
fn the_media_type_is_the_keepers_word_and_not_the_adapters() {
    let payload = fixture("a2a_happy_task_requested");
    let input = Input { media_type: "Application/JSON; x=y", ..Input::json(&payload) };
    for (store, media_type) in
        [(&memory() as &dyn RawPayloads, "application/json"), (&Echo::default() as &dyn RawPayloads, "Application/JSON; x=y")]
    {
        let batch = sheet_adapter().convert(&input, &Options::default(), store).unwrap();
        assert_eq!(batch.lossiness.raw_payload_ref.unwrap().media_type, media_type, "7");
    }
}

struct FullDisk;

impl RawPayloads for FullDisk {
    fn keep(&self, _: &[u8], _: &str) -> Result<RawPayloadRef, AdapterError> {
        Err(AdapterError::new(AdapterErrorKind::Infrastructure, "no room"))
    }
}

#[test]
fn what_the_keeper_says_ends_the_conversion_unchanged() {
    for mode in BOTH {
        for payload in [fixture("a2a_happy_task_requested"), fixture("a2a_negative_malformed")] {
            let error = adapter::convert(&payload, mode, &FullDisk).unwrap_err();
            assert_eq!(error.to_string(), "Infrastructure: no room", "2 step 2");
        }
    }
}
