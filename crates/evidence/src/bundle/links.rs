//! How the entries of a bundle are tied to the record they are from: links, checkpoints and proofs.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_core::Checkpoint;
use chancery_protocol::Timestamp;
use serde_json::Value;

use super::complete::{Ends, complete};
use super::event::{rfc3339, subject_of};
use super::fault::{BundleFault, BundleFaultCode, fault};
use super::ties::{BundleReport, BundleScope, ChainLink, InclusionProof, Links, SignedCheckpoint};
use crate::adapter::{Adapter, Stamps};
use crate::packets;
use crate::record::{
    CheckpointBody, CheckpointFault, Hash, check_order, from_hex, hash_of_parts, hex, is_back_dated_after, merkle, signed_body,
    types,
};

/// An entry at its place.
pub(super) struct Placed<'a> {
    pub(super) event: &'a Value,
    pub(super) index: u64,
    hash: Hash,
}

pub(super) fn kind_of(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default()
}

pub(super) fn check(events: &[Value], kids: &[&str]) -> Result<BundleReport, BundleFault> {
    no_strangers(events)?;
    let (scope, links) = links(events)?;
    let checkpoints = checkpoints(events, kids)?;
    let entries = placed(events, links)?;
    if entries.is_empty() {
        signs_nothing(&checkpoints, kids)?;
    }
    in_order(&entries)?;
    let Ends { cut, open } = complete(&entries, &scope, &checkpoints)?;
    covered(&entries, events, &checkpoints)?;
    let packets = same_packets(events, &entries)?;
    Ok(BundleReport {
        entries: entries.len(),
        packets,
        checkpoints: checkpoints.len(),
        first: entries.first().map(|entry| entry.index),
        last: entries.last().map(|entry| entry.index),
        keys: checkpoints.values().map(|(_, body)| body.kid.clone()).collect(),
        scope,
        cut,
        open,
    })
}

fn is_packet(kind: &str) -> bool {
    kind.starts_with("assay.adapter.a2a.")
}

/// An entry of a record, or something that ties one to it.
fn is_known(kind: &str) -> bool {
    types::ENTRIES.contains(&kind) || [types::LINKS, types::CHECKPOINT, types::PROOF].contains(&kind)
}

/// Whether a bundle holds anything of a record, and so is one of ours.
pub(super) fn is_of_a_record(events: &[Value]) -> bool {
    events.iter().map(kind_of).any(is_known)
}

/// Others' bundles hold what they like. Beside what is tied to a record nothing stands that is not: it would seem to be signed.
fn no_strangers(events: &[Value]) -> Result<(), BundleFault> {
    let of_a_record = is_of_a_record(events);
    let is_strange = |kind: &str| !is_known(kind) && (kind.starts_with("chancery.") || (of_a_record && !is_packet(kind)));
    match events.iter().map(kind_of).find(|kind| is_strange(kind)) {
        Some(kind) if kind.starts_with("chancery.") => {
            Err(fault(BundleFaultCode::ContractInvalidEvent, format!("nothing of ours is called {kind}")))
        }
        Some(kind) => {
            Err(fault(BundleFaultCode::ContractInvalidEvent, format!("{kind} is neither of the record nor made of it")))
        }
        None => Ok(()),
    }
}

/// A bundle without entries: a reader that names a key expects an entry that the key signed.
fn signs_nothing(checkpoints: &Checkpoints, kids: &[&str]) -> Result<(), BundleFault> {
    if let Some(number) = checkpoints.keys().next() {
        return Err(fault(BundleFaultCode::ChainMissing, format!("checkpoint {number} is there, and no entry that it signs")));
    }
    if !kids.is_empty() {
        let message = format!("there is no entry of a record in it, and nothing that {} signed", kids.join(" or "));
        return Err(fault(BundleFaultCode::ChainUnsigned, message));
    }
    Ok(())
}

fn data_of<T: serde::de::DeserializeOwned>(event: &Value) -> Result<T, BundleFault> {
    let read = serde_json::from_value(event["data"].clone());
    read.map_err(|why| fault(BundleFaultCode::ContractInvalidEvent, format!("event {}: {why}", event["assayseq"])))
}

fn links(events: &[Value]) -> Result<(BundleScope, BTreeMap<u64, ChainLink>), BundleFault> {
    let (mut scope, mut found) = (None, BTreeMap::new());
    for event in events.iter().filter(|event| kind_of(event) == types::LINKS) {
        let links: Links = data_of(event)?;
        if scope.get_or_insert_with(|| links.scope.clone()) != &links.scope {
            return Err(fault(BundleFaultCode::ChainUnlinked, "the links are of two different exports"));
        }
        for link in links.links {
            let seq = link.seq;
            if found.insert(seq, link).is_some() {
                return Err(fault(BundleFaultCode::ChainDuplicate, format!("event {seq} has two links")));
            }
        }
    }
    Ok((scope.unwrap_or_default(), found))
}

