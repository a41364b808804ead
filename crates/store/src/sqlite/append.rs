//! Writes one append inside the transaction of its batch.

mod binding;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use chancery_core::push::{NewRegistration, Registered};
use chancery_core::{Append, Appended, Idempotency, Keyed, RecordLines, Spend, StoreError};
use chancery_protocol::{TaskId, TaskState, Timestamp};
use foldhash::fast::RandomState;
use rusqlite::{Connection, OptionalExtension, Statement};

use self::binding::{bind_progress, bind_task};
use super::ended_counts::CountChanges;
use super::entries::place;
use super::fault::SqliteFault;
use super::keys::KeyTable;
use super::ledger::{self, BoundRow, FREE_SPEND_COLUMNS, LINEAGE_COLUMNS, Ledgering, SPEND_COLUMNS};
use super::nonces::NonceTable;
use super::outbox::Laning;
use super::schema::MOST_ENTRIES;
use super::{decisions, links, outbox};
use crate::rows::decisions::EncodedDecision;
use crate::rows::facts;
use crate::rows::log::{self, LogRow};
use crate::rows::stages::TaskStage;
use crate::{numbering, plain_ids};

/// An append that is ready to be written: checked by itself, its entries encoded.
#[derive(Debug)]
pub(super) struct PreparedAppend {
    append: Append,
    follows: u64,
    rows: Vec<LogRow>,
    /// Of how the call was governed, as far as it is kept as text.
    facts: String,
    decision: Option<EncodedDecision>,
    /// When its last entry came.
    at: Timestamp,
    /// For the record; none if none is kept.
    pub(super) lines: RecordLines,
}

impl PreparedAppend {
    pub(super) fn new(mut append: Append, lines: RecordLines) -> Result<Self, StoreError> {
        let follows = numbering::follows(&append)?;
        plain_ids::check_append(&append)?;
        let at = append.entries.last().map_or(append.progress.status_at, |entry| entry.at);
        // The writer has no use for the entries themselves, and better things to do than to free them.
        let rows = log::encode(&std::mem::take(&mut append.entries), MOST_ENTRIES)?;
        let facts = append.governed.as_deref().map(facts::encode).transpose()?.unwrap_or_default();
        let decision = append.decision.take().map(EncodedDecision::new).transpose()?;
        Ok(Self { append, follows, rows, facts, decision, at, lines })
    }
}

/// The statements of the hot path, prepared once for the writer's connection.
#[derive(Debug)]
pub(super) struct Statements<'c> {
    connection: &'c Connection,
    pub(super) begin: Statement<'c>,
    pub(super) commit: Statement<'c>,
    known_client_id: Statement<'c>,
    make: Statement<'c>,
    make_governed: Statement<'c>,
    /// The same for a task that is free.
    make_free: Statement<'c>,
    stand: Statement<'c>,
    advance: Statement<'c>,
    /// The same with what the task cost.
    advance_settled: Statement<'c>,
    /// The same for a task that was always free.
    advance_free: Statement<'c>,
    log: Statement<'c>,
    ledger: Ledgering<'c>,
    pub(super) keys: KeyTable<'c>,
    pub(super) nonces: NonceTable<'c>,
    laning: Laning<'c>,
    /// The rows of open tasks that were made here, by their ids: a hint that saves a look-up. Each use checks the id again, so a
    /// hint from a transaction that failed does no harm.
    open_rows: HashMap<TaskId, OpenRow, RandomState>,
    /// The number of finished tasks. Counting them by a query for each sweep would take longer than the
    /// sweep.
    pub(super) finished: u64,
    /// Of the transaction that runs.
    pub(super) ended: CountChanges,
}

/// What is known of the row of an open task.
#[derive(Clone, Copy, Debug)]
struct OpenRow {
    num: i64,
    /// The task was always free: the other columns of its cost are empty.
    is_free: bool,
}

/// The number of hints in `open_rows` at which all of them are dropped and collected again.
const MOST_HINTS: usize = 100_000;

