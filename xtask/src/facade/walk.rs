//! The walk over what rustdoc writes: from the modules of the facade to its items, and from their signatures to the types of
//! our crates.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

/// Where an item is described: the crate, and the number of the item there.
type ItemPlace<'a> = (&'a str, String);

/// What a program can name, and what it cannot.
#[derive(Debug, Default)]
pub(super) struct Facade {
    /// Types of our crates that a public item mentions and no path leads to, with the item.
    pub unnamed: BTreeMap<String, String>,
    /// Public items without documentation, by the paths of their definitions.
    pub undocumented: BTreeSet<String>,
}

struct Walk<'a> {
    crates: &'a BTreeMap<String, Value>,
    /// The items of our crates, by the paths of their definitions.
    defined: BTreeMap<String, ItemPlace<'a>>,
    /// The items that a path of the facade leads to.
    named: BTreeMap<String, ItemPlace<'a>>,
    entered: BTreeSet<ItemPlace<'a>>,
    facade: Facade,
}

impl Facade {
    pub(super) fn of(crates: &BTreeMap<String, Value>, root: &str) -> Result<Self> {
        let mut defined = BTreeMap::new();
        for (name, krate) in crates {
            for (id, summary) in krate["paths"].as_object().into_iter().flatten() {
                if summary["crate_id"] == 0 {
                    defined.insert(joined(summary), (name.as_str(), id.clone()));
                }
            }
        }
        let mut walk = Walk { crates, defined, named: BTreeMap::new(), entered: BTreeSet::new(), facade: Self::default() };
        let (name, krate) = crates.get_key_value(root).context("rustdoc did not describe the facade")?;
        walk.module(&(name.as_str(), krate["root"].to_string()));
        for (path, place) in walk.named.clone() {
            walk.item(&path, &place);
        }
        Ok(walk.facade)
    }
}