pub(super) type Checkpoints = BTreeMap<u64, (Checkpoint, CheckpointBody)>;

fn checkpoints(events: &[Value], kids: &[&str]) -> Result<Checkpoints, BundleFault> {
    let mut found = Vec::new();
    for event in events.iter().filter(|event| kind_of(event) == types::CHECKPOINT) {
        let SignedCheckpoint { body, signature } = data_of(event)?;
        let unreadable =
            |why: &dyn std::fmt::Display| fault(BundleFaultCode::CheckpointSignature, format!("a checkpoint: {why}"));
        let says: CheckpointBody = serde_json::from_str(&body).map_err(|why| unreadable(&why))?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|why| unreadable(&why))?;
        let (number, sealed, at) = (says.number, says.sealed, Timestamp::from_micros(says.at));
        let end = says.first.checked_add(says.count).ok_or_else(|| unreadable(&"its numbers are too large"))?;
        let checkpoint = Checkpoint { number, end, sealed, at, body, signature };
        let says = signed_body(&checkpoint)
            .map_err(|why: CheckpointFault| fault(BundleFaultCode::CheckpointSignature, why.to_string()))?;
        if event["time"] != rfc3339(at) {
            return Err(fault(BundleFaultCode::CheckpointSignature, format!("checkpoint {number} was signed at another time")));
        }
        if !kids.is_empty() && !kids.contains(&&*says.kid) {
            let message = format!("checkpoint {number} is signed by {}, not by {}", says.kid, kids.join(" or "));
            return Err(fault(BundleFaultCode::CheckpointKey, message));
        }
        found.push((checkpoint, says));
    }
    let order: Vec<_> = found.iter().map(|(checkpoint, body)| (checkpoint, body)).collect();
    check_order(&order).map_err(|why| fault(BundleFaultCode::CheckpointSwapped, why.to_string()))?;
    Ok(found.into_iter().map(|(checkpoint, body)| (checkpoint.number, (checkpoint, body))).collect())
}

/// Each entry gets its link and with it its hash.
fn placed(events: &[Value], mut links: BTreeMap<u64, ChainLink>) -> Result<Vec<Placed<'_>>, BundleFault> {
    let mut entries = Vec::new();
    for (event, seq) in events.iter().zip(0_u64..) {
        let kind = kind_of(event);
        if !types::ENTRIES.contains(&kind) {
            continue;
        }
        let Some(ChainLink { index, prev, .. }) = links.remove(&seq) else {
            return Err(fault(BundleFaultCode::ChainUnlinked, format!("event {seq} has no link to the record")));
        };
        let altered = |why: &str| fault(BundleFaultCode::ChainAltered, format!("entry {index} is not as it was recorded: {why}"));
        let prev = from_hex(&prev).ok_or_else(|| altered("what it follows is no hash"))?;
        let time = event["time"].as_str().unwrap_or_default();
        let at = Timestamp::parse(time).ok().filter(|at| rfc3339(*at) == time).ok_or_else(|| altered("its time"))?;
        let data = &event["data"];
        if event["subject"].as_str().map(str::to_owned) != subject_of(kind, data) {
            return Err(altered("its subject"));
        }
        let hash = hash_of_parts(at, kind, data, index, &prev).map_err(|why| altered(&why))?;
        if let Some(Placed { index: before, hash: expected, .. }) = entries.last()
            && index == before + 1
            && *expected != prev
        {
            let message = format!("entry {before} is not as it was recorded: entry {index} follows another one");
            return Err(fault(BundleFaultCode::ChainAltered, message));
        }
        entries.push(Placed { event, index, hash });
    }
    match links.values().next() {
        Some(left) => Err(fault(BundleFaultCode::ChainMissing, format!("entry {} is missing", left.index))),
        None => Ok(entries),
    }
}

pub(super) fn at_of(event: &Value) -> i64 {
    event["time"].as_str().and_then(|time| Timestamp::parse(time).ok()).map_or(0, Timestamp::micros)
}

