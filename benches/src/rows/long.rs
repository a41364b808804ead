//! What a read costs where there is much to read: a task with a long log, and a page of a list among many tasks.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use chancery::store::ListFilter;
use chancery::{Finished, Node, RunError, TaskRunner, TaskUpdateSink, Turn, async_trait, new_card};
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use super::identity::{line as plain_line, timed};
use super::{Effort, Match, Row};
use crate::report::{MeasuredRow, Pair, RowTarget, Unit};

const SNAPSHOT_WITHIN: Duration = Duration::from_millis(500);
const CLOSED_WITHIN: Duration = Duration::from_secs(10);
/// Reads that are timed together.
const READS: usize = 100;
/// How much longer a task of 5,000 entries may take than one of 5.
const LONG_AT_MOST: f64 = 1.2;
const LONG: u64 = 5_000;
const SHORT: u64 = 5;
/// How much longer a list among many tasks may take than one among few.
const LIST_AT_MOST: f64 = 1.5;
const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;
/// A look in a hurry makes fewer.
const MANY_QUICK: u64 = 100_000;
const PAGE: usize = 20;

/// Whose list it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    Caller,
    Operator,
    /// An operator's, of the few tasks that failed, which are the oldest.
    Failed,
}

/// Says as often as it is told that it works.
#[derive(Debug, Clone, Copy)]
struct Worker;

#[async_trait]
impl TaskRunner for Worker {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let times: u64 = turn.message.first_text().and_then(|text| text.parse().ok()).unwrap_or_default();
        for _ in 0..times {
            updates.working(None).await?;
        }
        Ok(updates.complete(None))
    }
}

/// A node in this process with its tasks in a folder, and no socket between.
struct LocalNode {
    node: Node,
    router: Router,
}

impl LocalNode {
    async fn open(folder: &Path) -> Result<Self> {
        let mut config = chancery::Config::default();
        config.limits.inbound.calls_per_second_per_caller = 0;
        config.retention.max_tasks = 0;
        let card = new_card("Worker", "Says that it works.");
        let node = Node::builder().agent("worker", card, Worker).config(config).sqlite(folder).build().await?;
        Ok(Self { router: node.router(), node })
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let request = Request::post("http://127.0.0.1/").header("content-type", "application/json").header("a2a-version", "1.0");
        let response = self.router.clone().oneshot(request.body(Body::from(body))?).await?;
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await?;
        let answer: Value = serde_json::from_slice(&body)?;
        answer.get("result").cloned().with_context(|| format!("{method}: {answer}"))
    }

    /// The id of a task that has so many entries.
    async fn task_of(&self, entries: u64) -> Result<String> {
        let mut params = crate::request::message(&entries.saturating_sub(2).to_string());
        params["message"]["messageId"] = format!("m-{entries}").into();
        let sent = self.call("SendMessage", params).await?;
        Ok(sent["task"]["id"].as_str().context("the send made no task")?.to_owned())
    }

    async fn list(&self, kind: ListKind) -> Result<()> {
        let filter = match kind {
            ListKind::Caller => {
                let page = self.call("ListTasks", json!({ "pageSize": PAGE })).await?;
                let shown = page["tasks"].as_array().map_or(0, Vec::len);
                ensure!(shown == PAGE, "a page of {shown} tasks");
                return Ok(());
            }
            ListKind::Operator => ListFilter::default(),
            ListKind::Failed => ListFilter { state: Some(chancery::TaskState::Failed), ..ListFilter::default() },
        };
        let listed = self.node.chancery().operator_list(&filter, None, PAGE).await;
        let (tasks, total) = listed.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        ensure!(!tasks.is_empty() && total > 0, "an empty list");
        black_box(tasks);
        Ok(())
    }
}

