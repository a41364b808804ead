//! Rewrites the messages of the TOML and serde libraries in the words of a config file.

use super::nearest::nearest;

/// The message for a value that could not be read. `value` is the text of the value, if it is a string.
pub(super) fn plain(message: &str, value: Option<&str>) -> String {
    if message.starts_with("invalid socket address") {
        return address_fault(value.unwrap_or_default());
    }
    if let Some((got, wanted)) = split_expected(message, "invalid type: ").or_else(|| split_expected(message, "invalid value: "))
    {
        return format!("expected {}, got {}", expected(wanted), got_value(got));
    }
    if let Some((word, list)) = split_expected(message, "unknown variant ") {
        return format!("unknown value {word}, expected {list}{}", meant(word, list));
    }
    if let Some((word, list)) = split_expected(message, "unknown field ") {
        let key = word.trim_matches('`');
        let known: Vec<&str> = quoted(list).collect();
        if let Some(advice) = secret_advice(key, &known) {
            return format!("unknown key {word}; {advice}");
        }
        return format!("unknown key {word}, expected {list}{}", meant(word, list));
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("needs {key}");
    }
    message.to_owned()
}

/// The line of a text that a byte is in.
pub(super) fn line_at(text: &str, at: usize) -> &str {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    text[start..].lines().next().unwrap_or_default()
}

/// The message for a line that is not TOML. It names YAML and text without quotes as what they are.
pub(super) fn plain_syntax(line: &str, message: &str) -> String {
    if message.starts_with("duplicate key") {
        return message.to_owned();
    }
    if is_yaml_line(line) {
        return format!("this line is YAML; {WRITE_TOML}");
    }
    match line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
        Some((key, value)) if value.is_empty() || value.starts_with('#') => format!("`{key}` has no value"),
        Some((key, value)) if !value.starts_with(['"', '\'', '[', '{']) => {
            format!("the value of `{key}` is no number and neither true nor false; put text in quotes, as in {key} = \"text\"")
        }
        _ => message.to_owned(),
    }
}

/// Whether a line is an item or a key of YAML, which TOML cannot have.
pub(super) fn is_yaml_line(line: &str) -> bool {
    let line = line.trim();
    let key = line.split_once(':').filter(|(_, rest)| rest.is_empty() || rest.starts_with([' ', '\t']));
    let bare = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    line == "---" || line.starts_with("- ") || key.is_some_and(|(key, _)| bare(key))
}

/// What to do about YAML.
pub(super) const WRITE_TOML: &str = "a config is TOML or JSON. Write `key = value`, and `[section]` above the keys of a section; `chancery init` writes an example";

/// What to do with a key that holds a secret itself, where the section has a key for the name of an environment variable.
pub(super) fn secret_advice(key: &str, known: &[&str]) -> Option<String> {
    let variable = format!("{key}_env");
    known.contains(&variable.as_str()).then(|| {
        format!(
            "a secret does not belong in the file: put it in an environment variable, and set `{variable}` to the variable's name"
        )
    })
}

/// The fault of an address and port that could not be read.
fn address_fault(text: &str) -> String {
    let wanted = "expected an IP address and a port, as in \"127.0.0.1:8080\"";
    high_port(text).unwrap_or_else(|| format!("{wanted}, got {text:?}"))
}

/// The fault of an address or a URL whose port is over 65535.
pub(super) fn high_port(text: &str) -> Option<String> {
    let authority = text.split_once("://").map_or(text, |(_, rest)| rest).split('/').next()?;
    let port = authority.rsplit_once(':')?.1;
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_high = digits && port.parse::<u16>().is_err();
    is_high.then(|| format!("port {port} does not exist: the highest port is 65535"))
}

fn split_expected<'m>(message: &'m str, prefix: &str) -> Option<(&'m str, &'m str)> {
    message.strip_prefix(prefix)?.split_once(", expected ")
}

/// The words between backticks.
fn quoted(list: &str) -> impl Iterator<Item = &str> {
    list.split('`').skip(1).step_by(2)
}

