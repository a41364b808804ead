//! Bytes that mean nothing: no answer and no stream of them makes the client panic or run on.

use chancery_outbound::{ClientLimits, EventStream};
use chancery_protocol::{Operation, Version};
use proptest::prelude::*;

use super::agent::{client, conditions};
use super::raw::{EVENTS, RawAgent, Then};
use super::samples::{Speaks, request};
use chancery_protocol::Binding;

/// Bytes, some of them close to an answer.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "data: ",
        "id: ",
        "event: error\n",
        "\n\n",
        "\r",
        "\\u0000",
        "null",
        "1e999",
        "-",
        "\"jsonrpc\":\"2.0\"",
        "\"id\":\"1\"",
        "\"result\":",
        "\"error\":",
        "\"code\":",
        "-32001",
        "\"message\":",
        "\"task\":",
        "\"status\":",
        "\"state\":",
        "\"details\":[",
        "\"reason\":\"",
        "\"kind\":\"task\"",
        "\"parts\":",
        "\u{feff}",
    ]);
    let words = prop::collection::vec(word, 0..40).prop_map(|words| words.concat().into_bytes());
    prop_oneof![words, prop::collection::vec(any::<u8>(), 0..200)]
}

async fn drain(mut stream: EventStream) {
    while let Ok(Some(_)) = stream.next().await {}
}

async fn offer(answer: Vec<u8>) {
    let agent = RawAgent::saying(answer, Then::Close).await;
    for speaks in Speaks::ALL.into_iter().filter(|(_, binding)| *binding != Binding::Grpc) {
        let client = client(&agent.url(), speaks, ClientLimits::default());
        let _ = client.call(&request(speaks.0, Operation::SendMessage), &conditions()).await;
        if let Ok(stream) = client.stream(&request(speaks.0, Operation::StreamMessage), &conditions()).await {
            drain(stream).await;
        }
    }
    let client = client(&agent.address.to_string(), (Version::V1_0, Binding::Grpc), ClientLimits::default());
    let _ = client.call(&request(Version::V1_0, Operation::GetTask), &conditions()).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_on_garbage(body in garbage(), status in prop::sample::select(vec![200_u16, 204, 400, 404, 500, 503])) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n");
            offer([head.into_bytes(), body.clone()].concat()).await;
            offer([EVENTS.as_bytes(), &body].concat()).await;
            offer(body).await;
        });
    }
}
