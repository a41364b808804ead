//! The statements of a batch. Each checks that the one before it was done, and that all of its own rows were.

use super::task_rows::{
    AdvancedTasks, AnsweredCalls, EndedRows, KeptDecisions, LogEntries, MadeTasks, RecordBlocks, RecordCheckpoints, TaskLinks,
    UsedKeys,
};

/// The parameters before those of a statement itself: the step before, its own step, and how many rows it has.
const STEP_VALUES: usize = 3;

/// The text of every statement of a batch, made once.
#[derive(Debug)]
pub(super) struct BatchSql {
    pub(super) fence: String,
    pub(super) make: String,
    pub(super) advance: String,
    pub(super) log: String,
    pub(super) keys: String,
    pub(super) links: String,
    pub(super) decisions: String,
    pub(super) answers: String,
    pub(super) ended: String,
    pub(super) blocks: String,
    pub(super) checkpoints: String,
    pub(super) drop_signed: String,
}

type ColumnList = &'static [(&'static str, &'static str)];

impl BatchSql {
    pub(super) fn new(is_member: bool) -> Self {
        Self {
            fence: stepped(
                "UPDATE writers SET batch = batch + 1
                 WHERE node = $4 AND life = $5::text::uuid AND writer = $6 AND batch = $7 AND NOT closed",
            ),
            make: stepped(&insert("tasks", MadeTasks::COLUMNS)),
            advance: if is_member { advance_held() } else { stepped(&advance()) },
            log: stepped(&insert("log", LogEntries::COLUMNS)),
            // A key that has expired makes room for itself.
            keys: stepped(&format!(
                "INSERT INTO keys (tenant, owner, key, task, fingerprint, expires_at)
                 SELECT tenant, owner, key, task, fingerprint, expires_at FROM {} ORDER BY tenant, owner, key
                 ON CONFLICT (tenant, owner, key) DO UPDATE
                 SET task = excluded.task, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at
                 WHERE keys.expires_at <= (SELECT now FROM {} WHERE (tenant, owner, key) = (keys.tenant, keys.owner, keys.key))",
                given(UsedKeys::COLUMNS),
                given(UsedKeys::COLUMNS),
            )),
            links: stepped(&format!(
                "{} ON CONFLICT (task) DO UPDATE
                 SET peer = excluded.peer, peer_task = excluded.peer_task, peer_context = excluded.peer_context",
                insert("links", TaskLinks::COLUMNS)
            )),
            // One that is known stays, so what is counted is what was given.
            decisions: stepped_by_input(
                "WITH kept AS (INSERT INTO decisions (id, task, at, body) SELECT id, task, at, body FROM given ORDER BY place
                               ON CONFLICT (id) DO NOTHING)",
                KeptDecisions::COLUMNS,
            ),
            answers: answers(),
            ended: stepped(&format!(
                "{} ON CONFLICT (tenant, owner, agent, state, message_only, node) DO UPDATE
                 SET tasks = ended_counts.tasks + excluded.tasks",
                insert("ended_counts", EndedRows::COLUMNS)
            )),
            blocks: stepped(&insert("record", RecordBlocks::COLUMNS)),
            checkpoints: stepped(&insert("record_checkpoints", RecordCheckpoints::COLUMNS)),
            // A seal signs all that the checkpoints before it did.
            drop_signed: format!(
                "WITH gone AS (DELETE FROM record_checkpoints WHERE book = $5 AND covers <= $4 AND NOT sealed)
                 SELECT {}, {SET_STEP} FROM (SELECT $3::bigint AS rows) given",
                check("rows = $3::bigint")
            ),
        }
    }
}

/// What the last statement asks: that all before it were done.
pub(super) fn last_check(step: &str) -> String {
    format!("SELECT 1 / (coalesce(current_setting('chancery.step', true), '') = '{step}')::int")
}

const SET_STEP: &str = "set_config('chancery.step', $2::text, true)";

/// Fails the transaction unless a condition holds and the statement before this one was done.
fn check(condition: &str) -> String {
    format!("1 / ({condition} AND coalesce(current_setting('chancery.step', true), '') = $1::text)::int")
}

fn stepped(write: &str) -> String {
    format!("WITH done AS ({write} RETURNING 1) SELECT {}, {SET_STEP} FROM done", check("count(*) = $3::bigint"))
}

