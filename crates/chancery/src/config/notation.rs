//! The notations of a config: TOML as it stands, JSON read as the TOML it means, and YAML refused with a word about it.

use chancery_protocol::raw_json::members;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::fault::{ConfigFault, place};
use super::plain_faults::{WRITE_TOML, is_yaml_line};

/// A JSON text as TOML, with where in the JSON each piece of the TOML comes from.
pub(super) struct FromJson<'t> {
    json: &'t str,
    pub(super) toml: String,
    /// Byte in the TOML, byte in the JSON; both only rise.
    origins: Vec<(usize, usize)>,
}

/// A TOML document never begins with a brace.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).starts_with('{')
}

/// The fault of a text that is YAML: its first line is a document mark or `key:`, which TOML cannot have.
pub(super) fn yaml_fault(text: &str) -> Option<ConfigFault> {
    let is_first = |(_, line): &(usize, &str)| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let (index, line) = text.lines().enumerate().find(is_first)?;
    let fault = || ConfigFault { line: index + 1, column: 1, message: format!("this is YAML; {WRITE_TOML}") };
    is_yaml_line(line).then(fault)
}

impl<'t> FromJson<'t> {
    pub(super) fn read(text: &'t str) -> Result<Self, Vec<ConfigFault>> {
        let json = text.trim_start_matches('\u{feff}');
        if let Err(fault) = serde_json::from_str::<IgnoredAny>(json) {
            let message = format!("not JSON: {fault}");
            return Err(vec![ConfigFault { line: fault.line().max(1), column: fault.column().max(1), message }]);
        }
        let mut read = Self { json, toml: String::new(), origins: Vec::new() };
        let mut faults = Vec::new();
        for (name, value) in members(json.trim_start()) {
            read.member(&name, value, &mut faults);
            read.toml.push('\n');
        }
        if faults.is_empty() { Ok(read) } else { Err(faults) }
    }

    fn member(&mut self, name: &str, value: &'t str, faults: &mut Vec<ConfigFault>) {
        self.origin(value);
        self.toml.push_str(&toml::Value::from(name).to_string());
        self.toml.push_str(" = ");
        self.value(value, faults);
    }

    fn value(&mut self, value: &'t str, faults: &mut Vec<ConfigFault>) {
        self.origin(value);
        match value.as_bytes().first() {
            Some(b'{') => {
                self.toml.push('{');
                for (index, (name, value)) in members(value).enumerate() {
                    self.toml.push_str(if index == 0 { " " } else { ", " });
                    self.member(&name, value, faults);
                }
                self.toml.push_str(" }");
            }
            Some(b'[') => {
                self.toml.push('[');
                for item in serde_json::from_str::<Vec<&RawValue>>(value).unwrap_or_default() {
                    self.value(item.get(), faults);
                    self.toml.push_str(", ");
                }
                self.toml.push(']');
            }
            Some(b'"') => {
                let text: String = serde_json::from_str(value).unwrap_or_default();
                self.toml.push_str(&toml::Value::from(text).to_string());
            }
            Some(b'n') => {
                let (line, column) = place(self.json, self.at(value));
                let message = "null is no value of a config; leave the key out".to_owned();
                faults.push(ConfigFault { line, column, message });
                self.toml.push_str("false");
            }
            // Numbers and booleans are spelled alike.
            _ => self.toml.push_str(value),
        }
    }

    fn origin(&mut self, value: &'t str) {
        let at = self.at(value);
        self.origins.push((self.toml.len(), at));
    }

    /// Where a piece of the JSON stands in it.
    fn at(&self, piece: &str) -> usize {
        (piece.as_ptr() as usize).saturating_sub(self.json.as_ptr() as usize)
    }

    /// The place in the JSON of a place in the TOML.
    pub(super) fn place(&self, (line, column): (usize, usize)) -> (usize, usize) {
        let before: usize = self.toml.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let rest = self.toml.get(before..).unwrap_or_default();
        let inside: usize = rest.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
        let index = self.origins.partition_point(|(toml, _)| *toml <= before + inside);
        index.checked_sub(1).map_or((1, 1), |index| place(self.json, self.origins[index].1))
    }

    pub(super) fn moved(&self, fault: ConfigFault) -> ConfigFault {
        let (line, column) = self.place((fault.line, fault.column));
        ConfigFault { line, column, ..fault }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    fn faults(text: &str) -> Vec<String> {
        Config::parse(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn json_says_the_same_as_toml_and_in_the_same_order() {
        let toml = "listen = '127.0.0.1:9'\n[agents.second]\nrun = 'echo'\ntitle = \"é/\u{1f600}\"\n[agents.first]\nrun = 'conformance'\n\
                    [budget.global]\nmax_usd_per_minute = 10.50\noverflow = { queue = { max_queue_depth = 3 } }\n\
                    [recursion]\nrevisit_allowlist = ['a', 'b']\ndeny_revisit = false\n";
        let json = r#"
            { "listen": "127.0.0.1:9",
              "agents": { "second": { "run": "echo", "title": "\u00e9\/\ud83d\ude00" }, "first": { "run": "conformance" } },
              "budget": { "global": { "max_usd_per_minute": 10.50, "overflow": { "queue": { "max_queue_depth": 3 } } } },
              "recursion": { "revisit_allowlist": ["a", "b"], "deny_revisit": false } }"#;
        assert_eq!(Config::parse(json).unwrap(), Config::parse(toml).unwrap());
        assert_eq!(Config::parse("{}").unwrap(), Config::default());
    }

    #[test]
    fn a_fault_in_json_stands_where_its_value_does() {
        let found =
            faults("{\n  \"routing\": {\n    \"seed\": 1,\n    \"default_selector\": \"lowest_latancy\" },\n  \"limts\": {} }");
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(found[0].starts_with("4:25: routing.default_selector: unknown value"), "{found:#?}");
        assert!(found[1].starts_with("5:12: unknown key `limts`"), "{found:#?}");
        let found = faults("{ \"hosts\": [],\n \"public_url\": null }");
        assert_eq!(found, ["2:16: null is no value of a config; leave the key out"]);
        assert!(faults("{ \"listen\": ")[0].starts_with("1:12: not JSON: "), "{:?}", faults("{ \"listen\": "));
    }

    #[test]
    fn yaml_gets_a_fault_that_says_what_a_config_is() {
        for (text, place) in [
            ("listen: 127.0.0.1:9\n", "1:1: "),
            ("# mine\n\nagents:\n  echo:\n    run: echo\n", "3:1: "),
            ("---\nlisten: x\n", "1:1: "),
        ] {
            let found = faults(text);
            assert_eq!(found.len(), 1, "{found:#?}");
            assert!(found[0].starts_with(place) && found[0].contains("a config is TOML or JSON"), "{found:#?}");
        }
        assert!(!faults("listen = 'a: b'\nx\n")[0].contains("YAML"), "what only has a colon is no YAML");
    }
}
