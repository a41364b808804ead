//! What was decided about a call, rule by rule, and the one place where a refusal becomes an error.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{CallContext, Error, ErrorKind, TaskId};

use crate::agents::Agent;
use crate::find::internal;
use crate::ids::fresh_id;
use crate::live::LiveTask;
use crate::service::ChanceryInner;
use crate::{Decision, Fact, LineageRecord, Rule, Verdict};

/// How many rules are evaluated for a call.
const RULES: usize = 6;

/// The verdicts so far, in the order the rules were asked.
#[derive(Debug)]
pub(crate) struct Verdicts {
    pub(crate) said: Vec<Verdict>,
    /// Where the call stands, as soon as that is known.
    pub(crate) kinship: Option<Arc<LineageRecord>>,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self { said: Vec::with_capacity(RULES), kinship: None }
    }
}

impl Verdicts {
    pub(crate) fn pass(&mut self, rule: Rule, facts: impl FnOnce() -> Vec<(Cow<'static, str>, Fact)>) {
        self.said.push(Verdict { rule, passed: true, facts: facts() });
    }
}

/// A refusal, as data: which rule, which code, on which facts.
#[derive(Debug)]
pub(crate) struct Denial {
    rule: Rule,
    kind: ErrorKind,
    message: String,
    facts: Vec<(&'static str, String)>,
    retry_after: Option<Duration>,
}

impl Denial {
    pub(crate) fn new(rule: Rule, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { rule, kind, message: message.into(), facts: Vec::new(), retry_after: None }
    }

    pub(crate) fn with_fact(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.facts.push((name, value.to_string()));
        self
    }

    pub(crate) fn retry_after(mut self, delay: Option<Duration>) -> Self {
        self.retry_after = delay;
        self
    }
}

impl ChanceryInner {
    /// Keeps what an agent answered that could not be read, for `explain`. A task fails with its reason whether this is kept or not.
    pub(crate) async fn keep_unreadable(&self, live: &LiveTask, facts: Vec<(&'static str, String)>) {
        let record = &live.record;
        let facts = facts.into_iter().map(|(name, value)| (Cow::Borrowed(name), Fact::text(value))).collect();
        let decision = Decision {
            id: fresh_id(),
            at: self.clock.now(),
            tenant: Arc::clone(&record.owner.tenant),
            caller: Arc::clone(&record.owner.name),
            agent: record.agent.clone(),
            task: Some(record.id.clone()),
            root: None,
            trace: live.node().map(|node| node.kinship.trace),
            refused: Some(ErrorKind::InvalidAgentResponse.reason().into()),
            verdicts: vec![Verdict { rule: Rule::Answer, passed: false, facts }],
        };
        match self.store.decide(Arc::new(decision)).await {
            Ok(()) => self.retention.one_more_decided(),
            Err(fault) => {
                tracing::error!(task = %record.id, error = &fault as &dyn std::error::Error, "cannot store the decision about an unreadable answer");
            }
        }
    }

    /// Keeps the refusal with all that led to it, and says it to the caller with the decision's id.
    pub(crate) async fn refuse(
        &self,
        context: &CallContext,
        agent: &Agent,
        task: Option<&TaskId>,
        verdicts: Verdicts,
        denial: Denial,
    ) -> Error {
        let id: Arc<str> = fresh_id();
        let Verdicts { said: mut verdicts, kinship } = verdicts;
        let facts = denial.facts.iter().map(|(name, value)| (Cow::Borrowed(*name), Fact::text(value.clone()))).collect();
        verdicts.push(Verdict { rule: denial.rule, passed: false, facts });
        let decision = Decision {
            id: Arc::clone(&id),
            at: self.clock.now(),
            tenant: Arc::clone(&context.caller.tenant),
            caller: Arc::clone(&context.caller.name),
            agent: agent.name.clone(),
            task: task.cloned(),
            // The root of a tree that was never begun is nothing anybody could look up.
            root: kinship
                .as_ref()
                .filter(|kinship| task.is_some() || kinship.parent.is_some())
                .map(|kinship| kinship.root.clone()),
            trace: Some(kinship.map_or(context.trace, |kinship| kinship.trace)),
            refused: Some(denial.kind.reason().into()),
            verdicts,
        };
        tracing::warn!(decision = &*id, caller = %context.caller.name, agent = %agent.name, rule = ?denial.rule, "rejected a call: {}", denial.message);
        if let Err(fault) = self.store.decide(Arc::new(decision)).await {
            return internal(fault);
        }
        self.retention.one_more_decided();
        let Denial { kind, message, mut facts, retry_after, .. } = denial;
        facts.push(("decision", id.to_string()));
        Error { facts, retry_after, ..Error::new(kind, format!("{message} decision={id}")) }
    }
}
