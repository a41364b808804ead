//! The one task that writes: takes what has queued up, commits it as one batch, answers. It also finds out whether a batch is in
//! whose answer was lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::StoreError;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::batch::{self, BatchEnd, BatchMembers, BatchMode, WriteOutcome};
use super::batch_sql::BatchSql;
use super::connection::DatabaseConnector;
use super::fault::{FaultScope, PostgresFault};
use super::fence::FenceVerdict;
use super::flight::{BEGIN, FlightOpening};
use super::health::WriterHealth;
use super::requests::{QueuedWrite, WriteRequest};
use super::writer_state::WriterState;

/// The first wait before a connection is tried again; each next is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// A batch never has more writes, regardless of the options: the numbers of new tasks come in blocks of as many.
const MOST_IN_BATCH: usize = 1000;

#[derive(Debug)]
pub(super) struct BatchWriter {
    connector: DatabaseConnector,
    queue: mpsc::Receiver<QueuedWrite>,
    health: Arc<WriterHealth>,
    state: WriterState,
    sql: BatchSql,
    /// The number of the last batch that is in.
    number: i64,
    batch_limit: usize,
    answer_timeout: Duration,
}

impl BatchWriter {
    pub(super) fn new(
        connector: DatabaseConnector,
        queue: mpsc::Receiver<QueuedWrite>,
        health: Arc<WriterHealth>,
        state: WriterState,
    ) -> Self {
        let options = connector.options();
        let (batch_limit, answer_timeout) = (options.batch_limit.clamp(1, MOST_IN_BATCH), options.answer_timeout());
        let sql = BatchSql::new(state.identity.is_member);
        Self { connector, queue, health, state, sql, number: 0, batch_limit, answer_timeout }
    }

    /// Works until the queue is closed and empty.
    pub(super) async fn run(mut self) {
        let mut waiting = VecDeque::new();
        let mut shared = false;
        loop {
            if waiting.is_empty() {
                let Some(write) = self.queue.recv().await else { return };
                waiting.push_back(write);
            }
            if shared {
                // Where there were several callers there will be more: they get their turn first, and the batch becomes whole.
                // Nothing waits for a clock, and a lone caller never waits.
                tokio::task::yield_now().await;
            }
            while let Ok(write) = self.queue.try_recv() {
                waiting.push_back(write);
            }
            let (writes, tidying) = self.take_batch(&mut waiting);
            shared = writes.len() > 1;
            self.write(writes, false).await;
            for write in tidying {
                self.write(vec![write], true).await;
            }
        }
    }

    /// Takes a batch out of what waits, and the tidying behind it. What cannot be of the same batch goes on waiting.
    fn take_batch(&mut self, waiting: &mut VecDeque<QueuedWrite>) -> (Vec<QueuedWrite>, Vec<QueuedWrite>) {
        let (mut batch, mut tidying) = (Vec::new(), Vec::new());
        let mut members = BatchMembers::default();
        let mut later = VecDeque::new();
        while batch.len() < self.batch_limit
            && let Some(write) = waiting.pop_front()
        {
            match &write.request {
                WriteRequest::Close => self.queue.close(),
                WriteRequest::Other(job) if job.is_tidying() => tidying.push(write),
                request if members.admit(request) => batch.push(write),
                _ => later.push_back(write),
            }
        }
        later.append(waiting);
        *waiting = later;
        (batch, tidying)
    }

    /// All of it in one transaction. If one write turns out to be impossible, each gets a transaction of its own.
    async fn write(&mut self, mut batch: Vec<QueuedWrite>, mut careful: bool) {
        let _busy = self.health.begin();
        let mut opening = FlightOpening::Begin;
        let mut wait = FIRST_WAIT;
        let mut last_fault = None;
        loop {
            refuse_late(&mut batch, last_fault.as_ref());
            if batch.is_empty() {
                if opening == FlightOpening::Held {
                    // The transaction ends with its session.
                    self.state.session = None;
                }
                return;
            }
            if let Err(fault) = self.connect().await {
                self.rest(fault, &mut last_fault, &mut wait).await;
                continue;
            }
            let mode = BatchMode { careful, opening, answer_timeout: self.answer_timeout };
            let end = batch::attempt(&mut self.state, &self.sql, self.number + 1, &mut batch, mode).await;
            opening = FlightOpening::Begin;
            let fault = match end {
                BatchEnd::In(outcomes) => return self.confirm(batch, outcomes),
                BatchEnd::Out(fault) => fault,
                BatchEnd::Doubt(doubtful) => match self.resolve(&batch, &doubtful.fault).await {
                    Ok(FenceVerdict::In) => {
                        let outcomes = doubtful.confirm(&mut self.state);
                        return self.confirm(batch, outcomes);
                    }
                    Ok(FenceVerdict::Out) => {
                        doubtful.take_back(&mut self.state);
                        opening = FlightOpening::Held;
                        continue;
                    }
                    Ok(FenceVerdict::Refused(fault)) | Err(fault) => {
                        doubtful.take_back(&mut self.state);
                        self.health.note(&fault);
                        return fail(batch, &fault);
                    }
                },
            };
            self.health.note(&fault);
            match fault.scope() {
                FaultScope::OneWrite if !careful => careful = true,
                FaultScope::OneWrite if batch.len() > 1 => {
                    for write in batch {
                        Box::pin(self.write(vec![write], true)).await;
                    }
                    return;
                }
                FaultScope::OneWrite | FaultScope::Whole => return fail(batch, &fault),
                FaultScope::TryAgain => last_fault = Some(fault),
                FaultScope::Connection => {
                    self.state.session = None;
                    self.rest(fault, &mut last_fault, &mut wait).await;
                }
            }
        }
    }

