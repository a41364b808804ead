//! An agent whose every byte the test decides: it answers calls with scripts, remembers them, and may cut the wire.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::support::ports::lasting_address;

/// One request as it came.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: HashMap<String, String>,
    pub(super) body: String,
    /// How many of its kind came before it, about the same task.
    pub(super) before: usize,
}

impl Asked {
    /// The JSON-RPC method, or the path.
    pub(super) fn kind(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["method"].as_str().map_or_else(|| self.path.clone(), str::to_owned)
    }

    /// The task it is about, if it names one.
    pub(super) fn task(&self) -> Option<String> {
        self.params()["id"].as_str().map(str::to_owned)
    }

    pub(super) fn params(&self) -> Value {
        serde_json::from_str::<Value>(&self.body).unwrap_or_default()["params"].take()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<u8>),
    /// The same again and again, for as long as somebody reads it.
    Forever(Vec<u8>),
    /// One byte at a time.
    Drip(Vec<u8>),
    Hang,
    /// Until the test lets it go on.
    Wait(Arc<Semaphore>),
}

/// What is written to a connection before it is closed.
#[derive(Clone, Debug, Default)]
pub(super) struct Script(Vec<Step>);

impl Script {
    fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    pub(super) fn page(status: u16, kind: &str, body: &str) -> Self {
        Self::page_with(status, kind, &[], body)
    }

    pub(super) fn page_with(status: u16, kind: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Type: {kind}\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        Self::default().write(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()))
    }

    pub(super) fn json(body: &Value) -> Self {
        Self::page(200, "application/json", &body.to_string())
    }

    /// A JSON-RPC answer.
    pub(super) fn result(asked: &Asked, result: &Value) -> Self {
        Self::json(&wrapped(asked, "result", result))
    }

    /// A task of 1.0 that is done, with one word.
    pub(super) fn completed(asked: &Asked) -> Self {
        let task = json!({ "task": { "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" },
            "artifacts": [{ "artifactId": "a", "parts": [{ "text": "alpha" }] }] } });
        Self::result(asked, &task)
    }

    pub(super) fn error(asked: &Asked, code: i64, message: &str) -> Self {
        Self::json(&wrapped(asked, "error", &json!({ "code": code, "message": message })))
    }

    /// The head of a stream, in chunks, so that a cut shows.
    pub(super) fn stream() -> Self {
        let head = "HTTP/1.1 200 X\r\nConnection: close\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        Self::default().write(head)
    }

    pub(super) fn events<'a>(asked: &Asked, events: impl IntoIterator<Item = &'a Value>) -> Self {
        events.into_iter().fold(Self::stream(), |script, event| script.event(asked, event))
    }

    pub(super) fn event(self, asked: &Asked, event: &Value) -> Self {
        self.chunk(&format!("data: {}\n\n", wrapped(asked, "result", event)))
    }

    /// An error where an event could be.
    pub(super) fn refusal(self, asked: &Asked, code: i64, message: &str) -> Self {
        self.chunk(&format!("data: {}\n\n", wrapped(asked, "error", &json!({ "code": code, "message": message }))))
    }

    pub(super) fn chunk(self, text: &str) -> Self {
        self.write(format!("{:x}\r\n{text}\r\n", text.len()))
    }

    /// Ends a stream in order. Without it, it is cut.
    pub(super) fn end(self) -> Self {
        self.write("0\r\n\r\n")
    }

    pub(super) fn write(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Write(bytes.into()))
    }

    pub(super) fn forever(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Forever(bytes.into()))
    }

    pub(super) fn drip(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Drip(bytes.into()))
    }

    /// Goes on when the test adds a permit.
    pub(super) fn wait(self, cue: &Arc<Semaphore>) -> Self {
        self.then(Step::Wait(Arc::clone(cue)))
    }

    pub(super) fn followed_by(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(super) fn hang(self) -> Self {
        self.then(Step::Hang)
    }
}

