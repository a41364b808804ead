//! What a node stands on whatever its config says, and the two steps of changing the config: everything that can fail, then
//! everything that cannot.

use std::sync::{Arc, Mutex, PoisonError};

use chancery_core::notify::Engine;
use chancery_core::{Agents, Chancery, Rulebook, TaskRunner};
use chancery_identity::credentials::{Authenticator, CallerRecord};
use chancery_inbound::{DoorSettings, Doors, Entrance, Signposts};
use chancery_outbound::JwksCache;
use chancery_protocol::Timestamp;
use secrecy::SecretString;
use tokio::sync::MutexGuard;

use super::Behind;
use crate::admin::{self, House, Office};
use crate::agent_book::AgentBook;
use crate::agents::BuiltIn;
use crate::authentication::{Reception, authenticator, key_sets};
use crate::build_error::BuildError;
use crate::caller_book::BookError;
use crate::config::{AgentSource, Config, Fault, Places, PublicUrl};
use crate::gateway::{Fleet, Remote, Site, Workplace, gather};
use crate::key_chest::KeyChest;
use crate::lineup::Lineup;
use crate::memory::NodeMemory;
use crate::mount::Mount;
use crate::webhooks::Webhooks;

pub(crate) struct Grounds {
    pub(crate) chancery: Chancery,
    pub(crate) entrance: Entrance,
    pub(crate) reception: Reception,
    pub(crate) keys: Arc<KeyChest>,
    pub(crate) memory: Option<NodeMemory>,
    pub(crate) book: Arc<AgentBook>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) admin_token: Option<SecretString>,
    /// Agents that were given in code. They stay.
    pub(crate) own: Lineup,
    /// Whether the agents of the config are served too.
    pub(crate) serves_configured: bool,
    /// The keys of issuers that were fetched, for as long as the way they were fetched stays the same.
    pub(crate) key_sets: Mutex<Option<Arc<JwksCache>>>,
    pub(crate) behind: Behind,
    /// Delivers notifications, where there are webhooks.
    pub(crate) engine: Option<Arc<Engine>>,
    pub(crate) webhooks: Option<Arc<Webhooks>>,
}

/// A config made ready. Nothing of it holds yet.
pub(super) struct Prepared {
    rules: Rulebook,
    site: Site,
    agents: Agents,
    remotes: Vec<Arc<Remote>>,
    callers: Vec<CallerRecord>,
    key_sets: Option<Arc<JwksCache>>,
    doors: Doors,
}

impl Grounds {
    pub(super) fn now(&self) -> Timestamp {
        self.chancery.now()
    }

