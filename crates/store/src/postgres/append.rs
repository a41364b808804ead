//! Decides about the appends of a batch, and gathers the rows that it writes for them.

use std::collections::{HashMap, HashSet};

use chancery_core::{Append, Appended, Keyed, LogEntry, RecordLines, Spend, StoreError};
use chancery_protocol::{TaskId, TaskState, Timestamp};
use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::cluster;
use super::columns::{self, Columns as _, DatabaseSession};
use super::entries::MOST_ENTRIES;
use super::fault::PostgresFault;
use super::ledger::{self, SpendNumbers};
use super::outbox;
use super::task_rows::{
    AdvancedTasks, AnsweredCalls, GovernedColumns, KeptDecisions, LogEntries, MadeTasks, NewTaskRow, TaskLinks, UsedKeys,
};
use super::writer_state::{OpenTaskHint, WriterState};
use crate::rows::decisions::EncodedDecision;
use crate::rows::log::{self, LogRow};
use crate::rows::{facts, stages::TaskStage};
use crate::{numbering, plain_ids};

/// An append that is ready to be written: checked by itself, its entries encoded.
#[derive(Debug)]
pub(super) struct EncodedAppend {
    pub(super) append: Append,
    follows: u64,
    rows: Vec<LogRow>,
    /// Of how the call was governed, as far as it is kept as JSON.
    facts: String,
    decision: Option<EncodedDecision>,
    /// When its last entry came.
    at: Timestamp,
    /// For the record; none if none is kept.
    pub(super) lines: RecordLines,
}

impl EncodedAppend {
    pub(super) fn new(mut append: Append, lines: RecordLines) -> Result<Self, StoreError> {
        let follows = numbering::follows(&append)?;
        plain_ids::check_append(&append)?;
        let last = |entries: &[std::sync::Arc<LogEntry>]| entries.last().map(|entry| entry.at);
        let at = last(&append.entries).unwrap_or(append.progress.status_at);
        // The writer has no use for the entries themselves.
        let rows = log::encode(&std::mem::take(&mut append.entries), MOST_ENTRIES)?;
        let facts = append.governed.as_deref().map(facts::encode).transpose()?.unwrap_or_default();
        let decision = append.decision.take().map(EncodedDecision::new).transpose()?;
        Ok(Self { append, follows, rows, facts, decision, at, lines })
    }

    /// Whether the batch has to look at what is stored before it can decide about this append. A creation is taken to be
    /// new, and the database says if it is not.
    pub(super) fn needs_look(&self, state: &WriterState) -> bool {
        let Append { task, creation, register, spend, .. } = &self.append;
        match creation {
            Some(_) => register.is_some(),
            None => {
                let expected = state.open_task(&task.id).is_some_and(|open| open.seq == self.follows);
                !expected || spend.as_ref().is_some_and(ledger::has_earlier_turns)
            }
        }
    }
}

/// A task as it is stored.
struct StoredTask {
    num: i64,
    seq: u64,
    stage: i64,
    lanes: i64,
    state: i64,
    message_only: bool,
    /// The node that holds it.
    node: Option<i64>,
}

/// What is stored that the appends of a batch may meet.
#[derive(Default)]
pub(super) struct StoredNames {
    tasks: HashMap<String, StoredTask>,
    /// By the id of the task that asks for the key, or for the name.
    keys: HashMap<TaskId, Keyed>,
    client_names: HashMap<TaskId, TaskId>,
    /// Forwarded calls that wait, by their numbers.
    calls: HashSet<i64>,
}

const TASKS: &str = "SELECT id, num, seq, stage, lanes, state, message_only, node FROM tasks WHERE id = ANY($1)";

const KEYS: &str = "SELECT given.id, keys.task, keys.fingerprint
     FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS given (id, tenant, owner, key, now)
     JOIN keys ON (keys.tenant, keys.owner, keys.key) = (given.tenant, given.owner, given.key) AND keys.expires_at > given.now";

const CLIENT_NAMES: &str = "SELECT given.id, tasks.id
     FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS given (id, tenant, owner, name)
     JOIN tasks ON (tasks.tenant, tasks.owner, tasks.client_task_id) = (given.tenant, given.owner, given.name)";

/// Locked, so that none is withdrawn before the batch is in.
const CALLS: &str = "SELECT num FROM forwarded_calls WHERE num = ANY($1) AND to_node = $2 AND state = 1 ORDER BY num FOR UPDATE";

