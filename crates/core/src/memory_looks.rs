//! Looks at shared memory across nodes: the node whose agent looked reports them with the end of the task, and its caller's node records them.

use std::borrow::Cow;
use std::sync::Arc;

use chancery_protocol::raw_json::member;
use chancery_protocol::{Metadata, TaskEvent, Timestamp};
use serde::{Deserialize, Serialize};

use crate::govern::terms::GOVERNANCE_EXTENSION;
use crate::ids::fresh_id;
use crate::live::LiveTask;
use crate::{Decision, Fact, Rule, Verdict};

/// Looks of one task that are reported. Of more only their number is.
pub(crate) const MOST_REPORTED: usize = 64;
/// The member of an account that has them.
const MEMBER: &str = "memory_looks";
/// Characters of a text of another node that are kept.
const TEXT: usize = 256;

/// One look at shared memory, as nodes tell it each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryLook {
    pub(crate) look: Cow<'static, str>,
    pub(crate) witness: String,
    pub(crate) data_ref: String,
    /// The agent that looked, as its own node names it.
    pub(crate) agent: String,
    /// The decision about it on the record of that node.
    pub(crate) decision: String,
    pub(crate) at: Timestamp,
}

/// The looks of one task so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryLooks {
    looks: Vec<MemoryLook>,
    /// How many there were beside these.
    #[serde(default, skip_serializing_if = "is_zero")]
    left_out: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl MemoryLooks {
    pub(crate) fn is_empty(&self) -> bool {
        self.looks.is_empty()
    }

    pub(crate) fn add(&mut self, look: MemoryLook) {
        if self.looks.len() < MOST_REPORTED {
            self.looks.push(look);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// The memory report of a remote agent in an update. An unreadable report counts as absent.
    pub(crate) fn reported(event: &TaskEvent) -> Option<Self> {
        let of = |metadata: Option<&Metadata>| {
            let text = metadata.map(Metadata::text).filter(|text| text.contains(MEMBER))?;
            let mut looks: Self = serde_json::from_str(member(member(text, GOVERNANCE_EXTENSION)?, MEMBER)?).ok()?;
            let more = looks.looks.len().saturating_sub(MOST_REPORTED) as u64;
            looks.looks.truncate(MOST_REPORTED);
            looks.left_out = looks.left_out.saturating_add(more);
            Some(looks).filter(|looks| !looks.is_empty())
        };
        match event {
            TaskEvent::Status(change) => of(change.metadata.as_ref()),
            TaskEvent::Replied(message) => of(message.metadata.as_ref()),
            TaskEvent::Artifact(_) | TaskEvent::Created(_) | TaskEvent::Said(_) => None,
        }
    }

    /// Each look as a verdict, with the agent of this node that reported it.
    fn verdicts(self, reporter: &str) -> Vec<Verdict> {
        let left_out = self.left_out;
        let verdict = |look: MemoryLook| {
            let facts = vec![
                fact("look", &look.look),
                fact("witness", &look.witness),
                fact("data_ref", &look.data_ref),
                fact("reader", &look.agent),
                fact("reported_by", reporter),
                fact("reader_decision", &look.decision),
                fact("looked_at", &look.at.to_string()),
            ];
            Verdict { rule: Rule::Memory, passed: true, facts }
        };
        let mut verdicts: Vec<_> = self.looks.into_iter().map(verdict).collect();
        if let Some(last) = verdicts.last_mut().filter(|_| left_out > 0) {
            last.facts.push((Cow::Borrowed("left_out"), Fact::Number(left_out)));
        }
        verdicts
    }
}

/// A fact of another node's words, as much of them as a record needs.
fn fact(name: &'static str, text: &str) -> (Cow<'static, str>, Fact) {
    (Cow::Borrowed(name), Fact::text(text.chars().take(TEXT).collect::<String>()))
}

impl LiveTask {
    /// The decision that puts reported looks on the record of this node. `before` is what waits for the store already, which then
    /// has them too.
    pub(crate) fn record_of(&self, looks: MemoryLooks, before: Option<Arc<Decision>>, at: Timestamp) -> Arc<Decision> {
        let record = &self.record;
        let kinship = self.node().map(|node| &node.kinship);
        let verdicts = looks.verdicts(&record.agent);
        Arc::new(match before {
            Some(decision) => {
                let mut decision = Arc::unwrap_or_clone(decision);
                decision.verdicts.extend(verdicts);
                decision
            }
            None => Decision {
                id: fresh_id(),
                at,
                tenant: Arc::clone(&record.owner.tenant),
                caller: Arc::clone(&record.owner.name),
                agent: record.agent.clone(),
                task: Some(record.id.clone()),
                root: kinship.map(|kinship| kinship.root.clone()),
                trace: kinship.map(|kinship| kinship.trace),
                refused: None,
                verdicts,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use chancery_protocol::{StatusChange, TaskState, TaskStatus};
    use serde_json::{Value, json};

    use super::*;

    fn look(witness: &str) -> MemoryLook {
        MemoryLook {
            look: "resolve".into(),
            witness: witness.to_owned(),
            data_ref: "file:///notes".to_owned(),
            agent: "recall".to_owned(),
            decision: "d".to_owned(),
            at: Timestamp::from_micros(0),
        }
    }

    fn event(account: Value) -> TaskEvent {
        let status = TaskStatus { state: TaskState::Completed, message: None, timestamp: None, unknown: Default::default() };
        let metadata = json!({ GOVERNANCE_EXTENSION: account });
        let metadata = Some(Metadata::from_object(metadata.as_object().unwrap().clone()));
        TaskEvent::Status(StatusChange { status, metadata, unknown: Default::default() })
    }

    #[test]
    fn the_last_look_that_fits_is_reported_and_one_more_is_counted() {
        let mut looks = MemoryLooks::default();
        (0..MOST_REPORTED).for_each(|_| looks.add(look("w")));
        assert_eq!((looks.looks.len(), looks.left_out), (MOST_REPORTED, 0));
        looks.add(look("w"));
        assert_eq!((looks.looks.len(), looks.left_out), (MOST_REPORTED, 1));
        let heard = MemoryLooks::reported(&event(json!({ MEMBER: looks }))).unwrap();
        assert_eq!(heard, looks);
        assert!(heard.verdicts("there").last().unwrap().facts.contains(&(Cow::Borrowed("left_out"), Fact::Number(1))));
    }

    #[test]
    fn a_peer_cannot_report_more_than_a_record_takes() {
        let looks: Vec<_> = (0..1000).map(|_| look(&"w".repeat(9000))).collect();
        let heard = MemoryLooks::reported(&event(json!({ MEMBER: { "looks": looks } }))).unwrap();
        assert_eq!((heard.looks.len(), heard.left_out), (MOST_REPORTED, 1000 - MOST_REPORTED as u64));
        let verdicts = heard.verdicts("there");
        assert!(serde_json::to_string(&verdicts[0]).unwrap().len() < 1024, "{verdicts:?}");
    }

    #[test]
    fn what_is_no_report_is_none() {
        for account in [json!({}), json!({ MEMBER: 7 }), json!({ MEMBER: { "looks": [] } }), json!({ MEMBER: { "looks": [1] } })]
        {
            assert_eq!(MemoryLooks::reported(&event(account.clone())), None, "{account}");
        }
    }
}
