//! Everything a node makes of its config, made by one function for the start and for every reload, and put in place whole.

use std::sync::Arc;

use chancery_core::{Agents, Rulebook, TaskRunner};
use chancery_identity::credentials::{Authenticator, CallerRecord};
use chancery_inbound::{DoorSettings, Doors, Signposts};
use chancery_outbound::{Guard, JwksCache};
use chancery_protocol::Timestamp;

use crate::admin::{self, AdminParts, AdminState};
use crate::agent_lineup::AgentLineup;
use crate::agents::BuiltIn;
use crate::authentication::{authenticator, check_grants, key_sets};
use crate::build_error::BuildError;
use crate::config::{AgentConfig, AgentSource, Config};
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
    pub(crate) site: GatewayParts,
    pub(crate) agents: Agents,
    /// Those of the agents that are elsewhere.
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
    let rules = config.rulebook().map_err(BuildError::Rules)?;
    let mut key_sets = replaced.and_then(|replaced| replaced.key_sets_for(config));
    let authenticator = who_is_who(config, &callers, parts, &mut key_sets, replaced)?;
    if let Some(replaced) = replaced
        && authenticator.is_open()
        && !replaced.doors.authenticator().is_open()
    {
        return Err(BuildError::WouldOpen);
    }
    let lineup = lineup(config, parts, replaced);
    let signs = Arc::new(lineup.signs.clone());
    let reception = &parts.reception;
    let mount = MountedAgent::new(reception.public_url.clone(), &authenticator, signs, config).also_at(reception.swp_url.clone());
    let place = RemoteParts {
        config: Arc::new(config.clone()),
        public_url: reception.public_url.url().clone(),
        swp_url: reception.swp_url.clone(),
        clock: Arc::clone(&reception.clock),
        book: Arc::clone(&parts.book),
        knows_callers: mount.knows_callers(),
        in_code: lineup.in_code.clone(),
        known_names: parts.keys.agents(),
    };
    let standing = replaced.and_then(|replaced| replaced.standing_for(config, &authenticator));
    let (given, remotes) = gather(&place, lineup, standing.as_ref()).await?;
    let agents = mount.all(given)?;
    check_grants(&callers, &reception.callers, &agents)?;
    let now = reception.clock.now();
    furnish(&parts.keys, &agents, config, now)?;
    let egress = if config.push.offer.enabled { Some(webhooks::guard(config, &reception.public_url)?) } else { None };
    let signposts = Arc::new(mount.signposts()?);
    let site = GatewayParts { place, mount };
    let service = match replaced {
        Some(replaced) => replaced.service.clone(),
        None => Service::new(config, parts, &site, &agents, egress.as_ref()).await?,
    };
    let settings = door_settings(config, parts, &service, authenticator, signposts);
    let doors = match replaced {
        Some(replaced) => replaced.doors.renewed(settings, &agents, &parts.keys.ring())?,
        None => Doors::new(service.chancery.clone(), settings, &parts.keys.ring())?,
    };
    let config = Arc::clone(&site.place.config);
    Ok(Assembly { config, callers, key_sets, rules, site, agents, remotes, egress, doors, service })
}

impl Replaced {
    /// The keys of issuers that were fetched, if they would be fetched in the same way.
    fn key_sets_for(&self, config: &Config) -> Option<Arc<JwksCache>> {
        let is_same = self.config.outbound == config.outbound && self.config.jwks == config.jwks;
        self.key_sets.clone().filter(|_| is_same)
    }

    /// The agents elsewhere that go on as they are, if the new config would reach and show them in the same way.
    fn standing_for(&self, config: &Config, authenticator: &Authenticator) -> Option<ServedAgents> {
        let around = |config: &Config| {
            let Config { outbound, discovery, peers, routing, health, .. } = config;
            (outbound.clone(), discovery.clone(), peers.clone(), routing.clone(), health.clone())
        };
        // Agents whose extended cards nobody could be shown are asked for them from now on.
        let same_callers = authenticator.is_open() == self.doors.authenticator().is_open();
        (same_callers && around(&self.config) == around(config)).then(|| self.service.fleet.standing())
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
    let preview = parts.reception.callers.preview(callers)?;
    let known_keys = || {
        let sets = kept.take().map_or_else(|| key_sets(config, &parts.reception), Ok)?;
        *kept = Some(Arc::clone(&sets));
        Ok(sets)
    };
    let made = authenticator(config, &parts.reception, preview, known_keys)?;
    Ok(match replaced {
        Some(replaced) => made.following(replaced.doors.authenticator()),
        None => made,
    })
}

fn lineup(config: &Config, parts: &NodeParts, replaced: Option<&Replaced>) -> AgentLineup {
    let own = parts.own.clone();
    if !parts.serves_configured {
        return own;
    }
    own.and_configured(config, |name, run| replaced.and_then(|replaced| replaced.runner(name, run)))
}

/// Makes sure that there are keys for all that these agents and the config need signed.
fn furnish(keys: &KeyRegistry, agents: &Agents, config: &Config, now: Timestamp) -> Result<(), BuildError> {
    let source = |agent: &Arc<chancery_core::Agent>| {
        let configured = config.agents.iter().find(|(name, _)| **name == *agent.name);
        (agent.name.to_string(), configured.and_then(|(_, agent)| agent.key.clone()))
    };
    Ok(keys.furnish(&agents.iter().map(source).collect::<Vec<_>>(), &config.keys, now)?)
}

fn door_settings(
    config: &Config,
    parts: &NodeParts,
    service: &Service,
    authenticator: Authenticator,
    signposts: Arc<Signposts>,
) -> DoorSettings {
    let reception = &parts.reception;
    let office = AdminState {
        callers: Arc::clone(&reception.callers),
        keys: Arc::clone(&parts.keys),
        clock: Arc::clone(&reception.clock),
        open: authenticator.is_open(),
        house: Arc::new(AdminParts::of(config, service.chancery.clone())),
        memory: service.memory.clone(),
        engine: service.engine.clone(),
        webhooks: service.webhooks.clone(),
    };
    DoorSettings {
        public_url: reception.public_url.to_string(),
        listen: config.node.listen.ip(),
        hosts: config.node.hosts.iter().map(|host| host.as_str().to_owned()).collect(),
        every_host: reception.is_insecure && config.node.hosts.is_empty() && signposts.hosts.is_empty(),
        tls: config.tls.cert_file.is_some(),
        headerless: config.card.headerless,
        limits: config.limits.inbound.clone(),
        json: config.limits.json.clone(),
        admin_routes: parts.admin_token.clone().map(|token| admin::routes(office, &service.fleet, &parts.behind, token)),
        authenticator,
        signposts,
        swp: config.swp.settings(),
    }
}

#[cfg(test)]
mod tests;
