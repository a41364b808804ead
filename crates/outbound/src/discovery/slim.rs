//! Cards of peers that are reached over SWP. A peer that has none is an agent all the same, with nothing promised.

use std::time::Duration;

use bytes::Bytes;
use chancery_protocol::{AgentCapabilities, AgentCard, AgentInterface, Version};
use http::header::ETAG;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::{CardDiscovery, DiscoveryError, PeerLocation, read};
use crate::client::swp::{CardAnswer, ask_for_card};
use crate::guard::Fetched;

impl CardDiscovery {
    /// As if it had come over HTTP, so that all that follows is the same.
    pub(super) async fn fetch_slim(&self, peer: &PeerLocation, known: Option<&HeaderValue>) -> Result<Fetched, DiscoveryError> {
        let within = Duration::from_millis(self.config.fetch_ms);
        let etag = known.and_then(|etag| etag.to_str().ok());
        let (guard, own) = (self.client.guard(), self.certificate.as_ref());
        let asked = ask_for_card(guard, &peer.url, own, etag, self.config.card_bytes, within).await;
        let fetched = |status, body, etag: &str| {
            let etag = HeaderValue::from_str(etag).ok().filter(|etag| !etag.is_empty());
            let headers = HeaderMap::from_iter(etag.map(|etag| (ETAG, etag)));
            Fetched { status, headers, body, peer: None }
        };
        Ok(match asked.map_err(|error| DiscoveryError::transport(peer, &error))? {
            CardAnswer::Card { text, etag } => fetched(StatusCode::OK, text, &etag),
            CardAnswer::NotModified => fetched(StatusCode::NOT_MODIFIED, Bytes::new(), ""),
            CardAnswer::None => fetched(StatusCode::OK, read::write(&unlisted(peer), Version::V1_0).into(), ""),
        })
    }
}

/// What can be said of a peer that says nothing of itself. It speaks the profile and no A2A.
fn unlisted(peer: &PeerLocation) -> AgentCard {
    let interface = AgentInterface {
        url: peer.url.clone(),
        protocol_binding: "SWP".to_owned(),
        tenant: None,
        protocol_version: "1.0".to_owned(),
    };
    AgentCard {
        name: peer.name.split('#').next().unwrap_or_default().to_owned(),
        description: "An SWP agent that has no card".to_owned(),
        version: "0".to_owned(),
        supported_interfaces: vec![interface],
        capabilities: AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() },
        default_input_modes: vec!["text/plain".to_owned()],
        default_output_modes: vec!["text/plain".to_owned()],
        ..AgentCard::default()
    }
}
