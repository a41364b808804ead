//! One batch: reads what it has to, decides about each of its writes, and sends all of it in one transaction.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::{Appended, NonceVerdict, SpentNonce, StoreError};
use chancery_protocol::{Caller, TaskId};
use deadpool_postgres::ClientWrapper;
use tokio_postgres::types::ToSql;

use super::append::{AppendRows, EncodedAppend, StoredNames};
use super::batch_sql::BatchSql;
use super::fault::{FaultScope, PostgresFault};
use super::fence::{FenceVerdict, WriterIdentity};
use super::flight::{self, FlightEnd, FlightOpening, FlightStatement};
use super::nonces;
use super::requests::{QueuedWrite, WriteRequest};
use super::task_rows::{EndedRows, RecordBlocks, RecordCheckpoints};
use super::writer_state::{OpenTaskHint, WriterState};

/// The result of a write whose batch is in.
pub(super) enum WriteOutcome {
    Append(Result<Appended, StoreError>),
    Nonce(NonceVerdict),
    /// The write has its own answer.
    Other,
}

/// What is known after an attempt to write a batch.
pub(super) enum BatchEnd {
    In(Vec<WriteOutcome>),
    /// Nothing of it is in.
    Out(PostgresFault),
    Doubt(DoubtfulBatch),
}

/// A batch that was sent, and whose answer is lost.
pub(super) struct DoubtfulBatch {
    /// They are true if it is in.
    pub(super) outcomes: Vec<WriteOutcome>,
    open: OpenTasks,
    nonces_before: u64,
    pub(super) fault: PostgresFault,
}

impl DoubtfulBatch {
    /// It is in.
    pub(super) fn confirm(self, state: &mut WriterState) -> Vec<WriteOutcome> {
        confirm(state, self.open);
        self.outcomes
    }

    /// Nothing of it is in.
    pub(super) fn take_back(self, state: &mut WriterState) {
        state.undone(self.nonces_before);
    }
}

/// How an attempt is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchMode {
    /// Looks at all that is stored before it decides, in the place of taking new names to be free.
    pub(super) careful: bool,
    pub(super) opening: FlightOpening,
    pub(super) answer_timeout: Duration,
}

/// What the writes of one batch may have only once: a second one waits for the next batch.
#[derive(Default)]
pub(super) struct BatchMembers {
    tasks: HashSet<TaskId>,
    keys: HashSet<(Caller, Arc<str>)>,
    names: HashSet<(Caller, Arc<str>)>,
    nonces: HashSet<[u8; 32]>,
}

impl BatchMembers {
    /// Answers whether a write can be of this batch.
    pub(super) fn admit(&mut self, request: &WriteRequest) -> bool {
        match request {
            WriteRequest::Append(prepared, _) => {
                let task = &prepared.append.task;
                let key = prepared.append.creation.as_ref().and_then(|creation| creation.idempotency.as_ref());
                let key = key.map(|used| (task.owner.clone(), Arc::clone(&used.key)));
                let name = task.client_task_id.clone().filter(|_| prepared.append.creation.is_some());
                let name = name.map(|name| (task.owner.clone(), name));
                let known = self.tasks.contains(&task.id)
                    || key.as_ref().is_some_and(|key| self.keys.contains(key))
                    || name.as_ref().is_some_and(|name| self.names.contains(name));
                // A write that waits keeps later ones of its task behind it, so it is remembered too.
                self.tasks.insert(task.id.clone());
                self.keys.extend(key);
                self.names.extend(name);
                !known
            }
            WriteRequest::Nonce(spent, _) => self.nonces.insert(spent.nonce),
            WriteRequest::Other(_) | WriteRequest::Close => true,
        }
    }
}

/// Tries to write a batch under a number. The state's session is open.
pub(super) async fn attempt(
    state: &mut WriterState,
    sql: &BatchSql,
    number: i64,
    batch: &mut [QueuedWrite],
    mode: BatchMode,
) -> BatchEnd {
    let nonces_before = state.nonces;
    let end = match state.session() {
        Ok(session) => attempt_on(&session, state, sql, number, batch, mode).await,
        Err(fault) => AttemptEnd::Out(fault),
    };
    match end {
        AttemptEnd::Out(fault) => {
            state.undone(nonces_before);
            BatchEnd::Out(fault)
        }
        AttemptEnd::In(outcomes, open) => {
            confirm(state, open);
            BatchEnd::In(outcomes)
        }
        AttemptEnd::Doubt(outcomes, open, fault) => BatchEnd::Doubt(DoubtfulBatch { outcomes, open, nonces_before, fault }),
    }
}

