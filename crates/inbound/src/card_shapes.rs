//! Renders one agent's card in every shape, for one place where it is served.

use std::sync::Arc;

use bytes::Bytes;
use chancery_core::Agent;
use chancery_identity::cards::CardFault;
use chancery_protocol::{AgentCard, AgentName, Binding, Json, Metadata, Reply, Version};
use chancery_wire::Codec as _;
use chancery_wire::json::card::{adr, hybrid};
use chancery_wire::json::codecs::codec;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v1_0::V1_0;
use http::header::{CACHE_CONTROL, VARY};
use http::{HeaderMap, HeaderValue};

use crate::own_hosts::CardBase;
use crate::rendered::Rendered;
use crate::signing::Signer;

pub(crate) const CARD_CACHING: HeaderValue = HeaderValue::from_static("public, max-age=3600");
/// For cards that name a secret address.
pub(crate) const NOT_CACHED: HeaderValue = HeaderValue::from_static("no-store");
/// A card differs by the requested version, and by the own host of the node that the request names.
const VARIES_BY: HeaderValue = HeaderValue::from_static("A2A-Version, Host");

#[derive(Debug)]
pub(crate) struct CardShapes {
    pub(crate) v1_0: Rendered,
    pub(crate) v0_3: Rendered,
    pub(crate) hybrid: Rendered,
    pub(crate) adr: Rendered,
    pub(crate) extended: Option<ExtendedShapes>,
}

/// The card for callers who proved who they are, for each door.
#[derive(Debug)]
pub(crate) struct ExtendedShapes {
    pub(crate) v1_0: Bytes,
    pub(crate) v0_3: Bytes,
    pub(crate) v0_3_rest: Bytes,
    #[cfg_attr(not(feature = "grpc"), expect(dead_code, reason = "only the gRPC door reads it"))]
    pub(crate) v1_0_model: Arc<AgentCard>,
    #[cfg_attr(not(feature = "grpc"), expect(dead_code, reason = "only the gRPC door reads it"))]
    pub(crate) v0_3_model: Arc<AgentCard>,
}

/// The cards of one agent, before they are signed.
#[derive(Clone, Debug)]
pub(crate) struct AgentCards {
    pub(crate) name: AgentName,
    card: Arc<AgentCard>,
    extended: Option<Arc<AgentCard>>,
}

impl AgentCards {
    pub(crate) fn of(agent: &Agent) -> Self {
        Self { name: agent.name.clone(), card: Arc::clone(&agent.card), extended: agent.extended.clone() }
    }

    /// The same cards, which say that the agent is below another base than the one they were made for.
    pub(crate) fn moved(&self, from: &CardBase, to: &CardBase) -> Self {
        self.changed(|card| {
            for interface in &mut card.supported_interfaces {
                interface.url = from.moved(&interface.url, to);
            }
            say_keys_are_at(card, &from.jwks_url(), &to.jwks_url());
        })
    }

    /// The same with something changed on each card.
    pub(crate) fn changed(&self, change: impl Fn(&mut AgentCard)) -> Self {
        let changed = |card: &Arc<AgentCard>| {
            let mut card = AgentCard::clone(card);
            change(&mut card);
            Arc::new(card)
        };
        Self { name: self.name.clone(), card: changed(&self.card), extended: self.extended.as_ref().map(changed) }
    }

    #[cfg(test)]
    pub(crate) fn alone(name: &str, card: AgentCard) -> Self {
        Self { name: name.into(), card: Arc::new(card), extended: None }
    }
}

/// Every member of the card that names the place of the keys names the other one.
pub(crate) fn say_keys_are_at(card: &mut AgentCard, from: &str, to: &str) {
    let (from, to) = (Json::from_value(&from.into()), Json::from_value(&to.into()));
    let params = card.capabilities.extensions.iter_mut().filter_map(|extension| extension.params.as_mut());
    for params in params.filter(|params| params.text().contains(from.text())) {
        if let Ok(renamed) = serde_json::from_str::<Metadata>(&params.text().replace(from.text(), to.text())) {
            *params = renamed;
        }
    }
}

impl CardShapes {
    pub(crate) fn of(
        agent: &AgentCards,
        signer: &Signer<'_>,
        made: &HeaderValue,
        caching: &HeaderValue,
    ) -> Result<Self, CardFault> {
        let card = &signer.introduce(&agent.card);
        let rendered = |plain: Vec<u8>, signed: Vec<u8>| {
            // A signature may come out differently each time; a card is another one only when what is signed is, or who signs.
            let content = [&plain[..], signer.names().as_bytes()].concat();
            let caching = HeaderMap::from_iter([(CACHE_CONTROL, caching.clone()), (VARY, VARIES_BY)]);
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
            extended: agent.extended.as_ref().map(|card| ExtendedShapes::of(card, signer)).transpose()?,
        })
    }
}

impl ExtendedShapes {
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
