//! One agent elsewhere: its card, its address, and the client that speaks to it.

use std::sync::{Arc, Mutex, PoisonError};

use chancery_protocol::{Binding, Timestamp, Version};

use crate::client::{AgentClient, ClientError, ClientLimits, Conditions, Credentials, Interface};
use crate::discovery::{Discovered, Discovery, DiscoveryError, PeerAddress};
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
    /// The client for the card of that digest.
    client: Mutex<Option<(String, Spoken)>>,
}

/// A client, and what the agent at its other end can do.
#[derive(Clone, Debug)]
pub(super) struct Spoken {
    pub(super) client: AgentClient,
    pub(super) version: Version,
    pub(super) streams: bool,
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
        Self { address, way_out, discovery, limits, credentials, client: Mutex::default() }
    }

    pub fn name(&self) -> &str {
        &self.address.name
    }

    pub fn address(&self) -> &PeerAddress {
        &self.address
    }

    /// The agent's card, as it is or was a moment ago.
    pub async fn card(&self, now: Timestamp) -> Result<Arc<Discovered>, DiscoveryError> {
        self.discovery.card(&self.address, now).await
    }

    /// The agent's card as it is now; also tells whether it is there.
    pub async fn refresh(&self, now: Timestamp) -> Result<Arc<Discovered>, DiscoveryError> {
        self.discovery.refresh(&self.address, now).await
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
        let skill = found.card.skills.first().map(|skill| skill.id.clone()).unwrap_or_default();
        let spoken = Spoken { client, version, streams, skill };
        *kept = Some((found.digest.clone(), spoken.clone()));
        Ok(spoken)
    }

    pub(super) fn conditions(&self, trace: chancery_protocol::TraceId) -> Conditions {
        Conditions { credentials: self.credentials.clone(), ..Conditions::new(trace) }
    }
}

/// gRPC addresses may come without a scheme.
fn dialled(interface: &Interface) -> String {
    match interface.binding {
        Binding::Grpc if !interface.url.contains("://") => format!("http://{}", interface.url),
        _ => interface.url.clone(),
    }
}
