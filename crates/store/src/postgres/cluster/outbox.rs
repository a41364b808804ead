//! Wake-ups on their way out: added up while one is sent, and sent after the commit on a session of their own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio::sync::Notify;

use super::message::MessageWriter;
use super::news::WakeupNews;
use crate::postgres::columns::DatabaseSession;
use crate::postgres::connection::DatabaseConnector;
use crate::postgres::fault::PostgresFault;

/// The first wait before a wake-up is sent again; each next is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// After this time without an answer the connection counts as broken.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// What is to be sent. In a transaction that writes, a notification would make all nodes commit one after the other.
#[derive(Debug, Default)]
pub(in crate::postgres) struct WakeupOutbox {
    pending: Mutex<PendingNews>,
    added: Notify,
    sent: Notify,
}

#[derive(Debug, Default)]
struct PendingNews {
    news: WakeupNews,
    /// Something is on its way.
    is_sending: bool,
}

impl WakeupOutbox {
    pub(in crate::postgres) fn add(&self, news: WakeupNews) {
        if !news.is_empty() {
            self.pending.lock().unwrap_or_else(PoisonError::into_inner).news.add(news);
            self.added.notify_one();
        }
    }

    /// All that is to be sent by now. None if that is nothing.
    fn take(&self) -> Option<WakeupNews> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.is_sending = !pending.news.is_empty();
        pending.is_sending.then(|| std::mem::take(&mut pending.news))
    }

    fn is_idle(&self) -> bool {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.news.is_empty() && !pending.is_sending
    }

    pub(super) async fn until_sent(&self) {
        loop {
            let sent = self.sent.notified();
            if self.is_idle() {
                return;
            }
            sent.await;
        }
    }
}

/// Sends what is added. A message is sent again, under its number, until the server has it.
pub(super) async fn send(outbox: Arc<WakeupOutbox>, connector: DatabaseConnector, channel: String, node: i64) {
    let mut writer = MessageWriter::new(node);
    let mut session = None;
    loop {
        let Some(news) = outbox.take() else {
            outbox.sent.notify_waiters();
            outbox.added.notified().await;
            continue;
        };
        for message in writer.write(news) {
            let text = message.text();
            let mut wait = FIRST_WAIT;
            while let Err(fault) = send_one(&mut session, &connector, &channel, &text).await {
                if wait == FIRST_WAIT {
                    tracing::warn!(%fault, "a wake-up for other nodes cannot be sent; it is sent again");
                }
                session = None;
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
    }
}

async fn send_one(
    place: &mut Option<ClientWrapper>,
    connector: &DatabaseConnector,
    channel: &str,
    text: &str,
) -> Result<(), PostgresFault> {
    let session = match place.take().filter(|session| !session.is_closed()) {
        Some(session) => session,
        None => {
            let session = connector.open().await?;
            // A wake-up may be lost in a crash: whoever waits for it looks at the writers' rows too.
            session.batch_execute("SET synchronous_commit = off").await?;
            session
        }
    };
    let sent = tokio::time::timeout(ANSWERS_WITHIN, session.rows("SELECT pg_notify($1, $2)", &[&channel, &text])).await;
    sent.unwrap_or_else(|_| Err(PostgresFault::away("it did not answer in time")))?;
    *place = Some(session);
    Ok(())
}