    pub(super) async fn alone(&self) -> MutexGuard<'_, ()> {
        self.fleet.alone().await
    }

    /// Agents that callers may be granted although the config does not have them.
    pub(super) fn other_agents(&self) -> Vec<String> {
        let given = self.own.here.iter().map(|given| given.name.clone());
        let elsewhere = self.own.elsewhere.iter().map(|(_, name, _)| name.clone());
        let added = self.book.added().into_iter().map(|record| record.name);
        given.chain(elsewhere).chain(added).chain(self.book.given_names()).collect()
    }

    /// Everything that can go wrong.
    pub(super) async fn prepare(
        &self,
        before: &Config,
        config: &Config,
        callers: Vec<CallerRecord>,
        places: &Places,
    ) -> Result<Prepared, Vec<Fault>> {
        let rules = config
            .rulebook()
            .map_err(|faults| faults.iter().map(|fault| places.fault("policy.rules", fault)).collect::<Vec<_>>())?;
        let mut kept = self.key_sets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if before.outbound != config.outbound {
            kept = None;
        }
        let authenticator = self.authenticator(config, &callers, &mut kept).map_err(|error| placed(error, places))?;
        if authenticator.is_open() && !self.entrance.doors().authenticator().is_open() {
            let message = "without callers everybody may call; a node that asks who is calling has to be restarted for that";
            return Err(vec![places.fault("callers", message)]);
        }
        let (site, agents, remotes) = self.gather(before, config, &authenticator).await.map_err(|error| placed(error, places))?;
        let doors = self.doors(config, authenticator, &site.mount, &agents).map_err(|error| placed(error, places))?;
        Ok(Prepared { rules, site, agents, remotes, callers, key_sets: kept, doors })
    }

    /// Puts a config in place. Only what the operator did meanwhile can still stand in its way; then nothing has changed.
    pub(super) fn hold(&self, prepared: Prepared, config: &Config, places: &Places) -> Result<(), Vec<Fault>> {
        let Prepared { rules, site, agents, remotes, callers, key_sets, doors } = prepared;
        self.reception.callers.configure(callers).map_err(|error| placed(error.into(), places))?;
        *self.key_sets.lock().unwrap_or_else(PoisonError::into_inner) = key_sets;
        self.fleet.refit(site, agents, remotes, || {
            self.apply(config);
            self.chancery.set_rules(rules);
            self.entrance.replace(doors);
        });
        // The cards were rendered before the callers held that they say the credentials of.
        if let Err(error) = self.entrance.publish(&self.keys.ring()) {
            tracing::error!(%error, "the cards could not be signed anew and stay as they are");
        }
        Ok(())
    }

    /// What the service goes by from now on. A section that can change while the node runs gets its line here.
    fn apply(&self, config: &Config) {
        self.chancery.set_limits(config.limits.tasks.clone());
        self.chancery.set_retention(config.retention.clone());
        self.chancery.set_dedupe(config.node.dedupe);
    }

    /// The callers of a config with the keys that the environment has for them.
    pub(super) fn callers(&self, config: &Config, places: &Places) -> Result<Vec<CallerRecord>, Vec<Fault>> {
        let (mut records, mut faults) = (Vec::new(), Vec::new());
        for caller in &config.callers {
            let section = format!("callers.{}", caller.record.name);
            match caller.with_key(|name| std::env::var(name).ok()) {
                Ok(record) => records.push(record),
                Err(fault) => {
                    let fault = fault.strip_prefix(&format!("{section}: ")).unwrap_or(&fault);
                    faults.push(places.fault(&format!("{section}.key_env"), fault));
                }
            }
        }
        if faults.is_empty() { Ok(records) } else { Err(faults) }
    }

    /// `kept` has the issuers' keys that can be used on, and then those that are used.
    fn authenticator(
        &self,
        config: &Config,
        callers: &[CallerRecord],
        kept: &mut Option<Arc<JwksCache>>,
    ) -> Result<Authenticator, BuildError> {
        let preview = self.reception.callers.preview(callers)?;
        let known_keys = || {
            let sets = kept.take().map_or_else(|| key_sets(config, &self.reception), Ok)?;
            *kept = Some(Arc::clone(&sets));
            Ok(sets)
        };
        let made = authenticator(config, &self.reception, preview, known_keys)?;
        Ok(made.following(self.entrance.doors().authenticator()))
    }

    async fn gather(
        &self,
        before: &Config,
        config: &Config,
        authenticator: &Authenticator,
    ) -> Result<(Site, Agents, Vec<Arc<Remote>>), BuildError> {
        let lineup = self.lineup(before, config);
        let signs = Arc::new(lineup.signs.clone());
        let mount =
            Mount::new(self.reception.public_url.clone(), authenticator, signs, config).also_at(self.reception.swp_url.clone());
        let place = Workplace {
            config: Arc::new(config.clone()),
            public_url: self.reception.public_url.url().clone(),
            swp_url: self.reception.swp_url.clone(),
            clock: Arc::clone(&self.reception.clock),
            book: Arc::clone(&self.book),
            knows_callers: mount.knows_callers(),
            in_code: lineup.in_code.clone(),
            known_names: self.keys.agents(),
        };
        let surroundings = |config: &Config| {
            (
                config.outbound.clone(),
                config.discovery.clone(),
                config.peers.clone(),
                config.routing.clone(),
                config.health.clone(),
            )
        };
        // Agents whose extended cards nobody could be shown are asked for them from now on.
        let same_callers = authenticator.is_open() == self.entrance.doors().authenticator().is_open();
        let standing = (same_callers && surroundings(before) == surroundings(config)).then(|| self.fleet.standing());
        let (given, remotes) = gather(&place, lineup, standing.as_ref()).await?;
        let agents = mount.all(given)?;
        furnish(&self.keys, &agents, config, self.now())?;
        Ok((Site { place, mount }, agents, remotes))
    }

    fn lineup(&self, before: &Config, config: &Config) -> Lineup {
        if !self.serves_configured {
            return self.own.clone();
        }
        let served = self.chancery.agents();
        self.own.clone().and_configured(config, |name, run| -> Option<Arc<dyn TaskRunner>> {
            let same = |(other, agent): &&(String, _)| other == name && is_here(agent, run);
            before.agents.iter().find(same).and_then(|_| served.get(name)).map(|agent| Arc::clone(&agent.runner))
        })
    }

    fn doors(&self, config: &Config, authenticator: Authenticator, mount: &Mount, agents: &Agents) -> Result<Doors, BuildError> {
        let office = Office {
            callers: Arc::clone(&self.reception.callers),
            keys: Arc::clone(&self.keys),
            clock: Arc::clone(&self.reception.clock),
            open: authenticator.is_open(),
            house: Arc::new(House::of(config, self.chancery.clone())),
            memory: self.memory.clone(),
            engine: self.engine.clone(),
            webhooks: self.webhooks.clone(),
        };
        let token = self.admin_token.clone();
        let routes = admin::routes(office, &self.fleet, &self.behind);
        let signposts = Arc::new(mount.signposts()?);
        let settings = door_settings(config, &self.reception.public_url, authenticator, token, routes, signposts);
        Ok(self.entrance.doors().renewed(settings, agents, &self.keys.ring())?)
    }
}

