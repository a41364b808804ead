//! Sessions that read. A read waits for a database that is away, and is tried again on a new session when one breaks.

use std::ops::ControlFlow;
use std::time::Duration;

use chancery_core::StoreError;
use deadpool::managed::{Object, Pool, PoolError};
use deadpool_postgres::{ClientWrapper, Transaction};
use tokio::time::Instant;
use tokio_postgres::IsolationLevel;

use super::connection::DatabaseConnector;
use super::fault::{self, FaultScope, PostgresFault};

/// The first wait before a read is tried again; each next is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// The sessions that read.
#[derive(Clone, Debug)]
pub(super) struct PostgresReaders {
    pool: Pool<DatabaseConnector>,
    patience: Duration,
}

/// A session that is lent for one read.
pub(super) type LentSession = Object<DatabaseConnector>;

/// One read, which may take several attempts.
pub(super) struct ReadAttempts<'r> {
    readers: &'r PostgresReaders,
    what: &'static str,
    until: Instant,
    wait: Duration,
}

/// Reads by a function of a session, as often as patience allows. Answers its result, or the last fault in words.
macro_rules! read {
    ($readers:expr, $what:expr, |$db:ident| $work:expr) => {{
        let mut attempts = $readers.attempts($what);
        loop {
            let outcome = match attempts.session().await {
                Ok(mut session) => {
                    let $db = &mut *session;
                    let outcome = attempts.within($work).await;
                    attempts.give_back(session, &outcome);
                    outcome
                }
                Err(fault) => Err(fault),
            };
            if let std::ops::ControlFlow::Break(answer) = attempts.after(outcome).await {
                break answer;
            }
        }
    }};
}
pub(super) use read;

impl PostgresReaders {
    pub(super) fn new(connector: DatabaseConnector) -> Result<Self, StoreError> {
        let options = connector.options();
        let (patience, most) = (options.patience(), options.readers.max(1));
        let pool = Pool::builder(connector).max_size(most).build();
        let pool = pool.map_err(|error| StoreError::caused_by("the pool of reading sessions cannot be made", error))?;
        Ok(Self { pool, patience })
    }

    pub(super) fn attempts(&self, what: &'static str) -> ReadAttempts<'_> {
        ReadAttempts { readers: self, what, until: Instant::now() + self.patience, wait: FIRST_WAIT }
    }

    /// The same, but no longer than so long.
    pub(super) fn with_patience(&self, most: Duration) -> Self {
        Self { pool: self.pool.clone(), patience: self.patience.min(most) }
    }

    pub(super) fn close(&self) {
        self.pool.close();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.pool.is_closed()
    }
}

impl ReadAttempts<'_> {
    pub(super) async fn session(&self) -> Result<LentSession, PostgresFault> {
        let lent = tokio::time::timeout_at(self.until, self.readers.pool.get()).await;
        match lent.map_err(|_| PostgresFault::away("all reading sessions are busy"))? {
            Ok(session) => Ok(session),
            Err(PoolError::Backend(fault)) => Err(fault),
            Err(error) => Err(PostgresFault::away(error.to_string())),
        }
    }

    pub(super) async fn within<T>(&self, work: impl Future<Output = Result<T, PostgresFault>>) -> Result<T, PostgresFault> {
        let done = tokio::time::timeout_at(self.until, work).await;
        done.unwrap_or_else(|_| Err(PostgresFault::away("it did not answer in time")))
    }

    /// A session whose answer is outstanding is not lent again.
    pub(super) fn give_back<T>(&self, session: LentSession, outcome: &Result<T, PostgresFault>) {
        if outcome.as_ref().is_err_and(|fault| fault.scope() == FaultScope::Connection) {
            drop(Object::take(session));
        }
    }

    /// Answers whether the read is over, with what.
    pub(super) async fn after<T>(&mut self, outcome: Result<T, PostgresFault>) -> ControlFlow<Result<T, StoreError>> {
        let fault = match outcome {
            Ok(found) => return ControlFlow::Break(Ok(found)),
            Err(fault) => fault,
        };
        if self.readers.is_closed() {
            return ControlFlow::Break(Err(fault::closed()));
        }
        let may_pass = matches!(fault.scope(), FaultScope::Connection | FaultScope::TryAgain);
        if !may_pass || Instant::now() + self.wait >= self.until {
            return ControlFlow::Break(Err(fault.while_doing(self.what)));
        }
        tokio::time::sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        ControlFlow::Continue(())
    }
}

/// One view for several statements.
pub(super) async fn view(session: &mut ClientWrapper) -> Result<Transaction<'_>, PostgresFault> {
    let view = session.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    Ok(view.start().await?)
}
