//! The config of the demo's control plane: what it needs to know of its agents, and over that what the user sets.

use chancery::config::Config;
use toml::{Table, Value};

use crate::commands::Failure;

/// An agent that is called at a URL and calls with a key, and what a call of it costs.
pub(super) struct DemoAgentEntry<'a> {
    pub(super) name: &'a str,
    pub(super) url: String,
    pub(super) key_hash: String,
    pub(super) price: &'a str,
}

/// Reads the whole as a config file would be read. Without a root there are no callers, and the node is open.
pub(super) fn settings(agents: &[DemoAgentEntry<'_>], root: Option<(&str, String)>, set: &[String]) -> Result<Config, Failure> {
    let mut table = base(agents, root);
    for setting in set {
        merge(&mut table, read(setting)?);
    }
    let text = toml::to_string(&table).map_err(|fault| Failure::Usage(format!("these settings make no config: {fault}")))?;
    let config = Config::parse(&text).map_err(|faults| {
        let faults: Vec<_> = faults.into_iter().map(|fault| fault.message).collect();
        Failure::Usage(format!("--set: {}", faults.join("\n  ")))
    })?;
    fits_a_demo(&config)?;
    Ok(config)
}

fn base(agents: &[DemoAgentEntry<'_>], root: Option<(&str, String)>) -> Table {
    let text = |text: &str| Value::String(text.to_owned());
    let table =
        |members: Vec<(&str, Value)>| Value::Table(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    let served = agents.iter().map(|agent| {
        let price = table(vec![("per_call_usd", text(agent.price))]);
        (agent.name, table(vec![("url", text(&agent.url)), ("price", price)]))
    });
    let budget = table(vec![("tree", table(vec![("max_usd", text("0.10"))]))]);
    let mut whole = vec![("listen", text("127.0.0.1:0")), ("agents", table(served.collect())), ("budget", budget)];
    if let Some((root, key_hash)) = root {
        let caller = |agent: &DemoAgentEntry<'_>| table(vec![("agent", text(agent.name)), ("key_hash", text(&agent.key_hash))]);
        let mut callers: Vec<_> = agents.iter().map(|agent| (agent.name, caller(agent))).collect();
        callers.push((root, table(vec![("key_hash", text(&key_hash))])));
        whole.push(("callers", table(callers)));
    }
    whole.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// One `KEY=VALUE`, which is a line of TOML.
fn read(setting: &str) -> Result<Table, Failure> {
    let wrong = |why: &str| Failure::Usage(format!("--set {setting}: {why}"));
    if !setting.contains('=') {
        return Err(wrong("it is KEY=VALUE, as in recursion.max_call_depth=4"));
    }
    let read = setting.parse::<Table>().map_err(|fault| {
        let why = fault.message().trim().replace('\n', ", ");
        wrong(&format!("{why} (it is read as TOML: text needs quotes, as in KEY='\"text\"')"))
    })?;
    match read.is_empty() {
        true => Err(wrong("it sets nothing")),
        false => Ok(read),
    }
}

/// Tables become one, everything else is replaced.
fn merge(table: &mut Table, over: Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(over)) => merge(inner, over),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// The demo stays on this machine and leaves nothing on it.
fn fits_a_demo(config: &Config) -> Result<(), Failure> {
    let node = &config.node;
    let set = [
        ("listen, beyond the loopback,", !node.listen.ip().is_loopback()),
        ("public_url", node.public_url.is_some()),
        ("data", node.data.is_some()),
        ("tls", config.tls.cert_file.is_some()),
    ];
    match set.into_iter().find(|(_, set)| *set) {
        Some((key, _)) => Err(Failure::Usage(format!("--set: {key} cannot be set for a demo; `chancery serve` takes it"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_core::MicroUsd;

    fn with(set: &[&str]) -> Result<Config, String> {
        let hash = format!("sha256:{}", "0".repeat(64));
        let agents = ["a", "b"].map(|name| {
            let url = format!("http://127.0.0.1:9/{name}");
            let key_hash = format!("sha256:{}", name.repeat(64));
            DemoAgentEntry { name, url, key_hash, price: "0.01" }
        });
        let set: Vec<_> = set.iter().map(|&setting| setting.to_owned()).collect();
        settings(&agents, Some(("you", hash)), &set).map_err(|failure| failure.to_string())
    }

    #[test]
    fn settings_outrank_what_the_demo_starts_with_and_leave_the_rest() {
        let config = with(&["budget.tree.max_usd=0.02", "agents.a.price.per_call_usd=\"0.5\""]).unwrap();
        assert_eq!(config.governance.budget.tree.max_usd, Some(MicroUsd(20_000)));
        let prices: Vec<_> = config.agents.iter().map(|(_, agent)| agent.price.per_call_usd.unwrap().0).collect();
        assert_eq!(prices, [500_000, 10_000]);
        assert_eq!(config.callers.len(), 3);
    }

    #[test]
    fn a_bad_setting_is_named_with_what_is_wrong_with_it() {
        for (setting, words) in [
            ("recursion", "KEY=VALUE"),
            ("recursion.deny_revisit=maybe", "TOML"),
            ("#a=1", "sets nothing"),
            ("recursion.deny_revisits=true", "did you mean `deny_revisit`?"),
            ("recursion=1", "must be a section"),
            ("budget.tree.max_usd=-1", "budget.tree"),
            ("listen='0.0.0.0:0'", "listen"),
            ("data='x'", "data"),
        ] {
            let refused = with(&[setting]).unwrap_err();
            assert!(refused.contains("--set") && refused.contains(words), "{setting}: {refused}");
        }
    }
}
