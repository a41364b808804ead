//! One remote agent of the config: its addresses, its required identity, and the card that the node serves
//! for it.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chancery_core::{Clock, TaskRunner};
use chancery_identity::{Jwk, Jwks, PublicKey, SealKey};
use chancery_outbound::ClientCertificate;
use chancery_outbound::client::AgentCredentials;
use chancery_outbound::discovery::{CardDiscovery, CardSettings, DiscoveryError, PeerLocation, PinKeeper};
use chancery_outbound::guard::WayOut;
use chancery_outbound::remote::{FactsKeeper, Pool, RemoteRunner, Replica};
use chancery_protocol::{AgentCard, AgentName, Timestamp};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

use super::front::{front, front_extended};
use super::in_code::InCode;
use crate::agent_registry::AgentRegistry;
use crate::config::{AgentConfig, AgentSource, Config, RemoteConfig, RemoteCredentials, SwpUrl};
use crate::new_card;

/// How long a start waits for an agent's card before it goes on without.
const FIRST_LOOK: Duration = Duration::from_secs(5);
/// What every call of a remote agent needs.
#[derive(Clone, Debug)]
pub(crate) struct RemoteParts {
    pub(crate) config: Arc<Config>,
    pub(crate) public_url: Url,
    pub(crate) swp_url: Option<SwpUrl>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) agent_registry: Arc<AgentRegistry>,
    /// Whether callers authenticate. Only then is an extended card shown.
    pub(crate) knows_callers: bool,
    pub(crate) in_code: InCode,
    /// Agents that keys were made for: those that this data folder had before.
    pub(crate) known_names: BTreeSet<String>,
}

/// A runner that says nothing of itself.
struct Local(Arc<dyn TaskRunner>);

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Local")
    }
}

/// The cards of an agent as they are shown here.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShownCards {
    pub(crate) card: AgentCard,
    /// For callers who proved who they are.
    pub(crate) extended: Option<AgentCard>,
}

#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) name: AgentName,
    /// Added while a node ran, and not by its config.
    pub(crate) added: bool,
    pub(crate) config: RemoteConfig,
    pool: Arc<Pool>,
    /// Does the work when no replica can be called.
    local: Option<Local>,
    public_url: Url,
    title: Option<String>,
    description: Option<String>,
    knows_callers: bool,
    /// Named by its host and port, until its card says its name.
    pub(crate) provisional: bool,
    /// What was shown last.
    shown: Mutex<Option<ShownCards>>,
    /// The cards that were read last, before they are mounted.
    latest: Mutex<Option<ShownCards>>,
    /// Fires when the agent is removed.
    pub(crate) gone: CancellationToken,
}

impl Remote {
    pub(crate) fn new(name: &str, agent: &AgentConfig, added: bool, remote_parts: &RemoteParts) -> Result<Option<Self>, String> {
        let AgentSource::Remote(remote) = &agent.source else { return Ok(None) };
        let RemoteParts { config, public_url, swp_url, clock, agent_registry, knows_callers, in_code, .. } = remote_parts;
        let urls = remote.urls.iter().map(|url| Url::parse(url).map_err(|fault| format!("url {url:?}: {fault}")));
        let urls = urls.map(|url| url.map(dialable)).collect::<Result<Vec<_>, _>>()?;
        let own: Vec<Url> = std::iter::once(public_url.clone()).chain(swp_url.as_ref().and_then(SwpUrl::as_web)).collect();
        let settings = remote.calls.settled()?;
        // Whoever writes down an address allows it.
        let address = settings.address.as_ref().and_then(|address| Url::parse(address).ok());
        let written_down: Vec<Url> = urls.iter().cloned().chain(address).collect();
        let way_out = WayOut::new(&config.outbound, &written_down, &own)?;
        let keys = remote.card_keys.as_deref().map(card_keys).transpose()?.unwrap_or_default();
        let credentials = credentials(&remote.credentials)?;
        let discovery = CardDiscovery::new(way_out.trusted().client(), config.discovery.clone());
        let discovery = Arc::new(discovery.showing(credentials.certificate().cloned()));
        let replica = |url: &Url| {
            let address = PeerLocation {
                name: replica_name(name, url),
                url: url.to_string(),
                verify: remote.verify,
                agent_id: remote.agent_id.clone(),
                keys: keys.clone(),
                card: CardSettings {
                    file: remote.calls.card_file.clone(),
                    headers: settings.headers.clone(),
                    strict: settings.strict,
                },
            };
            let limits = config.peers.client.clone();
            let replica = Replica::new(address, way_out.clone(), Arc::clone(&discovery), limits, credentials.clone());
            let replica =
                replica.called_by(settings.clone()).noted_by(Arc::clone(agent_registry.facts()) as Arc<dyn FactsKeeper>);
            Arc::new(if remote.pin { replica.pinned(Arc::clone(agent_registry) as Arc<dyn PinKeeper>) } else { replica })
        };
        let replicas = urls.iter().map(replica).collect();
        let local = in_code.locals.get(name).cloned().or_else(|| remote.local.map(|run| run.runner()));
        match (&local, config.routing.plan(0).fall_back_to_local) {
            (Some(_), false) => {
                return Err(
                    "has both a runner and `url`; set routing.fallback = \"local\" to use the runner if the URL fails".to_owned()
                );
            }
            (None, true) => tracing::warn!(
                agent = name,
                "routing.fallback is \"local\", but the agent has no `run`: there is nothing to fall back to"
            ),
            _ => {}
        }
        let seed = chancery_core::random_seed();
        tracing::debug!(agent = name, seed, "seeded the choice among replicas");
        let pool = Pool::new(replicas, config.routing.plan(seed), config.health.clone(), Arc::clone(clock));
        let pool = in_code.selector(&config.routing).into_iter().fold(pool, Pool::choosing_by);
        Ok(Some(Self {
            name: name.into(),
            added,
            config: RemoteConfig::clone(remote),
            pool: Arc::new(pool),
            local: local.map(Local),
            public_url: public_url.clone(),
            title: agent.title.clone(),
            description: agent.description.clone(),
            knows_callers: *knows_callers,
            provisional: agent.unnamed && remote.urls.first().is_some_and(|url| agent_registry.name_of(url).is_none()),
            shown: Mutex::default(),
            latest: Mutex::default(),
            gone: CancellationToken::new(),
        }))
    }

