//! `tasks/sendSubscribe` over the bare wire: three working updates and an end are five events, in order.

use serde_json::{Value, json};

use crate::support::server::Setup;

#[tokio::test]
async fn three_working_updates_and_an_end_are_five_events_in_order() {
    let server = Setup::conformance().start();
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": "steps 3" }] });
    let call = json!({ "jsonrpc": "2.0", "id": "s-1", "method": "tasks/sendSubscribe", "params": { "id": "climb", "message": message } });
    let response = reqwest::Client::new().post(server.url()).json(&call).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let text = response.text().await.unwrap();

    let frames: Vec<Vec<&str>> = text.split_terminator("\n\n").map(|frame| frame.lines().collect()).collect();
    assert_eq!(frames.len(), 5, "{text}");
    let states = ["submitted", "working", "working", "working", "completed"];
    for (number, (frame, state)) in (1..).zip(frames.into_iter().zip(states)) {
        let [id, data] = frame[..] else { panic!("{frame:?}") };
        assert_eq!(id, format!("id: {number}"));
        let payload: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!((&payload["jsonrpc"], &payload["id"]), (&json!("2.0"), &json!("s-1")));
        let result = &payload["result"];
        assert_eq!((&result["id"], &result["status"]["state"]), (&json!("climb"), &json!(state)), "{payload}");
        assert_eq!(result["final"], json!(number == 5), "{payload}");
        if state == "working" {
            let words = &result["status"]["message"]["parts"][0]["text"];
            assert_eq!(*words, json!(format!("step {} of 3", number - 1)));
        }
    }
}
