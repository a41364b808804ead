//! A record in a list, and things that happen.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chancery_core::lineage::{AgentPath, Attribution};
use chancery_core::{
    Append, Block, CardObserved, Chain, Checkpoint, Creation, Decision, Delivered, Fact, Freeze, FreezeScope, Governed,
    LineageRecord, Link, LogEntry, Progress, Record, RecordEnd, RecordNote, RecordedWrite, Rule, Scribe as _, Spend, StoreError,
    TaskRecord, Verdict,
};
use chancery_evidence::record::{EvidenceConfig, Recorder, text_of};
use chancery_identity::{Algorithm, KeyRing, KeyUse};
use chancery_protocol::{
    Artifact, ArtifactChunk, Caller, Message, MessageId, Part, Role, StatusChange, Task, TaskEvent, TaskState, TaskStatus,
    Timestamp, TraceId, Unknown, Version,
};

pub(crate) const TRACE: u128 = 0xabcd_0123;

pub(crate) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(1_790_000_000_000_000 + micros)
}

/// Puts other words into a block, as somebody would who can read and write the record.
pub(crate) fn rewrite(block: &mut Block, from: &str, to: &str) {
    block.entries = text_of(block).unwrap().replacen(from, to, 1).into_bytes();
}

#[derive(Debug)]
pub(crate) struct ListedRecord {
    pub(crate) recorder: Recorder,
    chain: Mutex<Box<dyn Chain>>,
    pub(crate) blocks: Mutex<Vec<Block>>,
    pub(crate) checkpoints: Mutex<Vec<Checkpoint>>,
}

pub(crate) fn ring() -> KeyRing {
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::Receipts, None, Algorithm::EdDsa, at(-1)).unwrap();
    ring
}

impl ListedRecord {
    pub(crate) fn new(segment_entries: u64, checkpoint_entries: u64) -> Self {
        let config = EvidenceConfig { segment_entries, checkpoint_entries, ..EvidenceConfig::default() };
        let recorder = Recorder::new(&config);
        recorder.take_keys(&ring(), at(0));
        let chain = Mutex::new(recorder.go_on(RecordEnd::default()));
        Self { recorder, chain, blocks: Mutex::default(), checkpoints: Mutex::default() }
    }

