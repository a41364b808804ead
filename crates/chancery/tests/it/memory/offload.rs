//! Large artifacts go through a node and its tier: in pieces to those who stream, by link to those who fetch.

use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chancery::{Config, Node, new_card};
use chancery_core::{Finished, RunError, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{Artifact, Part, PartContent};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::server::{Home, Server, Setup};

const MIB: usize = 1 << 20;
const PIECES: usize = 64;
const MOST_GROWTH: u64 = 16 << 20;
const REFERENCES: &str = "https://chancery.dev/a2a/artifact-references/v1";

/// An agent whose artifact is as large as it is told, in pieces of a mebibyte. It can say things, too.
struct Big;

#[async_trait::async_trait]
impl TaskRunner for Big {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        if turn.message.first_text() == Some("echo") {
            let words = updates.message(turn.message.parts[1..].to_vec());
            return Ok(updates.complete(Some(words)));
        }
        let pieces: usize = turn.message.first_text().and_then(|text| text.parse().ok()).unwrap_or(0);
        for number in 0..pieces {
            let part = Part::new(PartContent::Raw(piece(number).into()));
            updates.chunk(Artifact::new("big", vec![part]), number > 0, number + 1 == pieces).await?;
            // Its events become visible, and so durable, before the next one.
            tokio::task::yield_now().await;
        }
        Ok(updates.complete(None))
    }
}

/// Every piece is another one.
fn piece(number: usize) -> Vec<u8> {
    (0..MIB)
        .map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8).wrapping_add((number as u8).wrapping_mul(7)))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn expected(pieces: usize) -> String {
    let mut digest = Context::new(&SHA256);
    (0..pieces).for_each(|number| digest.update(&piece(number)));
    hex(digest.finish().as_ref())
}

/// The agent, and a node in front of it that puts large parts away.
async fn front(stop: CancellationToken) -> (Home, Server, tempfile::TempDir) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let config = Config::parse("[limits]\ntask_bytes = 1000000000\n").expect("a config");
    let mut card = new_card("Big", "Makes large artifacts");
    card.default_input_modes.push("*/*".to_owned());
    let node = Node::builder().agent("big", card, Big).config(config).public_url(&url);
    let node = node.memory().build().await.expect("a node");
    tokio::spawn(async move { node.serve(listener, stop).await });
    let (home, tier) = (Home::new(), tempfile::tempdir().expect("a temporary folder"));
    let config = format!(
        "[agents.front]\nurl = '{url}'\n[memory]\ntier = '{}'\n[artifacts]\noffload = true\n\
         [outbound]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n[peers]\nread_ms = 300000\n",
        tier.path().display()
    );
    let server = Setup::in_home(&home).config(&config).start();
    (home, server, tier)
}

/// A figure of the process, in bytes.
fn memory(server: &Server, figure: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(figure)).expect("a figure");
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// Forgets the peak, so that the next one is of what happens from now on.
fn forget_peak(server: &Server) {
    std::fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").expect("it is ours");
}

fn request(server: &Server, method: &str, params: &Value) -> reqwest::RequestBuilder {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    reqwest::Client::new().post(server.url()).header("A2A-Version", "1.0").json(&body)
}

/// Streams an artifact of so many pieces; answers the task and the digest of all its raw parts.
async fn streamed(server: &Server, pieces: usize) -> (String, String) {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": pieces.to_string() }] });
    let mut response = request(server, "SendStreamingMessage", &json!({ "message": message })).send().await.expect("an answer");
    let (mut digest, mut line, mut task) = (Context::new(&SHA256), Vec::new(), String::new());
    while let Some(bytes) = response.chunk().await.expect("it goes on") {
        for byte in bytes {
            if byte != b'\n' {
                line.push(byte);
                continue;
            }
            if let Some(payload) = line.strip_prefix(b"data: ") {
                let event: Value = serde_json::from_slice(payload).expect("JSON");
                let result = &event["result"];
                if let Some(id) = result["task"]["id"].as_str() {
                    id.clone_into(&mut task);
                }
                for part in result["artifactUpdate"]["artifact"]["parts"].as_array().into_iter().flatten() {
                    let raw = part["raw"].as_str().unwrap_or_else(|| panic!("not whole: {part}"));
                    assert_eq!(part.get("metadata"), None, "as the agent sent it");
                    digest.update(&STANDARD.decode(raw).expect("base64"));
                }
            }
            line.clear();
        }
    }
    (task, hex(digest.finish().as_ref()))
}

