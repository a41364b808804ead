//! Readers that stop reading: the runner does not wait for them, the server does not keep their events in memory, closes
//! them when their time is up, and they can go on where they were.
//!
//! The policy is neither to drop nor to block: events are in the log, and every reader reads the log at its own pace.

use std::time::Duration;

use chancery_outbound::Parser;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::patience::BOUND;
use crate::support::server::{Home, Server, Setup};

const CHUNKS: u64 = 60_000;
const READERS: usize = 12;
/// A batch of events and a socket's worth of bytes for each reader, and what allocators differ by from run to run. What
/// the readers do not take is about three times this.
const GROWTH_KIB: u64 = 30 * 1024;

/// The most memory the process has had so far.
fn peak_kib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("a process that runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// A socket that asks for a stream and then reads only the beginning of the answer.
async fn stalled_reader(server: &Server, method: &str, params: &Value) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    // As little as the system gives, so that the stall begins early.
    socket.set_recv_buffer_size(4096).unwrap();
    let mut socket = socket.connect(server.url().trim_start_matches("http://").parse().unwrap()).await.unwrap();
    let body = call(method, params).to_string();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nLast-Event-ID: 0\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all((head + &body).as_bytes()).await.unwrap();
    let mut beginning = [0; 15];
    socket.read_exact(&mut beginning).await.unwrap();
    assert_eq!(&beginning, b"HTTP/1.1 200 OK");
    socket
}

/// What the system still has for a socket whose other end is gone, as the events in it that are whole.
async fn left_over(mut socket: TcpStream) -> Vec<(u64, Value)> {
    let mut bytes = Vec::new();
    // A reset ends it as well as a close does.
    let _ = socket.read_to_end(&mut bytes).await;
    events_in(&dechunked(&bytes))
}

fn events_in(bytes: &[u8]) -> Vec<(u64, Value)> {
    let whole = Parser::new(1024 * 1024).feed(bytes).unwrap().into_iter();
    whole.map(|event| (event.id.unwrap().parse().unwrap(), result_of(&event.data))).collect()
}

fn result_of(data: &str) -> Value {
    serde_json::from_str::<Value>(data).expect("JSON")["result"].take()
}

/// The content of a chunked response of which the end may be missing.
fn dechunked(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a whole head") + 4;
    let (mut rest, mut content) = (&bytes[start..], Vec::new());
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        rest = &rest[line + 2..];
        content.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    content
}

/// A number the operator can ask for.
async fn number(server: &Server, home: &Home, path: &str, member: &str) -> u64 {
    let token = std::fs::read_to_string(home.data().join("admin.token")).expect("a token");
    let request = reqwest::Client::new().get(format!("{}/admin/v1/{path}", server.url())).bearer_auth(token.trim());
    request.send().await.unwrap().json::<Value>().await.unwrap()[member].as_u64().expect("a number")
}

/// Looks until the operator is told this number.
async fn until(server: &Server, home: &Home, path: &str, member: &str, expected: u64) {
    let looking = async {
        while number(server, home, path, member).await != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(BOUND, looking).await.unwrap_or_else(|_| panic!("{member} never came to be {expected}"));
}

fn call(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// Reads on after an event, as far as the server lets a reader on a busy machine.
async fn resumed(server: &Server, last: u64) -> Vec<(u64, Value)> {
    let request = reqwest::Client::new().post(server.url()).header("Last-Event-ID", last.to_string());
    let mut response = request.json(&call("tasks/resubscribe", &json!({ "id": "watched" }))).send().await.unwrap();
    let mut bytes = Vec::new();
    while let Ok(Some(more)) = response.chunk().await {
        bytes.extend_from_slice(&more);
    }
    events_in(&bytes)
}

#[tokio::test]
async fn readers_that_stop_reading_cost_nothing_and_lose_nothing() {
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--agent", "conformance"]).config("[limits]\nwrite_stall_ms = 400\n").start();
    let params = |id: &str| {
        let message = json!({ "role": "user", "parts": [{ "type": "text", "text": format!("stream {CHUNKS}") }] });
        json!({ "id": id, "message": message })
    };
    const COMPLETED: &str = "tasks?state=TASK_STATE_COMPLETED&total=true";

    // The same work with nobody watching any more: what it takes anyway.
    drop(stalled_reader(&server, "tasks/sendSubscribe", &params("unwatched")).await);
    until(&server, &home, COMPLETED, "total", 1).await;
    let before = peak_kib(&server);

    let mut readers = vec![stalled_reader(&server, "tasks/sendSubscribe", &params("watched")).await];
    for _ in 1..READERS {
        readers.push(stalled_reader(&server, "tasks/resubscribe", &json!({ "id": "watched" })).await);
    }

    // Nobody reads, and the task gets done all the same.
    until(&server, &home, COMPLETED, "total", 2).await;
    let growth = peak_kib(&server).saturating_sub(before);
    assert!(growth < GROWTH_KIB, "{growth} KiB more with {READERS} readers that take nothing");
    until(&server, &home, "node", "open_streams", 0).await;

    // All were cut off far from the end. The first one reads what is left for it and resumes.
    let mut events = left_over(readers.remove(0)).await;
    let missed = CHUNKS + 2 - events.len() as u64;
    assert!(missed > CHUNKS / 4, "the reader was to miss much of it, not {missed}");
    while events.last().is_none_or(|(_, event)| event["final"] != json!(true)) {
        let last = events.last().map_or(0, |(id, _)| *id);
        let more = resumed(&server, last).await;
        assert!(!more.is_empty(), "nothing after {last}");
        events.extend(more);
    }
    assert!(events.iter().map(|(id, _)| *id).eq(1..=CHUNKS + 2), "every event once and in order");
    for (chunk, (_, event)) in (1..=CHUNKS).zip(&events[1..]) {
        assert_eq!(event["artifact"]["parts"][0]["text"], json!(format!("chunk-{chunk} ")));
    }
    assert_eq!(events.last().unwrap().1["status"]["state"], "completed");
    println!("{growth} KiB grown; {missed} of {} events came by resuming", CHUNKS + 2);
}
