//! The one thread that writes: takes what has queued up, commits it at once, answers.

use chancery_core::{Appended, Chain, ExpiryPlan, FreezeScope, RecordLines, StoreError, SweepPlan};
use chancery_protocol::{TaskId, Timestamp};
use rusqlite::Connection;
use tokio::sync::mpsc;

use super::SqliteOptions;
use super::answers::{AppendAnswer, tell, tell_all};
use super::append::{PreparedAppend, Statements};
use super::checkpoint::{self, CheckpointRequest};
use super::fault::SqliteFault;
use super::health::Health;
use super::options::Synchronous;
use super::sweep::{self, SweepCursor, Withdrawn};
use super::write_job::{WriteJob, WriteOrder};
use super::{freezes, record};

#[derive(Debug)]
pub(super) enum Job {
    /// Has a variant of its own because it is by far the most frequent write: no dynamic dispatch for each event.
    Append(Box<PreparedAppend>, AppendAnswer),
    Write(Box<dyn WriteJob>),
    /// No more jobs are taken; those that are queued are still done.
    Close,
}

/// The outcome of a job, which is sent when the job is durable.
pub(super) enum Done {
    Append(Result<Appended, StoreError>),
    /// The job has its own answer.
    Write,
}

/// So much is linked at once: to go to and fro between two kinds of work costs more than the linking, and so does to carry about more
/// than a processor has at hand.
const LINKED_AT_ONCE_BYTES: usize = 4096;

pub(super) fn run(
    connection: &Connection,
    mut queue: mpsc::Receiver<Job>,
    options: SqliteOptions,
    rope: &CheckpointRequest,
    chain: Option<Box<dyn Chain>>,
    health: &Health,
) -> Result<(), SqliteFault> {
    let mut writer = StoreWriter::new(connection, options, chain, health)?;
    let mut batch = Vec::new();
    let mut shared = false;
    while let Some(first) = queue.blocking_recv() {
        if shared {
            // Where there were several callers there will be more: on a busy core they get their turn first, and the
            // batch becomes whole. Nothing waits for a clock, and a lone caller never waits.
            std::thread::yield_now();
        }
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Close => queue.close(),
                job => batch.push(job),
            }
            next = if batch.len() < options.batch_limit { queue.try_recv().ok() } else { None };
        }
        shared = batch.len() > 1;
        if !batch.is_empty() {
            writer.write(&mut batch);
            if rope.0.ring()
                && let Err(fault) = checkpoint::carry_over(connection)
            {
                tracing::warn!(%fault, "cannot restart the write-ahead log; it grows until the next checkpoint");
            }
        }
    }
    Ok(())
}

/// The connection that writes, with what the jobs of a transaction share.
pub(super) struct StoreWriter<'c> {
    pub(super) connection: &'c Connection,
    pub(super) statements: Statements<'c>,
    options: SqliteOptions,
    /// The end of the record, if one is kept.
    chain: Option<Box<dyn Chain>>,
    /// What the jobs of the transaction that runs leave for it, in their order, until they are linked together.
    lines: RecordLines,
    place: SweepCursor,
    /// Whether a commit is on the disk when it is done.
    waits: bool,
    health: &'c Health,
}

impl<'c> StoreWriter<'c> {
    pub(super) fn new(
        connection: &'c Connection,
        options: SqliteOptions,
        chain: Option<Box<dyn Chain>>,
        health: &'c Health,
    ) -> Result<Self, SqliteFault> {
        let statements = Statements::prepare(connection)?;
        let (lines, place) = (RecordLines::default(), SweepCursor::default());
        Ok(Self { connection, statements, options, chain, lines, place, waits: true, health })
    }
}

