//! Pages of the lists of the admin API: `limit` bounds one, and `after` names the last entry of the one before.

use serde::Deserialize;
use serde_json::Value;

use super::fault::Fault;

/// How many entries a page has if the call does not say.
pub(super) const USUAL_PAGE: usize = 100;
/// The most that a page has.
pub(super) const LARGEST_PAGE: usize = 1_000;

/// The query of a list that has no filters.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PageQuery {
    pub(super) limit: Option<usize>,
    pub(super) after: Option<String>,
}

pub(super) fn page_limit(given: Option<usize>, usual: usize) -> Result<usize, Fault> {
    let limit = given.unwrap_or(usual);
    match (1..=LARGEST_PAGE).contains(&limit) {
        true => Ok(limit),
        false => Err(Fault::bad(format!("limit: must be from 1 to {LARGEST_PAGE}"))),
    }
}

impl PageQuery {
    /// A page of a list that is in memory, and the key of its last entry if there are more. Each entry has a key of its own.
    pub(super) fn cut(&self, mut entries: Vec<(String, Value)>) -> Result<(Vec<Value>, Option<String>), Fault> {
        let limit = page_limit(self.limit, USUAL_PAGE)?;
        if let Some(after) = &self.after {
            // The last of the name, so that each page goes on.
            let at = entries.iter().rposition(|(key, _)| key == after);
            let gone = || Fault::bad(format!("after: the list has no {after:?}; begin again without after"));
            entries.drain(..=at.ok_or_else(gone)?);
        }
        let is_more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| is_more).map(|(key, _)| key.clone());
        Ok((entries.into_iter().map(|(_, entry)| entry).collect(), next))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cut(limit: Option<usize>, after: Option<&str>) -> Result<(Vec<Value>, Option<String>), Fault> {
        let entries = ["b", "a", "c"].map(|key| (key.to_owned(), json!(key))).to_vec();
        PageQuery { limit, after: after.map(str::to_owned) }.cut(entries)
    }

    #[test]
    fn pages_follow_each_other_until_the_list_ends() {
        assert_eq!(cut(Some(2), None).unwrap(), (vec![json!("b"), json!("a")], Some("a".to_owned())));
        assert_eq!(cut(Some(2), Some("a")).unwrap(), (vec![json!("c")], None));
        assert_eq!(cut(Some(3), None).unwrap().1, None);
        assert_eq!(cut(None, Some("c")).unwrap(), (vec![], None));
    }

    #[test]
    fn an_entry_that_the_list_does_not_have_and_a_limit_out_of_bounds_are_refused() {
        assert!(cut(None, Some("d")).is_err());
        assert!(cut(Some(0), None).is_err() && cut(Some(1_001), None).is_err());
    }
}
