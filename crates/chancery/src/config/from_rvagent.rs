//! Takes the `a2a.toml` of an `rvagent-a2a` server over into a config of this node.

use toml::{Table, Value};

use super::notation::{FromJson, is_json, yaml_fault};
use super::template::{set, template_of};
use super::{Config, ConfigFault};

/// The crate's names of selectors, which are ours too.
const SELECTORS: [&str; 4] = ["cheapest_under_latency", "lowest_latency", "round_robin", "capability_match"];
/// The crate's own default depth of a queue.
const QUEUE_DEPTH: i64 = 1000;

/// Keys that mean the same in both configs.
const SAME: [(&str, &[&str]); 4] = [
    ("routing", &["default_selector", "latency_budget_ms", "fallback"]),
    ("budget.global", &["max_usd_per_minute", "max_tokens_per_minute", "max_tasks_per_minute"]),
    ("policy.default", &["max_tokens", "max_cost_usd", "max_duration_ms", "allowed_skills", "max_concurrency"]),
    ("recursion", &["max_call_depth", "deny_revisit", "revisit_allowlist"]),
];

/// A config that does what an `a2a.toml` said.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenOver {
    /// Every key, with its default or the value from the given config.
    pub text: String,
    /// What differs or was left out, a sentence each.
    pub remarks: Vec<String>,
}

/// Reads an `a2a.toml`, or the same as JSON. Faults are those of the given text, or of what the node makes of its values.
pub fn from_rvagent(text: &str) -> Result<TakenOver, Vec<ConfigFault>> {
    if let Some(fault) = yaml_fault(text) {
        return Err(vec![fault]);
    }
    let json = is_json(text).then(|| FromJson::read(text)).transpose()?;
    let toml = json.as_ref().map_or(text, |json| &json.toml);
    let at_start = |message: String| vec![ConfigFault { line: 1, column: 1, message }];
    let mut given: Table = toml.parse().map_err(|fault: toml::de::Error| at_start(fault.message().to_owned()))?;
    let mut import = Import::default();
    let agents = import.peers(&mut given);
    import.selectors(&mut given);
    for (section, keys) in SAME {
        for key in keys {
            if let Some(value) = take(&mut given, section, key) {
                import.settings.push((section, key, value.to_string()));
            }
        }
    }
    if let Some(overflow) = take(&mut given, "budget.global", "overflow") {
        import.settings.push(("budget.global", "overflow", overflow_of(&overflow).map_err(at_start)?));
    }
    import.left_over("", &given);
    let mut text = template_of(&agents);
    // What the crate does where its file is silent.
    for (key, value) in [("default_selector", "\"cheapest_under_latency\""), ("fallback", "\"none\"")] {
        set(&mut text, "routing", key, value);
    }
    for (section, key, value) in &import.settings {
        set(&mut text, section, key, value);
    }
    Config::parse(&text)
        .map_err(|faults| faults.into_iter().map(|fault| ConfigFault { line: 1, column: 1, ..fault }).collect::<Vec<_>>())?;
    Ok(TakenOver { text, remarks: import.remarks })
}

#[derive(Default)]
struct Import {
    settings: Vec<(&'static str, &'static str, String)>,
    remarks: Vec<String>,
}

impl Import {
    /// The crate sends a task to any of its peers, so they are replicas of one agent, by whether their cards have to be signed.
    fn peers(&mut self, given: &mut Table) -> Vec<String> {
        let peers = take(given, "routing", "peers").and_then(|peers| peers.as_array().cloned()).unwrap_or_default();
        let (mut signed, mut open) = (Vec::new(), Vec::new());
        for peer in &peers {
            let Some(url) = peer.get("url").and_then(Value::as_str) else {
                self.remarks.push(format!("routing.peers: {peer} has no url and is left out"));
                continue;
            };
            let strict = peer.get("verify_card").and_then(Value::as_bool).unwrap_or(false);
            if strict { &mut signed } else { &mut open }.push(Value::from(url));
        }
        if signed.is_empty() && open.is_empty() {
            self.remarks.push("there are no peers; `echo` stands where your TaskRunner ran: see docs/from-rvagent.md".to_owned());
        } else if !signed.is_empty() && !open.is_empty() {
            let remark =
                "peers with verify_card are the agent `signed-peers`, the others `peers`; a task goes to the peers of one agent";
            self.remarks.push(remark.to_owned());
        }
        let section = |name: &str, urls: Vec<Value>, verify: &str| {
            (!urls.is_empty()).then(|| format!("[agents.{name}]\nurl = {}\nverify = \"{verify}\"\n\n", Value::Array(urls)))
        };
        let agents = [section("signed-peers", signed, "require"), section("peers", open, "if-present")];
        agents.into_iter().flatten().collect()
    }

