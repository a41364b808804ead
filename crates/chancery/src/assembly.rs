//! Everything a node makes of its config, made by one function for the start and for every reload, and put in place whole.

use std::sync::Arc;

use chancery_core::{Agents, Rulebook, TaskRunner};
use chancery_identity::credentials::{Authenticator, CallerRecord};
use chancery_inbound::{DoorSettings, Doors, Signposts};
use chancery_outbound::{Guard, JwksCache};
use chancery_protocol::Timestamp;

use crate::admin::{self, AdminParts, AdminState};
use crate::agents::BuiltIn;
use crate::authentication::{authenticator, check_grants, key_sets};
use crate::build_error::BuildError;
use crate::config::{AgentConfig, AgentSource, Config};
use crate::configured_agents::ConfiguredAgents;
use crate::gateway::{GatewayParts, Remote, RemoteParts, ServedAgents, gather};
use crate::key_registry::KeyRegistry;
use crate::mount::MountedAgent;
use crate::node_parts::{NodeParts, Service};
use crate::webhooks;

/// What a config comes to. Nothing of it counts before it is put in place.
pub(crate) struct Assembly {
    pub(crate) config: Arc<Config>,
    /// The callers of the config, with the keys the environment has for them.
    pub(crate) callers: Vec<CallerRecord>,
    pub(crate) key_sets: Option<Arc<JwksCache>>,
    pub(crate) rules: Rulebook,
    pub(crate) gateway_parts: GatewayParts,
    pub(crate) agents: Agents,
    /// The remote agents.
    pub(crate) remotes: Vec<Arc<Remote>>,
    /// The guard of webhooks, where there are any.
    pub(crate) egress: Option<Guard>,
    pub(crate) doors: Doors,
    /// Made with the first assembly; all others go on with it.
    pub(crate) service: Service,
}

/// What an assembly replaces: a reload goes on with everything that the new config leaves as it is.
pub(crate) struct Replaced {
    pub(crate) config: Arc<Config>,
    pub(crate) doors: Doors,
    pub(crate) service: Service,
    pub(crate) key_sets: Option<Arc<JwksCache>>,
}

/// Makes everything that depends on the config. A start has nothing to replace.
pub(crate) async fn assemble(
    config: &Config,
    callers: Vec<CallerRecord>,
    parts: &NodeParts,
    replaced: Option<&Replaced>,
) -> Result<Assembly, BuildError> {
    // A config file was checked when it was read; a config that a program made was not.
    if let Some(missing) = config.missing_features().into_iter().next() {
        return Err(BuildError::Feature { key: missing.key, feature: missing.feature });
    }
    let mut rules = config.rulebook().map_err(BuildError::Rules)?;
    parts.add_policies(&mut rules.expressions)?;
    parts.own.in_code.check(&config.routing)?;
    let mut key_sets = replaced.and_then(|replaced| replaced.key_sets_for(config));
    let authenticator = who_is_who(config, &callers, parts, &mut key_sets, replaced)?;
    if let Some(replaced) = replaced
        && authenticator.is_open()
        && !replaced.doors.authenticator().is_open()
    {
        return Err(BuildError::WouldOpen);
    }
    if authenticator.is_open()
        && let Some(given) = parts.own.here.iter().find(|given| given.extended.is_some())
    {
        return Err(BuildError::ExtendedCard(given.name.clone()));
    }
    let configured_agents = configured_agents(config, parts, replaced);
    let agent_routes = Arc::new(configured_agents.agent_routes.clone());
    let caller_directory = &parts.caller_directory;
    let mount = MountedAgent::new(caller_directory.public_url.clone(), &authenticator, agent_routes, config)
        .also_at(caller_directory.swp_url.clone());
    let remote_parts = RemoteParts {
        config: Arc::new(config.clone()),
        public_url: caller_directory.public_url.url().clone(),
        swp_url: caller_directory.swp_url.clone(),
        clock: Arc::clone(&caller_directory.clock),
        agent_registry: Arc::clone(&parts.agent_registry),
        knows_callers: mount.knows_callers(),
        in_code: configured_agents.in_code.clone(),
        known_names: parts.keys.agents(),
    };
    let standing = replaced.and_then(|replaced| replaced.standing_for(config, &authenticator));
    let (given, remotes) = gather(&remote_parts, configured_agents, standing.as_ref()).await?;
    let agents = mount.all(given)?;
    check_grants(&callers, &caller_directory.callers, &agents)?;
    let now = caller_directory.clock.now();
    ensure_keys(&parts.keys, &agents, config, now)?;
    let egress = if config.push.offer.enabled { Some(webhooks::guard(config, &caller_directory.public_url)?) } else { None };
    let signposts = Arc::new(mount.signposts()?);
    let gateway_parts = GatewayParts { remote_parts, mount };
    let service = match replaced {
        Some(replaced) => replaced.service.clone(),
        None => Service::new(config, parts, &gateway_parts, &agents, egress.as_ref()).await?,
    };
    let settings = door_settings(config, parts, &service, authenticator, signposts);
    let doors = match replaced {
        Some(replaced) => replaced.doors.renewed(settings, &agents, &parts.keys.ring())?,
        None => Doors::new(service.chancery.clone(), settings, &parts.keys.ring())?,
    };
    let config = Arc::clone(&gateway_parts.remote_parts.config);
    Ok(Assembly { config, callers, key_sets, rules, gateway_parts, agents, remotes, egress, doors, service })
}

