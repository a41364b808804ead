//! The AGDISC profile: agent cards asked for and given, with an ETag so that a card is sent once.

use bytes::Bytes;

use crate::Reject;
use crate::p1;

/// Asks for the card of an agent, unless it is the one the asker has.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetCard {
    #[prost(string, tag = "1")]
    pub agent_id: String,
    #[prost(string, tag = "2")]
    pub if_none_match: String,
}

/// A card.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Doc {
    #[prost(string, tag = "1")]
    pub agent_id: String,
    #[prost(string, tag = "2")]
    pub schema_revision: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub card_payload: Bytes,
    #[prost(string, tag = "4")]
    pub etag: String,
    #[prost(uint64, tag = "5")]
    pub max_age_ms: u64,
}

/// The asker has the card already.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NotModified {
    #[prost(string, tag = "1")]
    pub agent_id: String,
    #[prost(string, tag = "2")]
    pub etag: String,
}

/// No card.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Failure {
    #[prost(string, tag = "1")]
    pub code: String,
    #[prost(string, tag = "2")]
    pub message: String,
}

/// What the profile can say.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum AgdiscMessage {
    #[prost(message, tag = "1")]
    Get(GetCard),
    #[prost(message, tag = "2")]
    Doc(Doc),
    #[prost(message, tag = "3")]
    NotModified(NotModified),
    #[prost(message, tag = "4")]
    Failure(Failure),
}

p1::wrapped!(AgdiscMessage "AgdiscMessage": Get = 1, Doc = 2, NotModified = 3, Failure = 4);

impl AgdiscMessage {
    pub fn read(msg_type: u64, payload: Bytes) -> Result<Self, Reject> {
        p1::read(msg_type, payload)
    }
}

impl GetCard {
    /// The answer to this question if `card` is what there is: all of it, or that nothing has changed.
    pub fn answer(&self, card: Doc) -> AgdiscMessage {
        if !card.etag.is_empty() && card.etag == self.if_none_match {
            return AgdiscMessage::NotModified(NotModified { agent_id: card.agent_id, etag: card.etag });
        }
        AgdiscMessage::Doc(card)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(etag: &str) -> Doc {
        Doc { agent_id: "echo".into(), card_payload: Bytes::from_static(b"{}"), etag: etag.into(), ..Doc::default() }
    }

    #[test]
    fn a_card_is_sent_unless_the_asker_has_it() {
        let asked = |etag: &str| GetCard { agent_id: "echo".into(), if_none_match: etag.into() };
        assert_eq!(asked("").answer(card("v1")), AgdiscMessage::Doc(card("v1")));
        assert_eq!(asked("v0").answer(card("v1")), AgdiscMessage::Doc(card("v1")));
        let unchanged = NotModified { agent_id: "echo".into(), etag: "v1".into() };
        assert_eq!(asked("v1").answer(card("v1")), AgdiscMessage::NotModified(unchanged));
        // A card without an ETag cannot be the same as the asker's.
        assert_eq!(asked("").answer(card("")), AgdiscMessage::Doc(card("")));
    }
}
