//! What was decided about a call, rule by rule, and the one place where a refusal becomes an error.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{CallContext, Error, ErrorKind, TaskId, TraceId};

use crate::agents::Agent;
use crate::find::internal;
use crate::ids::fresh_id;
use crate::service::Inner;
use crate::{Decision, Fact, Rule, Verdict};

/// The verdicts so far, in the order the rules were asked.
#[derive(Debug, Default)]
pub(crate) struct Verdicts(pub(crate) Vec<Verdict>);

impl Verdicts {
    pub(crate) fn pass(&mut self, rule: Rule, facts: impl FnOnce() -> Vec<(Cow<'static, str>, Fact)>) {
        self.0.push(Verdict { rule, passed: true, facts: facts() });
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

impl Inner {
    /// Keeps the refusal with all that led to it, and says it to the caller with the decision's id.
    pub(crate) async fn refuse(
        &self,
        context: &CallContext,
        agent: &Agent,
        task: Option<&TaskId>,
        tree: Option<(TaskId, TraceId)>,
        verdicts: Verdicts,
        denial: Denial,
    ) -> Error {
        let id: Arc<str> = fresh_id();
        let (root, trace) = tree.map_or((None, context.trace), |(root, trace)| (Some(root), trace));
        let mut verdicts = verdicts.0;
        let facts = denial.facts.iter().map(|(name, value)| (Cow::Borrowed(*name), Fact::text(value.clone()))).collect();
        verdicts.push(Verdict { rule: denial.rule, passed: false, facts });
        let decision = Decision {
            id: Arc::clone(&id),
            at: self.clock.now(),
            tenant: Arc::clone(&context.caller.tenant),
            caller: Arc::clone(&context.caller.name),
            agent: agent.name.clone(),
            task: task.cloned(),
            root,
            trace: Some(trace),
            refused: Some(denial.kind.reason().into()),
            verdicts,
        };
        tracing::info!(decision = &*id, caller = %context.caller.name, agent = %agent.name, rule = ?denial.rule, "refused: {}", denial.message);
        if let Err(fault) = self.store.decide(Arc::new(decision)).await {
            return internal(fault);
        }
        let Denial { kind, message, mut facts, retry_after, .. } = denial;
        facts.push(("decision", id.to_string()));
        Error { facts, retry_after, ..Error::new(kind, format!("{message} decision={id}")) }
    }
}
