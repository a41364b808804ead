//! What tasks that are gone and earlier turns of others had cost, as long as a budget counts it or a bill may ask for it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use chancery_core::PastSpend;
use chancery_protocol::{AgentName, Caller, TaskId, Timestamp};
use rusqlite::{Connection, Row, params};

use super::fault::SqliteFault;
use super::ledger;
use super::row_reader::RowReader;
use crate::past;

/// Of `tasks`, in the order `last_turn_since` reads them. A tenant, an owner and an agent begin at `OWNER`.
pub(super) const COLUMNS: &str =
    "settled_usd, settled_tokens, settled_tasks, overrun_usd, overrun_tokens, overrun_tasks, settled_at, facts,
                       tenant, owner, agent, earlier_usd, earlier_tokens, earlier_tasks, earlier_overrun_usd,
                       earlier_overrun_tokens, earlier_overrun_tasks, ifnull(root, id)";
pub(super) const COLUMN_COUNT: usize = 18;
pub(super) const OWNER: usize = 8;

/// What the last turn of a task has cost, if that was since then. Those before it are kept already.
pub(super) fn of_task(connection: &Connection, num: i64, since: Timestamp) -> Result<Option<PastSpend>, SqliteFault> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE num = ?1 AND trace IS NOT NULL");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([num])?;
    rows.next()?.map_or(Ok(None), |row| last_turn_since(row, since, &mut RowReader::default()))
}

/// Reads `COLUMNS` from the start of a row.
pub(super) fn last_turn_since(row: &Row<'_>, since: Timestamp, reader: &mut RowReader) -> Result<Option<PastSpend>, SqliteFault> {
    let Some(at) = row.get::<_, Option<i64>>(6)?.map(Timestamp::from_micros).filter(|at| *at >= since) else { return Ok(None) };
    Ok(Some(PastSpend {
        owner: Caller { tenant: reader.name(row, OWNER)?, name: reader.name(row, OWNER + 1)? },
        agent: reader.name(row, OWNER + 2)?,
        skill: reader.skill(row, 7)?,
        root: Some(TaskId::new(row.get_ref(17)?.as_str().map_err(rusqlite::Error::from)?)),
        settled: ledger::amount(row, 0)?.saturating_sub(ledger::amount(row, 11)?),
        overrun: ledger::amount(row, 3)?.saturating_sub(ledger::amount(row, 14)?),
        at,
    }))
}

/// What costs are added up by: the owner, the agent, the skill and the root of the tree.
type Payer = (Caller, AgentName, Option<Arc<str>>, Option<TaskId>);

/// What turns cost that were settled since then, added up. Goes through the whole ledger: only an operator asks for it.
pub(super) fn all_since(connection: &mut Connection, since: Timestamp, trees: bool) -> Result<Vec<PastSpend>, SqliteFault> {
    // One view for both: a task that goes meanwhile would be counted twice, or not at all.
    let view = connection.transaction()?;
    let mut sums: HashMap<Payer, PastSpend> = HashMap::new();
    let mut add = |past: PastSpend| {
        let root = past.root.clone().filter(|_| trees);
        let key = (past.owner.clone(), past.agent.clone(), past.skill.clone(), root.clone());
        match sums.entry(key) {
            Entry::Occupied(mut sum) => past::merge(sum.get_mut(), &past),
            Entry::Vacant(new) => drop(new.insert(PastSpend { root, ..past })),
        }
    };
    let mut statement = view.prepare(&format!("SELECT {COLUMNS} FROM tasks WHERE settled_at >= ?1 AND trace IS NOT NULL"))?;
    let mut rows = statement.query([since.micros()])?;
    let mut reader = RowReader::default();
    while let Some(row) = rows.next()? {
        last_turn_since(row, since, &mut reader)?.into_iter().for_each(&mut add);
    }
    self::since(&view, since)?.into_iter().for_each(add);
    Ok(sums.into_values().collect())
}

pub(super) fn keep(connection: &Connection, past: &PastSpend) -> Result<(), SqliteFault> {
    let PastSpend { owner, agent, skill, root, settled, overrun, at } = past;
    connection
        .prepare_cached(
            "INSERT INTO spent (at, tenant, owner, agent, skill, settled_usd, settled_tokens, settled_tasks, overrun_usd,
                                overrun_tokens, overrun_tasks, root)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
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
            root.as_ref().map(TaskId::as_str),
        ])?;
    Ok(())
}

pub(super) const FORGET: &str = "DELETE FROM spent WHERE num IN (SELECT num FROM spent WHERE at < ?1 ORDER BY at LIMIT ?2)";

pub(super) fn forget_before(connection: &Connection, since: Timestamp, at_most: i64) -> Result<(), SqliteFault> {
    connection.prepare_cached(FORGET)?.execute((since.micros(), at_most))?;
    Ok(())
}

pub(super) fn since(connection: &Connection, since: Timestamp) -> Result<Vec<PastSpend>, SqliteFault> {
    let mut statement = connection.prepare_cached(
        "SELECT settled_usd, settled_tokens, settled_tasks, overrun_usd, overrun_tokens, overrun_tasks, at, tenant, owner, agent,
                skill, root
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
            root: row.get::<_, Option<String>>(11)?.map(TaskId::from),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