impl StoreWriter<'_> {
    /// All of it in one transaction. If one job turns out to be impossible, each gets a transaction of its own.
    pub(super) fn write(&mut self, batch: &mut Vec<Job>) {
        let fleeting = take(batch, WriteOrder::Fleeting);
        let tidying = take(batch, WriteOrder::Tidying);
        self.write_without_waiting(fleeting);
        if !batch.is_empty() {
            self.write_lasting(batch);
        }
        self.write_without_waiting(tidying);
    }

    fn write_lasting(&mut self, batch: &mut Vec<Job>) {
        match self.wait_for_disk(true).and_then(|()| self.commit(batch)) {
            Ok(done) => tell_all(batch.drain(..).zip(done.into_iter().map(Ok))),
            Err(fault) if fault.concerns_one_append() && batch.len() > 1 => {
                for job in batch.drain(..) {
                    let done = self.commit(std::slice::from_ref(&job)).map(|mut done| done.pop());
                    tell(job, done.and_then(|done| done.ok_or_else(|| SqliteFault::unreadable("nothing was done"))));
                }
            }
            Err(fault) => tell_all(batch.drain(..).map(|job| (job, Err(fault.clone())))),
        }
    }

    /// Writes the jobs in a transaction of their own, whose answers do not wait for the disk. All jobs of a
    /// batch were requested at the same time, so their order is free.
    fn write_without_waiting(&mut self, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let done = self.wait_for_disk(false).and_then(|()| self.commit(&jobs));
        match done {
            Ok(done) => tell_all(jobs.into_iter().zip(done.into_iter().map(Ok))),
            Err(fault) => tell_all(jobs.into_iter().map(|job| (job, Err(fault.clone())))),
        }
    }

    /// Whether commits from now on do, where they do at all.
    fn wait_for_disk(&mut self, wait: bool) -> Result<(), SqliteFault> {
        let usual = self.options.synchronous;
        if self.waits != wait && usual == Synchronous::Full {
            let word = if wait { usual } else { Synchronous::Normal }.word();
            self.connection.pragma_update(None, "synchronous", word)?;
            self.waits = wait;
        }
        Ok(())
    }

    fn commit(&mut self, batch: &[Job]) -> Result<Vec<Done>, SqliteFault> {
        let counts_before = self.statements.counts().map(|count| *count);
        let outcome = self.try_commit(batch);
        match &outcome {
            Ok(_) => self.health.wrote(),
            Err(fault) => self.health.note("writing", fault),
        }
        if outcome.is_err() {
            self.statements.counts().into_iter().zip(counts_before).for_each(|(count, before)| *count = before);
            self.lines.0.clear();
            self.statements.ended.forget();
            self.chain.iter_mut().for_each(|chain| chain.undo());
            // SQLite has undone the transaction by itself after some faults; after the others we do.
            if !self.connection.is_autocommit()
                && let Err(error) = self.connection.execute_batch("ROLLBACK")
            {
                tracing::error!(%error, "a transaction that failed could not be rolled back");
            }
        }
        outcome
    }

    fn try_commit(&mut self, batch: &[Job]) -> Result<Vec<Done>, SqliteFault> {
        self.statements.begin.raw_execute()?;
        let done = batch.iter().map(|job| self.perform(job)).collect::<Result<_, _>>()?;
        self.keep_record()?;
        self.statements.ended.write(self.connection)?;
        self.statements.commit.raw_execute()?;
        self.chain.iter_mut().for_each(|chain| chain.written());
        Ok(done)
    }

    fn keep_record(&mut self) -> Result<(), SqliteFault> {
        self.link();
        self.chain.as_deref().map_or(Ok(()), |chain| record::keep(self.connection, chain))
    }

    /// In the order of the commits: only jobs that were done come here.
    pub(super) fn add_to_record(&mut self, lines: &RecordLines) {
        self.lines.0.extend_from_slice(&lines.0);
        if self.lines.0.len() >= LINKED_AT_ONCE_BYTES {
            self.link();
        }
    }

    fn link(&mut self) {
        self.chain.iter_mut().for_each(|chain| chain.add(&self.lines));
        self.lines.0.clear();
    }

    fn perform(&mut self, job: &Job) -> Result<Done, SqliteFault> {
        Ok(match job {
            Job::Append(prepared, _) => {
                let verdict = self.statements.write(prepared)?;
                if let Ok(Appended::Recorded | Appended::RecordedToTell | Appended::RecordedBehind) = verdict {
                    self.add_to_record(&prepared.lines);
                }
                Done::Append(verdict)
            }
            Job::Write(job) => {
                job.perform(self)?;
                Done::Write
            }
            // Closing is no write: `run` takes it out of the batch.
            Job::Close => Done::Write,
        })
    }

    /// Deletes old tasks and returns how many are gone.
    pub(super) fn sweep(&mut self, plan: SweepPlan) -> Result<u64, SqliteFault> {
        let gone = sweep::sweep(self.connection, plan, self.statements.finished, &mut self.place, &mut self.statements.ended)?;
        self.statements.finished -= gone;
        Ok(gone)
    }

    /// Takes back a task as if it had never been made, and returns whether there was one to take back.
    pub(super) fn withdraw(&mut self, task: &TaskId, lines: &RecordLines) -> Result<bool, SqliteFault> {
        let withdrawn = sweep::withdraw(self.connection, task, &mut self.statements.ended)?;
        self.statements.finished -= u64::from(withdrawn == Some(Withdrawn::Finished));
        if withdrawn.is_some() {
            self.add_to_record(lines);
        }
        Ok(withdrawn.is_some())
    }

    /// Deletes expired keys and nonces, and returns whether more are left.
    pub(super) fn expire(&mut self, plan: ExpiryPlan) -> Result<bool, SqliteFault> {
        let more_keys = super::keys::expire(self.connection, plan)?;
        Ok(self.statements.nonces.expire(plan)? || more_keys)
    }

    /// Lifts a freeze, and returns whether there was one.
    pub(super) fn thaw(&mut self, scope: &FreezeScope, lines: &RecordLines) -> Result<bool, SqliteFault> {
        let thawed = freezes::remove(self.connection, scope)?;
        if thawed {
            self.add_to_record(lines);
        }
        Ok(thawed)
    }

    /// Signs the record up to here, if one is kept.
    pub(super) fn sign(&mut self, at: Timestamp) {
        self.link();
        self.chain.iter_mut().for_each(|chain| chain.sign(at));
    }

    /// Makes a write that changes nothing anyone sees.
    pub(super) fn try_write(&self) -> Result<(), SqliteFault> {
        self.connection.prepare_cached("UPDATE readiness SET checks = checks + 1")?.execute([])?;
        Ok(())
    }
}

