//! Requests written byte by byte, because clients would not send some of them, and answers as they come.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::node::Node;

/// Far longer than anything here takes on a loaded machine.
const BOUND: Duration = Duration::from_secs(60);

/// A call that gets as far as the service, which does not know the task.
pub(crate) const HARMLESS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"nobody"}}"#;

/// A call that runs the agent.
pub(crate) const SEND: &str = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}}"#;

/// The same over HTTP+JSON.
pub(crate) const SEND_REST: &str = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}"#;

/// One request: its first line, its header lines and what is sent after them.
#[derive(Clone, Debug)]
pub(crate) struct RawRequest {
    line: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

impl RawRequest {
    pub(crate) fn get(target: &str) -> Self {
        Self::bare(&format!("GET {target} HTTP/1.1")).with("Host: localhost")
    }

    /// A body of JSON with its length.
    pub(crate) fn post(target: &str, body: &str) -> Self {
        Self::json(target).with(&format!("Content-Length: {}", body.len())).body(body.as_bytes())
    }

    /// The same in chunks, without a length.
    pub(crate) fn chunked(target: &str, body: &str) -> Self {
        let mut chunks = Vec::new();
        for piece in body.as_bytes().chunks(100) {
            chunks.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            chunks.extend_from_slice(piece);
            chunks.extend_from_slice(b"\r\n");
        }
        chunks.extend_from_slice(b"0\r\n\r\n");
        Self::json(target).with("Transfer-Encoding: chunked").body(&chunks)
    }

    /// The head of a JSON body that says nothing of its length.
    pub(crate) fn json(target: &str) -> Self {
        Self::bare(&format!("POST {target} HTTP/1.1")).with("Host: localhost").with("Content-Type: application/json")
    }

    /// A gRPC message of no bytes. Refusals need no HTTP/2.
    pub(crate) fn grpc() -> Self {
        let head = Self::bare("POST /lf.a2a.v1.A2AService/ListTasks HTTP/1.1").with("Host: localhost");
        head.with("Content-Type: application/grpc").with("Content-Length: 5").body(&[0; 5])
    }

    /// Nothing but a first line.
    pub(crate) fn bare(line: &str) -> Self {
        Self { line: line.to_owned(), headers: vec!["A2A-Version: 1.0".to_owned()], body: Vec::new() }
    }

    pub(crate) fn with(mut self, header: &str) -> Self {
        self.headers.push(header.to_owned());
        self
    }

    /// With other Host lines than the usual one.
    pub(crate) fn hosts(mut self, hosts: &[&str]) -> Self {
        self.headers.retain(|header| !header.starts_with("Host:"));
        self.headers.extend(hosts.iter().map(|host| format!("Host: {host}")));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.with(&format!("Authorization: Bearer {key}"))
    }

    pub(crate) fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let headers: String = self.headers.iter().map(|header| format!("{header}\r\n")).collect();
        [format!("{}\r\n{headers}\r\n", self.line).as_bytes(), &self.body].concat()
    }
}

/// An answer with its head as it came.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl RawAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|fault| panic!("{fault}: {self:?}"))
    }

    /// The code of a JSON-RPC error.
    pub(crate) fn code(&self) -> Option<i64> {
        self.json()["error"]["code"].as_i64()
    }
}

/// A connection to a node.
pub(crate) struct Connection {
    stream: TcpStream,
    seen: Vec<u8>,
}

impl Connection {
    pub(crate) async fn to(node: &Node) -> Self {
        Self::from(Ipv4Addr::LOCALHOST, node).await
    }

    /// From another address of the loopback.
    pub(crate) async fn from(address: Ipv4Addr, node: &Node) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from((address, 0))).expect("an address of the loopback");
        Self { stream: socket.connect(node.address).await.expect("a connection"), seen: Vec::new() }
    }

    /// Sends bytes. A node that refuses a request may have closed by then, which is nothing to fail for.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = tokio::time::timeout(BOUND, self.stream.write_all(bytes)).await.expect("the node reads or closes");
    }

    /// Says that nothing more will come.
    pub(crate) async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// The next answer; `None` if the node closes without one.
    pub(crate) async fn answer(&mut self) -> Option<RawAnswer> {
        loop {
            if let Some(answer) = self.take_answer() {
                return Some(answer);
            }
            let mut piece = [0; 4096];
            match tokio::time::timeout(BOUND, self.stream.read(&mut piece)).await.expect("an answer or an end") {
                Ok(read @ 1..) => self.seen.extend_from_slice(&piece[..read]),
                // A reset is an end too.
                _ => return None,
            }
        }
    }

    /// The first line of an answer whose length says nothing of what follows.
    pub(crate) async fn first_line(&mut self) -> String {
        let _ = tokio::time::timeout(BOUND, self.stream.read_to_end(&mut self.seen)).await.expect("an end");
        String::from_utf8_lossy(&self.seen).lines().next().unwrap_or_default().to_owned()
    }

    fn take_answer(&mut self) -> Option<RawAnswer> {
        let end = self.seen.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head = String::from_utf8(self.seen[..end].to_vec()).expect("a head is text");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut answer = RawAnswer { status, head, body: String::new() };
        let length: usize = answer.header("content-length").map_or(0, |length| length.parse().expect("a length"));
        let body = self.seen.get(end..end + length)?;
        answer.body = String::from_utf8(body.to_vec()).expect("a body is text");
        self.seen.drain(..end + length);
        Some(answer)
    }

    /// Whether the node serves this connection.
    pub(crate) async fn is_served(&mut self) -> bool {
        self.send(&RawRequest::get("/livez").bytes()).await;
        self.answer().await.is_some_and(|answer| answer.status == 200)
    }
}

/// The answer to one request on a connection of its own.
pub(crate) async fn ask(node: &Node, request: &RawRequest) -> RawAnswer {
    let mut connection = Connection::to(node).await;
    connection.send(&request.bytes()).await;
    connection.answer().await.unwrap_or_else(|| panic!("no answer to {request:?}"))
}
