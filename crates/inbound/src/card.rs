//! Agent cards, rendered once at start and served as bytes with everything a cache needs.

use std::collections::HashMap;
use std::time::SystemTime;

use bytes::Bytes;
use chancery_core::Agents;
use chancery_identity::SealKey;
use chancery_protocol::{AgentCard, AgentName, Version};
use chancery_wire::Codec as _;
use chancery_wire::json::card::{adr, hybrid};
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v1_0::V1_0;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use serde::{Deserialize, Serialize};

use crate::context::Asked;
use crate::response::{self, DoorBody, DoorResponse, JSON};

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

#[derive(Debug)]
pub(crate) struct Cards {
    by_agent: HashMap<AgentName, Shapes>,
    headerless: Headerless,
}

#[derive(Debug)]
struct Shapes {
    v1_0: Rendered,
    v0_3: Rendered,
    hybrid: Rendered,
    adr: Rendered,
}

#[derive(Debug)]
struct Rendered {
    bytes: Bytes,
    etag: HeaderValue,
    last_modified: HeaderValue,
    /// Of every answer with this card, whether the card is in it or not.
    headers: HeaderMap,
}

const FOR_AN_HOUR: HeaderValue = HeaderValue::from_static("public, max-age=3600");
const BY_VERSION: HeaderValue = HeaderValue::from_static("A2A-Version");

impl Rendered {
    fn new(bytes: Vec<u8>, made: &HeaderValue) -> Self {
        let digest = SealKey::digest(&bytes);
        let tag: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let etag = HeaderValue::from_str(&format!("\"{tag}\"")).unwrap_or(HeaderValue::from_static("\"\""));
        let headers = [(ETAG, etag.clone()), (LAST_MODIFIED, made.clone()), (CACHE_CONTROL, FOR_AN_HOUR), (VARY, BY_VERSION)];
        Self { bytes: bytes.into(), etag, last_modified: made.clone(), headers: HeaderMap::from_iter(headers) }
    }

    fn respond(&self, head: &Parts) -> DoorResponse {
        let known = self.is_known(&head.headers);
        let body = (!known && head.method != Method::HEAD).then(|| self.bytes.clone());
        let mut response = Response::new(DoorBody::Whole(body));
        *response.headers_mut() = self.headers.clone();
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            response.headers_mut().insert(CONTENT_LENGTH, self.bytes.len().into());
        }
        response
    }

    /// As HTTP has it: the tag decides when there is one, the date only otherwise.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        if let Some(tags) = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()) {
            let own = self.etag.to_str().unwrap_or_default();
            return tags.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == own);
        }
        let Some(since) = headers.get(IF_MODIFIED_SINCE) else { return false };
        let since = since.to_str().ok().and_then(|value| httpdate::parse_http_date(value).ok());
        let made = self.last_modified.to_str().ok().and_then(|value| httpdate::parse_http_date(value).ok());
        matches!((since, made), (Some(since), Some(made)) if made <= since)
    }
}

impl Shapes {
    fn of(card: &AgentCard, made: &HeaderValue) -> Self {
        Self {
            v1_0: Rendered::new(V1_0.encode_card(card), made),
            v0_3: Rendered::new(V0_3.encode_card(card), made),
            hybrid: Rendered::new(hybrid(card), made),
            adr: Rendered::new(adr(card), made),
        }
    }
}

impl Cards {
    pub(crate) fn of(agents: &Agents, headerless: Headerless) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the date a card was rendered goes into an HTTP header, no decision hangs on it"
        )]
        let now = SystemTime::now();
        let made = HeaderValue::from_str(&httpdate::fmt_http_date(now)).unwrap_or(HeaderValue::from_static(""));
        let by_agent = agents.iter().map(|agent| (agent.name.clone(), Shapes::of(&agent.card, &made))).collect();
        Self { by_agent, headerless }
    }

    /// The card of today's well-known path, in the version that was asked for.
    pub(crate) fn current(&self, agent: &AgentName, head: &Parts) -> DoorResponse {
        let asked = match Asked::of(&head.headers, head.uri.query()) {
            Ok(asked) => asked,
            Err(error) => return response::rest_error(&error, Version::V1_0),
        };
        self.respond(agent, head, |shapes| match (asked, self.headerless) {
            (Asked::For(Version::V1_0), _) | (Asked::Nothing, Headerless::V1_0) => &shapes.v1_0,
            (Asked::For(_), _) | (Asked::Nothing, Headerless::V0_3) => &shapes.v0_3,
            (Asked::Nothing, Headerless::Hybrid) => &shapes.hybrid,
        })
    }

    /// The card of the original protocol's path.
    pub(crate) fn original(&self, agent: &AgentName, head: &Parts) -> DoorResponse {
        self.respond(agent, head, |shapes| &shapes.adr)
    }

    fn respond<'a>(&'a self, agent: &AgentName, head: &Parts, choose: impl Fn(&'a Shapes) -> &'a Rendered) -> DoorResponse {
        match self.by_agent.get(agent) {
            Some(shapes) => choose(shapes).respond(head),
            None => response::rest_error(&chancery_protocol::Error::task_not_found(), Version::V1_0),
        }
    }
}
