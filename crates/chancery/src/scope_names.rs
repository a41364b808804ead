//! Resolves an operator's name of a caller, agent, tenant or skill, and finds names of a config that match
//! nothing.

use std::collections::BTreeSet;

use chancery_identity::credentials::{Accept, CallerRecord};
use chancery_rules::budget::EVERYBODY_ELSE;

use crate::config::{Config, ConfigFault, Places, nearest};

/// Known names that an answer lists at most.
const LISTED: usize = 8;

/// Why a name means no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnresolvedName {
    #[error("there is no {kind} {name} here{}", offered(near, known))]
    Unknown { kind: &'static str, name: String, near: Option<String>, known: Vec<String> },
    #[error("{} {kind}s have the name {name}; use one of: {}", candidates.len(), candidates.join(", "))]
    Ambiguous { kind: &'static str, name: String, candidates: Vec<String> },
}

fn offered(near: &Option<String>, known: &[String]) -> String {
    match (near, known) {
        (Some(near), _) => format!("; did you mean `{near}`?"),
        (None, []) => String::new(),
        (None, known) => {
            let more = if known.len() > LISTED { ", and more" } else { "" };
            format!(", only {}{more}", known[..known.len().min(LISTED)].join(", "))
        }
    }
}

/// The one of `known` that a name means: the whole name, or the part after its tenant or agent if only one ends so.
pub(crate) fn resolve<'a>(kind: &'static str, name: &str, known: &'a BTreeSet<String>) -> Result<&'a str, UnresolvedName> {
    if let Some(whole) = known.get(name) {
        return Ok(whole);
    }
    let is_it = |whole: &&str| bare(kind, whole) == name;
    let meant: Vec<&str> = known.iter().map(String::as_str).filter(is_it).collect();
    match meant[..] {
        [one] => Ok(one),
        [] => {
            let all = || known.iter().map(String::as_str);
            let of = |short: Option<&str>| short.and_then(|short| all().find(|whole| bare(kind, whole) == short));
            // The right name of a wrong tenant, or a slip of the hand.
            let near = of(Some(bare(kind, name))).or_else(|| nearest(name, all()));
            let near = near.or_else(|| of(nearest(name, all().map(|whole| bare(kind, whole)))));
            let (near, known) = (near.map(str::to_owned), known.iter().take(LISTED + 1).cloned().collect());
            Err(UnresolvedName::Unknown { kind, name: name.to_owned(), near, known })
        }
        _ => {
            let candidates = meant.into_iter().map(str::to_owned).collect();
            Err(UnresolvedName::Ambiguous { kind, name: name.to_owned(), candidates })
        }
    }
}

/// The part of a name after its tenant or agent.
fn bare<'a>(kind: &str, whole: &'a str) -> &'a str {
    match kind {
        "caller" | "skill" => whole.split_once('/').map_or(whole, |(_, bare)| bare),
        _ => whole,
    }
}

/// A caller as scopes name it.
pub(crate) fn full_name(tenant: &str, name: &str) -> String {
    format!("{tenant}/{name}")
}

/// The name of callers of a node that requires no credentials.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// What a config can mean by the names in `[budget]` and `[policy]`.
#[derive(Debug, Default)]
struct Nameable {
    callers: BTreeSet<String>,
    tenants: BTreeSet<String>,
    agents: BTreeSet<String>,
    /// Whether callers come that the config does not list.
    any_caller: bool,
    any_tenant: bool,
    /// Whether no caller proves anything, the tenant that it names included.
    is_open: bool,
}

impl Nameable {
    fn of(config: &Config, added_callers: &[CallerRecord], added_agents: &[String]) -> Self {
        let configured = config.callers.iter().map(|caller| &caller.record);
        let records: Vec<&CallerRecord> = configured.chain(added_callers).collect();
        let by_token = config.issuers.iter().any(|issuer| issuer.accept != Accept::Listed);
        let tenant_by_token =
            config.issuers.iter().any(|issuer| issuer.accept != Accept::Listed && issuer.tenant_claim.is_some());
        let is_open = records.is_empty() && config.issuers.is_empty() && config.identity.allow.is_none();
        let mut callers: BTreeSet<String> = records.iter().map(|record| full_name(&record.tenant, &record.name)).collect();
        let mut tenants: BTreeSet<String> = records.iter().map(|record| record.tenant.clone()).collect();
        // Callers that no record lists are of this tenant, if nothing says otherwise.
        if is_open || by_token || config.identity.allow.is_some() {
            tenants.insert(CallerRecord::new("").tenant);
        }
        if is_open {
            callers.insert(full_name(&CallerRecord::new("").tenant, ANONYMOUS));
        }
        Self {
            callers,
            tenants,
            agents: config.agents.iter().map(|(name, _)| name.clone()).chain(added_agents.iter().cloned()).collect(),
            any_caller: by_token || config.identity.allow.is_some(),
            any_tenant: is_open || tenant_by_token,
            is_open,
        }
    }

