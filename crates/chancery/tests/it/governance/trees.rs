//! `chancery tree` and `chancery budgets`: what calls led to and cost, and how all of it is stopped.

use serde_json::{Value, json};

use crate::support::delegating_node::{AGENTS, DelegatingNode};
use crate::support::patience::eventually;
use crate::support::server::{Home, Setup};

/// What became of each task, by its agent, in the order they were told.
fn outcomes(cascade: &Value) -> Vec<(&str, &str)> {
    cascade.as_array().unwrap().iter().map(|one| (one["agent"].as_str().unwrap(), one["outcome"].as_str().unwrap())).collect()
}

#[test]
fn a_tree_of_three_levels_is_drawn_from_any_of_its_tasks_and_from_its_trace() {
    let node = DelegatingNode::new(AGENTS);
    let [root, middle, leaf] = node.three_levels();
    let drawn = node.text(&["tree", &leaf]);
    let lines: Vec<&str> = drawn.lines().collect();
    assert!(lines[0].starts_with("trace ") && lines[1].starts_with("AGENT"), "{drawn}");
    let rows = [("planner ", &root, "root"), ("└─ research ", &middle, "inferred"), ("   └─ writer", &leaf, "inferred")];
    for (depth, (line, (start, task, how))) in lines[2..].iter().zip(rows).enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(line.starts_with(start), "{line}");
        let place = words.iter().position(|word| word == task).unwrap_or_else(|| panic!("{task} is not in: {line}"));
        assert_eq!(words[place + 1..place + 4], ["working", &depth.to_string(), how], "{line}");
    }
    assert_eq!(lines.len(), 5, "{drawn}");

    let tree = node.json(&["tree", &root]);
    let trace = tree["trees"][0]["trace"].as_str().unwrap();
    let by_trace = node.json(&["tree", trace]);
    assert_eq!(by_trace["trees"], tree["trees"]);
    assert_eq!(tree["trees"][0]["tasks"][2]["parent"], middle.as_str());
}

