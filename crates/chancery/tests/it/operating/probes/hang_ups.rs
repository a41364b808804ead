//! Callers that hang up at the wrong moment.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{Kept, serve};
use crate::support::counts::full_counts;
use crate::support::line::{Beside, is_terminal};
use crate::support::patience::soon;
use crate::support::server::Home;
use crate::tasks::crash::chance::Chance;

#[tokio::test]
async fn a_caller_that_hangs_up_leaves_no_task_that_nobody_works_on() {
    let home = Home::new();
    let (server, line) = serve(&home, Kept::OnDisk, "");
    let mut chance = Chance::new("hang-ups");
    for number in 0..full_counts(300, 5_000) {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": format!("complete {number}") }] });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } }).to_string();
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length:";
        let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).await.unwrap();
        stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_micros(chance.within(0..=4_000))).await;
        drop(stream);
    }
    let open = async || {
        let mut open: Vec<Value> = Vec::new();
        let mut place = String::new();
        loop {
            let page = line.call("ListTasks", &json!({ "pageSize": 100, "pageToken": place }), Beside::default()).await.unwrap();
            let tasks = page["result"]["tasks"].as_array().unwrap();
            open.extend(tasks.iter().filter(|task| !task["status"]["state"].as_str().is_some_and(is_terminal)).cloned());
            place = page["result"]["nextPageToken"].as_str().unwrap().to_owned();
            if place.is_empty() {
                return open;
            }
        }
    };
    soon("every task that was made comes to its end", async || open().await.is_empty().then_some(())).await;
}