fn confirm(state: &mut WriterState, open: OpenTasks) {
    open.iter().for_each(|(task, open)| state.set_open(task, *open));
    state.committed();
}

/// What tasks the writer knows to be open once a batch is in.
type OpenTasks = Vec<(TaskId, Option<OpenTaskHint>)>;

/// What is known after the flight of an attempt.
enum AttemptEnd {
    In(Vec<WriteOutcome>, OpenTasks),
    Out(PostgresFault),
    Doubt(Vec<WriteOutcome>, OpenTasks, PostgresFault),
}

async fn attempt_on(
    session: &Arc<ClientWrapper>,
    state: &mut WriterState,
    sql: &BatchSql,
    number: i64,
    batch: &mut [QueuedWrite],
    mode: BatchMode,
) -> AttemptEnd {
    let identity = state.identity.clone();
    let mut opening = mode.opening;
    // Reads and decides. The transaction is open meanwhile where there is something to read.
    let decided = tokio::time::timeout(mode.answer_timeout, decide(session, state, sql, number, batch, mode, &mut opening)).await;
    let decided = decided.unwrap_or_else(|_| Err(PostgresFault::away("the database did not answer in time")));
    let (outcomes, rows) = match decided {
        Ok(decided) => decided,
        Err(fault) => return AttemptEnd::Out(taken_back(session, &identity, number, fault).await),
    };
    state.link();
    let ended_changes = state.ended.clone();
    let book = identity.book();
    let ended = EndedRows::of(identity.node, &ended_changes);
    let unwritten = state.chain.as_ref().map(|chain| chain.unwritten().clone()).unwrap_or_default();
    let blocks = RecordBlocks::of(book, &unwritten.blocks);
    let checkpoints = RecordCheckpoints::of(book, &unwritten.checkpoints);
    let sealed = unwritten.checkpoints.iter().filter(|one| one.sealed).map(|one| one.end.cast_signed()).max();
    let mut statements = Vec::new();
    let mut add = |sql, count: usize, values| {
        if count > 0 {
            statements.push(FlightStatement { sql, rows: count as i64, values });
        }
    };
    add(&sql.make, rows.made.num.len(), rows.made.values());
    let mut advanced = rows.advanced.values();
    if identity.is_member {
        advanced.extend([&identity.node as &(dyn ToSql + Sync), &identity.writer]);
    }
    add(&sql.advance, rows.advanced.num.len(), advanced);
    add(&sql.log, rows.log.task.len(), rows.log.values());
    add(&sql.keys, rows.keys.key.len(), rows.keys.values());
    add(&sql.links, rows.links.task.len(), rows.links.values());
    add(&sql.decisions, rows.decisions.id.len(), rows.decisions.values());
    let mut answered = rows.answered.values();
    answered.push(&identity.node);
    add(&sql.answers, rows.answered.num.len(), answered);
    add(&sql.ended, ended.tasks.len(), ended.values());
    add(&sql.blocks, blocks.first.len(), blocks.values());
    add(&sql.checkpoints, checkpoints.number.len(), checkpoints.values());
    if let Some(sealed) = &sealed {
        add(&sql.drop_signed, 1, vec![sealed as &(dyn ToSql + Sync), &book]);
    }
    let end = flight::send(session, &identity, &sql.fence, number, opening, &statements, mode.answer_timeout).await;
    if identity.is_member {
        let answers = match &end {
            FlightEnd::In(answers) => Some(answers),
            FlightEnd::Out(_) | FlightEnd::Doubt(_) => None,
        };
        let place = |sql: &str| statements.iter().position(|one| std::ptr::eq(one.sql, sql));
        let answer = |sql: &str| answers.and_then(|answers| answers.of(place(sql)?));
        state.news.add_appends(&rows, answer(&sql.advance), answer(&sql.answers));
        state.news.set_batch(number);
    }
    let open: OpenTasks = rows.open.into_iter().map(|(task, open)| (task.clone(), open)).collect();
    match end {
        FlightEnd::In(_) => AttemptEnd::In(outcomes, open),
        FlightEnd::Out(fault) => match flight::take_back(session, &identity, number).await {
            Ok(FenceVerdict::Out) => AttemptEnd::Out(fault),
            Ok(FenceVerdict::Refused(refusal)) => AttemptEnd::Out(refusal),
            // An answer was an error, and the row says that it is in: the row is what counts.
            Ok(FenceVerdict::In) => AttemptEnd::Doubt(outcomes, open, fault),
            Err(lost) => AttemptEnd::Doubt(outcomes, open, lost),
        },
        FlightEnd::Doubt(fault) => AttemptEnd::Doubt(outcomes, open, fault),
    }
}

