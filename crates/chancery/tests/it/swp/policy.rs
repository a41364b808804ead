//! What one connection may do, each limit at its edge: exactly at it passes, one more closes the connection or is refused.

use std::collections::BTreeMap;

use bytes::Bytes;
use chancery::config::SwpConfig;
use chancery_wire::swp::codec::a2a::{self, SwpHandshake};
use chancery_wire::swp::codec::{Envelope, Extension, Profile};
use chancery_wire::swp::{Convention, Given};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

use super::{Peer, node, task, text};
use crate::support::server::Server;

/// Which test of this file stands at the edge of which limit of `[swp]`.
const EDGES: &[(&str, &str)] = &[
    ("max_frame_bytes", "a_frame_is_as_long_as_it_may_be_and_no_longer"),
    ("max_ext_bytes", "extensions_are_as_long_as_they_may_be_and_no_longer"),
    ("max_frames_per_window", "a_connection_that_says_too_much_at_once_is_closed"),
    ("duplicate_window_ms", "a_message_id_is_taken_for_as_long_as_it_is_remembered"),
    ("max_handshake_bytes", "a_handshake_is_as_long_as_it_may_be_and_no_longer"),
    ("max_task_id_bytes", "a_task_id_is_as_long_as_it_may_be_and_no_longer"),
    ("max_open_tasks", "a_caller_has_as_many_tasks_open_as_it_may_and_no_more"),
    ("max_closed_tasks", "a_task_that_ended_long_ago_is_forgotten"),
    ("idle_ms", "who_says_nothing_or_never_ends_a_frame_is_closed_and_who_waits_for_a_task_is_not"),
    ("timestamps", "timestamps_are_looked_at_as_configured"),
];

/// The limits that need no connection: `chancery-swp` tests each of them at its edge.
const OF_THE_CODEC: &[&str] =
    &["max_payload_bytes", "min_msg_id_bytes", "max_msg_id_bytes", "max_clock_skew_ms", "rate_window_ms"];

#[test]
fn every_limit_of_the_slim_wire_has_a_test_at_its_edge() {
    let SwpConfig { limits, rules, .. } = SwpConfig::default();
    let mut names: Vec<String> = Vec::new();
    for part in [serde_json::to_value(limits), serde_json::to_value(rules)] {
        let part: BTreeMap<String, Value> = serde_json::from_value(part.unwrap()).unwrap();
        names.extend(part.into_keys());
    }
    names.sort();
    let mut tested: Vec<&str> = EDGES.iter().map(|(limit, _)| *limit).chain(OF_THE_CODEC.iter().copied()).collect();
    tested.sort_unstable();
    assert_eq!(names, tested, "limits on the left, those with a test on the right");
    for (limit, test) in EDGES {
        assert!(include_str!("policy.rs").contains(&format!("fn {test}(")), "{limit} names a test that is not there: {test}");
    }
}

fn greeting(name: &str) -> a2a::A2aMessage {
    a2a::A2aMessage::Handshake(SwpHandshake { agent_id: name.to_owned(), capabilities: Vec::new() })
}

/// Whether a peer that has sent this is still heard.
async fn is_heard(peer: &mut Peer) -> bool {
    let task = task("still there?", "conformance", "complete yes");
    let mut envelope = peer.envelope(Profile::A2a, task.msg_type(), task.to_payload());
    envelope.extensions = Given { convention: Some(Convention::Text), ..Given::default() }.to_extensions();
    let frame = envelope.encode(&Default::default()).expect("fits");
    // A connection that is closed already may not even take it.
    let _ = peer.line.write_all(&frame).await;
    peer.hear().await.is_some()
}

async fn after(node: &Server, envelope: impl FnOnce(Envelope) -> Envelope) -> bool {
    let mut peer = Peer::of(node).await;
    let greeting = greeting("somebody");
    let plain = peer.envelope(Profile::A2a, greeting.msg_type(), greeting.to_payload());
    let sent = envelope(plain);
    peer.put(&sent).await;
    is_heard(&mut peer).await
}

#[tokio::test]
async fn a_frame_is_as_long_as_it_may_be_and_no_longer() {
    let node = node("max_frame_bytes = 300");
    let long = async |name: usize| {
        let mut peer = Peer::of(&node).await;
        let greeting = greeting(&"a".repeat(name));
        let envelope = peer.envelope(Profile::A2a, 1, greeting.to_payload());
        let length = envelope.encode(&Default::default()).expect("fits").len() - 4;
        peer.put(&envelope).await;
        (length, is_heard(&mut peer).await)
    };
    let (length, heard) = long(269).await;
    assert_eq!((length, heard), (300, true));
    let (length, heard) = long(270).await;
    assert_eq!((length, heard), (301, false));
    assert!(node.log().contains("frame_too_large"), "{}", node.log());
}