impl Replaced {
    /// The keys of issuers that were fetched, if they would be fetched in the same way.
    fn key_sets_for(&self, config: &Config) -> Option<Arc<JwksCache>> {
        let is_same = self.config.outbound == config.outbound && self.config.jwks == config.jwks;
        self.key_sets.clone().filter(|_| is_same)
    }

    /// The remote agents that stay as they are, if the new config would reach and publish them in the same
    /// way.
    fn standing_for(&self, config: &Config, authenticator: &Authenticator) -> Option<ServedAgents> {
        let around = |config: &Config| {
            let Config { outbound, discovery, peers, routing, health, .. } = config;
            (outbound.clone(), discovery.clone(), peers.clone(), routing.clone(), health.clone())
        };
        // Agents whose extended cards nobody could be shown are asked for them from now on.
        let same_callers = authenticator.is_open() == self.doors.authenticator().is_open();
        (same_callers && around(&self.config) == around(config)).then(|| self.service.gateway.standing())
    }

    /// The runner of a built-in agent that the new config has under the same name.
    fn runner(&self, name: &str, run: BuiltIn) -> Option<Arc<dyn TaskRunner>> {
        let is_it = |(other, agent): &&(String, AgentConfig)| other == name && agent.source == AgentSource::BuiltIn(run);
        self.config.agents.iter().find(is_it)?;
        self.service.chancery.agents().get(name).map(|agent| Arc::clone(&agent.runner))
    }
}

/// `kept` has the issuers' keys that can be used on, and then those that are used.
fn who_is_who(
    config: &Config,
    callers: &[CallerRecord],
    parts: &NodeParts,
    kept: &mut Option<Arc<JwksCache>>,
    replaced: Option<&Replaced>,
) -> Result<Authenticator, BuildError> {
    let preview = parts.caller_directory.callers.preview(callers)?;
    let known_keys = || {
        let sets = kept.take().map_or_else(|| key_sets(config, &parts.caller_directory), Ok)?;
        *kept = Some(Arc::clone(&sets));
        Ok(sets)
    };
    let made = authenticator(config, &parts.caller_directory, preview, known_keys)?;
    Ok(match replaced {
        Some(replaced) => made.following(replaced.doors.authenticator()),
        None => made,
    })
}

fn configured_agents(config: &Config, parts: &NodeParts, replaced: Option<&Replaced>) -> ConfiguredAgents {
    let own = parts.own.clone();
    if !parts.serves_configured {
        return own;
    }
    own.and_configured(config, |name, run| replaced.and_then(|replaced| replaced.runner(name, run)))
}

/// Makes sure that there are keys for all that these agents and the config need signed.
fn ensure_keys(keys: &KeyRegistry, agents: &Agents, config: &Config, now: Timestamp) -> Result<(), BuildError> {
    let source = |agent: &Arc<chancery_core::Agent>| {
        let configured = config.agents.iter().find(|(name, _)| **name == *agent.name);
        (agent.name.to_string(), configured.and_then(|(_, agent)| agent.key.clone()))
    };
    Ok(keys.ensure_keys(&agents.iter().map(source).collect::<Vec<_>>(), &config.keys, now)?)
}

fn door_settings(
    config: &Config,
    parts: &NodeParts,
    service: &Service,
    authenticator: Authenticator,
    signposts: Arc<Signposts>,
) -> DoorSettings {
    let caller_directory = &parts.caller_directory;
    let admin_state = AdminState {
        callers: Arc::clone(&caller_directory.callers),
        keys: Arc::clone(&parts.keys),
        clock: Arc::clone(&caller_directory.clock),
        open: authenticator.is_open(),
        parts: Arc::new(AdminParts::of(config, service.chancery.clone())),
        memory: service.memory.clone(),
        engine: service.engine.clone(),
        webhooks: service.webhooks.clone(),
    };
    DoorSettings {
        public_url: caller_directory.public_url.to_string(),
        listen: config.node.listen.ip(),
        hosts: config.node.hosts.iter().map(|host| host.as_str().to_owned()).collect(),
        every_host: caller_directory.is_insecure && config.node.hosts.is_empty() && signposts.hosts.is_empty(),
        tls: config.tls.cert_file.is_some(),
        headerless: config.card.headerless,
        limits: config.limits.inbound.clone(),
        json: config.limits.json.clone(),
        admin_routes: parts.admin_token.clone().map(|token| admin::routes(admin_state, &service.gateway, &parts.behind, token)),
        authenticator,
        signposts,
        swp: config.swp.settings(),
    }
}

#[cfg(test)]
mod tests;
