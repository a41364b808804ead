//! What a stop tells those who are watching.

use serde_json::json;

use super::{Kept, serve};
use crate::support::line::{Beside, Event};
use crate::support::server::Home;

#[tokio::test]
async fn a_stop_ends_streams_with_the_id_to_resume_from_and_the_next_start_resumes_there() {
    let home = Home::new();
    let (server, _line) = serve(&home, Kept::OnDisk, "");
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "stream 1000000 5" }] });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": { "message": message } });
    let request = reqwest::Client::new().post(server.url()).header("A2A-Version", "1.0").json(&body);
    let mut stream = request.send().await.unwrap();
    let mut seen = String::new();
    while seen.matches("data: ").count() < 5 {
        seen.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().expect("the stream is open")).unwrap());
    }
    server.signal("TERM");
    while let Some(chunk) = stream.chunk().await.expect("the stream ends in order") {
        seen.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    let (status, _) = server.ended();
    assert_eq!(status.code(), Some(0));
    let last: u64 =
        seen.rsplit("\nid: ").next().and_then(|rest| rest.lines().next()).and_then(|id| id.parse().ok()).expect("an id");
    let farewell = seen.lines().rfind(|line| line.starts_with(": ")).expect("a comment");
    assert!(farewell.ends_with(&format!("Last-Event-ID: {last}")), "{farewell}; the last id was {last}");

    let id = seen.split(r#""task":{"#).nth(1).and_then(|task| task.split(r#""id":""#).nth(1)).and_then(|id| id.split('"').next());
    let (_server, line) = serve(&home, Kept::OnDisk, "");
    let beside = Beside { key: None, last_event_id: Some(last) };
    let resumed = line.stream("SubscribeToTask", &json!({ "id": id.expect("a task id") }), beside).await.unwrap();
    let resumed = resumed.expect("a stream").all().await.unwrap();
    let numbers: Vec<u64> = resumed.iter().map(|event| event.id).collect();
    assert_eq!(numbers, (last..last + numbers.len() as u64).collect::<Vec<_>>(), "the task as it was, then what was missed");
    assert!(resumed.last().is_some_and(Event::ends_the_task), "{resumed:?}");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_listeners_whose_task_was_never_sent() {
    let home = Home::new();
    let (server, _line) = serve(&home, Kept::OnDisk, "");
    let mut listener = reqwest::get(format!("{}/tasks/sendSubscribe?id=later", server.url())).await.unwrap();
    server.signal("TERM");
    let mut told = String::new();
    while let Some(chunk) = listener.chunk().await.expect("the stream ends in order") {
        told.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert!(told.contains("shutting down"), "{told}");
    assert!(!server.log().contains("limits.drain_ms"), "{}", server.log());
    let (status, _) = server.ended();
    assert_eq!(status.code(), Some(0));
}