    /// A chain of selectors: the second one picks where the first one finds no replica. A value of
    /// `[routing]` itself has precedence.
    fn selectors(&mut self, given: &mut Table) {
        let chain = take(given, "routing", "selectors").and_then(|chain| chain.as_array().cloned()).unwrap_or_default();
        for (place, selector) in chain.iter().enumerate() {
            let kind = selector.get("kind").and_then(Value::as_str).filter(|kind| SELECTORS.contains(kind));
            match (kind, ["default_selector", "fallback"].get(place)) {
                (Some(kind), Some(&key)) => {
                    self.settings.push(("routing", key, Value::from(kind).to_string()));
                    let budget = ["latency_budget_ms", "max_latency_ms"].iter().find_map(|name| selector.get(name));
                    self.settings.extend(budget.map(|budget| ("routing", "latency_budget_ms", budget.to_string())));
                }
                (Some(kind), None) => {
                    self.remarks.push(format!("routing.selectors: {kind} is left out; a node has two in a row"))
                }
                (None, _) => {
                    self.remarks.push(format!("routing.selectors: {selector} is no selector of this node and is left out"))
                }
            }
        }
    }

    /// Nothing is left out silently.
    fn left_over(&mut self, path: &str, table: &Table) {
        for (key, value) in table {
            let name = format!("{path}{key}");
            match value {
                Value::Table(inner) => self.left_over(&format!("{name}."), inner),
                _ => self.remarks.push(format!("{name} is no setting of this node and is left out")),
            }
        }
    }
}

/// `"shed"`, `"queue"`, or a table with `kind` and `max_queue_depth`, in our spelling.
fn overflow_of(value: &Value) -> Result<String, String> {
    let kind = value.as_str().or_else(|| value.get("kind")?.as_str());
    let depth = value.get("max_queue_depth").and_then(Value::as_integer).unwrap_or(QUEUE_DEPTH);
    match kind {
        Some("shed") => Ok("\"shed\"".to_owned()),
        Some("queue") => Ok(format!("{{ queue = {{ max_queue_depth = {depth} }} }}")),
        _ => Err(format!("budget.global.overflow: {value} is neither \"shed\" nor \"queue\"")),
    }
}

/// Takes a key out of a section.
fn take(given: &mut Table, section: &str, key: &str) -> Option<Value> {
    section.split('.').try_fold(given, |table, name| table.get_mut(name)?.as_table_mut())?.remove(key)
}

#[cfg(test)]
mod tests {
    use chancery_rules::routing::{Fallback, SelectorName};

    use super::super::{AgentSource, Config};
    use super::*;

    const WHOLE: &str = r#"
        [routing]
        default_selector = "round_robin"
        latency_budget_ms = 1500
        fallback = "lowest_latency"
        colour = "blue"
        [[routing.peers]]
        url = "http://127.0.0.1:18001"
        [[routing.peers]]
        url = "http://127.0.0.1:18002"
        [budget.global]
        max_usd_per_minute = 10.0
        max_tokens_per_minute = 5000
        overflow = "queue"
        [policy.default]
        max_cost_usd = 0.05
        max_duration_ms = 30000
        allowed_skills = ["rag.query", "embed.vectorize"]
        [recursion]
        max_call_depth = 4
        deny_revisit = false
    "#;

