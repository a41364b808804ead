//! The card of an SWP peer, by the AGDISC profile.

use std::time::Duration;

use bytes::Bytes;
use chancery_wire::swp::codec::agdisc::{AgdiscMessage, GetCard};
use chancery_wire::swp::codec::{Envelope, FramePayload, Profile, SwpLimits};
use uuid::Uuid;

use super::line::SwpLinePool;
use crate::client::{ClientError, ClientLimits, Transport};
use crate::guard::{ConnectStage, Guard, GuardError, SlimWay};
use crate::terms::ClientCertificate;

/// What a peer answered.
#[derive(Debug)]
pub(crate) enum CardAnswer {
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
) -> Result<CardAnswer, GuardError> {
    let limits = ClientLimits { event_bytes: usize::try_from(most_bytes).unwrap_or(usize::MAX), ..ClientLimits::default() };
    let lines = SwpLinePool::new(SlimWay::new(guard, url, own)?, &limits);
    let get = GetCard { agent_id: super::prefix(url), if_none_match: etag.unwrap_or_default().to_owned() };
    let message = AgdiscMessage::Get(get);
    let msg_id = Bytes::copy_from_slice(Uuid::now_v7().as_bytes());
    let envelope = Envelope::new(Profile::Agdisc, message.msg_type(), msg_id, 0, message.to_payload());
    let frame = envelope.encode(&SwpLimits::default()).map_err(|reject| GuardError::Request(reject.to_string()))?;
    let asked = async {
        let mut line = lines.open().await?;
        line.send(&frame, 1).await?;
        loop {
            let received = line.next().await?;
            return Ok(match received.payload {
                FramePayload::Agdisc(AgdiscMessage::Doc(doc)) => CardAnswer::Card { text: doc.card_payload, etag: doc.etag },
                FramePayload::Agdisc(AgdiscMessage::NotModified(_)) => CardAnswer::NotModified,
                FramePayload::Agdisc(AgdiscMessage::Failure(_)) => CardAnswer::None,
                _ => continue,
            });
        }
    };
    match tokio::time::timeout(within, asked).await {
        Ok(Ok(asked)) => Ok(asked),
        Ok(Err(ClientError::Transport(Transport::Guard(fault)))) => Err(fault),
        // Whoever does not serve the profile closes the connection, because the core has no other way to say so.
        Ok(Err(ClientError::Transport(_))) => Ok(CardAnswer::None),
        Ok(Err(fault)) => Err(GuardError::Protocol(fault.to_string())),
        Err(_) => Err(GuardError::TimedOut(ConnectStage::Exchange)),
    }
}
