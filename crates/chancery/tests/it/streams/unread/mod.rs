//! Callers that do not read what they are sent: the node stays up, answers others, and has its memory back soon.

mod lists;
mod nobody;
mod sends;
mod stalls;
mod streams;

use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};

use crate::support::server::{Home, Server, Setup};

/// Address space of a node under attack, in the units of `ulimit -v`: 1 GiB.
const ONE_GIBIBYTE: &str = "ulimit -v 1048576";

/// A node with two callers, a database on the disk and no more memory than 1 GiB.
struct Bounded {
    server: Server,
    client: Client,
}

/// Who reads nothing, and who only wants to be answered.
const READER: &str = "the-key-of-who-reads-nothing";
const OTHER: &str = "the-key-of-somebody-else";

impl Bounded {
    fn with(limits: &str) -> Self {
        let callers = "[callers.reader]\nkey_env = 'READER_KEY'\n[callers.other]\nkey_env = 'OTHER_KEY'";
        Self::of(&format!("{callers}\n[limits]\n{limits}\n"))
    }

    /// Without a record: what is looked at here is the memory of readers.
    fn of(settings: &str) -> Self {
        let config = format!("[agents.conformance]\nrun = 'conformance'\n[evidence]\nrecord = false\n{settings}");
        let setup = Setup::in_home(&Home::new()).config(&config).env("READER_KEY", READER).env("OTHER_KEY", OTHER);
        Self { server: setup.after(ONE_GIBIBYTE).start(), client: Client::new() }
    }

    fn address(&self) -> &str {
        self.server.url().trim_start_matches("http://")
    }

    fn request(&self, client: &Client, key: &str, method: &str, params: &Value) -> reqwest::RequestBuilder {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        client.post(self.server.url()).header("A2A-Version", "1.0").header("X-API-Key", key).json(&body)
    }

    async fn call(&self, key: &str, method: &str, params: &Value) -> Value {
        let answer = self.request(&self.client, key, method, params).send().await.expect("the node answers");
        answer.json().await.expect("with JSON")
    }

    async fn send(&self, key: &str, text: &str) -> Value {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
        self.call(key, "SendMessage", &json!({ "message": message })).await["result"]["task"].take()
    }

    /// Whether somebody else is answered, with a task of some size too.
    async fn answers_others(&self) {
        for text in ["complete it", &format!("complete {}", "x".repeat(100_000))] {
            let task = self.send(OTHER, text).await;
            assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}\n{}", self.server.log());
            let listed = self.call(OTHER, "ListTasks", &json!({ "includeArtifacts": true })).await;
            assert_eq!(listed["result"]["tasks"][0]["id"], task["id"], "{listed}");
        }
    }

    /// Twenty tasks of 1.9 MB: the message and an artifact of half that each.
    async fn twenty_tasks(&self) {
        for _ in 0..20 {
            let task = self.send(READER, &format!("complete {}", "x".repeat(950_000))).await;
            assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
        }
    }

    /// A connection of HTTP/1.1 with little room on this side, and a call that was sent over it.
    async fn unread_call(&self, method: &str, params: &Value, headers: &str) -> TcpStream {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let small = TcpSocket::new_v4().expect("a socket");
        small.set_recv_buffer_size(4096).expect("a small buffer");
        let mut line = small.connect(self.address().parse().expect("an address")).await.expect("a connection");
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nA2A-Version: 1.0\r\nX-API-Key: {READER}\r\n{headers}Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            self.address(),
            body.len()
        );
        line.write_all(format!("{head}{body}").as_bytes()).await.expect("the node takes a call");
        line
    }

    /// Memory of the process in megabytes.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("kilobytes") / 1024
    }
}

/// One connection of HTTP/2 whose streams get no window at all.
fn windowless() -> Client {
    Client::builder().http2_prior_knowledge().http2_initial_stream_window_size(0).build().expect("a client")
}

/// How many were answered, and how many were told to come back later. Nobody is told anything else.
fn answered_and_refused(heads: &[Response]) -> (usize, usize) {
    let refused = heads.iter().filter(|head| head.status() == 503);
    let told_when = refused.inspect(|head| assert!(head.headers().contains_key("retry-after"), "{head:?}")).count();
    let answered = heads.iter().filter(|head| head.status() == 200).count();
    assert_eq!(answered + told_when, heads.len(), "{:?}", heads.iter().map(Response::status).collect::<Vec<_>>());
    (answered, told_when)
}
