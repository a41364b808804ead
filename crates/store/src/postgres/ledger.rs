//! What tasks were given and what they cost, as columns of their rows.

use std::sync::Arc;

use chancery_core::budget::{Amount, SettledReservation};
use chancery_core::{Governed, LineageRecord, MicroUsd, Spend};
use chancery_protocol::{TaskId, Timestamp, TraceId};
use tokio_postgres::Row;

use super::columns::{Columns as _, DatabaseSession, as_text};
use super::fault::PostgresFault;
use super::spent;
use crate::rows::cost_sources::{actual, estimate, number_of_actual, number_of_estimate};
use crate::rows::facts;

/// Of the table `tasks`, in the order `governed` reads them. The last six are put down when a task has a second turn.
pub(super) const COLUMNS: &str = "root, trace, parent, depth, settled_usd, settled_tokens, settled_tasks, reserved_usd, \
                                  reserved_tokens, reserved_tasks, overrun_usd, overrun_tokens, overrun_tasks, settled_at, \
                                  estimated_by, known_by, facts, earlier_usd, earlier_tokens, earlier_tasks, \
                                  earlier_overrun_usd, earlier_overrun_tokens, earlier_overrun_tasks";
pub(super) const COLUMN_COUNT: usize = 23;

/// The numbers of a cost, in the order of the columns from `settled_usd` to `known_by`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpendNumbers {
    /// Money, tokens and tasks that were settled, reserved, and spent beyond.
    pub(super) amounts: [i64; 9],
    pub(super) settled_at: Option<i64>,
    pub(super) estimated_by: i64,
    pub(super) known_by: Option<i64>,
}

impl SpendNumbers {
    pub(super) fn of(spend: &Spend) -> Self {
        let numbers = |Amount { usd, tokens, tasks }: Amount| [usd.0, tokens.cast_signed(), tasks.cast_signed()];
        let [settled, reserved, overrun] = [spend.settled, spend.reserved, spend.overrun].map(numbers);
        let mut amounts = [0; 9];
        amounts[..3].copy_from_slice(&settled);
        amounts[3..6].copy_from_slice(&reserved);
        amounts[6..].copy_from_slice(&overrun);
        Self {
            amounts,
            settled_at: spend.settled_at.map(Timestamp::micros),
            estimated_by: number_of_estimate(spend.estimated_by),
            known_by: spend.known_by.map(number_of_actual),
        }
    }
}

const SETTLE: &str =
    "UPDATE tasks SET settled_usd = $2, settled_tokens = $3, settled_tasks = $4, reserved_usd = $5, reserved_tokens = $6,
            reserved_tasks = $7, overrun_usd = $8, overrun_tokens = $9, overrun_tasks = $10, settled_at = $11, estimated_by = $12,
            known_by = $13
     WHERE id = $1 AND trace IS NOT NULL";

/// Writes what a turn cost that ended without its task. Answers whether the cost of the task is kept.
pub(super) async fn settle<D: DatabaseSession>(db: &D, task: &TaskId, spend: &Spend) -> Result<bool, PostgresFault> {
    part_turns(db, task, spend).await?;
    let SpendNumbers { amounts: a, settled_at, estimated_by, known_by } = SpendNumbers::of(spend);
    let changed = db
        .execute(
            SETTLE,
            &[
                &task.as_str(),
                &a[0],
                &a[1],
                &a[2],
                &a[3],
                &a[4],
                &a[5],
                &a[6],
                &a[7],
                &a[8],
                &settled_at,
                &estimated_by,
                &known_by,
            ],
        )
        .await?;
    Ok(changed > 0)
}

/// If another turn was settled, those that were kept before count by themselves from now on: see [`Spend::in_place_of`].
pub(super) async fn part_turns<D: DatabaseSession>(db: &D, task: &TaskId, spend: &Spend) -> Result<(), PostgresFault> {
    // Most tasks have one turn, and pay nothing for those that have more.
    if !has_earlier_turns(spend) {
        return Ok(());
    }
    let kept = spent::of_task(db, task, Timestamp::from_micros(i64::MIN)).await?;
    let Some(turn) = kept.filter(|turn| Some(turn.at) != spend.settled_at) else { return Ok(()) };
    spent::keep(db, &[turn]).await?;
    let earlier = "UPDATE tasks SET earlier_usd = settled_usd, earlier_tokens = settled_tokens, earlier_tasks = settled_tasks,
                                    earlier_overrun_usd = overrun_usd, earlier_overrun_tokens = overrun_tokens,
                                    earlier_overrun_tasks = overrun_tasks WHERE id = $1";
    db.execute(earlier, &[&task.as_str()]).await?;
    Ok(())
}

pub(super) fn has_earlier_turns(spend: &Spend) -> bool {
    spend.earlier != SettledReservation::default()
}

/// Reads `COLUMNS` from the start of a row.
pub(super) fn governed(row: &Row, task: &TaskId) -> Result<Governed, PostgresFault> {
    let facts = facts::decode(as_text(row.bytes(16)?)?)?;
    let kinship = LineageRecord {
        root: row.text_or_none(0)?.map_or_else(|| task.clone(), TaskId::new),
        trace: trace(row, 1)?,
        made: facts.made,
        parent: row.text_or_none(2)?.map(TaskId::new),
        depth: row.small(3)?,
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
        settled_at: row.time_or_none(13)?,
        estimated_by: estimate(row.try_get(14)?)?,
        known_by: row.try_get::<_, Option<i64>>(15)?.map(actual).transpose()?,
        earlier: SettledReservation { settled: amount(row, 17)?, overrun: amount(row, 20)? },
    };
    Ok(Governed { kinship: Arc::new(kinship), spend, verdicts: facts.verdicts })
}

pub(super) fn trace(row: &Row, at: usize) -> Result<TraceId, PostgresFault> {
    let bytes = row.bytes(at)?.try_into().map_err(|_| PostgresFault::unreadable("a trace id that has not 16 bytes"))?;
    Ok(TraceId(u128::from_be_bytes(bytes)))
}

/// Three columns, the first of them at this place.
pub(super) fn amount(row: &Row, at: usize) -> Result<Amount, PostgresFault> {
    Ok(Amount { usd: MicroUsd(row.try_get(at)?), tokens: row.count(at + 1)?, tasks: row.count(at + 2)? })
}
