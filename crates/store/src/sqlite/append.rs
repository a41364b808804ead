//! Writes one append inside the transaction of its batch.

use chancery_core::{Append, Appended, Idempotency, StoreError};
use chancery_protocol::TaskId;
use rusqlite::{Connection, OptionalExtension, Statement, params};

use super::entries::{self, LogRow, place};
use super::fault::Fault;
use super::find::dialect_name;
use crate::numbering;

/// An append that is ready to be written: checked by itself, its entries encoded.
#[derive(Debug)]
pub(super) struct Prepared {
    append: Append,
    follows: u64,
    rows: Vec<LogRow>,
}

impl Prepared {
    pub(super) fn new(append: Append) -> Result<Self, StoreError> {
        let follows = numbering::follows(&append)?;
        let rows = entries::encode(&append.entries)?;
        Ok(Self { append, follows, rows })
    }
}

/// The statements of the hot path, prepared once for the writer's connection.
#[derive(Debug)]
pub(super) struct Statements<'c> {
    connection: &'c Connection,
    known_key: Statement<'c>,
    known_client_id: Statement<'c>,
    drop_key: Statement<'c>,
    make: Statement<'c>,
    stand: Statement<'c>,
    advance: Statement<'c>,
    log: Statement<'c>,
}

/// What the store says to the one who asked. The outer fault, where there is one, is about the database.
pub(super) type Verdict = Result<Appended, StoreError>;

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, Fault> {
        Ok(Self {
            connection,
            known_key: connection.prepare(
                "SELECT num, id, key_fingerprint, key_expires_at FROM tasks WHERE tenant = ?1 AND owner = ?2 AND key = ?3",
            )?,
            known_client_id: connection
                .prepare("SELECT id FROM tasks WHERE tenant = ?1 AND owner = ?2 AND client_task_id = ?3")?,
            drop_key: connection
                .prepare("UPDATE tasks SET key = NULL, key_fingerprint = NULL, key_expires_at = NULL WHERE num = ?1")?,
            make: connection.prepare(
                "INSERT INTO tasks (id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes,
                                    message_only, client_task_id, key, key_fingerprint, key_expires_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
                 ON CONFLICT (id) DO NOTHING",
            )?,
            stand: connection.prepare("SELECT num, seq FROM tasks WHERE id = ?1")?,
            advance: connection
                .prepare("UPDATE tasks SET state = ?2, status_at = ?3, seq = ?4, bytes = ?5, message_only = ?6 WHERE num = ?1")?,
            log: connection.prepare("INSERT INTO log (place, last_seq, entries) VALUES (?1, ?2, ?3)")?,
        })
    }

    /// Looks before it writes, so a refusal has written nothing and its neighbours in the batch do not notice.
    pub(super) fn write(&mut self, prepared: &Prepared) -> Result<Verdict, Fault> {
        let task = match &prepared.append.creation {
            Some(creation) => match self.make(prepared, creation.idempotency.as_ref())? {
                Ok(task) => task,
                Err(verdict) => return Ok(verdict),
            },
            None => match self.advance(prepared)? {
                Ok(task) => task,
                Err(refusal) => return Ok(Err(refusal)),
            },
        };
        for row in &prepared.rows {
            self.log.execute((place(task, row.first_seq), row.last_seq, &row.entries))?;
        }
        Ok(Ok(Appended::Recorded))
    }

    fn make(&mut self, prepared: &Prepared, idempotency: Option<&Idempotency>) -> Result<Result<i64, Verdict>, Fault> {
        let Append { task, progress, .. } = &prepared.append;
        if let Some(known) = self.name_in_use(prepared, idempotency)? {
            return Ok(Err(Ok(known)));
        }
        let made = self.make.execute(params![
            task.id.as_str(),
            task.context_id.as_str(),
            &*task.agent,
            &*task.owner.tenant,
            &*task.owner.name,
            dialect_name(task.dialect),
            task.created_at.micros(),
            progress.state.number(),
            progress.status_at.micros(),
            progress.seq,
            progress.bytes,
            progress.message_only,
            task.client_task_id.as_deref(),
            idempotency.map(|idempotency| &*idempotency.key),
            idempotency.map(|idempotency| idempotency.fingerprint.as_slice()),
            idempotency.map(|idempotency| idempotency.expires_at.micros()),
        ])?;
        Ok(if made == 1 { Ok(self.connection.last_insert_rowid()) } else { Err(Err(numbering::made_twice(task))) })
    }

    fn name_in_use(&mut self, prepared: &Prepared, idempotency: Option<&Idempotency>) -> Result<Option<Appended>, Fault> {
        let task = &prepared.append.task;
        let (tenant, owner) = (&*task.owner.tenant, &*task.owner.name);
        let mut expired = None;
        if let Some(idempotency) = idempotency {
            let known = self.known_key.query_row((tenant, owner, &*idempotency.key), |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, [u8; 32]>(2)?, row.get::<_, i64>(3)?))
            });
            match known.optional()? {
                Some((_, id, fingerprint, expires_at)) if expires_at > task.created_at.micros() => {
                    return Ok(Some(Appended::KeyKnown { task: TaskId::from(id), fingerprint }));
                }
                Some((num, ..)) => expired = Some(num),
                None => {}
            }
        }
        if let Some(name) = &task.client_task_id {
            let known = self.known_client_id.query_row((tenant, owner, &**name), |row| row.get::<_, String>(0));
            if let Some(id) = known.optional()? {
                return Ok(Some(Appended::ClientIdKnown { task: TaskId::from(id) }));
            }
        }
        if let Some(num) = expired {
            self.drop_key.execute([num])?;
        }
        Ok(None)
    }

    fn advance(&mut self, prepared: &Prepared) -> Result<Result<i64, StoreError>, Fault> {
        let Append { task, progress, .. } = &prepared.append;
        let stand = self.stand.query_row([task.id.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, u64>(1)?)));
        let Some((num, seq)) = stand.optional()? else {
            return Ok(Err(numbering::unknown(task)));
        };
        if seq != prepared.follows {
            return Ok(Err(numbering::out_of_turn(task, seq, prepared.follows)));
        }
        let status_at = progress.status_at.micros();
        self.advance.execute((num, progress.state.number(), status_at, progress.seq, progress.bytes, progress.message_only))?;
        Ok(Ok(num))
    }
}
