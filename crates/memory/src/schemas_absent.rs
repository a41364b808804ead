//! Stands in for the schemas in a build without the feature `schemas`: a folder of schemas is refused.

use std::path::Path;

use chancery_protocol::{Artifact, ArtifactKind, Error};

use crate::SchemaFault;

/// No schemas.
#[derive(Debug, Default)]
pub struct Schemas(());

impl Schemas {
    /// Refuses every folder: a node whose config asks for the check does not start without it.
    pub fn load(folder: &Path) -> Result<Self, SchemaFault> {
        let reason = "this build does not have the feature `schemas`".to_owned();
        Err(SchemaFault { file: folder.display().to_string(), reason })
    }

    pub fn check(&self, _: &Artifact, _: &ArtifactKind) -> Result<(), Error> {
        Ok(())
    }
}
