//! What a read costs where there is much to read: a task with a long log, and a page of a list among many tasks.

use std::future::ready;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use chancery::protocol::{Caller, StatusChange, TaskEvent, TaskStatus, Timestamp, Version};
use chancery::store::{Append, Creation, ListFilter, LogEntry, Progress, SqliteOptions, SqliteStore, Store as _, TaskRecord};
use chancery::{Finished, Node, RunError, Task, TaskRunner, TaskState, TaskUpdateSink, Turn, async_trait, new_card};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use super::identity::line as plain_line;
use super::{Effort, Match, Row};
use crate::report::{MeasuredRow, Pair, RowTarget, Unit, median};

const SNAPSHOT_WITHIN: Duration = Duration::from_millis(500);
const CLOSED_WITHIN: Duration = Duration::from_secs(10);
/// Reads of each side in a round.
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
        (config.retention.max_tasks, config.retention.max_age_hours) = (0, 0);
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
            ListKind::Failed => ListFilter { state: Some(TaskState::Failed), ..ListFilter::default() },
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
    let read = async |id: &str| node.call("GetTask", json!({ "id": id, "historyLength": 0 })).await.map(drop);
    let few_and_many = runtime.block_on(in_turn(this, async || read(&short).await, async || read(&long).await))?;
    let note = format!("GetTask on disk, in this process; {SHORT} and {LONG} entries");
    Ok(slower(row, few_and_many, LONG_AT_MOST, note))
}

/// A page of twenty of a list, among a million tasks and among a thousand.
pub(super) fn list(row: &Row, kind: ListKind, this: &Match<'_>) -> Result<MeasuredRow> {
    let is_quick = this.effort.rounds < Effort::FULL.rounds;
    let many_tasks = if is_quick { MANY_QUICK } else { MANY };
    let runtime = runtime()?;
    let open = |tasks: u64| {
        let folder = tempfile::tempdir_in(this.ground.scratch())?;
        fill(&runtime, folder.path(), tasks)?;
        Ok::<_, anyhow::Error>((runtime.block_on(LocalNode::open(folder.path()))?, folder))
    };
    let ((few, _few), (many, _many)) = (open(FEW)?, open(many_tasks)?);
    let few_and_many = runtime.block_on(in_turn(this, async || few.list(kind).await, async || many.list(kind).await))?;
    let note = format!("a page of {PAGE} and the total, in this process; {FEW} and {many_tasks} tasks");
    Ok(slower(row, few_and_many, LIST_AT_MOST, note))
}

fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// The median microseconds of one read of each side. The sides take turns, so that others on the machine disturb both alike.
async fn in_turn(this: &Match<'_>, few: impl AsyncFn() -> Result<()>, many: impl AsyncFn() -> Result<()>) -> Result<[f64; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..this.effort.rounds * READS {
        let start = Instant::now();
        few().await?;
        let between = Instant::now();
        many().await?;
        times[0].push((between - start).as_secs_f64() * 1e6);
        times[1].push(between.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times.map(|times| median(times.into_iter())))
}

fn slower(row: &Row, [few, many]: [f64; 2], at_most: f64, note: String) -> MeasuredRow {
    let value = Pair { yardstick: few, chancery: many };
    plain_line(row, Unit::Microseconds, value, many / few, Some(RowTarget::RatioAtMost(at_most)), note)
}

/// Writes of the filling that share a commit.
const AT_ONCE: usize = 256;

/// Keeps so many ended tasks, each a microsecond newer than the one before. Of the oldest 1,000 one in fifty failed.
fn fill(runtime: &Runtime, folder: &Path, tasks: u64) -> Result<()> {
    runtime.block_on(async {
        let node = LocalNode::open(folder).await?;
        let database = node.node.data_folder().context("no folder")?.database();
        node.node.shut_down(CLOSED_WITHIN).await?;
        drop(node);
        let store = SqliteStore::open(database, SqliteOptions::default())?;
        let filling = stream::iter((0..tasks).map(|number| store.append(ended(number))));
        filling.buffer_unordered(AT_ONCE).try_for_each(|_| ready(Ok(()))).await?;
        store.close(CLOSED_WITHIN).await?;
        Ok(())
    })
}

/// A task that is made and ends with one write.
fn ended(number: u64) -> Append {
    let at = Timestamp::from_micros(1_700_000_000_000_000 + number.cast_signed());
    let state = if number < 1_000 && number.is_multiple_of(50) { TaskState::Failed } else { TaskState::Completed };
    let record = Arc::new(TaskRecord {
        id: format!("019a9777-0000-7000-8000-{number:012}").into(),
        context_id: format!("019a9777-ffff-7000-8000-{number:012}").into(),
        agent: "worker".into(),
        owner: Caller::new("default", "anonymous"),
        dialect: Version::V1_0.into(),
        client_task_id: None,
        created_at: at,
    });
    let status = |state| TaskStatus { state, message: None, timestamp: Some(at), unknown: Default::default() };
    let made = Task {
        id: record.id.clone(),
        context_id: record.context_id.clone(),
        status: status(TaskState::Submitted),
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        unknown: Default::default(),
    };
    let end = StatusChange { status: status(state), metadata: None, unknown: Default::default() };
    let entry = |seq, event| Arc::new(LogEntry { seq, at, event });
    Append {
        task: record,
        creation: Some(Creation::default()),
        progress: Progress { state, status_at: at, seq: 2, bytes: 400, message_only: false },
        entries: vec![entry(1, TaskEvent::Created(Arc::new(made))), entry(2, TaskEvent::Status(end))],
        link: None,
        governed: None,
        spend: None,
        decision: None,
        register: None,
        notes: Vec::new(),
        answers: None,
    }
}
