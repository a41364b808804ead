//! The JSON Schema of a config file, made from what reads the file, with the words of the shipped file beside each key.

use serde_json::{Value, json};

use super::template::{Described, described};
use super::{Config, section};

/// For editors: what can stand where, what it means, and what holds if it is left out.
pub fn schema() -> Value {
    let mut schema = section::outline(Config::sections);
    for line in described() {
        if let Some(key) = find(&mut schema, &line.section, &line.key) {
            describe(key, &line);
        }
    }
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("The config file of a Chancery node");
    schema
}

/// The schema of a key in a section. All names that the author of the file chooses share one schema.
fn find<'s>(schema: &'s mut Value, section: &[String], key: &str) -> Option<&'s mut Value> {
    let mut here = schema;
    for name in section {
        let known = here["properties"].get(name).is_some();
        here = if known { here["properties"].get_mut(name)? } else { here.get_mut("additionalProperties")? };
    }
    here.get_mut("properties")?.get_mut(key)
}

fn describe(key: &mut Value, line: &Described) {
    let Some(key) = key.as_object_mut() else { return };
    if !line.text.is_empty() && !key.contains_key("description") {
        key.insert("description".to_owned(), json!(line.text));
    }
    if let Some(default) = &line.default {
        key.insert("default".to_owned(), default.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::NodeConfig;
    use super::super::fields::field_names;
    use super::super::template::template;
    use super::*;

    fn as_json(text: &str) -> Value {
        serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
    }

    /// Every key of the schema, with the names of its sections.
    fn keys(schema: &Value, path: &str, into: &mut BTreeSet<String>) {
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            into.insert(format!("{path}{name}"));
            keys(inner, &format!("{path}{name}."), into);
        }
        if schema["additionalProperties"].is_object() {
            keys(&schema["additionalProperties"], &format!("{path}*."), into);
        }
    }

    #[test]
    fn the_shipped_file_follows_the_schema_also_with_all_that_is_commented_out() {
        let schema = schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for text in [template(&[]), everything()] {
            let faults: Vec<_> = validator.iter_errors(&as_json(&text)).map(|fault| fault.to_string()).collect();
            assert!(faults.is_empty(), "{faults:#?}");
        }
    }

    /// The shipped file with the comment signs taken from what can be set.
    fn everything() -> String {
        let set = |line: &str| {
            let bare = line.strip_prefix("# ")?;
            let key = bare.split(['=', ' ', ']']).next()?;
            let word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b == b'.');
            (bare.starts_with('[') || word(key) && bare.contains(" = ") || bare.starts_with("  {") || bare.starts_with(']'))
                .then(|| bare.to_owned())
        };
        template(&[]).lines().map(|line| set(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
    }

    #[test]
    fn every_key_that_is_read_is_in_the_schema_and_every_key_of_the_schema_is_read() {
        let schema = schema();
        let mut in_schema = BTreeSet::new();
        keys(&schema, "", &mut in_schema);
        assert!(in_schema.len() > 120, "{}", in_schema.len());
        for name in field_names::<NodeConfig>() {
            assert!(in_schema.contains(*name), "{name}");
        }
        for key in ["limits.json_depth", "agents.*.url", "callers.*.token", "keys.push.env", "health.failures", "routing.seed"] {
            assert!(in_schema.contains(key), "{key}");
        }
        // Each key is known to the reader: it may dislike the value, never the name.
        for key in in_schema.iter().filter(|key| !key.contains("rate_limit.")) {
            let path = key.replace('*', "some");
            let (section, name) = path.rsplit_once('.').unwrap_or(("", &path));
            let text = if section.is_empty() { format!("{name} = []\n") } else { format!("[{section}]\n{name} = []\n") };
            let faults = Config::parse(&text).err().unwrap_or_default();
            let unknown: Vec<_> = faults.iter().filter(|fault| fault.message.contains("unknown key")).collect();
            assert!(unknown.is_empty(), "{key}: {unknown:?}");
        }
    }

    #[test]
    fn what_the_reader_refuses_for_its_kind_or_name_the_schema_refuses_too() {
        let schema = schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for text in [
            "lissten = 'x'",
            "listen = 7",
            "[limits]\nbody_bytes = -1",
            "[limits]\njson_dept = 1",
            "[agents.a]\nrun = 'ehco'",
            "[agents.a]\nurl = 7",
            "[agents.a]\nurl = [7]",
            "[routing]\ndefault_selector = 'fastest'",
            "[routing]\nlatency_budget_ms = 0",
            "[health]\nfailure_percent = 101",
            "[health]\nejected_percent = 51",
            "[callers.a]\ntoken = { isuer = 'x', subject = 'y' }",
            "[keys.other]\nenv = 'X'",
            "[card]\nheaderless = 'both'",
            "limits = 3",
            "[outbound]\nallow_http = 'yes'",
        ] {
            assert!(Config::parse(text).is_err(), "{text}");
            assert!(!validator.is_valid(&as_json(text)), "{text}");
        }
    }

    #[test]
    fn keys_are_described_and_have_their_defaults() {
        let schema = schema();
        let key = &schema["properties"]["limits"]["properties"]["body_bytes"];
        assert_eq!(key["default"], json!(4_194_304));
        assert!(key["description"].as_str().is_some_and(|text| text.contains("body")), "{key}");
        let selector = &schema["properties"]["routing"]["properties"]["default_selector"];
        assert!(selector["enum"].as_array().is_some_and(|names| names.len() >= 5), "{selector}");
        assert!(schema["properties"]["agents"]["additionalProperties"]["properties"]["url"]["anyOf"].is_array());
    }
}
