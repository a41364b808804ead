//! The one thread that writes: takes what has queued up, commits it at once, answers.

use std::time::Duration;

use chancery_core::push::{NewRegistration, Registered};
use chancery_core::{Appended, Chain, Freeze, FreezeScope, Lines, Spend, StoreError, SweepPlan};
use chancery_protocol::{TaskId, Timestamp};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::SqliteOptions;
use super::append::{Prepared, Statements};
use super::checkpoint::{self, Rope};
use super::deed::Deed;
use super::fault::Fault;
use super::options::Synchronous;
use super::sweep::{self, Place, Withdrawn};
use super::{decisions, freezes, record};

#[derive(Debug)]
pub(super) enum Job {
    Append(Box<Prepared>, oneshot::Sender<Result<Appended, StoreError>>),
    Register(Box<NewRegistration>, oneshot::Sender<Result<Registered, StoreError>>),
    Settle(TaskId, Box<Spend>, oneshot::Sender<Result<(), StoreError>>),
    Decide(decisions::Encoded, Lines, oneshot::Sender<Result<(), StoreError>>),
    Freeze(Box<Freeze>, Lines, oneshot::Sender<Result<(), StoreError>>),
    Thaw(FreezeScope, Lines, oneshot::Sender<Result<bool, StoreError>>),
    Sweep(SweepPlan, Timestamp, oneshot::Sender<Result<u64, StoreError>>),
    Do(Box<dyn Deed>),
    Withdraw(TaskId, Lines, oneshot::Sender<Result<bool, StoreError>>),
    /// For the record alone.
    Note(Lines, oneshot::Sender<Result<(), StoreError>>),
    Sign(Timestamp, oneshot::Sender<Result<(), StoreError>>),
    Forget(u64, oneshot::Sender<Result<u64, StoreError>>),
    /// A write that changes nothing anyone sees.
    Check(oneshot::Sender<Result<(), StoreError>>),
    /// No more jobs are taken; those that are queued are still done.
    Close,
}

/// What was done about a job, to be told when it is durable.
enum Done {
    Append(Result<Appended, StoreError>),
    Register(Registered),
    Settle(Result<(), StoreError>),
    Thaw(bool),
    Sweep(u64),
    Withdraw(bool),
    Written,
}

/// So much is linked at once: to go to and fro between two kinds of work costs more than the linking, and so does to carry about more
/// than a processor has at hand.
const LINKED_AT_ONCE_BYTES: usize = 4096;

/// How long answered appends stay undurable when that is asked for: long enough to be killed in.
const GAP_BEFORE_COMMIT: Duration = Duration::from_millis(20);

pub(super) fn run(
    connection: &Connection,
    mut queue: mpsc::Receiver<Job>,
    options: SqliteOptions,
    rope: &Rope,
    chain: Option<Box<dyn Chain>>,
) -> Result<(), Fault> {
    let mut writer = Writer::new(connection, options, chain)?;
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
                tracing::warn!(%fault, "the write-ahead log could not be started anew");
            }
        }
    }
    Ok(())
}

struct Writer<'c> {
    connection: &'c Connection,
    statements: Statements<'c>,
    options: SqliteOptions,
    /// The end of the record, if one is kept.
    chain: Option<Box<dyn Chain>>,
    /// What the jobs of the transaction that runs leave for it, in their order, until they are linked together.
    lines: Lines,
    place: Place,
    /// Whether a commit is on the disk when it is done.
    waits: bool,
}

impl<'c> Writer<'c> {
    fn new(connection: &'c Connection, options: SqliteOptions, chain: Option<Box<dyn Chain>>) -> Result<Self, Fault> {
        let statements = Statements::prepare(connection)?;
        Ok(Self { connection, statements, options, chain, lines: Lines::default(), place: Place::default(), waits: true })
    }
}