/// Takes the jobs of one order out of a batch.
fn take(batch: &mut Vec<Job>, order: WriteOrder) -> Vec<Job> {
    batch.extract_if(.., |job| matches!(job, Job::Write(job) if job.order() == order)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::write_job::write_job;
    use super::super::{connection, schema};
    use super::*;
    use tokio::sync::oneshot;

    fn level(connection: &Connection) -> Result<i64, SqliteFault> {
        Ok(connection.pragma_query_value(None, "synchronous", |row| row.get(0))?)
    }

    /// Answers how much SQLite waits for the disk while the job is done.
    fn look(fleeting: bool) -> (Job, oneshot::Receiver<Result<i64, StoreError>>) {
        let (answer, answered) = oneshot::channel();
        let order = if fleeting { WriteOrder::Fleeting } else { WriteOrder::Lasting };
        (Job::Write(write_job("looking", order, |writer| level(writer.connection), answer)), answered)
    }

    #[test]
    fn what_is_to_last_waits_for_the_disk_whatever_was_written_beside_it() {
        let home = tempfile::tempdir().unwrap();
        for (synchronous, lasting) in [(Synchronous::Full, 2), (Synchronous::Normal, 1)] {
            let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
            let path = home.path().join(synchronous.word());
            std::fs::File::create(&path).unwrap();
            let mut connection = connection::to_write(&path, options).unwrap();
            schema::migrate(&mut connection).unwrap();
            let health = Health::default();
            let mut writer = StoreWriter::new(&connection, options, None, &health).unwrap();
            for kinds in [&[false][..], &[true], &[false], &[false, true, false], &[true, true], &[true, false]] {
                let (mut jobs, answers): (Vec<_>, Vec<_>) = kinds.iter().map(|fleeting| look(*fleeting)).unzip();
                writer.write(&mut jobs);
                for (fleeting, mut answer) in kinds.iter().zip(answers) {
                    let expected = if *fleeting { 1 } else { lasting };
                    assert_eq!(answer.try_recv().unwrap().unwrap(), expected, "{kinds:?}");
                }
            }
        }
    }

    #[test]
    fn tidying_waits_until_the_writes_beside_it_are_answered_and_not_for_the_disk() {
        let home = tempfile::tempdir().unwrap();
        let (options, path) = (SqliteOptions::default(), home.path().join("chancery.db"));
        std::fs::File::create(&path).unwrap();
        let mut connection = connection::to_write(&path, options).unwrap();
        schema::migrate(&mut connection).unwrap();
        let health = Health::default();
        let mut writer = StoreWriter::new(&connection, options, None, &health).unwrap();
        let (lasting, answered) = look(false);
        let answered = std::sync::Mutex::new(answered);
        let (answer, mut tidied) = oneshot::channel();
        let look_around = move |writer: &mut StoreWriter<'_>| {
            let before = answered.lock().unwrap().try_recv().is_ok();
            Ok((before, level(writer.connection)?))
        };
        let tidying = Job::Write(write_job("tidying up", WriteOrder::Tidying, look_around, answer));
        writer.write(&mut vec![tidying, lasting]);
        assert_eq!(tidied.try_recv().unwrap().unwrap(), (true, 1));
    }
}
