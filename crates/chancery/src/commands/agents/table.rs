//! Agents, their changes and their health, for a terminal.

use serde_json::Value;

use super::super::show::{columns, items, safe, text};

/// A row for every replica, and under the table what waits.
pub(super) fn list(agents: &[Value]) -> String {
    let mut rows =
        vec![["AGENT", "FROM", "STATE", "PINNED", "SIGNATURE", "A2A", "CALLS PLACED (1h)", "ADDRESS", "CARD"].map(str::to_owned)];
    let mut waiting = String::new();
    for agent in agents {
        let (name, replicas) = (text(&agent["name"]), items(&agent["replicas"]));
        let pinned = if agent["pin"] == true { "yes" } else { "-" };
        let head = [name.clone(), text(&agent["source"]), text(&agent["state"]), pinned.to_owned()];
        let row = |replica: &Value| {
            let at = if replica["card"].is_string() { &replica["card"] } else { &replica["url"] };
            let [name, from, state, pinned] = head.clone();
            let (spoken, address) = (spoken(&replica["calls"]), text(&replica["calls"]["address"]));
            [name, from, state, pinned, text(&replica["verification"]), spoken, placed(&agent["placed"]), address, text(at)]
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
            if let Some(deviations) = leniencies(replica) {
                waiting.push_str(&format!("\n{name} at {} deviates: {deviations}\n", text(&replica["url"])));
            }
            if replica["fault"].is_string() {
                waiting.push_str(&format!("\n{}\n", text(&replica["fault"])));
            }
        }
    }
    columns(rows) + &waiting
}

/// How the calls that an agent made in the last hour were placed.
fn placed(placed: &Value) -> String {
    let one = |(attribution, times): (&String, &Value)| format!("{} {}", safe(attribution), text(times));
    let all: Vec<String> = placed.as_object().into_iter().flatten().map(one).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// The version and binding an agent is called in.
fn spoken(calls: &Value) -> String {
    let streams = if calls["streaming"] == true { ", streams" } else { "" };
    match calls["version"].as_str() {
        Some(version) => safe(&format!("{version} {}{streams}", text(&calls["binding"]))),
        None => "-".to_owned(),
    }
}

/// The deviations of a replica with how often each was seen.
fn leniencies(replica: &Value) -> Option<String> {
    let counted = replica["leniencies"].as_object().filter(|counted| !counted.is_empty())?;
    let one = |(name, times): (&String, &Value)| format!("{} ({})", safe(name), text(times));
    Some(counted.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// All that is known of one agent.
pub(super) fn one(agent: &Value) -> String {
    let mut rows = vec![["agent".to_owned(), text(&agent["name"])], ["state".to_owned(), text(&agent["state"])]];
    for replica in items(&agent["replicas"]) {
        let calls = &replica["calls"];
        let mut row = |name: &str, value: String| rows.push([name.to_owned(), value]);
        row("url", text(&replica["url"]));
        row("card", text(&replica["card"]));
        row("signature", text(&replica["verification"]));
        row("called in", spoken(calls));
        row("called at", text(&calls["address"]));
        if calls["replaced"].is_string() {
            row("on its card", format!("{} ({})", text(&calls["listed"]), text(&calls["replaced"])));
        }
        if calls["fault"].is_string() {
            row("not called", text(&calls["fault"]));
        }
        if replica["prefers"].is_object() {
            let way = if replica["prefers"]["streams"] == true { "stream" } else { "unary" };
            row("prefers", format!("{way}: {}", text(&replica["prefers"]["reason"])));
        }
        if replica["speaks"].is_string() {
            row("speaks", text(&replica["speaks"]));
        }
        row("deviates", leniencies(replica).unwrap_or_else(|| "no".to_owned()));
        for deviation in items(&replica["deviations"]) {
            row("", format!("card: {}", text(deviation)));
        }
        if replica["fault"].is_string() {
            row("card fault", text(&replica["fault"]));
        }
        if replica["last_fault"].is_object() {
            row("last fault", format!("{} at {}", text(&replica["last_fault"]["reason"]), text(&replica["last_fault"]["at"])));
        }
    }
    let settings = agent["settings"].as_object().into_iter().flatten();
    rows.extend(settings.map(|(key, value)| ["setting".to_owned(), format!("{} = {}", safe(key), text(value))]));
    columns(rows)
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
    let rows = std::iter::once(head.map(str::to_owned)).chain(items(&answer["replicas"]).iter().map(row)).collect();
    let failing = items(&answer["replicas"]).iter().filter(|one| one["failing"].is_string());
    let faults: String = failing.map(|one| format!("{} fails: {}\n", text(&one["url"]), text(&one["failing"]))).collect();
    columns(rows) + &faults
}
