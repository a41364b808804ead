//! What a built node does: lets callers in, reloads its config and certificates, and shuts down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::{Chancery, StoreError, spawn_watched};
use chancery_identity::SealKey;
use chancery_identity::credentials::CertificateName;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Node;
use crate::build_error::BuildError;
use crate::data_folder::DataFolder;
use crate::record_keeper;
use crate::reload::{ReloadError, Reloaded};

impl Node {
    #[cfg(test)]
    pub(crate) fn running(&self) -> &crate::reload::RunningNode {
        self.reloader.running()
    }

    /// Returns a router with every path of the node, to merge into an axum app. The node runs as long as the router exists.
    pub fn router(&self) -> axum::Router {
        self.doors_handle.router().layer(axum::Extension(Arc::clone(&self.ends)))
    }

    /// Binds the address that the config names with `listen`. [`serve`](Self::serve) takes this listener, or one of the
    /// program.
    pub async fn bind(&self) -> std::io::Result<TcpListener> {
        TcpListener::bind(self.reloader.running().config().node.listen).await
    }

    /// Binds the address that the config names with `swp.listen`, or returns nothing if it names none.
    #[cfg(feature = "swp")]
    pub async fn bind_swp(&self) -> std::io::Result<Option<TcpListener>> {
        match self.reloader.running().config().swp.door.listen {
            Some(listen) => TcpListener::bind(listen).await.map(Some),
            None => Ok(None),
        }
    }

    /// Serves HTTP on a listener until `stop` fires or the node ends, and returns once the open connections are closed.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) {
        let stop = self.or_ended(stop);
        chancery_inbound::serve(listener, self.tls.clone(), self.doors_handle.clone(), stop.0.clone()).await;
    }

    /// Serves SWP on a listener, in the same way. With `[tls]` peers present certificates. Without it every host on the path
    /// can read the frames.
    #[cfg(feature = "swp")]
    pub async fn serve_swp(&self, listener: TcpListener, stop: CancellationToken) {
        let stop = self.or_ended(stop);
        chancery_inbound::serve_swp(listener, self.swp_tls.clone(), self.doors_handle.clone(), stop.0.clone()).await;
    }

    /// Returns a token that fires after a panic in a background loop that the node needs. `serve` and `serve_swp` then return.
    pub fn failed(&self) -> CancellationToken {
        self.chancery.loops().failed()
    }

    /// Returns how often each background loop has panicked, by its name. A loop without a panic is not in the map.
    pub fn loop_panics(&self) -> BTreeMap<&'static str, u64> {
        self.chancery.loops().panics()
    }

    /// Fires with `stop`, and when a loop failed that the node needs.
    fn or_ended(&self, stop: CancellationToken) -> EitherStop {
        let (either, failed) = (CancellationToken::new(), self.failed());
        let fires = either.clone();
        let waiting = spawn_watched("stop of a listener", async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = failed.cancelled() => {}
            }
            fires.cancel();
        });
        EitherStop(either, waiting)
    }

    /// Returns whether the node accepts calls without credentials, because it has no callers.
    pub fn is_open(&self) -> bool {
        self.doors_handle.doors().authenticator().is_open()
    }

    /// Reloads the config file. Either all of it is applied, or nothing is and the error lists every fault.
    pub async fn reload(&self) -> Result<Reloaded, ReloadError> {
        self.reloader.reload().await
    }

    /// Reloads the config file whenever it changes. A node without one returns an error. Needs the feature `cli`.
    #[cfg(feature = "cli")]
    pub fn watch_config(&self) -> Result<(), BuildError> {
        self.reloader.watch()
    }

    /// Returns whether the node has a certificate.
    pub fn speaks_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns the fingerprint of the certificate for new connections.
    pub fn certificate(&self) -> Option<CertificateName> {
        self.tls.as_ref().map(|tls| CertificateName::Sha256(SealKey::digest(&tls.certificate())))
    }

    /// Reads certificate and key again, for new connections. A fault changes nothing.
    pub fn reload_tls(&self) -> Result<(), BuildError> {
        for tls in [&self.tls, &self.swp_tls].into_iter().flatten() {
            if let Some(material) = self.tls_config.load()? {
                tls.replace(material)?;
            }
        }
        Ok(())
    }

    /// Returns the service of the node: calls, tasks, trees, budgets, freezes and bills.
    pub fn chancery(&self) -> &Chancery {
        &self.chancery
    }

    /// Returns the data folder, if the node has one.
    pub fn data_folder(&self) -> Option<&DataFolder> {
        self.folder.as_deref()
    }

    /// Stops the node: closes streams, waits up to `patience` for running turns, and flushes the store.
    pub async fn shut_down(&self, patience: Duration) -> Result<(), StoreError> {
        record_keeper::conclude(&self.chancery, &self.keys).await;
        self.chancery.shut_down(patience).await
    }
}

/// The stop of a listener, and the task that waits for its causes. A listener that is dropped stops too: its connections run in tasks
/// of their own, which would keep the node.
struct EitherStop(CancellationToken, JoinHandle<()>);

impl Drop for EitherStop {
    fn drop(&mut self) {
        self.1.abort();
        self.0.cancel();
    }
}

/// Ends what runs in the background when the node and all its routers are dropped, also without `shut_down`. Tasks that were worked on
/// are taken up at the next start.
#[derive(Debug)]
pub(super) struct EndsWithLast(pub(super) Chancery);

impl Drop for EndsWithLast {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
