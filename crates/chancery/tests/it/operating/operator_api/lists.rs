//! Lists of the admin API: filters of tasks, and pages that follow each other.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Operator;
use crate::operating::cli::{Ran, run};
use crate::support::server::{Home, Server, Setup};

/// A node with two agents, and callers of one name in two tenants.
fn node() -> (Home, Server, [String; 3]) {
    let home = Home::new();
    let key = |arguments: &[&str]| {
        let ran = run(&home, [&["callers", "add"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout.trim_end().to_owned()
    };
    let keys = [key(&["ann", "--tenant", "acme"]), key(&["bob", "--tenant", "acme"]), key(&["cid"])];
    let server = Setup::in_home(&home).args(["--agent", "conformance", "--agent", "echo"]).start();
    (home, server, keys)
}

fn send(home: &Home, key: &str, arguments: &[&str]) -> Ran {
    Ran::of(home.command().env("CHANCERY_KEY", key).arg("send").args(arguments))
}

#[tokio::test]
async fn tasks_are_found_by_each_filter_and_page_by_page() {
    let (home, server, [ann, bob, cid]) = node();
    for (key, text) in [(&ann, "complete one"), (&ann, "fail two"), (&bob, "complete three"), (&cid, "complete four")] {
        send(&home, key, &["--agent", "conformance", text]);
    }
    send(&home, &cid, &["--agent", "conformance", "complete five"]);
    let operator = Operator::of(&server, &home);
    let total = async |query: &str| {
        let answer = operator.good(&format!("tasks?total=true{query}")).await;
        assert_eq!(answer["total"], answer["tasks"].as_array().unwrap().len(), "{query}: {answer}");
        answer["total"].as_u64().unwrap()
    };
    for (query, expected) in [
        ("", 5),
        ("&caller=ann", 2),
        ("&caller=acme/ann", 2),
        ("&caller=default/ann", 0),
        ("&tenant=acme", 3),
        ("&tenant=acme&caller=bob", 1),
        ("&tenant=default&state=completed", 2),
        ("&agent=conformance", 5),
        ("&agent=echo", 0),
        ("&state=failed", 1),
        ("&state=TASK_STATE_FAILED&caller=ann", 1),
        ("&since=2001-01-01T00:00:00Z", 5),
        ("&since=2999-01-01T00:00:00Z", 0),
    ] {
        assert_eq!(total(query).await, expected, "{query}");
    }
    let all = operator.good("tasks").await;
    assert!(all.get("total").is_none(), "nobody asked for it: {all}");
    let context = all["tasks"][0]["context_id"].as_str().unwrap();
    assert_eq!(total(&format!("&context={context}")).await, 1);

    let ids = |tasks: &[Value]| tasks.iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let paged = operator.all_pages("tasks?tenant=acme&limit=1", "tasks").await;
    assert_eq!(ids(&paged), ids(operator.good("tasks?tenant=acme").await["tasks"].as_array().unwrap()));

    // The command has the same filters.
    let listed = run(&home, ["--json", "tasks", "ls", "--caller", "acme/ann", "--state", "failed", "--since", "1h"]).json();
    assert_eq!((listed["total"].as_u64(), &listed["tasks"][0]["caller"]["name"]), (Some(1), &Value::from("ann")), "{listed}");
    assert_eq!(run(&home, ["--json", "tasks", "ls", "--agent", "echo", "--tenant", "acme"]).json()["total"], 0);
}

#[tokio::test]
async fn the_pages_of_every_list_add_up_to_the_list() {
    let (home, server, [ann, ..]) = node();
    let operator = Operator::of(&server, &home);
    for scope in [["caller", "ann"], ["tenant", "acme"], ["agent", "echo"]] {
        assert_eq!(run(&home, ["freeze", scope[0], scope[1]]).code, Some(0));
    }
    for text in ["one", "two", "three"] {
        assert_eq!(send(&home, &ann, &[text]).code, Some(1), "it is frozen");
    }
    for (path, member) in
        [("callers", "callers"), ("agents", "agents"), ("keys", "keys"), ("freezes", "freezes"), ("decisions", "decisions")]
    {
        let whole = operator.good(path).await;
        let entries = whole[member].as_array().unwrap();
        assert!(entries.len() > 1 && whole["next"].is_null(), "{path}: {whole}");
        let paged = operator.all_pages(&format!("{path}?limit=1"), member).await;
        assert_eq!(&paged, entries, "{path}");
        let distinct: BTreeSet<String> = paged.iter().map(Value::to_string).collect();
        assert_eq!(distinct.len(), entries.len(), "{path}");
    }
    let log = operator.good("tasks?total=true").await;
    assert_eq!(log["total"], 0, "{log}");
}

#[tokio::test]
async fn a_log_is_read_page_by_page() {
    let (home, server, [ann, ..]) = node();
    let operator = Operator::of(&server, &home);
    let sent = send(&home, &ann, &["--agent", "conformance", "stream 4 1"]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let id = operator.good("tasks").await["tasks"][0]["id"].as_str().unwrap().to_owned();
    let whole = operator.good(&format!("tasks/{id}/events")).await;
    let paged = operator.all_pages(&format!("tasks/{id}/events?limit=2"), "events").await;
    assert!(paged.len() > 4 && whole["next"].is_null(), "{whole}");
    assert_eq!(&paged, whole["events"].as_array().unwrap());
}