/// Fetches all parts of a task's artifact by their links, each in two ranges.
async fn fetched(server: &Server, task: &str) -> String {
    let asked = request(server, "GetTask", &json!({ "id": task })).header("A2A-Extensions", REFERENCES);
    let answer: Value = asked.send().await.expect("an answer").json().await.expect("JSON");
    let mut digest = Context::new(&SHA256);
    let client = reqwest::Client::new();
    for part in answer["result"]["artifacts"][0]["parts"].as_array().unwrap_or_else(|| panic!("{answer}")) {
        let mark = &part["metadata"]["ruvector"]["offload"];
        assert_eq!(mark["bytes"], json!(MIB), "{part}");
        let url = part["url"].as_str().expect("a link");
        let mut whole = Vec::new();
        for range in ["bytes=0-99999", "bytes=100000-"] {
            let response = client.get(url).header("range", range).send().await.expect("an answer");
            assert_eq!(response.status(), 206);
            let digest = response.headers()["repr-digest"].to_str().expect("text").to_owned();
            whole.extend_from_slice(&response.bytes().await.expect("the range"));
            let said = mark["digest"].as_str().expect("a digest").trim_start_matches("sha256:");
            let encoded = digest.trim_start_matches("sha-256=:").trim_end_matches(':');
            assert_eq!(hex(&STANDARD.decode(encoded).expect("base64")), said);
        }
        let of_part = hex(aws_lc_rs::digest::digest(&SHA256, &whole).as_ref());
        assert_eq!(mark["digest"], json!(format!("sha256:{of_part}")));
        digest.update(&whole);
    }
    hex(digest.finish().as_ref())
}

