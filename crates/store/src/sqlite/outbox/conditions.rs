//! The conditions of a query, put together one by one, each with the value it asks for.

use rusqlite::types::Value;

pub(super) struct WhereClause {
    sql: String,
    values: Vec<Value>,
}

impl WhereClause {
    pub(super) fn of(first: &str, value: i64) -> Self {
        Self { sql: first.to_owned(), values: vec![value.into()] }
    }

    /// Without a value there is no such condition.
    pub(super) fn and(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.sql.push_str(" AND ");
            self.sql.push_str(condition);
            self.values.push(value.into());
        }
    }

    /// What stands after `WHERE`, and the values in their order.
    pub(super) fn into_parts(self) -> (String, Vec<Value>) {
        (self.sql, self.values)
    }
}
