//! A TCP proxy between a node and its database that loses some of the notifications, and can be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Debug)]
struct LossyState {
    target: u16,
    /// Of so many notifications one is lost.
    one_in: usize,
    heard: AtomicUsize,
    lost: AtomicUsize,
    /// Counts up when all connections are cut.
    cut: watch::Sender<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct LossyProxy {
    address: SocketAddr,
    state: Arc<LossyState>,
}

impl LossyProxy {
    pub(super) async fn to(target: u16, one_in: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (heard, lost) = (AtomicUsize::default(), AtomicUsize::default());
        let state = Arc::new(LossyState { target, one_in, heard, lost, cut: watch::Sender::new(0) });
        let proxy = Self { address: listener.local_addr().unwrap(), state: Arc::clone(&state) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, Arc::clone(&state)));
            }
        });
        proxy
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many notifications came, and how many of them were lost.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.state.heard.load(Ordering::SeqCst), self.state.lost.load(Ordering::SeqCst))
    }

    pub(super) fn cut(&self) {
        self.state.cut.send_modify(|cuts| *cuts += 1);
    }
}

async fn carry(client: TcpStream, state: Arc<LossyState>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", state.target)).await else { return };
    let mut client = client;
    // The store asks for TLS first, and the server has none: one letter before the messages.
    let mut cut = state.cut.subscribe();
    cut.mark_unchanged();
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let answers = async {
        let mut letter = [0];
        if from_server.read_exact(&mut letter).await.is_err() || to_client.write_all(&letter).await.is_err() {
            return;
        }
        assert_eq!(letter, *b"N", "the server refuses TLS");
        loop {
            let mut head = [0; 5];
            if from_server.read_exact(&mut head).await.is_err() {
                return;
            }
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let mut message = head.to_vec();
            message.resize(length + 1, 0);
            if from_server.read_exact(&mut message[5..]).await.is_err() {
                return;
            }
            if head[0] == b'A' {
                let number = state.heard.fetch_add(1, Ordering::SeqCst);
                if number % state.one_in == state.one_in - 1 {
                    state.lost.fetch_add(1, Ordering::SeqCst);
                    continue;
                }
            }
            if to_client.write_all(&message).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = answers => {}
        _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
        _ = cut.changed() => {}
    }
}