/// Takes back a transaction whose commit was never sent. What the fence says comes before the fault that was seen first.
async fn taken_back(session: &ClientWrapper, identity: &WriterIdentity, number: i64, fault: PostgresFault) -> PostgresFault {
    if fault.scope() == FaultScope::Connection {
        return fault;
    }
    match flight::take_back(session, identity, number).await {
        Ok(FenceVerdict::Refused(refusal)) => refusal,
        Ok(FenceVerdict::In | FenceVerdict::Out) => fault,
        Err(lost) => lost,
    }
}

async fn decide<'b>(
    session: &Arc<ClientWrapper>,
    state: &mut WriterState,
    sql: &BatchSql,
    number: i64,
    batch: &'b mut [QueuedWrite],
    mode: BatchMode,
    opening: &mut FlightOpening,
) -> Result<(Vec<WriteOutcome>, AppendRows<'b>), PostgresFault> {
    let reads_first = |write: &QueuedWrite| match &write.request {
        WriteRequest::Append(prepared, _) => mode.careful || prepared.needs_look(state),
        WriteRequest::Nonce(..) | WriteRequest::Other(_) => true,
        WriteRequest::Close => false,
    };
    let creates = |write: &&QueuedWrite| matches!(&write.request, WriteRequest::Append(one, _) if one.append.creation.is_some());
    let is_read_first = batch.iter().any(reads_first);
    state.reserve_numbers(batch.iter().filter(creates).count()).await?;
    if is_read_first {
        flight::open(session, &state.identity, &sql.fence, number, mode.opening).await?;
        *opening = FlightOpening::Fenced;
    }
    let nonces: Vec<SpentNonce> = batch.iter().filter_map(|write| write.request.nonce()).collect();
    let mut verdicts = Vec::new();
    if !nonces.is_empty() {
        (verdicts, state.nonces) = nonces::spend(&**session, &nonces, state.nonces).await?;
    }
    for write in &mut *batch {
        if let WriteRequest::Other(job) = &mut write.request {
            job.perform(state).await?;
        }
    }
    // Looked at after the other writes, which may have changed a task.
    let batch: &'b [QueuedWrite] = batch;
    let is_unsure = |prepared: &EncodedAppend, state: &WriterState| mode.careful || prepared.needs_look(state);
    let appends = batch.iter().filter_map(|write| write.request.append());
    let unsure: Vec<&EncodedAppend> = appends.filter(|prepared| is_unsure(prepared, state)).collect();
    let looked =
        if unsure.is_empty() { StoredNames::default() } else { StoredNames::look(session, &unsure, state.identity.node).await? };
    let (mut rows, mut outcomes) = (AppendRows::default(), Vec::with_capacity(batch.len()));
    let mut verdicts = verdicts.into_iter();
    for write in batch {
        outcomes.push(match &write.request {
            WriteRequest::Append(prepared, _) => {
                let looked = is_unsure(prepared, state).then_some(&looked);
                WriteOutcome::Append(rows.add(state, prepared, looked).await?)
            }
            WriteRequest::Nonce(..) => {
                let missing = || PostgresFault::unreadable("a nonce without a verdict");
                WriteOutcome::Nonce(verdicts.next().ok_or_else(missing)?)
            }
            WriteRequest::Other(_) | WriteRequest::Close => WriteOutcome::Other,
        });
    }
    Ok((outcomes, rows))
}

impl WriteRequest {
    fn append(&self) -> Option<&EncodedAppend> {
        match self {
            Self::Append(prepared, _) => Some(prepared),
            _ => None,
        }
    }

    fn nonce(&self) -> Option<SpentNonce> {
        match self {
            Self::Nonce(spent, _) => Some(*spent),
            _ => None,
        }
    }
}
