//! Every deviation of `shape_agents`, behind a gateway: a unary call and a stream carry the same words.

use serde_json::Value;

use super::shape_agents::{ShapeAgent, answers, cards, framings};
use super::{Carried, WORDS, client, sent, streamed};
use crate::gateway::in_front_of;
use crate::gateway::scripted::{Asked, Script, Scripted};

/// Nodes that run at once.
const AT_ONCE: usize = 4;

/// The faults of one agent: nothing if it is carried.
async fn faults(shape: ShapeAgent) -> Vec<String> {
    let ShapeAgent { name, card, unary, stream, get, fails_with, typed } = shape;
    let speaks_1_0 = card.get("supportedInterfaces").is_some();
    let agent = Scripted::start(|url| {
        let port = url.rsplit(':').next().unwrap_or_default();
        let card: Value = serde_json::from_str(&card.to_string().replace("{url}", url).replace("{port}", port)).expect("a card");
        move |asked: &Asked| match asked.kind().as_str() {
            path if path.contains(".well-known/agent-card.json") => Script::json(&card),
            path if path.contains(".well-known") => Script::page(404, "text/plain", "no"),
            method if method.starts_with(char::is_uppercase) != speaks_1_0 => Script::error(asked, -32601, "Method not found"),
            "SendMessage" | "message/send" => unary(asked),
            "SendStreamingMessage" | "message/stream" => stream(asked),
            _ => get(asked),
        }
    })
    .await;
    let gateway = in_front_of(&agent.url().replace("127.0.0.1", typed), crate::gateway::QUICK);
    let client = client(&gateway);
    let unary = match sent(&client, Default::default()).await {
        Ok(carried) => carried,
        Err(refused) => Carried { state: "failed".to_owned(), said: vec![refused.message().to_owned()], ..Carried::default() },
    };
    let (_, stream) = streamed(&client).await;
    let is_carried = |carried: &Carried| {
        let words = [carried.artifacts.concat(), carried.said.concat()].into_iter().find(|words| !words.is_empty());
        let words = words.unwrap_or_default();
        match fails_with {
            None => ["completed", "message"].contains(&carried.state.as_str()) && words == WORDS,
            Some(reasons) => carried.state == "failed" && reasons.iter().all(|reason| words.contains(reason)),
        }
    };
    let ways = [("unary", unary), ("stream", stream)];
    let faulty = ways.into_iter().filter(|(_, carried)| !is_carried(carried));
    faulty.map(|(way, carried)| format!("{name}, {way}: {carried:?}")).collect()
}

async fn all_are_carried(mut shapes: Vec<ShapeAgent>) {
    let count = shapes.len();
    let mut all = Vec::new();
    while !shapes.is_empty() {
        let some = shapes.split_off(shapes.len().saturating_sub(AT_ONCE));
        all.extend(futures::future::join_all(some.into_iter().map(faults)).await.concat());
    }
    assert!(all.is_empty(), "{} of {} calls are not carried:\n{}", all.len(), count * 2, all.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_deviate_in_one_way_are_carried() {
    all_are_carried(answers()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_2_5_streams_in_any_framing_are_carried() {
    all_are_carried(framings()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cards_that_deviate_in_one_way_are_carried() {
    all_are_carried(cards()).await;
}
