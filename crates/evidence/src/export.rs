//! Takes what was asked for out of a record and makes a bundle of it, checking the record on the way.

use std::collections::{BTreeSet, VecDeque};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_core::{Checkpoint, Record, StoreError};
use chancery_identity::strict_json::MAX_SAFE_INTEGER;
use chancery_protocol::{Timestamp, TraceId};
use serde_json::{Value, json};

use crate::adapter::Adapter;
use crate::bundle::{self, BundleEvent, SealFault, Stamp, limits, rfc3339, subject_of};
use crate::chosen::ChosenEntries;
use crate::packets;
use crate::record::{Entry, Examination, RecordFault, Segment, hex, merkle, types};

/// So many blocks are read at once.
const BLOCKS_AT_ONCE: usize = 256;
/// So many links stand in one event: about a quarter of the longest line.
const LINKS_IN_EVENT: usize = 2000;

/// Which entries to take.
#[derive(Clone, Debug, PartialEq)]
pub enum ExportSelection {
    /// Everything about one task.
    Task(String),
    /// Everything about the tasks of one trace. Those that are known otherwise are named: their requests, which name the trace, may
    /// have been forgotten.
    Trace(TraceId, BTreeSet<String>),
    /// Everything that happened from one time on, before another.
    Between(Option<Timestamp>, Option<Timestamp>),
}

#[derive(Debug, thiserror::Error)]
pub enum ExportFault {
    #[error("the record is damaged: {0}")]
    Record(#[from] RecordFault),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the record has no entry that matches the query")]
    Nothing,
    #[error(
        "a bundle has at most {} events and {} bytes, and this would have more: ask for less, with --since and --until",
        limits::EVENTS,
        limits::BUNDLE_BYTES
    )]
    TooMuch,
    #[error("the bundle could not be written: {0}")]
    Unwritable(String),
}

/// A bundle of what is wanted. What is recorded is signed first, so that all of it is covered.
pub async fn export(record: &dyn Record, wanted: &ExportSelection, now: Timestamp) -> Result<Vec<u8>, ExportFault> {
    record.sign(now).await?;
    let mut first = first(record).await?;
    loop {
        let taken = take(record, wanted).await;
        if let Some(taken) = disturbed(record, &mut first, taken).await? {
            return taken.bundle(wanted);
        }
    }
}

/// Where the record begins.
async fn first(record: &dyn Record) -> Result<Option<u64>, StoreError> {
    Ok(record.blocks(0, 1).await?.first().map(|block| block.first))
}

/// Nothing if old segments were deleted while they were read: the export must start again, and it is no
/// fault.
async fn disturbed<T>(
    record: &dyn Record,
    began_with: &mut Option<u64>,
    found: Result<T, ExportFault>,
) -> Result<Option<T>, ExportFault> {
    if let Err(ExportFault::Record(_)) = &found {
        let begins_with = first(record).await?;
        if std::mem::replace(began_with, begins_with) != begins_with {
            return Ok(None);
        }
    }
    found.map(Some)
}

/// How a record stands, from its first entry to its last.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RecordRange {
    pub first: u64,
    /// The index after the last entry.
    pub end: u64,
    /// Up to here it is signed.
    pub signed: u64,
    pub checkpoints: usize,
    pub sealed_segments: usize,
    /// Of the last entry.
    pub hash: String,
}

/// Goes through the whole record. The first fault ends it.
pub async fn examine(record: &dyn Record) -> Result<RecordRange, ExportFault> {
    let mut first = first(record).await?;
    loop {
        let stand = examine_once(record).await;
        if let Some(stand) = disturbed(record, &mut first, stand).await? {
            return Ok(stand);
        }
    }
}

async fn examine_once(record: &dyn Record) -> Result<RecordRange, ExportFault> {
    let checkpoints = record.checkpoints(0).await?;
    let signed = checkpoints.iter().map(|checkpoint| checkpoint.end).max().unwrap_or(0);
    let sealed_segments = checkpoints.iter().filter(|checkpoint| checkpoint.sealed).count();
    let count = checkpoints.len();
    let mut pass = Pass::begin(record, checkpoints).await?;
    let (first, mut hash) = (pass.first, String::new());
    while let Some((entries, _)) = pass.next(record).await? {
        hash = entries.last().map_or(hash, |entry| hex(&entry.hash));
    }
    let end = pass.at;
    pass.examination.end()?;
    Ok(RecordRange { first, end, signed, checkpoints: count, sealed_segments, hash })
}

