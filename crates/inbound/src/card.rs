//! What the node publishes about itself: agent cards in every shape, signed once, and the keys they are signed with.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use chancery_core::{Agent, Agents};
use chancery_identity::KeyRing;
use chancery_identity::cards::CardFault;
use chancery_identity::credentials::Authenticator;
use chancery_protocol::{AgentCard, AgentName, Binding, Json, Metadata, Reply, Timestamp, Version};
use chancery_wire::Codec as _;
use chancery_wire::json::card::{adr, hybrid};
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v1_0::V1_0;
use http::header::{CACHE_CONTROL, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::codecs::codec;
use crate::context::Asked;
use crate::rendered::{Rendered, rendered_now};
use crate::response::{self, DoorResponse};
use crate::signing::Signer;
use crate::signposts::{Signposts, Spot};

/// What a card request without a version header gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Headerless {
    /// Both versions at once, so that deployed 0.3 clients find us.
    #[default]
    #[serde(rename = "hybrid")]
    Hybrid,
    #[serde(rename = "1.0")]
    V1_0,
    #[serde(rename = "0.3")]
    V0_3,
}

/// Cards and keys as they are served now. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    headerless: Headerless,
    jwks_url: Arc<str>,
    now: Arc<ArcSwap<Shelf>>,
}

#[derive(Debug, Default)]
struct Shelf {
    /// Who answers at the root.
    first: Option<AgentName>,
    by_agent: HashMap<AgentName, Shapes>,
    /// The same cards as the hosts that are an agent's have them.
    by_host: HashMap<Arc<str>, Shapes>,
    jwks: Option<Rendered>,
}

#[derive(Debug)]
struct Shapes {
    v1_0: Rendered,
    v0_3: Rendered,
    hybrid: Rendered,
    adr: Rendered,
    extended: Option<Extended>,
}

/// The card for callers who proved who they are, for each door.
#[derive(Debug)]
struct Extended {
    v1_0: Bytes,
    v0_3: Bytes,
    v0_3_rest: Bytes,
    v1_0_model: Arc<AgentCard>,
    v0_3_model: Arc<AgentCard>,
}

const CARD_CACHING: HeaderValue = HeaderValue::from_static("public, max-age=3600");
/// Short, so that a new key is known everywhere soon after it is published.
const JWKS_CACHING: HeaderValue = HeaderValue::from_static("public, max-age=300");
const BY_VERSION: HeaderValue = HeaderValue::from_static("A2A-Version");

impl Published {
    pub(crate) fn new(headerless: Headerless, public_url: &str) -> Self {
        let jwks_url = format!("{}/.well-known/jwks.json", public_url.trim_end_matches('/'));
        Self { headerless, jwks_url: jwks_url.into(), now: Arc::default() }
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
        let shapes = |agent: &Arc<Agent>| {
            let signer = Signer::of(keys, &agent.name, &self.jwks_url, declared.as_ref(), now)?;
            Ok((agent.name.clone(), Shapes::of(agent, &signer, &made)?))
        };
        let by_agent = agents.iter().filter(|agent| agent.exposed).map(shapes).collect::<Result<_, CardFault>>()?;
        let at_host = |host: &Arc<str>| {
            let sign = signposts.hosts.get(host)?;
            let agent = Agent::clone(agents.get(&sign.agent).filter(|agent| agent.exposed)?);
            let here = |card: Arc<AgentCard>| {
                let mut card = AgentCard { supported_interfaces: sign.interfaces.clone(), ..AgentCard::clone(&card) };
                for params in card.capabilities.extensions.iter_mut().filter_map(|extension| extension.params.as_mut()) {
                    self.say_keys_are_at(&sign.jwks_url, params);
                }
                Arc::new(card)
            };
            let agent = Agent { card: here(agent.card), extended: agent.extended.map(here), ..agent };
            let signer = Signer::of(keys, &agent.name, &sign.jwks_url, declared.as_ref(), now);
            let shapes = signer.and_then(|signer| Shapes::of(&agent, &signer, &made));
            Some(shapes.map(|shapes| (Arc::clone(host), shapes)))
        };
        let by_host = signposts.hosts.keys().filter_map(at_host).collect::<Result<_, CardFault>>()?;
        let jwks = crate::signing::jwks(keys, now);
        let caching = HeaderMap::from_iter([(CACHE_CONTROL, JWKS_CACHING)]);
        let jwks = Rendered::new(jwks.clone(), &jwks, &made, caching);
        let first = Some(agents.first().name.clone());
        self.now.store(Arc::new(Shelf { first, by_agent, by_host, jwks: Some(jwks) }));
        Ok(())
    }

    /// Whatever names the place of the keys names the one at the host where the card is.
    fn say_keys_are_at(&self, jwks_url: &str, params: &mut Metadata) {
        let (node, host) = (Json::from_value(&(*self.jwks_url).into()), Json::from_value(&jwks_url.into()));
        if params.text().contains(node.text())
            && let Ok(renamed) = serde_json::from_str(&params.text().replace(node.text(), host.text()))
        {
            *params = renamed;
        }
    }

