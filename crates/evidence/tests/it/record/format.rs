//! The bundle format, held to its published values.

use chancery_evidence::bundle::{BundleEvent, BundleFaultCode, Stamp, check, content_hash, pack, seal, unpack, verify};
use chancery_evidence::record::{hex, sha256};
use serde_json::json;

fn pinned() -> Vec<u8> {
    let event = BundleEvent {
        kind: "assay.determinism.test".to_owned(),
        time: "2023-11-14T22:13:20Z".to_owned(),
        subject: None,
        data: json!({
            "seq": 0, "message": "This is a deterministic test event", "nested": { "z_field": 3, "a_field": 1, "m_field": 2 },
        }),
    };
    let stamp = Stamp {
        source: "urn:assay:determinism-test".to_owned(),
        run: "run_golden_test_12345".to_owned(),
        producer: "assay-evidence-test".to_owned(),
        producer_version: "0.1.0-test".to_owned(),
        git: "abc1234".to_owned(),
    };
    seal(&stamp, &[event]).unwrap()
}

#[test]
fn a_bundle_of_the_pinned_event_has_the_published_digests() {
    let bundle = pinned();
    let checked = check(&bundle).unwrap();
    let hash = "sha256:0c441e99738e5d82e386f794c1ffc6686723715d85e3c7528936b481b61abf2a";
    assert_eq!(checked.events[0]["assaycontenthash"], hash);
    assert_eq!(checked.manifest.run_root, "sha256:736ad83b9382697228ab6d7ef6e2821f96d9a29ff7ac2adeacbec076d10c5535");
    let (manifest, events) = unpack(&bundle).unwrap();
    assert_eq!(hex(&sha256(&events)), "2c338577727ae79d1e4e0c64fb7f924951da3264ac3667caa0476e56c51e5917");
    assert_eq!(hex(&sha256(&manifest)), "1412325ee64c94de98d21ed26750d23c26f71c47c4d156d70dfd6110da7541fa");
    assert_eq!(bundle[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff], "no time, best compression, no system");
    let (_, report) = verify(&bundle, &[]).unwrap();
    assert_eq!(report.entries, 0, "others' bundles have no record of ours");
}

#[test]
fn the_digest_of_a_fixture_is_the_published_one() {
    let packet = include_bytes!("../../../fixtures/packets/a2a_happy_task_requested.json");
    use chancery_evidence::adapter::{Adapter, ConversionMode, Input, Options, RawPayloadRef, RawPayloads, Stamps};
    struct Nowhere;
    impl RawPayloads for Nowhere {
        fn keep(&self, bytes: &[u8], kind: &str) -> Result<RawPayloadRef, chancery_evidence::adapter::AdapterError> {
            Ok(RawPayloadRef::of(bytes, kind))
        }
    }
    let stamps = Stamps { adapter_version: "5.4.0".to_owned(), producer_version: "5.4.0".to_owned(), git: "unknown".to_owned() };
    let batch = Adapter::new(stamps).convert(&Input::json(packet), &Options::from(ConversionMode::Strict), &Nowhere).unwrap();
    let event = serde_json::to_value(&batch.events[0]).unwrap();
    assert_eq!(content_hash(&event).unwrap(), "sha256:2b056ccc53dc81924c97ba34857b620989ba591bce990666e0907e512dcc04f1");
}

type Member<'a> = (&'a str, &'a [u8]);

/// A tar of anything.
fn tar(members: &[Member<'_>]) -> Vec<u8> {
    use std::io::Write as _;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for (name, content) in members {
        let mut header = [0_u8; 512];
        header[..name.len().min(100)].copy_from_slice(&name.as_bytes()[..name.len().min(100)]);
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        gzip.write_all(&header).unwrap();
        gzip.write_all(content).unwrap();
        gzip.write_all(&vec![0; content.len().next_multiple_of(512) - content.len()]).unwrap();
    }
    gzip.write_all(&[0; 1024]).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn only_the_two_files_in_their_order_make_a_bundle() {
    let (manifest, events) = unpack(&pinned()).unwrap();
    let (manifest, events) = (&manifest[..], &events[..]);
    assert!(
        verify(&tar(&[("manifest.json", manifest), ("events.ndjson", events)]), &[]).is_ok(),
        "another tar of the same files"
    );
    let cases: [(&[Member<'_>], BundleFaultCode); 9] = [
        (&[("events.ndjson", events), ("manifest.json", manifest)], BundleFaultCode::ContractFileOrder),
        (&[("manifest.json", manifest)], BundleFaultCode::ContractMissingFile),
        (&[], BundleFaultCode::ContractMissingFile),
        (&[("manifest.json", manifest), ("manifest.json", manifest)], BundleFaultCode::ContractDuplicateFile),
        (&[("manifest.json", manifest), ("events.ndjson", events), ("more", b"")], BundleFaultCode::ContractUnexpectedFile),
        (&[("../manifest.json", manifest)], BundleFaultCode::SecurityPathTraversal),
        (&[("/manifest.json", manifest)], BundleFaultCode::SecurityAbsolutePath),
        (&[("manifest.json", b"{}"), ("events.ndjson", events)], BundleFaultCode::ContractSchemaVersion),
        (&[("manifest.json", manifest), ("events.ndjson", b"")], BundleFaultCode::IntegrityFileSizeMismatch),
    ];
    for (members, code) in cases {
        assert_eq!(check(&tar(members)).unwrap_err().code, code, "{:?}", members.iter().map(|one| one.0).collect::<Vec<_>>());
    }
    assert_eq!(check(b"no gzip").unwrap_err().code, BundleFaultCode::IntegrityGzip);
    assert_eq!(check(&pack(b"[1", b"").unwrap()).unwrap_err().code, BundleFaultCode::ContractInvalidJson);
    for (depth, code) in [(64, BundleFaultCode::ContractInvalidJson), (65, BundleFaultCode::LimitJsonDepth)] {
        let deep = format!(r#"{}"[[\"[["#, "[".repeat(depth));
        assert_eq!(check(&pack(deep.as_bytes(), b"").unwrap()).unwrap_err().code, code, "{depth}");
    }
}
