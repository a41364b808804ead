//! Artifacts of a remote agent: chunks as they arrive, and what a snapshot of the task adds to them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use chancery_identity::SealKey;
use chancery_protocol::{Artifact, ArtifactChunk, ArtifactId, Part, PartContent, Task, TaskEvent, Unknown};
use chancery_wire::tolerant::Leniency;

use super::Mirror;

impl Mirror {
    /// A piece of an artifact.
    pub(super) fn piece(&mut self, mut chunk: ArtifactChunk) -> Vec<TaskEvent> {
        let id = chunk.artifact.artifact_id.clone();
        let known = self.artifact(&id);
        if chunk.append && known.is_none() {
            chunk.append = false;
            self.overlook(Leniency::AppendToUnknownArtifact);
        }
        let known = self.artifact(&id);
        // An empty piece ends an artifact and takes nothing from it.
        if known.is_some() && chunk.artifact.parts.is_empty() {
            chunk.append = true;
        }
        // A whole one may be heard twice. A piece that comes twice may well be meant so.
        let closes = chunk.last_chunk && !self.closed.contains(&id);
        let is_repeated = !chunk.append
            && known == Some(&*without_large_parts(&chunk.artifact))
            && !closes
            && chunk.metadata.is_none()
            && chunk.unknown.is_empty();
        if is_repeated {
            return Vec::new();
        }
        if known.is_none() {
            self.begun.push(id);
        }
        vec![TaskEvent::Artifact(chunk)]
    }

    /// The artifacts of a snapshot, as far as they were not forwarded.
    pub(super) fn unseen_artifacts(&self, picture: &Task) -> Vec<TaskEvent> {
        let shown: BTreeSet<&ArtifactId> = picture.artifacts.iter().map(|artifact| &artifact.artifact_id).collect();
        // A picture replaces what was collected from events, also where it gives the artifacts other ids.
        let mut replaced = self.begun.iter().filter(|id| !shown.contains(id));
        let ended = picture.status.state.is_terminal();
        let unseen = picture.artifacts.iter().filter_map(|artifact| {
            let id = &artifact.artifact_id;
            let known = if self.artifact(id).is_some() { Some(id) } else { replaced.next() };
            match known {
                Some(known) if known != id => {
                    let renamed = Arc::new(Artifact { artifact_id: known.clone(), ..Artifact::clone(artifact) });
                    self.unseen(&renamed, ended)
                }
                _ => self.unseen(artifact, ended),
            }
        });
        unseen.collect()
    }

    /// The part of an artifact that was not forwarded: the new end, if it has grown, or all of it.
    fn unseen(&self, artifact: &Arc<Artifact>, last_chunk: bool) -> Option<TaskEvent> {
        let whole = || (Arc::clone(artifact), false);
        let (artifact, append) = match self.artifact(&artifact.artifact_id) {
            None => whole(),
            Some(seen) if *seen == *without_large_parts(artifact) => return None,
            // The same words in other pieces.
            Some(seen) if is_same_text(seen, artifact) => return None,
            Some(seen) => {
                let brief = without_large_parts(artifact);
                let grown =
                    brief.parts.starts_with(&seen.parts) && Artifact { parts: seen.parts.clone(), ..brief.into_owned() } == *seen;
                let rest = || Artifact { parts: artifact.parts[seen.parts.len()..].to_vec(), ..(**artifact).clone() };
                if grown { (Arc::new(rest()), true) } else { whole() }
            }
        };
        Some(TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk, metadata: None, unknown: Unknown::none() }))
    }

    /// Every artifact that came in more pieces of text than it has, in one piece. For callers who did not ask for a stream: they
    /// read the first part for the answer.
    pub(in super::super) fn joined(&mut self) -> Vec<TaskEvent> {
        let cut = self.seen.artifacts.iter().filter(|artifact| self.begun.contains(&artifact.artifact_id));
        let joined = cut.filter_map(|artifact| {
            let parts = join_texts(&artifact.parts)?;
            let artifact = Arc::new(Artifact { parts, ..Artifact::clone(artifact) });
            let (metadata, unknown) = (None, Unknown::none());
            Some(TaskEvent::Artifact(ArtifactChunk { artifact, append: false, last_chunk: true, metadata, unknown }))
        });
        let joined: Vec<_> = joined.collect();
        joined.iter().for_each(|event| self.note(event));
        joined
    }

    fn artifact(&self, id: &ArtifactId) -> Option<&Artifact> {
        self.seen.artifacts.iter().find(|artifact| artifact.artifact_id == *id).map(|artifact| &**artifact)
    }
}

/// Neighbouring texts in one part. `None` if there is nothing to join, or a part that is known by its digest alone.
pub(in super::super) fn join_texts(parts: &[Part]) -> Option<Vec<Part>> {
    if parts.iter().any(|part| matches!(part.content, PartContent::Raw(_))) {
        return None;
    }
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if is_plain_text(last) && is_plain_text(part) && last.media_type == part.media_type => {
                if let (PartContent::Text(text), PartContent::Text(more)) = (&mut last.content, &part.content) {
                    text.push_str(more);
                }
            }
            _ => joined.push(part.clone()),
        }
    }
    (joined.len() < parts.len()).then_some(joined)
}

fn is_plain_text(part: &Part) -> bool {
    matches!(part.content, PartContent::Text(_)) && part.metadata.is_none() && part.unknown.is_empty() && part.filename.is_none()
}

/// Whether two artifacts are the same words, however they are cut.
fn is_same_text(one: &Artifact, other: &Artifact) -> bool {
    let is_text = |artifact: &Artifact| !artifact.parts.is_empty() && artifact.parts.iter().all(is_plain_text);
    fn text(artifact: &Artifact) -> impl Iterator<Item = u8> {
        let words = artifact.parts.iter().filter_map(|part| match &part.content {
            PartContent::Text(text) => Some(text.bytes()),
            _ => None,
        });
        words.flatten()
    }
    is_text(one) && is_text(other) && one.name == other.name && text(one).eq(text(other))
}

/// As much of an artifact as it takes to know it again: the digest of what is large.
pub(super) fn without_large_parts(artifact: &Artifact) -> Cow<'_, Artifact> {
    const LARGE: usize = 4096;
    let is_large = |part: &Part| matches!(&part.content, PartContent::Raw(bytes) if bytes.len() > LARGE);
    if !artifact.parts.iter().any(is_large) {
        return Cow::Borrowed(artifact);
    }
    let mut brief = artifact.clone();
    for part in &mut brief.parts {
        if let PartContent::Raw(bytes) = &mut part.content
            && bytes.len() > LARGE
        {
            *bytes = Bytes::copy_from_slice(&SealKey::digest(bytes));
        }
    }
    Cow::Owned(brief)
}
