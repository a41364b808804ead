//! What tasks that are gone and earlier turns of others had cost, as long as a budget counts it or a bill may ask for it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use chancery_core::PastSpend;
use chancery_protocol::{AgentName, Caller, TaskId, Timestamp};
use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;

use super::columns::{self, Columns as _, DatabaseSession, as_text};
use super::fault::PostgresFault;
use super::{ledger, readers};
use crate::past;
use crate::rows::facts;

/// Of `tasks`, in the order `last_turn_since` reads them.
pub(super) const COLUMNS: &str = "settled_usd, settled_tokens, settled_tasks, overrun_usd, overrun_tokens, overrun_tasks, \
                                  settled_at, facts, tenant, owner, agent, earlier_usd, earlier_tokens, earlier_tasks, \
                                  earlier_overrun_usd, earlier_overrun_tokens, earlier_overrun_tasks, coalesce(root, id)";
pub(super) const COLUMN_COUNT: usize = 18;

/// What the last turn of a task has cost, if that was since then. Those before it are kept already.
pub(super) async fn of_task<D: DatabaseSession>(
    db: &D,
    task: &TaskId,
    since: Timestamp,
) -> Result<Option<PastSpend>, PostgresFault> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = $1 AND trace IS NOT NULL");
    let found = columns::row(db, &sql, &[&task.as_str()]).await?;
    found.map_or(Ok(None), |row| last_turn_since(&row, since))
}

/// Reads `COLUMNS` from the start of a row.
pub(super) fn last_turn_since(row: &Row, since: Timestamp) -> Result<Option<PastSpend>, PostgresFault> {
    let Some(at) = row.time_or_none(6)?.filter(|at| *at >= since) else { return Ok(None) };
    Ok(Some(PastSpend {
        owner: Caller { tenant: row.text(8)?, name: row.text(9)? },
        agent: row.text(10)?,
        skill: facts::skill(as_text(row.bytes(7)?)?)?,
        root: Some(row.task(17)?),
        settled: ledger::amount(row, 0)?.saturating_sub(ledger::amount(row, 11)?),
        overrun: ledger::amount(row, 3)?.saturating_sub(ledger::amount(row, 14)?),
        at,
    }))
}

/// What costs are added up by: the owner, the agent, the skill and the root of the tree.
type Payer = (Caller, AgentName, Option<Arc<str>>, Option<TaskId>);

/// What turns cost that were settled since then, added up. Goes through the whole ledger: only an operator asks for it.
pub(super) async fn all_since(
    session: &mut ClientWrapper,
    since: Timestamp,
    trees: bool,
) -> Result<Vec<PastSpend>, PostgresFault> {
    // One view for both: a task that goes meanwhile would be counted twice, or not at all.
    let view = readers::view(session).await?;
    let mut sums: HashMap<Payer, PastSpend> = HashMap::new();
    let mut add = |past: PastSpend| {
        let root = past.root.clone().filter(|_| trees);
        let key = (past.owner.clone(), past.agent.clone(), past.skill.clone(), root.clone());
        match sums.entry(key) {
            Entry::Occupied(mut sum) => past::merge(sum.get_mut(), &past),
            Entry::Vacant(new) => drop(new.insert(PastSpend { root, ..past })),
        }
    };
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE settled_at >= $1 AND trace IS NOT NULL");
    for row in view.rows(&sql, &[&since.micros()]).await? {
        last_turn_since(&row, since)?.into_iter().for_each(&mut add);
    }
    self::since(&view, since).await?.into_iter().for_each(add);
    view.commit().await?;
    Ok(sums.into_values().collect())
}

const KEEP: &str = "INSERT INTO spent (at, tenant, owner, agent, skill, root, settled_usd, settled_tokens, settled_tasks,
                                       overrun_usd, overrun_tokens, overrun_tasks)
     SELECT at, tenant, owner, agent, skill, root, settled_usd, settled_tokens, settled_tasks, overrun_usd, overrun_tokens, overrun_tasks
     FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[],
                 $10::bigint[], $11::bigint[], $12::bigint[]) WITH ORDINALITY
          AS given (at, tenant, owner, agent, skill, root, settled_usd, settled_tokens, settled_tasks, overrun_usd, overrun_tokens,
                    overrun_tasks, place)
     ORDER BY place";

pub(super) async fn keep<D: DatabaseSession>(db: &D, all: &[PastSpend]) -> Result<(), PostgresFault> {
    if all.is_empty() {
        return Ok(());
    }
    let numbers = |number: fn(&PastSpend) -> i64| all.iter().map(number).collect::<Vec<i64>>();
    let texts = |text: fn(&PastSpend) -> &str| all.iter().map(text).collect::<Vec<&str>>();
    let skills: Vec<Option<&str>> = all.iter().map(|past| past.skill.as_deref()).collect();
    let roots: Vec<Option<&str>> = all.iter().map(|past| past.root.as_ref().map(TaskId::as_str)).collect();
    db.execute(
        KEEP,
        &[
            &numbers(|past| past.at.micros()),
            &texts(|past| &past.owner.tenant),
            &texts(|past| &past.owner.name),
            &texts(|past| &past.agent),
            &skills,
            &roots,
            &numbers(|past| past.settled.usd.0),
            &numbers(|past| past.settled.tokens.cast_signed()),
            &numbers(|past| past.settled.tasks.cast_signed()),
            &numbers(|past| past.overrun.usd.0),
            &numbers(|past| past.overrun.tokens.cast_signed()),
            &numbers(|past| past.overrun.tasks.cast_signed()),
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn forget_before<D: DatabaseSession>(db: &D, since: Timestamp, at_most: i64) -> Result<(), PostgresFault> {
    let sql = "DELETE FROM spent WHERE num IN (SELECT num FROM spent WHERE at < $1 ORDER BY at LIMIT $2)";
    db.execute(sql, &[&since.micros(), &at_most]).await?;
    Ok(())
}

pub(super) async fn since<D: DatabaseSession>(db: &D, since: Timestamp) -> Result<Vec<PastSpend>, PostgresFault> {
    let sql =
        "SELECT settled_usd, settled_tokens, settled_tasks, overrun_usd, overrun_tokens, overrun_tasks, at, tenant, owner, agent,
                      skill, root
               FROM spent WHERE at >= $1 ORDER BY at, num";
    columns::each(db.rows(sql, &[&since.micros()]).await?, |row| {
        Ok(PastSpend {
            settled: ledger::amount(row, 0)?,
            overrun: ledger::amount(row, 3)?,
            at: row.time(6)?,
            owner: Caller { tenant: row.text(7)?, name: row.text(8)? },
            agent: row.text(9)?,
            skill: row.text_or_none(10)?,
            root: row.text_or_none(11)?.map(TaskId::new),
        })
    })
}