    fn urls(config: &Config, agent: &str) -> Vec<String> {
        let (_, found) = config.agents.iter().find(|(name, _)| name == agent).expect("the agent");
        let AgentSource::Remote(remote) = &found.source else { panic!("{agent} is here") };
        remote.urls.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_whole_file_is_taken_over_and_what_is_not_is_said() {
        let taken = from_rvagent(WHOLE).unwrap();
        let config = Config::parse(&taken.text).unwrap();
        assert_eq!(urls(&config, "peers").len(), 2);
        assert_eq!(
            (config.routing.default_selector, config.routing.fallback),
            (SelectorName::RoundRobin, Fallback::LowestLatency)
        );
        assert_eq!((config.routing.latency_budget_ms, config.governance.recursion.max_call_depth), (1500, 4));
        let expected = "[budget.global]\nmax_usd_per_minute = 10.0\nmax_tokens_per_minute = 5000\n\
                        overflow = { queue = { max_queue_depth = 1000 } }\n[policy.default]\nmax_cost_usd = 0.05\nmax_duration_ms = 30000\n\
                        allowed_skills = ['rag.query', 'embed.vectorize']\n[recursion]\nmax_call_depth = 4\ndeny_revisit = false\n";
        assert_eq!(config.governance, Config::parse(expected).unwrap().governance);
        assert_eq!(taken.remarks, ["routing.colour is no setting of this node and is left out"]);
    }

    #[test]
    fn a_silent_file_does_what_the_crate_does_by_itself() {
        let taken = from_rvagent("").unwrap();
        let config = Config::parse(&taken.text).unwrap();
        assert_eq!(
            (config.routing.default_selector, config.routing.fallback),
            (SelectorName::CheapestUnderLatency, Fallback::None)
        );
        assert_eq!((config.agents, taken.remarks.len()), (Config::default().agents, 1));
    }

    #[test]
    fn signed_peers_are_an_agent_of_their_own() {
        let text =
            "[[routing.peers]]\nurl = 'https://a.example'\nverify_card = true\n[[routing.peers]]\nurl = 'https://b.example'\n";
        let taken = from_rvagent(text).unwrap();
        let config = Config::parse(&taken.text).unwrap();
        assert!(urls(&config, "signed-peers")[0].contains("a.example") && urls(&config, "peers")[0].contains("b.example"));
        assert!(taken.text.contains("verify = \"require\"") && taken.remarks[0].contains("signed-peers"), "{:?}", taken.remarks);
    }

    #[test]
    fn selectors_in_a_row_are_the_selector_and_its_fallback() {
        let text = "[[routing.selectors]]\nkind = 'capability_match'\n[[routing.selectors]]\nkind = 'cheapest_under_latency'\n\
                    max_latency_ms = 900\n[[routing.selectors]]\nkind = 'round_robin'\n[[routing.selectors]]\nkind = 'mine'\n";
        let taken = from_rvagent(text).unwrap();
        let routing = Config::parse(&taken.text).unwrap().routing;
        assert_eq!(routing.default_selector, SelectorName::CapabilityMatch);
        assert_eq!((routing.fallback, routing.latency_budget_ms), (Fallback::CheapestUnderLatency, 900));
        assert_eq!(
            taken.remarks.iter().filter(|remark| remark.starts_with("routing.selectors: ")).count(),
            2,
            "{:?}",
            taken.remarks
        );
    }

    #[test]
    fn json_is_taken_over_too_and_what_makes_no_sense_is_a_fault() {
        let json =
            r#"{ "budget": { "global": { "max_tasks_per_minute": 7, "overflow": { "kind": "queue", "max_queue_depth": 9 } } } }"#;
        let taken = from_rvagent(json).unwrap();
        assert!(taken.text.contains("\noverflow = { queue = { max_queue_depth = 9 } }"), "{}", taken.text);
        for (text, words) in [
            ("routing:\n  peers: []\n", "TOML or JSON"),
            ("[budget.global]\noverflow = 'drop'\n", "neither \"shed\" nor \"queue\""),
            ("[routing]\ndefault_selector = 'fastest'\n", "unknown value `fastest`"),
            ("this = is = not\n", ""),
        ] {
            let faults = from_rvagent(text).unwrap_err();
            assert!(faults.iter().any(|fault| fault.message.contains(words)), "{text}: {faults:?}");
        }
    }
}
