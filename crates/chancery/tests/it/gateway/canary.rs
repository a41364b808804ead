//! A listener that counts connections, for addresses that nobody may call.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::{TcpListener, TcpStream};

use crate::support::patience::soon;
use crate::support::ports::lasting_address;

/// Counts connections.
pub(super) struct Canary {
    pub(super) address: SocketAddr,
    came: Arc<AtomicUsize>,
}

impl Canary {
    pub(super) async fn listen() -> Self {
        let listener = TcpListener::bind(lasting_address()).await.expect("a free port");
        let address = listener.local_addr().expect("it has one");
        let came = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&came);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { address, came }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Connections are taken in the order they were made, so once our own is counted all before it are.
    pub(super) async fn nobody_came(&self, what: &str) {
        let before = self.came.load(Ordering::SeqCst);
        let _own = TcpStream::connect(self.address).await.expect("a connection");
        soon("our own visit", async || (self.came.load(Ordering::SeqCst) > before).then_some(())).await;
        let came = self.came.swap(0, Ordering::SeqCst);
        assert_eq!(came, 1, "{what}: somebody came beside ourselves");
    }
}
