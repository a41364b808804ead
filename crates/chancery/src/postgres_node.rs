//! A node whose tasks are in a PostgreSQL database, and its end when another node takes that over.

use std::sync::Arc;

use chancery_core::{Chancery, LoopNeed, Scribe, StoreError};
use chancery_identity::SealKey;
use chancery_store::{PostgresOptions, PostgresStore};

use crate::build_error::BuildError;
use crate::opened_store::OpenedStore;

/// Notices when the database refuses the node permanently.
#[derive(Clone, Debug)]
pub(crate) struct Takeover(Arc<PostgresStore>);

/// Opens the database, and takes it over from the node that used it before.
pub(crate) async fn open(
    options: PostgresOptions,
    scribe: Option<Arc<dyn Scribe>>,
    key: SealKey,
) -> Result<OpenedStore, BuildError> {
    let shown = options.shown_url();
    let store = Arc::new(PostgresStore::open_recording(options, scribe).await?);
    tracing::info!(
        database = shown,
        "tasks are in this PostgreSQL database. One node uses it at a time: a node that used it before answers no more calls"
    );
    Ok(OpenedStore { store: store.clone(), outbox: store.clone(), key, takeover: Some(Takeover(store)) })
}

/// Says what keeps a node from working with the database. It changes nothing there.
pub(crate) async fn probe(options: PostgresOptions) -> Result<(), StoreError> {
    PostgresStore::probe(options).await
}

impl Takeover {
    /// Retires the node when the database refuses it permanently. A node that goes on would show tasks as they were.
    pub(crate) fn watch(self, chancery: &Chancery) {
        let (retiring, stopping) = (chancery.clone(), chancery.shutdown_token());
        chancery.loops().start("database", LoopNeed::Vital, async move {
            tokio::select! {
                () = stopping.cancelled() => {}
                reason = self.0.refused() => {
                    tracing::error!(
                        %reason,
                        "this node has lost its database permanently: its streams are closed, calls get UNAVAILABLE and /readyz answers 503. \
                         One node uses a database at a time: stop this node, or stop the other one and restart this one"
                    );
                    retiring.retire(reason.to_string());
                }
            }
        });
    }
}
