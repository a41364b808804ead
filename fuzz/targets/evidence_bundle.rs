//! Any bytes as a bundle, and any events in a bundle whose format is sound: checking them never panics.
#![no_main]

use chancery_evidence::bundle::{BundleEvent, Stamp, seal, verify};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let _ = verify(bytes, &[]);
    let Ok(Value::Array(events)) = serde_json::from_slice(bytes) else { return };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let event = |event: &Value| BundleEvent {
        kind: text(&event["type"]),
        time: text(&event["time"]),
        subject: event["subject"].as_str().map(str::to_owned),
        data: event["data"].clone(),
    };
    let events: Vec<_> = events.iter().map(event).collect();
    let stamp = Stamp {
        source: "urn:chancery:record".to_owned(),
        run: "fuzzed".to_owned(),
        producer: "chancery".to_owned(),
        producer_version: "0".to_owned(),
        git: "unknown".to_owned(),
    };
    let Ok(bundle) = seal(&stamp, &events) else { return };
    if let Ok((checked, report)) = verify(&bundle, &[]) {
        assert_eq!(checked.events.len(), events.len());
        assert!(report.entries == 0 || report.checkpoints > 0, "nothing is taken for recorded that nobody signed");
    }
});
