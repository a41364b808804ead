//! Every key is declared once, a change of any key is found, and the docs have the table that the declarations make.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::super::schema::schema;
use super::super::template::template;
use super::*;

/// The keys of the schema, by the names of [`every_key`]. Tables that are one key of their struct are not looked into.
fn in_schema(schema: &Value, path: &str, known: &BTreeSet<String>, into: &mut BTreeSet<String>) {
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let key = format!("{path}{name}");
        if known.contains(&key) {
            into.insert(key);
        } else if inner["properties"].is_object() || inner["additionalProperties"].is_object() {
            in_schema(inner, &format!("{key}."), known, into);
        } else {
            into.insert(key);
        }
    }
    if schema["additionalProperties"].is_object() {
        in_schema(&schema["additionalProperties"], &format!("{path}NAME."), known, into);
    }
}

#[test]
fn every_key_of_the_schema_declares_once_when_it_takes_effect() {
    let declared: Vec<String> = every_key().into_iter().map(|key| key.key).collect();
    let known: BTreeSet<String> = declared.iter().cloned().collect();
    assert_eq!(known.len(), declared.len(), "a key is declared twice");
    assert!(known.len() > 150, "{}", known.len());
    let mut shown = BTreeSet::new();
    in_schema(&schema(), "", &known, &mut shown);
    assert_eq!(shown, known);
}

#[test]
fn a_change_of_a_key_is_found_under_its_name_with_its_declared_effect() {
    let declared: BTreeMap<String, TakesEffect> = every_key().into_iter().map(|key| (key.key, key.takes_effect)).collect();
    let schema = schema();
    let default = Config::parse("").unwrap();
    let mut tried = 0;
    for (key, effect) in &declared {
        let Some((section, name)) = key.split_once('.') else { continue };
        let known = &schema["properties"][section]["properties"][name];
        let value = match (&known["default"], known["type"].as_str()) {
            (Value::Number(number), Some("integer")) => (number.as_u64().unwrap() + 1).to_string(),
            (Value::Bool(is), Some("boolean")) => (!is).to_string(),
            _ => continue,
        };
        // Some values contradict others; they are tried below.
        let Ok(changed) = Config::parse(&format!("[{section}]\n{name} = {value}\n")) else { continue };
        let expected = vec![ChangedKey { key: key.clone(), takes_effect: *effect }];
        assert_eq!(default.changed_keys(&changed), expected, "{key} = {value}");
        tried += 1;
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn sections_under_chosen_names_are_compared_key_by_key() {
    let before = "[agents.a]\nrun = 'echo'\n[agents.b]\nurl = 'http://h:1'\n[callers.c]\nkey_env = 'K'\n\
                  [issuers.i]\nissuer = 'https://i'\naudience = 'x'\n";
    let after = "[agents.b]\nurl = 'http://h:2'\ntimeout_ms = 7\nkey_env = 'K'\n[agents.a]\nrun = 'conformance'\n[agents.d]\nrun = 'echo'\n\
                 [callers.c]\nkey_env = 'L'\ntenant = 't'\n[keys.push]\nenv = 'P'\n[push.origins.\"https://o.example\"]\nretry_4xx = true\n";
    let (before, after) = (Config::parse(before).unwrap(), Config::parse(after).unwrap());
    let found = before.changed_keys(&after);
    let found: Vec<_> = found.iter().map(|change| (change.key.as_str(), change.takes_effect.as_str())).collect();
    let expected = [
        ("agents.b.url", "live"),
        ("agents.b.timeout_ms", "live"),
        ("agents.b.key_env", "restart"),
        ("agents.a.run", "live"),
        ("agents.d", "live"),
        ("agents", "live"),
        ("callers.c.key_env", "live"),
        ("callers.c.tenant", "live"),
        ("issuers.i", "live"),
        ("keys.push", "restart"),
        ("push.origins", "restart"),
    ];
    assert_eq!(found, expected);
    assert!(after.changed_keys(&after).is_empty());
    assert!(Config::parse("").unwrap().changed_keys(&Config::parse(&template(&[])).unwrap()).is_empty());
}

/// The table of the docs: a row a section, with the keys that take effect at each time.
fn table() -> String {
    let mut sections: Vec<(String, Vec<(String, TakesEffect)>)> = Vec::new();
    for ChangedKey { key, takes_effect } in every_key() {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", &key));
        match sections.iter_mut().find(|(known, _)| known == section) {
            Some((_, keys)) => keys.push((name.to_owned(), takes_effect)),
            None => sections.push((section.to_owned(), vec![(name.to_owned(), takes_effect)])),
        }
    }
    let row = |(section, keys): &(String, Vec<(String, TakesEffect)>)| {
        let of = |effect: TakesEffect| {
            let names: Vec<_> = keys.iter().filter(|(_, when)| *when == effect).map(|(name, _)| format!("`{name}`")).collect();
            if names.len() == keys.len() && keys.len() > 1 { "every key".to_owned() } else { names.join(", ") }
        };
        let [live, new_connections, restart] = [TakesEffect::Live, TakesEffect::NewConnections, TakesEffect::Restart].map(of);
        let name = if section.is_empty() { "(top)".to_owned() } else { format!("`[{section}]`") };
        format!("| {name} | {live} | {new_connections} | {restart} |\n")
    };
    let rows: String = sections.iter().map(row).collect();
    format!("| section | live | new connections | restart |\n|---|---|---|---|\n{rows}")
}

const BEGIN: &str = "<!-- The next table is made from the declarations of the keys: CHANCERY_WRITE_DOCS=1 cargo test -p chancery table_in_the_docs -->\n";
const END: &str = "<!-- End of the made table -->";

#[test]
fn the_table_in_the_docs_is_the_one_that_the_keys_declare() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the docs mark where the table begins");
    let (shown, after) = rest.split_once(END).expect("and where it ends");
    let made = table();
    if std::env::var_os("CHANCERY_WRITE_DOCS").is_some() {
        std::fs::write(&file, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, made, "run the command in the comment above the table");
}
