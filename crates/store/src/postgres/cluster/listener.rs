//! Hears the wake-ups of other nodes on a session of its own.

use std::sync::Arc;
use std::time::Duration;

use super::inbox::WakeupInbox;
use super::lease;
use crate::postgres::connection::DatabaseConnector;
use crate::postgres::fault::PostgresFault;

/// The wait before a new session is tried.
const WAIT: Duration = Duration::from_millis(200);

/// After so much silence a query shows whether the session still works.
const QUIET: Duration = Duration::from_secs(5);
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Listens until its task is ended.
pub(super) async fn listen(inbox: Arc<WakeupInbox>, connector: DatabaseConnector, channel: String, node: i64) {
    let mut was_heard = true;
    loop {
        let Err(fault) = listen_once(&inbox, &connector, &channel, node, &mut was_heard).await else { continue };
        if std::mem::take(&mut was_heard) {
            tracing::warn!(%fault, "this node does not hear the others; it reads watched tasks when it renews its lease");
        }
        tokio::time::sleep(WAIT).await;
    }
}

async fn listen_once(
    inbox: &WakeupInbox,
    connector: &DatabaseConnector,
    channel: &str,
    node: i64,
    was_heard: &mut bool,
) -> Result<(), PostgresFault> {
    let (session, mut notices) = connector.open_listening().await?;
    session.batch_execute(&format!("LISTEN {channel}")).await?;
    // From here on nothing is lost, so what the rows say now is the beginning.
    inbox.start_over(lease::told_batches(&session, node).await?);
    *was_heard = true;
    loop {
        match tokio::time::timeout(QUIET, notices.recv()).await {
            Ok(Some(text)) => inbox.hear(&text),
            Ok(None) => return Err(PostgresFault::away("the connection ended")),
            Err(_) => {
                let asked = tokio::time::timeout(ANSWERS_WITHIN, session.batch_execute("SELECT 1")).await;
                asked.map_err(|_| PostgresFault::away("it did not answer in time"))??;
            }
        }
    }
}