impl StoredNames {
    /// Looks at all of it in one flight.
    pub(super) async fn look(db: &ClientWrapper, appends: &[&EncodedAppend], node: i64) -> Result<Self, PostgresFault> {
        let ids: Vec<&str> = appends.iter().map(|prepared| prepared.append.task.id.as_str()).collect();
        let creations = || appends.iter().map(|prepared| &prepared.append).filter(|append| append.creation.is_some());
        let keyed: Vec<_> =
            creations().filter_map(|append| Some((&append.task, append.creation.as_ref()?.idempotency.as_ref()?))).collect();
        let named: Vec<_> =
            creations().filter_map(|append| Some((&append.task, append.task.client_task_id.as_deref()?))).collect();
        let key_ids: Vec<&str> = keyed.iter().map(|(task, _)| task.id.as_str()).collect();
        let key_tenants: Vec<&str> = keyed.iter().map(|(task, _)| &*task.owner.tenant).collect();
        let key_owners: Vec<&str> = keyed.iter().map(|(task, _)| &*task.owner.name).collect();
        let keys: Vec<&str> = keyed.iter().map(|(_, used)| &*used.key).collect();
        let key_times: Vec<i64> = keyed.iter().map(|(task, _)| task.created_at.micros()).collect();
        let name_ids: Vec<&str> = named.iter().map(|(task, _)| task.id.as_str()).collect();
        let name_tenants: Vec<&str> = named.iter().map(|(task, _)| &*task.owner.tenant).collect();
        let name_owners: Vec<&str> = named.iter().map(|(task, _)| &*task.owner.name).collect();
        let names: Vec<&str> = named.iter().map(|(_, name)| *name).collect();
        let key_values: [&(dyn ToSql + Sync); 5] = [&key_ids, &key_tenants, &key_owners, &keys, &key_times];
        let name_values: [&(dyn ToSql + Sync); 4] = [&name_ids, &name_tenants, &name_owners, &names];
        let task_values: [&(dyn ToSql + Sync); 1] = [&ids];
        let calls: Vec<i64> = appends.iter().filter_map(|one| Some(one.append.answers.as_ref()?.number.0)).collect();
        let call_values: [&(dyn ToSql + Sync); 2] = [&calls, &node];
        let (tasks, keys, client_names, calls) = futures::try_join!(
            db.rows(TASKS, &task_values),
            async { if key_ids.is_empty() { Ok(Vec::new()) } else { db.rows(KEYS, &key_values).await } },
            async { if name_ids.is_empty() { Ok(Vec::new()) } else { db.rows(CLIENT_NAMES, &name_values).await } },
            async { if calls.is_empty() { Ok(Vec::new()) } else { db.rows(CALLS, &call_values).await } },
        )?;
        let task = |row: &Row| {
            let stored = StoredTask {
                num: row.try_get(1)?,
                seq: row.count(2)?,
                stage: row.try_get(3)?,
                lanes: row.try_get(4)?,
                state: row.try_get(5)?,
                message_only: row.try_get(6)?,
                node: row.try_get(7)?,
            };
            Ok((row.try_get(0)?, stored))
        };
        let key = |row: &Row| Ok((row.task(0)?, Keyed { task: row.task(1)?, fingerprint: row.digest(2)? }));
        Ok(Self {
            tasks: columns::each(tasks, task)?.into_iter().collect(),
            keys: columns::each(keys, key)?.into_iter().collect(),
            client_names: columns::each(client_names, |row| Ok((row.task(0)?, row.task(1)?)))?.into_iter().collect(),
            calls: columns::each(calls, |row| Ok(row.try_get(0)?))?.into_iter().collect(),
        })
    }
}

