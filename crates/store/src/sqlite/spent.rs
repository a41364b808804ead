//! What tasks that are gone and earlier turns of others had cost, as long as a budget counts it.

use std::sync::Arc;

use chancery_core::PastSpend;
use chancery_protocol::{Caller, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::fault::Fault;
use super::{facts, ledger};

/// What the last turn of a task has cost, if that was since then. Those before it are kept already.
pub(super) fn of_task(connection: &Connection, num: i64, since: Timestamp) -> Result<Option<PastSpend>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT settled_usd, settled_tokens, settled_tasks, overrun_usd, overrun_tokens, overrun_tasks, settled_at, facts,
                tenant, owner, agent, earlier_usd, earlier_tokens, earlier_tasks, earlier_overrun_usd, earlier_overrun_tokens,
                earlier_overrun_tasks
         FROM ledger JOIN tasks ON tasks.num = ledger.task WHERE task = ?1 AND settled_at >= ?2",
    )?;
    let found = statement.query_row((num, since.micros()), |row| {
        let text = |at: usize| row.get::<_, String>(at).map(Arc::<str>::from);
        let past = PastSpend {
            owner: Caller { tenant: text(8)?, name: text(9)? },
            agent: text(10)?,
            skill: None,
            settled: ledger::amount(row, 0)?.saturating_sub(ledger::amount(row, 11)?),
            overrun: ledger::amount(row, 3)?.saturating_sub(ledger::amount(row, 14)?),
            at: Timestamp::from_micros(row.get(6)?),
        };
        Ok((past, row.get::<_, String>(7)?))
    });
    let Some((past, facts)) = found.optional()? else { return Ok(None) };
    Ok(Some(PastSpend { skill: facts::skill(&facts)?, ..past }))
}

pub(super) fn keep(connection: &Connection, past: &PastSpend) -> Result<(), Fault> {
    let PastSpend { owner, agent, skill, settled, overrun, at } = past;
    connection
        .prepare_cached(
            "INSERT INTO spent (at, tenant, owner, agent, skill, settled_usd, settled_tokens, settled_tasks, overrun_usd,
                                overrun_tokens, overrun_tasks)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            at.micros(),
            &*owner.tenant,
            &*owner.name,
            &**agent,
            skill.as_deref(),
            settled.usd.0,
            settled.tokens.cast_signed(),
            settled.tasks.cast_signed(),
            overrun.usd.0,
            overrun.tokens.cast_signed(),
            overrun.tasks.cast_signed(),
        ])?;
    Ok(())
}

pub(super) const FORGET: &str = "DELETE FROM spent WHERE num IN (SELECT num FROM spent WHERE at < ?1 ORDER BY at LIMIT ?2)";

pub(super) fn forget_before(connection: &Connection, since: Timestamp, at_most: i64) -> Result<(), Fault> {
    connection.prepare_cached(FORGET)?.execute((since.micros(), at_most))?;
    Ok(())
}

pub(super) fn since(connection: &Connection, since: Timestamp) -> Result<Vec<PastSpend>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT settled_usd, settled_tokens, settled_tasks, overrun_usd, overrun_tokens, overrun_tasks, at, tenant, owner, agent,
                skill
         FROM spent WHERE at >= ?1 ORDER BY at, num",
    )?;
    let rows = statement.query_map([since.micros()], |row| {
        let text = |at: usize| row.get::<_, String>(at).map(Arc::<str>::from);
        Ok(PastSpend {
            settled: ledger::amount(row, 0)?,
            overrun: ledger::amount(row, 3)?,
            at: Timestamp::from_micros(row.get(6)?),
            owner: Caller { tenant: text(7)?, name: text(8)? },
            agent: text(9)?,
            skill: row.get::<_, Option<String>>(10)?.map(Arc::from),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
