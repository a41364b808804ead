//! What a config says in one place must agree with what it says in another.

use std::collections::BTreeMap;

use chancery_core::notify::Schedule;
use chancery_inbound::ClientCertificates;
use chancery_protocol::{AgentId, MayCall};
use chancery_rules::lineage::is_distinct;
use chancery_rules::routing::Fallback;
use url::Url;

use super::Config;
use super::agent::{AgentSource, RemoteConfig};
use super::fault::ConfigFault;
use super::names::HostName;
use super::nearest::nearest;
use super::places::Places;
use super::plain_faults::high_port;
use crate::policy_expressions::place_in_condition;

/// All contradictions within the config. Command line and data folder do not count here.
pub(super) fn faults(config: &Config, places: &Places) -> Vec<ConfigFault> {
    [
        addresses(config, places),
        fallbacks(config, places),
        proofs(config, places),
        bounds(config, places),
        rules(config, places),
        slim_wire(config, places),
        schedule(config, places),
        in_vain(config, places),
        hosts(config, places),
    ]
    .concat()
}

/// Over TLS both sides of SWP show who they are.
fn slim_wire(config: &Config, places: &Places) -> Vec<ConfigFault> {
    let tls = &config.tls;
    let one_sided = config.swp.door.listen.is_some() && tls.cert_file.is_some() && tls.client_ca_file.is_none();
    let fault = || places.fault("swp.listen", "needs tls.client_ca_file beside [tls]: SWP callers show certificates");
    one_sided.then(fault).into_iter().collect()
}

/// Settings without any effect.
fn in_vain(config: &Config, places: &Places) -> Vec<ConfigFault> {
    let (tls, doors) = (&config.tls, &config.limits.inbound);
    let asks_nobody = tls.client_certificates == ClientCertificates::Required && tls.client_ca_file.is_none();
    let scheme = config.memory.tier.as_deref().and_then(|tier| tier.split_once("://")).map(|(scheme, _)| scheme);
    [
        (asks_nobody, "tls.client_certificates", "needs tls.client_ca_file: without it the server requests no certificate"),
        (config.artifacts.offload && config.memory.tier.is_none(), "artifacts.offload", "needs memory.tier to put parts into"),
        (config.card.fault().is_some(), "card.bindings", config.card.fault().unwrap_or_default()),
        (doors.connections == 0, "limits.connections", "must be more than 0: no client could connect"),
        (doors.connections_per_address == 0, "limits.connections_per_address", "must be more than 0: no client could connect"),
        (
            scheme.is_some_and(|scheme| !["file", "s3", "gs"].contains(&scheme)),
            "memory.tier",
            "must be a folder, or a file://, s3:// or gs:// URL",
        ),
    ]
    .into_iter()
    .filter(|(is_so, _, _)| *is_so)
    .map(|(_, key, fault)| places.fault(key, fault))
    .collect()
}

/// An agent's host must differ from the node's. If the command line sets the node's, the start checks it.
fn hosts(config: &Config, places: &Places) -> Vec<ConfigFault> {
    let own = config.node.public_url.as_ref().and_then(|url| url.url().host_str());
    let is_named = |host: &HostName| config.node.hosts.iter().any(|named| named.as_str() == host.name());
    let is_own = |host: &&HostName| Some(host.name()) == own || is_named(host);
    let of_agents = config.agents.iter().filter_map(|(name, agent)| Some((name, agent.hosts.iter().find(is_own)?)));
    of_agents.map(|(name, host)| places.fault(&format!("agents.{name}.hosts"), &host.is_the_nodes_own())).collect()
}

/// When webhooks are tried again.
fn schedule(config: &Config, places: &Places) -> Vec<ConfigFault> {
    let fault = Schedule::new(config.push.notify.schedule_s.clone()).err();
    fault.iter().map(|fault| places.fault("push.schedule_s", &fault.to_string())).collect()
}

/// Rules in the operator's own words have to be understood.
fn rules(config: &Config, places: &Places) -> Vec<ConfigFault> {
    let faults = config.rulebook().err().unwrap_or_default();
    let fault = |text: &String| {
        let key = rule_key(config, places, text);
        match place_in_condition(text) {
            Some(place) => places.fault_in_text(&key, place, text),
            None => places.fault(&key, text),
        }
    };
    faults.iter().map(fault).collect()
}

