//! Lists of the admin API that are wanted whole, read page by page.

use serde_json::Value;

use super::{Admin, LARGEST_PAGE};
use crate::error::CallError;

impl Admin {
    /// The first page of a list with the entries of all others added to its `member`.
    pub(super) async fn all_pages(&self, segments: &[&str], query: &[(&str, &str)], member: &str) -> Result<Value, CallError> {
        let limit = LARGEST_PAGE.to_string();
        let query = [query, &[("limit", &limit)]].concat();
        let mut whole = self.get_with(segments, &query).await?;
        while let Some(next) = whole["next"].as_str().map(str::to_owned) {
            let mut page = self.get_with(segments, &[&query[..], &[("after", &next)]].concat()).await?;
            whole["next"] = page["next"].take();
            add(&mut whole[member], page[member].take());
        }
        Ok(whole)
    }
}

/// Adds a page of trees to those before: the tasks of a tree that goes on are added to it.
pub(super) fn add_trees(whole: &mut Value, mut page: Value) {
    whole["next"] = page["next"].take();
    let Value::Array(trees) = page["trees"].take() else { return };
    let Some(known) = whole["trees"].as_array_mut() else { return };
    for mut tree in trees {
        match known.last_mut().filter(|last| last["root"] == tree["root"]) {
            Some(last) => add(&mut last["tasks"], tree["tasks"].take()),
            None => known.push(tree),
        }
    }
}

fn add(list: &mut Value, more: Value) {
    if let (Value::Array(list), Value::Array(more)) = (list, more) {
        list.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tree_that_goes_on_over_a_page_is_one_tree() {
        let mut whole = json!({ "trees": [{ "root": "a", "tasks": [1] }, { "root": "b", "tasks": [2] }], "next": "2" });
        add_trees(&mut whole, json!({ "trees": [{ "root": "b", "tasks": [3] }, { "root": "c", "tasks": [4] }], "next": null }));
        let trees = json!([{ "root": "a", "tasks": [1] }, { "root": "b", "tasks": [2, 3] }, { "root": "c", "tasks": [4] }]);
        assert_eq!(whole, json!({ "trees": trees, "next": null }));
    }
}
