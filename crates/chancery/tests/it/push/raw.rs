//! Listeners below HTTP: a canary nobody may reach, and receivers that say bytes of their own choosing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::support::ports::lasting_address;

/// Counts who comes, and how many have left again.
pub(super) struct Raw {
    pub(super) address: SocketAddr,
    counts: Arc<(AtomicUsize, AtomicUsize)>,
    serving: tokio::task::JoinHandle<()>,
}

impl Raw {
    pub(super) async fn new<F>(serve: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(lasting_address()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::<(AtomicUsize, AtomicUsize)>::default();
        let counting = Arc::clone(&counts);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counting.0.fetch_add(1, Ordering::SeqCst);
                let (work, counting) = (serve(stream), Arc::clone(&counting));
                tokio::spawn(async move {
                    work.await;
                    counting.1.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, counts, serving }
    }

    /// Whoever comes here went where nobody may go.
    pub(super) async fn canary() -> Self {
        Self::new(async |stream| drop(stream)).await
    }

    pub(super) fn came(&self) -> usize {
        self.counts.0.load(Ordering::SeqCst)
    }

    pub(super) fn left(&self) -> usize {
        self.counts.1.load(Ordering::SeqCst)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A whole request; false if there was none.
pub(super) async fn read_request(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> bool {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return false,
        }
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.split_once("content-length: ").and_then(|(_, rest)| rest.split("\r\n").next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.is_ok()
}
