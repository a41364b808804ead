//! What can go wrong in the SQLite store, and how the port hears of it.

use std::sync::Arc;

use chancery_core::StoreError;
use rusqlite::ErrorCode;

/// Cheap to clone, because one failed commit is the answer to many appends.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Sqlite(Arc<rusqlite::Error>),
    #[error("what is stored cannot be read: {0}")]
    Unreadable(Arc<str>),
}

impl Fault {
    pub(super) fn unreadable(what: impl AsRef<str>) -> Self {
        Self::Unreadable(what.as_ref().into())
    }

    /// The fault lies in the one statement and not in the database, the disk or the machine.
    pub(super) fn concerns_one_append(&self) -> bool {
        let code = match self {
            Self::Sqlite(error) => error.sqlite_error_code(),
            Self::Unreadable(_) => return true,
        };
        matches!(code, Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch))
    }

    pub(super) fn while_doing(self, what: &str) -> StoreError {
        StoreError::caused_by(format!("{what} failed: {self}"), self)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

pub(super) fn closed() -> StoreError {
    StoreError::new("the store is closed")
}

pub(super) fn stopped() -> StoreError {
    StoreError::new("the store stopped before it answered; whether it wrote is unknown")
}
