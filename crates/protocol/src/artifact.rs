//! What a task produces.

use std::sync::Arc;

use crate::lenient::{non_empty, null_default};
use crate::unknown::open_object;
use crate::{ArtifactId, Metadata, Part, Unknown};

open_object! {
    /// A result of a task.
    pub struct Artifact {
        /// The id of the artifact, unique in its task.
        #[serde(alias = "artifact_id")]
        pub artifact_id: ArtifactId,
        /// The name that people read.
        #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        /// A text about the artifact for people.
        #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
        pub description: Option<String>,
        /// The content.
        #[serde(default, deserialize_with = "null_default")]
        pub parts: Vec<Part>,
        /// The metadata of the artifact.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub metadata: Option<Metadata>,
        /// The URIs of the extensions that the artifact uses.
        #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
        pub extensions: Vec<String>,
    }
    knows [
        "artifactId", "artifact_id", "name", "description", "parts", "metadata", "extensions", "index",
        "append", "lastChunk",
    ]
}

impl Artifact {
    /// An artifact with just an id and parts; set the rest with struct update.
    pub fn new(artifact_id: impl Into<ArtifactId>, parts: Vec<Part>) -> Self {
        Self {
            artifact_id: artifact_id.into(),
            name: None,
            description: None,
            parts,
            metadata: None,
            extensions: Vec::new(),
            unknown: Unknown::none(),
        }
    }
}

open_object! {
    /// A whole artifact, or one more piece of it.
    pub struct ArtifactChunk {
        /// The artifact, or the piece to add.
        pub artifact: Arc<Artifact>,
        /// Extend the artifact of this id instead of replacing it.
        #[serde(default, deserialize_with = "null_default", skip_serializing_if = "std::ops::Not::not")]
        pub append: bool,
        /// Whether no more pieces follow.
        #[serde(default, alias = "last_chunk", deserialize_with = "null_default", skip_serializing_if = "std::ops::Not::not")]
        pub last_chunk: bool,
        /// The metadata of the event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub metadata: Option<Metadata>,
    }
    knows [
        "kind", "id", "taskId", "task_id", "contextId", "context_id", "artifact", "append", "lastChunk",
        "last_chunk", "status", "final", "metadata",
    ]
}