    /// Notes that the database is away, and waits a little.
    async fn rest(&mut self, fault: PostgresFault, last_fault: &mut Option<PostgresFault>, wait: &mut Duration) {
        if last_fault.is_none() {
            tracing::warn!(%fault, "the database is away; writes wait for it");
        }
        self.health.note(&fault);
        *last_fault = Some(fault);
        tokio::time::sleep(*wait).await;
        *wait = (*wait * 2).min(LONGEST_WAIT);
    }

    /// The batch is in.
    fn confirm(&mut self, batch: Vec<QueuedWrite>, outcomes: Vec<WriteOutcome>) {
        self.number += 1;
        self.health.wrote();
        batch.into_iter().zip(outcomes).for_each(|(write, outcome)| tell(write, outcome));
    }

    async fn connect(&mut self) -> Result<(), PostgresFault> {
        if self.state.session.as_ref().is_none_or(|session| session.is_closed()) {
            self.state.session = None;
            self.state.session = Some(Arc::new(self.connector.open().await?));
        }
        Ok(())
    }

    /// Finds out on a new session whether the batch that was sent last is in. If it is not, the transaction stays open and holds the
    /// writer's row, so that a first sending that comes late fails.
    async fn resolve(&mut self, batch: &[QueuedWrite], cause: &PostgresFault) -> Result<FenceVerdict, PostgresFault> {
        tracing::warn!(batch = self.number + 1, fault = %cause, "the answer to a batch is lost; asking whether it is in");
        self.state.session = None;
        let mut wait = FIRST_WAIT;
        loop {
            match self.try_to_resolve().await {
                Ok(verdict) => {
                    tracing::info!(batch = self.number + 1, ?verdict, "it is known whether the batch is in");
                    return Ok(verdict);
                }
                Err(fault) => {
                    self.health.note(&fault);
                    self.state.session = None;
                    // No caller waits any more, and the store is closed.
                    if self.queue.is_closed() && batch.iter().all(QueuedWrite::is_late) {
                        return Err(PostgresFault::away("the store closed before it knew whether the last batch is in"));
                    }
                }
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    async fn try_to_resolve(&mut self) -> Result<FenceVerdict, PostgresFault> {
        self.connect().await?;
        let session = self.state.session()?;
        session.batch_execute(BEGIN).await?;
        let row = self.state.identity.locked_row(&session).await?;
        let verdict = self.state.identity.verdict(row, self.number + 1);
        if !matches!(verdict, FenceVerdict::Out) {
            // With a synchronous standby, the answer to this commit comes after the batch is there too.
            session.batch_execute("COMMIT").await?;
        }
        Ok(verdict)
    }
}

impl QueuedWrite {
    /// Its caller does not wait any more.
    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// Answers the writes whose callers do not wait any more. None of them was made.
fn refuse_late(batch: &mut Vec<QueuedWrite>, fault: Option<&PostgresFault>) {
    if batch.iter().any(QueuedWrite::is_late) {
        let late = batch.extract_if(.., |write| write.is_late());
        let cause = fault.map_or_else(|| "it was busy for too long".to_owned(), ToString::to_string);
        let fault = PostgresFault::away(format!("nothing was written; {cause}"));
        late.for_each(|write| refuse(write, &fault));
    }
}

fn fail(batch: Vec<QueuedWrite>, fault: &PostgresFault) {
    batch.into_iter().for_each(|write| refuse(write, fault));
}

/// The requester may have stopped waiting; that is no error.
fn refuse(write: QueuedWrite, fault: &PostgresFault) {
    let error = |what: &str| -> StoreError { fault.clone().while_doing(what) };
    match write.request {
        WriteRequest::Append(_, answer) => drop(answer.send(Err(error("writing to the log")))),
        WriteRequest::Nonce(_, answer) => drop(answer.send(Err(error("keeping a nonce")))),
        WriteRequest::Other(job) => {
            let refusal = error(job.what());
            job.tell(Err(refusal));
        }
        WriteRequest::Close => {}
    }
}

fn tell(write: QueuedWrite, outcome: WriteOutcome) {
    match (write.request, outcome) {
        (WriteRequest::Append(_, answer), WriteOutcome::Append(verdict)) => drop(answer.send(verdict)),
        (WriteRequest::Nonce(_, answer), WriteOutcome::Nonce(verdict)) => drop(answer.send(Ok(verdict))),
        (WriteRequest::Other(job), _) => job.tell(Ok(())),
        (WriteRequest::Append(..) | WriteRequest::Nonce(..) | WriteRequest::Close, _) => {}
    }
}
