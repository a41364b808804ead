//! One replica of a remote agent: its card, its address, and its client.

use std::sync::{Arc, Mutex};

use chancery_core::{GOVERNANCE_EXTENSION, REFERENCES_EXTENSION, Turn};
use chancery_protocol::{Timestamp, Version};
use tokio_util::sync::CancellationToken;

use super::call_plan::CallPlan;
use super::card_pin::{CardPin, Seen};
use super::extended;
use super::lineage_form::LineageForm;
use super::notes::{AgentNotes, FactsKeeper};
use super::settings::AgentSettings;
use crate::client::{AgentClient, AgentCredentials, CallConditions, ClientError, ClientLimits};
use crate::discovery::{CardDiscovery, Discovered, DiscoveryError, PeerLocation, PinKeeper};
use crate::guard::WayOut;

#[derive(Clone, Debug, thiserror::Error)]
pub enum ReplicaError {
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error("{0} has no address in a version and binding that are spoken here")]
    NoInterface(Arc<str>),
    /// No address of its card may be called, and none can be made from the configured one.
    #[error("{peer}: its address is not allowed by [outbound]; {setting} would allow it")]
    NotAllowed { peer: Arc<str>, setting: String },
    #[error("{peer}: {}", error.public())]
    Client { peer: Arc<str>, error: ClientError },
}

#[derive(Debug)]
pub struct Replica {
    address: PeerLocation,
    way_out: WayOut,
    discovery: Arc<CardDiscovery>,
    limits: ClientLimits,
    credentials: AgentCredentials,
    settings: AgentSettings,
    notes: Arc<AgentNotes>,
    card_pin: CardPin,
    pub(super) call_plan: Mutex<CallPlan>,
    pub(super) extended: extended::CachedExtendedCard,
    end: ReplicaEnd,
}

/// Ends what waits for the agent in the background when the replica is dropped.
#[derive(Debug, Default)]
struct ReplicaEnd(CancellationToken);

impl Drop for ReplicaEnd {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A client, and what the agent at its other end can do.
#[derive(Clone, Debug)]
pub(super) struct ReplicaClient {
    pub(super) client: AgentClient,
    pub(super) version: Version,
    pub(super) streams: bool,
    /// Its binding has nothing but streams.
    pub(super) only_streams: bool,
    /// The protocol extensions it knows.
    pub(super) extensions: Arc<[String]>,
    /// Where it receives the lineage of its tasks.
    pub(super) lineage: LineageForm,
    /// The first of its skills, for versions that want one named.
    pub(super) skill: String,
}

impl Replica {
    pub fn new(
        address: PeerLocation,
        way_out: WayOut,
        discovery: Arc<CardDiscovery>,
        limits: ClientLimits,
        credentials: AgentCredentials,
    ) -> Self {
        let (card_pin, call_plan, extended) = (CardPin::default(), Mutex::default(), extended::CachedExtendedCard::default());
        let notes = Arc::new(AgentNotes::new(Arc::clone(&address.name), address.url.as_str().into(), None));
        let settings = AgentSettings::default();
        let end = ReplicaEnd::default();
        Self { address, way_out, discovery, limits, credentials, settings, notes, card_pin, call_plan, extended, end }
    }

    /// The same, called as the operator says.
    #[must_use]
    pub fn called_by(self, settings: AgentSettings) -> Self {
        Self { settings, ..self }
    }

    /// The same, with what is learnt about the agent kept over restarts.
    #[must_use]
    pub fn noted_by(self, keeper: Arc<dyn FactsKeeper>) -> Self {
        let notes = Arc::new(AgentNotes::new(Arc::clone(&self.address.name), self.address.url.as_str().into(), Some(keeper)));
        Self { notes, ..self }
    }

    /// The same, with a pinned card: a change of its promises needs an operator's approval.
    #[must_use]
    pub fn pinned(self, keeper: Arc<dyn PinKeeper>) -> Self {
        Self { card_pin: CardPin::pinned(keeper), ..self }
    }

    /// Fires when the replica is dropped.
    pub(super) fn dropped(&self) -> CancellationToken {
        self.end.0.clone()
    }

    pub fn name(&self) -> &str {
        &self.address.name
    }

    /// The name of the agent that it is a replica of.
    pub fn agent_name(&self) -> &str {
        self.name().split('#').next().unwrap_or_default()
    }

    pub fn address(&self) -> &PeerLocation {
        &self.address
    }

    pub fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    /// What was learnt about the agent.
    pub fn notes(&self) -> &Arc<AgentNotes> {
        &self.notes
    }

    pub(super) fn discovery(&self) -> &CardDiscovery {
        &self.discovery
    }

    pub(super) fn credentials(&self) -> &AgentCredentials {
        &self.credentials
    }

    /// The guards that calls to this agent go out through.
    pub fn way_out(&self) -> &WayOut {
        &self.way_out
    }

    pub(super) fn limits(&self) -> &ClientLimits {
        &self.limits
    }

    /// The card that counts: the agent's as it is or was a moment ago, or the approved one while another waits.
    pub async fn card(&self, now: Timestamp) -> Result<Arc<Discovered>, DiscoveryError> {
        let found = self.discovery.card(&self.address, now).await;
        self.counting(self.card_pin.look(&self.address, found, now))
    }

    /// The same after asking the agent, which also tells whether it is there.
    pub async fn refresh(&self, now: Timestamp) -> Result<Arc<Discovered>, DiscoveryError> {
        let found = self.discovery.refresh(&self.address, now).await;
        self.counting(self.card_pin.look(&self.address, found, now))
    }