#[test]
fn cost_is_shown_of_each_task_alone_and_with_all_below_it() {
    let node = DelegatingNode::new(AGENTS);
    let [root, middle, leaf] = node.three_levels();
    let held = node.json(&["budgets"]);
    let budget = |all: &Value, kind: &str| {
        let found = all["budgets"].as_array().unwrap().iter().find(|budget| budget["kind"] == kind).cloned();
        found.unwrap_or_else(|| panic!("no budget of a {kind}: {all}"))
    };
    let tree = budget(&held, "tree");
    assert_eq!((&tree["scope"], &tree["limit"]["usd"]), (&json!(format!("tree:{root}")), &json!("0.50")));
    assert_eq!((&tree["reserved"]["usd"], &tree["remaining"]["usd"]), (&json!("0.06"), &json!("0.44")), "{tree}");
    let table = node.text(&["budgets"]);
    assert!(table.contains('▒') && table.contains("caller:default/user") && table.contains("1h"), "{table}");

    let cancelled = node.json(&["tree", &root, "--cancel"]);
    assert_eq!(
        outcomes(&cancelled["cascade"]),
        [("writer", "cancelled"), ("research", "cancelled"), ("planner", "cancelled")],
        "the deepest first: {cancelled}"
    );
    for task in [&root, &middle, &leaf] {
        assert_eq!(node.state(task), "TASK_STATE_CANCELED");
    }
    let tree = node.json(&["tree", &leaf])["trees"][0]["tasks"].take();
    let costs = |member: &str| tree.as_array().unwrap().iter().map(|task| task[member]["usd"].clone()).collect::<Vec<_>>();
    assert_eq!(costs("cost"), ["0.01", "0.02", "0.03"], "{tree}");
    assert_eq!(costs("subtree_cost"), ["0.06", "0.05", "0.03"], "{tree}");
    let spent = budget(&node.json(&["budgets"]), "caller");
    assert_eq!((&spent["settled"]["usd"], &spent["remaining"]["usd"]), (&json!("0.01"), &json!("0.99")), "{spent}");

    let again = node.run(&["tree", &root, "--cancel"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stdout.contains("already_done"), "{}", again.stdout);
}

#[test]
fn cancelling_one_task_cancels_all_below_it_first_and_leaves_what_is_above() {
    let node = DelegatingNode::new(AGENTS);
    let [root, middle, leaf] = node.three_levels();
    let cancelled = node.run(&["tasks", "cancel", &middle]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
    let lines: Vec<&str> = cancelled.stdout.lines().collect();
    assert!(lines[0].starts_with(&leaf) && lines[0].ends_with("cancelled"), "{}", cancelled.stdout);
    assert_eq!(lines[1], format!("{middle} canceled"));
    assert_eq!(node.state(&leaf), "TASK_STATE_CANCELED");
    assert_eq!(node.state(&root), "TASK_STATE_WORKING");
}

#[test]
fn a_dead_peer_is_reported_and_all_others_are_cancelled() {
    let back_home = Home::new();
    let backend = Setup::in_home(&back_home).config("[agents.far]\nrun = \"conformance\"\n").start();
    let far = format!("\n[agents.far]\nurl = \"{}\"\nverify = \"off\"\n[limits]\ncancel_grace_ms = 500\n", backend.url());
    let node = DelegatingNode::new(&format!("{AGENTS}{far}"));
    let [root, middle, leaf] = node.three_levels();
    let lost = node.begin("research-bot", "far");
    backend.kill();

    let cancelled = node.run(&["--json", "tree", &root, "--cancel"]);
    assert_eq!(cancelled.code, Some(1), "{}", cancelled.stdout);
    assert!(cancelled.stderr.contains("1 of 4"), "{}", cancelled.stderr);
    let cascade: Value = serde_json::from_str(&cancelled.stdout).unwrap();
    let mut told = outcomes(&cascade["cascade"]);
    told[..2].sort_unstable();
    assert_eq!(told, [("far", "unreachable"), ("writer", "cancelled"), ("research", "cancelled"), ("planner", "cancelled")]);
    let of_lost = cascade["cascade"].as_array().unwrap().iter().find(|one| one["task"] == lost.as_str()).unwrap();
    assert!(
        of_lost["reason"].as_str().unwrap().contains("stopped") || of_lost["reason"].as_str().unwrap().contains("reached"),
        "{of_lost}"
    );
    for task in [&root, &middle, &leaf, &lost] {
        assert_eq!(node.state(task), "TASK_STATE_CANCELED", "{cascade}");
    }
}

#[test]
fn a_peer_that_is_there_is_told_to_stop() {
    let back_home = Home::new();
    let backend = Setup::in_home(&back_home).config("[agents.far]\nrun = \"conformance\"\n").start();
    let node = DelegatingNode::new(&format!("{AGENTS}\n[agents.far]\nurl = \"{}\"\nverify = \"off\"\n", backend.url()));
    let root = node.begin("user", "planner");
    let remote = node.begin("planner-bot", "far");
    let cancelled = node.json(&["tasks", "cancel", &root]);
    assert_eq!(outcomes(&cancelled["cascade"]), [("far", "cancelled")], "{cancelled}");
    assert_eq!(node.state(&remote), "TASK_STATE_CANCELED");
    eventually("its node has cancelled it too", || {
        let listed = crate::operating::cli::run(&back_home, ["--json", "tasks", "list", "--state", "canceled"]).json();
        (listed["total"] == 1).then_some(())
    });
}

#[test]
fn a_peer_that_waits_for_an_answer_is_told_that_none_will_come() {
    let back_home = Home::new();
    let backend = Setup::in_home(&back_home).config("[agents.far]\nrun = \"conformance\"\n").start();
    let far = format!("\n[agents.far]\nurl = \"{}\"\nverify = \"off\"\n[limits]\ncancel_grace_ms = 500\n", backend.url());
    let node = DelegatingNode::new(&format!("{AGENTS}{far}"));
    let ask = || {
        let asked = node.send_as("user", &["--agent", "far", "ask which colour?"]);
        assert_eq!((asked.code, asked.stdout.as_str()), (Some(0), "which colour?\n"), "{}", asked.stderr);
        asked.stderr.split_whitespace().nth(1).unwrap().to_owned()
    };
    let (first, second) = (ask(), ask());
    let cancelled = node.run(&["tasks", "cancel", &first]);
    assert_eq!((cancelled.code, cancelled.stdout), (Some(0), format!("{first} canceled\n")), "{}", cancelled.stderr);
    let listed = crate::operating::cli::run(&back_home, ["--json", "tasks", "list", "--state", "canceled"]).json();
    assert_eq!(listed["total"], 1, "{listed}");

    backend.kill();
    let cancelled = node.run(&["tasks", "cancel", &second]);
    assert_eq!(cancelled.code, Some(1), "{}", cancelled.stdout);
    assert!(cancelled.stdout.contains("unreachable") && cancelled.stdout.contains("canceled"), "{}", cancelled.stdout);
}

#[test]
fn what_is_no_tree_is_refused_with_a_reason() {
    let node = DelegatingNode::new(AGENTS);
    for arguments in
        [&["tree", "nothing"][..], &["tree", &"a".repeat(32)], &["tree", "nothing", "--cancel"], &["explain", "nothing"]]
    {
        let ran = node.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(arguments[1]), "{arguments:?}: {}", ran.stderr);
    }
    let nothing = node.run(&["budgets"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("[budget]"), "{}", nothing.stderr);
}