/// Where the node puts large parts: each has a folder of its own in the tier.
fn offloaded(tier: &tempfile::TempDir) -> std::path::PathBuf {
    let nodes: Vec<_> = std::fs::read_dir(tier.path().join("offload")).unwrap().flatten().collect();
    assert_eq!(nodes.len(), 1);
    nodes[0].path()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_artifact_arrives_whole_in_pieces_and_by_link() {
    let stop = CancellationToken::new();
    let (_home, server, _tier) = front(stop.clone()).await;
    // A task without an artifact: nothing large has been through the node yet.
    assert_eq!(streamed(&server, 0).await.1, expected(0));
    let before = memory(&server, "VmRSS");
    forget_peak(&server);
    let (task, arrived) = streamed(&server, PIECES).await;
    assert_eq!(arrived, expected(PIECES));
    let by_pieces = memory(&server, "VmHWM").saturating_sub(before);
    forget_peak(&server);
    assert_eq!(fetched(&server, &task).await, expected(PIECES));
    let by_link = memory(&server, "VmHWM").saturating_sub(before);
    println!("mebibytes={PIECES} grown_by_pieces={by_pieces} grown_by_link={by_link}");
    assert!(by_pieces.max(by_link) <= MOST_GROWTH, "64 pieces of 1 MiB may take 16 MiB of the node");
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn small_answers_are_whole_and_links_are_their_owners_alone() {
    let stop = CancellationToken::new();
    let (_home, server, tier) = front(stop.clone()).await;
    let (task, _) = streamed(&server, 2).await;
    let whole: Value = request(&server, "GetTask", &json!({ "id": task })).send().await.unwrap().json().await.unwrap();
    let parts = whole["result"]["artifacts"][0]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    for (number, part) in parts.iter().enumerate() {
        assert_eq!(STANDARD.decode(part["raw"].as_str().unwrap()).unwrap(), piece(number));
    }
    // Kept in the log as links: the whole task is small.
    let folder = offloaded(&tier).join(&task);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    let get = async |path: String| reqwest::get(format!("{}{path}", server.url())).await.unwrap().status().as_u16();
    let name = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().file_name();
    let name = name.into_string().unwrap();
    assert_eq!(get(format!("/artifacts/{task}/{name}")).await, 200);
    for wrong in [
        format!("/artifacts/{task}/{}", "0".repeat(64)),
        format!("/artifacts/00000000-0000-0000-0000-000000000000/{name}"),
        format!("/artifacts/{task}/..%2f..%2fgrants"),
        "/artifacts/../../etc/passwd".to_owned(),
        format!("/artifacts/{task}/"),
    ] {
        assert_eq!(get(wrong.clone()).await, 404, "{wrong}");
    }
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_says_is_put_away_too_and_the_agent_is_told_all_of_it() {
    let stop = CancellationToken::new();
    let (_home, server, tier) = front(stop.clone()).await;
    let story = "once upon a time ".repeat(20_000);
    let parts = json!([{ "text": "echo" }, { "text": story }]);
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": parts });
    let sent = request(&server, "SendMessage", &json!({ "message": message })).send().await.unwrap();
    let sent: Value = sent.json().await.unwrap();
    let task = &sent["result"]["task"];
    assert_eq!(task["status"]["message"]["parts"][0]["text"], json!(story), "{:.300}", sent.to_string());
    assert_eq!(task["history"][0]["parts"][1]["text"], json!(story));
    let folder = offloaded(&tier).join(task["id"].as_str().unwrap());
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "both are the same part");
    let asked = request(&server, "GetTask", &json!({ "id": task["id"] })).header("A2A-Extensions", REFERENCES);
    let links: Value = asked.send().await.unwrap().json().await.unwrap();
    for part in [&links["result"]["status"]["message"]["parts"][0], &links["result"]["history"][0]["parts"][1]] {
        let fetched = reqwest::get(part["url"].as_str().expect("a link")).await.unwrap();
        assert_eq!(fetched.text().await.unwrap(), story);
    }
    let card = reqwest::get(format!("{}/.well-known/agent-card.json", server.url())).await.unwrap();
    let card: Value = card.json().await.unwrap();
    let declared = card["capabilities"]["extensions"].as_array().unwrap();
    assert!(declared.iter().any(|extension| extension["uri"] == REFERENCES), "{card}");
    stop.cancel();
}

/// What an agent or a caller put away is bytes for whoever fetches it, whatever it says that it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_was_put_away_is_no_page_in_a_browser() {
    let stop = CancellationToken::new();
    let (_home, server, _tier) = front(stop.clone()).await;
    let page = format!("<!doctype html><script>alert(1)</script>{}", "x".repeat(400_000));
    let parts = json!([
        { "text": "echo" },
        { "text": page, "mediaType": "text/html", "filename": "page.html" },
        { "raw": STANDARD.encode(&page), "mediaType": "text/html; charset=utf-8", "filename": "page.html" },
        { "raw": STANDARD.encode(format!("<svg onload='alert(1)'/>{page}")), "mediaType": "image/svg+xml" },
    ]);
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": parts });
    let sent = request(&server, "SendMessage", &json!({ "message": message })).send().await.unwrap();
    let nosniff = |response: &reqwest::Response| response.headers()["x-content-type-options"].clone();
    assert_eq!(
        (nosniff(&sent), &sent.headers()["content-type"]),
        ("nosniff".parse().unwrap(), &"application/json".parse().unwrap())
    );
    let sent: Value = sent.json().await.unwrap();
    let asked = request(&server, "GetTask", &json!({ "id": sent["result"]["task"]["id"] })).header("A2A-Extensions", REFERENCES);
    let links: Value = asked.send().await.unwrap().json().await.unwrap();
    let parts = links["result"]["status"]["message"]["parts"].as_array().unwrap_or_else(|| panic!("{links:.300}"));
    assert_eq!(parts.len(), 3);
    for part in parts {
        let fetched = reqwest::Client::new().get(part["url"].as_str().expect("a link"));
        let fetched = fetched.header("Accept", "text/html").send().await.unwrap();
        assert_eq!(fetched.status(), 200, "{part}");
        assert_eq!(fetched.headers()["content-type"], "application/octet-stream", "{part}");
        assert_eq!(nosniff(&fetched), "nosniff", "{part}");
        assert!(fetched.text().await.unwrap().contains("<script>"), "it is there as it was");
    }
    for path in ["/.well-known/agent-card.json", "/healthz", "/artifacts/no/such", "/tasks/none"] {
        let answer = reqwest::get(format!("{}{path}", server.url())).await.unwrap();
        assert_eq!(nosniff(&answer), "nosniff", "{path}");
    }
    stop.cancel();
}
