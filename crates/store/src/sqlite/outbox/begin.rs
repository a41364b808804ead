//! What webhooks cost the tasks they come with: lanes begin and are made due by statements that are prepared once, like those of the tasks.

use chancery_core::push::{NewRegistration, Registered, Registration, RegistrationLimits, WebhookOrigin};
use chancery_core::{Appended, Progress};
use chancery_protocol::Timestamp;
use rusqlite::{Connection, OptionalExtension, Statement, params};

use super::{register, rows};
use crate::rows::lane_words::kind_number;
use crate::sqlite::fault::SqliteFault;
use crate::{lanes, numbering};

/// Prepared for the writer's connection.
#[derive(Debug)]
pub(in crate::sqlite) struct Laning<'c> {
    connection: &'c Connection,
    count: Statement<'c>,
    register: Statement<'c>,
    origin: Statement<'c>,
    make_origin: Statement<'c>,
    join: Statement<'c>,
    join_sooner: Statement<'c>,
    begin: Statement<'c>,
    idle: Statement<'c>,
    move_on: Statement<'c>,
    hurry: Statement<'c>,
}

/// Where a lane begins.
pub(super) struct Start {
    pub(super) task: i64,
    /// After this entry.
    pub(super) seq: u64,
    /// The last entry that the lane has to deliver.
    pub(super) told: u64,
    /// When the task ended, if it has.
    pub(super) ended_at: Option<i64>,
}

/// A lane that has begun.
pub(super) struct BegunLane {
    pub(super) lane: u64,
    /// Whether there is something to deliver.
    pub(super) due: bool,
    /// Whether that makes its origin due sooner than it was.
    pub(super) sooner: bool,
}

pub(super) const IDLE: &str = "SELECT state, reason, head, tail, attempt, refusals, next_at, first_fail_at, epoch, lease_until,
     span_to, span_kind, origin, lane FROM lanes WHERE task = ?1 AND due_at IS NULL";

impl<'c> Laning<'c> {
    pub(in crate::sqlite) fn prepare(connection: &'c Connection) -> Result<Self, SqliteFault> {
        Ok(Self {
            connection,
            count: connection.prepare(
                "INSERT INTO push_tenants (tenant, lanes) VALUES (?1, 1)
                 ON CONFLICT (tenant) DO UPDATE SET lanes = lanes + 1 WHERE lanes < ?2",
            )?,
            register: connection.prepare(
                "INSERT INTO registrations (id, version, profile, events, url, scheme, kek_id, sealed, created_at, trace)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?,
            origin: connection
                .prepare("SELECT num, due_at, parked_until FROM push_origins WHERE tenant = ?1 AND origin = ?2")?,
            make_origin: connection
                .prepare("INSERT INTO push_origins (tenant, origin, lanes, parked_until, due_at) VALUES (?1, ?2, 1, 0, ?3)")?,
            join: connection.prepare("UPDATE push_origins SET lanes = lanes + 1 WHERE num = ?1")?,
            join_sooner: connection.prepare("UPDATE push_origins SET lanes = lanes + 1, due_at = ?2 WHERE num = ?1")?,
            begin: connection.prepare(
                "INSERT INTO lanes (lane, task, origin, state, head, tail, attempt, refusals, next_at, epoch, lease_until, ended_at,
                                    tries, span_to, span_kind, due_at)
                 VALUES (?1, ?2, ?3, 1, ?4, ?5, 0, 0, ?6, 0, 0, ?7, 0, ?8, ?9, ?10)",
            )?,
            idle: connection.prepare(IDLE)?,
            move_on: connection
                .prepare("UPDATE lanes SET tail = ?2, next_at = ?3, due_at = ?4, ended_at = ?5 WHERE lane = ?1")?,
            hurry: connection.prepare(
                "UPDATE push_origins SET due_at = max(?2, parked_until)
                 WHERE num = ?1 AND (due_at IS NULL OR due_at > max(?2, parked_until))",
            )?,
        })
    }