#[tokio::test]
async fn extensions_are_as_long_as_they_may_be_and_no_longer() {
    let node = node("max_ext_bytes = 50");
    let with = |octets: usize| {
        move |envelope: Envelope| {
            let extension = Extension { ext_type: 77, value: Bytes::from(vec![b'x'; octets - 2]) };
            Envelope { extensions: [extension].into_iter().collect(), ..envelope }
        }
    };
    assert!(after(&node, with(50)).await);
    assert!(!after(&node, with(51)).await);
    assert!(node.log().contains("extensions_too_large"), "{}", node.log());
}

#[tokio::test]
async fn a_handshake_is_as_long_as_it_may_be_and_no_longer() {
    let node = node("max_handshake_bytes = 100");
    for (name, heard) in [(98, true), (99, false)] {
        let mut peer = Peer::of(&node).await;
        peer.say(&greeting(&"a".repeat(name))).await;
        assert_eq!(is_heard(&mut peer).await, heard, "{name}");
    }
    assert!(node.log().contains("handshake_too_large"), "{}", node.log());
}

#[tokio::test]
async fn a_task_id_is_as_long_as_it_may_be_and_no_longer() {
    let node = node("max_task_id_bytes = 20");
    for (length, heard) in [(20, true), (21, false)] {
        let mut peer = Peer::of(&node).await;
        peer.give(&"i".repeat(length), "conformance", "complete x", Some(Convention::Text)).await;
        assert_eq!(peer.hear().await.is_some(), heard, "{length}");
    }
    assert!(node.log().contains("task_id_too_long"), "{}", node.log());
}

#[tokio::test]
async fn a_connection_that_says_too_much_at_once_is_closed() {
    let node = node("max_frames_per_window = 5\nrate_window_ms = 600000");
    let mut peer = Peer::of(&node).await;
    for _ in 0..4 {
        peer.say(&greeting("somebody")).await;
    }
    // The fifth is the last that one window takes.
    peer.give("t", "conformance", "complete yes", Some(Convention::Text)).await;
    assert_eq!(text(&peer.outcome().await.1.output), "yes");
    peer.say(&greeting("somebody")).await;
    assert!(peer.is_closed().await);
    assert!(node.log().contains("RATE_LIMIT_EXCEEDED"), "{}", node.log());
}

#[tokio::test]
async fn a_message_id_is_taken_for_as_long_as_it_is_remembered() {
    for (window, heard) in [(600_000, false), (0, true)] {
        let node = node(&format!("duplicate_window_ms = {window}"));
        let mut peer = Peer::of(&node).await;
        let greeting = greeting("somebody");
        let envelope = peer.envelope(Profile::A2a, greeting.msg_type(), greeting.to_payload());
        peer.put(&envelope).await;
        peer.put(&envelope).await;
        assert_eq!(is_heard(&mut peer).await, heard, "{window}");
        assert_eq!(node.log().contains("DUPLICATE_MSG_ID"), !heard, "{}", node.log());
    }
}

#[tokio::test]
async fn timestamps_are_looked_at_as_configured() {
    let now = || u64::try_from(std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_millis()).expect("fits");
    let at = |ts_unix_ms: u64| move |envelope: Envelope| Envelope { ts_unix_ms, ..envelope };
    let (fresh, old) = (now(), now() - 600_000);
    for (policy, without, stale) in [("ignored", true, true), ("checked", true, false), ("required", false, false)] {
        let node = node(&format!("timestamps = '{policy}'"));
        // What asks whether it is heard has no timestamp, so a fresh one is what it is asked with.
        let heard = async |ts_unix_ms: u64| {
            let mut peer = Peer::of(&node).await;
            for (message, time) in [(greeting("a"), ts_unix_ms), (task("t", "conformance", "complete yes"), fresh)] {
                let envelope = peer.envelope(Profile::A2a, message.msg_type(), message.to_payload());
                let mut envelope = at(time)(envelope);
                envelope.extensions = Given { convention: Some(Convention::Text), ..Given::default() }.to_extensions();
                let frame = envelope.encode(&Default::default()).expect("fits");
                let _ = peer.line.write_all(&frame).await;
            }
            peer.hear().await.is_some()
        };
        assert_eq!((heard(fresh).await, heard(0).await, heard(old).await), (true, without, stale), "{policy}");
    }
}

