//! The shipped config file: every key with its default and a word about it. `chancery init` writes it, the schema quotes it.

use serde_json::Value;

const SHIPPED: &str = include_str!("../../examples/chancery.toml");

/// The name the schema is written under, beside the config that refers to it.
pub const SCHEMA_FILE: &str = "chancery.schema.json";

/// A config file with every key at its default, commented, which tells editors where its schema is. Agents at `urls` take
/// the place of the echo agent.
pub fn template(urls: &[String]) -> String {
    let sections: Vec<String> = urls
        .iter()
        .enumerate()
        .map(|(index, url)| {
            let name = if index == 0 { "agent".to_owned() } else { format!("agent-{}", index + 1) };
            format!("[agents.{name}]\nurl = {}\n\n", toml::Value::from(url.as_str()))
        })
        .collect();
    template_of(&sections)
}

/// The same with these sections of agents in the place of the echo agent.
pub(super) fn template_of(sections: &[String]) -> String {
    let body = if sections.is_empty() { SHIPPED.to_owned() } else { with_agents(sections) };
    format!("#:schema ./{SCHEMA_FILE}\n\n{body}")
}

/// Gives a key of a section another value. The section and the key may be commented out; the word about the key stays.
pub(super) fn set(text: &mut String, section: &str, key: &str, value: &str) {
    let (header, start) = (format!("[{section}]"), format!("{key} = "));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let bare = |line: &str| line.strip_prefix("# ").unwrap_or(line).to_owned();
    let Some(top) = lines.iter().position(|line| bare(line) == header) else { return };
    lines[top] = header;
    let is_header = |line: &String| bare(line).starts_with('[') && bare(line).ends_with(']');
    let end = lines.iter().skip(top + 1).position(is_header).map_or(lines.len(), |next| top + 1 + next);
    let place = (top + 1..end).find(|place| bare(&lines[*place]).starts_with(&start));
    let remark = place.and_then(|place| lines[place].split_once(" # ").map(|(_, remark)| format!(" # {}", remark.trim())));
    let line = format!("{start}{value}{}", remark.unwrap_or_default());
    match place {
        Some(place) => lines[place] = line,
        None => lines.insert(top + 1, line),
    }
    *text = lines.join("\n") + "\n";
}

fn with_agents(sections: &[String]) -> String {
    let (before, rest) = SHIPPED.split_once("[agents.echo]\n").unwrap_or((SHIPPED, ""));
    // What was said of the echo agent stays as an example.
    let (echo, rest) = rest.split_once("\n\n").unwrap_or((rest, ""));
    let echo: Vec<String> = std::iter::once("# [agents.echo]".to_owned())
        .chain(echo.lines().map(|line| if line.starts_with('#') { line.to_owned() } else { format!("# {line}") }))
        .collect();
    format!("{before}{}{}\n\n{rest}", sections.concat(), echo.join("\n"))
}

/// What the shipped file says about one key.
pub(super) struct Described {
    pub(super) section: Vec<String>,
    pub(super) key: String,
    pub(super) text: String,
    /// Of a key that is not commented out.
    pub(super) default: Option<Value>,
}

pub(super) fn described() -> Vec<Described> {
    let mut found: Vec<Described> = Vec::new();
    let (mut section, mut above) = (Vec::new(), Vec::new());
    for line in SHIPPED.lines() {
        let bare = line.strip_prefix("# ").unwrap_or(line);
        if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.split('.').map(str::to_owned).collect();
            above.clear();
        } else if let Some((key, value)) = bare.split_once(" = ").filter(|(key, _)| is_key(key)) {
            let (value, remark) =
                value.split_once(" # ").map_or((value, ""), |(value, remark)| (value.trim_end(), remark.trim()));
            let text = if remark.is_empty() { above.join(" ") } else { remark.to_owned() };
            above.clear();
            let given = (!line.starts_with('#')).then(|| format!("it = {value}").parse::<toml::Table>().ok()).flatten();
            let default = given.and_then(|table| serde_json::to_value(table.get("it")?).ok());
            // Names that whoever writes the file chooses have no default.
            let default = default.filter(|_| section.len() < 2);
            found.push(Described { section: section.clone(), key: key.to_owned(), text, default });
        } else if line.starts_with("#        ") {
            // The rest of a remark that did not fit.
            if let Some(last) = found.last_mut() {
                last.text = format!("{} {}", last.text, line.trim_start_matches(['#', ' ']));
            }
        } else if line.starts_with("# ") {
            above.push(bare.trim());
        } else {
            above.clear();
        }
    }
    found
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::super::{AgentSource, Config};
    use super::*;

    #[test]
    fn the_written_file_is_the_default_and_refers_to_its_schema() {
        let text = template(&[]);
        assert_eq!(Config::parse(&text).unwrap(), Config::default());
        assert_eq!(text.lines().next(), Some("#:schema ./chancery.schema.json"));
    }

    #[test]
    fn agents_elsewhere_take_the_place_of_the_echo_agent() {
        let urls = ["http://127.0.0.1:9001".to_owned(), "https://b.example/\"x\"".to_owned()];
        let config = Config::parse(&template(&urls)).unwrap();
        let read: Vec<_> = config
            .agents
            .iter()
            .map(|(name, agent)| match &agent.source {
                AgentSource::Remote(remote) => (name.as_str(), remote.urls[0].as_str()),
                AgentSource::BuiltIn(_) => panic!("{name} is here"),
            })
            .collect();
        assert_eq!(read, [("agent", urls[0].as_str()), ("agent-2", urls[1].as_str())]);
    }
}
