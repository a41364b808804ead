//! The conditions of a query, put together one by one, each with the value it asks for.

use tokio_postgres::types::ToSql;

use super::columns::sought;

/// Values that a query owns.
#[derive(Default)]
pub(super) struct QueryValues(Vec<Box<dyn ToSql + Sync + Send>>);

impl QueryValues {
    /// Takes a value, and answers its place in the query.
    pub(super) fn put(&mut self, value: impl ToSql + Sync + Send + 'static) -> String {
        self.0.push(Box::new(value));
        format!("${}", self.0.len())
    }

    /// The same for a name to compare with stored ones.
    pub(super) fn put_name(&mut self, name: &str) -> String {
        self.put(sought(name).into_owned())
    }

    /// All values, in their order.
    pub(super) fn borrowed(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.0.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}
