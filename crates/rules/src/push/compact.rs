//! What to send of a long backlog: pieces of one artifact as one, or the task as it is instead of all that led there.

use std::sync::Arc;

use chancery_protocol::{Artifact, ArtifactChunk, ArtifactId, Metadata, TaskEvent};
use serde::{Deserialize, Serialize};

use super::span::Span;
use crate::setting::more_than_zero;
use crate::task_state::weight;

/// How much may be pending for a lane before it is put together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// The largest number of events that wait.
    #[serde(deserialize_with = "more_than_zero")]
    pub backlog_events: u64,
    /// The largest size of the events that wait.
    #[serde(deserialize_with = "more_than_zero")]
    pub backlog_bytes: u64,
    /// Every entry is sent as it is, however many there are.
    pub preserve: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { backlog_events: 256, backlog_bytes: 4 << 20, preserve: false }
    }
}

/// An entry that waits, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct Pending<'a> {
    pub seq: u64,
    pub bytes: u64,
    /// The artifact it is a piece of, and whether it goes behind what is there.
    pub piece: Option<(&'a ArtifactId, bool)>,
}

impl<'a> Pending<'a> {
    pub fn of(seq: u64, event: &'a TaskEvent) -> Self {
        let piece = match event {
            TaskEvent::Artifact(chunk) => Some((&chunk.artifact.artifact_id, chunk.append)),
            _ => None,
        };
        Self { seq, bytes: weight(event), piece }
    }

    /// Whether this one and what came before it can be one.
    fn continues(&self, before: Option<&ArtifactId>) -> bool {
        matches!(self.piece, Some((artifact, true)) if Some(artifact) == before)
    }
}

/// The next delivery of a lane of which nothing has been sent yet. `pending` are the entries for it from its
/// head to its `tail`, in order; no more of them are read than the bounds allow. None without pending
/// entries.
pub fn next_span<'a>(bounds: &Bounds, tail: u64, pending: impl IntoIterator<Item = Pending<'a>>) -> Option<Span> {
    let mut pending = pending.into_iter();
    let first = pending.next()?;
    if bounds.preserve {
        return Some(Span::single(first.seq));
    }
    let (mut entries, mut groups, mut bytes) = (1, 1, first.bytes);
    let mut first_group = first.seq;
    let mut artifact = first.piece.map(|(artifact, _)| artifact);
    for entry in pending {
        entries += 1;
        bytes = u64::saturating_add(bytes, entry.bytes);
        if !entry.continues(artifact) {
            groups += 1;
            artifact = entry.piece.map(|(artifact, _)| artifact);
        } else if groups == 1 {
            first_group = entry.seq;
        }
        if groups > bounds.backlog_events || bytes > bounds.backlog_bytes {
            return Some(Span::snapshot(tail));
        }
    }
    let merge = entries > bounds.backlog_events && first_group > first.seq;
    Some(if merge { Span::merged(first_group) } else { Span::single(first.seq) })
}

/// Pieces of one artifact as one piece that has the same effect. None unless each continues the one before.
pub fn merge<'a>(pieces: impl IntoIterator<Item = &'a ArtifactChunk>) -> Option<ArtifactChunk> {
    let mut pieces = pieces.into_iter();
    let mut whole = pieces.next()?.clone();
    for piece in pieces {
        if !piece.append || piece.artifact.artifact_id != whole.artifact.artifact_id {
            return None;
        }
        extend(Arc::make_mut(&mut whole.artifact), &piece.artifact);
        join(&mut whole.metadata, piece.metadata.as_ref());
        whole.unknown.extend(&piece.unknown);
        whole.last_chunk = piece.last_chunk;
    }
    Some(whole)
}

fn extend(whole: &mut Artifact, piece: &Artifact) {
    whole.parts.extend(piece.parts.iter().cloned());
    join(&mut whole.metadata, piece.metadata.as_ref());
    whole.unknown.extend(&piece.unknown);
}

fn join(whole: &mut Option<Metadata>, piece: Option<&Metadata>) {
    if let Some(piece) = piece {
        *whole = Some(whole.as_ref().map_or_else(|| piece.clone(), |whole| whole.merged(piece)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(events: u64) -> Bounds {
        Bounds { backlog_events: events, backlog_bytes: 1_000, preserve: false }
    }

    /// `a` begins artifact a, `+` continues what is before it, everything else is a status.
    fn pending(text: &str) -> Vec<(Option<(ArtifactId, bool)>, u64)> {
        let mut artifact = ArtifactId::from("none");
        let piece = |letter: char| match letter {
            'a' | 'b' => {
                artifact = ArtifactId::from(letter.to_string());
                Some((artifact.clone(), false))
            }
            '+' => Some((artifact.clone(), true)),
            _ => None,
        };
        text.chars().map(piece).map(|piece| (piece, 10)).collect()
    }

    fn plan(bounds: &Bounds, text: &str) -> Option<Span> {
        let entries = pending(text);
        let tail = entries.len() as u64;
        let pending = entries.iter().zip(1..).map(|((piece, bytes), seq)| Pending {
            seq,
            bytes: *bytes,
            piece: piece.as_ref().map(|(artifact, append)| (artifact, *append)),
        });
        next_span(bounds, tail, pending)
    }

    #[test]
    fn a_short_backlog_is_sent_as_it_is() {
        assert_eq!(plan(&bounds(4), ""), None);
        assert_eq!(plan(&bounds(4), "a+++"), Some(Span::single(1)), "exactly at the bound");
        assert_eq!(plan(&bounds(4), "sssss"), Some(Span::snapshot(5)), "one more");
    }

    #[test]
    fn pieces_of_one_artifact_become_one_before_anything_is_left_out() {
        assert_eq!(plan(&bounds(4), "a++++"), Some(Span::merged(5)));
        assert_eq!(plan(&bounds(4), "a+++s"), Some(Span::merged(4)));
        assert_eq!(plan(&bounds(4), "sa+++"), Some(Span::single(1)), "what comes first is sent first");
        assert_eq!(plan(&bounds(4), "a+b+s+++"), Some(Span::merged(2)), "a piece after a status begins anew");
        assert_eq!(plan(&bounds(3), "a+b+s+++"), Some(Span::snapshot(8)));
    }

    #[test]
    fn too_many_bytes_become_a_snapshot_and_merging_does_not_help() {
        let tight = Bounds { backlog_events: 256, backlog_bytes: 40, preserve: false };
        assert_eq!(plan(&tight, "a+++"), Some(Span::single(1)));
        assert_eq!(plan(&tight, "a++++"), Some(Span::snapshot(5)));
        assert_eq!(plan(&Bounds { preserve: true, ..tight }, "a++++"), Some(Span::single(1)));
    }

    #[test]
    fn no_more_entries_are_read_than_the_bounds_allow() {
        let (artifact, mut read) = (ArtifactId::from("a"), 0);
        let endless = (1..).inspect(|_| read += 1).map(|seq| Pending { seq, bytes: 10, piece: Some((&artifact, true)) });
        assert_eq!(next_span(&bounds(4), 1_000_000, endless), Some(Span::snapshot(1_000_000)));
        assert_eq!(read, 101);
    }
}
