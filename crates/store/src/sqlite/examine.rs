//! Goes through a whole database and names what is damaged in it. Nothing is changed, so a node may run meanwhile.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::Path;

use chancery_core::{StoreError, StoreTrouble, Stored, task_state};
use chancery_protocol::{Task, TaskEvent};
use rusqlite::Connection;

use super::entries::places;
use super::fault::SqliteFault;
use super::find::{COLUMNS, stored};
use super::schema::{self, MOST_ENTRIES};
use super::{connection, decisions, ended_counts, ledger, snapshots};
use crate::rows::log::decode_row;

/// What was found in a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// The number of tasks.
    pub tasks: u64,
    /// The number of entries of their logs.
    pub entries: u64,
    /// What is damaged, in words, the first of many.
    pub damage: Vec<String>,
    /// How many more there are of those.
    pub not_named: u64,
}

/// So many faults are named; after that they are counted.
const MOST_NAMED: usize = 100;

impl Examined {
    /// Returns whether no fault was found.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }

    fn add(&mut self, what: impl Into<String>) {
        if self.damage.len() < MOST_NAMED {
            self.damage.push(what.into());
        } else {
            self.not_named += 1;
        }
    }

    /// A part that cannot be gone through to its end is damaged; the next part may not be.
    fn part(&mut self, name: &str, examine: impl FnOnce(&mut Self) -> Result<(), SqliteFault>) {
        if let Err(fault) = examine(self) {
            self.add(format!("{name} cannot be read to the end: {fault}"));
        }
    }
}

/// Fails only where there is no database of ours to look at.
pub(super) fn examine(path: &Path) -> Result<Examined, StoreError> {
    let failed = |what: &dyn Display| StoreError::new(format!("{}: {what}", path.display()));
    if !path.is_file() {
        return Err(failed(&"there is no such file"));
    }
    let connection = connection::to_read(path).map_err(|fault| failed(&fault))?;
    let mut examined = Examined::default();
    match schema::version(&connection) {
        Ok(schema::NEWEST) => {}
        Ok(0) => return Err(failed(&"the file is empty: no node has kept anything in it")),
        Ok(version) => {
            let newest = schema::NEWEST;
            return Err(failed(&format!(
                "the database has version {version} and this program knows {newest}; start the node once to bring it there"
            )));
        }
        Err(error) if error.trouble == StoreTrouble::Damaged => {
            examined.add(format!("the first page of the file: {error}"));
            return Ok(examined);
        }
        Err(error) => return Err(failed(&error)),
    }
    examined.part("the file", |examined| structure(&connection, examined));
    examined.part("table tasks", |examined| tasks(&connection, examined));
    examined.part("table log", |examined| orphans(&connection, examined, "log", "place >> 24"));
    examined.part("the costs in table tasks", |examined| costs(&connection, examined));
    examined.part("table ended_counts", |examined| counts(&connection, examined));
    examined.part("table links", |examined| orphans(&connection, examined, "links", "task"));
    examined.part("table snapshots", |examined| orphans(&connection, examined, "snapshots", "task"));
    examined.part("table decisions", |examined| decided(&connection, examined));
    Ok(examined)
}

/// What SQLite finds, with the names of tables and indexes in place of the numbers of their first pages.
fn structure(connection: &Connection, examined: &mut Examined) -> Result<(), SqliteFault> {
    let mut names = HashMap::new();
    let mut listed = connection.prepare("SELECT rootpage, type, name FROM sqlite_schema WHERE rootpage > 0")?;
    let mut rows = listed.query([])?;
    while let Some(row) = rows.next()? {
        names.insert(row.get::<_, i64>(0)?, format!("{} {}", row.get::<_, String>(1)?, row.get::<_, String>(2)?));
    }
    let mut check = connection.prepare("PRAGMA integrity_check(1000)")?;
    let mut rows = check.query([])?;
    while let Some(row) = rows.next()? {
        let found: String = row.get(0)?;
        let said = found.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "ok" && !line.starts_with("***"));
        said.for_each(|line| examined.add(named(line, &names)));
    }
    Ok(())
}

/// SQLite says `Tree 5 page 7: …`, where 5 is the first page of a table or an index.
fn named(line: &str, names: &HashMap<i64, String>) -> String {
    let tree = line.strip_prefix("Tree ").and_then(|rest| rest.split_once(' '));
    let known = tree.and_then(|(root, rest)| Some((names.get(&root.parse().ok()?)?, rest)));
    known.map_or_else(|| line.to_owned(), |(name, rest)| format!("{name}, {rest}"))
}