/// A walk through all blocks.
struct Pass {
    examination: Examination,
    first: u64,
    /// Signs what came before the first entry.
    seal: Option<Checkpoint>,
    at: u64,
    read: VecDeque<chancery_core::Block>,
}

impl Pass {
    async fn begin(record: &dyn Record, checkpoints: Vec<Checkpoint>) -> Result<Self, ExportFault> {
        let beginning = first(record).await?;
        // Nothing is left: then it goes on where the last segment ended, or nothing was ever there.
        let sealed = || checkpoints.iter().filter(|one| one.sealed).map(|one| one.end).max().unwrap_or(0);
        let first = beginning.unwrap_or_else(sealed);
        let seal = checkpoints.iter().find(|one| one.sealed && one.end == first).cloned();
        let examination = Examination::begin(checkpoints, first)?;
        Ok(Self { examination, first, seal, at: first, read: VecDeque::new() })
    }

    async fn next(&mut self, record: &dyn Record) -> Result<Option<(Vec<Entry>, Vec<Segment>)>, ExportFault> {
        if self.read.is_empty() {
            self.read = record.blocks(self.at, BLOCKS_AT_ONCE).await?.into();
        }
        let Some(block) = self.read.pop_front() else { return Ok(None) };
        let seen = self.examination.block(&block)?;
        self.at = block.first.saturating_add(block.count);
        Ok(Some(seen))
    }
}

/// What was taken out, in the order of the record.
#[derive(Default)]
struct Taken {
    kept_from: u64,
    /// The seal before the first entry that is kept, as long as nothing else shows where the record begins.
    seal: Option<Checkpoint>,
    entries: Vec<Entry>,
    checkpoints: Vec<Checkpoint>,
    /// The index, the checkpoint, and the way between them.
    proofs: Vec<(u64, u64, Vec<String>)>,
}

async fn take(record: &dyn Record, wanted: &ExportSelection) -> Result<Taken, ExportFault> {
    let checkpoints = record.checkpoints(0).await?;
    // What was recorded since it was signed is not covered, and not taken.
    let signed = checkpoints.iter().map(|checkpoint| checkpoint.end).max().unwrap_or(0);
    let mut pass = Pass::begin(record, checkpoints).await?;
    let mut chosen = ChosenEntries::new(wanted);
    let mut taken = Taken { kept_from: pass.first, seal: pass.seal.take(), ..Taken::default() };
    while let Some((entries, segments)) = pass.next(record).await? {
        for entry in entries.into_iter().filter(|entry| entry.index < signed) {
            chosen.see(entry, &mut taken.entries);
        }
        if taken.entries.len() > limits::EVENTS {
            return Err(ExportFault::TooMuch);
        }
        segments.iter().for_each(|segment| taken.prove(segment));
    }
    if let Some(segment) = pass.examination.end()? {
        taken.prove(&segment);
    }
    taken.show_beginning(wanted);
    if chosen.found_nothing() { Err(ExportFault::Nothing) } else { Ok(taken) }
}

impl Taken {
    /// The last of each run of neighbours gets its way to the root of the segment.
    fn prove(&mut self, segment: &Segment) {
        let first = self.entries.partition_point(|entry| entry.index < segment.first);
        if first == self.entries.len() {
            return;
        }
        let tree = merkle::MerkleTree::of(&segment.hashes);
        for (place, entry) in self.entries.iter().enumerate().skip(first) {
            let goes_on = self.entries.get(place + 1).is_some_and(|next| next.index == entry.index + 1);
            let at = usize::try_from(entry.index - segment.first).unwrap_or(usize::MAX);
            if goes_on || at >= segment.hashes.len() {
                continue;
            }
            let path = tree.path(at).iter().map(|hash| hex(hash)).collect();
            self.proofs.push((entry.index, segment.checkpoint.number, path));
        }
        self.checkpoints.push(segment.checkpoint.clone());
        if segment.first == self.kept_from {
            self.seal = None;
        }
    }

    /// Where the record begins is shown by the first segment of it. If that is not there, the seal before it does.
    fn show_beginning(&mut self, wanted: &ExportSelection) {
        let rests_on_it = match wanted {
            ExportSelection::Between(..) => self.entries.first().is_some_and(|first| first.index == self.kept_from),
            ExportSelection::Task(_) | ExportSelection::Trace(..) => {
                let requests = self.entries.iter().filter(|entry| entry.kind == types::REQUESTED);
                let begun: BTreeSet<_> = requests.filter_map(|entry| entry.data["task"].as_str()).collect();
                self.entries.iter().filter_map(|entry| entry.data["task"].as_str()).any(|task| !begun.contains(task))
            }
        };
        if rests_on_it && let Some(seal) = self.seal.take() {
            self.checkpoints.insert(0, seal);
        }
    }