fn stepped_by_input(write: &str, columns: ColumnList) -> String {
    let names = names(columns);
    let source = unnested(columns);
    let write = write.trim_start_matches("WITH ");
    format!(
        "WITH given AS (SELECT * FROM {source} WITH ORDINALITY AS given ({names}, place)), {write}
         SELECT {}, {SET_STEP} FROM given",
        check("count(*) = $3::bigint")
    )
}

fn names(columns: ColumnList) -> String {
    columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The arrays of a statement as rows.
fn unnested(columns: ColumnList) -> String {
    let arrays = columns.iter().zip(STEP_VALUES + 1..).map(|((_, kind), place)| format!("${place}::{kind}[]"));
    format!("unnest({})", arrays.collect::<Vec<_>>().join(", "))
}

fn given(columns: ColumnList) -> String {
    format!("{} AS given ({})", unnested(columns), names(columns))
}

fn insert(table: &str, columns: ColumnList) -> String {
    let names = names(columns);
    format!("INSERT INTO {table} ({names}) SELECT {names} FROM {}", given(columns))
}

/// The same of a member: only the holder of a task appends to it, and an ended task has none. It answers which of the tasks
/// are watched, and the writer's row remembers the batch with any. Behind the columns it takes the node and its writer.
fn advance_held() -> String {
    let node = STEP_VALUES + AdvancedTasks::COLUMNS.len() + 1;
    let write = advance().replacen(
        " SET ",
        &format!(" SET node = CASE WHEN given.stage = 3 THEN NULL ELSE ${node}::bigint END, released = false, "),
        1,
    );
    format!(
        "WITH done AS ({write} AND (tasks.node = ${node} OR tasks.node IS NULL AND tasks.stage = 3)
                       RETURNING tasks.num, tasks.watched),
              told AS (UPDATE writers SET told = batch WHERE node = ${node} AND writer = ${writer}
                       AND EXISTS (SELECT 1 FROM done WHERE watched))
         SELECT {}, {SET_STEP}, coalesce(array_agg(num) FILTER (WHERE watched), '{{}}'::bigint[]) FROM done",
        check("count(*) = $3::bigint"),
        writer = node + 1,
    )
}

/// Calls of other nodes that appends are about. It answers which, and whose they are. Behind the columns it takes the node.
fn answers() -> String {
    let node = STEP_VALUES + AnsweredCalls::COLUMNS.len() + 1;
    format!(
        "WITH done AS (UPDATE forwarded_calls SET state = 2, answer = given.answer FROM {}
                       WHERE forwarded_calls.num = given.num AND to_node = ${node} AND state = 1
                       RETURNING forwarded_calls.num, from_node)
         SELECT {}, {SET_STEP}, array_agg(num), array_agg(from_node) FROM done",
        given(AnsweredCalls::COLUMNS),
        check("count(*) = $3::bigint")
    )
}

/// What a row has to be is in the first three columns. A cost is written where there is one.
fn advance() -> String {
    let columns = AdvancedTasks::COLUMNS;
    let progress = ["state", "status_at", "seq", "bytes", "message_only", "stage"];
    let costs = columns.iter().map(|(name, _)| *name).skip_while(|name| *name != "settles").skip(1);
    let costs = costs.map(|name| format!("{name} = CASE WHEN given.settles THEN given.{name} ELSE tasks.{name} END"));
    let values: Vec<String> = progress.into_iter().map(|name| format!("{name} = given.{name}")).chain(costs).collect();
    format!(
        "UPDATE tasks SET {} FROM {} WHERE tasks.num = given.num AND tasks.seq = given.follows AND tasks.lanes = given.lanes",
        values.join(", "),
        given(columns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_checks_the_step_before_it_and_sets_its_own() {
        let (sql, of_member) = (BatchSql::new(false), BatchSql::new(true));
        let all = [
            &of_member.advance,
            &sql.answers,
            &sql.fence,
            &sql.make,
            &sql.advance,
            &sql.log,
            &sql.keys,
            &sql.links,
            &sql.decisions,
            &sql.ended,
            &sql.blocks,
            &sql.checkpoints,
            &sql.drop_signed,
        ];
        for statement in all {
            assert!(statement.contains("= $1::text)::int") && statement.contains(SET_STEP), "{statement}");
        }
    }
}