    /// Why a name of the config matches no caller. A name that matches several callers means each of them.
    fn fault(&self, kind: &'static str, name: &str) -> Option<UnresolvedName> {
        let known = match kind {
            "caller" if self.any_caller || (self.any_tenant && name.ends_with(&format!("/{ANONYMOUS}"))) => return None,
            "tenant" if self.any_tenant => return None,
            "caller" => &self.callers,
            "tenant" => &self.tenants,
            _ => &self.agents,
        };
        resolve(kind, name, known).err().filter(|fault| matches!(fault, UnresolvedName::Unknown { .. }))
    }
}

/// Budgets and policies of a config for callers, tenants and agents that do not exist. They limit no call.
pub(crate) fn unmatched(
    config: &Config,
    places: &Places,
    added_callers: &[CallerRecord],
    added_agents: &[String],
) -> Vec<ConfigFault> {
    let nameable = Nameable::of(config, added_callers, added_agents);
    let (budget, policy) = (&config.governance.budget, &config.governance.policy);
    let agent_of = |skill: &String| skill.split_once('/').map(|(agent, _)| agent.to_owned());
    // Agents that nobody named get the names on their cards.
    let names_are_open = config.agents.iter().any(|(_, agent)| agent.unnamed);
    let mut named: Vec<(&'static str, String, String)> = Vec::new();
    named.extend(budget.tenant.keys().map(|name| ("tenant", format!("budget.tenant.{name}"), name.clone())));
    named.extend(budget.caller.keys().map(|name| ("caller", format!("budget.caller.{name}"), name.clone())));
    if !names_are_open {
        named.extend(budget.agent.keys().map(|name| ("agent", format!("budget.agent.{name}"), name.clone())));
        let of_agents = budget.skill.keys().filter_map(|skill| Some((skill, agent_of(skill)?)));
        named.extend(of_agents.map(|(skill, agent)| ("agent", format!("budget.skill.{skill}"), agent)));
    }
    named.retain(|(_, _, name)| name != EVERYBODY_ELSE);
    named.extend(policy.caller.keys().map(|name| ("caller", format!("policy.caller.{name}"), name.to_string())));
    let fault = |(kind, key, name): &(&'static str, String, String)| {
        let fault = nameable.fault(kind, name)?;
        Some(places.fault(key, &format!("applies to nothing: {fault}")))
    };
    named.iter().filter_map(fault).collect()
}

/// Budgets of an open node that apply to each tenant by itself. Callers name the tenant without proof, so each new name has a budget
/// of its own.
pub(crate) fn evadable(config: &Config, places: &Places, added_callers: &[CallerRecord]) -> Vec<ConfigFault> {
    if !Nameable::of(config, added_callers, &[]).is_open {
        return Vec::new();
    }
    let budget = &config.governance.budget;
    let tenants = budget.tenant.keys().filter(|name| *name == EVERYBODY_ELSE).map(|name| format!("budget.tenant.{name}"));
    let callers = budget.caller.keys().filter(|name| [EVERYBODY_ELSE, ANONYMOUS].contains(&name.as_str()));
    let callers = callers.map(|name| format!("budget.caller.{name}"));
    let message = "limits each tenant separately, and without callers every call may name a new tenant: configure [callers], \
                   or use [budget.global], [budget.agent.NAME] or [budget.tree]";
    tenants.chain(callers).map(|key| places.fault(&key, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_name_means_the_one_that_has_it_and_no_guess() {
        let callers = known(&["acme/planner", "acme/writer", "default/writer", "other/x/y"]);
        let asked = |name: &str| resolve("caller", name, &callers).map_err(|fault| fault.to_string());
        assert_eq!(asked("planner"), Ok("acme/planner"));
        assert_eq!(asked("acme/planner"), Ok("acme/planner"));
        assert_eq!(asked("default/writer"), Ok("default/writer"));
        assert_eq!(asked("x/y"), Ok("other/x/y"));
        assert_eq!(asked("writer").unwrap_err(), "2 callers have the name writer; use one of: acme/writer, default/writer");
        assert_eq!(asked("planer").unwrap_err(), "there is no caller planer here; did you mean `acme/planner`?");
        assert_eq!(asked("acme/planer").unwrap_err(), "there is no caller acme/planer here; did you mean `acme/planner`?");
        assert_eq!(
            asked("nobody-at-all").unwrap_err(),
            "there is no caller nobody-at-all here, only acme/planner, acme/writer, default/writer, other/x/y"
        );
        assert_eq!(
            resolve("tenant", "b", &known(&["some/b"])).unwrap_err().to_string(),
            "there is no tenant b here, only some/b"
        );
        assert_eq!(resolve("agent", "a", &known(&[])).unwrap_err().to_string(), "there is no agent a here");
    }

    fn found(text: &str) -> Vec<String> {
        let (config, places) = Config::read(text).unwrap();
        let added = CallerRecord { tenant: "acme".to_owned(), ..CallerRecord::new("added") };
        unmatched(&config, &places, &[added], &["elsewhere".to_owned()]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn scopes_of_a_config_that_bound_nobody_are_named_where_they_stand() {
        let cap = "max_tasks = 1\nwindow = '1h'\n";
        let text = format!(
            "[agents.echo]\nrun = 'echo'\n[callers.planner]\nkey_env = 'K'\ntenant = 'acme'\n\
             [budget.caller.planner]\n{cap}[budget.caller.'acme/planner']\n{cap}[budget.caller.'*']\n{cap}[budget.caller.added]\n{cap}\
             [budget.tenant.acme]\n{cap}[budget.agent.elsewhere]\n{cap}[budget.skill.'echo/any']\n{cap}[budget.skill.any]\n{cap}\
             [policy.caller.planner]\nmax_tokens = 1\n"
        );
        assert_eq!(found(&text), [] as [String; 0]);
        let wrong = format!(
            "{text}[policy.caller.planer]\nmax_tokens = 1\n[policy.caller.'*']\nmax_tokens = 1\n\
             [budget.caller.'default/planner']\n{cap}[budget.tenant.default]\n{cap}[budget.agent.ehco]\n{cap}[budget.skill.'ehco/any']\n{cap}"
        );
        let said = found(&wrong);
        for words in [
            "budget.caller.default/planner: applies to nothing: there is no caller default/planner here; did you mean `acme/planner`?",
            "budget.tenant.default: applies to nothing: there is no tenant default here, only acme",
            "budget.agent.ehco: applies to nothing: there is no agent ehco here; did you mean `echo`?",
            "budget.skill.ehco/any: applies to nothing: there is no agent ehco here",
            "policy.caller.*: applies to nothing: there is no caller * here",
            "policy.caller.planer: applies to nothing: there is no caller planer here; did you mean `acme/planner`?",
        ] {
            assert!(said.iter().any(|said| said.contains(words)), "{words}: {said:#?}");
        }
        assert_eq!(said.len(), 6, "{said:#?}");
    }

    #[test]
    fn budgets_that_callers_of_an_open_node_can_evade_are_named() {
        let cap = "max_tasks = 1\nwindow = '1h'\n";
        let agent = "[agents.echo]\nrun = 'echo'\n";
        let scopes = format!("[budget.caller.'*']\n{cap}[budget.tenant.'*']\n{cap}[budget.caller.anonymous]\n{cap}");
        let bounds =
            format!("[budget.agent.'*']\n{cap}[budget.tree]\nmax_tasks = 1\n[budget.global]\nmax_tasks_per_minute = 1\n");
        let open = |text: &str| {
            let (config, places) = Config::read(text).unwrap();
            evadable(&config, &places, &[]).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let said = open(&format!("{agent}{scopes}{bounds}"));
        for key in ["budget.caller.*", "budget.tenant.*", "budget.caller.anonymous"] {
            assert!(said.iter().any(|said| said.contains(&format!("{key}: limits each tenant separately"))), "{key}: {said:#?}");
        }
        assert_eq!(said.len(), 3, "{said:#?}");
        // With callers a tenant is proven.
        let (config, places) = Config::read(&format!("{agent}{scopes}")).unwrap();
        assert_eq!(evadable(&config, &places, &[CallerRecord::new("added")]), []);
        assert_eq!(open(&format!("{agent}{bounds}")), [] as [String; 0]);
    }

    #[test]
    fn names_that_tokens_bring_are_not_judged() {
        let cap = "max_tasks = 1\nwindow = '1h'\n";
        let issuer = "[issuers.i]\nissuer = 'https://i'\naudience = 'me'\naccept = 'any'\n";
        let scopes = format!("[budget.caller.alice]\n{cap}[budget.tenant.lab]\n{cap}");
        assert_eq!(found(&format!("{issuer}tenant_claim = 'org'\n{scopes}")), [] as [String; 0]);
        assert_eq!(found(&format!("{issuer}{scopes}")).len(), 1, "without a claim there is no tenant lab");
    }
}