fn is_here(agent: &crate::config::AgentConfig, run: BuiltIn) -> bool {
    agent.source == AgentSource::BuiltIn(run)
}

/// Makes sure that there are keys for all that these agents and the config need signed.
pub(crate) fn furnish(keys: &KeyChest, agents: &Agents, config: &Config, now: Timestamp) -> Result<(), BuildError> {
    let source = |agent: &Arc<chancery_core::Agent>| {
        let configured = config.agents.iter().find(|(name, _)| **name == *agent.name);
        (agent.name.to_string(), configured.and_then(|(_, agent)| agent.key.clone()))
    };
    Ok(keys.furnish(&agents.iter().map(source).collect::<Vec<_>>(), &config.keys, now)?)
}

pub(crate) fn door_settings(
    config: &Config,
    public_url: &PublicUrl,
    authenticator: Authenticator,
    admin_token: Option<SecretString>,
    admin_routes: axum::Router,
    signposts: Arc<Signposts>,
) -> DoorSettings {
    DoorSettings {
        public_url: public_url.to_string(),
        listen: config.node.listen.ip(),
        tls: config.tls.cert_file.is_some(),
        headerless: config.card.headerless,
        limits: config.limits.inbound.clone(),
        json: config.limits.json.clone(),
        admin_token,
        admin_routes,
        authenticator,
        signposts,
        swp: config.swp.settings(),
    }
}

/// Where in the file somebody has to look.
fn placed(error: BuildError, places: &Places) -> Vec<Fault> {
    let key = match &error {
        BuildError::Callers(BookError::Faulty(faults)) => {
            return faults.iter().map(|fault| places.fault(&format!("callers.{}", fault.name), &fault.reason)).collect();
        }
        BuildError::Agent { name, fault } => return vec![places.fault(&format!("agents.{name}"), fault)],
        BuildError::Callers(_) | BuildError::Credentials(_) => "callers",
        BuildError::Outbound(_) => "outbound",
        BuildError::Keys(_) => "keys",
        _ => "agents",
    };
    vec![places.fault(key, &error.to_string())]
}