impl<'a> Walk<'a> {
    fn get(&self, place: &ItemPlace<'_>) -> Option<&'a Value> {
        self.crates.get(place.0)?["index"].get(&place.1)
    }

    /// The definition of what a number of a crate stands for, if it is in one of our crates.
    fn definition(&self, within: &'a str, id: &Value) -> Option<(String, ItemPlace<'a>)> {
        let summary = self.crates.get(within)?["paths"].get(id.to_string())?;
        let path = joined(summary);
        let place = self.defined.get(&path).cloned();
        // The root of a crate is in no list of another one.
        let root = || self.crates.get_key_value(&path).map(|(name, krate)| (name.as_str(), krate["root"].to_string()));
        Some((path.clone(), place.or_else(root)?))
    }

    fn module(&mut self, place: &ItemPlace<'a>) {
        if !self.entered.insert(place.clone()) {
            return;
        }
        let items = self.get(place).and_then(|module| module["inner"]["module"]["items"].as_array());
        for id in items.into_iter().flatten() {
            self.member(place.0, id);
        }
    }

    /// An item of a public module: it has a path if it is public and shown.
    fn member(&mut self, within: &'a str, id: &Value) {
        let place = (within, id.to_string());
        let Some(item) = self.get(&place).filter(|item| item["visibility"] == "public" && !is_hidden(item)) else { return };
        let Some(reexport) = item["inner"].get("use") else {
            return self.name(within, id);
        };
        let target = &reexport["id"];
        if self.get(&(within, target.to_string())).is_some_and(|target| target["inner"].get("use").is_some()) {
            self.member(within, target);
        } else {
            self.name(within, target);
        }
    }

    fn name(&mut self, within: &'a str, id: &Value) {
        let Some((path, place)) = self.definition(within, id) else { return };
        if self.get(&place).is_some_and(|item| item["inner"].get("module").is_some()) {
            self.module(&place);
        }
        self.named.insert(path, place);
    }

    fn item(&mut self, path: &str, place: &ItemPlace<'a>) {
        let Some(item) = self.get(place) else { return };
        self.documented(path, item);
        let inner = &item["inner"];
        if let Some(of_struct) = inner.get("struct") {
            self.mentions(place.0, &of_struct["generics"], path);
            self.fields(place.0, &of_struct["kind"], path, true);
            self.methods(place.0, &of_struct["impls"], path);
        } else if let Some(of_enum) = inner.get("enum") {
            self.mentions(place.0, &of_enum["generics"], path);
            for variant in self.items(place.0, &of_enum["variants"]) {
                let path = format!("{path}::{}", name(variant));
                self.documented(&path, variant);
                self.fields(place.0, &variant["inner"]["variant"]["kind"], &path, false);
            }
            self.methods(place.0, &of_enum["impls"], path);
        } else if let Some(of_trait) = inner.get("trait") {
            // A trait that only our crates can implement has a bound that nothing else can name.
            self.mentions(place.0, &of_trait["generics"], path);
            self.members(place.0, &of_trait["items"], path);
        } else if inner.get("module").is_none() {
            self.mentions(place.0, inner, path);
        }
    }

    fn fields(&mut self, within: &'a str, kind: &Value, path: &str, only_public: bool) {
        let named = kind.get("plain").or_else(|| kind.get("struct")).map(|kind| &kind["fields"]);
        for field in self.items(within, named.unwrap_or(&kind["tuple"])) {
            if only_public && field["visibility"] != "public" {
                continue;
            }
            let path = format!("{path}.{}", name(field));
            if named.is_some() {
                self.documented(&path, field);
            }
            self.mentions(within, &field["inner"], &path);
        }
    }

    /// The public items of impls that belong to no trait.
    fn methods(&mut self, within: &'a str, impls: &Value, path: &str) {
        for block in self.items(within, impls) {
            let block = &block["inner"]["impl"];
            if block["trait"].is_null() {
                let public = self.items(within, &block["items"]).into_iter().filter(|item| item["visibility"] == "public");
                public.for_each(|item| self.described(within, item, path));
            }
        }
    }

    fn members(&mut self, within: &'a str, ids: &Value, path: &str) {
        for item in self.items(within, ids) {
            self.described(within, item, path);
        }
    }

    fn described(&mut self, within: &'a str, item: &Value, path: &str) {
        if !is_hidden(item) {
            let path = format!("{path}::{}", name(item));
            self.documented(&path, item);
            self.mentions(within, &item["inner"], &path);
        }
    }

    fn items(&self, within: &'a str, ids: &Value) -> Vec<&'a Value> {
        ids.as_array().into_iter().flatten().filter_map(|id| self.get(&(within, id.to_string()))).collect()
    }

    fn documented(&mut self, path: &str, item: &Value) {
        if item["docs"].as_str().is_none_or(str::is_empty) {
            self.facade.undocumented.insert(path.to_owned());
        }
    }

    /// Every object with a path and a number is a type or a trait.
    fn mentions(&mut self, within: &'a str, part: &Value, user: &str) {
        match part {
            Value::Object(members) => {
                if let (Some(_), Some(id)) = (members.get("path"), members.get("id"))
                    && let Some((path, _)) = self.definition(within, id)
                    && !self.named.contains_key(&path)
                {
                    self.facade.unnamed.entry(path).or_insert_with(|| user.to_owned());
                }
                members.values().for_each(|member| self.mentions(within, member, user));
            }
            Value::Array(parts) => parts.iter().for_each(|part| self.mentions(within, part, user)),
            _ => {}
        }
    }
}

fn joined(summary: &Value) -> String {
    let names: Vec<&str> = summary["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    names.join("::")
}

fn name(item: &Value) -> &str {
    item["name"].as_str().unwrap_or("?")
}

fn is_hidden(item: &Value) -> bool {
    item["attrs"].to_string().contains("doc(hidden)")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(name: &str, docs: Option<&str>, inner: Value) -> Value {
        json!({ "name": name, "docs": docs, "visibility": "public", "attrs": [], "inner": inner })
    }

    /// A facade that re-exports `inner::Shown`, whose public field is of the type `field`.
    fn crates(field: u32) -> BTreeMap<String, Value> {
        let reexport = json!({ "use": { "source": "inner::Shown", "name": "Shown", "id": 7, "is_glob": false } });
        let facade = json!({
            "root": 0,
            "index": {
                "0": item("facade", Some("x"), json!({ "module": { "items": [1] } })),
                "1": item("Shown", None, reexport),
            },
            "paths": { "7": { "crate_id": 3, "path": ["inner", "Shown"] } },
        });
        let shown = json!({ "struct": { "kind": { "plain": { "fields": [2] } }, "generics": {}, "impls": [] } });
        let of_type = json!({ "struct_field": { "resolved_path": { "path": "T", "id": field, "args": null } } });
        let inner = json!({
            "root": 0,
            "index": { "1": item("Shown", Some("x"), shown), "2": item("part", None, of_type), "3": item("Hidden", None, json!({})) },
            "paths": {
                "1": { "crate_id": 0, "path": ["inner", "Shown"] },
                "3": { "crate_id": 0, "path": ["inner", "Hidden"] },
                "4": { "crate_id": 9, "path": ["std", "Other"] },
            },
        });
        [("facade".to_owned(), facade), ("inner".to_owned(), inner)].into()
    }

    #[test]
    fn a_type_of_ours_without_a_path_is_found_with_the_item_that_mentions_it() {
        let found = Facade::of(&crates(3), "facade").unwrap();
        assert_eq!(found.unnamed, BTreeMap::from([("inner::Hidden".to_owned(), "inner::Shown.part".to_owned())]));
        for known in [1, 4] {
            assert!(Facade::of(&crates(known), "facade").unwrap().unnamed.is_empty(), "{known}");
        }
    }

    #[test]
    fn a_public_item_without_documentation_is_found() {
        let found = Facade::of(&crates(1), "facade").unwrap();
        assert_eq!(found.undocumented, BTreeSet::from(["inner::Shown.part".to_owned()]));
    }
}
