//! What changed between two looks at the records, an event each, for programs and for lines that are not drawn over.

use std::collections::{BTreeMap, BTreeSet};

use chancery::TaskState;
use chancery::protocol::Timestamp;
use chancery_core::TreeTask;
use chancery_core::budget::{BudgetScope, BudgetStanding};
use serde_json::{Value, json};

use super::drawing::{fitted, reasons};
use super::play::{Played, Scene};
use super::records::{RecordsView, RefusedCall};
use crate::commands::show;

/// What has been told already.
#[derive(Debug, Default)]
pub(super) struct ShownEvents {
    tasks: BTreeMap<String, (TaskState, i64)>,
    refused: BTreeSet<String>,
    budgets: BTreeMap<String, (i64, i64)>,
}

pub(super) enum DemoEvent<'a> {
    Task(&'a TreeTask),
    Refused(&'a RefusedCall),
    Budget(&'a BudgetScope, &'a BudgetStanding),
}

impl ShownEvents {
    /// What is new, in the order it happened; the budgets after what changed them.
    pub(super) fn news<'a>(&mut self, picture: &'a RecordsView) -> Vec<DemoEvent<'a>> {
        let mut news = Vec::new();
        for task in &picture.tasks {
            let now = (task.state, task.spend.settled.usd.0);
            if self.tasks.insert(task.task.to_string(), now) != Some(now) {
                news.push(DemoEvent::Task(task));
            }
        }
        for refusal in &picture.refused {
            if self.refused.insert(refusal.decision.id.to_string()) {
                news.push(DemoEvent::Refused(refusal));
            }
        }
        news.sort_by_key(DemoEvent::at);
        for (scope, standing) in &picture.budgets {
            let now = (standing.settled.usd.0, standing.reserved.usd.0);
            if self.budgets.insert(scope.to_string(), now) != Some(now) {
                news.push(DemoEvent::Budget(scope, standing));
            }
        }
        news
    }
}

impl DemoEvent<'_> {
    fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Task(task) => Some(task.status_at),
            Self::Refused(refusal) => Some(refusal.decision.at),
            Self::Budget(..) => None,
        }
    }

    pub(super) fn json(&self, scene: &Scene) -> Value {
        match self {
            Self::Task(task) => with(scene, "task", json!(task)),
            Self::Refused(refusal) => with(scene, "refused", refused(refusal)),
            Self::Budget(scope, standing) => {
                let BudgetStanding { limit, settled, reserved, overrun } = standing;
                let caps = json!({ "usd": limit.caps.usd, "tokens": limit.caps.tokens, "tasks": limit.caps.tasks });
                let body = json!({
                    "scope": scope.to_string(), "cap": caps, "settled": settled, "reserved": reserved, "overrun": overrun,
                });
                with(scene, "budget", body)
            }
        }
    }

    /// The same for a person; budgets are shown when all is over.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Task(task) => {
                let kinship = &task.kinship;
                let money = match (task.state.is_terminal(), &task.spend) {
                    (true, spend) => format!("${} spent", spend.settled.usd),
                    (false, spend) => format!("${} held", spend.reserved.usd),
                };
                let (state, attribution) = (show::state(task.state), kinship.attribution.as_str());
                vec![format!("  {state:<12} {:<4} depth {}  {attribution:<10} {money}", task.agent, kinship.depth)]
            }
            Self::Refused(refusal) => {
                let decision = &refusal.decision;
                let attribution = refusal.attribution.as_deref().unwrap_or("-");
                let first =
                    format!("  {:<12} {} → {}, {attribution}: {}", "refused", decision.caller, decision.agent, refusal.code);
                let indent = " ".repeat(15);
                std::iter::once(first).chain(reasons(refusal).iter().map(|reason| fitted(&indent, reason))).collect()
            }
            Self::Budget(..) => Vec::new(),
        }
    }
}

fn with(scene: &Scene, event: &str, body: Value) -> Value {
    let mut whole = json!({ "event": event, "scene": scene.number });
    if let (Value::Object(whole), Value::Object(body)) = (&mut whole, body) {
        whole.extend(body);
    }
    whole
}

fn refused(refusal: &RefusedCall) -> Value {
    let decision = &refusal.decision;
    json!({
        "decision": decision.id,
        "code": refusal.code,
        "caller": decision.caller,
        "agent": decision.agent,
        "attribution": refusal.attribution,
        "parent": refusal.parent,
        "root": decision.root,
        "facts": refusal.facts,
    })
}

pub(super) fn scene(scene: &Scene) -> Value {
    with(scene, "scene", json!({ "title": scene.title }))
}

/// The last line.
pub(super) fn summary(played: &[Played]) -> Value {
    let scenes: Vec<Value> = played
        .iter()
        .map(|Played { scene, picture, peak, faults }| {
            json!({
                "scene": scene.number,
                "tasks": picture.tasks.len(),
                "refused": picture.refused.iter().map(|refusal| &refusal.code).collect::<Vec<_>>(),
                "attributions": picture.tasks.iter().map(|task| task.kinship.attribution).collect::<Vec<_>>(),
                "settled_usd": picture.spent().iter().map(|(_, settled, _)| settled).collect::<Vec<_>>(),
                "peak_usd": peak,
                "faults": faults,
            })
        })
        .collect();
    json!({ "event": "summary", "ok": played.iter().all(|played| played.faults.is_empty()), "scenes": scenes })
}
