//! The card of an SWP peer, by the AGDISC profile.

use std::time::Duration;

use bytes::Bytes;
use chancery_wire::swp::codec::agdisc::{Get, Message};
use chancery_wire::swp::codec::{Envelope, Limits, Payload, Profile};
use uuid::Uuid;

use super::line::Lines;
use crate::client::{ClientError, ClientLimits, Transport};
use crate::guard::{Guard, GuardError, SlimWay, Stage};
use crate::terms::ClientCertificate;

/// What a peer answered.
#[derive(Debug)]
pub(crate) enum Asked {
    Card {
        text: Bytes,
        etag: String,
    },
    NotModified,
    /// It has none, or does not know what one is.
    None,
}

/// Asks for the card of the agent of that name, unless it is the one with this tag.
pub(crate) async fn ask_for_card(
    guard: &Guard,
    url: &str,
    own: Option<&ClientCertificate>,
    etag: Option<&str>,
    most_bytes: u64,
    within: Duration,
) -> Result<Asked, GuardError> {
    let limits = ClientLimits { event_bytes: usize::try_from(most_bytes).unwrap_or(usize::MAX), ..ClientLimits::default() };
    let lines = Lines::new(SlimWay::new(guard, url, own)?, &limits);
    let get = Get { agent_id: super::prefix(url), if_none_match: etag.unwrap_or_default().to_owned() };
    let message = Message::Get(get);
    let msg_id = Bytes::copy_from_slice(Uuid::now_v7().as_bytes());
    let envelope = Envelope::new(Profile::Agdisc, message.msg_type(), msg_id, 0, message.to_payload());
    let frame = envelope.encode(&Limits::default()).map_err(|reject| GuardError::Request(reject.to_string()))?;
    let asked = async {
        let mut line = lines.open().await?;
        line.send(&frame, 1).await?;
        loop {
            let received = line.next().await?;
            return Ok(match received.payload {
                Payload::Agdisc(Message::Doc(doc)) => Asked::Card { text: doc.card_payload, etag: doc.etag },
                Payload::Agdisc(Message::NotModified(_)) => Asked::NotModified,
                Payload::Agdisc(Message::Failure(_)) => Asked::None,
                _ => continue,
            });
        }
    };
    match tokio::time::timeout(within, asked).await {
        Ok(Ok(asked)) => Ok(asked),
        Ok(Err(ClientError::Transport(Transport::Guard(fault)))) => Err(fault),
        // Whoever does not serve the profile closes the connection, because the core has no other way to say so.
        Ok(Err(ClientError::Transport(_))) => Ok(Asked::None),
        Ok(Err(fault)) => Err(GuardError::Protocol(fault.to_string())),
        Err(_) => Err(GuardError::TimedOut(Stage::Exchange)),
    }
}
