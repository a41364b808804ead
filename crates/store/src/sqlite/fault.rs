//! The faults of the SQLite store, and their form at the port.

use std::sync::Arc;

use chancery_core::{StoreError, StoreTrouble};
use rusqlite::ErrorCode;

use crate::rows::UnreadableRow;

/// Cheap to clone, because one failed commit is the answer to many appends.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum SqliteFault {
    #[error(transparent)]
    Sqlite(Arc<rusqlite::Error>),
    #[error(transparent)]
    Unreadable(UnreadableRow),
}

impl SqliteFault {
    pub(super) fn unreadable(what: impl AsRef<str>) -> Self {
        Self::Unreadable(UnreadableRow::new(what))
    }

    /// The fault lies in the one statement and not in the database, the disk or the machine.
    pub(super) fn concerns_one_append(&self) -> bool {
        let code = match self {
            Self::Sqlite(error) => error.sqlite_error_code(),
            Self::Unreadable(_) => return true,
        };
        matches!(code, Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch))
    }

    /// What it says about the database as a whole.
    pub(super) fn trouble(&self) -> StoreTrouble {
        let code = match self {
            Self::Sqlite(error) => error.sqlite_error_code(),
            Self::Unreadable(_) => return StoreTrouble::Damaged,
        };
        match code {
            Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch | ErrorCode::ApiMisuse) => {
                StoreTrouble::None
            }
            // A value of a kind that is never written.
            None | Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreTrouble::Damaged,
            Some(_) => StoreTrouble::Unavailable,
        }
    }

    /// SQLite itself has found the file damaged.
    pub(super) fn is_structural(&self) -> bool {
        let code = match self {
            Self::Sqlite(error) => error.sqlite_error_code(),
            Self::Unreadable(_) => None,
        };
        matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    }

    pub(super) fn while_doing(self, what: &str) -> StoreError {
        let trouble = self.trouble();
        let advice = if trouble == StoreTrouble::Damaged { "; `chancery store check` names what is damaged" } else { "" };
        StoreError::caused_by(format!("{what} failed: {self}{advice}"), self).of_trouble(trouble)
    }
}

impl From<rusqlite::Error> for SqliteFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

impl From<UnreadableRow> for SqliteFault {
    fn from(row: UnreadableRow) -> Self {
        Self::Unreadable(row)
    }
}

pub(super) fn closed() -> StoreError {
    StoreError::new("the store is closed").of_trouble(StoreTrouble::Unavailable)
}

pub(super) fn stopped() -> StoreError {
    let message = "the store stopped before it answered; whether it wrote is unknown";
    StoreError::new(message).of_trouble(StoreTrouble::Unavailable)
}