/// The key of the condition that a fault of the rules is about. Of two rules with one name it is the second.
fn rule_key(config: &Config, places: &Places, fault: &str) -> String {
    let rules = config.governance.policy.rules.iter().enumerate();
    let named = rules.filter(|(_, rule)| fault.starts_with(&format!("the rule {:?}", rule.name)));
    let mut keys = named.flat_map(|(index, _)| ["deny_when", "allow_when"].map(|key| format!("policy.rules[{index}].{key}")));
    keys.rfind(|key| places.has(key)).unwrap_or_else(|| "policy.rules".to_owned())
}

/// Remote agents need URLs that can be called. Two agents with one URL and the same settings are a mistake.
fn addresses(config: &Config, places: &Places) -> Vec<ConfigFault> {
    let (mut faults, mut taken) = (Vec::new(), BTreeMap::<String, (&str, &RemoteConfig)>::new());
    for (name, agent) in &config.agents {
        let AgentSource::Remote(remote) = &agent.source else { continue };
        let key = format!("agents.{name}.url");
        for text in &remote.urls {
            let url = match Url::parse(text) {
                Ok(url) if matches!(url.scheme(), "http" | "https" | "swp" | "swps") && url.has_host() => url,
                _ => {
                    let no_url = || format!("{text:?} is no http, https, swp or swps URL");
                    faults.push(places.fault(&key, &high_port(text).unwrap_or_else(no_url)));
                    continue;
                }
            };
            match taken.insert(url.as_str().trim_end_matches('/').to_owned(), (name, remote)) {
                Some((other, _)) if other == name => faults.push(places.fault(&key, &format!("{text} is there twice"))),
                Some((other, terms)) if same_terms(terms, remote) => {
                    faults.push(places.fault(&key, &format!("{text} is where {other} is already")));
                }
                _ => {}
            }
        }
        let credentials = &remote.credentials;
        let key = format!("agents.{name}.credentials");
        if credentials.bearer_env.is_some() && credentials.api_key_env.is_some() {
            faults.push(places.fault(&key, "a bearer token or an API key, not both"));
        }
        if credentials.cert_file.is_some() != credentials.key_file.is_some() {
            faults.push(places.fault(&key, "a certificate needs both cert_file and key_file"));
        }
    }
    faults
}

/// A local agent beside remote ones is used only as the fallback of routing.
fn fallbacks(config: &Config, places: &Places) -> Vec<ConfigFault> {
    if config.routing.fallback == Fallback::Local {
        return Vec::new();
    }
    let idle =
        config.agents.iter().filter(|(_, agent)| matches!(&agent.source, AgentSource::Remote(remote) if remote.local.is_some()));
    let fault = |name: &str| {
        let message =
            "has both `run` and `url`: remove one, or set routing.fallback = \"local\" to run the agent here if its URL fails";
        places.fault(&format!("agents.{name}"), message)
    };
    idle.map(|(name, _)| fault(name)).collect()
}

fn same_terms(one: &RemoteConfig, other: &RemoteConfig) -> bool {
    RemoteConfig { urls: other.urls.clone(), ..one.clone() } == *other
}

/// Callers can only prove themselves by what this node looks at.
fn proofs(config: &Config, places: &Places) -> Vec<ConfigFault> {
    let issuers: Vec<&str> = places.names_in("issuers").collect();
    let mut faults = Vec::new();
    for caller in &config.callers {
        let record = &caller.record;
        for token in record.tokens.iter().filter(|token| !issuers.contains(&token.issuer.as_str())) {
            let message = format!("there is no [issuers.{}]{}", token.issuer, meant(&token.issuer, &issuers));
            faults.push(places.fault(&format!("callers.{}.token", record.name), &message));
        }
        if !record.certificates.is_empty() && config.tls.client_ca_file.is_none() {
            let key = format!("callers.{}.certificate", record.name);
            faults.push(places.fault(&key, "the node checks no client certificates without tls.client_ca_file"));
        }
    }
    faults
}