/// Why an append was not recorded.
enum Stop {
    /// Its name is known: a proper answer.
    Known(Appended),
    Refused(StoreError),
    /// The database failed, which is not this append's alone.
    Fault(SqliteFault),
}

impl From<SqliteFault> for Stop {
    fn from(fault: SqliteFault) -> Self {
        Self::Fault(fault)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, SqliteFault> {
        let governed = [&TASK_COLUMNS[..], &LINEAGE_COLUMNS, &SPEND_COLUMNS].concat();
        let free = [&TASK_COLUMNS[..], &LINEAGE_COLUMNS, &FREE_SPEND_COLUMNS].concat();
        let settled = [&PROGRESS_COLUMNS[..], &SPEND_COLUMNS].concat();
        let settled_free = [&PROGRESS_COLUMNS[..], &FREE_SPEND_COLUMNS].concat();
        Ok(Self {
            connection,
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            known_client_id: connection
                .prepare("SELECT id FROM tasks WHERE tenant = ?1 AND owner = ?2 AND client_task_id = ?3")?,
            make: connection.prepare(&insert(&TASK_COLUMNS))?,
            make_governed: connection.prepare(&insert(&governed))?,
            make_free: connection.prepare(&insert(&free))?,
            stand: connection.prepare("SELECT num, seq, stage = 3, lanes, state, message_only FROM tasks WHERE id = ?1")?,
            advance: connection.prepare(&update(&PROGRESS_COLUMNS))?,
            advance_settled: connection.prepare(&update(&settled))?,
            advance_free: connection.prepare(&update(&settled_free))?,
            log: connection.prepare("INSERT INTO log (place, last_seq, entries) VALUES (?1, ?2, ?3)")?,
            ledger: Ledgering::prepare(connection)?,
            keys: KeyTable::prepare(connection)?,
            nonces: NonceTable::prepare(connection)?,
            laning: Laning::prepare(connection)?,
            open_rows: HashMap::default(),
            finished: connection.query_row("SELECT count(*) FROM tasks WHERE stage = 3", [], |row| row.get(0))?,
            ended: CountChanges::default(),
        })
    }

    /// How many there are of what is counted, to be set back after a transaction that failed.
    pub(super) fn counts(&mut self) -> [&mut u64; 2] {
        [&mut self.finished, &mut self.nonces.count]
    }

    /// What to say to the one who asked, once the batch is durable.
    pub(super) fn write(&mut self, prepared: &PreparedAppend) -> Result<Result<Appended, StoreError>, SqliteFault> {
        match self.record(prepared) {
            Ok(appended) => Ok(Ok(appended)),
            Err(Stop::Known(known)) => Ok(Ok(known)),
            Err(Stop::Refused(refusal)) => Ok(Err(refusal)),
            Err(Stop::Fault(fault)) => Err(fault),
        }
    }

    /// Looks before it writes, so a refusal has written nothing and its neighbours in the batch do not notice.
    fn record(&mut self, prepared: &PreparedAppend) -> Result<Appended, Stop> {
        let (task, lanes) = match &prepared.append.creation {
            Some(creation) => (self.make(prepared, creation.idempotency.as_ref())?, 0),
            None => self.advance(prepared)?,
        };
        let Append { task: record, progress, .. } = &prepared.append;
        if numbering::is_finished(progress) {
            self.finished += 1;
            if !progress.message_only {
                self.ended.add(record, progress.state, 1);
            }
        }
        for row in &prepared.rows {
            self.log.execute((place(task, row.first_seq), row.last_seq, &row.entries))?;
        }
        if let Some(link) = &prepared.append.link {
            links::keep(self.connection, task, &prepared.append.task, link)?;
        }
        if let Some(decision) = &prepared.decision {
            decisions::keep(self.connection, decision)?;
        }
        match &prepared.append.register {
            Some(new) => Ok(self.laning.begin_with_task(task, new, &prepared.append.progress)?),
            None if lanes == 0 => Ok(Appended::Recorded),
            None => Ok(self.laning.tell(task, lanes, &prepared.append.progress, prepared.at)?),
        }
    }

    /// A webhook for a task that is there.
    pub(super) fn register(&mut self, new: &NewRegistration) -> Result<Registered, SqliteFault> {
        outbox::register(self.connection, &mut self.laning, new)
    }

    /// What a task has cost, without an append.
    pub(super) fn settle(&mut self, task: &TaskId, spend: &Spend) -> Result<Result<(), StoreError>, SqliteFault> {
        // Its amounts are written, also where they are zero.
        self.open_rows.remove(task);
        let num = self.stand.query_row([task.as_str()], |row| row.get(0)).optional()?;
        let counted = num.map(|num| self.ledger.settle(num, spend)).transpose()?;
        Ok(if counted == Some(true) { Ok(()) } else { Err(numbering::not_counted(task)) })
    }

    fn make(&mut self, prepared: &PreparedAppend, idempotency: Option<&Idempotency>) -> Result<i64, Stop> {
        let Append { task, progress, register, governed, spend, .. } = &prepared.append;
        self.refuse_known_names(&prepared.append, idempotency)?;
        let spend = governed.as_ref().map(|governed| spend.as_ref().unwrap_or(&governed.spend));
        let is_free = spend.is_some_and(ledger::is_free);
        let made = match governed.as_deref().zip(spend) {
            Some((governed, spend)) => {
                let mut row = BoundRow::of(if is_free { &mut self.make_free } else { &mut self.make_governed });
                bind_task(&mut row, &prepared.append, idempotency)?;
                row.bind_lineage(&task.id, &governed.kinship, &prepared.facts)?;
                if is_free {
                    row.bind_free_spend(spend)?;
                } else {
                    row.bind_spend(spend)?;
                }
                row.execute()?
            }
            None => {
                let mut row = BoundRow::of(&mut self.make);
                bind_task(&mut row, &prepared.append, idempotency)?;
                row.execute()?
            }
        };
        if made == 0 {
            if register.is_some() {
                outbox::uncount(self.connection, &task.owner.tenant)?;
            }
            return Err(Stop::Refused(numbering::made_twice(task)));
        }
        let num = self.connection.last_insert_rowid();
        if let Some(idempotency) = idempotency {
            self.keys.keep(task, idempotency)?;
        }
        if !numbering::is_finished(progress) {
            if self.open_rows.len() >= MOST_HINTS {
                self.open_rows.clear();
            }
            self.open_rows.insert(task.id.clone(), OpenRow { num, is_free });
        }
        Ok(num)
    }

    fn refuse_known_names(&mut self, append: &Append, idempotency: Option<&Idempotency>) -> Result<(), Stop> {
        let task = &append.task;
        let (tenant, owner) = (&*task.owner.tenant, &*task.owner.name);
        if let Some(idempotency) = idempotency
            && let Some(Keyed { task, fingerprint }) = self.keys.known(&task.owner, &idempotency.key, task.created_at)?
        {
            return Err(Stop::Known(Appended::KeyKnown { task, fingerprint }));
        }
        if let Some(name) = &task.client_task_id {
            let known = self.known_client_id.query_row((tenant, owner, &**name), |row| row.get::<_, String>(0));
            if let Some(id) = known.optional()? {
                return Err(Stop::Known(Appended::ClientIdKnown { task: id.into() }));
            }
        }
        // The last chance to refuse before the first write, and the first write if there is room.
        if let Some(new) = &append.register
            && let Some(refusal) = self.laning.count(tenant, 0, new.limits)?
        {
            let of_tenant = refusal == Registered::TooManyOfTenant;
            return Err(Stop::Known(Appended::TooManyRegistrations { of_tenant }));
        }
        Ok(())
    }

    /// Returns the number of the task's row, and how many webhooks it has. An open task that was made here
    /// and has no webhooks takes one statement. The statement changes the row only if both still hold.
    fn advance(&mut self, prepared: &PreparedAppend) -> Result<(i64, usize), Stop> {
        let Append { task, progress, spend, .. } = &prepared.append;
        let hint = self.open_rows.get(&task.id).copied();
        if numbering::is_finished(progress) {
            self.open_rows.remove(&task.id);
        }
        let of_one_turn = !spend.as_ref().is_some_and(ledger::has_earlier_turns);
        if spend.as_ref().is_some_and(|spend| !ledger::is_free(spend))
            && let Some(row) = self.open_rows.get_mut(&task.id)
        {
            row.is_free = false;
        }
        if let Some(row) = hint.filter(|_| of_one_turn)
            && self.change(row, prepared, OPEN_WITHOUT_WEBHOOKS)? > 0
        {
            return Ok((row.num, 0));
        }
        let stand = self.stand.query_row([task.id.as_str()], |row| {
            let was_listed = row.get::<_, bool>(2)? && !row.get::<_, bool>(5)?;
            let ended = was_listed.then(|| row.get::<_, i64>(4)).transpose()?.and_then(TaskState::from_number);
            Ok((row.get::<_, i64>(0)?, row.get::<_, u64>(1)?, row.get::<_, bool>(2)?, row.get::<_, usize>(3)?, ended))
        });
        let Some((num, seq, was_finished, lanes, had_ended)) = stand.optional()? else {
            return Err(Stop::Refused(numbering::unknown(task)));
        };
        if seq != prepared.follows {
            return Err(Stop::Refused(numbering::out_of_turn(task, seq, prepared.follows)));
        }
        if let Some(spend) = spend {
            self.ledger.part_turns(num, spend)?;
        }
        self.change(OpenRow { num, is_free: false }, prepared, WHATEVER_IT_IS)?;
        self.finished -= u64::from(was_finished);
        if let Some(state) = had_ended {
            self.ended.add(task, state, -1);
        }
        Ok((num, lanes))
    }

    /// Writes how far a task has come and what it cost, if its row is as expected. Answers how many rows changed.
    fn change(
        &mut self,
        known: OpenRow,
        prepared: &PreparedAppend,
        (below_stage, most_lanes): (i64, i64),
    ) -> rusqlite::Result<usize> {
        let Append { task, progress, spend, .. } = &prepared.append;
        let stays_free = known.is_free && spend.as_ref().is_some_and(ledger::is_free);
        let mut row = BoundRow::of(match spend {
            Some(_) if stays_free => &mut self.advance_free,
            Some(_) => &mut self.advance_settled,
            None => &mut self.advance,
        });
        bind_progress(&mut row, progress)?;
        match spend {
            Some(spend) if stays_free => row.bind_free_spend(spend)?,
            Some(spend) => row.bind_spend(spend)?,
            None => {}
        }
        row.put(known.num)?;
        row.put(task.id.as_str())?;
        row.put(prepared.follows)?;
        row.put(below_stage)?;
        row.put(most_lanes)?;
        row.execute()
    }
}

/// What `bind_progress` binds, in its order.
const PROGRESS_COLUMNS: [&str; 6] = ["state", "status_at", "seq", "bytes", "message_only", "stage"];

/// What `bind_task` binds, in its order.
const TASK_COLUMNS: [&str; 16] = [
    "id",
    "context_id",
    "agent",
    "tenant",
    "owner",
    "dialect",
    "created_at",
    "state",
    "status_at",
    "seq",
    "bytes",
    "message_only",
    "stage",
    "client_task_id",
    "key",
    "lanes",
];

/// The row that `change` expects: a stage below the first number, and at most so many webhooks.
const OPEN_WITHOUT_WEBHOOKS: (i64, i64) = (TaskStage::Finished as i64, 0);
const WHATEVER_IT_IS: (i64, i64) = (i64::MAX, i64::MAX);

fn insert(columns: &[&str]) -> String {
    let places = vec!["?"; columns.len()].join(", ");
    format!("INSERT INTO tasks ({}) VALUES ({places}) ON CONFLICT (id) DO NOTHING", columns.join(", "))
}

fn update(columns: &[&str]) -> String {
    let values = columns.iter().map(|column| format!("{column} = ?")).collect::<Vec<_>>().join(", ");
    format!("UPDATE tasks SET {values} WHERE num = ? AND id = ? AND seq = ? AND stage < ? AND lanes <= ?")
}
