//! Random config files: every number that a reload can change, and a choice of everything else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use chancery_identity::credentials::KeyHash;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::Value;

use crate::config::changed_keys::every_key;
use crate::config::schema::schema;
use crate::config::{Config, TakesEffect};

/// What files can name that is there.
pub(super) struct Surroundings<'a> {
    /// The URL of a remote agent.
    pub(super) far: &'a str,
    /// A folder for large parts.
    pub(super) tier: &'a Path,
}

/// Keys that need a restart, the same in both files of a pair.
struct Lasting {
    offload: bool,
    push: bool,
}

/// Two files. A node that was started with the first can reload the second.
pub(super) fn pair(random: &mut StdRng, around: &Surroundings<'_>) -> (String, String) {
    let lasting = Lasting { offload: random.random_bool(0.5), push: random.random_bool(0.8) };
    let (was_closed, is_closed) = (random.random_bool(0.5), random.random_bool(0.5));
    let before = file(random, around, &lasting, was_closed);
    // A node that asks who is calling is not opened by a file.
    let mut after = file(random, around, &lasting, was_closed || is_closed);
    if random.random_bool(0.05) {
        after.clone_from(&before);
    }
    (before, after)
}

/// A file that can be read. Numbers are drawn until they agree with each other.
fn file(random: &mut StdRng, around: &Surroundings<'_>, lasting: &Lasting, closed: bool) -> String {
    loop {
        let text = draw(random, around, lasting, closed);
        if Config::parse(&text).is_ok() {
            return text;
        }
    }
}

fn draw(random: &mut StdRng, around: &Surroundings<'_>, lasting: &Lasting, closed: bool) -> String {
    let mut sections: BTreeMap<String, String> = numbers(random);
    let mut set = |section: &str, line: String| {
        let _ = writeln!(sections.entry(section.to_owned()).or_default(), "{line}");
    };
    let mut top = String::new();
    if random.random_bool(0.5) {
        top += "dedupe = 'message_id'\n";
    }
    if random.random_bool(0.5) {
        top += "hosts = ['gate.example', '10.0.0.7']\n";
    }
    let mut names = vec!["alpha", "beta", "far"];
    names.truncate(random.random_range(1..=3));
    if random.random_bool(0.5) {
        names.reverse();
    }
    for name in &names {
        let section = format!("agents.{name}");
        if *name == "far" {
            set(&section, format!("url = '{}'", around.far));
            if random.random_bool(0.5) {
                set(&section, "enforce_input_modes = true".to_owned());
            }
        } else {
            let runs = ["echo", "conformance"];
            set(&section, format!("run = '{}'", runs[random.random_range(0..2)]));
            if random.random_bool(0.4) {
                let skill = "{ id = 'audit', name = 'Audit', description = 'Shows it.', tags = ['audit'] }";
                set(&section, format!("extended_skills = [{skill}]"));
            }
        }
        for (key, value) in [
            ("title", "'A title'"),
            ("description", "'What it does.'"),
            ("price", "{ per_call_usd = '0.02' }"),
            ("hosts", &format!("['{name}.example.org']")),
            ("tenants", &format!("['of-{name}']")),
        ] {
            if random.random_bool(0.3) {
                set(&section, format!("{key} = {value}"));
            }
        }
    }
    if closed {
        let hash = KeyHash::of("a-key-that-is-long-enough-for-this");
        set("callers.planner", format!("key_hash = '{hash}'"));
        if random.random_bool(0.5) {
            set("callers.planner", format!("may_call = ['{}']", names[0]));
        }
        if random.random_bool(0.5) {
            set("issuers.acme", "issuer = 'https://login.acme.example'\naudience = 'https://agents.example.org'".to_owned());
        }
    }
    set("card", format!("headerless = '{}'", ["hybrid", "1.0", "0.3"][random.random_range(0..3)]));
    let bindings = ["['JSONRPC']", "['HTTP+JSON', 'GRPC']", "['JSONRPC', 'HTTP+JSON', 'GRPC-TARGET']"];
    set("card", format!("bindings = {}", bindings[random.random_range(0..3)]));
    if random.random_bool(0.3) {
        // Nobody listens there, so that calls fail at once.
        set("outbound", "proxy = 'http://127.0.0.1:9'".to_owned());
    }
    if random.random_bool(0.3) {
        set("outbound", "allow_nets = ['10.1.0.0/16']\ndeny_hosts = ['bad.example']".to_owned());
    }
    set("routing", format!("default_selector = '{}'", ["round_robin", "lowest_latency"][random.random_range(0..2)]));
    set("recursion", format!("deny_revisit = {}", random.random_bool(0.5)));
    set("lineage", format!("traces = {}", random.random_bool(0.5)));
    if random.random_bool(0.5) {
        set("budget.global", format!("max_tasks_per_minute = {}", random.random_range(1..100)));
        set("budget.caller.planner", format!("max_usd = '{}.5'\nwindow = '1h'", random.random_range(1..100)));
    }
    if random.random_bool(0.5) {
        set("policy.default", format!("max_tokens = {}", random.random_range(1..100)));
        set("policy.skill.audit", format!("max_concurrency = {}", random.random_range(1..100)));
    }
    set("push", format!("enabled = {}", lasting.push));
    if lasting.offload {
        set("memory", format!("tier = '{}'", around.tier.display()));
        set("artifacts", "offload = true".to_owned());
    }
    // Agents in the order that was drawn: the first one answers at the root.
    let agents: Vec<String> = names.iter().map(|name| format!("agents.{name}")).collect();
    let others = sections.keys().filter(|name| !name.starts_with("agents.")).cloned();
    let order: Vec<String> = agents.into_iter().chain(others).collect();
    let text = order.iter().fold(top, |text, name| format!("{text}[{name}]\n{}", sections[name]));
    let rule = format!("[[policy.rules]]\nname = 'shallow'\ndeny_when = 'depth > {}'\n", random.random_range(1..9));
    if random.random_bool(0.3) { text + &rule } else { text }
}

/// Some of the numbers that a reload can change, each a little more than its default.
fn numbers(random: &mut StdRng) -> BTreeMap<String, String> {
    let schema = schema();
    let mut sections = BTreeMap::<String, String>::new();
    for key in every_key().into_iter().filter(|key| key.takes_effect != TakesEffect::Restart) {
        let Some((section, name)) = key.key.split_once('.') else { continue };
        let known = &schema["properties"][section]["properties"][name];
        let Some(default) = known["default"].as_u64().filter(|_| is_number(known)) else { continue };
        if random.random_bool(0.15) {
            let value = default + random.random_range(0..=default / 4 + 1);
            let _ = writeln!(sections.entry(section.to_owned()).or_default(), "{name} = {value}");
        }
    }
    sections
}

fn is_number(schema: &Value) -> bool {
    schema["type"] == "integer"
}
