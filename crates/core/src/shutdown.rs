//! The end of a node: it takes no more calls, gives its turns some time, and lets go of the store.

use std::time::Duration;

use chancery_protocol::{Error, ErrorKind};
use tokio_util::sync::CancellationToken;

use crate::find::come_back;
use crate::service::{Chancery, ChanceryInner};
use crate::tracker::{LoopTracker, watched};
use crate::{StoreError, StoreTrouble};

impl Chancery {
    /// Fires when the node begins to stop.
    pub fn shutdown_token(&self) -> CancellationToken {
        self.0.shutdown.clone()
    }

    /// The background loops of the node. A loop ends when the shutdown token fires, and a stop waits for it.
    pub fn loops(&self) -> &LoopTracker {
        &self.0.loops
    }

    /// Ends everything that runs in the background without waiting for it. Tasks that were worked on are taken up at the next
    /// start, as after the end of the process. Where nodes share the store, one of them takes the tasks when the lease ends.
    pub fn abandon(&self) {
        self.0.abandon();
    }

    /// Whether the node can take calls.
    pub async fn check(&self) -> Result<(), StoreError> {
        if let Some(by) = self.0.cluster.as_ref().and_then(|member| member.successor()) {
            let message = format!("the lease of this node ended, and node {by} has its tasks now");
            return Err(StoreError::new(message).of_trouble(StoreTrouble::Unavailable));
        }
        if self.0.shutdown.is_cancelled() {
            return Err(StoreError::new(self.0.retired.get().map_or("shutting down", |why| &**why)));
        }
        self.0.store.check().await
    }

    /// Tasks being worked on or read, and open streams.
    pub fn load(&self) -> (usize, usize) {
        (self.0.open.len(), self.0.streams.open())
    }

    /// Closes streams, gives running turns some time, and makes sure that all that was recorded is durable. Where nodes share
    /// the store, the others go on with the tasks whose turns still run then.
    pub async fn shut_down(&self, patience: Duration) -> Result<(), StoreError> {
        let inner = &self.0;
        inner.shutdown.cancel();
        inner.background.close();
        if let Some(member) = &inner.cluster {
            inner.leave(member, patience).await;
        }
        let ended = async { tokio::join!(inner.background.wait(), inner.loops.ended()) };
        if tokio::time::timeout(patience, ended).await.is_err() {
            let (turns, loops) = (inner.background.len(), inner.loops.running());
            tracing::warn!(
                turns,
                ?loops,
                "turns or loops still run after the time for a shutdown; the next start resumes their tasks"
            );
        }
        if let Some(record) = &inner.record
            && let Err(fault) = record.sign(inner.clock.now()).await
        {
            tracing::error!(error = &fault as &dyn std::error::Error, "cannot sign the end of the record");
        }
        inner.store.close(patience).await
    }
}

impl ChanceryInner {
    pub(crate) fn abandon(&self) {
        self.shutdown.cancel();
        self.abandoned.cancel();
        if let Some(member) = &self.cluster {
            member.end();
        }
    }

    /// The answer of a node that takes no more calls.
    pub(crate) fn closed(&self) -> Error {
        if self.retired.get().is_some() {
            return come_back("another node has the tasks of this node now; call that one");
        }
        match self.cluster.as_ref().and_then(|member| member.successor()) {
            Some(_) => come_back("this node lost its lease on the store; another node has its tasks now"),
            None => Error::new(ErrorKind::Unavailable, "the node is shutting down"),
        }
    }

    /// Runs work that outlives the call that began it. A stop waits for it.
    pub(crate) fn in_background(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let abandoned = self.abandoned.clone();
        self.background.spawn(watched(name, async move {
            abandoned.run_until_cancelled(work).await;
        }));
    }
}
