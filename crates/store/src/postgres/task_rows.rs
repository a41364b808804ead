//! The rows that a batch writes for its appends, as one array for each column.

use chancery_core::{CallAnswer, Idempotency, Link, Progress, Spend, TaskRecord};
use chancery_protocol::{ContextId, TaskId, Timestamp};
use tokio_postgres::types::ToSql;

use super::ended_counts::EndedChanges;
use super::ledger::SpendNumbers;
use crate::rows::log::LogRow;
use crate::rows::stages::TaskStage;

/// Declares a table's arrays, with the type that PostgreSQL reads each of them as.
macro_rules! column_arrays {
    ($(#[$doc:meta])* $name:ident { $($column:ident: $type:ty => $sql:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $name<'v> {
            $(pub(super) $column: Vec<$type>,)*
            _values: std::marker::PhantomData<&'v ()>,
        }

        impl<'v> $name<'v> {
            /// The columns, each with its type.
            pub(super) const COLUMNS: &'static [(&'static str, &'static str)] = &[$((stringify!($column), $sql)),*];

            pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
                vec![$(&self.$column as &(dyn ToSql + Sync)),*]
            }

            /// Makes a row of its values.
            #[allow(clippy::too_many_arguments, reason = "a table has as many columns as it has")]
            fn push(&mut self, $($column: $type),*) {
                $(self.$column.push($column);)*
            }
        }
    };
}

column_arrays! {
    /// Tasks that are made.
    MadeTasks {
        num: i64 => "bigint",
        id: &'v str => "text",
        context_id: &'v str => "text",
        agent: &'v str => "text",
        tenant: &'v str => "text",
        owner: &'v str => "text",
        dialect: &'v str => "text",
        created_at: i64 => "bigint",
        state: i64 => "bigint",
        status_at: i64 => "bigint",
        seq: i64 => "bigint",
        bytes: i64 => "bigint",
        message_only: bool => "boolean",
        stage: i64 => "bigint",
        client_task_id: Option<&'v str> => "text",
        key: Option<&'v str> => "text",
        lanes: i64 => "bigint",
        root: Option<&'v str> => "text",
        trace: Option<Vec<u8>> => "bytea",
        parent: Option<&'v str> => "text",
        depth: Option<i64> => "bigint",
        facts: Option<&'v [u8]> => "bytea",
        settled_usd: Option<i64> => "bigint",
        settled_tokens: Option<i64> => "bigint",
        settled_tasks: Option<i64> => "bigint",
        reserved_usd: Option<i64> => "bigint",
        reserved_tokens: Option<i64> => "bigint",
        reserved_tasks: Option<i64> => "bigint",
        overrun_usd: Option<i64> => "bigint",
        overrun_tokens: Option<i64> => "bigint",
        overrun_tasks: Option<i64> => "bigint",
        settled_at: Option<i64> => "bigint",
        estimated_by: Option<i64> => "bigint",
        known_by: Option<i64> => "bigint",
        node: Option<i64> => "bigint",
    }
}

column_arrays! {
    /// Tasks that go on, with what their rows have to be before.
    AdvancedTasks {
        num: i64 => "bigint",
        follows: i64 => "bigint",
        lanes: i64 => "bigint",
        state: i64 => "bigint",
        status_at: i64 => "bigint",
        seq: i64 => "bigint",
        bytes: i64 => "bigint",
        message_only: bool => "boolean",
        stage: i64 => "bigint",
        settles: bool => "boolean",
        settled_usd: i64 => "bigint",
        settled_tokens: i64 => "bigint",
        settled_tasks: i64 => "bigint",
        reserved_usd: i64 => "bigint",
        reserved_tokens: i64 => "bigint",
        reserved_tasks: i64 => "bigint",
        overrun_usd: i64 => "bigint",
        overrun_tokens: i64 => "bigint",
        overrun_tasks: i64 => "bigint",
        settled_at: Option<i64> => "bigint",
        estimated_by: i64 => "bigint",
        known_by: Option<i64> => "bigint",
    }
}

