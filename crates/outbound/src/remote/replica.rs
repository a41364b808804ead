//! One agent elsewhere: its card, its address, and the client that speaks to it.

use std::sync::{Arc, Mutex, PoisonError};

use chancery_core::{GOVERNANCE_EXTENSION, REFERENCES_EXTENSION, Turn};
use chancery_protocol::{AgentCard, Binding, Timestamp, Version};

use super::extended;
use super::notes::{AgentNotes, FactsKeeper};
use super::settings::AgentSettings;
use super::sight::{Seen, Sight};
use crate::client::{AgentClient, ClientError, ClientLimits, Conditions, Credentials, Interface, SwpTerms};
use crate::discovery::{Discovered, Discovery, DiscoveryError, PeerAddress, PinKeeper};
use crate::guard::{WayOut, as_web};

#[derive(Clone, Debug, thiserror::Error)]
pub enum ReplicaError {
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error("{0} has no address in a version and binding that are spoken here")]
    NoInterface(Arc<str>),
    #[error("{peer}: {}", error.public())]
    Client { peer: Arc<str>, error: ClientError },
}

#[derive(Debug)]
pub struct Replica {
    address: PeerAddress,
    way_out: WayOut,
    discovery: Arc<Discovery>,
    limits: ClientLimits,
    credentials: Credentials,
    settings: AgentSettings,
    notes: Arc<AgentNotes>,
    sight: Sight,
    /// The client for the card of that digest.
    client: Mutex<Option<(String, Spoken)>>,
    pub(super) extended: extended::Kept,
}

/// A client, and what the agent at its other end can do.
#[derive(Clone, Debug)]
pub(super) struct Spoken {
    pub(super) client: AgentClient,
    pub(super) version: Version,
    pub(super) streams: bool,
    /// The protocol extensions it knows.
    extensions: Arc<[String]>,
    /// The first of its skills, for versions that want one named.
    pub(super) skill: String,
}

impl Replica {
    pub fn new(
        address: PeerAddress,
        way_out: WayOut,
        discovery: Arc<Discovery>,
        limits: ClientLimits,
        credentials: Credentials,
    ) -> Self {
        let (sight, client, extended) = (Sight::default(), Mutex::default(), extended::Kept::default());
        let notes = Arc::new(AgentNotes::new(Arc::clone(&address.name), None));
        let settings = AgentSettings::default();
        Self { address, way_out, discovery, limits, credentials, settings, notes, sight, client, extended }
    }

    /// The same, called as the operator says.
    #[must_use]
    pub fn called_by(self, settings: AgentSettings) -> Self {
        Self { settings, ..self }
    }

    /// The same, with what is learnt about the agent kept over restarts.
    #[must_use]
    pub fn noted_by(self, keeper: Arc<dyn FactsKeeper>) -> Self {
        let notes = Arc::new(AgentNotes::new(Arc::clone(&self.address.name), Some(keeper)));
        Self { notes, ..self }
    }

    /// The same, whose card may not change in what it promises before somebody approves it.
    #[must_use]
    pub fn pinned(self, keeper: Arc<dyn PinKeeper>) -> Self {
        Self { sight: Sight::pinned(keeper), ..self }
    }

    pub fn name(&self) -> &str {
        &self.address.name
    }

    pub fn address(&self) -> &PeerAddress {
        &self.address
    }

    pub fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    /// What was learnt about the agent.
    pub fn notes(&self) -> &Arc<AgentNotes> {
        &self.notes
    }

    pub(super) fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    pub(super) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The card that counts: the agent's as it is or was a moment ago, or the approved one while another waits.
    pub async fn card(&self, now: Timestamp) -> Result<Arc<Discovered>, DiscoveryError> {
        let found = self.discovery.card(&self.address, now).await;
        self.sight.look(&self.address, found, now)
    }

    /// The same after asking the agent, which also tells whether it is there.
    pub async fn refresh(&self, now: Timestamp) -> Result<Arc<Discovered>, DiscoveryError> {
        let found = self.discovery.refresh(&self.address, now).await;
        self.sight.look(&self.address, found, now)
    }

    /// What is known of its card without asking.
    pub fn seen(&self) -> Seen {
        self.sight.seen(self.name())
    }

    /// Takes over the card that waits, by the digest of what it promises. `None` if none does, or another one.
    pub fn approve(&self, structure: &str, now: Timestamp) -> Result<Option<Arc<Discovered>>, String> {
        self.sight.approve(&self.address, structure, now)
    }

    /// Forgets what was approved: the next card seen is, whoever signed it.
    pub fn unpin(&self) -> Result<(), String> {
        self.sight.unpin(&self.address)
    }

    pub(super) async fn client(&self, now: Timestamp) -> Result<Spoken, ReplicaError> {
        let found = self.card(now).await?;
        let mut kept = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((digest, spoken)) = &*kept
            && *digest == found.digest
        {
            return Ok(spoken.clone());
        }
        let interface = self.reachable(&found.card);
        let interface = interface.ok_or_else(|| ReplicaError::NoInterface(Arc::clone(&self.address.name)))?;
        let version = interface.version;
        let guard = self.way_out.guard_for(&dialled(&interface));
        let is_slim = interface.binding == Binding::Swp;
        let client = match is_slim {
            true => AgentClient::over_swp(guard, interface.clone(), self.limits.clone(), &self.slim(&interface, &found.card)),
            false => AgentClient::new(guard, interface, self.limits.clone()),
        };
        let client = client.map_err(|error| ReplicaError::Client { peer: Arc::clone(&self.address.name), error })?;
        let client = client.reading_by(Arc::clone(&self.notes), self.settings.strict);
        // Over SWP everything is a stream, whatever else the agent can.
        let streams = is_slim || found.card.capabilities.streaming.unwrap_or(false);
        let extensions = found.card.capabilities.extensions.iter().map(|extension| extension.uri.clone()).collect();
        let skill = found.card.skills.first().map(|skill| skill.id.clone()).unwrap_or_default();
        let spoken = Spoken { client, version, streams, extensions, skill };
        *kept = Some((found.digest.clone(), spoken.clone()));
        Ok(spoken)
    }

