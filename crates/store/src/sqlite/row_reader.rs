//! Reads columns that say the same in most rows of a query: one allocation for all of them.

use std::sync::Arc;

use rusqlite::Row;

use super::fault::SqliteFault;
use crate::rows::facts;

/// The names and skills that a query has read so far.
#[derive(Debug, Default)]
pub(super) struct RowReader {
    /// The last name of each column: most rows repeat it.
    names: Vec<Option<Arc<str>>>,
    /// The facts of the last row, and their skill.
    skill: Option<(String, Option<Arc<str>>)>,
}

impl RowReader {
    /// A tenant, an owner or an agent.
    pub(super) fn name(&mut self, row: &Row<'_>, at: usize) -> rusqlite::Result<Arc<str>> {
        let text = row.get_ref(at)?.as_str()?;
        if self.names.len() <= at {
            self.names.resize(at + 1, None);
        }
        let last = &mut self.names[at];
        if last.as_deref() != Some(text) {
            *last = Some(text.into());
        }
        Ok(last.clone().unwrap_or_default())
    }

    /// The skill that a task's facts name. Equal facts are parsed once.
    pub(super) fn skill(&mut self, row: &Row<'_>, at: usize) -> Result<Option<Arc<str>>, SqliteFault> {
        let text = row.get_ref(at)?.as_str().map_err(rusqlite::Error::from)?;
        if let Some((facts, skill)) = &self.skill
            && facts == text
        {
            return Ok(skill.clone());
        }
        let skill = facts::skill(text)?;
        self.skill = Some((text.to_owned(), skill.clone()));
        Ok(skill)
    }
}
