//! Artifacts whose shape a receiver can rely on, carried by parts that every version of the protocol has.
//!
//! The kind and its version are in `metadata.ruvector` of the artifact and of each part, so that a part keeps
//! its kind in a message too. A reader without support for them sees text or data.

mod read;
mod rvagent;
mod versions;

use serde_json::{Map, Value, json};

use crate::{Artifact, ArtifactId, Json, Metadata, Part, PartContent};

pub use self::rvagent::{around_rvagent, from_rvagent, to_rvagent};
pub use self::versions::{ARTIFACT_KIND_VERSION, ArtifactVersions, negotiate_version};

/// Where these facts stand in metadata.
const VENDOR: &str = "ruvector";
const KIND: &str = "artifact_kind";
const VERSION: &str = "artifact_kind_version";
const WITNESS: &str = "rvlake_witness";
const SCHEMA: &str = "schema";

/// The content of a typed artifact.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ArtifactKind {
    /// Plain text.
    Text(String),
    /// A value and, if there is one, the `$id` of the schema it obeys.
    StructuredJson {
        /// The JSON value.
        value: Value,
        /// The `$id` of the JSON Schema that the value obeys.
        schema: Option<String>,
    },
    /// Vectors that stay where they are.
    VectorRef {
        /// The name of the storage that has the vectors.
        backend: String,
        /// The name of the collection.
        collection: String,
        /// The digest of the collection's content.
        witness: String,
        /// The number of dimensions of each vector.
        dim: u32,
        /// The number of vectors.
        count: u64,
    },
    /// A ruLake bundle by its witness, with what the receiver is said to be allowed. What it may really do, its grant says.
    RuLakeWitness {
        /// The digest of the bundle's content.
        witness: String,
        /// The place of the data.
        data_ref: String,
        /// The operations that the sender says the receiver may do.
        capabilities: Vec<String>,
    },
    /// Everything else, and what is too new to be understood.
    Raw(Vec<Part>),
}

impl ArtifactKind {
    /// The word for it on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::StructuredJson { .. } => "structured_json",
            Self::VectorRef { .. } => "vector_ref",
            Self::RuLakeWitness { .. } => "rulake_witness",
            Self::Raw(_) => "raw",
        }
    }

    /// Makes an artifact of this kind, with its tags in the metadata.
    pub fn to_artifact(&self, id: impl Into<ArtifactId>) -> Artifact {
        Artifact { metadata: Some(vendor(self.tags())), ..Artifact::new(id, self.to_parts()) }
    }

    /// The parts alone, for a message. Each says what it is.
    pub fn to_parts(&self) -> Vec<Part> {
        let tagged = |part: Part, more: Option<(&str, &str)>| {
            let mut tags = self.tags();
            let mut metadata = Map::new();
            match more {
                Some((SCHEMA, schema)) => drop(metadata.insert(SCHEMA.to_owned(), json!(schema))),
                Some((name, value)) => drop(tags.insert(name.to_owned(), json!(value))),
                None => {}
            }
            metadata.insert(VENDOR.to_owned(), Value::Object(tags));
            Part { metadata: Some(Metadata::from_object(metadata)), ..part }
        };
        let data = |value: &Value| Part::new(PartContent::Data(Json::from_value(value)));
        match self {
            Self::Text(text) => vec![tagged(Part::text(text), None)],
            Self::StructuredJson { value, schema } => {
                vec![tagged(data(value), schema.as_deref().map(|schema| (SCHEMA, schema)))]
            }
            Self::VectorRef { backend, collection, witness, dim, count } => {
                let said = json!({
                    "kind": self.name(), "backend": backend, "collection": collection, "witness": witness, "dim": dim,
                    "count": count,
                });
                vec![tagged(data(&said), None)]
            }
            Self::RuLakeWitness { witness, data_ref, capabilities } => {
                let said = json!({
                    "kind": self.name(), "witness": witness, "data_ref": data_ref, "capabilities": capabilities,
                });
                vec![tagged(data(&said), Some((WITNESS, witness)))]
            }
            Self::Raw(parts) => parts.clone(),
        }
    }

    fn tags(&self) -> Map<String, Value> {
        Map::from_iter([(KIND.to_owned(), json!(self.name())), (VERSION.to_owned(), json!(ARTIFACT_KIND_VERSION))])
    }
}

fn vendor(tags: Map<String, Value>) -> Metadata {
    Metadata::from_object(Map::from_iter([(VENDOR.to_owned(), Value::Object(tags))]))
}