column_arrays! {
    LogEntries {
        task: i64 => "bigint",
        seq: i64 => "bigint",
        last_seq: i64 => "bigint",
        entries: &'v [u8] => "bytea",
    }
}

column_arrays! {
    UsedKeys {
        tenant: &'v str => "text",
        owner: &'v str => "text",
        key: &'v str => "text",
        task: &'v str => "text",
        fingerprint: &'v [u8] => "bytea",
        expires_at: i64 => "bigint",
        now: i64 => "bigint",
    }
}

column_arrays! {
    TaskLinks {
        task: i64 => "bigint",
        tenant: &'v str => "text",
        owner: &'v str => "text",
        agent: &'v str => "text",
        context_id: &'v str => "text",
        peer: &'v str => "text",
        peer_task: Option<&'v str> => "text",
        peer_context: Option<&'v str> => "text",
    }
}

column_arrays! {
    KeptDecisions {
        id: &'v str => "text",
        task: Option<&'v str> => "text",
        at: i64 => "bigint",
        body: &'v [u8] => "bytea",
    }
}

column_arrays! {
    /// Calls of other nodes that appends answer.
    AnsweredCalls {
        num: i64 => "bigint",
        answer: &'v [u8] => "bytea",
    }
}

column_arrays! {
    EndedRows {
        node: i64 => "bigint",
        tenant: &'v str => "text",
        owner: &'v str => "text",
        agent: &'v str => "text",
        state: i64 => "bigint",
        message_only: bool => "boolean",
        tasks: i64 => "bigint",
    }
}

column_arrays! {
    RecordBlocks {
        book: i64 => "bigint",
        first: i64 => "bigint",
        count: i64 => "bigint",
        at: i64 => "bigint",
        hash: &'v [u8] => "bytea",
        entries: &'v [u8] => "bytea",
    }
}

column_arrays! {
    RecordCheckpoints {
        book: i64 => "bigint",
        number: i64 => "bigint",
        covers: i64 => "bigint",
        sealed: bool => "boolean",
        at: i64 => "bigint",
        body: &'v [u8] => "bytea",
        signature: &'v [u8] => "bytea",
    }
}

/// The columns of a task that is made that are neither of the task nor of its governance.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewTaskRow {
    pub(super) num: i64,
    pub(super) lanes: i64,
    /// The node that holds it, in a cluster.
    pub(super) node: Option<i64>,
}

/// How a task that is made is governed, as far as its row says so.
#[derive(Clone, Copy, Debug)]
pub(super) struct GovernedColumns<'v> {
    pub(super) root: Option<&'v str>,
    pub(super) trace: [u8; 16],
    pub(super) parent: Option<&'v str>,
    pub(super) depth: i64,
    pub(super) facts: &'v [u8],
    pub(super) spend: SpendNumbers,
}

impl<'v> MadeTasks<'v> {
    pub(super) fn add(
        &mut self,
        row: NewTaskRow,
        task: &'v TaskRecord,
        progress: &Progress,
        key: Option<&'v Idempotency>,
        governed: Option<GovernedColumns<'v>>,
    ) {
        let amount = |at: usize| governed.map(|governed| governed.spend.amounts[at]);
        let NewTaskRow { num, lanes, node } = row;
        self.push(
            num,
            task.id.as_str(),
            task.context_id.as_str(),
            &task.agent,
            &task.owner.tenant,
            &task.owner.name,
            task.dialect.as_str(),
            task.created_at.micros(),
            i64::from(progress.state.number()),
            progress.status_at.micros(),
            progress.seq.cast_signed(),
            progress.bytes.cast_signed(),
            progress.message_only,
            TaskStage::of(progress) as i64,
            task.client_task_id.as_deref(),
            key.map(|idempotency| &*idempotency.key),
            lanes,
            governed.and_then(|governed| governed.root),
            governed.map(|governed| governed.trace.to_vec()),
            governed.and_then(|governed| governed.parent),
            governed.map(|governed| governed.depth),
            governed.map(|governed| governed.facts),
            amount(0),
            amount(1),
            amount(2),
            amount(3),
            amount(4),
            amount(5),
            amount(6),
            amount(7),
            amount(8),
            governed.and_then(|governed| governed.spend.settled_at),
            governed.map(|governed| governed.spend.estimated_by),
            governed.and_then(|governed| governed.spend.known_by),
            node,
        );
    }
}

