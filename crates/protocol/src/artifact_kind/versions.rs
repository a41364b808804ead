//! The version of typed artifacts that two sides share, and the handling of a newer one.

use crate::{Error, ErrorKind};

/// What this build writes.
pub const ARTIFACT_KIND_VERSION: &str = "1";

/// The versions one side reads, as its card says them in `metadata.ruvector.artifact_kind_versions_supported`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactVersions {
    /// The versions that this side reads.
    pub supported: Vec<String>,
    /// Take an artifact of a newer version for what it is in ours, instead of refusing it.
    pub accept_lower_version_artifacts: bool,
}

impl Default for ArtifactVersions {
    fn default() -> Self {
        Self { supported: vec![ARTIFACT_KIND_VERSION.to_owned()], accept_lower_version_artifacts: false }
    }
}

impl ArtifactVersions {
    /// The version to write for the other side.
    pub fn agree(&self, theirs: &[String]) -> Result<String, Error> {
        negotiate_version(&self.supported, theirs).ok_or_else(|| self.unsupported(&theirs.join(", ")))
    }

    /// No version at all means the first one.
    pub(super) fn check(&self, version: Option<&str>) -> Result<(), Error> {
        match version {
            Some(version) if !self.supported.iter().any(|known| known == version) && !self.accept_lower_version_artifacts => {
                Err(self.unsupported(version))
            }
            _ => Ok(()),
        }
    }

    fn unsupported(&self, found: &str) -> Error {
        let supported = self.supported.join(", ");
        let message = format!("typed artifacts of version {found} are not read here, only {supported}");
        Error::new(ErrorKind::ContentTypeNotSupported, message)
            .with_fact("artifact_kind_version", found)
            .with_fact("artifact_kind_versions_supported", supported)
    }
}

/// The highest version both sides have. What is no number is nobody's version.
pub fn negotiate_version(ours: &[String], theirs: &[String]) -> Option<String> {
    let numbered = |version: &&String| version.parse::<u32>().is_ok();
    let common = ours.iter().filter(numbered).filter(|version| theirs.contains(version));
    common.max_by_key(|version| version.parse::<u32>().unwrap_or_default()).cloned()
}
