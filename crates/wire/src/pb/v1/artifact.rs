//! Artifacts.

use chancery_protocol::{Artifact, Error};

use super::message::{read_part, write_part};
use super::proto;
use crate::pb::fields::{list, metadata, optional, or_empty, text, to_metadata};

pub(super) fn read(artifact: proto::Artifact) -> Result<Artifact, Error> {
    Ok(Artifact {
        artifact_id: text(artifact.artifact_id, "artifact_id")?,
        name: optional(artifact.name),
        description: optional(artifact.description),
        parts: list(artifact.parts, "parts", read_part)?,
        metadata: metadata(artifact.metadata, "metadata")?,
        extensions: artifact.extensions,
        unknown: Default::default(),
    })
}

pub(super) fn write(artifact: &Artifact) -> proto::Artifact {
    proto::Artifact {
        artifact_id: artifact.artifact_id.to_string(),
        name: or_empty(artifact.name.as_ref()),
        description: or_empty(artifact.description.as_ref()),
        parts: artifact.parts.iter().map(write_part).collect(),
        metadata: to_metadata(artifact.metadata.as_ref()),
        extensions: artifact.extensions.clone(),
    }
}