impl AdvancedTasks<'_> {
    pub(super) fn add(&mut self, num: i64, follows: u64, lanes: i64, progress: &Progress, spend: Option<&Spend>) {
        let SpendNumbers { amounts: a, settled_at, estimated_by, known_by } = spend.map(SpendNumbers::of).unwrap_or_default();
        self.push(
            num,
            follows.cast_signed(),
            lanes,
            i64::from(progress.state.number()),
            progress.status_at.micros(),
            progress.seq.cast_signed(),
            progress.bytes.cast_signed(),
            progress.message_only,
            TaskStage::of(progress) as i64,
            spend.is_some(),
            a[0],
            a[1],
            a[2],
            a[3],
            a[4],
            a[5],
            a[6],
            a[7],
            a[8],
            settled_at,
            estimated_by,
            known_by,
        );
    }
}

impl<'v> LogEntries<'v> {
    pub(super) fn add(&mut self, task: i64, row: &'v LogRow) {
        self.push(task, row.first_seq, row.last_seq, row.entries.as_bytes());
    }
}

impl<'v> UsedKeys<'v> {
    pub(super) fn add(&mut self, task: &'v TaskRecord, used: &'v Idempotency) {
        let (owner, now) = (&task.owner, task.created_at.micros());
        self.push(&owner.tenant, &owner.name, &used.key, task.id.as_str(), &used.fingerprint, used.expires_at.micros(), now);
    }
}

impl<'v> TaskLinks<'v> {
    pub(super) fn add(&mut self, num: i64, task: &'v TaskRecord, link: &'v Link) {
        self.push(
            num,
            &task.owner.tenant,
            &task.owner.name,
            &task.agent,
            task.context_id.as_str(),
            &link.peer,
            link.task.as_ref().map(TaskId::as_str),
            link.context.as_ref().map(ContextId::as_str),
        );
    }
}

impl<'v> KeptDecisions<'v> {
    pub(super) fn add(&mut self, id: &'v str, task: Option<&'v TaskId>, at: Timestamp, body: &'v str) {
        self.push(id, task.map(TaskId::as_str), at.micros(), body.as_bytes());
    }
}

impl<'v> AnsweredCalls<'v> {
    pub(super) fn add(&mut self, answer: &'v CallAnswer) {
        self.push(answer.number.0, &answer.body);
    }
}

impl<'v> EndedRows<'v> {
    pub(super) fn of(node: i64, changes: &'v EndedChanges) -> Self {
        let mut rows = Self::default();
        for ((tenant, owner, agent, state, message_only), by) in changes.changed() {
            rows.push(node, tenant, owner, agent, *state, *message_only, by);
        }
        rows
    }
}

impl<'v> RecordBlocks<'v> {
    pub(super) fn of(book: i64, blocks: &'v [chancery_core::Block]) -> Self {
        let mut rows = Self::default();
        for block in blocks {
            rows.push(book, block.first.cast_signed(), block.count.cast_signed(), block.at.micros(), &block.hash, &block.entries);
        }
        rows
    }
}

impl<'v> RecordCheckpoints<'v> {
    pub(super) fn of(book: i64, checkpoints: &'v [chancery_core::Checkpoint]) -> Self {
        let mut rows = Self::default();
        for one in checkpoints {
            let (number, covers) = (one.number.cast_signed(), one.end.cast_signed());
            rows.push(book, number, covers, one.sealed, one.at.micros(), one.body.as_bytes(), &one.signature);
        }
        rows
    }
}
