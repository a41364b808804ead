//! Remembers the newest checkpoint of the record outside of the database, so that checkpoints taken out of it are missed.

use std::sync::{Arc, Mutex, PoisonError};

use chancery_core::Checkpoint;
use chancery_evidence::record::{hex, sha256};
use serde::{Deserialize, Serialize};

use crate::data_folder::{DataFolder, FolderError};

pub(crate) const FILE: &str = "record-mark.json";

#[derive(Debug)]
pub(crate) struct RecordMark {
    folder: Option<Arc<DataFolder>>,
    remembered: Mutex<Option<Remembered>>,
}

/// The newest checkpoint at the last check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    number: u64,
    /// The index after the last entry it covers.
    end: u64,
    sealed: bool,
    /// Of its body.
    sha256: String,
    /// What was found to be missing. It stays until an operator deletes the file: the record goes on, and later checkpoints would
    /// cover it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

impl RecordMark {
    /// A file that cannot be read counts as evidence of a change, and does not stop the node.
    pub(crate) fn open(folder: Option<Arc<DataFolder>>) -> Result<Self, FolderError> {
        let bytes = folder.as_ref().map(|folder| folder.read(FILE)).transpose()?.flatten();
        let damaged = |fault: serde_json::Error| Remembered {
            number: 0,
            end: 0,
            sealed: false,
            sha256: String::new(),
            missing: Some(format!("{FILE} cannot be read: {fault}")),
        };
        let remembered = bytes.map(|bytes| serde_json::from_slice(&bytes).unwrap_or_else(damaged));
        Ok(Self { folder, remembered: Mutex::new(remembered) })
    }

    /// Compares the checkpoints of the record, in order, with what is remembered, and remembers the newest of them. The error says
    /// which are missing.
    pub(crate) fn compare(&self, checkpoints: &[Checkpoint]) -> Result<(), String> {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let before = remembered.clone();
        if let Some(mark) = &mut *remembered
            && mark.missing.is_none()
        {
            mark.missing = mark.missing_in(checkpoints);
        }
        let missing = remembered.as_ref().and_then(|mark| mark.missing.clone());
        if missing.is_none()
            && let Some(newest) = checkpoints.last()
        {
            *remembered = Some(Remembered::of(newest));
        }
        if let (Some(folder), Some(mark), true) = (&self.folder, &*remembered, *remembered != before) {
            let bytes = serde_json::to_vec(mark).unwrap_or_default();
            if let Err(error) = folder.write(FILE, &bytes) {
                tracing::warn!(%error, "cannot store the newest checkpoint of the record; the next start cannot tell if it is missing");
            }
        }
        missing.map_or(Ok(()), |missing| {
            Err(format!("{missing}. If the database was replaced on purpose, stop the node and delete {FILE} in its data folder"))
        })
    }
}

impl Remembered {
    fn of(checkpoint: &Checkpoint) -> Self {
        let Checkpoint { number, end, sealed, .. } = *checkpoint;
        Self { number, end, sealed, sha256: digest(checkpoint), missing: None }
    }

    fn missing_in(&self, checkpoints: &[Checkpoint]) -> Option<String> {
        let Self { number, end, .. } = *self;
        match checkpoints.iter().find(|checkpoint| checkpoint.number == number) {
            Some(same) if digest(same) == self.sha256 => return None,
            Some(_) => return Some(format!("checkpoint {number} was removed, and another was signed in its place")),
            None => {}
        }
        // A seal takes the place of the checkpoints before it in its segment.
        let replaces = |seal: &Checkpoint| seal.sealed && seal.number > number && seal.end >= end;
        if !self.sealed && checkpoints.iter().any(replaces) {
            return None;
        }
        let newest = checkpoints.last().map_or(0, |newest| newest.number);
        Some(match newest + 1 {
            first if first < number => format!("checkpoints {first} to {number} were removed"),
            _ => format!("checkpoint {number} was removed"),
        })
    }
}

fn digest(checkpoint: &Checkpoint) -> String {
    hex(&sha256(checkpoint.body.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::Timestamp;

    fn checkpoint(number: u64, end: u64, sealed: bool) -> Checkpoint {
        let body = format!("{number} {end}");
        Checkpoint { number, end, sealed, at: Timestamp::from_micros(0), body, signature: Vec::new() }
    }

    /// Looks at one record and then, after a restart, at another.
    fn found(first: &[Checkpoint], then: &[Checkpoint]) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let mark = || RecordMark::open(Some(Arc::new(DataFolder::claim(folder.path()).unwrap()))).unwrap();
        mark().compare(first).unwrap();
        let found = mark().compare(then);
        // What was missed is not forgotten when the record goes on.
        let later = [then, &[checkpoint(90, 900, true)]].concat();
        assert_eq!(mark().compare(&later).is_err(), found.is_err());
        found
    }

    #[test]
    fn checkpoints_that_are_gone_or_were_replaced_are_named_also_later() {
        let three = [checkpoint(1, 4, false), checkpoint(2, 8, false), checkpoint(3, 12, false)];
        let named = |then: &[Checkpoint]| found(&three, then).unwrap_err();
        assert!(named(&[]).starts_with("checkpoints 1 to 3 were removed. "), "{}", named(&[]));
        assert!(named(&three[..2]).starts_with("checkpoint 3 was removed. "));
        assert!(named(&[checkpoint(1, 4, false), checkpoint(2, 8, false), checkpoint(3, 9, false)]).contains("in its place"));
        assert!(named(&three[..1]).contains(FILE), "what to do about it");
    }

    #[test]
    fn a_record_that_goes_on_or_is_sealed_misses_nothing() {
        let two = [checkpoint(1, 4, false), checkpoint(2, 8, false)];
        let more = [two.as_slice(), &[checkpoint(3, 12, false)]].concat();
        assert_eq!(found(&[], &two), Ok(()));
        assert_eq!(found(&two, &two), Ok(()));
        assert_eq!(found(&two, &more), Ok(()));
        assert_eq!(found(&two, &[checkpoint(4, 16, true), checkpoint(5, 20, false)]), Ok(()), "a seal stands for them");
        let seal = [checkpoint(4, 16, true)];
        assert!(found(&seal, &[checkpoint(5, 20, true)]).is_err(), "and for no other seal");
    }

    #[test]
    fn a_mark_that_cannot_be_read_is_told_and_stops_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        let mark = RecordMark::open(Some(Arc::new(DataFolder::claim(folder.path()).unwrap()))).unwrap();
        assert!(mark.compare(&[checkpoint(1, 4, false)]).unwrap_err().contains("cannot be read"));
    }
}
