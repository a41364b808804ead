//! How many contexts of child calls can be made in a second, beside copying a list of names for each.

use std::hint::black_box;

use anyhow::Result;
use chancery::protocol::{TaskId, TraceId};
use chancery_rules::lineage::{AgentRef, TaskContext};

use super::identity::{line, timed};
use super::{Match, Row};
use crate::report::{MeasuredRow, Pair, RowTarget, Unit};

const BATCH: usize = 200_000;
/// At depth 1.
const AT_LEAST: f64 = 10e6;

/// What a child costs if nothing is shared.
#[derive(Clone)]
struct Copied {
    trace: String,
    parent: Option<String>,
    depth: u32,
    root: String,
    visited: Vec<String>,
}

impl Copied {
    fn child(&self, parent: &str, caller: &str) -> Self {
        let mut child = Self { parent: Some(parent.to_owned()), depth: self.depth + 1, ..self.clone() };
        child.visited.push(caller.to_owned());
        child
    }
}

pub(super) fn measure(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let (task, caller) = (TaskId::new("0193a4a0-7c1e-7d6b-8d0e-7f5a0c9b1e2d"), AgentRef::from("research"));
    let root = TaskContext::root(TraceId(7), "planner".into());
    let copied = Copied {
        trace: root.trace_id.to_string(),
        parent: None,
        depth: 0,
        root: "planner".to_owned(),
        visited: vec!["planner".to_owned()],
    };
    let batch = || Ok(vec![(); BATCH]);
    let bare = timed(this.effort.rounds, batch, |()| {
        let child = black_box(&copied).child(task.as_str(), &caller);
        black_box((&child.trace, &child.parent, child.depth, &child.root, &child.visited));
        Ok(())
    })?;
    let of = |parent: &TaskContext| {
        timed(this.effort.rounds, batch, |()| {
            black_box(black_box(parent).child(task.clone(), caller.clone()));
            Ok(())
        })
    };
    let ours = of(&root)?;
    let deep = of(&(0..7).fold(root.clone(), |context, _| context.child(task.clone(), caller.clone())))?;
    let note =
        format!("{:.0} ns at depth 1, {:.0} ns at depth 8; {:.0} ns with everything copied", ours * 1e3, deep * 1e3, bare * 1e3);
    let value = Pair { yardstick: 1e6 / bare, chancery: 1e6 / ours };
    Ok(line(row, Unit::PerSecond, value, bare / ours, Some(RowTarget::AtLeast(AT_LEAST)), note))
}
