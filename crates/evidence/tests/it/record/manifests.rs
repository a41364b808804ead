//! A manifest that somebody changed is found, whichever word of it was changed.

use chancery_evidence::bundle::{BundleFaultCode, pack, unpack, verify};
use chancery_evidence::export::ExportSelection;
use serde_json::{Value, json};

use crate::record::tampering::{all, bundle, opened, sealed};

/// The manifest with one word changed, taken out or added, for every word there is.
fn every_change(manifest: &Value) -> Vec<(String, Value)> {
    let mut changes = Vec::new();
    let mut places = vec![String::new()];
    while let Some(place) = places.pop() {
        let found = manifest.pointer(&place).expect("it was found there");
        let mut put = |what: &str, value: Value| {
            let mut changed = manifest.clone();
            *changed.pointer_mut(&place).expect("it is there") = value;
            changes.push((format!("{place} {what}"), changed));
        };
        match found {
            Value::Object(members) => {
                let names = members.keys().map(|name| name.replace('~', "~0").replace('/', "~1"));
                places.extend(names.map(|name| format!("{place}/{name}")));
                let mut more = members.clone();
                more.insert("added".to_owned(), json!("word"));
                put("with one more member", Value::Object(more));
                for name in members.keys() {
                    let mut less = members.clone();
                    less.remove(name);
                    put(&format!("without {name}"), Value::Object(less));
                }
            }
            Value::String(text) => {
                put("longer", json!(format!("{text}x")));
                put("shorter", json!(text[..text.len() - 1]));
                put("another", json!("another"));
            }
            Value::Number(number) => put("one more", json!(number.as_u64().expect("it counts") + 1)),
            other => panic!("{other}"),
        }
    }
    changes
}

#[tokio::test]
async fn a_changed_word_anywhere_in_a_manifest_is_refused() {
    for wanted in [all(), ExportSelection::Task("task-7".to_owned())] {
        let bundle = bundle(wanted).await;
        let (manifest, events) = unpack(&bundle).unwrap();
        let whole: Value = serde_json::from_slice(&manifest).unwrap();
        let changes = every_change(&whole);
        assert!(changes.len() > 40, "{}", changes.len());
        for (what, changed) in changes {
            let forged = pack(&serde_json_canonicalizer::to_vec(&changed).unwrap(), &events).unwrap();
            assert!(verify(&forged, &[]).is_err(), "{what}");
        }
        let spaced = serde_json::to_vec_pretty(&whole).unwrap();
        assert_eq!(verify(&pack(&spaced, &events).unwrap(), &[]).unwrap_err().code, BundleFaultCode::ManifestAltered);
        assert!(verify(&pack(&manifest, &events).unwrap(), &[]).is_ok(), "unchanged it is sound");
    }
}

#[tokio::test]
async fn the_producer_is_the_one_its_events_name() {
    let bundle = sealed(&opened(&bundle(all()).await));
    let (manifest, events) = unpack(&bundle).unwrap();
    let text = String::from_utf8(manifest).unwrap();
    let forged = text.replace(r#""name":"chancery""#, r#""name":"assay""#);
    assert_ne!(forged, text);
    let fault = verify(&pack(forged.as_bytes(), &events).unwrap(), &[]).unwrap_err();
    assert_eq!(fault.code, BundleFaultCode::ManifestAltered);
    assert!(fault.message.contains("producer is") && fault.message.contains("its events say"), "{}", fault.message);
}
