//! Large parts of artifacts and messages, put into the tier and put back: what stays in their place is a link with digest and size.

use std::sync::Arc;

use bytes::Bytes;
use chancery_protocol::{Json, Metadata, Part, PartContent, TaskId};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{ArtifactsConfig, Digest, MemoryError, Tier};

const VENDOR: &str = "ruvector";
const MARK: &str = "offload";

#[derive(Debug)]
pub struct Offload {
    tier: Arc<Tier>,
    /// The folder of this node: others on the tier have tasks of their own.
    folder: String,
    /// Where callers find what was put away; without a slash at its end.
    base: String,
    above: usize,
    restore: u64,
    of_task: u64,
}

/// What a link says of the part it stands for.
struct Mark {
    digest: Digest,
    bytes: u64,
    kind: Kind,
}

/// What it is the bytes of.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Raw,
    Text,
    Data,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Raw, Self::Text, Self::Data];

    const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Text => "text",
            Self::Data => "data",
        }
    }
}

/// The bytes of a part that has any.
fn content(part: &Part) -> Option<(&[u8], Kind)> {
    match &part.content {
        PartContent::Raw(bytes) => Some((bytes, Kind::Raw)),
        PartContent::Text(text) => Some((text.as_bytes(), Kind::Text)),
        PartContent::Data(json) => Some((json.text().as_bytes(), Kind::Data)),
        PartContent::Url(_) => None,
    }
}

impl Mark {
    /// What an agent or a caller says of links elsewhere is theirs, and means nothing here.
    fn of(part: &Part) -> Option<Self> {
        let PartContent::Url(url) = &part.content else { return None };
        let metadata = part.metadata.as_ref().filter(|metadata| metadata.text().contains(MARK))?;
        let vendor = metadata.get(VENDOR)?;
        let mark = vendor.get(MARK)?;
        let digest: Digest = mark["digest"].as_str()?.strip_prefix("sha256:")?.parse().ok()?;
        let (_, path) = url.rsplit_once("/artifacts/")?;
        path.split_once('/').filter(|(_, named)| *named == digest.to_string())?;
        let kind = Kind::ALL.into_iter().find(|kind| mark["kind"] == kind.name())?;
        Some(Self { digest, bytes: mark["bytes"].as_u64()?, kind })
    }
}

impl Offload {
    /// `node` is a name that no other node on the tier has.
    pub fn new(tier: Arc<Tier>, node: &str, public_url: &str, config: &ArtifactsConfig) -> Self {
        let folder = format!("{MARK}/{node}");
        let above = usize::try_from(config.offload_above_bytes).unwrap_or(usize::MAX);
        let base = format!("{}/artifacts", public_url.trim_end_matches('/'));
        Self { tier, folder, base, above, restore: config.restore_bytes, of_task: config.offload_task_bytes }
    }

    pub fn restore_bytes(&self) -> u64 {
        self.restore
    }

    /// The most for one task.
    pub fn task_bytes(&self) -> u64 {
        self.of_task
    }

    pub fn is_large(&self, part: &Part) -> bool {
        content(part).is_some_and(|(bytes, _)| bytes.len() > self.above)
    }

    /// Large parts go; they are durable in the tier when this returns.
    pub fn put_away(&self, task: &TaskId, mut parts: Vec<Part>) -> Result<Vec<Part>, MemoryError> {
        let folder = self.folder(task)?;
        for part in parts.iter_mut().filter(|part| self.is_large(part)) {
            let Some((content, kind)) = content(part) else { continue };
            let mut vendor = match part.metadata.as_ref().and_then(|metadata| metadata.get(VENDOR)) {
                None => Map::new(),
                Some(Value::Object(vendor)) if !vendor.contains_key(MARK) => vendor,
                // There is no room for a mark in what it says of itself.
                Some(_) => continue,
            };
            let digest = Digest::of(content);
            self.tier.shelf().write(&format!("{folder}/{digest}"), content)?;
            let mark = json!({ "digest": format!("sha256:{digest}"), "bytes": content.len(), "kind": kind.name() });
            vendor.insert(MARK.to_owned(), mark);
            let metadata = part.metadata.take().unwrap_or_else(Metadata::empty);
            part.metadata = Some(metadata.with(VENDOR, Json::from_value(&Value::Object(vendor))));
            part.content = PartContent::Url(format!("{}/{task}/{digest}", self.base));
        }
        Ok(parts)
    }

    /// How many bytes of them are in the tier.
    pub fn away(&self, parts: &[Part]) -> u64 {
        parts.iter().filter_map(Mark::of).fold(0, |sum, mark| sum.saturating_add(mark.bytes))
    }

    /// As they came. A link that leads to nothing here stays one.
    pub fn put_back(&self, task: &TaskId, mut parts: Vec<Part>) -> Result<Vec<Part>, MemoryError> {
        let folder = self.folder(task)?;
        for part in &mut parts {
            let Some(mark) = Mark::of(part) else { continue };
            let name = format!("{folder}/{}", mark.digest);
            if self.tier.shelf().size(&name)? != Some(mark.bytes) {
                continue;
            }
            let content = self.tier.shelf().read(&name, mark.bytes)?;
            let content = content.ok_or(MemoryError::Tampered("a part that was put away is gone"))?;
            let other = || MemoryError::Tampered("a part that was put away is not what it was");
            if Digest::of(&content) != mark.digest {
                return Err(other());
            }
            let text = |content| String::from_utf8(content).map_err(|_| other());
            part.content = match mark.kind {
                Kind::Raw => PartContent::Raw(Bytes::from(content)),
                Kind::Text => PartContent::Text(text(content)?),
                Kind::Data => PartContent::Data(Json::parse(text(content)?).map_err(|_| other())?),
            };
            part.metadata = part.metadata.take().and_then(|metadata| unmarked(&metadata));
        }
        Ok(parts)
    }

    pub fn length(&self, task: &TaskId, digest: &str) -> Result<Option<u64>, MemoryError> {
        let Ok(digest) = digest.parse::<Digest>() else { return Ok(None) };
        self.tier.shelf().size(&format!("{}/{digest}", self.folder(task)?))
    }

    pub fn piece(&self, task: &TaskId, digest: &str, from: u64, most: u64) -> Result<Vec<u8>, MemoryError> {
        let wrong = |reason| MemoryError::Reference { field: "digest", reason };
        let digest: Digest = digest.parse().map_err(wrong)?;
        self.tier.shelf().read_range(&format!("{}/{digest}", self.folder(task)?), from, most)
    }

    pub fn tasks(&self) -> Result<Vec<TaskId>, MemoryError> {
        Ok(self.tier.shelf().list(&self.folder)?.iter().map(|name| TaskId::from(name.as_str())).collect())
    }

    pub fn forget(&self, task: &TaskId) -> Result<(), MemoryError> {
        self.tier.shelf().remove_all(&self.folder(task)?)
    }

    /// Of a task of ours: other ids name no folder.
    fn folder(&self, task: &TaskId) -> Result<String, MemoryError> {
        let id = Uuid::parse_str(task.as_str()).map_err(|_| MemoryError::Reference { field: "task", reason: "is not a task" })?;
        Ok(format!("{}/{id}", self.folder))
    }
}

fn unmarked(metadata: &Metadata) -> Option<Metadata> {
    let Some(Value::Object(mut vendor)) = metadata.get(VENDOR) else { return Some(metadata.clone()) };
    vendor.remove(MARK);
    match vendor.is_empty() {
        true => metadata.without(VENDOR),
        false => Some(metadata.with(VENDOR, Json::from_value(&Value::Object(vendor)))),
    }
}