/// What a batch writes for its appends.
#[derive(Debug, Default)]
pub(super) struct AppendRows<'v> {
    pub(super) made: MadeTasks<'v>,
    pub(super) advanced: AdvancedTasks<'v>,
    pub(super) log: LogEntries<'v>,
    pub(super) keys: UsedKeys<'v>,
    pub(super) links: TaskLinks<'v>,
    pub(super) decisions: KeptDecisions<'v>,
    pub(super) answered: AnsweredCalls<'v>,
    /// Tasks that go on, each with its number and its last entry.
    pub(super) progressed: Vec<(i64, &'v TaskId, u64)>,
    /// What the writer knows of these tasks once the batch is durable.
    pub(super) open: Vec<(&'v TaskId, Option<OpenTaskHint>)>,
}

/// An append that will be written.
struct AdmittedAppend {
    num: i64,
    answer: Appended,
    lanes: i64,
}

impl<'v> AppendRows<'v> {
    /// Decides about an append, and adds its rows. `looked` is what is stored, where the batch has looked.
    pub(super) async fn add(
        &mut self,
        state: &mut WriterState,
        prepared: &'v EncodedAppend,
        looked: Option<&StoredNames>,
    ) -> Result<Result<Appended, StoreError>, PostgresFault> {
        let answers = prepared.append.answers.as_ref().filter(|_| state.identity.is_member);
        if let (Some(answer), Some(looked)) = (answers, looked)
            && !looked.calls.contains(&answer.number.0)
        {
            return Ok(Err(cluster::call_withdrawn(answer.number)));
        }
        let admitted = match prepared.append.creation {
            Some(_) => self.make(state, prepared, looked).await?,
            None => self.advance(state, prepared, looked).await?,
        };
        let AdmittedAppend { num, answer, lanes } = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(refusal),
        };
        let Append { task, progress, link, .. } = &prepared.append;
        let finished = numbering::is_finished(progress);
        if finished {
            state.ended.add(task, progress.state, progress.message_only, 1);
        }
        prepared.rows.iter().for_each(|row| self.log.add(num, row));
        if let Some(link) = link {
            self.links.add(num, task, link);
        }
        if let Some(EncodedDecision { decision, body }) = &prepared.decision {
            self.decisions.add(&decision.id, decision.task.as_ref(), decision.at, body);
        }
        if let Some(answer) = answers {
            self.answered.add(answer);
        }
        let open = OpenTaskHint { num, seq: progress.seq };
        self.open.push((&task.id, (!finished && lanes == 0).then_some(open)));
        state.add_to_record(&prepared.lines);
        Ok(Ok(answer))
    }

    async fn make(
        &mut self,
        state: &mut WriterState,
        prepared: &'v EncodedAppend,
        looked: Option<&StoredNames>,
    ) -> Result<Result<AdmittedAppend, Result<Appended, StoreError>>, PostgresFault> {
        let Append { task, progress, register, governed, spend, creation, .. } = &prepared.append;
        if let Some(looked) = looked {
            if let Some(Keyed { task, fingerprint }) = looked.keys.get(&task.id).cloned() {
                return Ok(Err(Ok(Appended::KeyKnown { task, fingerprint })));
            }
            if let Some(task) = looked.client_names.get(&task.id).cloned() {
                return Ok(Err(Ok(Appended::ClientIdKnown { task })));
            }
            if looked.tasks.contains_key(task.id.as_str()) {
                return Ok(Err(Err(numbering::made_twice(task))));
            }
        }
        if state.has_left {
            return Ok(Err(Err(cluster::has_left())));
        }
        let num = state.next_number();
        let mut answer = Appended::Recorded;
        if let Some(new) = register {
            let db = state.session()?;
            if let Some(refusal) = outbox::count(&*db, &task.owner.tenant, 0, new.limits).await? {
                return Ok(Err(Ok(Appended::TooManyRegistrations { of_tenant: outbox::is_of_tenant(&refusal) })));
            }
            answer = outbox::begin_with_task(&*db, num, new, progress).await?;
        }
        let governed = governed.as_deref().map(|governed| {
            let kinship = &governed.kinship;
            GovernedColumns {
                root: (kinship.root != task.id).then_some(kinship.root.as_str()),
                trace: kinship.trace.0.to_be_bytes(),
                parent: kinship.parent.as_ref().map(TaskId::as_str),
                depth: i64::from(kinship.depth),
                facts: prepared.facts.as_bytes(),
                spend: SpendNumbers::of(spend.as_ref().unwrap_or(&governed.spend)),
            }
        });
        let key = creation.as_ref().and_then(|creation| creation.idempotency.as_ref());
        let lanes = i64::from(register.is_some());
        let node = state.identity.holder().filter(|_| !numbering::is_finished(progress));
        self.made.add(NewTaskRow { num, lanes, node }, task, progress, key, governed);
        if let Some(key) = key {
            self.keys.add(task, key);
        }
        Ok(Ok(AdmittedAppend { num, answer, lanes }))
    }

    async fn advance(
        &mut self,
        state: &mut WriterState,
        prepared: &'v EncodedAppend,
        looked: Option<&StoredNames>,
    ) -> Result<Result<AdmittedAppend, Result<Appended, StoreError>>, PostgresFault> {
        let Append { task, progress, spend, .. } = &prepared.append;
        let mut answer = Appended::Recorded;
        let (num, mut lanes) = match (looked, state.open_task(&task.id)) {
            (None, Some(open)) => (open.num, 0),
            (None, None) => return Err(PostgresFault::unreadable("a task that was not looked at")),
            (Some(looked), _) => {
                let Some(stored) = looked.tasks.get(task.id.as_str()) else { return Ok(Err(Err(numbering::unknown(task)))) };
                let is_ended = stored.stage == TaskStage::Finished as i64;
                let may_append = stored.node == state.identity.holder() || stored.node.is_none() && is_ended;
                if state.identity.is_member && !may_append {
                    state.set_open(&task.id, None);
                    return Ok(Err(Err(cluster::held_elsewhere(&task.id, stored.node))));
                }
                if stored.seq != prepared.follows {
                    return Ok(Err(Err(numbering::out_of_turn(task, stored.seq, prepared.follows))));
                }
                if is_ended {
                    let unreadable = || PostgresFault::unreadable(format!("task state {}", stored.state));
                    let was = TaskState::from_number(stored.state).ok_or_else(unreadable)?;
                    state.ended.add(task, was, stored.message_only, -1);
                }
                (stored.num, stored.lanes)
            }
        };
        if let Some(spend) = spend.as_ref().filter(|spend: &&Spend| ledger::has_earlier_turns(spend)) {
            ledger::part_turns(&*state.session()?, &task.id, spend).await?;
        }
        if lanes > 0 {
            let db = state.session()?;
            if progress.message_only {
                outbox::remove_all(&*db, num).await?;
                lanes = 0;
            } else {
                answer = outbox::tell(&*db, num, lanes, progress, prepared.at).await?;
            }
        }
        self.advanced.add(num, prepared.follows, lanes, progress, spend.as_ref());
        self.progressed.push((num, &task.id, progress.seq));
        Ok(Ok(AdmittedAppend { num, answer, lanes }))
    }
}