impl Writer<'_> {
    /// All of it in one transaction. If one job turns out to be impossible, each gets a transaction of its own.
    fn write(&mut self, batch: &mut Vec<Job>) {
        if self.options.answer_before_commit {
            return self.answer_then_commit(batch);
        }
        self.write_fleeting(batch);
        if batch.is_empty() {
            return;
        }
        match self.wait_for_disk(true).and_then(|()| self.commit(batch)) {
            Ok(done) => batch.drain(..).zip(done).for_each(|(job, done)| tell(job, Ok(done))),
            Err(fault) if fault.concerns_one_append() && batch.len() > 1 => {
                for job in batch.drain(..) {
                    let done = self.commit(std::slice::from_ref(&job)).map(|mut done| done.pop());
                    tell(job, done.and_then(|done| done.ok_or_else(|| Fault::unreadable("nothing was done"))));
                }
            }
            Err(fault) => batch.drain(..).for_each(|job| tell(job, Err(fault.clone()))),
        }
    }

    /// In a transaction before the others', for which nobody waits until it is on the disk. All jobs of a batch were asked for at the
    /// same time, so none of them can mind.
    fn write_fleeting(&mut self, batch: &mut Vec<Job>) {
        let fleeting = |job: &mut Job| matches!(job, Job::Do(deed) if deed.is_fleeting());
        let jobs: Vec<Job> = batch.extract_if(.., fleeting).collect();
        if jobs.is_empty() {
            return;
        }
        let done = self.wait_for_disk(false).and_then(|()| self.commit(&jobs));
        match done {
            Ok(done) => jobs.into_iter().zip(done).for_each(|(job, done)| tell(job, Ok(done))),
            Err(fault) => jobs.into_iter().for_each(|job| tell(job, Err(fault.clone()))),
        }
    }

    /// Whether commits from now on do, where they do at all.
    fn wait_for_disk(&mut self, wait: bool) -> Result<(), Fault> {
        let usual = self.options.synchronous;
        if self.waits != wait && usual == Synchronous::Full {
            let word = if wait { usual } else { Synchronous::Normal }.word();
            self.connection.pragma_update(None, "synchronous", word)?;
            self.waits = wait;
        }
        Ok(())
    }

    /// The wrong order, for the test that must find it out.
    fn answer_then_commit(&mut self, batch: &mut Vec<Job>) {
        let done = self.connection.execute_batch("BEGIN IMMEDIATE").map_err(Fault::from);
        let done = done.and_then(|()| batch.iter().map(|job| self.perform(job)).collect::<Result<Vec<_>, _>>());
        let done = done.and_then(|done| self.keep_record().map(|()| done));
        match done {
            Ok(done) => batch.drain(..).zip(done).for_each(|(job, done)| tell(job, Ok(done))),
            Err(fault) => batch.drain(..).for_each(|job| tell(job, Err(fault.clone()))),
        }
        std::thread::sleep(GAP_BEFORE_COMMIT);
        if let Err(error) = self.connection.execute_batch("COMMIT") {
            tracing::error!(%error, "a commit failed after its appends were answered");
        }
        self.chain.iter_mut().for_each(|chain| chain.written());
    }

    fn commit(&mut self, batch: &[Job]) -> Result<Vec<Done>, Fault> {
        let finished_before = self.statements.finished;
        let outcome = self.try_commit(batch);
        if outcome.is_err() {
            self.statements.finished = finished_before;
            self.lines.0.clear();
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

    fn try_commit(&mut self, batch: &[Job]) -> Result<Vec<Done>, Fault> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let done = batch.iter().map(|job| self.perform(job)).collect::<Result<_, _>>()?;
        self.keep_record()?;
        self.connection.execute_batch("COMMIT")?;
        self.chain.iter_mut().for_each(|chain| chain.written());
        Ok(done)
    }

    fn keep_record(&mut self) -> Result<(), Fault> {
        self.link();
        self.chain.as_deref().map_or(Ok(()), |chain| record::keep(self.connection, chain))
    }

    /// In the order of the commits: only jobs that were done come here.
    fn add_to_record(&mut self, lines: &Lines) {
        self.lines.0.extend_from_slice(&lines.0);
        if self.lines.0.len() >= LINKED_AT_ONCE_BYTES {
            self.link();
        }
    }

    fn link(&mut self) {
        self.chain.iter_mut().for_each(|chain| chain.add(&self.lines));
        self.lines.0.clear();
    }

    fn perform(&mut self, job: &Job) -> Result<Done, Fault> {
        Ok(match job {
            Job::Append(prepared, _) => {
                let verdict = self.statements.write(prepared)?;
                if let Ok(Appended::Recorded | Appended::RecordedToTell | Appended::RecordedBehind) = verdict {
                    self.add_to_record(&prepared.lines);
                }
                Done::Append(verdict)
            }
            Job::Register(new, _) => Done::Register(self.statements.register(new)?),
            Job::Settle(task, spend, _) => Done::Settle(self.statements.settle(task, spend)?),
            Job::Decide(decision, lines, _) => {
                decisions::keep(self.connection, decision)?;
                self.add_to_record(lines);
                Done::Written
            }
            Job::Freeze(freeze, lines, _) => {
                freezes::keep(self.connection, freeze)?;
                self.add_to_record(lines);
                Done::Written
            }
            Job::Thaw(scope, lines, _) => {
                let thawed = freezes::remove(self.connection, scope)?;
                if thawed {
                    self.add_to_record(lines);
                }
                Done::Thaw(thawed)
            }
            Job::Sweep(plan, now, _) => {
                let gone = sweep::sweep(self.connection, *plan, *now, self.statements.finished, &mut self.place)?;
                self.statements.finished -= gone;
                Done::Sweep(gone)
            }
            Job::Withdraw(task, lines, _) => {
                let withdrawn = sweep::withdraw(self.connection, task)?;
                self.statements.finished -= u64::from(withdrawn == Some(Withdrawn::Finished));
                if withdrawn.is_some() {
                    self.add_to_record(lines);
                }
                Done::Withdraw(withdrawn.is_some())
            }
            Job::Do(deed) => {
                deed.perform(self.connection, &mut |lines| self.lines.0.extend_from_slice(&lines.0))?;
                Done::Written
            }
            Job::Note(lines, _) => {
                self.add_to_record(lines);
                Done::Written
            }
            Job::Sign(at, _) => {
                self.link();
                self.chain.iter_mut().for_each(|chain| chain.sign(*at));
                Done::Written
            }
            Job::Forget(before, _) => Done::Sweep(record::forget(self.connection, *before)?),
            Job::Check(_) | Job::Close => {
                self.connection.prepare_cached("UPDATE readiness SET checks = checks + 1")?.execute([])?;
                Done::Written
            }
        })
    }
}