    /// As a transaction that adds these.
    pub(crate) fn commit(&self, happenings: &[RecordedWrite<'_>]) {
        let mut chain = self.chain.lock().unwrap();
        happenings.iter().for_each(|what| chain.add(&self.recorder.write(*what)));
        self.keep(&mut **chain);
    }

    /// As a transaction that failed.
    pub(crate) fn fail(&self, happenings: &[RecordedWrite<'_>]) {
        let mut chain = self.chain.lock().unwrap();
        happenings.iter().for_each(|what| chain.add(&self.recorder.write(*what)));
        chain.undo();
    }

    fn keep(&self, chain: &mut dyn Chain) {
        let unwritten = chain.unwritten().clone();
        self.blocks.lock().unwrap().extend(unwritten.blocks);
        self.checkpoints.lock().unwrap().extend(unwritten.checkpoints);
        chain.written();
    }

    /// The process ended and another goes on.
    pub(crate) fn restart(&self) {
        let checkpoints = self.checkpoints.lock().unwrap().clone();
        let sealed = checkpoints.iter().rev().find(|checkpoint| checkpoint.sealed).cloned();
        let open = sealed.as_ref().map_or(0, |sealed| sealed.end);
        let blocks = self.blocks.lock().unwrap().iter().filter(|block| block.first >= open).cloned().collect();
        *self.chain.lock().unwrap() = self.recorder.go_on(RecordEnd { sealed, newest: checkpoints.last().cloned(), blocks });
    }

    /// Twenty tasks of two callers, with all that can happen to them.
    pub(crate) fn busy(self) -> Self {
        for number in 0..20_i64 {
            let version = if number % 3 == 0 { Version::V0_3 } else { Version::V1_0 };
            let task = record(&format!("task-{number}"), version, number);
            let made = creation(&task, number);
            let (work, end) = (working(&task, number), ending(&task, number));
            self.commit(&[RecordedWrite::Append(&made)]);
            self.commit(&[RecordedWrite::Append(&work), RecordedWrite::Append(&end)]);
        }
        let refusal = refusal();
        let freeze = Freeze { scope: FreezeScope::Everything, by: "operator".into(), at: at(900), why: Some("fire".into()) };
        let thaw = RecordNote::Thawed { scope: FreezeScope::Everything, by: "operator".into(), at: at(901) };
        let card = card("0.3");
        self.commit(&[
            RecordedWrite::Decision(&refusal),
            RecordedWrite::Freeze(&freeze),
            RecordedWrite::Note(&thaw),
            RecordedWrite::Note(&card),
        ]);
        let (taken, given_up) = (delivery("task-3", None), delivery("task-3", Some("exhausted")));
        let (seen, not_seen) = (look(Some("task-4"), None), look(None, Some("PERMISSION_DENIED")));
        self.commit(&[RecordedWrite::Note(&taken), RecordedWrite::Decision(&seen), RecordedWrite::Decision(&not_seen)]);
        self.commit(&[RecordedWrite::Note(&given_up)]);
        self
    }
}

#[async_trait]
impl Record for ListedRecord {
    async fn note(&self, note: RecordNote) -> Result<(), StoreError> {
        self.commit(&[RecordedWrite::Note(&note)]);
        Ok(())
    }

    async fn sign(&self, at: Timestamp) -> Result<(), StoreError> {
        let mut chain = self.chain.lock().unwrap();
        chain.sign(at);
        self.keep(&mut **chain);
        Ok(())
    }

    async fn blocks(&self, from: u64, limit: usize) -> Result<Vec<Block>, StoreError> {
        let blocks = self.blocks.lock().unwrap();
        Ok(blocks.iter().filter(|block| block.first >= from).take(limit).cloned().collect())
    }

    async fn checkpoints(&self, after: u64) -> Result<Vec<Checkpoint>, StoreError> {
        let checkpoints = self.checkpoints.lock().unwrap();
        Ok(checkpoints.iter().filter(|checkpoint| checkpoint.end > after).cloned().collect())
    }

    async fn forget(&self, before: u64) -> Result<u64, StoreError> {
        self.blocks.lock().unwrap().retain(|block| block.first >= before);
        self.checkpoints.lock().unwrap().retain(|checkpoint| checkpoint.sealed || checkpoint.end > before);
        Ok(0)
    }
}

pub(crate) fn record(id: &str, dialect: Version, number: i64) -> Arc<TaskRecord> {
    Arc::new(TaskRecord {
        id: id.into(),
        context_id: "context".into(),
        agent: "echo".into(),
        owner: Caller::new("acme", if number % 2 == 0 { "ada" } else { "bob" }),
        dialect: dialect.into(),
        client_task_id: None,
        created_at: at(number * 10),
    })
}

fn append(task: &Arc<TaskRecord>, entries: Vec<(u64, i64, TaskEvent)>) -> Append {
    let entries: Vec<_> = entries.into_iter().map(|(seq, time, event)| Arc::new(LogEntry { seq, at: at(time), event })).collect();
    let last = entries.last().unwrap();
    let progress = Progress { state: TaskState::Working, status_at: last.at, seq: last.seq, bytes: 1, message_only: false };
    Append {
        task: Arc::clone(task),
        creation: None,
        progress,
        entries,
        link: None,
        governed: None,
        spend: None,
        decision: None,
        register: None,
        notes: Vec::new(),
        answers: None,
    }
}

pub(crate) fn message(id: &str, role: Role, text: &str) -> Arc<Message> {
    Arc::new(Message::text(role, MessageId::new(id), text.to_owned()))
}

fn status(state: TaskState, message: Option<Arc<Message>>) -> TaskEvent {
    let status = TaskStatus { state, message, timestamp: None, unknown: Unknown::none() };
    TaskEvent::Status(StatusChange { status, metadata: None, unknown: Unknown::none() })
}

pub(crate) fn creation(task: &Arc<TaskRecord>, number: i64) -> Append {
    let made = Task {
        id: task.id.clone(),
        context_id: task.context_id.clone(),
        status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: None, unknown: Unknown::none() },
        artifacts: Vec::new(),
        history: vec![message("m-1", Role::User, "a secret \"word\"\n\u{1}")],
        metadata: None,
        unknown: Unknown::none(),
    };
    let kinship = LineageRecord {
        root: "task-0".into(),
        trace: TraceId(TRACE + number as u128 % 2),
        made: false,
        parent: (number > 0).then(|| "task-0".into()),
        depth: 1,
        path: AgentPath::default(),
        attribution: Attribution::Inferred,
        claimed: None,
        skill: Some("s".into()),
        allowance: None,
    };
    let facts = vec![("large".into(), Fact::Number(u64::MAX)), ("name".into(), Fact::text("né \"x\" \u{7f}"))];
    let verdicts =
        vec![Verdict { rule: Rule::Budget, passed: true, facts }, Verdict { rule: Rule::Policy, passed: true, facts: vec![] }];
    let governed = Governed { kinship: Arc::new(kinship), spend: Spend::default(), verdicts: verdicts.into() };
    Append {
        creation: Some(Creation::default()),
        governed: Some(Box::new(governed)),
        ..append(task, vec![(1, number * 10, TaskEvent::Created(Arc::new(made)))])
    }
}

pub(crate) fn working(task: &Arc<TaskRecord>, number: i64) -> Append {
    let artifact = Artifact::new("a-1", vec![Part::text("a secret answer"), Part::data(&serde_json::json!({ "a": [1, 2] }))]);
    let chunk =
        ArtifactChunk { artifact: Arc::new(artifact), append: false, last_chunk: true, metadata: None, unknown: Unknown::none() };
    let link = Link { peer: "peer-a".into(), task: Some("remote".into()), context: None };
    Append { link: Some(link), ..append(task, vec![(2, number * 10 + 1, TaskEvent::Artifact(chunk))]) }
}

pub(crate) fn ending(task: &Arc<TaskRecord>, number: i64) -> Append {
    let said = message("m-2", Role::User, "a secret question");
    let done = status(TaskState::InputRequired, Some(message("m-3", Role::Agent, "a secret reply")));
    let cancelled = RecordNote::Cancelled { task: task.id.clone(), by: "acme/ada".into(), at: at(number * 10 + 3) };
    let entries = vec![
        (3, number * 10 + 2, TaskEvent::Said(said)),
        (4, number * 10 + 3, done),
        (5, number * 10 + 3, status(TaskState::Canceled, None)),
    ];
    let decision = Decision { at: at(number * 10 + 2), refused: None, task: Some(task.id.clone()), ..refusal() };
    Append { notes: vec![cancelled], decision: Some(Arc::new(decision)), ..append(task, entries) }
}

pub(crate) fn refusal() -> Decision {
    Decision {
        id: "decision-1".into(),
        at: at(890),
        tenant: "acme".into(),
        caller: "eve".into(),
        agent: "echo".into(),
        task: None,
        root: None,
        trace: Some(TraceId(TRACE)),
        refused: Some("BUDGET_EXCEEDED".into()),
        verdicts: vec![Verdict { rule: Rule::Budget, passed: false, facts: vec![("left".into(), Fact::Number(0))] }],
    }
}

pub(crate) fn delivery(task: &str, given_up: Option<&str>) -> RecordNote {
    RecordNote::Delivered(Box::new(Delivered {
        task: task.into(),
        config: "hook".into(),
        lane: 3,
        webhook_id: "msg_3".into(),
        from: 4,
        seq: 5,
        attempts: 2,
        status: given_up.is_none().then_some(204),
        given_up: given_up.map(Into::into),
        replay: false,
        sha256: [8; 32],
        bytes: 77,
        at: at(910),
    }))
}

/// A look at memory.
pub(crate) fn look(task: Option<&str>, refused: Option<&str>) -> Decision {
    let facts = vec![("look".into(), Fact::text("resolve")), ("witness".into(), Fact::text("abc"))];
    Decision {
        id: "look-1".into(),
        at: at(911),
        task: task.map(Into::into),
        refused: refused.map(Into::into),
        verdicts: vec![Verdict { rule: Rule::Memory, passed: refused.is_none(), facts }],
        ..refusal()
    }
}

pub(crate) fn card(version: &str) -> RecordNote {
    RecordNote::CardObserved(Box::new(CardObserved {
        agent: "far".into(),
        url: "https://far.example/card.json".into(),
        protocol_version: version.into(),
        extended: false,
        sha256: [7; 32],
        bytes: 99,
        at: at(905),
    }))
}
