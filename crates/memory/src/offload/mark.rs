//! What a link says of the part it stands for, under a seal: others can write links that look like ours, and they mean nothing here.

use chancery_identity::SealKey;
use chancery_protocol::{Json, Metadata, Part, PartContent, TaskId};
use serde_json::{Map, Value, json};

use crate::Digest;

const VENDOR: &str = "ruvector";
const MARK: &str = "offload";
const SEAL: &str = "seal";
// not prose: an input of the key derivation, stored marks depend on it
const PURPOSE: &str = "a part that was put away";

pub(super) struct Mark {
    pub(super) digest: Digest,
    pub(super) bytes: u64,
    pub(super) kind: OffloadedKind,
}

/// What it is the bytes of.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum OffloadedKind {
    Raw,
    Text,
    Data,
}

impl OffloadedKind {
    const ALL: [Self; 3] = [Self::Raw, Self::Text, Self::Data];

    const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Text => "text",
            Self::Data => "data",
        }
    }
}

/// Whether there is something like a seal in what it says of itself. Asked for every part that comes in.
pub(super) fn seems_sealed(part: &Part) -> bool {
    let holds = |metadata: &Metadata| metadata.text().contains(MARK) && metadata.text().contains(SEAL);
    matches!(part.content, PartContent::Url(_)) && part.metadata.as_ref().is_some_and(holds)
}

/// The vendor's corner of what a part says of itself, if a mark fits in there.
pub(super) fn room_for_mark(part: &Part) -> Option<Map<String, Value>> {
    match part.metadata.as_ref().and_then(|metadata| metadata.get(VENDOR)) {
        None => Some(Map::new()),
        Some(Value::Object(vendor)) if !vendor.contains_key(MARK) => Some(vendor),
        Some(_) => None,
    }
}

impl Mark {
    /// The one this node made for this task.
    pub(super) fn of(part: &Part, task: &TaskId, key: &SealKey) -> Option<Self> {
        if !seems_sealed(part) {
            return None;
        }
        let vendor = part.metadata.as_ref()?.get(VENDOR)?;
        let said = vendor.get(MARK)?;
        let kind = OffloadedKind::ALL.into_iter().find(|kind| said["kind"] == kind.name())?;
        let digest = said["digest"].as_str()?.strip_prefix("sha256:")?.parse().ok()?;
        let mark = Self { digest, bytes: said["bytes"].as_u64()?, kind };
        let seal = said[SEAL].as_str()?;
        SealKey::same_secret(seal.as_bytes(), mark.seal(task, key).as_bytes()).then_some(mark)
    }

    /// Replaces a part by the link to its offloaded content.
    pub(super) fn put_on(&self, part: &mut Part, mut vendor: Map<String, Value>, link: String, task: &TaskId, key: &SealKey) {
        let mark = json!({
            "digest": format!("sha256:{}", self.digest),
            "bytes": self.bytes,
            "kind": self.kind.name(),
            SEAL: self.seal(task, key),
        });
        vendor.insert(MARK.to_owned(), mark);
        let metadata = part.metadata.take().unwrap_or_else(Metadata::empty);
        part.metadata = Some(metadata.with(VENDOR, Json::from_value(&Value::Object(vendor))));
        part.content = PartContent::Url(link);
    }

    fn seal(&self, task: &TaskId, key: &SealKey) -> String {
        let said = format!("{task} {} {} {}", self.digest, self.bytes, self.kind.name());
        key.mark(PURPOSE, said.as_bytes())[..16].iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }
}

/// What a part says of itself, without the mark.
pub(super) fn unmarked(metadata: &Metadata) -> Option<Metadata> {
    let Some(Value::Object(mut vendor)) = metadata.get(VENDOR) else { return Some(metadata.clone()) };
    vendor.remove(MARK);
    match vendor.is_empty() {
        true => metadata.without(VENDOR),
        false => Some(metadata.with(VENDOR, Json::from_value(&Value::Object(vendor)))),
    }
}

/// The same without the seal of a mark: a link that a reader saw and repeats belongs to that reader.
pub(super) fn unsealed(metadata: &Metadata) -> Metadata {
    let mut vendor = metadata.get(VENDOR).unwrap_or_default();
    if let Some(Value::Object(mark)) = vendor.get_mut(MARK) {
        mark.remove(SEAL);
    }
    metadata.with(VENDOR, Json::from_value(&vendor))
}