    /// Whether it is what this config would make, in the same surroundings.
    pub(crate) fn is(&self, agent: &AgentConfig, added: bool) -> bool {
        let same_place = matches!(&agent.source, AgentSource::Remote(remote) if **remote == self.config);
        same_place && self.added == added && self.title == agent.title && self.description == agent.description
    }

    /// The next look shows its card, whether it has changed or not.
    pub(crate) fn show_again(&self) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn runner(&self, remote_parts: &RemoteParts) -> Arc<dyn TaskRunner> {
        let runner = RemoteRunner::new(Arc::clone(&self.pool), Arc::clone(&remote_parts.clock), remote_parts.config.peers.follow);
        Arc::new(match &self.local {
            Some(Local(local)) => runner.with_local(Arc::clone(local)),
            None => runner,
        })
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The cards that were read last, if any were.
    pub(crate) fn latest(&self) -> Option<ShownCards> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep_latest(&self, cards: &ShownCards) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(cards.clone());
    }

    /// The cards to begin with: the agent's, the one that was approved, or one that says that it has not been reached.
    pub(crate) async fn first_cards(&self, now: Timestamp) -> ShownCards {
        let cards = self.look_first(now).await;
        self.keep_latest(&cards);
        cards
    }

    async fn look_first(&self, now: Timestamp) -> ShownCards {
        if let Ok(Some(card)) = tokio::time::timeout(FIRST_LOOK, self.card(now)).await {
            let extended = tokio::time::timeout(FIRST_LOOK, self.extended(now)).await.ok().flatten();
            return ShownCards { card, extended };
        }
        let fault = self.pool.replicas().find_map(|replica| replica.seen().fault);
        let reason = fault.as_ref().map_or_else(|| "no answer yet".to_owned(), DiscoveryError::for_operator);
        let url = self.config.urls.first();
        tracing::warn!(agent = %self.name, url, reason, "cannot read the agent's card yet; the node shows a stand-in and tries again");
        let approved = self.pool.replicas().find_map(|replica| replica.seen().counts);
        let card = approved.map_or_else(|| self.stand_in(fault.as_ref()), |found| self.shown_as(front(&found, &self.public_url)));
        ShownCards { card, extended: None }
    }

    /// A card for an agent whose own cannot be shown. It says so, and why.
    fn stand_in(&self, fault: Option<&DiscoveryError>) -> AgentCard {
        let description = match fault {
            None | Some(DiscoveryError::Transport { .. }) => "This agent has not been reached yet.".to_owned(),
            Some(DiscoveryError::Discovery { reason, .. } | DiscoveryError::CardSignatureInvalid { reason, .. }) => {
                format!("This agent cannot be called: its card was rejected: {reason}")
            }
        };
        AgentCard { description, ..self.shown_as(new_card(&*self.name, "Not known: the agent's card could not be read.")) }
    }

    /// The cards if they are others than were shown last.
    pub(crate) async fn fresh_cards(&self, now: Timestamp) -> Option<ShownCards> {
        let cards = match self.card(now).await {
            Some(card) => ShownCards { card, extended: self.extended(now).await },
            // A stand-in says why there is no card, which may have changed. A card that was shown before stays.
            None if self.pool.replicas().all(|replica| replica.seen().counts.is_none()) => {
                let fault = self.pool.replicas().find_map(|replica| replica.seen().fault);
                ShownCards { card: self.stand_in(fault.as_ref()), extended: None }
            }
            None => return None,
        };
        self.keep_latest(&cards);
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.as_ref() == Some(&cards) {
            return None;
        }
        *shown = Some(cards.clone());
        Some(cards)
    }

