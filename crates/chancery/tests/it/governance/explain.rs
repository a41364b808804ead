//! `chancery explain`: which rules were asked about a call, in which order, and on which facts they went.

use serde_json::json;

use crate::support::delegating_node::{AGENTS, DelegatingNode, decision_in};

const RULES: [&str; 6] = ["lineage", "freeze", "budget", "recursion", "selector", "policy"];

#[test]
fn a_call_that_was_let_in_is_explained_by_every_rule_in_order() {
    let node = DelegatingNode::new(AGENTS);
    let [root, middle, _] = node.three_levels();
    let shown = node.text(&["explain", &middle]);
    for fact in [&root[..], "default/planner-bot", "1 (inferred)", "0.02 USD", "estimate: config"] {
        assert!(shown.contains(fact), "{fact} is not in:\n{shown}");
    }
    let rules = shown.lines().filter(|line| line.contains("passed"));
    let rules: Vec<&str> = rules.map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(rules, RULES, "{shown}");

    let explained = node.json(&["explain", &middle]);
    assert_eq!(explained["lineage"]["parent"], root.as_str());
    let budget = &explained["verdicts"][2];
    assert!(budget["facts"].as_array().unwrap().contains(&json!(["estimate_usd", "0.02"])), "{budget}");
    let scopes = budget["facts"].as_array().unwrap().iter().find(|fact| fact[0] == "scopes").unwrap();
    assert!(scopes[1].as_str().unwrap().contains(&format!("tree:{root}")), "{budget}");
}

#[test]
fn a_call_that_was_refused_is_explained_up_to_the_rule_that_refused_it() {
    let node = DelegatingNode::new(AGENTS);
    node.begin("user", "planner");
    node.begin("planner-bot", "research");
    // research → planner, which waits for research.
    let refused = node.send_as("research-bot", &["--agent", "planner", "hello"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
    let decision = decision_in(&refused.stderr);
    for named in [decision.clone(), format!("decision={decision}")] {
        let shown = node.text(&["explain", &named]);
        let last = shown.lines().find(|line| line.contains("REFUSED")).unwrap_or_else(|| panic!("{shown}"));
        assert!(last.starts_with("4  recursion") && last.contains("planner → research → planner"), "{shown}");
        assert!(shown.contains("docs/errors/RECURSION_REVISIT.md"), "{shown}");
        assert!(!shown.contains("selector") && !shown.contains("policy"), "nothing was asked after it:\n{shown}");
    }
    let explained = node.json(&["explain", &decision])["decision"].take();
    assert_eq!((&explained["refused"], &explained["caller"]), (&json!("RECURSION_REVISIT"), &json!("research-bot")));
    let listed = node.text(&["explain"]);
    assert!(listed.contains(&decision) && listed.contains("RECURSION_REVISIT"), "{listed}");
}

#[test]
fn a_message_that_a_task_goes_on_with_is_explained_with_the_task() {
    let node = DelegatingNode::new(AGENTS);
    let asked = node.send_as("user", &["--agent", "writer", "ask what?"]);
    let task = asked.stderr.split_whitespace().nth(1).unwrap().to_owned();
    let done = node.send_as("user", &["--agent", "writer", "--task", &task, "complete this"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "this\n"), "{}", done.stderr);
    let explained = node.json(&["explain", &task]);
    assert_eq!(explained["later"].as_array().map(Vec::len), Some(1), "{explained}");
    assert_eq!(explained["spend"]["settled"]["usd"], "0.06", "two turns: {explained}");
    assert!(node.text(&["explain", &task]).contains("admitted"));
}

#[test]
fn every_card_declares_that_cost_can_be_asked_for_and_send_says_what_a_task_cost() {
    let node = DelegatingNode::new(AGENTS);
    for version in ["1.0", "0.3"] {
        let url = format!("{}/agents/writer", node.node.url());
        let card = node.json(&["card", "--a2a-version", version, &url]);
        let extensions = card["card"]["capabilities"]["extensions"].as_array().unwrap();
        let ours = extensions.iter().find(|one| one["uri"] == "https://chancery.dev/a2a/governance/v1");
        assert!(ours.is_some_and(|ours| ours["required"] != true && ours["params"].is_null()), "{version}: {card}");
    }
    for how in [&["complete it"][..], &["--stream", "complete it"], &["message it"], &["--json", "complete it"]] {
        let ran = node.send_as("user", &[&["--agent", "writer"], how].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let bill = ran.stderr.lines().last().unwrap();
        assert!(bill.starts_with("cost 0.03 USD (configured), ") && bill.contains("0.47 USD left"), "{how:?}: {bill}");
        assert!(bill.ends_with("depth 0 (root)"), "{how:?}: {bill}");
    }
}
