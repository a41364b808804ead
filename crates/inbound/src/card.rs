//! What the node publishes about itself: agent cards in every shape, signed once, and the keys they are signed with.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use chancery_core::Agents;
use chancery_identity::KeyRing;
use chancery_identity::cards::CardFault;
use chancery_identity::credentials::Authenticator;
use chancery_protocol::{AgentName, Binding, Timestamp, Version};
use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::card_hosts::CardRenderer;
use crate::card_shapes::{AgentCards, CardShapes, say_keys_are_at};
use crate::context::RequestedVersion;
use crate::own_hosts::{CardBase, OwnHosts};
use crate::rendered::{Rendered, rendered_now};
use crate::response::{self, DoorResponse};
use crate::signposts::{HostSign, Signposts, Spot};

/// What a card request without a version header gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Headerless {
    /// Both versions at once, so that deployed 0.3 clients find us.
    #[default]
    #[serde(rename = "hybrid")]
    Hybrid,
    /// Version 1.0.
    #[serde(rename = "1.0")]
    V1_0,
    /// Version 0.3.
    #[serde(rename = "0.3")]
    V0_3,
}

/// Cards and keys as they are served now. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct PublishedCards {
    headerless: Headerless,
    own: Arc<OwnHosts>,
    now: Arc<ArcSwap<Shelf>>,
}

#[derive(Debug, Default)]
struct Shelf {
    /// Who answers at the root.
    first: Option<AgentName>,
    by_agent: HashMap<AgentName, Arc<CardShapes>>,
    /// The same cards as the hosts that are an agent's have them.
    by_host: HashMap<Arc<str>, Arc<CardShapes>>,
    /// Renders the same cards for the node's other hosts.
    renderer: Option<CardRenderer>,
    jwks: Option<Rendered>,
}

/// Short, so that a new key is known everywhere soon after it is published.
const JWKS_CACHING: HeaderValue = HeaderValue::from_static("public, max-age=300");

impl PublishedCards {
    pub(crate) fn new(headerless: Headerless, own: OwnHosts) -> Self {
        Self { headerless, own: Arc::new(own), now: Arc::default() }
    }

    /// The base of cards at the place a request came to, if it is not the public one: another of the node's own hosts, or the address of
    /// an agent there.
    pub(crate) fn base_of(&self, head: &Parts) -> Option<CardBase> {
        self.own.base_of(head)
    }

    /// The same below the address of an agent.
    pub(crate) fn base_via(&self, head: &Parts, secret: &str) -> CardBase {
        self.own.base_of(head).as_ref().unwrap_or(self.own.public()).via(secret)
    }

    /// Renders everything with the keys that are in use at `now` and the credentials that are accepted, or leaves it as it is.
    pub(crate) fn renew(
        &self,
        agents: &Agents,
        signposts: &Signposts,
        keys: &KeyRing,
        callers: &Authenticator,
        now: Timestamp,
    ) -> Result<(), CardFault> {
        let made = rendered_now();
        let declared = (!callers.is_open()).then(|| callers.schemes());
        let public = self.own.public();
        let exposed = agents.iter().filter(|agent| agent.exposed).map(|agent| (agent.name.clone(), AgentCards::of(agent)));
        let renderer = CardRenderer::new(public.clone(), exposed.collect(), keys.clone(), declared, now, made.clone());
        let jwks_url = public.jwks_url();
        let shapes = |(name, cards): (&AgentName, &AgentCards)| Ok((name.clone(), Arc::new(renderer.render(cards, &jwks_url)?)));
        let by_agent = renderer.agents().map(shapes).collect::<Result<_, CardFault>>()?;
        let at_host = |(host, sign): (&Arc<str>, &HostSign)| {
            let cards = renderer.cards_of(&sign.agent)?.changed(|card| {
                card.supported_interfaces.clone_from(&sign.interfaces);
                say_keys_are_at(card, &jwks_url, &sign.jwks_url);
            });
            let shapes = renderer.render(&cards, &sign.jwks_url);
            Some(shapes.map(|shapes| (Arc::clone(host), Arc::new(shapes))))
        };
        let by_host = signposts.hosts.iter().filter_map(at_host).collect::<Result<_, CardFault>>()?;
        let jwks = crate::signing::jwks(keys, now);
        let caching = HeaderMap::from_iter([(CACHE_CONTROL, JWKS_CACHING)]);
        let jwks = Rendered::new(jwks.clone(), &jwks, &made, caching);
        let first = Some(agents.first().name.clone());
        self.now.store(Arc::new(Shelf { first, by_agent, by_host, renderer: Some(renderer), jwks: Some(jwks) }));
        Ok(())
    }

