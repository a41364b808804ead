//! Dialects by their names.

use chancery_protocol::Dialect;

use super::UnreadableRow;

/// The names that `Dialect` prints.
pub(crate) fn dialect(name: &str) -> Result<Dialect, UnreadableRow> {
    let known = Dialect::ALL.into_iter().find(|dialect| dialect.as_str() == name);
    known.ok_or_else(|| UnreadableRow::new(format!("dialect {name}")))
}