    /// The card of today's well-known path, in the version that was asked for.
    pub(crate) fn current(&self, spot: &Spot, head: &Parts) -> DoorResponse {
        let asked = match Asked::of(&head.headers, head.uri.query()) {
            Ok(asked) => asked,
            Err(error) => return response::rest_error(&error, Version::V1_0),
        };
        self.respond(spot, head, |shapes| match (asked, self.headerless) {
            (Asked::For(Version::V1_0), _) | (Asked::Nothing, Headerless::V1_0) => &shapes.v1_0,
            (Asked::For(_), _) | (Asked::Nothing, Headerless::V0_3) => &shapes.v0_3,
            (Asked::Nothing, Headerless::Hybrid) => &shapes.hybrid,
        })
    }

    /// The card of the original protocol's path.
    pub(crate) fn original(&self, spot: &Spot, head: &Parts) -> DoorResponse {
        self.respond(spot, head, |shapes| &shapes.adr)
    }

    /// The card of 1.0 and its tag, for those who do not ask over HTTP.
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
        let extended = shelf.shapes(spot)?.extended.as_ref()?;
        Some(match (version, binding) {
            (Version::V1_0, _) => extended.v1_0.clone(),
            (_, Binding::Rest) => extended.v0_3_rest.clone(),
            _ => extended.v0_3.clone(),
        })
    }

    /// The extended card for gRPC.
    pub(crate) fn extended_model(&self, spot: &Spot, version: Version) -> Option<Arc<AgentCard>> {
        let shelf = self.now.load();
        let extended = shelf.shapes(spot)?.extended.as_ref()?;
        Some(Arc::clone(if version == Version::V1_0 { &extended.v1_0_model } else { &extended.v0_3_model }))
    }

    fn respond(&self, spot: &Spot, head: &Parts, choose: impl Fn(&Shapes) -> &Rendered) -> DoorResponse {
        match self.now.load().shapes(spot) {
            Some(shapes) => choose(shapes).respond(head),
            None => response::rest_error(&chancery_protocol::Error::task_not_found(), Version::V1_0),
        }
    }
}

impl Shelf {
    /// The card as it is shown at that spot; where it names nobody, the first agent's.
    fn shapes(&self, spot: &Spot) -> Option<&Shapes> {
        match &spot.host {
            Some(host) => self.by_host.get(host),
            None => self.by_agent.get(spot.agent.as_ref().or(self.first.as_ref())?),
        }
    }
}

impl Shapes {
    fn of(agent: &Agent, signer: &Signer<'_>, made: &HeaderValue) -> Result<Self, CardFault> {
        let card = &signer.introduce(&agent.card);
        let rendered = |plain: Vec<u8>, signed: Vec<u8>| {
            // A signature may come out differently each time; a card is another one only when what is signed is, or who signs.
            let content = [&plain[..], signer.names().as_bytes()].concat();
            let caching = HeaderMap::from_iter([(CACHE_CONTROL, CARD_CACHING), (VARY, BY_VERSION)]);
            Rendered::new(signed, &content, made, caching)
        };
        let (v1_0, v0_3, adr) = (V1_0.encode_card(card), V0_3.encode_card(card), adr(card));
        let (v1_0_signed, v0_3_signed, adr_signed) =
            (signer.sign(&v1_0, Version::V1_0)?, signer.sign(&v0_3, Version::V0_3)?, signer.sign_original(card, &adr)?);
        // Neither version's signature covers a mixture of both.
        let hybrid = hybrid(card);
        Ok(Self {
            v1_0: rendered(v1_0, v1_0_signed),
            v0_3: rendered(v0_3, v0_3_signed),
            hybrid: rendered(hybrid.clone(), hybrid),
            adr: rendered(adr, adr_signed),
            extended: agent.extended.as_ref().map(|card| Extended::of(card, signer)).transpose()?,
        })
    }
}

impl Extended {
    fn of(card: &AgentCard, signer: &Signer<'_>) -> Result<Self, CardFault> {
        let card = Arc::new(signer.introduce(card));
        let signed = |version, binding| {
            let mut plain = Vec::new();
            codec(version, binding).encode_reply(&mut plain, &Reply::Card(Arc::clone(&card)));
            signer.sign(&plain, version).map(Bytes::from)
        };
        let (v1_0, v0_3) = (signed(Version::V1_0, Binding::JsonRpc)?, signed(Version::V0_3, Binding::JsonRpc)?);
        let model =
            |signed: &[u8]| Arc::new(AgentCard { signatures: crate::signing::signatures(signed), ..AgentCard::clone(&card) });
        Ok(Self {
            v1_0_model: model(&v1_0),
            v0_3_model: model(&v0_3),
            v1_0,
            v0_3,
            v0_3_rest: signed(Version::V0_3, Binding::Rest)?,
        })
    }
}
