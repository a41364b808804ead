//! Agents, their changes and their health, for a terminal.

use serde_json::Value;

use super::super::show::{columns, items, safe, text};

/// A row for every replica, and under the table what waits.
pub(super) fn list(agents: &[Value]) -> String {
    let mut rows = vec![["AGENT", "FROM", "STATE", "PINNED", "SIGNATURE", "CARD"].map(str::to_owned)];
    let mut waiting = String::new();
    for agent in agents {
        let (name, replicas) = (text(&agent["name"]), items(&agent["replicas"]));
        let pinned = if agent["pin"] == true { "yes" } else { "-" };
        let head = [name.clone(), text(&agent["source"]), text(&agent["state"]), pinned.to_owned()];
        let row = |replica: &Value| {
            let at = if replica["card"].is_string() { &replica["card"] } else { &replica["url"] };
            let [name, from, state, pinned] = head.clone();
            [name, from, state, pinned, text(&replica["verification"]), text(at)]
        };
        rows.extend(replicas.iter().map(row));
        if replicas.is_empty() {
            rows.push(row(&Value::Null));
        }
        for replica in replicas {
            if replica["pending"].is_object() {
                waiting.push_str(&format!("\n{name} at {} now shows a card with\n", text(&replica["url"])));
                waiting.push_str(&changes(&replica["pending"]["changes"], "  "));
                let digest = text(&replica["pending"]["structure"]);
                waiting.push_str(&format!("  Take it over with `chancery agents approve {name} --digest {digest}`\n"));
            }
            if replica["fault"].is_string() {
                waiting.push_str(&format!("\n{}\n", text(&replica["fault"])));
            }
        }
    }
    columns(rows) + &waiting
}

/// A line for every difference.
pub(super) fn changes(changes: &Value, indent: &str) -> String {
    let mut lines = String::new();
    for (member, change) in changes.as_object().into_iter().flatten() {
        for (mark, kind) in [('+', "added"), ('-', "removed"), ('~', "changed")] {
            for one in items(&change[kind]) {
                lines.push_str(&format!("{indent}{mark} {} {}\n", safe(member), text(one)));
            }
        }
    }
    lines
}

pub(super) fn health(answer: &Value) -> String {
    let head = ["REPLICA", "BREAKER", "UNTIL", "EJECTED UNTIL", "LATENCY", "OPEN TASKS", "FAILED", "LAST HEARD"];
    let row = |one: &Value| {
        let latency = one["latency_ms"].as_f64().map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
        let failed = one["failure_share"].as_f64().unwrap_or_default() * 100.0;
        [
            text(&one["url"]),
            text(&one["breaker"]),
            text(&one["breaker_until"]),
            text(&one["ejected_until"]),
            latency,
            text(&one["open_tasks"]),
            format!("{failed:.0} % of {}", text(&one["results"])),
            text(&one["last_heard"]),
        ]
    };
    columns(std::iter::once(head.map(str::to_owned)).chain(items(&answer["replicas"]).iter().map(row)).collect())
}
