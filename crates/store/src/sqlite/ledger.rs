//! What tasks were given and what they cost, as rows: written with their logs, or alone.

use std::sync::Arc;

use chancery_core::budget::{Amount, SettledReservation};
use chancery_core::{Governed, LineageRecord, MicroUsd, Spend};
use chancery_protocol::{TaskId, Timestamp, TraceId};
use rusqlite::{Connection, Row, Statement, ToSql};

use super::fault::SqliteFault;
use super::spent;
use crate::rows::cost_sources::{actual, estimate, number_of_actual, number_of_estimate};
use crate::rows::facts;

/// Of the table `tasks`, in the order `governed` reads them. The last six are put down when a task has a second turn.
pub(super) const COLUMNS: &str = "root, trace, parent, depth, settled_usd, settled_tokens, settled_tasks, reserved_usd, \
                                  reserved_tokens, reserved_tasks, overrun_usd, overrun_tokens, overrun_tasks, settled_at, \
                                  estimated_by, known_by, facts, earlier_usd, earlier_tokens, earlier_tasks, \
                                  earlier_overrun_usd, earlier_overrun_tokens, earlier_overrun_tasks";
pub(super) const COLUMN_COUNT: usize = 23;

/// What `bind_spend` binds, in its order. The row of a task that was always free has only `FREE_SPEND_COLUMNS`.
pub(super) const SPEND_COLUMNS: [&str; 12] = [
    "settled_usd",
    "settled_tokens",
    "settled_tasks",
    "reserved_usd",
    "reserved_tokens",
    "reserved_tasks",
    "overrun_usd",
    "overrun_tokens",
    "overrun_tasks",
    "settled_at",
    "estimated_by",
    "known_by",
];

/// What `bind_free_spend` binds, in its order.
pub(super) const FREE_SPEND_COLUMNS: [&str; 5] = ["settled_tasks", "reserved_tasks", "settled_at", "estimated_by", "known_by"];

/// What `bind_lineage` binds, in its order.
pub(super) const LINEAGE_COLUMNS: [&str; 5] = ["root", "trace", "parent", "depth", "facts"];

/// Values for a statement's parameters, one after the other.
#[derive(Debug)]
pub(super) struct BoundRow<'s, 'c> {
    statement: &'s mut Statement<'c>,
    bound: usize,
}

impl<'s, 'c> BoundRow<'s, 'c> {
    pub(super) fn of(statement: &'s mut Statement<'c>) -> Self {
        Self { statement, bound: 0 }
    }

    pub(super) fn put(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.bound += 1;
        self.statement.raw_bind_parameter(self.bound, value)
    }

    /// Answers how many rows changed.
    pub(super) fn execute(self) -> rusqlite::Result<usize> {
        self.statement.raw_execute()
    }

    pub(super) fn bind_lineage(&mut self, task: &TaskId, kinship: &LineageRecord, facts: &str) -> rusqlite::Result<()> {
        self.put((kinship.root != *task).then_some(kinship.root.as_str()))?;
        self.put(kinship.trace.0.to_be_bytes())?;
        self.put(kinship.parent.as_ref().map(TaskId::as_str))?;
        self.put(kinship.depth)?;
        self.put(facts)
    }

    pub(super) fn bind_spend(&mut self, spend: &Spend) -> rusqlite::Result<()> {
        let Spend { reserved, settled, overrun, .. } = spend;
        for Amount { usd, tokens, tasks } in [settled, reserved, overrun] {
            self.put(usd.0)?;
            self.put(tokens.cast_signed())?;
            self.put(tasks.cast_signed())?;
        }
        self.bind_sources(spend)
    }

    /// What is left of a spend that is free.
    pub(super) fn bind_free_spend(&mut self, spend: &Spend) -> rusqlite::Result<()> {
        self.put(spend.settled.tasks.cast_signed())?;
        self.put(spend.reserved.tasks.cast_signed())?;
        self.bind_sources(spend)
    }

    fn bind_sources(&mut self, spend: &Spend) -> rusqlite::Result<()> {
        self.put(spend.settled_at.map(|at| at.micros()))?;
        self.put(number_of_estimate(spend.estimated_by))?;
        self.put(spend.known_by.map(number_of_actual))
    }
}

/// Prepared once for the writer's connection: what a turn cost that ended without its task.
#[derive(Debug)]
pub(super) struct Ledgering<'c> {
    connection: &'c Connection,
    settle: Statement<'c>,
}

impl<'c> Ledgering<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, SqliteFault> {
        let columns = SPEND_COLUMNS.map(|column| format!("{column} = ?")).join(", ");
        let settle = format!("UPDATE tasks SET {columns} WHERE num = ? AND trace IS NOT NULL");
        Ok(Self { connection, settle: connection.prepare(&settle)? })
    }

    /// Answers whether the cost of the task is kept.
    pub(super) fn settle(&mut self, num: i64, spend: &Spend) -> Result<bool, SqliteFault> {
        self.part_turns(num, spend)?;
        let mut row = BoundRow::of(&mut self.settle);
        row.bind_spend(spend)?;
        row.put(num)?;
        Ok(row.execute()? > 0)
    }

    /// If another turn was settled, those that were kept before count by themselves from now on: see [`Spend::in_place_of`].
    pub(super) fn part_turns(&self, num: i64, spend: &Spend) -> Result<(), SqliteFault> {
        // Most tasks have one turn, and pay nothing for those that have more.
        if !has_earlier_turns(spend) {
            return Ok(());
        }
        let kept = spent::of_task(self.connection, num, Timestamp::from_micros(i64::MIN))?;
        let Some(turn) = kept.filter(|turn| Some(turn.at) != spend.settled_at) else { return Ok(()) };
        spent::keep(self.connection, &turn)?;
        let earlier = "UPDATE tasks SET earlier_usd = ifnull(settled_usd, 0), earlier_tokens = ifnull(settled_tokens, 0),
                              earlier_tasks = ifnull(settled_tasks, 0), earlier_overrun_usd = ifnull(overrun_usd, 0),
                              earlier_overrun_tokens = ifnull(overrun_tokens, 0),
                              earlier_overrun_tasks = ifnull(overrun_tasks, 0) WHERE num = ?1";
        self.connection.prepare_cached(earlier)?.execute([num])?;
        Ok(())
    }
}

/// Whether a spend has neither money nor tokens nor an overrun, as where no prices are set.
pub(super) fn is_free(spend: &Spend) -> bool {
    let is_free = |amount: &Amount| amount.usd == MicroUsd::default() && amount.tokens == 0;
    is_free(&spend.reserved) && is_free(&spend.settled) && spend.overrun == Amount::default()
}

pub(super) fn has_earlier_turns(spend: &Spend) -> bool {
    spend.earlier != SettledReservation::default()
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

/// Three columns, the first of them at this place. A column that was never written is zero.
pub(super) fn amount(row: &Row<'_>, at: usize) -> rusqlite::Result<Amount> {
    let number = |at: usize| row.get::<_, Option<i64>>(at).map(Option::unwrap_or_default);
    let count = |at: usize| number(at).map(i64::cast_unsigned);
    Ok(Amount { usd: MicroUsd(number(at)?), tokens: count(at + 1)?, tasks: count(at + 2)? })
}