fn meant(word: &str, list: &str) -> String {
    let name = nearest(word.trim_matches('`'), quoted(list));
    name.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// A type of Rust as what to write.
fn expected(wanted: &str) -> String {
    let plain = match wanted {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "u128" | "usize" => "a whole number ≥ 0",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "a borrowed string" | "path string" => "text in quotes",
        "socket address" => "an IP address and a port, as in \"127.0.0.1:8080\"",
        "a sequence" => "a list, as in [\"a\", \"b\"]",
        "a map" => "a table, as in { key = \"value\" }",
        _ if wanted.starts_with("struct ") || wanted.starts_with("enum ") => "a table, as in { key = \"value\" }",
        _ if wanted.starts_with("a nonzero u") => "a whole number ≥ 1",
        other => other,
    };
    plain.to_owned()
}

/// What stands in the file, without the name of its type.
fn got_value(got: &str) -> String {
    match got {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        _ => match got.split_once(['`', '"']) {
            Some((_, _)) if got.ends_with('`') => got.split('`').nth(1).unwrap_or(got).to_owned(),
            Some((kind, _)) => got[kind.len()..].to_owned(),
            None => got.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    fn faults(text: &str) -> Vec<String> {
        Config::parse(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_of_the_wrong_kind_are_named_without_types_of_rust() {
        for (text, fault) in [
            ("[limits]\nbody_bytes = -1\n", "2:14: limits.body_bytes: expected a whole number ≥ 0, got -1"),
            ("[limits]\nbody_bytes = 1.5\n", "2:14: limits.body_bytes: expected a whole number ≥ 0, got 1.5"),
            ("[limits]\nbody_bytes = 'big'\n", "2:14: limits.body_bytes: expected a whole number ≥ 0, got \"big\""),
            ("[limits]\nbody_bytes = []\n", "2:14: limits.body_bytes: expected a whole number ≥ 0, got a list"),
            (
                "[limits]\nhttp2_streams = 5000000000\n",
                "2:17: limits.http2_streams: expected a whole number from 0 to 4294967295, got 5000000000",
            ),
            ("[evidence]\nrecord = 'yes'\n", "2:10: evidence.record: expected true or false, got \"yes\""),
            (
                "[store]\nsynchronous = 'ful'\n",
                "2:15: store.synchronous: unknown value `ful`, expected `full` or `normal`; did you mean `full`?",
            ),
        ] {
            assert_eq!(faults(text), [fault], "{text}");
        }
    }

    #[test]
    fn yaml_and_text_without_quotes_are_named_on_the_line_they_are_on() {
        let yaml = "this line is YAML; a config is TOML or JSON. Write `key = value`";
        let found = faults("listen = '127.0.0.1:1'\nhosts:\n  - a.example\n  - b.example\n");
        assert_eq!(found.len(), 3, "{found:#?}");
        for (fault, line) in found.iter().zip(2..) {
            assert!(fault.starts_with(&format!("{line}:")) && fault.contains(yaml), "{found:#?}");
        }
        let found = faults("[agents.echo]\nrun: echo\n");
        assert!(found[1].starts_with("2:") && found[1].contains(yaml), "{found:#?}");
        let quotes = "is no number and neither true nor false; put text in quotes, as in listen = \"text\"";
        for text in ["listen = 127.0.0.1:1\n", "listen = localhost\n"] {
            let found = faults(text);
            assert_eq!(found.len(), 1, "{found:#?}");
            assert!(found[0].ends_with(&format!("the value of `listen` {quotes}")), "{found:#?}");
        }
        assert!(faults("listen = # later\n")[0].ends_with("`listen` has no value"), "{:?}", faults("listen = # later\n"));
    }

    #[test]
    fn a_port_over_65535_is_named_in_addresses_and_urls() {
        let high = |port: u32| format!("port {port} does not exist: the highest port is 65535");
        assert_eq!(faults("listen = '127.0.0.1:65536'\n"), [format!("1:10: listen: {}", high(65536))]);
        assert_eq!(faults("[swp]\nlisten = '[::1]:70000'\n"), [format!("2:10: swp.listen: {}", high(70000))]);
        assert_eq!(faults("[agents.a]\nurl = 'http://h:99999/a'\n"), [format!("2:7: agents.a.url: {}", high(99999))]);
        assert_eq!(faults("public_url = 'https://h:65536'\n"), [format!("1:14: public_url: {}", high(65536))]);
        let found = faults("listen = 'localhost'\n");
        assert_eq!(found, ["1:10: listen: expected an IP address and a port, as in \"127.0.0.1:8080\", got \"localhost\""]);
        assert!(Config::parse("listen = '127.0.0.1:65535'\n").is_ok());
    }

    #[test]
    fn a_fault_of_a_condition_stands_at_the_line_of_the_condition() {
        let rules =
            "[[policy.rules]]\nname = 'fine'\ndeny_when = 'depth > 3'\n[[policy.rules]]\nname = 'odd'\nallow_when = 'depth >'\n";
        let found = faults(rules);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with("6:14: policy.rules[1].allow_when: the rule \"odd\": "), "{found:#?}");
        let several = |quotes: &str| {
            let text = format!("[[policy.rules]]\nname = 'odd'\ndeny_when = {quotes}\ncaller == 'x' &&\n  foo > 3\n{quotes}\n");
            faults(&text)[0].clone()
        };
        for found in [several("'''"), several("\"\"\"")] {
            assert!(found.starts_with("5:3: policy.rules[0].deny_when: the rule \"odd\": there is no name \"foo\""), "{found}");
            assert!(found.ends_with("(line 2 column 3 of the condition)"), "{found}");
        }
        let at_once = faults("[[policy.rules]]\nname = 'odd'\ndeny_when = '''depth > 3 && foo > 3'''\n");
        assert!(at_once[0].starts_with("3:29: policy.rules[0].deny_when: "), "{at_once:#?}");
        let twice =
            "[[policy.rules]]\nname = 'a'\ndeny_when = 'depth > 3'\n[[policy.rules]]\nname = 'a'\ndeny_when = 'depth > 4'\n";
        assert!(
            faults(twice)[0].starts_with("6:13: policy.rules[1].deny_when: the rule \"a\" is there twice"),
            "{:?}",
            faults(twice)
        );
    }
}
