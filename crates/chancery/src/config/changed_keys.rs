//! Which keys differ between two configs, each with when its new value takes effect.

use chancery_identity::credentials::{CallerRecord, Issuer};
use chancery_rules::health::HealthConfig;

use super::effect::{ChangedKey, CompareKeys, TakesEffect, effect_of};
use super::{
    AgentConfig, CallerConfig, Config, GovernanceConfig, KeySource, KeysConfig, LimitsConfig, PeersConfig, PushSection,
    SwpConfig, agent, caller, issuer, keys, section,
};

impl Config {
    /// Every key whose value differs in `after`.
    pub fn changed_keys(&self, after: &Self) -> Vec<ChangedKey> {
        let mut found = Differences::default();
        // Exhaustive on purpose: a new section has to be compared here.
        let Self {
            node,
            limits: LimitsConfig { tasks, inbound, json },
            retention,
            card,
            store,
            evidence,
            agents,
            callers,
            issuers,
            identity,
            jwks,
            keys,
            tls,
            swp: SwpConfig { door, rules, limits },
            outbound,
            discovery,
            peers: PeersConfig { client, follow },
            routing,
            health: HealthConfig { breaker, outliers, checks },
            governance: GovernanceConfig { budget, policy, recursion, lineage },
            memory,
            push: PushSection { offer, limits: registrations, courier, notify, bounds, slots, origins },
            artifacts,
        } = self;
        found.section("", node, &after.node);
        found.section("limits.", tasks, &after.limits.tasks);
        found.section("limits.", inbound, &after.limits.inbound);
        found.section("limits.", json, &after.limits.json);
        found.section("retention.", retention, &after.retention);
        found.section("card.", card, &after.card);
        found.section("store.", store, &after.store);
        found.section("evidence.", evidence, &after.evidence);
        found.named("agents", agents.iter().map(of_pair), after.agents.iter().map(of_pair), changed_in_agent, agent::effect);
        found.named("callers", callers.iter().map(caller_name), after.callers.iter().map(caller_name), in_caller, caller::effect);
        found.named("issuers", issuers.iter().map(issuer_name), after.issuers.iter().map(issuer_name), in_issuer, issuer::effect);
        found.section("identity.", identity, &after.identity);
        found.section("jwks.", jwks, &after.jwks);
        for name in changed_in_keys(keys, &after.keys) {
            found.add(format!("keys.{name}"), keys::effect());
        }
        found.section("tls.", tls, &after.tls);
        found.section("swp.", door, &after.swp.door);
        found.section("swp.", rules, &after.swp.rules);
        found.section("swp.", limits, &after.swp.limits);
        found.section("outbound.", outbound, &after.outbound);
        found.section("discovery.", discovery, &after.discovery);
        found.section("peers.", client, &after.peers.client);
        found.section("peers.", follow, &after.peers.follow);
        found.section("routing.", routing, &after.routing);
        found.section("health.", breaker, &after.health.breaker);
        found.section("health.", outliers, &after.health.outliers);
        found.section("health.", checks, &after.health.checks);
        found.section("budget.", budget, &after.governance.budget);
        found.section("policy.", policy, &after.governance.policy);
        found.section("recursion.", recursion, &after.governance.recursion);
        found.section("lineage.", lineage, &after.governance.lineage);
        found.section("memory.", memory, &after.memory);
        found.section("push.", offer, &after.push.offer);
        found.section("push.", registrations, &after.push.limits);
        found.section("push.", courier, &after.push.courier);
        found.section("push.", notify, &after.push.notify);
        found.section("push.", bounds, &after.push.bounds);
        found.section("push.", slots, &after.push.slots);
        if *origins != after.push.origins {
            found.add("push.origins".to_owned(), TakesEffect::Restart);
        }
        found.section("artifacts.", artifacts, &after.artifacts);
        found.0
    }
}

/// Every key that a config file can have, with when a change of it takes effect. A name that the operator chooses is `NAME`.
pub fn every_key() -> Vec<ChangedKey> {
    section::declared_keys(Config::sections)
}

#[derive(Default)]
struct Differences(Vec<ChangedKey>);

impl Differences {
    fn add(&mut self, key: String, takes_effect: TakesEffect) {
        self.0.push(ChangedKey { key, takes_effect });
    }

    fn section<T: CompareKeys>(&mut self, path: &str, before: &T, after: &T) {
        for key in before.changed(after) {
            self.add(format!("{path}{key}"), effect_of::<T>(key));
        }
    }

