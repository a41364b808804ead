//! Checks a bundle from the outside in and stops at the first fault.

use chancery_identity::strict_json;
use serde_json::Value;

use super::container::{EVENTS, unpack};
use super::event::content_hash;
use super::fault::{BundleFault, BundleFaultCode, unreadable};
use super::limits;
use super::links;
use super::manifest::Manifest;
use super::ties::BundleReport;
use crate::record::{hex, sha256};

/// A bundle whose format is sound.
#[derive(Debug)]
pub struct CheckedBundle {
    pub manifest: Manifest,
    pub events: Vec<Value>,
}

/// Everything that can be found out from the bundle alone: the format, and how its entries are tied to their record. With
/// `kids` also whether these keys signed, and no others: there are several where keys were rotated.
pub fn verify(bundle: &[u8], kids: &[&str]) -> Result<(CheckedBundle, BundleReport), BundleFault> {
    let (manifest, lines) = unpack(bundle)?;
    let checked = check_members(&manifest, &lines)?;
    let report = links::check(&checked.events, kids)?;
    if links::is_of_a_record(&checked.events) {
        Manifest::check_as_written(&manifest, &checked.events, &lines)?;
    }
    Ok((checked, report))
}

/// The format alone. Bundles of others pass, too.
pub fn check(bundle: &[u8]) -> Result<CheckedBundle, BundleFault> {
    let (manifest, lines) = unpack(bundle)?;
    check_members(&manifest, &lines)
}

fn check_members(manifest: &[u8], lines: &[u8]) -> Result<CheckedBundle, BundleFault> {
    let manifest = Manifest::read(manifest)?;
    manifest.check_algorithms()?;
    let file = &manifest.files[EVENTS];
    if file["path"] != EVENTS {
        return Err(BundleFault::new(BundleFaultCode::ContractMissingFile, format!("the manifest does not name {EVENTS}")));
    }
    if file["bytes"] != lines.len() {
        let message = format!("{EVENTS} has {} bytes, the manifest says {}", lines.len(), file["bytes"]);
        return Err(BundleFault::new(BundleFaultCode::IntegrityFileSizeMismatch, message));
    }
    if file["sha256"] != format!("sha256:{}", hex(&sha256(lines))) {
        return Err(BundleFault::new(
            BundleFaultCode::IntegrityManifestHash,
            format!("{EVENTS} has another digest than the manifest says"),
        ));
    }
    let events = read(lines)?;
    let mut root = Vec::new();
    for (seq, event) in events.iter().enumerate() {
        check_event(event, seq, &manifest, &events[0]["source"])?;
        root.extend(event["assaycontenthash"].as_str().unwrap_or_default().as_bytes());
        root.push(b'\n');
    }
    if manifest.event_count != events.len() as u64 {
        let message = format!("there are {} events, the manifest says {}", events.len(), manifest.event_count);
        return Err(BundleFault::new(BundleFaultCode::ContractSequenceGap, message));
    }
    if manifest.run_root != format!("sha256:{}", hex(&sha256(&root))) {
        return Err(BundleFault::new(BundleFaultCode::IntegrityRunRootMismatch, "the digest over all events is another"));
    }
    if manifest.bundle_id != manifest.run_root {
        return Err(BundleFault::new(BundleFaultCode::ContractBundleIdMismatch, "bundle_id is not run_root"));
    }
    Ok(CheckedBundle { manifest, events })
}

fn read(lines: &[u8]) -> Result<Vec<Value>, BundleFault> {
    let mut events = Vec::new();
    let Some(body) = lines.strip_suffix(b"\n") else {
        return Err(BundleFault::new(BundleFaultCode::ContractInvalidEvent, "there is no event, or the last line does not end"));
    };
    for (seq, line) in body.split(|byte| *byte == b'\n').enumerate() {
        let bad = |code, why: String| BundleFault::new(code, format!("event {seq}: {why}"));
        if seq == limits::EVENTS {
            return Err(bad(BundleFaultCode::LimitTotalEvents, format!("a bundle has at most {} events", limits::EVENTS)));
        }
        if line.len() > limits::LINE_BYTES {
            return Err(bad(BundleFaultCode::LimitLineBytes, format!("a line has at most {} bytes", limits::LINE_BYTES)));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = std::str::from_utf8(line).map_err(|fault| bad(BundleFaultCode::ContractInvalidJson, fault.to_string()))?;
        let event = strict_json::parse(text).map_err(|fault| bad(unreadable(&fault), fault.to_string()))?;
        events.push(event);
    }
    Ok(events)
}

fn check_event(event: &Value, seq: usize, manifest: &Manifest, source: &Value) -> Result<(), BundleFault> {
    let bad = |code, why: &str| Err(BundleFault::new(code, format!("event {seq}: {why}")));
    let texts = ["specversion", "type", "source", "id", "time", "datacontenttype", "assayrunid", "assayproducer"];
    let more = ["assayproducerversion", "assaygit"];
    if let Some(missing) = texts.iter().chain(&more).find(|name| !event[**name].is_string()) {
        return bad(BundleFaultCode::ContractInvalidEvent, &format!("{missing} is not there"));
    }
    if !event["assaypii"].is_boolean() || !event["assaysecrets"].is_boolean() || event.get("data").is_none() {
        return bad(BundleFaultCode::ContractInvalidEvent, "assaypii, assaysecrets or data is missing");
    }
    if event["specversion"] != "1.0" {
        return bad(BundleFaultCode::ContractInvalidEvent, "specversion is not 1.0");
    }
    let hash = content_hash(event).map_err(|fault| BundleFault::new(BundleFaultCode::ContractInvalidEvent, fault.to_string()))?;
    if event["assaycontenthash"] != hash {
        return bad(BundleFaultCode::IntegrityEventHash, "its content does not match its assaycontenthash");
    }
    match event["assayseq"].as_u64() {
        Some(found) if found == seq as u64 => {}
        _ if seq == 0 => return bad(BundleFaultCode::ContractSequenceStart, "the number of the first event is not 0"),
        _ => return bad(BundleFaultCode::ContractSequenceGap, "the numbers have a gap"),
    }
    let run = event["assayrunid"].as_str().unwrap_or_default();
    if run != manifest.run_id {
        return bad(BundleFaultCode::ContractRunIdMismatch, "it is of another run than the manifest");
    }
    if run.contains(':') {
        return bad(BundleFaultCode::ContractInvalidEvent, "run_id must not contain a colon");
    }
    if event["id"] != format!("{run}:{seq}") {
        return bad(BundleFaultCode::ContractInvalidEvent, "its id is not its run and number");
    }
    let own = event["source"].as_str().unwrap_or_default();
    if event["source"] != *source || !own.contains(':') || own.starts_with(':') {
        return bad(
            BundleFaultCode::ContractInvalidEvent,
            "its source is not a URI, or differs from the source of the first event",
        );
    }
    Ok(())
}
