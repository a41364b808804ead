//! Why a bundle is not what it says it is: the first reason that was found.

use std::fmt;

use chancery_identity::strict_json::StrictJsonFault;

/// The names of the faults of the format are its own; those from `ManifestAltered` on are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleFaultCode {
    IntegrityGzip,
    IntegrityTar,
    IntegrityManifestHash,
    IntegrityEventHash,
    IntegrityFileSizeMismatch,
    IntegrityRunRootMismatch,
    ContractSchemaVersion,
    ContractFileOrder,
    ContractMissingFile,
    ContractDuplicateFile,
    ContractUnexpectedFile,
    ContractRunIdMismatch,
    ContractBundleIdMismatch,
    ContractSequenceGap,
    ContractSequenceStart,
    ContractInvalidJson,
    ContractInvalidEvent,
    LimitPathLength,
    LimitFileSize,
    LimitTotalEvents,
    LimitLineBytes,
    LimitJsonDepth,
    LimitBundleBytes,
    LimitDecodeBytes,
    SecurityPathTraversal,
    SecurityAbsolutePath,
    /// The manifest is not the one that was written for these events.
    ManifestAltered,
    /// An entry is not as it was recorded.
    ChainAltered,
    /// An entry is not there that was.
    ChainMissing,
    ChainDuplicate,
    ChainOrder,
    ChainBackDated,
    /// An entry without what ties it to the record, or that what was asked for does not lead to.
    ChainUnlinked,
    /// Nothing that is signed covers an entry.
    ChainUnsigned,
    CheckpointSignature,
    /// A checkpoint that is not of this record, or not of this place in it.
    CheckpointSwapped,
    /// Signed by another key than the one that was asked for.
    CheckpointKey,
    /// A packet that its entry does not make.
    PacketMismatch,
}

impl fmt::Display for BundleFaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct BundleFault {
    pub code: BundleFaultCode,
    pub message: String,
}

impl BundleFault {
    pub(super) fn new(code: BundleFaultCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

pub(super) fn fault(code: BundleFaultCode, message: impl Into<String>) -> BundleFault {
    BundleFault::new(code, message)
}

/// What is wrong with a text that could not be read.
pub(super) fn unreadable(fault: &StrictJsonFault) -> BundleFaultCode {
    if fault.is_too_deep() { BundleFaultCode::LimitJsonDepth } else { BundleFaultCode::ContractInvalidJson }
}
