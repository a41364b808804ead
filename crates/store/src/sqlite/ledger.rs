//! What tasks were given and what they cost, as rows: written with their logs, or alone.

use std::sync::Arc;

use chancery_core::budget::{ActualSource, Amount, EstimateSource, SettledReservation};
use chancery_core::{Governed, LineageRecord, MicroUsd, Spend};
use chancery_protocol::{TaskId, Timestamp, TraceId};
use rusqlite::{Connection, Row, Statement, params};

use super::fault::SqliteFault;
use super::{facts, spent};

/// Of the table `ledger`, in the order `governed` reads them. The last six are put down when a task has a second turn.
pub(super) const COLUMNS: &str = "root, trace, parent, depth, settled_usd, settled_tokens, settled_tasks, reserved_usd, \
                                  reserved_tokens, reserved_tasks, overrun_usd, overrun_tokens, overrun_tasks, settled_at, \
                                  estimated_by, known_by, facts, earlier_usd, earlier_tokens, earlier_tasks, \
                                  earlier_overrun_usd, earlier_overrun_tokens, earlier_overrun_tasks";
pub(super) const COLUMN_COUNT: usize = 23;

/// Prepared once for the writer's connection: every task is put down when it is made and settled when it ends.
#[derive(Debug)]
pub(super) struct Ledgering<'c> {
    connection: &'c Connection,
    put_down: Statement<'c>,
    settle: Statement<'c>,
}

impl<'c> Ledgering<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, SqliteFault> {
        let put_down = "INSERT INTO ledger (task, root, trace, parent, depth, settled_usd, settled_tokens, settled_tasks,
                               reserved_usd, reserved_tokens, reserved_tasks, overrun_usd, overrun_tokens, overrun_tasks,
                               settled_at, estimated_by, known_by, facts)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
        let settle = "UPDATE ledger SET settled_usd = ?2, settled_tokens = ?3, settled_tasks = ?4, reserved_usd = ?5,
                             reserved_tokens = ?6, reserved_tasks = ?7, overrun_usd = ?8, overrun_tokens = ?9,
                             overrun_tasks = ?10, settled_at = ?11, estimated_by = ?12, known_by = ?13 WHERE task = ?1";
        Ok(Self { connection, put_down: connection.prepare(put_down)?, settle: connection.prepare(settle)? })
    }

    pub(super) fn put_down(
        &mut self,
        num: i64,
        task: &TaskId,
        kinship: &LineageRecord,
        spend: &Spend,
        facts: &str,
    ) -> rusqlite::Result<()> {
        let Spend { reserved, settled, overrun, .. } = spend;
        self.put_down.execute(params![
            num,
            (kinship.root != *task).then_some(kinship.root.as_str()),
            kinship.trace.0.to_be_bytes(),
            kinship.parent.as_ref().map(TaskId::as_str),
            kinship.depth,
            settled.usd.0,
            settled.tokens.cast_signed(),
            settled.tasks.cast_signed(),
            reserved.usd.0,
            reserved.tokens.cast_signed(),
            reserved.tasks.cast_signed(),
            overrun.usd.0,
            overrun.tokens.cast_signed(),
            overrun.tasks.cast_signed(),
            spend.settled_at.map(|at| at.micros()),
            number_of_estimate(spend.estimated_by),
            spend.known_by.map(number_of_actual),
            facts,
        ])?;
        Ok(())
    }

    /// Answers whether the task has a row.
    pub(super) fn settle(&mut self, num: i64, spend: &Spend) -> Result<bool, SqliteFault> {
        // Most tasks have one turn, and pay nothing for those that have more.
        if spend.earlier != SettledReservation::default() {
            self.part_turns(num, spend)?;
        }
        let Spend { reserved, settled, overrun, .. } = spend;
        let changed = self.settle.execute(params![
            num,
            settled.usd.0,
            settled.tokens.cast_signed(),
            settled.tasks.cast_signed(),
            reserved.usd.0,
            reserved.tokens.cast_signed(),
            reserved.tasks.cast_signed(),
            overrun.usd.0,
            overrun.tokens.cast_signed(),
            overrun.tasks.cast_signed(),
            spend.settled_at.map(|at| at.micros()),
            number_of_estimate(spend.estimated_by),
            spend.known_by.map(number_of_actual),
        ])?;
        Ok(changed > 0)
    }

    /// If another turn was settled, those that were kept before count by themselves from now on: see [`Spend::in_place_of`].
    fn part_turns(&self, num: i64, spend: &Spend) -> Result<(), SqliteFault> {
        let kept = spent::of_task(self.connection, num, Timestamp::from_micros(i64::MIN))?;
        let Some(turn) = kept.filter(|turn| Some(turn.at) != spend.settled_at) else { return Ok(()) };
        spent::keep(self.connection, &turn)?;
        let earlier =
            "UPDATE ledger SET earlier_usd = settled_usd, earlier_tokens = settled_tokens, earlier_tasks = settled_tasks,
                              earlier_overrun_usd = overrun_usd, earlier_overrun_tokens = overrun_tokens,
                              earlier_overrun_tasks = overrun_tasks WHERE task = ?1";
        self.connection.prepare_cached(earlier)?.execute([num])?;
        Ok(())
    }
}

