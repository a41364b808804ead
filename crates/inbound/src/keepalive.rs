//! The answer of a blocking call that takes long: its head goes out early, and white space until the JSON is there.
//!
//! White space before a JSON value means nothing to a JSON reader, and it keeps clients that give up after some seconds
//! of silence. The official Python client gives up after five.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chancery_core::{Alarm, AnswerPermit, LateReply};
use chancery_protocol::{Reply, Request};
use futures::Stream;
use http::HeaderValue;
use tokio::time::Instant;

use crate::limits::InboundLimits;
use crate::response::{self, DoorResponse};
use crate::sse::EventBody;
use crate::unwritten::UnwrittenBuffers;

const WHITE_SPACE: &[u8] = b" ";

/// When the head of a call's answer goes out at the latest. `None` for calls that wait for no agent, and where keepalive is off.
pub(crate) fn head_deadline(limits: &InboundLimits, request: &Request) -> Option<Instant> {
    match request {
        Request::SendMessage(send) if !send.configuration.return_immediately => {
            limits.unary_head_delay().map(|delay| Instant::now() + delay)
        }
        _ => None,
    }
}

/// An answer whose head goes out now. `write` makes its body from the reply.
pub(crate) fn late(
    reply: LateReply,
    content_type: HeaderValue,
    limits: &InboundLimits,
    write: impl FnOnce(&Reply) -> Vec<u8> + Send + 'static,
) -> DoorResponse {
    let unwritten = Arc::<UnwrittenBuffers>::default();
    let pieces = pieces(reply.finish(), limits.unary_keepalive(), Arc::clone(&unwritten), write);
    response::unbuffered(content_type, EventBody::counted(pieces, unwritten))
}

struct Waiting<F, W> {
    reply: Pin<Box<F>>,
    write: W,
    alarm: Alarm,
    unwritten: Arc<UnwrittenBuffers>,
}

fn pieces<F, W>(
    reply: F,
    interval: Duration,
    unwritten: Arc<UnwrittenBuffers>,
    write: W,
) -> impl Stream<Item = Bytes> + Send + 'static
where
    F: Future<Output = (Reply, Option<AnswerPermit>)> + Send + 'static,
    W: FnOnce(&Reply) -> Vec<u8> + Send + 'static,
{
    let waiting = Waiting { reply: Box::pin(reply), write, alarm: Alarm::default(), unwritten };
    futures::stream::unfold(Some(waiting), move |waiting| async move {
        let mut waiting = waiting?;
        let reply = waiting.alarm.unless(Instant::now() + interval, &mut waiting.reply).await;
        Some(match reply {
            Some((reply, None)) => (Bytes::from((waiting.write)(&reply)), None),
            Some((reply, Some(mut permit))) => {
                let bytes = (waiting.write)(&reply);
                permit.set(bytes.len() as u64);
                (waiting.unwritten.count(bytes, Some(Arc::new(permit))), None)
            }
            None => (Bytes::from_static(WHITE_SPACE), Some(waiting)),
        })
    })
}

#[cfg(test)]
mod tests {
    use chancery_protocol::{Message, Role, Sent};
    use futures::StreamExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn white_space_comes_at_each_interval_and_then_the_reply_alone() {
        let reply = async {
            tokio::time::sleep(Duration::from_millis(10_500)).await;
            (Reply::Sent(Sent::Message(Message::text(Role::Agent, "m", "done").into())), None)
        };
        let begun = Instant::now();
        let pieces = pieces(reply, Duration::from_secs(4), Arc::default(), |_| b"{}".to_vec());
        let seen: Vec<_> = pieces.map(|piece| (piece, begun.elapsed().as_millis())).collect().await;
        let seen: Vec<_> = seen.iter().map(|(piece, at)| (&piece[..], *at)).collect();
        assert_eq!(seen, [(&b" "[..], 4_000), (b" ", 8_000), (b"{}", 10_500)]);
    }

    #[test]
    fn the_head_is_due_after_three_quarters_of_the_interval_and_never_at_zero() {
        let limits = |unary_keepalive_ms| InboundLimits { unary_keepalive_ms, ..InboundLimits::default() };
        assert_eq!(limits(0).unary_head_delay(), None);
        assert_eq!(limits(1).unary_head_delay(), Some(Duration::from_millis(1)));
        assert_eq!(limits(100).unary_head_delay(), Some(Duration::from_millis(75)));
        assert_eq!(InboundLimits::default().unary_head_delay(), Some(Duration::from_secs(3)));
        assert_eq!(InboundLimits::default().unary_keepalive(), Duration::from_secs(4));
    }
}