    /// The card for callers who proved who they are, from whichever replica has one. A node that knows no callers does not ask.
    async fn extended(&self, now: Timestamp) -> Option<AgentCard> {
        if !self.knows_callers {
            return None;
        }
        for replica in self.pool.replicas() {
            match (replica.card(now).await, replica.extended(now).await) {
                (Ok(found), Ok(Some(extended))) => {
                    return Some(self.shown_as(front_extended(&found, &extended, &self.public_url)));
                }
                (_, Err(error)) => {
                    tracing::warn!(agent = %self.name, url = replica.address().url, %error, "cannot read the agent's extended card");
                }
                _ => {}
            }
        }
        None
    }

    /// The agent's card as it is shown here, from whichever replica has one.
    async fn card(&self, now: Timestamp) -> Option<AgentCard> {
        let mut shown = None;
        for replica in self.pool.replicas() {
            match replica.card(now).await {
                Ok(found) => {
                    self.pool.learn(replica.name(), Arc::new(found.card.clone()));
                    shown = shown.or_else(|| Some(self.shown_as(front(&found, &self.public_url))));
                }
                Err(error) => {
                    let (url, error) = (&replica.address().url, error.for_operator());
                    tracing::warn!(agent = %self.name, url, error, "cannot read the agent's card");
                }
            }
        }
        shown
    }

    /// The name on the agent's own card, once one was read.
    pub(crate) fn card_name(&self) -> Option<String> {
        self.pool.replicas().find_map(|replica| replica.seen().counts).map(|found| found.card.name.clone())
    }

    /// Whether any call was put to it since the node was started.
    pub(crate) fn was_called(&self) -> bool {
        self.pool.standings().iter().any(|standing| standing.snapshot.recent_results > 0 || standing.snapshot.open_tasks > 0)
    }

    /// A card with what the operator says instead.
    fn shown_as(&self, mut card: AgentCard) -> AgentCard {
        if let Some(modes) = &self.config.calls.input_modes {
            card.default_input_modes.clone_from(modes);
        }
        if let Some(title) = &self.title {
            title.clone_into(&mut card.name);
        }
        if let Some(description) = &self.description {
            description.clone_into(&mut card.description);
        }
        card
    }
}

/// The URL with the loopback in the place of an unspecified address: `http://0.0.0.0:9000` is what servers print that listen on
/// every interface, and is typed as it was printed.
fn dialable(mut url: Url) -> Url {
    let loopback: Option<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) if address.is_unspecified() => Some(Ipv4Addr::LOCALHOST.into()),
        Some(Host::Ipv6(address)) if address.is_unspecified() => Some(Ipv6Addr::LOCALHOST.into()),
        _ => None,
    };
    if let Some(loopback) = loopback {
        tracing::info!(typed = %url, address = %loopback, "the URL has an unspecified address; the node calls the loopback address instead");
        // Only URLs without a host refuse one.
        let _ = url.set_ip_host(loopback);
    }
    url
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

fn credentials(config: &RemoteCredentials) -> Result<AgentCredentials, String> {
    let variable =
        |name: &String| std::env::var(name).map_err(|_| format!("credentials: the environment variable {name} is not set"));
    if let (Some(cert_file), Some(key_file)) = (&config.cert_file, &config.key_file) {
        if config.bearer_env.is_some() || config.api_key_env.is_some() {
            return Err("credentials: a certificate, a bearer token or an API key, and only one of them".to_owned());
        }
        return certificate(cert_file, key_file).map(AgentCredentials::Certificate);
    }
    match (&config.bearer_env, &config.api_key_env) {
        (Some(_), Some(_)) => Err("credentials: a bearer token or an API key, not both".to_owned()),
        (Some(name), None) => variable(name).map(AgentCredentials::bearer),
        (None, Some(name)) => variable(name).map(AgentCredentials::api_key),
        (None, None) => Ok(AgentCredentials::None),
    }
}

fn certificate(cert_file: &Path, key_file: &Path) -> Result<ClientCertificate, String> {
    let chain = CertificateDer::pem_file_iter(cert_file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|fault| format!("credentials: {}: {fault}", cert_file.display()))?;
    // Never more than what kind of fault it is: the file holds a secret.
    let key = PrivateKeyDer::from_pem_file(key_file)
        .map_err(|fault| format!("credentials: {} holds no private key in PEM: {fault}", key_file.display()))?;
    Ok(ClientCertificate { chain, key: Arc::new(key) })
}
