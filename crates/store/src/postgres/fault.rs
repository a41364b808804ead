//! The faults of the PostgreSQL store, and their form at the port.

use std::error::Error as _;
use std::sync::Arc;

use chancery_core::{StoreError, StoreTrouble};
use tokio_postgres::error::SqlState;

use crate::rows::UnreadableRow;

/// Cheap to clone, because one failed batch is the answer to many writes.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum PostgresFault {
    #[error("{}", in_words(.0))]
    Database(Arc<tokio_postgres::Error>),
    #[error(transparent)]
    Unreadable(UnreadableRow),
    /// There is no connection, or it broke.
    #[error("the database cannot be reached: {0}")]
    Away(Arc<str>),
    /// The server answers, and lets this node make no session.
    #[error("the database refuses the connection: {0}")]
    Refused(Arc<str>),
    /// Another node has closed this node's writer.
    #[error(
        "another node opened this database later, so it refuses the writes of this one; restart this node to use it here again"
    )]
    Fenced,
    /// The same for a member of a cluster.
    #[error("the lease of this node ended and another node took over its tasks, so its writes are refused; it has to join again")]
    Succeeded,
    /// Nodes that use the database keep this one from starting.
    #[error("the database is in use: {0}")]
    InUse(Arc<str>),
    /// The database has fewer batches than it had confirmed.
    #[error("the database lost commits that it had confirmed: {0}; check its replication settings, then restart this node")]
    LostCommits(Arc<str>),
}

/// What a fault means for the writes it was the answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultScope {
    /// One of the writes is impossible.
    OneWrite,
    /// The same may succeed when it is tried again: a lock, a deadlock.
    TryAgain,
    /// The connection is of no more use.
    Connection,
    /// The database refuses all work for now, or permanently.
    Whole,
}

impl PostgresFault {
    pub(super) fn unreadable(what: impl AsRef<str>) -> Self {
        Self::Unreadable(UnreadableRow::new(what))
    }

    pub(super) fn away(what: impl AsRef<str>) -> Self {
        Self::Away(what.as_ref().into())
    }

    pub(super) fn in_use(what: impl AsRef<str>) -> Self {
        Self::InUse(what.as_ref().into())
    }

    pub(super) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) => error.code(),
            _ => None,
        }
    }

    pub(super) fn scope(&self) -> FaultScope {
        let error = match self {
            Self::Database(error) => error,
            Self::Unreadable(_) => return FaultScope::OneWrite,
            Self::Away(_) | Self::Refused(_) => return FaultScope::Connection,
            Self::Fenced | Self::Succeeded | Self::InUse(_) | Self::LostCommits(_) => return FaultScope::Whole,
        };
        let Some(code) = error.code() else {
            // The driver names the step in its message alone.
            let message = error.to_string();
            let of_value =
                ["error serializing", "error encoding", "error deserializing"].iter().any(|step| message.starts_with(step));
            return if of_value { FaultScope::OneWrite } else { FaultScope::Connection };
        };
        match code.code() {
            "40001" | "40P01" | "55P03" | "57014" => FaultScope::TryAgain,
            // A server that became a standby, that stops, or that ended the session.
            "25006" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => FaultScope::Connection,
            code => match &code[..2.min(code.len())] {
                "08" => FaultScope::Connection,
                "21" | "22" | "23" | "54" => FaultScope::OneWrite,
                _ => FaultScope::Whole,
            },
        }
    }

    /// What it says about the database as a whole.
    pub(super) fn trouble(&self) -> StoreTrouble {
        let damaged = match self {
            Self::Unreadable(_) | Self::LostCommits(_) => true,
            _ => self.code().is_some_and(|code| matches!(code.code(), "XX001" | "XX002")),
        };
        match self.scope() {
            _ if damaged => StoreTrouble::Damaged,
            FaultScope::OneWrite => StoreTrouble::None,
            FaultScope::TryAgain | FaultScope::Connection => StoreTrouble::Away,
            FaultScope::Whole => StoreTrouble::Unavailable,
        }
    }

    pub(super) fn while_doing(self, what: &str) -> StoreError {
        let trouble = self.trouble();
        StoreError::caused_by(format!("{what} failed: {self}"), self).of_trouble(trouble)
    }
}

/// The message of the server, or of the cause: the driver's own says only in which part of it something failed.
pub(super) fn in_words(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(answer), _) => {
            let detail = answer.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
            format!("PostgreSQL answered {}: {}{detail}", answer.code().code(), answer.message())
        }
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

impl From<tokio_postgres::Error> for PostgresFault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(Arc::new(error))
    }
}

impl From<UnreadableRow> for PostgresFault {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_connection_is_unavailable_and_damage_is_said() {
        let away = PostgresFault::away("connection refused");
        assert_eq!((away.scope(), away.trouble()), (FaultScope::Connection, StoreTrouble::Away));
        let error = away.while_doing("writing to the log").to_string();
        assert_eq!(error, "writing to the log failed: the database cannot be reached: connection refused");
        assert_eq!(PostgresFault::unreadable("state 99").trouble(), StoreTrouble::Damaged);
        assert_eq!(PostgresFault::Fenced.trouble(), StoreTrouble::Unavailable);
    }
}
