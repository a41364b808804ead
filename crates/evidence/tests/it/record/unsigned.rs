//! What nobody signed is not taken for signed because it stands in a bundle, nor beside what is.

use chancery_evidence::bundle::{BundleEvent, BundleFaultCode, verify};
use chancery_evidence::export::ExportSelection;
use chancery_evidence::record::types;
use serde_json::json;

use crate::record::tampering::{all, bundle, found, opened, sealed};

fn is_packet(event: &BundleEvent) -> bool {
    event.kind.starts_with("assay.adapter.a2a.")
}

#[tokio::test]
async fn a_key_that_must_have_signed_has_signed_something() {
    let genuine = bundle(all()).await;
    let key = verify(&genuine, &[]).unwrap().1.keys.pop_first().unwrap();
    assert!(verify(&genuine, &[&key]).is_ok());
    let packets: Vec<_> = opened(&genuine).into_iter().filter(is_packet).collect();
    let theirs = sealed(&packets);
    assert_eq!(verify(&theirs, &[]).unwrap().1.packets, packets.len(), "others' bundles hold packets and no record");
    let fault = verify(&theirs, &[&key]).unwrap_err();
    assert!(fault.code == BundleFaultCode::ChainUnsigned && fault.message.contains(&key), "{fault}");
}

#[tokio::test]
async fn a_checkpoint_beside_what_it_does_not_sign_is_no_signature() {
    let genuine = bundle(all()).await;
    let key = verify(&genuine, &[]).unwrap().1.keys.pop_first().unwrap();
    let mut events = opened(&genuine);
    let checkpoint = events.iter().find(|event| event.kind == types::CHECKPOINT).unwrap().clone();
    events.retain(is_packet);
    events.push(checkpoint);
    for kids in [&[][..], &[key.as_str()]] {
        let fault = verify(&sealed(&events), kids).unwrap_err();
        assert!(matches!(fault.code, BundleFaultCode::ChainMissing | BundleFaultCode::ChainUnsigned), "{fault}");
    }
}

#[tokio::test]
async fn nothing_stands_in_a_bundle_of_a_record_that_is_neither_of_it_nor_made_of_it() {
    for kind in ["assay.determinism.test", "com.example.approved", "chancery.task.approved"] {
        let (code, message) = found(ExportSelection::Task("task-7".to_owned()), |events| {
            let time = events[0].time.clone();
            events.push(BundleEvent { kind: kind.to_owned(), time, subject: Some("task-7".to_owned()), data: json!({}) });
        })
        .await;
        assert!(code == BundleFaultCode::ContractInvalidEvent && message.contains(kind), "{code} {message}");
    }
}
