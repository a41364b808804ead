//! An agent below HTTP: it reads a request and then says any bytes at all, hangs, or goes away.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone, Debug)]
pub(crate) enum Then {
    Close,
    Hang,
    /// The same bytes again and again, for as long as anybody reads.
    Repeat(Vec<u8>),
}

/// The heads of the requests so far.
type Heads = Arc<Mutex<Vec<String>>>;

pub(crate) struct RawAgent {
    pub(crate) address: SocketAddr,
    heads: Heads,
}

impl RawAgent {
    pub(crate) async fn saying(answer: impl Into<Vec<u8>>, then: Then) -> Self {
        let answer: Vec<u8> = answer.into();
        Self::saying_in_turn(vec![(answer, then)]).await
    }

    /// The first connection gets the first answer; the last answer is repeated.
    pub(crate) async fn saying_in_turn(answers: Vec<(Vec<u8>, Then)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Heads::default();
        let noted = heads.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, noted) = (answers.clone(), noted.clone());
                tokio::spawn(async move { serve(stream, &answers, &noted).await });
            }
        });
        Self { address, heads }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/agent", self.address)
    }

    pub(crate) fn requests(&self) -> usize {
        self.heads.lock().unwrap().len()
    }

    /// The heads of the requests, in lower case.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().iter().map(|head| head.to_ascii_lowercase()).collect()
    }

    /// The first line of each request.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.heads.lock().unwrap().iter().map(|head| head.lines().next().unwrap_or_default().to_owned()).collect()
    }
}

async fn serve(mut stream: TcpStream, answers: &[(Vec<u8>, Then)], heads: &Heads) {
    let Some(head) = read_request(&mut stream).await else { return };
    let turn = {
        let mut heads = heads.lock().unwrap();
        heads.push(head);
        heads.len() - 1
    };
    let (answer, then) = &answers[turn.min(answers.len() - 1)];
    let _ = stream.write_all(answer).await;
    match then {
        Then::Close => {}
        Then::Hang => std::future::pending().await,
        Then::Repeat(bytes) => while stream.write_all(bytes).await.is_ok() {},
    }
}

/// The head and as much body as it announces.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return None,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let lower = head.to_ascii_lowercase();
    let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let length = length.map_or(0, |length| length.parse().unwrap());
    stream.read_exact(&mut vec![0; length]).await.ok().map(|_| head)
}

pub(crate) fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

pub(crate) fn json(body: &str) -> String {
    http("200 OK", "content-type: application/json\r\n", body)
}

/// The head of a stream of events whose end is the end of the connection.
pub(crate) const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
/// The same in chunks, so that an end can be told from a cut.
pub(crate) const CHUNKED: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub(crate) fn chunked(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}
