//! Large lists that nobody reads, on a node that has 1 GiB.

use futures::future::join_all;
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use super::{Bounded, READER, answered_and_refused, windowless};
use crate::support::patience::soon;

/// Readers that take nothing are given up after two seconds.
const LIMITS: &str = "write_stall_ms = 2000";

/// Memory that is back is no more than it was, with some room for what the allocator keeps.
async fn has_its_memory_back(node: &Bounded, before: u64) {
    soon("the memory is back", async || (node.resident() <= before + 48).then_some(())).await;
}

#[tokio::test]
async fn a_hundred_lists_over_one_http2_connection_without_a_window_leave_the_node_up() {
    let node = Bounded::with(LIMITS);
    node.twenty_tasks().await;
    let before = node.resident();
    let client = windowless();
    let params = json!({ "includeArtifacts": true });
    let calls = (0..100).map(|_| node.request(&client, READER, "ListTasks", &params).send());
    let heads: Vec<_> = join_all(calls).await.into_iter().map(|head| head.expect("a head")).collect();
    let (answered, refused) = answered_and_refused(&heads);
    assert!(answered >= 5 && refused >= 50, "{answered} answered, {refused} refused");
    let added = node.resident().saturating_sub(before);
    assert!(added < 200, "{added} MB for one caller that may have 32 MiB unread");
    node.answers_others().await;

    // Each stream is reset, though the reader never gave it a window; its room is free again.
    let mut reset = 0;
    for mut head in heads {
        let read = tokio::time::timeout(crate::support::patience::BOUND, head.chunk()).await.expect("an end");
        reset += usize::from(read.is_err());
    }
    assert!(reset >= answered, "{reset} of {answered} were reset");
    let again = node.call(READER, "ListTasks", &params).await;
    assert!(again["result"]["tasks"].as_array().is_some_and(|tasks| tasks.len() == 1), "one task of 1.9 MB is a page");
    has_its_memory_back(&node, before).await;
}

#[tokio::test]
async fn forty_lists_at_once_over_http1_leave_the_node_up() {
    let node = Bounded::with(LIMITS);
    node.twenty_tasks().await;
    let before = node.resident();
    let params = json!({ "includeArtifacts": true });
    let mut lines = Vec::new();
    for _ in 0..40 {
        lines.push(node.unread_call("ListTasks", &params, "").await);
    }
    // All are answered or refused when each line has a first byte.
    for line in &lines {
        tokio::time::timeout(crate::support::patience::BOUND, line.readable()).await.expect("a head").expect("a line");
    }
    let added = node.resident().saturating_sub(before);
    assert!(added < 200, "{added} MB for one caller that may have 32 MiB unread");
    node.answers_others().await;

    // A line that takes nothing is closed, with what it had not taken.
    let (mut answered, mut refused) = (0, 0);
    soon("stalled lines are closed", async || (node.call(READER, "ListTasks", &params).await["error"].is_null()).then_some(()))
        .await;
    for line in &mut lines {
        let mut seen = Vec::new();
        let reading = line.read_to_end(&mut seen);
        let _ = tokio::time::timeout(crate::support::patience::BOUND, async { reading.await.ok() }).await.expect("an end");
        answered += usize::from(seen.starts_with(b"HTTP/1.1 200 OK"));
        refused += usize::from(seen.starts_with(b"HTTP/1.1 503 "));
    }
    assert!(answered + refused == 40 && refused > 0, "{answered} answered, {refused} refused");
    has_its_memory_back(&node, before).await;
}
