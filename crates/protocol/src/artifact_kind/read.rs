//! From an artifact or a part back to its kind. A newer version is refused, an unknown kind is opaque.

use serde::Deserialize;
use serde_json::Value;

use super::rvagent::THEIRS;
use super::{ArtifactKind, ArtifactVersions, KIND, SCHEMA, VENDOR, VERSION, WITNESS};
use crate::{Artifact, Error, Metadata, Part, PartContent};

impl ArtifactKind {
    /// Reads version 1 and nothing newer.
    pub fn from_artifact(artifact: &Artifact) -> Result<Self, Error> {
        Self::read(artifact, &ArtifactVersions::default())
    }

    /// The same for a part of a message.
    pub fn from_part(part: &Part) -> Result<Self, Error> {
        Self::read_part(part, &ArtifactVersions::default())
    }

    /// Reads a part of a message in one of these versions.
    pub fn read_part(part: &Part, versions: &ArtifactVersions) -> Result<Self, Error> {
        Self::of_parts(std::slice::from_ref(part), None, versions)
    }

    /// Reads an artifact in one of these versions.
    pub fn read(artifact: &Artifact, versions: &ArtifactVersions) -> Result<Self, Error> {
        Self::of_parts(&artifact.parts, artifact.metadata.as_ref(), versions)
    }

    fn of_parts(parts: &[Part], metadata: Option<&Metadata>, versions: &ArtifactVersions) -> Result<Self, Error> {
        let of_artifact = Tags::of(metadata);
        versions.check(of_artifact.version.as_deref())?;
        let opaque = || Self::Raw(parts.to_vec());
        let [part] = parts else { return Ok(opaque()) };
        let own = Tags::of(part.metadata.as_ref());
        versions.check(own.version.as_deref())?;
        let kind = own.kind.as_deref().or(of_artifact.kind.as_deref());
        let read = match (&part.content, kind) {
            (PartContent::Text(text), None | Some("text")) => Some(Self::Text(text.clone())),
            (PartContent::Data(json), Some("structured_json")) if own.kind.is_some() => {
                Some(Self::StructuredJson { value: json.to_value(), schema: own.schema })
            }
            (PartContent::Data(json), kind) => match said(&json.to_value(), kind) {
                Some(TaggedArtifact::RuLakeWitness { witness, .. }) if own.witness.is_some_and(|marked| marked != witness) => {
                    return Err(Error::invalid_field("metadata.ruvector.rvlake_witness", "is not the witness of the data"));
                }
                Some(said) => Some(said.into()),
                None => None,
            },
            _ => None,
        };
        Ok(read.unwrap_or_else(opaque))
    }
}

/// Data that says its kind itself. A tag beside it must say the same.
fn said(data: &Value, tagged: Option<&str>) -> Option<TaggedArtifact> {
    let ours = |kind| if kind == THEIRS { "rulake_witness" } else { kind };
    let kind = data.get("kind")?.as_str().map(ours)?;
    if tagged.is_some_and(|tagged| ours(tagged) != kind) {
        return None;
    }
    TaggedArtifact::deserialize(data).ok()
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum TaggedArtifact {
    /// The value inside, as some senders put it who cannot say anything about a part.
    StructuredJson {
        value: Value,
        schema: Option<String>,
    },
    VectorRef {
        backend: String,
        collection: String,
        witness: String,
        dim: u32,
        count: u64,
    },
    #[serde(rename = "rulake_witness", alias = "ru_lake_witness")]
    RuLakeWitness {
        witness: String,
        data_ref: String,
        #[serde(default)]
        capabilities: Vec<String>,
    },
}

impl From<TaggedArtifact> for ArtifactKind {
    fn from(said: TaggedArtifact) -> Self {
        match said {
            TaggedArtifact::StructuredJson { value, schema } => Self::StructuredJson { value, schema },
            TaggedArtifact::VectorRef { backend, collection, witness, dim, count } => {
                Self::VectorRef { backend, collection, witness, dim, count }
            }
            TaggedArtifact::RuLakeWitness { witness, data_ref, capabilities } => {
                Self::RuLakeWitness { witness, data_ref, capabilities }
            }
        }
    }
}

#[derive(Default)]
struct Tags {
    kind: Option<String>,
    version: Option<String>,
    witness: Option<String>,
    schema: Option<String>,
}

impl Tags {
    fn of(metadata: Option<&Metadata>) -> Self {
        let Some(metadata) = metadata else { return Self::default() };
        let object = metadata.to_object();
        let vendor = object.get(VENDOR);
        let tag = |name: &str| vendor?.get(name)?.as_str().map(str::to_owned);
        // A version that is no text is one we do not know.
        let version = vendor.and_then(|vendor| vendor.get(VERSION)).map(|version| match version {
            Value::String(version) => version.clone(),
            other => other.to_string(),
        });
        let schema = object.get(SCHEMA).and_then(Value::as_str).map(str::to_owned);
        Self { kind: tag(KIND), version, witness: tag(WITNESS), schema }
    }
}