fn tasks(connection: &Connection, examined: &mut Examined) -> Result<(), SqliteFault> {
    let mut statement = connection.prepare(&format!("SELECT {COLUMNS}, num FROM tasks ORDER BY num"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        examined.tasks += 1;
        let num: i64 = row.get("num")?;
        match stored(row) {
            Ok(stored) => {
                if let Err(fault) = log(connection, num, &stored, examined) {
                    examined.add(format!("task {}: {fault}", stored.task.id));
                }
            }
            Err(fault) => examined.add(format!("row {num} of table tasks: {fault}")),
        }
    }
    Ok(())
}

/// A log begins with the task, has every number up to the last once, and comes to the state that the task's row has. On its way it
/// comes to the task that the snapshot has.
fn log(connection: &Connection, num: i64, row: &Stored, examined: &mut Examined) -> Result<(), SqliteFault> {
    let mut statement =
        connection.prepare_cached("SELECT place, entries FROM log WHERE place BETWEEN ?1 AND ?2 ORDER BY place")?;
    let mut rows = statement.query(places(num))?;
    let (mut seq, mut task) = (0, None::<Task>);
    let snapshot = snapshots::of_number(connection, num)?;
    while let Some(found) = rows.next()? {
        let first = found.get::<_, i64>(0)? & MOST_ENTRIES as i64;
        for entry in decode_row(found.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?)? {
            seq += 1;
            examined.entries += 1;
            if entry.seq != seq || first.cast_unsigned() > seq {
                return Err(SqliteFault::unreadable(format!("its log has entry {} where {seq} belongs", entry.seq)));
            }
            match (&mut task, entry.event) {
                (None, TaskEvent::Created(made)) if made.id == row.task.id => task = Some(Task::clone(&made)),
                (None, _) => return Err(SqliteFault::unreadable("its log does not begin with the task")),
                (Some(task), event) => task_state::apply(task, &event),
            }
            if let Some(snapshot) = snapshot.as_ref().filter(|snapshot| snapshot.seq == seq)
                && task.as_ref() != Some(&*snapshot.task)
            {
                return Err(SqliteFault::unreadable(format!("its snapshot differs from its log at entry {seq}")));
            }
        }
    }
    if seq != row.progress.seq {
        return Err(SqliteFault::unreadable(format!("its log ends with entry {seq}, and its row says {}", row.progress.seq)));
    }
    if let Some(later) = snapshot.map(|snapshot| snapshot.seq).filter(|later| *later > seq) {
        return Err(SqliteFault::unreadable(format!("its log ends with entry {seq}, and its snapshot says {later}")));
    }
    match task.map(|task| task.status.state) {
        Some(state) if state != row.progress.state && !row.progress.message_only => {
            let (log, row) = (state.name(), row.progress.state.name());
            Err(SqliteFault::unreadable(format!("its log ends as {log}, and its row says {row}")))
        }
        _ => Ok(()),
    }
}

fn orphans(connection: &Connection, examined: &mut Examined, table: &str, task: &str) -> Result<(), SqliteFault> {
    let sql = format!("SELECT count(*) FROM {table} WHERE {task} NOT IN (SELECT num FROM tasks)");
    match connection.query_row(&sql, [], |row| row.get::<_, u64>(0))? {
        0 => {}
        rows => examined.add(format!("table {table}: {rows} rows belong to no task")),
    }
    Ok(())
}

fn counts(connection: &Connection, examined: &mut Examined) -> Result<(), SqliteFault> {
    if connection.prepare(ended_counts::WRONG)?.exists([])? {
        examined.add("table ended_counts: a count of ended tasks differs from the tasks".to_owned());
    }
    Ok(())
}

fn costs(connection: &Connection, examined: &mut Examined) -> Result<(), SqliteFault> {
    let columns = ledger::COLUMNS;
    let sql = format!("SELECT {columns}, id FROM tasks WHERE trace IS NOT NULL ORDER BY num");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get("id")?;
        if let Err(fault) = ledger::governed(row, &id.as_str().into()) {
            examined.add(format!("what is kept of the cost of task {id}: {fault}"));
        }
    }
    Ok(())
}

fn decided(connection: &Connection, examined: &mut Examined) -> Result<(), SqliteFault> {
    let mut statement = connection.prepare("SELECT body, at, id FROM decisions ORDER BY num")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Err(fault) = decisions::decision(row) {
            examined.add(format!("decision {}: {fault}", row.get::<_, String>(2)?));
        }
    }
    Ok(())
}