/// A task of 5,000 entries, beside one of 5. Both answers have no history.
pub(super) fn get(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let runtime = runtime()?;
    let folder = tempfile::tempdir_in(this.ground.scratch())?;
    let (node, short, long) = runtime.block_on(async {
        let node = LocalNode::open(folder.path()).await?;
        let (short, long) = (node.task_of(SHORT).await?, node.task_of(LONG).await?);
        // The snapshot follows the answer.
        tokio::time::sleep(SNAPSHOT_WITHIN).await;
        Ok::<_, anyhow::Error>((node, short, long))
    })?;
    let read = |id: &str| {
        timed(this.effort.rounds, reads, |()| {
            let params = json!({ "id": id, "historyLength": 0 });
            runtime.block_on(node.call("GetTask", params)).map(|task| drop(black_box(task)))
        })
    };
    let (few, many) = (read(&short)?, read(&long)?);
    let note = format!("GetTask on disk, in this process; {SHORT} and {LONG} entries");
    Ok(slower(row, [few, many], LONG_AT_MOST, note))
}

/// A page of twenty of a list, among a million tasks and among a thousand.
pub(super) fn list(row: &Row, kind: ListKind, this: &Match<'_>) -> Result<MeasuredRow> {
    let is_quick = this.effort.rounds < Effort::FULL.rounds;
    let many_tasks = if is_quick { MANY_QUICK } else { MANY };
    let read = |tasks: u64| {
        let runtime = runtime()?;
        let folder = tempfile::tempdir_in(this.ground.scratch())?;
        fill(&runtime, folder.path(), tasks)?;
        let node = runtime.block_on(LocalNode::open(folder.path()))?;
        timed(this.effort.rounds, reads, |()| runtime.block_on(node.list(kind)))
    };
    let (few, many) = (read(FEW)?, read(many_tasks)?);
    let note = format!("a page of {PAGE} and the total, in this process; {FEW} and {many_tasks} tasks");
    Ok(slower(row, [few, many], LIST_AT_MOST, note))
}

fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn reads() -> Result<Vec<()>> {
    Ok(vec![(); READS])
}

fn slower(row: &Row, [few, many]: [f64; 2], at_most: f64, note: String) -> MeasuredRow {
    let value = Pair { yardstick: few, chancery: many };
    plain_line(row, Unit::Microseconds, value, many / few, Some(RowTarget::RatioAtMost(at_most)), note)
}

/// Copies one task until there are so many, each a microsecond older than the one before. Of the oldest 1,000 one in fifty failed.
const COPIES: &str = "
    CREATE TEMP TABLE copies AS
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
        SELECT n, num AS first, id AS old, substr(id, 1, 28) || format('%08x', n) AS new FROM numbers, tasks";
const COPIED_TASKS: &str = "
    INSERT INTO tasks (num, id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes, message_only,
                       stage)
    SELECT first + n, new, context_id, agent, tenant, owner, dialect, created_at - n,
           iif(n % 50 = 0 AND n > (SELECT max(n) FROM copies) - 1000, 4, state), status_at - n, seq, bytes, message_only, stage
    FROM copies JOIN tasks ON num = first";
/// No list reads the logs of the older ones.
const COPIED_LOGS: &str = "
    INSERT INTO log SELECT place + (n << 24), last_seq, replace(entries, old, new) FROM copies JOIN log ON place >> 24 = first
    WHERE n <= 1000";
const COUNTED: &str = "
    DELETE FROM ended_counts;
    INSERT INTO ended_counts SELECT tenant, owner, agent, state, count(*) FROM tasks WHERE stage = 3
    GROUP BY tenant, owner, agent, state;";

fn fill(runtime: &Runtime, folder: &Path, tasks: u64) -> Result<()> {
    let database = runtime.block_on(async {
        let node = LocalNode::open(folder).await?;
        node.task_of(SHORT).await?;
        let database = node.node.data_folder().context("no folder")?.database();
        node.node.shut_down(CLOSED_WITHIN).await?;
        Ok::<_, anyhow::Error>(database)
    })?;
    let mut connection = Connection::open(database)?;
    let filling = connection.transaction()?;
    filling.execute(COPIES, [tasks - 1])?;
    filling.execute(COPIED_TASKS, [])?;
    filling.execute(COPIED_LOGS, [])?;
    filling.execute_batch(COUNTED)?;
    filling.commit()?;
    Ok(())
}