    /// One more lane of a tenant, of whose task there are so many, unless there are too many: then nothing was written.
    pub(in crate::sqlite) fn count(
        &mut self,
        tenant: &str,
        of_task: usize,
        limits: RegistrationLimits,
    ) -> Result<Option<Registered>, SqliteFault> {
        if of_task >= limits.per_task {
            return Ok(Some(Registered::TooManyOfTask));
        }
        let most = i64::try_from(limits.per_tenant).unwrap_or(i64::MAX);
        let counted = most > 0 && self.count.execute((tenant, most))? > 0;
        Ok((!counted).then_some(Registered::TooManyOfTenant))
    }

    /// With the task that is being made. It was counted before.
    pub(in crate::sqlite) fn begin_with_task(
        &mut self,
        task: i64,
        new: &NewRegistration,
        progress: &Progress,
    ) -> Result<Appended, SqliteFault> {
        let told = if new.held { 0 } else { progress.seq };
        let ended_at = numbering::is_finished(progress).then_some(progress.status_at.micros());
        let begun = self.begin(new, Start { task, seq: 0, told, ended_at })?;
        Ok(lanes::appended(begun.sooner, begun.due))
    }

    /// Rows written once, as they are to be.
    pub(super) fn begin(&mut self, new: &NewRegistration, start: Start) -> Result<BegunLane, SqliteFault> {
        let registration = &new.registration;
        let lane = self.register(registration)?;
        let mut cursor = lanes::first_cursor(new, start.seq);
        cursor.append(start.told, registration.created_at);
        let due_at = lanes::due_at(&cursor);
        let (origin, sooner) = self.join(&registration.destination(), due_at)?;
        self.begin.execute(params![
            lane,
            start.task,
            origin,
            cursor.head,
            cursor.tail,
            cursor.next_at.micros(),
            start.ended_at,
            cursor.span.map(|span| span.to),
            cursor.span.map(|span| kind_number(span.kind)),
            due_at.map(Timestamp::micros),
        ])?;
        Ok(BegunLane { lane, due: due_at.is_some(), sooner })
    }

    fn register(&mut self, registration: &Registration) -> Result<u64, SqliteFault> {
        rows::with_columns(registration, &registration.id.as_str(), |columns| self.register.execute(columns))?;
        Ok(self.connection.last_insert_rowid().cast_unsigned())
    }

    /// Adds a lane to an origin, and makes the origin if it is missing. Returns the origin's number, and
    /// whether the lane makes it due sooner.
    fn join(&mut self, origin: &WebhookOrigin, due_at: Option<Timestamp>) -> Result<(i64, bool), SqliteFault> {
        let due_at = due_at.map(Timestamp::micros);
        let known = self.origin.query_row((&*origin.tenant, &*origin.origin), |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, i64>(2)?))
        });
        let Some((num, was, parked_until)) = known.optional()? else {
            self.make_origin.execute((&*origin.tenant, &*origin.origin, due_at))?;
            return Ok((self.connection.last_insert_rowid(), due_at.is_some()));
        };
        let sooner = due_at.map(|due_at| due_at.max(parked_until)).filter(|due_at| was.is_none_or(|was| was > *due_at));
        match sooner {
            Some(due_at) => self.join_sooner.execute((num, due_at))?,
            None => self.join.execute([num])?,
        };
        Ok((num, sooner.is_some()))
    }

    /// New entries of a task that has so many lanes. Those that are due have something to deliver already, and need not be written.
    pub(in crate::sqlite) fn tell(
        &mut self,
        task: i64,
        of_task: usize,
        progress: &Progress,
        now: Timestamp,
    ) -> Result<Appended, SqliteFault> {
        if progress.message_only {
            register::remove_all(self.connection, task)?;
            return Ok(Appended::Recorded);
        }
        let ended_at = numbering::is_finished(progress).then_some(progress.status_at.micros());
        let idle = rows::cursors(&mut self.idle, task)?;
        let mut behind = idle.len() < of_task;
        let mut sooner = false;
        for (mut cursor, lane, origin) in idle {
            cursor.append(progress.seq, now);
            let due_at = lanes::due_at(&cursor).map(Timestamp::micros);
            let ended_at = ended_at.filter(|_| due_at.is_none());
            self.move_on.execute((lane, cursor.tail, cursor.next_at.micros(), due_at, ended_at))?;
            if let Some(due_at) = due_at {
                sooner |= self.hurry.execute((origin, due_at))? > 0;
                behind = true;
            }
        }
        Ok(lanes::appended(sooner, behind))
    }
}
