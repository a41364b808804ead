//! Raw packets as files, each under its digest.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::error::{AdapterError, AdapterErrorKind};
use super::raw_payloads::{AttachmentPolicy, RawPayloadRef, RawPayloads};

/// Keeps packets in a folder, as `FOLDER/ab/abcd…`: two digits of the digest, then all of it. Only the owner can read them.
#[derive(Debug)]
pub struct FolderRawPayloads {
    folder: PathBuf,
    policy: AttachmentPolicy,
}

impl FolderRawPayloads {
    pub fn new(folder: impl Into<PathBuf>, policy: AttachmentPolicy) -> Self {
        Self { folder: folder.into(), policy }
    }

    /// Where the bytes behind a digest are.
    pub fn path(&self, sha256: &str) -> PathBuf {
        self.folder.join(sha256.get(..2).unwrap_or_default()).join(sha256)
    }
}

impl RawPayloads for FolderRawPayloads {
    /// Keeping the same bytes again is no error and writes nothing.
    fn keep(&self, bytes: &[u8], media_type: &str) -> Result<RawPayloadRef, AdapterError> {
        let reference = RawPayloadRef::of(bytes, self.policy.admit(bytes, media_type)?);
        let path = self.path(&reference.sha256);
        if !path.exists() {
            write_whole(&path, bytes).map_err(|fault| {
                AdapterError::new(AdapterErrorKind::Infrastructure, format!("the raw payload could not be kept: {fault}"))
            })?;
        }
        Ok(reference)
    }
}

/// Written under another name first, so that no reader finds half of it.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let part = path.with_extension(format!("part-{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // The fault that is told is the one that matters.
        let _ = fs::remove_file(&part);
    }
    written
}