#[tokio::test]
async fn a_caller_has_as_many_tasks_open_as_it_may_and_no_more() {
    let node = node("max_open_tasks = 2");
    let mut peer = Peer::of(&node).await;
    peer.give("1", "conformance", "sleep 600000", Some(Convention::Text)).await;
    let mut other = Peer::of(&node).await;
    other.give("2", "conformance", "sleep 600000", Some(Convention::Text)).await;
    other.report().await;
    peer.report().await;
    peer.give("3", "conformance", "complete x", Some(Convention::Text)).await;
    let refused = loop {
        if let a2a::A2aMessage::Result(result) = peer.report().await {
            break result;
        }
    };
    assert!(refused.error_message.starts_with("LIMIT_REACHED: ") && refused.error_message.contains("swp.max_open_tasks"));
    // A connection that closes gives its place back.
    drop(other);
    crate::support::patience::soon("there is room again", async || {
        peer.give("3", "conformance", "complete x", Some(Convention::Text)).await;
        loop {
            if let a2a::A2aMessage::Result(result) = peer.report().await {
                return result.ok.then_some(());
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_task_that_ended_long_ago_is_forgotten() {
    let node = node("max_closed_tasks = 1");
    let mut peer = Peer::of(&node).await;
    for (id, input) in [("1", "complete a"), ("2", "complete b")] {
        peer.give(id, "conformance", input, Some(Convention::Text)).await;
        assert!(peer.outcome().await.1.ok);
    }
    // The second is still known here, so that another task by its name cannot be told from it.
    peer.give("2", "conformance", "complete c", Some(Convention::Text)).await;
    assert!(peer.is_closed().await);
    // The first is known to the service alone, and that says so.
    let mut peer = Peer::of(&node).await;
    peer.give("1", "conformance", "complete c", Some(Convention::Text)).await;
    let refused = peer.outcome().await.1;
    assert!(refused.error_message.starts_with("IDEMPOTENCY_CONFLICT"), "{}", refused.error_message);
}

#[tokio::test]
async fn who_says_nothing_or_never_ends_a_frame_is_closed_and_who_waits_for_a_task_is_not() {
    let node = node("idle_ms = 300");
    let mut silent = Peer::of(&node).await;
    let mut slow = Peer::of(&node).await;
    slow.line.write_all(&[0, 0, 0, 30, 1]).await.expect("the node takes it");
    let mut waiting = Peer::of(&node).await;
    waiting.give("t", "conformance", "sleep 1500", Some(Convention::Text)).await;
    assert!(silent.is_closed().await);
    assert!(slow.is_closed().await);
    assert!(waiting.outcome().await.1.ok, "a task takes as long as it takes");
    assert!(waiting.is_closed().await, "and then the connection is idle");
}

#[tokio::test]
async fn a_frame_that_comes_in_pieces_has_its_time_from_its_own_beginning() {
    let node = node("idle_ms = 2000");
    let mut peer = Peer::of(&node).await;
    peer.give("long", "conformance", "sleep 600000", Some(Convention::Text)).await;
    peer.report().await;
    let mut silent = Peer::of(&node).await;
    assert!(silent.is_closed().await, "longer ago than swp.idle_ms");
    let message = task("second", "conformance", "complete in two pieces");
    let mut envelope = peer.envelope(Profile::A2a, message.msg_type(), message.to_payload());
    envelope.extensions = Given { convention: Some(Convention::Text), ..Given::default() }.to_extensions();
    let frame = envelope.encode(&Default::default()).expect("fits");
    peer.line.write_all(&frame[..20]).await.expect("the node takes the beginning");
    // By then it has read that, and would have closed.
    assert!(is_heard(&mut Peer::of(&node).await).await);
    peer.line.write_all(&frame[20..]).await.expect("and the rest");
    assert_eq!(text(&peer.outcome().await.1.output), "in two pieces");
}

/// Its results wait for it, because it reads none of them, and it breaks a rule.
#[tokio::test]
async fn who_takes_nothing_is_not_waited_for_once_its_connection_is_over() {
    let node = node("[limits]\nwrite_stall_ms = 600000");
    let mut peer = Peer::of(&node).await;
    let large = format!("complete {}", "x".repeat(4 * 1024 * 1024));
    for task_id in ["1", "2", "3", "4", "5"] {
        peer.give(task_id, "conformance", &large, Some(Convention::Text)).await;
    }
    crate::support::patience::soon("all have a result", async || {
        let listed = node.call("ListTasks", serde_json::json!({ "status": "TASK_STATE_COMPLETED" })).await;
        (listed["result"]["totalSize"] == 5).then_some(())
    })
    .await;
    peer.line.write_all(&[0; 4]).await.expect("the node takes it");
    super::is_cut_off(&mut peer).await;
}