/// A largest value that is smaller than the first.
fn bounds(config: &Config, places: &Places) -> Vec<ConfigFault> {
    let (tasks, follow) = (&config.limits.tasks, &config.peers.follow);
    let mut pairs = vec![
        ("peers", "reconnect_ms", number(follow.reconnect_ms), "max_reconnect_ms", number(follow.max_reconnect_ms)),
        ("peers", "poll_ms", number(follow.poll_ms), "max_poll_ms", number(follow.max_poll_ms)),
    ];
    // Whoever only makes pages smaller has said nothing that could contradict it.
    if places.has("limits.page_size_default") {
        let (first, most) = (i64::from(tasks.page_size_default), i64::from(tasks.page_size));
        pairs.push(("limits", "page_size_default", first, "page_size", most));
    }
    let wrong = pairs.into_iter().filter(|(_, _, first, _, most)| first > most);
    wrong
        .map(|(section, key, first, most_key, most)| {
            places.fault(&format!("{section}.{key}"), &format!("is {first}, more than {most_key}, which is {most}"))
        })
        .collect()
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Grants and callers that name agents which are neither in the config nor among `others`.
pub(crate) fn unknown_agents(config: &Config, places: &Places, others: &[String]) -> Vec<ConfigFault> {
    let mut known: Vec<&str> = config.agents.iter().map(|(name, _)| name.as_str()).collect();
    known.extend(others.iter().map(String::as_str));
    // One with a fault of its own is there all the same.
    known.extend(places.names_in("agents"));
    let mut faults = Vec::new();
    let mut check = |key: String, agent: &str| {
        if !known.contains(&agent) {
            let message = format!("there is no agent {agent} here{}", meant(agent, &known));
            faults.push(places.fault(&key, &message));
        }
    };
    for caller in &config.callers {
        let record = &caller.record;
        for agent in granted(&record.may_call) {
            check(format!("callers.{}.may_call", record.name), agent);
        }
        if let Some(agent) = &record.agent {
            check(format!("callers.{}.agent", record.name), agent);
        }
    }
    for issuer in &config.issuers {
        for agent in granted(&issuer.may_call) {
            check(format!("issuers.{}.may_call", issuer.name), agent);
        }
    }
    faults
}

/// Entries of `recursion.revisit_allowlist` that match neither an agent nor the AgentID of one. `others` are
/// agents and AgentIDs that are known beside the config.
pub(crate) fn unknown_revisits(config: &Config, places: &Places, others: &[String]) -> Vec<ConfigFault> {
    let known: Vec<&str> = config.agents.iter().map(|(name, _)| name.as_str()).chain(others.iter().map(String::as_str)).collect();
    let pinned = |entry: &str| {
        config.agents.iter().any(|(_, agent)| match &agent.source {
            AgentSource::Remote(remote) => remote.agent_id.as_ref().is_some_and(|id| id.as_str() == entry),
            AgentSource::BuiltIn(_) => false,
        })
    };
    let name_of = |entry: &str| entry.rsplit_once('#').map_or(entry.to_owned(), |(name, _)| name.to_owned());
    let is_known = |entry: &str| {
        let is_tagged = entry.contains('#') && is_distinct(entry);
        known.contains(&entry) || pinned(entry) || is_tagged && known.contains(&name_of(entry).as_str())
    };
    let fault = |entry: &str| {
        let message = match entry.parse::<AgentId>() {
            Ok(_) => format!("no agent here has the AgentID {entry}; name the agent, or pin it with [agents.NAME] agent_id"),
            Err(_) => format!("there is no agent {entry} here{}", meant(entry, &known)),
        };
        places.fault("recursion.revisit_allowlist", &message)
    };
    let listed = config.governance.recursion.revisit_allowlist.iter();
    listed.filter(|entry| !is_known(entry)).map(|entry| fault(entry)).collect()
}

fn granted(may_call: &MayCall) -> Vec<&str> {
    match may_call {
        MayCall::Everything => Vec::new(),
        MayCall::Only(grants) => grants.iter().map(|grant| &*grant.agent).collect(),
    }
}

fn meant(word: &str, names: &[&str]) -> String {
    nearest(word, names.iter().copied()).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        Config::parse(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_contradicts_itself_is_a_fault_where_it_stands() {
        let text = "[agents.a]\nurl = ['http://h:1', 'http://h:1/']\n[agents.b]\nurl = 'http://h:1'\n\
                    [agents.c]\nurl = 'ftp://h'\ncredentials = { bearer_env = 'A', api_key_env = 'B' }\n\
                    [callers.x]\ntoken = { issuer = 'acmee', subject = 's' }\ncertificate = 'dns:x.example'\n\
                    [issuers.acme]\nissuer = 'https://i'\naudience = 'me'\n\
                    [limits]\npage_size = 5\npage_size_default = 6\n[peers]\nmax_poll_ms = 1\n";
        let expected = [
            "2:7: agents.a.url: http://h:1/ is there twice",
            "4:7: agents.b.url: http://h:1 is where a is already",
            "6:7: agents.c.url: \"ftp://h\" is no http, https, swp or swps URL",
            "7:15: agents.c.credentials: a bearer token or an API key, not both",
            "9:9: callers.x.token: there is no [issuers.acmee]; did you mean `acme`?",
            "10:15: callers.x.certificate: the node checks no client certificates without tls.client_ca_file",
            "16:21: limits.page_size_default: is 6, more than page_size, which is 5",
            "17:2: peers.poll_ms: is 100, more than max_poll_ms, which is 1",
        ];
        assert_eq!(faults(text), expected);
        let on_other_terms = "[agents.a]\nurl = 'http://h:1'\n[agents.b]\nurl = 'http://h:1'\nverify = 'require'\n";
        assert!(Config::parse(on_other_terms).is_ok(), "one agent can be offered in two ways");
    }

    #[test]
    fn agents_that_nobody_serves_are_found_and_added_ones_are_known() {
        let text = "[agents.echo]\nrun = 'echo'\n[callers.x]\nkey_env = 'K'\nagent = 'ehco'\nmay_call = ['echo/audit', 'added']\n\
                    [issuers.i]\nissuer = 'https://i'\naudience = 'me'\nmay_call = ['nobody']\n";
        let (config, places) = Config::read(text).unwrap();
        let found: Vec<_> = unknown_agents(&config, &places, &["added".to_owned()]).iter().map(ToString::to_string).collect();
        let expected = [
            "5:9: callers.x.agent: there is no agent ehco here; did you mean `echo`?",
            "10:12: issuers.i.may_call: there is no agent nobody here",
        ];
        assert_eq!(found, expected);
        assert_eq!(unknown_agents(&config, &places, &[]).len(), 3);
    }

    #[test]
    fn an_agent_that_may_be_called_again_is_one_of_this_node() {
        let (pinned, added, nobodys) = ("ab".repeat(32), "cd".repeat(32), "ef".repeat(32));
        let listed = format!("'echo', 'far', 'far#0a1b2c3d', 'added', '{pinned}', '{added}'");
        let text = |listed: &str| {
            format!(
                "[agents.echo]\nrun = 'echo'\n[agents.far]\nurl = 'http://127.0.0.1:1'\nagent_id = '{pinned}'\n\
                 [recursion]\nrevisit_allowlist = [{listed}]\n"
            )
        };
        let found = |listed: &str| {
            let (config, places) = Config::read(&text(listed)).unwrap();
            let known = ["added".to_owned(), added.clone()];
            unknown_revisits(&config, &places, &known).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found(&listed), Vec::<String>::new());
        let [typo, tagged, id] = &found(&format!("'ehco', 'echo', 'nobody#0a1b2c3d', '{nobodys}'"))[..] else { panic!() };
        assert!(typo.ends_with("recursion.revisit_allowlist: there is no agent ehco here; did you mean `echo`?"), "{typo}");
        assert!(tagged.contains("there is no agent nobody#0a1b2c3d here"), "{tagged}");
        assert!(id.contains(&format!("no agent here has the AgentID {nobodys}")), "{id}");
    }
}
