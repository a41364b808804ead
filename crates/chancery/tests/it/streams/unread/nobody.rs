//! Callers without credentials: names that they invent give them no more room, and one that does not read locks no other out.

use futures::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};

use super::{answered_and_refused, windowless};
use crate::support::server::{Server, Setup};

fn open_node() -> Server {
    Setup::conformance()
        .config(
            "[limits]\nanswering_bytes_per_caller = 1000000\nanswering_bytes_per_node = 100000000\nstreams_per_caller = 2\n\
             write_stall_ms = 600000\n",
        )
        .start()
}

fn request(client: &Client, server: &Server, tenant: &str, method: &str, params: &Value) -> reqwest::RequestBuilder {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    client.post(server.url()).header("A2A-Version", "1.0").header("A2A-Tenant", tenant).json(&body)
}

/// A task of 200 kB that waits for its caller.
async fn parked(client: &Client, server: &Server, tenant: &str) -> Value {
    let text = format!("ask {}", "x".repeat(100_000));
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
    let sent = request(client, server, tenant, "SendMessage", &json!({ "message": message })).send().await.expect("an answer");
    sent.json::<Value>().await.expect("JSON")["result"]["task"]["id"].take()
}

#[tokio::test]
async fn invented_tenants_have_one_share_of_unread_answers_and_a_neighbour_is_answered() {
    let (server, reading, unread) = (open_node(), Client::new(), windowless());
    let mut tasks = Vec::new();
    for number in 0..12 {
        let tenant = format!("tenant-{number}");
        tasks.push((parked(&reading, &server, &tenant).await, tenant));
    }
    let get = |client, (id, tenant): &(Value, String)| request(client, &server, tenant, "GetTask", &json!({ "id": id })).send();
    let heads = join_all(tasks.iter().map(|task| get(&unread, task))).await;
    let heads: Vec<_> = heads.into_iter().map(|head| head.expect("a head")).collect();
    let (answered, refused) = answered_and_refused(&heads);
    assert!((1..=5).contains(&answered), "{answered} answered, {refused} refused: all of them are one connection");
    for task in &tasks {
        let answer = get(&reading, task).await.expect("an answer").json::<Value>().await.expect("JSON");
        assert_eq!(answer["result"]["id"], task.0, "the neighbour of one that does not read");
    }
}

#[tokio::test]
async fn one_that_has_no_name_and_does_not_read_leaves_room_for_the_others() {
    let (server, reading, unread) = (open_node(), Client::new(), windowless());
    let task = (parked(&reading, &server, "").await, String::new());
    let get = |client| request(client, &server, "", "GetTask", &json!({ "id": task.0 })).send();
    let heads = join_all((0..12).map(|_| get(&unread))).await;
    let heads: Vec<_> = heads.into_iter().map(|head| head.expect("a head")).collect();
    let (answered, refused) = answered_and_refused(&heads);
    let answer = get(&reading).await.expect("an answer").json::<Value>().await.expect("JSON");
    assert_eq!(answer["result"]["id"], task.0, "{answered} answered, {refused} refused: {}", answer["error"]);
}

#[tokio::test]
async fn invented_tenants_have_one_share_of_streams() {
    let (server, client) = (open_node(), Client::new());
    let mut streams = Vec::new();
    for number in 0..4 {
        let tenant = format!("tenant-{number}");
        let id = parked(&client, &server, &tenant).await;
        streams.push(request(&client, &server, &tenant, "SubscribeToTask", &json!({ "id": id })).send().await.expect("a head"));
    }
    let are_streams: Vec<_> = streams.iter().map(|head| head.headers()["content-type"] == "text/event-stream").collect();
    assert_eq!(are_streams, [true, true, false, false], "limits.streams_per_caller = 2");
}