fn in_order(entries: &[Placed<'_>]) -> Result<(), BundleFault> {
    for pair in entries.windows(2) {
        let (before, index) = (pair[0].index, pair[1].index);
        if index == before {
            return Err(fault(BundleFaultCode::ChainDuplicate, format!("entry {index} stands there twice")));
        }
        if index < before {
            return Err(fault(BundleFaultCode::ChainOrder, format!("entry {index} stands after entry {before}")));
        }
        let (earlier, at) = (at_of(pair[0].event), at_of(pair[1].event));
        if is_back_dated_after(index - before, at, earlier) && kind_of(pair[1].event) != types::CLOCK {
            let message = format!("entry {index} says that it happened long before entry {before}, which was recorded earlier");
            return Err(fault(BundleFaultCode::ChainBackDated, message));
        }
    }
    Ok(())
}

/// The last entry of each run of neighbours leads to something signed; by their links, so do those before it.
fn covered(entries: &[Placed<'_>], events: &[Value], checkpoints: &Checkpoints) -> Result<(), BundleFault> {
    let mut proofs: BTreeMap<u64, InclusionProof> = BTreeMap::new();
    for event in events.iter().filter(|event| kind_of(event) == types::PROOF) {
        let proof: InclusionProof = data_of(event)?;
        proofs.insert(proof.index, proof);
    }
    for (place, entry) in entries.iter().enumerate() {
        let index = entry.index;
        let run_goes_on = entries.get(place + 1).is_some_and(|next| next.index == index + 1);
        let Some(proof) = proofs.remove(&index) else {
            if run_goes_on {
                continue;
            }
            return Err(fault(BundleFaultCode::ChainUnsigned, format!("nothing that is signed covers entry {index}")));
        };
        let Some((checkpoint, body)) = checkpoints.get(&proof.checkpoint) else {
            let message = format!("the checkpoint {} that covers entry {index} is not there", proof.checkpoint);
            return Err(fault(BundleFaultCode::ChainUnsigned, message));
        };
        let path: Option<Vec<Hash>> = proof.path.iter().map(|hash| from_hex(hash)).collect();
        let root = path.zip(index.checked_sub(body.first));
        let root = root.and_then(|(path, place)| merkle::root_of_path(&entry.hash, place, body.count, &path));
        if root.map(|root| hex(&root)) != Some(body.root.clone()) {
            let message = format!("entry {index} is not the one that checkpoint {} signed", checkpoint.number);
            return Err(fault(BundleFaultCode::ChainAltered, message));
        }
    }
    if let Some((index, _)) = proofs.first_key_value() {
        return Err(fault(BundleFaultCode::ChainMissing, format!("entry {index} is missing, only its proof is there")));
    }
    for (checkpoint, body) in checkpoints.values() {
        let last = checkpoint.end.checked_sub(1);
        let entry = last.and_then(|last| entries.binary_search_by_key(&last, |entry| entry.index).ok()).map(|at| &entries[at]);
        if entry.is_some_and(|entry| hex(&entry.hash) != body.hash) {
            let message = format!("checkpoint {} is not of this record", checkpoint.number);
            return Err(fault(BundleFaultCode::CheckpointSwapped, message));
        }
    }
    Ok(())
}

/// What stands there of the adapter's is what the adapter makes of the entries, no less and no more.
fn same_packets(events: &[Value], entries: &[Placed<'_>]) -> Result<usize, BundleFault> {
    let made: Vec<&Value> = events.iter().filter(|event| is_packet(kind_of(event))).collect();
    if entries.is_empty() {
        return Ok(made.len());
    }
    let version = made.first().and_then(|event| event["data"]["adapter_version"].as_str()).unwrap_or_default();
    let adapter = Adapter::new(Stamps { adapter_version: version.to_owned(), ..Stamps::default() });
    let mut left = made.iter();
    for entry in entries {
        let (index, data) = (entry.index, &entry.event["data"]);
        let wrong = || fault(BundleFaultCode::PacketMismatch, format!("the packet of entry {index} is not what the entry makes"));
        let at = Timestamp::from_micros(at_of(entry.event));
        let expected = packets::event_of(&adapter, kind_of(entry.event), at, data).map_err(|_| wrong())?;
        let Some(expected) = expected else { continue };
        let found = left.next().ok_or_else(wrong)?;
        let expected_data = serde_json::to_value(&expected.data).map_err(|_| wrong())?;
        let same = found["data"] == expected_data
            && found["type"] == serde_json::to_value(expected.event_type).map_err(|_| wrong())?
            && found["subject"].as_str() == expected.subject.as_deref()
            && found["time"] == expected.time;
        if !same {
            return Err(wrong());
        }
    }
    match left.next() {
        Some(extra) => Err(fault(BundleFaultCode::PacketMismatch, format!("no entry makes event {}", extra["assayseq"]))),
        None => Ok(made.len()),
    }
}
