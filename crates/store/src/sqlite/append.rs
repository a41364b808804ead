//! Writes one append inside the transaction of its batch.

use chancery_core::push::{NewRegistration, Registered};
use chancery_core::{Append, Appended, Idempotency, Keyed, RecordLines, Spend, StoreError};
use chancery_protocol::{TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Statement, params};

use super::entries::{self, LogRow, place};
use super::fault::SqliteFault;
use super::keys::KeyTable;
use super::ledger::Ledgering;
use super::nonces::NonceTable;
use super::outbox::Laning;
use super::schema::TaskStage;
use super::{decisions, facts, links, outbox};
use crate::{numbering, plain_ids};

/// An append that is ready to be written: checked by itself, its entries encoded.
#[derive(Debug)]
pub(super) struct PreparedAppend {
    append: Append,
    follows: u64,
    rows: Vec<LogRow>,
    /// Of how the call was governed, as far as it is kept as text.
    facts: String,
    decision: Option<decisions::Encoded>,
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
        let rows = entries::encode(&std::mem::take(&mut append.entries))?;
        let facts = append.governed.as_deref().map(facts::encode).transpose()?.unwrap_or_default();
        let decision = append.decision.take().map(decisions::Encoded::new).transpose()?;
        Ok(Self { append, follows, rows, facts, decision, at, lines })
    }
}

/// The statements of the hot path, prepared once for the writer's connection.
#[derive(Debug)]
pub(super) struct Statements<'c> {
    connection: &'c Connection,
    known_client_id: Statement<'c>,
    make: Statement<'c>,
    stand: Statement<'c>,
    advance: Statement<'c>,
    log: Statement<'c>,
    ledger: Ledgering<'c>,
    pub(super) keys: KeyTable<'c>,
    pub(super) nonces: NonceTable<'c>,
    laning: Laning<'c>,
    /// How many finished tasks there are. Counting them anew for each sweep would take longer than the sweep.
    pub(super) finished: u64,
}

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
        Ok(Self {
            connection,
            known_client_id: connection
                .prepare("SELECT id FROM tasks WHERE tenant = ?1 AND owner = ?2 AND client_task_id = ?3")?,
            make: connection.prepare(
                "INSERT INTO tasks (id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes,
                                    message_only, stage, client_task_id, key, lanes)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
                 ON CONFLICT (id) DO NOTHING",
            )?,
            stand: connection.prepare("SELECT num, seq, stage = 3, lanes FROM tasks WHERE id = ?1")?,
            advance: connection.prepare(
                "UPDATE tasks SET state = ?2, status_at = ?3, seq = ?4, bytes = ?5, message_only = ?6, stage = ?7 WHERE num = ?1",
            )?,
            log: connection.prepare("INSERT INTO log (place, last_seq, entries) VALUES (?1, ?2, ?3)")?,
            ledger: Ledgering::prepare(connection)?,
            keys: KeyTable::prepare(connection)?,
            nonces: NonceTable::prepare(connection)?,
            laning: Laning::prepare(connection)?,
            finished: connection.query_row("SELECT count(*) FROM tasks WHERE stage = 3", [], |row| row.get(0))?,
        })
    }

    /// How many there are of what is counted, to be set back after a transaction that failed.
    pub(super) fn counts(&mut self) -> [&mut u64; 3] {
        [&mut self.finished, &mut self.keys.count, &mut self.nonces.count]
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
        self.finished += u64::from(numbering::is_finished(&prepared.append.progress));
        for row in &prepared.rows {
            self.log.execute((place(task, row.first_seq), row.last_seq, &row.entries))?;
        }
        if let Some(link) = &prepared.append.link {
            links::keep(self.connection, task, &prepared.append.task, link)?;
        }
        self.count(task, prepared)?;
        if let Some(decision) = &prepared.decision {
            decisions::keep(self.connection, decision)?;
        }
        match &prepared.append.register {
            Some(new) => Ok(self.laning.begin_with_task(task, new, &prepared.append.progress)?),
            None if lanes == 0 => Ok(Appended::Recorded),
            None => Ok(self.laning.tell(task, lanes, &prepared.append.progress, prepared.at)?),
        }
    }

    /// A task from before costs were counted has no row, and gets none.
    fn count(&mut self, num: i64, prepared: &PreparedAppend) -> Result<(), Stop> {
        let Append { task, governed, spend, .. } = &prepared.append;
        match (governed, spend) {
            (Some(governed), spend) => {
                let spend = spend.as_ref().unwrap_or(&governed.spend);
                self.ledger.put_down(num, &task.id, &governed.kinship, spend, &prepared.facts)?;
            }
            (None, Some(spend)) => drop(self.ledger.settle(num, spend)?),
            (None, None) => {}
        }
        Ok(())
    }

    /// A webhook for a task that is there.
    pub(super) fn register(&mut self, new: &NewRegistration) -> Result<Registered, SqliteFault> {
        outbox::register(self.connection, &mut self.laning, new)
    }

    /// What a task has cost, without an append.
    pub(super) fn settle(&mut self, task: &TaskId, spend: &Spend) -> Result<Result<(), StoreError>, SqliteFault> {
        let num = self.stand.query_row([task.as_str()], |row| row.get(0)).optional()?;
        let counted = num.map(|num| self.ledger.settle(num, spend)).transpose()?;
        Ok(if counted == Some(true) { Ok(()) } else { Err(numbering::not_counted(task)) })
    }

    fn make(&mut self, prepared: &PreparedAppend, idempotency: Option<&Idempotency>) -> Result<i64, Stop> {
        let Append { task, progress, register, .. } = &prepared.append;
        self.refuse_known_names(&prepared.append, idempotency)?;
        let made = self.make.execute(params![
            task.id.as_str(),
            task.context_id.as_str(),
            &*task.agent,
            &*task.owner.tenant,
            &*task.owner.name,
            task.dialect.as_str(),
            task.created_at.micros(),
            progress.state.number(),
            progress.status_at.micros(),
            progress.seq,
            progress.bytes,
            progress.message_only,
            TaskStage::of(progress) as i64,
            task.client_task_id.as_deref(),
            idempotency.map(|idempotency| &*idempotency.key),
            register.is_some(),
        ])?;
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

    /// The task's number, and how many webhooks are told of it.
    fn advance(&mut self, prepared: &PreparedAppend) -> Result<(i64, usize), Stop> {
        let Append { task, progress, .. } = &prepared.append;
        let stand = self.stand.query_row([task.id.as_str()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, u64>(1)?, row.get::<_, bool>(2)?, row.get::<_, usize>(3)?))
        });
        let Some((num, seq, was_finished, lanes)) = stand.optional()? else {
            return Err(Stop::Refused(numbering::unknown(task)));
        };
        if seq != prepared.follows {
            return Err(Stop::Refused(numbering::out_of_turn(task, seq, prepared.follows)));
        }
        self.advance.execute((
            num,
            progress.state.number(),
            progress.status_at.micros(),
            progress.seq,
            progress.bytes,
            progress.message_only,
            TaskStage::of(progress) as i64,
        ))?;
        self.finished -= u64::from(was_finished);
        Ok((num, lanes))
    }
}
