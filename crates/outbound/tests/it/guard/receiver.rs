//! Listeners on the loopback that count who comes, and say what they are told to say.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
}

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) accepted: AtomicUsize,
    pub(crate) closed: AtomicUsize,
    pub(crate) written: AtomicU64,
    pub(crate) heard: AtomicU64,
}

impl Seen {
    /// Writes and counts; false once nobody listens any more.
    pub(crate) async fn write(&self, stream: &mut TcpStream, bytes: &[u8]) -> bool {
        let gone = stream.write_all(bytes).await.is_err();
        self.written.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        !gone
    }
}

impl Receiver {
    pub(crate) async fn new<F>(serve: impl Fn(TcpStream, Arc<Seen>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), serve)
    }

    pub(crate) fn on<F>(listener: TcpListener, serve: impl Fn(TcpStream, Arc<Seen>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let count = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.accepted.fetch_add(1, Ordering::SeqCst);
                let (work, count) = (serve(stream, count.clone()), count.clone());
                tokio::spawn(async move {
                    work.await;
                    count.closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, seen }
    }

    /// Reads one request head, answers these bytes and closes.
    pub(crate) async fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        Self::new(move |mut stream, seen| {
            let answer = answer.clone();
            async move {
                read_head(&mut stream).await;
                seen.write(&mut stream, &answer).await;
            }
        })
        .await
    }

    /// Says nothing, and counts what it is told.
    pub(crate) async fn listening() -> Self {
        Self::new(async |mut stream: TcpStream, seen: Arc<Seen>| {
            while stream.read_u8().await.is_ok() {
                seen.heard.fetch_add(1, Ordering::SeqCst);
            }
        })
        .await
    }

    pub(crate) fn heard(&self) -> u64 {
        self.seen.heard.load(Ordering::SeqCst)
    }

    pub(crate) fn accepted(&self) -> usize {
        self.seen.accepted.load(Ordering::SeqCst)
    }

    pub(crate) fn written(&self) -> u64 {
        self.seen.written.load(Ordering::SeqCst)
    }

    /// Waits until every connection's work has ended, which for endless work means: until we hung up.
    pub(crate) async fn all_closed(&self) -> bool {
        for _ in 0..500 {
            if self.seen.closed.load(Ordering::SeqCst) == self.accepted() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// The request up to its blank line.
pub(crate) async fn read_head(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

pub(crate) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}