    /// Sections under names that the operator chooses. One that is new or gone counts as one key.
    fn named<'a, T: PartialEq + 'a>(
        &mut self,
        section: &str,
        before: impl Iterator<Item = (&'a str, &'a T)>,
        after: impl Iterator<Item = (&'a str, &'a T)>,
        changed: impl Fn(&T, &T) -> Vec<&'static str>,
        effect: impl Fn(&str) -> TakesEffect,
    ) {
        let (before, after): (Vec<_>, Vec<_>) = (before.collect(), after.collect());
        let has = |all: &[(&str, &T)], name: &str| all.iter().any(|(other, _)| *other == name);
        for (name, is) in &after {
            match before.iter().find(|(other, _)| other == name) {
                Some((_, was)) => {
                    for key in changed(was, is) {
                        self.add(format!("{section}.{name}.{key}"), effect(key));
                    }
                }
                None => self.add(format!("{section}.{name}"), TakesEffect::Live),
            }
        }
        for (name, _) in before.iter().filter(|(name, _)| !has(&after, name)) {
            self.add(format!("{section}.{name}"), TakesEffect::Live);
        }
        // The first agent answers at the root, so that the order says something too.
        let stays = |all: &[(&'a str, &'a T)], other: &[(&'a str, &'a T)]| -> Vec<&'a str> {
            all.iter().filter(|(name, _)| has(other, name)).map(|(name, _)| *name).collect()
        };
        if stays(&before, &after) != stays(&after, &before) {
            self.add(section.to_owned(), TakesEffect::Live);
        }
    }
}

fn of_pair((name, agent): &(String, AgentConfig)) -> (&str, &AgentConfig) {
    (name, agent)
}

fn caller_name(caller: &CallerConfig) -> (&str, &CallerConfig) {
    (&caller.record.name, caller)
}

fn issuer_name(issuer: &Issuer) -> (&str, &Issuer) {
    (&issuer.name, issuer)
}

/// The names of the pairs that differ.
fn differing<const N: usize>(pairs: [(&'static str, bool); N]) -> Vec<&'static str> {
    pairs.into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect()
}

/// Which of the two keys names the source of a signing key.
fn key_source(before: &Option<KeySource>, after: &Option<KeySource>) -> &'static str {
    match after.as_ref().or(before.as_ref()) {
        Some(KeySource::Env(_)) => "key_env",
        Some(KeySource::File(_)) | None => "key_file",
    }
}

fn changed_in_agent(before: &AgentConfig, after: &AgentConfig) -> Vec<&'static str> {
    let AgentConfig {
        source,
        title,
        description,
        key,
        extended_skills,
        hosts,
        tenants,
        price,
        // No key of a file: flags say it.
        unnamed: _,
        enforce_input_modes,
    } = before;
    let mut changed = agent::changed_in_source(source, &after.source);
    changed.extend(differing([
        ("title", *title == after.title),
        ("description", *description == after.description),
        (key_source(key, &after.key), *key == after.key),
        ("extended_skills", *extended_skills == after.extended_skills),
        ("hosts", *hosts == after.hosts),
        ("tenants", *tenants == after.tenants),
        ("price", *price == after.price),
        ("enforce_input_modes", *enforce_input_modes == after.enforce_input_modes),
    ]));
    changed
}

fn in_caller(before: &CallerConfig, after: &CallerConfig) -> Vec<&'static str> {
    let CallerConfig { record, key_env } = before;
    let CallerRecord { name: _, tenant, agent, may_call, keys, certificates, agent_ids, tokens } = record;
    differing([
        ("key_env", *key_env == after.key_env),
        ("key_hash", *keys == after.record.keys),
        ("tenant", *tenant == after.record.tenant),
        ("agent", *agent == after.record.agent),
        ("may_call", *may_call == after.record.may_call),
        ("certificate", *certificates == after.record.certificates),
        ("agent_id", *agent_ids == after.record.agent_ids),
        ("token", *tokens == after.record.tokens),
    ])
}

fn in_issuer(before: &Issuer, after: &Issuer) -> Vec<&'static str> {
    let Issuer {
        name: _,
        issuer,
        audiences,
        jwks_url,
        algorithms,
        leeway_s,
        accept,
        caller_claim,
        tenant_claim,
        may_call,
        max_lifetime_s,
    } = before;
    differing([
        ("issuer", *issuer == after.issuer),
        ("audience", *audiences == after.audiences),
        ("jwks_url", *jwks_url == after.jwks_url),
        ("algorithms", *algorithms == after.algorithms),
        ("leeway_s", *leeway_s == after.leeway_s),
        ("accept", *accept == after.accept),
        ("caller_claim", *caller_claim == after.caller_claim),
        ("tenant_claim", *tenant_claim == after.tenant_claim),
        ("may_call", *may_call == after.may_call),
        ("max_lifetime_s", *max_lifetime_s == after.max_lifetime_s),
    ])
}

fn changed_in_keys(before: &KeysConfig, after: &KeysConfig) -> Vec<&'static str> {
    let KeysConfig { hop_tokens, push, receipts } = before;
    differing([
        ("hop_tokens", *hop_tokens == after.hop_tokens),
        ("push", *push == after.push),
        ("receipts", *receipts == after.receipts),
    ])
}

#[cfg(test)]
mod tests;