    /// Settles where the agent is called as soon as its card is known, so that an operator reads it at the start.
    fn counting(&self, found: Result<Arc<Discovered>, DiscoveryError>) -> Result<Arc<Discovered>, DiscoveryError> {
        if let Ok(found) = &found {
            drop(self.plan(found));
        }
        found
    }

    /// What is known of its card without asking.
    pub fn seen(&self) -> Seen {
        self.card_pin.seen(self.name())
    }

    /// Approves the card that waits, by the digest of its promises. `None` if no card waits, or another one.
    pub fn approve(&self, structure: &str, now: Timestamp) -> Result<Option<Arc<Discovered>>, String> {
        self.card_pin.approve(&self.address, structure, now)
    }

    /// Forgets the approval: the next card is approved, with any signer.
    pub fn unpin(&self) -> Result<(), String> {
        self.card_pin.unpin(&self.address)
    }

    /// The conditions of a call of this turn. It requests only extensions that the agent has.
    pub(super) fn conditions(&self, turn: &Turn, replica_client: &ReplicaClient) -> CallConditions {
        // Links to parts at the agent's node are for those it knows, which are not our callers.
        let is_ours = |uri: &&String| replica_client.extensions.contains(uri) && *uri != REFERENCES_EXTENSION;
        let mut extensions: Vec<String> = turn.extensions.iter().filter(is_ours).cloned().collect();
        let governs = |uri: &String| uri == GOVERNANCE_EXTENSION;
        // Whoever can say what a task cost is asked to.
        if replica_client.extensions.iter().any(governs) && !extensions.iter().any(governs) {
            extensions.push(GOVERNANCE_EXTENSION.to_owned());
        }
        let lineage = turn.delegation.lineage_headers(turn.tracestate.as_ref());
        CallConditions {
            credentials: self.credentials.clone(),
            extensions,
            span: turn.delegation.span(),
            tracestate: lineage.tracestate,
            hop_token: lineage.hop_token,
            headers: self.settings.headers.clone(),
            ..CallConditions::new(turn.trace)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GuardConfig;
    use crate::discovery::{CardSettings, CardVerification, DiscoveryConfig};
    use chancery_protocol::{AgentCard, AgentInterface};
    use url::Url;

    fn replica(url: &str) -> Replica {
        let way_out = WayOut::new(&GuardConfig::default(), &[Url::parse(url).unwrap()], &[]).unwrap();
        let discovery = Arc::new(CardDiscovery::new(way_out.trusted().client(), DiscoveryConfig::default()));
        let address = PeerLocation {
            name: "a".into(),
            url: url.to_owned(),
            verify: CardVerification::Off,
            agent_id: None,
            keys: Vec::new(),
            card: CardSettings::default(),
        };
        Replica::new(address, way_out, discovery, ClientLimits::default(), AgentCredentials::None)
    }

    fn found(card: AgentCard) -> Arc<Discovered> {
        let text = serde_json::to_string(&card).unwrap();
        Arc::new(Discovered::of_card(card, text, "http://127.0.0.1:9001/.well-known/agent-card.json"))
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
    async fn law_1_4_4_an_address_that_may_not_be_called_is_passed_over_for_one_that_may() {
        let replica = replica("http://127.0.0.1:9001");
        let chosen = |listed: &[(&str, &str)]| replica.to_try(&found(card(listed))).first().map(|one| one.url.clone());
        let (grpc, http) = (("127.0.0.1:9002", "GRPC"), ("http://127.0.0.1:9001/x", "JSONRPC"));
        assert_eq!(chosen(&[grpc, http]).as_deref(), Some(http.0));
        assert_eq!(chosen(&[http, grpc]).as_deref(), Some(http.0));
        assert_eq!(chosen(&[grpc]), None, "gRPC cannot be moved to the port of another protocol");
        let public = ("agent.example.org:443", "GRPC");
        assert_eq!(chosen(&[grpc, public, http]).as_deref(), Some(public.0), "dialled with TLS");
        assert_eq!(chosen(&[]), None);
    }

    #[tokio::test]
    async fn law_1_1_5_versions_are_tried_in_order_and_calls_go_on_with_the_last_one() {
        let replica = replica("http://127.0.0.1:9001");
        let found = found(card(&[("http://127.0.0.1:9001/", "JSONRPC")]));
        replica.card_pin.look(&replica.address, Ok(Arc::clone(&found)), Timestamp::from_micros(1)).unwrap();
        let first = replica.spoken_now(&found).unwrap();
        assert_eq!(first.version, Version::V1_0);
        let second = replica.next_version(&first).unwrap();
        assert_eq!(second.version, Version::V0_3);
        assert_eq!(replica.spoken_now(&found).unwrap().version, Version::V0_3, "what was tried in vain is not tried again");
        let third = replica.next_version(&second).unwrap();
        assert_eq!(third.version, Version::Original);
        assert!(replica.next_version(&third).is_none());
        assert_eq!(replica.spoken_now(&found).unwrap().version, Version::V1_0, "after all failed it begins anew");
        replica.notes.speaks(Version::Original);
        assert_eq!(replica.spoken_now(&found).unwrap().version, Version::Original, "what worked goes first");
        assert_eq!(replica.next_version(&replica.spoken_now(&found).unwrap()).unwrap().version, Version::V1_0);
    }
}