    /// The card of today's well-known path, in the version that was asked for.
    pub(crate) fn current(&self, spot: &Spot, head: &Parts) -> DoorResponse {
        let asked = match RequestedVersion::of(&head.headers, head.uri.query()) {
            Ok(asked) => asked,
            Err(error) => return response::rest_error(&error, Version::V1_0),
        };
        self.respond(spot, head, |shapes| match (asked, self.headerless) {
            (RequestedVersion::For(Version::V1_0), _) | (RequestedVersion::Nothing, Headerless::V1_0) => &shapes.v1_0,
            (RequestedVersion::For(_), _) | (RequestedVersion::Nothing, Headerless::V0_3) => &shapes.v0_3,
            (RequestedVersion::Nothing, Headerless::Hybrid) => &shapes.hybrid,
        })
    }

    /// The card of the original protocol's path.
    pub(crate) fn original(&self, spot: &Spot, head: &Parts) -> DoorResponse {
        self.respond(spot, head, |shapes| &shapes.adr)
    }

    /// The card of 1.0 and its tag, for readers without HTTP.
    #[cfg(feature = "swp")]
    pub(crate) fn newest(&self, spot: &Spot) -> Option<(Bytes, String)> {
        self.now.load().shapes(spot).map(|shapes| shapes.v1_0.tagged())
    }

    /// The public keys of this node.
    pub(crate) fn jwks(&self, head: &Parts) -> DoorResponse {
        match &self.now.load().jwks {
            Some(jwks) => jwks.respond(head),
            None => response::rest_error(&chancery_protocol::Error::task_not_found(), Version::V1_0),
        }
    }

    /// The extended card's JSON, as a version and binding have it.
    pub(crate) fn extended(&self, spot: &Spot, version: Version, binding: Binding) -> Option<Bytes> {
        let shelf = self.now.load();
        let shapes = shelf.shapes(spot)?;
        let extended = shapes.extended.as_ref()?;
        Some(match (version, binding) {
            (Version::V1_0, _) => extended.v1_0.clone(),
            (_, Binding::Rest) => extended.v0_3_rest.clone(),
            _ => extended.v0_3.clone(),
        })
    }

    /// The extended card for gRPC.
    #[cfg(feature = "grpc")]
    pub(crate) fn extended_model(&self, spot: &Spot, version: Version) -> Option<Arc<chancery_protocol::AgentCard>> {
        let shelf = self.now.load();
        let shapes = shelf.shapes(spot)?;
        let extended = shapes.extended.as_ref()?;
        Some(Arc::clone(if version == Version::V1_0 { &extended.v1_0_model } else { &extended.v0_3_model }))
    }

    fn respond(&self, spot: &Spot, head: &Parts, choose: impl Fn(&CardShapes) -> &Rendered) -> DoorResponse {
        match self.now.load().shapes(spot) {
            Some(shapes) => choose(&shapes).respond(head),
            None => response::rest_error(&chancery_protocol::Error::task_not_found(), Version::V1_0),
        }
    }
}

impl Shelf {
    /// The card as it is shown at that spot; where it names no agent, the first agent's.
    fn shapes(&self, spot: &Spot) -> Option<Arc<CardShapes>> {
        if let Some(host) = &spot.host {
            return self.by_host.get(host).cloned();
        }
        let agent = spot.agent.as_ref().or(self.first.as_ref())?;
        let at_own_host = |base| self.renderer.as_ref()?.at(agent, base);
        spot.base.as_ref().and_then(at_own_host).or_else(|| self.by_agent.get(agent).cloned())
    }
}
