//! Large parts of artifacts and messages, put into the tier and put back: what stays in their place is a link with digest and size.

mod mark;

use std::sync::Arc;

use bytes::Bytes;
use chancery_identity::SealKey;
use chancery_protocol::{Json, Part, PartContent, TaskId};
use uuid::Uuid;

use self::mark::{Mark, OffloadedKind, room_for_mark, seems_sealed, unmarked, unsealed};
use crate::{ArtifactsConfig, Digest, MemoryError, Tier};

const FOLDER: &str = "offload";

#[derive(Debug)]
pub struct Offload {
    tier: Arc<Tier>,
    /// Seals the links, so that only this node can make one.
    key: SealKey,
    /// The folder of this node: others on the tier have tasks of their own.
    folder: String,
    /// The address at which callers find offloaded parts; without a slash at its end.
    base: String,
    above: usize,
    restore: u64,
    of_task: u64,
}

/// The bytes of a part that has any.
fn content(part: &Part) -> Option<(&[u8], OffloadedKind)> {
    match &part.content {
        PartContent::Raw(bytes) => Some((bytes, OffloadedKind::Raw)),
        PartContent::Text(text) => Some((text.as_bytes(), OffloadedKind::Text)),
        PartContent::Data(json) => Some((json.text().as_bytes(), OffloadedKind::Data)),
        PartContent::Url(_) => None,
    }
}

impl Offload {
    /// `node` is a name that no other node on the tier has.
    pub fn new(tier: Arc<Tier>, node: &str, key: SealKey, public_url: &str, config: &ArtifactsConfig) -> Self {
        let folder = format!("{FOLDER}/{node}");
        let above = usize::try_from(config.offload_above_bytes).unwrap_or(usize::MAX);
        let base = format!("{}/artifacts", public_url.trim_end_matches('/'));
        Self { tier, key, folder, base, above, restore: config.restore_bytes, of_task: config.offload_task_bytes }
    }

    pub fn restore_bytes(&self) -> u64 {
        self.restore
    }

    /// The most for one task.
    pub fn task_bytes(&self) -> u64 {
        self.of_task
    }

    /// Whether it may be one of this node's links, repeated by a caller or an agent.
    pub fn has_our_link(&self, part: &Part) -> bool {
        seems_sealed(part)
    }

    pub fn is_large(&self, part: &Part) -> bool {
        content(part).is_some_and(|(bytes, _)| bytes.len() > self.above)
    }

    /// Large parts go; they are durable in the tier when this returns.
    pub fn offload(&self, task: &TaskId, mut parts: Vec<Part>) -> Result<Vec<Part>, MemoryError> {
        let folder = self.folder(task)?;
        for part in &mut parts {
            // Without room for a mark in what it says of itself it stays.
            let Some(vendor) = room_for_mark(part).filter(|_| self.is_large(part)) else { continue };
            let Some((content, kind)) = content(part) else { continue };
            let mark = Mark { digest: Digest::of(content), bytes: content.len() as u64, kind };
            self.tier.shelf().write(&format!("{folder}/{}", mark.digest), content)?;
            let link = format!("{}/{task}/{}", self.base, mark.digest);
            mark.put_on(part, vendor, link, task, &self.key);
        }
        Ok(parts)
    }

    /// Links of this node that a caller or agent repeats belong to that caller or agent from now on.
    pub fn strip_foreign_links(&self, task: &TaskId, parts: &mut [Part]) {
        for part in parts.iter_mut().filter(|part| Mark::of(part, task, &self.key).is_some()) {
            part.metadata = part.metadata.as_ref().map(unsealed);
        }
    }

    /// How many bytes of them are in the tier.
    pub fn away(&self, task: &TaskId, parts: &[Part]) -> u64 {
        let marks = parts.iter().filter_map(|part| Mark::of(part, task, &self.key));
        marks.fold(0, |sum, mark| sum.saturating_add(mark.bytes))
    }

    /// How many bytes of a task are in the tier, including parts that no link names any more.
    pub fn weight(&self, task: &TaskId) -> Result<u64, MemoryError> {
        self.tier.shelf().weight(&self.folder(task)?)
    }

    /// As they came. A link that leads to nothing any more stays one.
    pub fn restore(&self, task: &TaskId, mut parts: Vec<Part>) -> Result<Vec<Part>, MemoryError> {
        let folder = self.folder(task)?;
        for part in &mut parts {
            let Some(mark) = Mark::of(part, task, &self.key) else { continue };
            let name = format!("{folder}/{}", mark.digest);
            if self.tier.shelf().size(&name)? != Some(mark.bytes) {
                continue;
            }
            let content = self.tier.shelf().read(&name, mark.bytes)?;
            let content = content.ok_or(MemoryError::Tampered("a stored part is missing from the tier"))?;
            let other = || MemoryError::Tampered("a stored part was changed");
            if Digest::of(&content) != mark.digest {
                return Err(other());
            }
            let text = |content| String::from_utf8(content).map_err(|_| other());
            part.content = match mark.kind {
                OffloadedKind::Raw => PartContent::Raw(Bytes::from(content)),
                OffloadedKind::Text => PartContent::Text(text(content)?),
                OffloadedKind::Data => PartContent::Data(Json::parse(text(content)?).map_err(|_| other())?),
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
