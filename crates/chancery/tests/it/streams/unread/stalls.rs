//! Streams of one HTTP/2 connection that get no window, each reset by itself.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::patience::BOUND;
use crate::support::server::{Server, Setup};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;

/// A connection of HTTP/2 that says exactly what it is told to.
struct RawConnection(TcpStream);

impl RawConnection {
    /// Opened with so much window for each stream.
    async fn open(server: &Server, window: u32) -> Self {
        let mut connection = Self(TcpStream::connect(server.url().trim_start_matches("http://")).await.expect("a connection"));
        connection.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("the node listens");
        // Setting 4 is the window a stream begins with.
        connection.put(SETTINGS, 0, 0, &[&[0, 4][..], &window.to_be_bytes()].concat()).await;
        connection
    }

    async fn put(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = (payload.len() as u32).to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat();
        self.0.write_all(&frame).await.expect("the node reads");
    }

    async fn post(&mut self, stream: u32, path: &str, content_type: &str, headers: &[(&str, &str)], body: &[u8]) {
        // POST over http; the rest is spelled out.
        let mut head = vec![0x83, 0x86];
        let fixed = [(":path", path), (":authority", "localhost"), ("content-type", content_type), ("a2a-version", "1.0")];
        for (name, value) in fixed.iter().chain(headers) {
            head.push(0);
            for text in [name, value] {
                head.push(u8::try_from(text.len()).expect("a short text"));
                head.extend_from_slice(text.as_bytes());
            }
        }
        self.put(HEADERS, END_HEADERS, stream, &head).await;
        self.put(DATA, END_STREAM, stream, body).await;
    }

    /// Kind, stream and payload of the next frame.
    async fn read(&mut self) -> (u8, u32, Vec<u8>) {
        let mut head = [0; 9];
        let mut payload = Vec::new();
        let reading = async {
            self.0.read_exact(&mut head).await.expect("a frame");
            payload.resize(u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize, 0);
            self.0.read_exact(&mut payload).await.expect("a whole frame");
        };
        tokio::time::timeout(BOUND, reading).await.expect("a frame comes");
        (head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload)
    }
}

fn node(stall: u32) -> Server {
    Setup::conformance().config(&format!("[limits]\nwrite_stall_ms = {stall}\nstream_heartbeat_ms = 50\n")).start()
}

async fn parked(server: &Server, bytes: usize) -> String {
    let sent = server.send(&format!("ask {}", "x".repeat(bytes))).await;
    sent["task"]["id"].as_str().expect("a task").to_owned()
}

fn json_rpc(method: &str, id: &str) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "id": id } }).to_string().into_bytes()
}

/// A gRPC message with only its first field.
fn grpc(id: &str, field: u8) -> Vec<u8> {
    let message = [&[field << 3 | 2, id.len() as u8][..], id.as_bytes()].concat();
    [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat()
}

#[tokio::test]
async fn each_stream_without_a_window_is_reset_and_its_connection_goes_on() {
    const GRPC: &str = "application/grpc";
    const JSON: &str = "application/json";
    let server = node(300);
    for (bytes, window) in [(10, 0), (100_000, 0), (100_000, 1)] {
        let id = parked(&server, bytes).await;
        let mut connection = RawConnection::open(&server, window).await;
        connection.post(1, "/", JSON, &[], &json_rpc("GetTask", &id)).await;
        connection.post(3, "/", JSON, &[], &json_rpc("SubscribeToTask", &id)).await;
        connection.post(5, "/", JSON, &[], &json_rpc("ListTasks", "")).await;
        connection.post(7, "/lf.a2a.v1.A2AService/GetTask", GRPC, &[("te", "trailers")], &grpc(&id, 2)).await;
        connection.post(9, "/lf.a2a.v1.A2AService/SubscribeToTask", GRPC, &[("te", "trailers")], &grpc(&id, 2)).await;
        let (mut answered, mut reset, mut taken) = (Vec::new(), Vec::new(), 0);
        while reset.len() < 5 {
            match connection.read().await {
                (HEADERS, stream, _) => answered.push(stream),
                (RST_STREAM, stream, code) => {
                    assert_eq!(code, [0, 0, 0, 8], "it is cancelled");
                    reset.push(stream);
                }
                (DATA, _, payload) => taken += payload.len(),
                (SETTINGS, _, settings) if !settings.is_empty() => connection.put(SETTINGS, 1, 0, &[]).await,
                _ => {}
            }
        }
        reset.sort_unstable();
        answered.sort_unstable();
        answered.dedup();
        assert_eq!((answered, reset), (vec![1, 3, 5, 7, 9], vec![1, 3, 5, 7, 9]), "{bytes} bytes, window {window}");
        assert!(taken <= 5 * window as usize, "{taken} bytes came without a window");
        connection.put(PING, 0, 0, &[7; 8]).await;
        while connection.read().await != (PING, 0, vec![7; 8]) {}
    }
}

#[tokio::test]
async fn a_reader_that_takes_a_little_each_time_gets_all_of_it() {
    let server = node(1000);
    let id = parked(&server, 100_000).await;
    let mut connection = RawConnection::open(&server, 0).await;
    connection.post(1, "/", "application/json", &[], &json_rpc("GetTask", &id)).await;
    let mut taken = Vec::new();
    // Twenty steps of a tenth of a second each are twice as long as it may take nothing.
    while taken.len() < 200_000 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        connection.put(WINDOW_UPDATE, 0, 0, &16_384_u32.to_be_bytes()).await;
        connection.put(WINDOW_UPDATE, 0, 1, &16_384_u32.to_be_bytes()).await;
        let before = taken.len();
        while taken.len() == before {
            match connection.read().await {
                (DATA, 1, payload) => taken.extend(payload),
                (RST_STREAM, ..) => panic!("reset after {} bytes", taken.len()),
                _ => {}
            }
        }
    }
}
