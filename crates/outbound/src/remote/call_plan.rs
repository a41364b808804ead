//! The addresses and versions at which one replica is called, in order, and the clients made for them.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use chancery_protocol::{AgentCard, Binding, Timestamp, Version};
use chancery_wire::tolerant::Leniency;
use serde_json::{Value, json};
use url::{Host, Url};

use super::address::{AddressChange, AddressRules, CallableInterface, UrlPermission, callable, candidates};
use super::lineage_form::LineageForm;
use super::replica::{Replica, ReplicaClient, ReplicaError};
use crate::client::{AgentClient, Interface, SwpTerms, place_of_operations};
use crate::discovery::{Discovered, leniencies};
use crate::guard::{TargetHost, as_web};

/// The plan for one card of a replica.
#[derive(Debug, Default)]
pub(super) struct CallPlan {
    /// Of the card; empty before the first.
    digest: String,
    callable: Vec<CallableInterface>,
    /// What the order of `candidates` was made with.
    speaks: Option<Version>,
    candidates: Vec<(usize, Interface)>,
    /// The candidate that calls begin with. Moves on when the agent does not know it, see [`Replica::next_version`].
    current: usize,
    clients: BTreeMap<usize, ReplicaClient>,
}

/// The address that calls go to at present, for operators.
#[derive(Clone, Debug)]
pub struct AddressInUse {
    pub interface: Interface,
    /// The URL in the card.
    pub listed: String,
    /// Why it is another one, if it is.
    pub change: Option<AddressChange>,
    /// Whether the card says that the agent streams.
    pub streams: bool,
}

impl AddressInUse {
    /// The address as `chancery agents` and the admin API show it.
    pub fn to_json(&self) -> Value {
        json!({
            "address": self.interface.url,
            "binding": self.interface.binding.as_str(),
            "version": self.interface.version,
            "streaming": self.streams,
            "listed": self.listed,
            "replaced": self.change.map(|change| change.reason()),
        })
    }
}

impl Replica {
    /// The client to call the agent with: the address and version that worked, or else the first that may.
    pub(super) async fn client(&self, now: Timestamp) -> Result<ReplicaClient, ReplicaError> {
        let found = self.card(now).await?;
        self.spoken_now(&found)
    }

    pub(super) fn spoken_now(&self, found: &Discovered) -> Result<ReplicaClient, ReplicaError> {
        let speaks = self.notes().version();
        let mut plan = self.plan(found);
        if plan.speaks != speaks {
            plan.order_by(speaks);
        }
        let from = plan.current;
        self.spoken_from(&mut plan, from, found)
    }

    /// The client to try after the agent answered `tried` with `-32601`, `-32009`, HTTP 404 or 405, which all
    /// mean that nothing was executed. It is the next version or address of its card, or `None` once all were
    /// tried. Later calls begin with the returned one, so that an agent gets no second futile call. After
    /// `None` they begin again with the first.
    pub(super) fn next_version(&self, tried: &ReplicaClient) -> Option<ReplicaClient> {
        let card = self.seen().counts?;
        let mut plan = self.plan(&card);
        let index = plan.candidates.iter().position(|(_, interface)| interface == tried.client.interface());
        let next = self.spoken_from(&mut plan, index.map_or(0, |index| index + 1), &card).ok();
        if next.is_none() {
            plan.current = 0;
        }
        next
    }

    /// The address that calls go to, or why there is no such address. `None` as long as no card was read.
    pub fn in_use(&self) -> Option<Result<AddressInUse, ReplicaError>> {
        let found = self.seen().counts?;
        let plan = self.plan(&found);
        let Some((index, interface)) = plan.candidates.get(plan.current).or_else(|| plan.candidates.first()) else {
            return Some(Err(self.no_address(&found.card)));
        };
        let of = plan.callable.get(*index);
        Some(Ok(AddressInUse {
            interface: interface.clone(),
            listed: of.map(|of| of.listed.clone()).unwrap_or_default(),
            change: of.and_then(|of| of.change),
            streams: streams(&found.card, interface.binding),
        }))
    }