    /// What goes with a call of this turn. Extensions are asked for that the agent has, and no others.
    pub(super) fn conditions(&self, turn: &Turn, spoken: &Spoken) -> Conditions {
        // Links to parts at the agent's node are for those it knows, which are not our callers.
        let is_ours = |uri: &&String| spoken.extensions.contains(uri) && *uri != REFERENCES_EXTENSION;
        let mut extensions: Vec<String> = turn.extensions.iter().filter(is_ours).cloned().collect();
        let governs = |uri: &String| uri == GOVERNANCE_EXTENSION;
        // Whoever can say what a task cost is asked to.
        if spoken.extensions.iter().any(governs) && !extensions.iter().any(governs) {
            extensions.push(GOVERNANCE_EXTENSION.to_owned());
        }
        Conditions {
            credentials: self.credentials.clone(),
            extensions,
            tracestate: turn.tracestate.clone(),
            hop_token: turn.delegation.hop_token(),
            ..Conditions::new(turn.trace)
        }
    }
}

impl Replica {
    /// The first address of a card that may be called. If none may, the first one: its refusal is the reason to tell.
    fn reachable(&self, card: &AgentCard) -> Option<Interface> {
        let allowed = |interface: &Interface| {
            let url = dialled(interface);
            let guard = self.way_out.guard_for(&url);
            let secured = url.replacen("http://", "https://", 1);
            // An address without a scheme is dialled with TLS where it cannot be dialled without.
            guard.check(&url).is_ok() || (url != interface.url && guard.check(&secured).is_ok())
        };
        // Whoever wrote down an SWP address means SWP, which cards list last.
        let is_meant = |interface: &Interface| as_web(&self.address.url).is_none() || interface.binding == Binding::Swp;
        let meant = || Interface::spoken(card).filter(is_meant);
        meant().find(allowed).or_else(|| meant().next()).or_else(|| Interface::spoken(card).find(allowed))
    }
}

impl Replica {
    /// What is known of an SWP peer by its card.
    fn slim(&self, interface: &Interface, card: &AgentCard) -> SwpTerms {
        let listed = card.supported_interfaces.iter().find(|listed| listed.url == interface.url);
        SwpTerms {
            speaks_a2a: listed.is_some_and(|listed| listed.protocol_binding == chancery_wire::swp::BINDING),
            skill: card.skills.first().map(|skill| skill.id.clone()),
            certificate: self.credentials.certificate().cloned(),
        }
    }
}

/// gRPC addresses may come without a scheme, and those of SWP are to be judged like the web's.
fn dialled(interface: &Interface) -> String {
    match interface.binding {
        Binding::Swp => as_web(&interface.url).map_or_else(|| interface.url.clone(), |url| url.to_string()),
        Binding::Grpc if !interface.url.contains("://") => format!("http://{}", interface.url),
        _ => interface.url.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GuardConfig;
    use crate::discovery::{DiscoveryConfig, Verify};
    use chancery_protocol::AgentInterface;
    use url::Url;

    fn replica(url: &str) -> Replica {
        let way_out = WayOut::new(&GuardConfig::default(), &[Url::parse(url).unwrap()], &[]).unwrap();
        let discovery = Arc::new(Discovery::new(way_out.trusted().client(), DiscoveryConfig::default()));
        let address =
            PeerAddress { name: "a".into(), url: url.to_owned(), verify: Verify::Off, agent_id: None, keys: Vec::new() };
        Replica::new(address, way_out, discovery, ClientLimits::default(), Credentials::None)
    }

    fn card(listed: &[(&str, &str)]) -> AgentCard {
        let interface = |(url, binding): &(&str, &str)| AgentInterface {
            url: (*url).to_owned(),
            protocol_binding: (*binding).to_owned(),
            tenant: None,
            protocol_version: "1.0".to_owned(),
        };
        AgentCard { supported_interfaces: listed.iter().map(interface).collect(), ..AgentCard::default() }
    }

    #[tokio::test]
    async fn an_address_that_may_not_be_called_is_passed_over_for_one_that_may() {
        let replica = replica("http://127.0.0.1:9001");
        let chosen = |listed: &[(&str, &str)]| replica.reachable(&card(listed)).map(|interface| interface.url);
        let (grpc, http) = (("127.0.0.1:9002", "GRPC"), ("http://127.0.0.1:9001/x", "JSONRPC"));
        assert_eq!(chosen(&[grpc, http]).as_deref(), Some(http.0));
        assert_eq!(chosen(&[http, grpc]).as_deref(), Some(http.0));
        assert_eq!(chosen(&[grpc]).as_deref(), Some(grpc.0), "whose refusal is then the reason");
        let public = ("agent.example.org:443", "GRPC");
        assert_eq!(chosen(&[grpc, public, http]).as_deref(), Some(public.0), "dialled with TLS");
        assert_eq!(chosen(&[]), None);
    }
}
