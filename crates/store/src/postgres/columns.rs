//! Statements and the columns of their answers, in the words of the store.

use std::borrow::Cow;
use std::sync::Arc;

use chancery_protocol::{TaskId, Timestamp};
use deadpool_postgres::{ClientWrapper, Transaction};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::fault::PostgresFault;

/// The values of a statement.
pub(super) type SqlValues<'a> = [&'a (dyn ToSql + Sync)];

/// A session of its own, or one within a transaction.
pub(super) trait DatabaseSession: Sync {
    /// All rows that a statement answers. The session prepares each statement once.
    fn rows(&self, sql: &str, values: &SqlValues<'_>) -> impl Future<Output = Result<Vec<Row>, PostgresFault>> + Send;

    /// The same for a statement whose text depends on a filter: the session does not keep it prepared.
    fn rows_once(&self, sql: &str, values: &SqlValues<'_>) -> impl Future<Output = Result<Vec<Row>, PostgresFault>> + Send;

    /// How many rows a statement changed.
    fn execute(&self, sql: &str, values: &SqlValues<'_>) -> impl Future<Output = Result<u64, PostgresFault>> + Send;
}

impl DatabaseSession for ClientWrapper {
    async fn rows(&self, sql: &str, values: &SqlValues<'_>) -> Result<Vec<Row>, PostgresFault> {
        let statement = self.prepare_cached(sql).await?;
        Ok(Client::query(self, &statement, values).await?)
    }

    async fn rows_once(&self, sql: &str, values: &SqlValues<'_>) -> Result<Vec<Row>, PostgresFault> {
        Ok(Client::query(self, sql, values).await?)
    }

    async fn execute(&self, sql: &str, values: &SqlValues<'_>) -> Result<u64, PostgresFault> {
        let statement = self.prepare_cached(sql).await?;
        Ok(Client::execute(self, &statement, values).await?)
    }
}

impl DatabaseSession for Transaction<'_> {
    async fn rows(&self, sql: &str, values: &SqlValues<'_>) -> Result<Vec<Row>, PostgresFault> {
        let statement = self.prepare_cached(sql).await?;
        Ok(self.query(&statement, values).await?)
    }

    async fn rows_once(&self, sql: &str, values: &SqlValues<'_>) -> Result<Vec<Row>, PostgresFault> {
        Ok(self.query(sql, values).await?)
    }

    async fn execute(&self, sql: &str, values: &SqlValues<'_>) -> Result<u64, PostgresFault> {
        let statement = self.prepare_cached(sql).await?;
        Ok(tokio_postgres::Transaction::execute(self, &statement, values).await?)
    }
}

/// The first row that a statement answers.
pub(super) async fn row<D: DatabaseSession>(db: &D, sql: &str, values: &SqlValues<'_>) -> Result<Option<Row>, PostgresFault> {
    Ok(db.rows(sql, values).await?.into_iter().next())
}

/// The one number that a statement answers.
pub(super) async fn number<D: DatabaseSession>(db: &D, sql: &str, values: &SqlValues<'_>) -> Result<i64, PostgresFault> {
    let found = row(db, sql, values).await?;
    Ok(found.ok_or_else(|| PostgresFault::unreadable("a count without a row"))?.try_get(0)?)
}

/// The one truth that a statement answers.
pub(super) async fn holds<D: DatabaseSession>(db: &D, sql: &str) -> Result<bool, PostgresFault> {
    let found = row(db, sql, &[]).await?;
    Ok(found.ok_or_else(|| PostgresFault::unreadable("a condition without an answer"))?.try_get(0)?)
}

/// Reads every row in the same way.
pub(super) fn each<T>(rows: Vec<Row>, read: impl FnMut(&Row) -> Result<T, PostgresFault>) -> Result<Vec<T>, PostgresFault> {
    rows.iter().map(read).collect()
}

/// A text to compare with stored ones. PostgreSQL refuses U+0000; no stored name has a control character, so U+0001 stands in
/// its place and matches nothing.
pub(super) fn sought(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{1}")) } else { Cow::Borrowed(text) }
}

pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Reads columns by their places.
pub(super) trait Columns {
    fn text(&self, at: usize) -> Result<Arc<str>, PostgresFault>;
    fn text_or_none(&self, at: usize) -> Result<Option<Arc<str>>, PostgresFault>;
    /// A text that is kept as bytes, because PostgreSQL has no text with U+0000.
    fn free_text(&self, at: usize) -> Result<Arc<str>, PostgresFault>;
    fn free_text_or_none(&self, at: usize) -> Result<Option<Arc<str>>, PostgresFault>;
    fn bytes(&self, at: usize) -> Result<&[u8], PostgresFault>;
    fn digest(&self, at: usize) -> Result<[u8; 32], PostgresFault>;
    fn count(&self, at: usize) -> Result<u64, PostgresFault>;
    fn small<T: TryFrom<i64>>(&self, at: usize) -> Result<T, PostgresFault>;
    fn small_or_none<T: TryFrom<i64>>(&self, at: usize) -> Result<Option<T>, PostgresFault>;
    fn time(&self, at: usize) -> Result<Timestamp, PostgresFault>;
    fn time_or_none(&self, at: usize) -> Result<Option<Timestamp>, PostgresFault>;
    fn task(&self, at: usize) -> Result<TaskId, PostgresFault>;
}

impl Columns for Row {
    fn text(&self, at: usize) -> Result<Arc<str>, PostgresFault> {
        Ok(Arc::from(self.try_get::<_, &str>(at)?))
    }

    fn text_or_none(&self, at: usize) -> Result<Option<Arc<str>>, PostgresFault> {
        Ok(self.try_get::<_, Option<&str>>(at)?.map(Arc::from))
    }

    fn free_text(&self, at: usize) -> Result<Arc<str>, PostgresFault> {
        as_text(self.bytes(at)?).map(Arc::from)
    }

    fn free_text_or_none(&self, at: usize) -> Result<Option<Arc<str>>, PostgresFault> {
        self.try_get::<_, Option<&[u8]>>(at)?.map(|bytes| as_text(bytes).map(Arc::from)).transpose()
    }

    fn bytes(&self, at: usize) -> Result<&[u8], PostgresFault> {
        Ok(self.try_get(at)?)
    }

    fn digest(&self, at: usize) -> Result<[u8; 32], PostgresFault> {
        self.bytes(at)?.try_into().map_err(|_| PostgresFault::unreadable("a digest that has not 32 bytes"))
    }

    fn count(&self, at: usize) -> Result<u64, PostgresFault> {
        Ok(self.try_get::<_, i64>(at)?.cast_unsigned())
    }

    fn small<T: TryFrom<i64>>(&self, at: usize) -> Result<T, PostgresFault> {
        fit(self.try_get(at)?)
    }

    fn small_or_none<T: TryFrom<i64>>(&self, at: usize) -> Result<Option<T>, PostgresFault> {
        self.try_get::<_, Option<i64>>(at)?.map(fit).transpose()
    }

    fn time(&self, at: usize) -> Result<Timestamp, PostgresFault> {
        Ok(Timestamp::from_micros(self.try_get(at)?))
    }

    fn time_or_none(&self, at: usize) -> Result<Option<Timestamp>, PostgresFault> {
        Ok(self.try_get::<_, Option<i64>>(at)?.map(Timestamp::from_micros))
    }

    fn task(&self, at: usize) -> Result<TaskId, PostgresFault> {
        Ok(TaskId::new(self.text(at)?))
    }
}

fn fit<T: TryFrom<i64>>(number: i64) -> Result<T, PostgresFault> {
    T::try_from(number).map_err(|_| PostgresFault::unreadable(format!("the number {number}, which is out of range")))
}

/// Stored bytes that are text.
pub(super) fn as_text(bytes: &[u8]) -> Result<&str, PostgresFault> {
    std::str::from_utf8(bytes).map_err(|_| PostgresFault::unreadable("a text that is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_the_character_that_postgresql_refuses_matches_no_name() {
        assert_eq!(sought("plain"), "plain");
        assert_eq!(sought("a\0b"), "a\u{1}b");
    }
}