    /// An entry that no bundle can hold. The rest can be had without it.
    fn too_long(&self, seq: usize, bytes: usize) -> ExportFault {
        let what = match self.entries.get(seq) {
            Some(entry) => format!("entry {} of {}", entry.index, rfc3339(entry.at)),
            None => format!("what is made of an entry (event {seq})"),
        };
        let most = limits::LINE_BYTES;
        let message = format!("{what} has {bytes} bytes there, more than {most}: ask for less, with --since and --until");
        ExportFault::Unwritable(message)
    }

    fn bundle(self, wanted: &ExportSelection) -> Result<Vec<u8>, ExportFault> {
        let unwritable = |fault: &dyn std::fmt::Display| ExportFault::Unwritable(fault.to_string());
        let (first, last) = (self.entries.first(), self.entries.last());
        let span = first.zip(last).map(|(first, last)| (first.index, last.index)).unwrap_or_default();
        let mut events = Vec::new();
        let adapter = Adapter::default();
        let mut made = Vec::new();
        for Entry { at, kind, data, .. } in &self.entries {
            if let Some(event) = packets::event_of(&adapter, kind, *at, data).map_err(|fault| unwritable(&fault))? {
                let kind = serde_json::to_value(event.event_type).map_err(|fault| unwritable(&fault))?;
                let data = serde_json::to_value(&event.data).map_err(|fault| unwritable(&fault))?;
                let kind = kind.as_str().unwrap_or_default().to_owned();
                made.push(BundleEvent { kind, time: event.time, subject: event.subject, data });
            }
            let (time, subject) = (rfc3339(*at), subject_of(kind, data));
            events.push(BundleEvent { kind: kind.clone(), time, subject, data: data.clone() });
        }
        let time = last.map_or_else(String::new, |last| rfc3339(last.at));
        let own = |kind: &str, data: Value| BundleEvent { kind: kind.to_owned(), time: time.clone(), subject: None, data };
        events.extend(made);
        let links: Vec<Value> = self.entries.iter().enumerate().map(link).collect();
        let scope = scope(wanted, self.kept_from);
        events.extend(links.chunks(LINKS_IN_EVENT).map(|links| own(types::LINKS, json!({ "scope": scope, "links": links }))));
        events.extend(self.checkpoints.iter().map(|checkpoint| {
            let signature = URL_SAFE_NO_PAD.encode(&checkpoint.signature);
            let signed = own(types::CHECKPOINT, json!({ "body": checkpoint.body, "signature": signature }));
            BundleEvent { time: rfc3339(checkpoint.at), ..signed }
        }));
        events.extend(self.proofs.iter().map(|(index, checkpoint, path)| {
            own(types::PROOF, json!({ "index": index, "checkpoint": checkpoint, "path": path }))
        }));
        if events.len() > limits::EVENTS {
            return Err(ExportFault::TooMuch);
        }
        let stamp = Stamp {
            source: "urn:chancery:record".to_owned(),
            run: format!("record-{}-{}-{}", span.0, span.1, self.entries.len()),
            producer: "chancery".to_owned(),
            producer_version: env!("CARGO_PKG_VERSION").to_owned(),
            git: "unknown".to_owned(),
        };
        bundle::seal(&stamp, &events).map_err(|fault| match fault {
            SealFault::TooMuch(..) => ExportFault::TooMuch,
            SealFault::TooLong { seq, bytes } => self.too_long(seq, bytes),
            SealFault::Unwritable(fault) => unwritable(&fault),
        })
    }
}

fn link((seq, entry): (usize, &Entry)) -> Value {
    json!({ "seq": seq, "index": entry.index, "prev": hex(&entry.prev) })
}

fn scope(wanted: &ExportSelection, kept_from: u64) -> Value {
    let mut scope = match wanted {
        ExportSelection::Task(task) => json!({ "task": task }),
        ExportSelection::Trace(trace, _) => json!({ "trace": trace.to_string() }),
        ExportSelection::Between(since, until) => {
            let mut scope = json!({});
            // Readers of JSON have no larger numbers, and no entry has a later time.
            let most = MAX_SAFE_INTEGER as i64;
            for (name, time) in [("since", since), ("until", until)] {
                if let Some(time) = time {
                    scope[name] = json!(time.micros().clamp(-most, most));
                }
            }
            scope
        }
    };
    scope["kept_from"] = json!(kept_from);
    scope
}