/// Nobody may be waiting any more; that is fine.
fn tell(job: Job, done: Result<Done, Fault>) {
    match (job, done) {
        (Job::Append(_, answer), Ok(Done::Append(verdict))) => drop(answer.send(verdict)),
        (Job::Append(_, answer), Err(fault)) => drop(answer.send(Err(fault.while_doing("writing to the log")))),
        (Job::Register(_, answer), Ok(Done::Register(registered))) => drop(answer.send(Ok(registered))),
        (Job::Register(_, answer), Err(fault)) => drop(answer.send(Err(fault.while_doing("registering a webhook")))),
        (Job::Settle(.., answer), Ok(Done::Settle(verdict))) => drop(answer.send(verdict)),
        (Job::Settle(.., answer), Err(fault)) => drop(answer.send(Err(fault.while_doing("settling what a task cost")))),
        (Job::Decide(.., answer), Ok(_)) => drop(answer.send(Ok(()))),
        (Job::Decide(.., answer), Err(fault)) => drop(answer.send(Err(fault.while_doing("keeping a decision")))),
        (Job::Freeze(.., answer), Ok(_)) => drop(answer.send(Ok(()))),
        (Job::Freeze(.., answer), Err(fault)) => drop(answer.send(Err(fault.while_doing("freezing")))),
        (Job::Thaw(.., answer), Ok(Done::Thaw(was_frozen))) => drop(answer.send(Ok(was_frozen))),
        (Job::Thaw(.., answer), Err(fault)) => drop(answer.send(Err(fault.while_doing("thawing")))),
        (Job::Sweep(.., answer), Ok(Done::Sweep(gone))) => drop(answer.send(Ok(gone))),
        (Job::Sweep(.., answer), Err(fault)) => drop(answer.send(Err(fault.while_doing("forgetting old tasks")))),
        (Job::Do(deed), done) => deed.tell(done.map(drop)),
        (Job::Withdraw(.., answer), Ok(Done::Withdraw(gone))) => drop(answer.send(Ok(gone))),
        (Job::Withdraw(.., answer), Err(fault)) => drop(answer.send(Err(fault.while_doing("taking a task back")))),
        (Job::Note(_, answer) | Job::Sign(_, answer), Ok(_)) => drop(answer.send(Ok(()))),
        (Job::Note(_, answer) | Job::Sign(_, answer), Err(fault)) => {
            drop(answer.send(Err(fault.while_doing("adding to the record"))));
        }
        (Job::Forget(.., answer), Ok(Done::Sweep(gone))) => drop(answer.send(Ok(gone))),
        (Job::Forget(.., answer), Err(fault)) => {
            drop(answer.send(Err(fault.while_doing("forgetting old entries of the record"))))
        }
        (Job::Check(answer), Ok(_)) => drop(answer.send(Ok(()))),
        (Job::Check(answer), Err(fault)) => drop(answer.send(Err(fault.while_doing("a trial write")))),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::deed::Write;
    use super::super::{connection, schema};
    use super::*;

    fn level(connection: &Connection) -> Result<i64, Fault> {
        Ok(connection.pragma_query_value(None, "synchronous", |row| row.get(0))?)
    }

    /// Answers how much SQLite waits for the disk while the job is done.
    fn look(fleeting: bool) -> (Job, oneshot::Receiver<Result<i64, StoreError>>) {
        let (answer, answered) = oneshot::channel();
        let work = |connection: &Connection, _: &mut dyn FnMut(&Lines)| level(connection);
        (Job::Do(Box::new(Write { what: "looking", fleeting, work, done: RefCell::new(None), answer })), answered)
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
            let mut writer = Writer::new(&connection, options, None).unwrap();
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
}
