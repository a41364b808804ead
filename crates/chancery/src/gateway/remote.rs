//! One agent elsewhere as it is configured: where it is, who it must be, and the card it is shown with.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::{Chancery, Clock};
use chancery_identity::{Jwk, Jwks, PublicKey, SealKey};
use chancery_inbound::Doors;
use chancery_outbound::client::Credentials;
use chancery_outbound::discovery::{Discovery, PeerAddress};
use chancery_outbound::guard::WayOut;
use chancery_outbound::remote::{Pool, RemoteRunner, Replica};
use chancery_protocol::{AgentCard, AgentName, Timestamp};
use url::Url;

use super::front::front;
use crate::config::{AgentConfig, Config, RemoteConfig, RemoteCredentials};
use crate::key_chest::KeyChest;
use crate::mount::Mount;
use crate::new_card;
use crate::node::BuildError;

/// How long a start waits for an agent's card before it goes on without.
const FIRST_LOOK: Duration = Duration::from_secs(5);
/// How often to see whether a card has changed, or an agent has come up.
const LOOK_EVERY: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct Remote {
    name: AgentName,
    pool: Arc<Pool>,
    public_url: Url,
    title: Option<String>,
    description: Option<String>,
}

impl Remote {
    pub(crate) fn new(
        name: &str,
        agent: &AgentConfig,
        remote: &RemoteConfig,
        config: &Config,
        public_url: &Url,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, BuildError> {
        let bad = |fault: String| BuildError::Agent { name: name.to_owned(), fault };
        let urls = remote.urls.iter().map(|url| Url::parse(url).map_err(|fault| format!("url {url:?}: {fault}")));
        let urls = urls.collect::<Result<Vec<_>, _>>().map_err(bad)?;
        let way_out = WayOut::new(&config.outbound, &urls, std::slice::from_ref(public_url)).map_err(bad)?;
        let keys = remote.card_keys.as_deref().map(card_keys).transpose().map_err(bad)?.unwrap_or_default();
        let credentials = credentials(&remote.credentials).map_err(bad)?;
        let discovery = Arc::new(Discovery::new(way_out.trusted().client(), config.discovery.clone()));
        let replica = |url: &Url| {
            let address = PeerAddress {
                name: replica_name(name, url),
                url: url.to_string(),
                verify: remote.verify,
                agent_id: remote.agent_id.clone(),
                keys: keys.clone(),
            };
            let limits = config.peers.client.clone();
            Arc::new(Replica::new(address, way_out.clone(), Arc::clone(&discovery), limits, credentials.clone()))
        };
        let replicas = urls.iter().map(replica).collect();
        let seed = rand::random();
        tracing::debug!(agent = name, seed, "chooses among replicas");
        let pool = Pool::new(replicas, config.routing.plan(seed), config.health.clone(), Arc::clone(clock));
        Ok(Self {
            name: name.into(),
            pool: Arc::new(pool),
            public_url: public_url.clone(),
            title: agent.title.clone(),
            description: agent.description.clone(),
        })
    }

    pub(crate) fn runner(&self, config: &Config, clock: Arc<dyn Clock>) -> RemoteRunner {
        RemoteRunner::new(Arc::clone(&self.pool), clock, config.peers.follow)
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The card to begin with: the agent's, or one that says that it has not been reached.
    pub(crate) async fn first_card(&self, now: Timestamp) -> AgentCard {
        match tokio::time::timeout(FIRST_LOOK, self.card(now)).await {
            Ok(Some(card)) => card,
            _ => {
                tracing::warn!(agent = %self.name, "the agent has not been reached yet; it is served as soon as it is");
                self.named(new_card(&*self.name, "This agent has not been reached yet."))
            }
        }
    }

    /// The agent's card as it is shown here, from whichever replica has one.
    async fn card(&self, now: Timestamp) -> Option<AgentCard> {
        let mut shown = None;
        for replica in self.pool.replicas() {
            match replica.card(now).await {
                Ok(found) => {
                    self.pool.learn(replica.name(), Arc::new(found.card.clone()));
                    shown = shown.or_else(|| Some(self.named(front(&found, &self.public_url))));
                }
                Err(error) => tracing::info!(agent = %self.name, %error, "no card"),
            }
        }
        shown
    }

    fn named(&self, mut card: AgentCard) -> AgentCard {
        if let Some(title) = &self.title {
            title.clone_into(&mut card.name);
        }
        if let Some(description) = &self.description {
            description.clone_into(&mut card.description);
        }
        card
    }
}

/// Looks at the agents' cards again and again, and shows what has changed.
pub(crate) async fn keep_fresh(remotes: Vec<Remote>, mount: Mount, doors: Doors, keys: Arc<KeyChest>, chancery: Chancery) {
    let stopping = chancery.shutdown_token();
    let mut shown: Vec<Option<AgentCard>> = remotes.iter().map(|_| None).collect();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = stopping.cancelled() => return,
        }
        let mut changed = false;
        for (remote, shown) in remotes.iter().zip(&mut shown) {
            let Some(card) = remote.card(chancery.now()).await else { continue };
            if shown.as_ref() == Some(&card) {
                continue;
            }
            let agents = chancery.agents();
            if let Some(agent) = agents.get(&remote.name) {
                let again = mount.again(agent, card.clone(), agents.first().name == agent.name);
                chancery.set_agents(agents.as_ref().clone().with(again));
                changed = true;
            }
            *shown = Some(card);
        }
        if changed && let Err(error) = doors.publish(&keys.ring()) {
            tracing::error!(%error, "the cards could not be signed anew and stay as they are");
        }
    }
}

/// Says which one it is without saying where.
fn replica_name(agent: &str, url: &Url) -> Arc<str> {
    let digest = SealKey::digest(url.as_str().as_bytes());
    let short: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{agent}#{short}").into()
}

/// A JWK, or a list of them.
fn card_keys(file: &Path) -> Result<Vec<PublicKey>, String> {
    let bad = |fault: String| format!("card_keys {}: {fault}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
    let keys = match serde_json::from_str::<Jwks>(&text) {
        Ok(list) => list.keys,
        Err(_) => vec![serde_json::from_str::<Jwk>(&text).map_err(|error| bad(error.to_string()))?],
    };
    keys.iter().map(|key| key.public_key().map_err(|fault| bad(fault.to_string()))).collect()
}

fn credentials(config: &RemoteCredentials) -> Result<Credentials, String> {
    let variable = |name: &String| std::env::var(name).map_err(|_| format!("credentials: the environment has no {name}"));
    match (&config.bearer_env, &config.api_key_env) {
        (Some(_), Some(_)) => Err("credentials: a bearer token or an API key, not both".to_owned()),
        (Some(name), None) => variable(name).map(Credentials::bearer),
        (None, Some(name)) => variable(name).map(Credentials::api_key),
        (None, None) => Ok(Credentials::None),
    }
}