/// Reads `COLUMNS` from the start of a row.
pub(super) fn governed(row: &Row<'_>, task: &TaskId) -> Result<Governed, SqliteFault> {
    let id = |at: usize| row.get::<_, Option<String>>(at).map(|id| id.map(TaskId::from));
    let facts = facts::decode(row.get_ref(16)?.as_str().map_err(rusqlite::Error::from)?)?;
    let kinship = LineageRecord {
        root: id(0)?.unwrap_or_else(|| task.clone()),
        trace: TraceId(u128::from_be_bytes(row.get(1)?)),
        made: facts.made,
        parent: id(2)?,
        depth: row.get(3)?,
        path: facts.path,
        attribution: facts.attribution,
        claimed: facts.claimed,
        skill: facts.skill,
        allowance: facts.allowance,
    };
    let spend = Spend {
        settled: amount(row, 4)?,
        reserved: amount(row, 7)?,
        overrun: amount(row, 10)?,
        settled_at: row.get::<_, Option<i64>>(13)?.map(Timestamp::from_micros),
        estimated_by: estimate(row.get(14)?)?,
        known_by: row.get::<_, Option<i64>>(15)?.map(actual).transpose()?,
        earlier: SettledReservation { settled: amount(row, 17)?, overrun: amount(row, 20)? },
    };
    Ok(Governed { kinship: Arc::new(kinship), spend, verdicts: facts.verdicts })
}

/// Three columns, the first of them at this place.
pub(super) fn amount(row: &Row<'_>, at: usize) -> rusqlite::Result<Amount> {
    let count = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    Ok(Amount { usd: MicroUsd(row.get(at)?), tokens: count(at + 1)?, tasks: count(at + 2)? })
}

const fn number_of_estimate(source: EstimateSource) -> i64 {
    match source {
        EstimateSource::None => 0,
        EstimateSource::Hint => 1,
        EstimateSource::Config => 2,
        EstimateSource::Card => 3,
        EstimateSource::Observed => 4,
        EstimateSource::Policy => 5,
        EstimateSource::Remainder => 6,
        EstimateSource::ConfigHint => 7,
        EstimateSource::CardHint => 8,
        EstimateSource::ObservedHint => 9,
    }
}

fn estimate(number: i64) -> Result<EstimateSource, SqliteFault> {
    use EstimateSource::{Card, CardHint, Config, ConfigHint, Hint, None, Observed, ObservedHint, Policy, Remainder};
    let known = [None, Hint, Config, Card, Observed, Policy, Remainder, ConfigHint, CardHint, ObservedHint];
    let source = known.into_iter().find(|source| number_of_estimate(*source) == number);
    source.ok_or_else(|| SqliteFault::unreadable(format!("source {number} of an estimate")))
}

const fn number_of_actual(source: ActualSource) -> i64 {
    match source {
        ActualSource::Reported => 1,
        ActualSource::Configured => 2,
        ActualSource::Measured => 3,
        ActualSource::Estimated => 4,
    }
}

fn actual(number: i64) -> Result<ActualSource, SqliteFault> {
    use ActualSource::{Configured, Estimated, Measured, Reported};
    let known = [Reported, Configured, Measured, Estimated];
    let source = known.into_iter().find(|source| number_of_actual(*source) == number);
    source.ok_or_else(|| SqliteFault::unreadable(format!("source {number} of a cost")))
}
