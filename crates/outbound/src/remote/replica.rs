//! One agent elsewhere: its card, its address, and the client that speaks to it.

use std::sync::{Arc, Mutex, PoisonError};

use chancery_core::Turn;
use chancery_protocol::{Binding, Timestamp, Version};

use super::sight::{Seen, Sight};
use crate::client::{AgentClient, ClientError, ClientLimits, Conditions, Credentials, Interface};
use crate::discovery::{Discovered, Discovery, DiscoveryError, PeerAddress, PinKeeper};
use crate::guard::WayOut;

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
    sight: Sight,
    /// The client for the card of that digest.
    client: Mutex<Option<(String, Spoken)>>,
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
        Self { address, way_out, discovery, limits, credentials, sight: Sight::default(), client: Mutex::default() }
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

    /// Takes over the card that waits. `None` if none does.
    pub fn approve(&self, now: Timestamp) -> Result<Option<Arc<Discovered>>, String> {
        self.sight.approve(&self.address, now)
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
        let interface = Interface::choose(&found.card, &Interface::ALL);
        let interface = interface.ok_or_else(|| ReplicaError::NoInterface(Arc::clone(&self.address.name)))?;
        let version = interface.version;
        let guard = self.way_out.guard_for(&dialled(&interface));
        let client = AgentClient::new(guard, interface, self.limits.clone())
            .map_err(|error| ReplicaError::Client { peer: Arc::clone(&self.address.name), error })?;
        let streams = found.card.capabilities.streaming.unwrap_or(false);
        let extensions = found.card.capabilities.extensions.iter().map(|extension| extension.uri.clone()).collect();
        let skill = found.card.skills.first().map(|skill| skill.id.clone()).unwrap_or_default();
        let spoken = Spoken { client, version, streams, extensions, skill };
        *kept = Some((found.digest.clone(), spoken.clone()));
        Ok(spoken)
    }

    /// What goes with a call of this turn. Extensions are asked for that the agent has, and no others.
    pub(super) fn conditions(&self, turn: &Turn, spoken: &Spoken) -> Conditions {
        let extensions = turn.extensions.iter().filter(|uri| spoken.extensions.contains(uri)).cloned().collect();
        Conditions { credentials: self.credentials.clone(), extensions, ..Conditions::new(turn.trace) }
    }
}

/// gRPC addresses may come without a scheme.
fn dialled(interface: &Interface) -> String {
    match interface.binding {
        Binding::Grpc if !interface.url.contains("://") => format!("http://{}", interface.url),
        _ => interface.url.clone(),
    }
}