fn wrapped(asked: &Asked, member: &str, value: &Value) -> Value {
    let call: Value = serde_json::from_str(&asked.body).unwrap_or_default();
    json!({ "jsonrpc": "2.0", "id": call["id"], member: value })
}

type Answers = dyn Fn(&Asked) -> Script + Send + Sync;

pub(crate) struct Scripted {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    listening: tokio::task::JoinHandle<()>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Scripted {
    /// Answers everything with what the function makes of it. It is told the agent's own URL first.
    pub(super) async fn start<F>(make: impl FnOnce(&str) -> F) -> Self
    where
        F: Fn(&Asked) -> Script + Send + Sync + 'static,
    {
        Self::at("127.0.0.1", make).await
    }

    /// The same at another address of this machine.
    pub(super) async fn at<F>(host: &str, make: impl FnOnce(&str) -> F) -> Self
    where
        F: Fn(&Asked) -> Script + Send + Sync + 'static,
    {
        let listener = TcpListener::bind((host, lasting_address().port())).await.expect("a free port");
        let address = listener.local_addr().expect("it has one");
        let answers: Arc<Answers> = Arc::new(make(&format!("http://{address}")));
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let kept = Arc::clone(&asked);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&answers), Arc::clone(&kept)));
            }
        });
        Self { address, asked, listening }
    }

    /// An agent of version 1.0 over JSON-RPC that streams: the card is what such an agent has, the calls are the test's.
    pub(super) async fn agent(answers: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> Self {
        Self::with_card(json!({ "streaming": true }), answers).await
    }

    pub(super) async fn with_card(capabilities: Value, answers: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> Self {
        Self::start(|url| {
            let card = Script::json(&card(url, capabilities));
            move |asked: &Asked| if asked.path.contains(".well-known") { card.clone() } else { answers(asked) }
        })
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything but fetches of the card.
    pub(super) fn calls(&self) -> Vec<Asked> {
        self.all().into_iter().filter(|asked| !asked.path.contains(".well-known")).collect()
    }

    pub(super) fn all(&self) -> Vec<Asked> {
        self.asked.lock().expect("no test panics inside").clone()
    }

    /// How often it was asked for something of this kind.
    pub(super) fn count(&self, kind: &str) -> usize {
        self.all().iter().filter(|asked| asked.kind() == kind).count()
    }
}

pub(super) fn card(url: &str, capabilities: Value) -> Value {
    json!({
        "name": "Scripted", "description": "Says what it is told to say.", "version": "1",
        "supportedInterfaces": [{ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        "capabilities": capabilities,
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "s", "name": "S", "description": "Says it.", "tags": ["test"] }],
    })
}

async fn serve(mut stream: TcpStream, answers: Arc<Answers>, kept: Arc<Mutex<Vec<Asked>>>) {
    let Some(mut asked) = read(&mut stream).await else { return };
    {
        let mut kept = kept.lock().expect("no test panics inside");
        let kind = asked.kind();
        asked.before = kept.iter().filter(|other| other.kind() == kind && other.task() == asked.task()).count();
        kept.push(asked.clone());
    }
    for step in answers(&asked).0 {
        let written = match step {
            Step::Write(bytes) => stream.write_all(&bytes).await,
            Step::Forever(bytes) => loop {
                if let Err(gone) = stream.write_all(&bytes).await {
                    break Err(gone);
                }
            },
            Step::Drip(bytes) => {
                for byte in bytes {
                    if stream.write_all(&[byte]).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Ok(())
            }
            // Until the other side has enough of it.
            Step::Wait(cue) => cue.acquire().await.map(|permit| permit.forget()).map_err(std::io::Error::other),
            Step::Hang => stream.read_u8().await.map(|_| ()),
        };
        if written.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: HashMap<String, String> =
        lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8_lossy(&bytes[head..]).into_owned();
    Some(Asked { path, headers, body, before: 0 })
}