    /// Where the agent receives the lineage of its tasks, as long as calls go to the present address.
    pub(super) fn lineage_by(&self) -> Option<&'static str> {
        let found = self.seen().counts?;
        let plan = self.plan(&found);
        if let Some(replica_client) = plan.clients.get(&plan.current) {
            return Some(replica_client.lineage.name());
        }
        let (_, interface) = plan.candidates.get(plan.current)?;
        Some(self.lineage_form(interface.version, &found).name())
    }

    fn lineage_form(&self, version: Version, found: &Discovered) -> LineageForm {
        let extensions: Vec<String> = found.card.capabilities.extensions.iter().map(|extension| extension.uri.clone()).collect();
        LineageForm::of(version, self.settings().lineage, &extensions, &found.text)
    }

    /// All addresses and versions in the order in which they are tried.
    pub fn to_try(&self, found: &Discovered) -> Vec<Interface> {
        candidates(&self.callable(found), None).into_iter().map(|(_, interface)| interface).collect()
    }

    /// The plan for a card. One that is new is logged, and its deviations are counted.
    pub(super) fn plan(&self, found: &Discovered) -> MutexGuard<'_, CallPlan> {
        let mut kept = self.call_plan.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.digest != found.digest {
            self.notes().of_card(&found.structure);
            let callable = self.callable(found);
            let speaks = self.notes().version();
            let candidates = candidates(&callable, speaks);
            self.announce(found, &callable);
            let (digest, clients) = (found.digest.clone(), BTreeMap::new());
            *kept = CallPlan { digest, callable, speaks, candidates, current: 0, clients };
        }
        kept
    }

    fn callable(&self, found: &Discovered) -> Vec<CallableInterface> {
        let Ok(configured) = Url::parse(&self.address().url) else { return Vec::new() };
        let (card_url, shape, settings) = (found.url.as_str(), found.version, self.settings());
        let rules = AddressRules { configured: &configured, card_url, shape, settings };
        callable(rules, &found.card, |url| self.permission(url))
    }

    fn permission(&self, url: &str) -> UrlPermission {
        match self.way_out().guard_for(url).check(url) {
            Err(_) => UrlPermission::Denied,
            Ok(target) if target.is_allowed_host() || matches!(target.host(), TargetHost::Address(_)) => UrlPermission::Named,
            Ok(_) => UrlPermission::Public,
        }
    }

    /// Logs, once for each card, where the agent is called if that is not where its card says, or that it cannot be called.
    fn announce(&self, found: &Discovered, callable: &[CallableInterface]) {
        let configured = self.address().url.as_str();
        let mut deviating = leniencies(&found.deviations);
        deviating.extend(&found.leniencies);
        if callable.first().is_some_and(|first| place_of_operations(&first.url).is_some()) {
            deviating.insert(Leniency::OperationAddress);
        }
        match callable.first() {
            None => {
                let listed = first_listed(&found.card);
                let setting = setting_for(&listed);
                tracing::warn!(
                    peer = self.name(),
                    configured,
                    card = listed,
                    setting,
                    "the agent cannot be called: no address of its card is allowed"
                );
            }
            Some(CallableInterface { url, listed, change: Some(change), .. }) => {
                if *change != AddressChange::Setting {
                    deviating.insert(Leniency::AddressReplaced);
                }
                let setting = (*change == AddressChange::NotAllowed).then(|| setting_for(listed));
                let reason = change.reason();
                tracing::info!(
                    peer = self.name(),
                    address = url,
                    card = listed,
                    reason,
                    setting,
                    "the node calls the agent at another address than the one on its card"
                );
            }
            Some(_) => {}
        }
        self.notes().count(&deviating);
    }

    fn spoken_from(&self, plan: &mut CallPlan, from: usize, found: &Discovered) -> Result<ReplicaClient, ReplicaError> {
        let mut refusal = None;
        for index in from..plan.candidates.len() {
            if let Some(replica_client) = plan.clients.get(&index) {
                plan.current = index;
                return Ok(replica_client.clone());
            }
            let Some((_, interface)) = plan.candidates.get(index) else { break };
            match self.speak(interface.clone(), found) {
                Ok(replica_client) => {
                    plan.clients.insert(index, replica_client.clone());
                    plan.current = index;
                    return Ok(replica_client);
                }
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        Err(refusal.unwrap_or_else(|| self.no_address(&found.card)))
    }

    fn speak(&self, interface: Interface, found: &Discovered) -> Result<ReplicaClient, ReplicaError> {
        let card = &found.card;
        let (version, binding) = (interface.version, interface.binding);
        let guard = self.way_out().guard_for(&dialled(&interface)).clone();
        let mut limits = self.limits().clone();
        if let Some(timeout) = self.settings().timeout {
            limits.read_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        }
        let client = match binding {
            Binding::Swp => AgentClient::over_swp(&guard, interface.clone(), limits, &self.slim(&interface, card)),
            _ => AgentClient::new(&guard, interface, limits),
        };
        let client = client.map_err(|error| ReplicaError::Client { peer: Arc::clone(&self.address().name), error })?;
        let client = client.reading_by(Arc::clone(self.notes()), self.settings().strict);
        let extensions = card.capabilities.extensions.iter().map(|extension| extension.uri.clone()).collect();
        let lineage = self.lineage_form(version, found);
        let skill = card.skills.first().map(|skill| skill.id.clone()).unwrap_or_default();
        let (streams, only_streams) = (streams(card, binding), binding == Binding::Swp);
        Ok(ReplicaClient { client, version, streams, only_streams, extensions, lineage, skill })
    }

    /// What is known of an SWP peer by its card.
    fn slim(&self, interface: &Interface, card: &AgentCard) -> SwpTerms {
        let is_listed = |listed: &&chancery_protocol::AgentInterface| Interface::binding_of(listed) == Some(interface.binding);
        let listed = card.supported_interfaces.iter().find(is_listed);
        SwpTerms {
            speaks_a2a: listed.is_some_and(|listed| listed.protocol_binding == chancery_wire::swp::BINDING),
            skill: card.skills.first().map(|skill| skill.id.clone()),
            certificate: self.credentials().certificate().cloned(),
        }
    }

    fn no_address(&self, card: &AgentCard) -> ReplicaError {
        let peer = Arc::clone(&self.address().name);
        let is_spoken = |listed| Interface::binding_of(listed).is_some();
        match card.supported_interfaces.iter().any(is_spoken) && !self.settings().strict {
            true => ReplicaError::NotAllowed { peer, setting: setting_for(&first_listed(card)) },
            false => ReplicaError::NoInterface(peer),
        }
    }
}

impl CallPlan {
    fn order_by(&mut self, speaks: Option<Version>) {
        self.candidates = candidates(&self.callable, speaks);
        self.speaks = speaks;
        self.current = 0;
        self.clients.clear();
    }
}

/// Over SWP everything is a stream, independent of the agent's other capabilities.
fn streams(card: &AgentCard, binding: Binding) -> bool {
    binding == Binding::Swp || card.capabilities.streaming.unwrap_or(false)
}

fn first_listed(card: &AgentCard) -> String {
    card.supported_interfaces.first().map(|listed| listed.url.clone()).unwrap_or_default()
}

/// The setting that would allow a URL, as it is written in a config file.
fn setting_for(listed: &str) -> String {
    let text = if listed.contains("://") { listed.to_owned() } else { format!("http://{listed}") };
    let url = as_web(&text).or_else(|| Url::parse(&text).ok());
    let allow = match url.as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => format!("allow_hosts = [{name:?}]"),
        Some(Host::Ipv4(address)) => format!("allow_nets = [\"{address}/32\"]"),
        Some(Host::Ipv6(address)) => format!("allow_nets = [\"{address}/128\"]"),
        None => return "[agents.NAME] address".to_owned(),
    };
    let plain = if url.is_some_and(|url| url.scheme() == "http") { ", allow_http = true" } else { "" };
    format!("[outbound] {allow}{plain}")
}

/// gRPC addresses may come without a scheme, and those of SWP are to be judged like the web's.
fn dialled(interface: &Interface) -> String {
    match interface.binding {
        Binding::Swp => as_web(&interface.url).map_or_else(|| interface.url.clone(), |url| url.to_string()),
        Binding::Grpc if !interface.url.contains("://") => format!("http://{}", interface.url),
        _ => interface.url.clone(),
    }
}
