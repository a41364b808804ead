//! Delegation trees in box characters, a task a line.

use std::collections::HashMap;

use chancery::protocol::Timestamp;
use serde_json::Value;

use super::super::show;

const HEAD: [&str; 8] = ["AGENT", "TASK", "STATE", "DEPTH", "HOW", "OWN", "ALL", "TIME"];

/// Every tree of the answer, each under its trace.
pub(super) fn all(answer: &Value) -> String {
    let now = time(&answer["now"]);
    let drawn = show::items(&answer["trees"]).iter().map(|tree| {
        let mut rows = vec![HEAD.map(str::to_owned)];
        rows.extend(Tree::of(tree, now).rows());
        format!("trace {}\n{}", show::text(&tree["trace"]), show::columns(rows))
    });
    drawn.collect::<Vec<_>>().join("\n")
}

struct Tree<'a> {
    /// The tasks without a stored parent: the root, and the remains of a tree that retention deleted in part.
    tops: Vec<&'a Value>,
    below: HashMap<&'a str, Vec<&'a Value>>,
    now: Option<Timestamp>,
}

impl<'a> Tree<'a> {
    fn of(tree: &'a Value, now: Option<Timestamp>) -> Self {
        let tasks = show::items(&tree["tasks"]);
        let kept = |id: &str| tasks.iter().any(|task| task["task"] == id);
        let (mut tops, mut below) = (Vec::new(), HashMap::<_, Vec<_>>::new());
        for task in tasks {
            match task["parent"].as_str().filter(|parent| kept(parent)) {
                Some(parent) => below.entry(parent).or_default().push(task),
                None => tops.push(task),
            }
        }
        Self { tops, below, now }
    }

    fn rows(&self) -> Vec<[String; 8]> {
        let mut rows = Vec::new();
        // What is still to be drawn, the next last: a task, what stands before it, and before those below it.
        let mut left: Vec<(&Value, String, String)> =
            self.tops.iter().rev().map(|task| (*task, String::new(), String::new())).collect();
        while let Some((task, before, under)) = left.pop() {
            rows.push(self.row(task, &before));
            let below = task["task"].as_str().and_then(|id| self.below.get(id)).map(Vec::as_slice).unwrap_or_default();
            for (place, child) in below.iter().enumerate().rev() {
                let (branch, gap) = if place + 1 == below.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                left.push((child, format!("{under}{branch}"), format!("{under}{gap}")));
            }
        }
        rows
    }

    fn row(&self, task: &Value, before: &str) -> [String; 8] {
        let past = if show::is_nothing(&task["spend"]["overrun"]["usd"]) { "" } else { "*" };
        [
            format!("{before}{}", show::text(&task["agent"])),
            show::text(&task["task"]),
            show::state_name(task["state"].as_str().unwrap_or_default()),
            show::text(&task["depth"]),
            show::text(&task["attribution"]),
            format!("{}{past}", show::text(&task["cost"]["usd"])),
            show::text(&task["subtree_cost"]["usd"]),
            self.took(task).map_or_else(|| "-".to_owned(), |micros| span(micros.max(0).cast_unsigned() / 1000)),
        ]
    }

    /// How long the task took, or has been at work, in microseconds.
    fn took(&self, task: &Value) -> Option<i64> {
        let ended = ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].iter().any(|end| {
            task["state"].as_str().is_some_and(|state| state.trim_start_matches("TASK_STATE_").eq_ignore_ascii_case(end))
        });
        let until = if ended { time(&task["status_at"]) } else { self.now };
        Some(until?.micros() - time(&task["created_at"])?.micros())
    }
}

fn time(value: &Value) -> Option<Timestamp> {
    serde_json::from_value(value.clone()).ok()
}

/// `350ms`, `1.2s`, `3m05s`, `2h07m`.
fn span(millis: u64) -> String {
    match millis / 1000 {
        0 => format!("{millis}ms"),
        seconds @ 1..60 => format!("{seconds}.{}s", millis % 1000 / 100),
        seconds @ 60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(id: &str, parent: Option<&str>, depth: u32) -> Value {
        json!({
            "task": id, "agent": format!("agent-{id}"), "parent": parent, "depth": depth, "attribution": "verified",
            "state": "TASK_STATE_COMPLETED", "created_at": "2026-01-01T00:00:00Z", "status_at": "2026-01-01T00:00:01.250Z",
            "cost": { "usd": "0.01" }, "subtree_cost": { "usd": "0.03" },
            "spend": { "overrun": { "usd": if id == "b" { "0.005" } else { "0.00" } } },
        })
    }

    #[test]
    fn branches_are_drawn_in_the_order_they_grew() {
        let tasks = [task("r", None, 0), task("a", Some("r"), 1), task("b", Some("r"), 1), task("c", Some("a"), 2)];
        let drawn = all(&json!({ "now": "2026-01-01T00:00:05Z", "trees": [{ "trace": "t", "tasks": tasks }] }));
        let firsts: Vec<&str> = drawn.lines().map(|line| line.split("  ").next().unwrap()).collect();
        assert_eq!(firsts, ["trace t", "AGENT", "agent-r", "├─ agent-a", "│", "└─ agent-b"], "{drawn}");
        assert!(drawn.contains("│  └─ agent-c") && drawn.contains("1.2s"), "{drawn}");
        assert!(drawn.lines().last().unwrap().contains("0.01*"), "{drawn}");
    }

    #[test]
    fn a_task_whose_parent_is_forgotten_is_drawn_at_the_edge() {
        let drawn = all(&json!({ "now": null, "trees": [{ "trace": "t", "tasks": [task("x", Some("gone"), 3)] }] }));
        assert!(drawn.lines().any(|line| line.starts_with("agent-x")), "{drawn}");
    }

    #[test]
    fn times_are_short() {
        assert_eq!([0, 350, 1_250, 185_000, 7_650_000].map(span), ["0ms", "350ms", "1.2s", "3m05s", "2h07m"]);
    }
}
