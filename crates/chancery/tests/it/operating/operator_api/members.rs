//! Members of the admin API's answers are in snake_case; A2A objects in them keep A2A's spelling.

use serde_json::{Value, json};

use super::Operator;
use crate::support::delegating_node::{AGENTS, DelegatingNode, decision_in};

/// Members with the objects of A2A, and those whose own members are names.
const APART: [&str; 5] = ["task", "event", "placed", "loops", "settings"];

fn not_in_snake_case(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let path = format!("{path}/{name}");
                if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_') {
                    found.push(path.clone());
                }
                if !(APART.contains(&name.as_str()) && value.is_object()) {
                    not_in_snake_case(value, &path, found);
                }
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| not_in_snake_case(entry, path, found)),
        _ => {}
    }
}

#[tokio::test]
async fn members_are_in_snake_case_and_a2a_objects_as_a2a_has_them() {
    let delegating_node = DelegatingNode::new(AGENTS);
    let [root, _, leaf] = delegating_node.three_levels();
    delegating_node.text(&["freeze", "agent", "writer"]);
    let refused = delegating_node.send_as("user", &["--agent", "writer", "complete x"]);
    let decision = decision_in(&refused.stderr);
    let operator = Operator::of(&delegating_node.node, &delegating_node.home);
    let task = format!("tasks/{root}");
    let events = format!("tasks/{root}/events");
    let (trees, explained, decided) = (format!("trees/{leaf}"), format!("explain/{leaf}"), format!("explain/{decision}"));
    let paths = [
        "node",
        "tasks",
        &task,
        &events,
        &trees,
        &explained,
        &decided,
        "decisions",
        "budgets",
        "bill?since_seconds=60",
        "freezes",
        "agents",
        "callers",
        "keys",
        "config",
        "evidence",
        "push/lanes",
        "push/origins",
        "push/dead",
        "push/receipts",
        "push/vault",
        "push/secrets",
    ];
    let mut found = Vec::new();
    for path in paths {
        not_in_snake_case(&operator.good(path).await, path, &mut found);
    }
    assert_eq!(found, Vec::<String>::new());

    let node = operator.good("node").await;
    assert!(node["open_tasks"].is_u64() && node["open_streams"].is_u64() && node["loop_panics"].is_object(), "{node}");
    let shown = operator.good(&task).await;
    assert_eq!(shown["record"]["context_id"], shown["task"]["contextId"], "{shown}");
    assert!(shown["record"]["status_at"].is_string() && shown["record"]["created_at"].is_string(), "{shown}");
    let first = &operator.good(&events).await["events"][0];
    assert_eq!((&first["seq"], first["event"].is_object()), (&json!(1), true), "{first}");
}
