//! Any bytes as a packet: conversion never panics, strict takes nothing that lenient refuses, and a batch has one digest.
#![no_main]

use chancery_evidence::adapter::{AttachmentPolicy, ConversionMode, MemoryRawPayloads, convert, digest_canonical_json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let kept = MemoryRawPayloads::new(AttachmentPolicy::new(u64::MAX, ["application/json"]));
    let strict = convert(bytes, ConversionMode::Strict, &kept);
    let lenient = convert(bytes, ConversionMode::Lenient, &kept);
    assert_eq!(kept.len(), 1, "kept before it is read, and once");
    if let Ok(batch) = &strict {
        assert_eq!(lenient.as_ref(), Ok(batch));
    }
    let Ok(batch) = lenient else { return };
    let data = &batch.events[0].data;
    assert!(!data.discovery.signature_material_visible);
    assert!(data.handoff.visible || !(data.handoff.task_ref_visible || data.handoff.message_ref_visible));
    let digest = digest_canonical_json(&batch).expect("a batch has a canonical form");
    let again = convert(bytes, ConversionMode::Lenient, &kept).expect("what was taken is taken again");
    assert_eq!(digest_canonical_json(&again).expect("and has one too"), digest);
});
