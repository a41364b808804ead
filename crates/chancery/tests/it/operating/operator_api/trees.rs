//! Trees are answered in pages, and `chancery tree` shows them whole.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::Operator;
use crate::operating::cli::run;
use crate::support::delegating_node::{AGENTS, DelegatingNode};
use crate::support::server::{Home, Setup};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
/// More than two pages of the usual size.
const CALLS: usize = 250;
/// No page of the usual size has more than this.
const MOST_BYTES: usize = 200_000;

fn tasks_of(answer: &Value) -> Vec<String> {
    let trees = answer["trees"].as_array().expect("trees").iter();
    let tasks = trees.flat_map(|tree| tree["tasks"].as_array().expect("tasks"));
    tasks.map(|task| task["task"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn many_tasks_of_one_trace_are_answered_in_bounded_pages() {
    let home = Home::new();
    let server = Setup::in_home(&home).start();
    let operator = Operator::of(&server, &home);
    let call = |number: usize| {
        let message = json!({ "messageId": format!("m{number}"), "role": "ROLE_USER", "parts": [{ "text": "hi" }] });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
        let request = operator.client.post(server.url()).header("A2A-Version", "1.0").json(&body);
        request.header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01")).send()
    };
    let answers: Vec<_> = futures::stream::iter((0..CALLS).map(call)).buffer_unordered(8).collect().await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer.status().is_success())));

    let (mut seen, mut path, mut pages) = (Vec::new(), format!("trees/{TRACE}"), 0);
    loop {
        let page = operator.good(&path).await;
        assert!(page.to_string().len() < MOST_BYTES, "{} bytes", page.to_string().len());
        assert!(tasks_of(&page).len() <= 100);
        seen.extend(tasks_of(&page));
        pages += 1;
        let Some(next) = page["next"].as_str() else { break };
        path = format!("trees/{TRACE}?after={next}");
    }
    let distinct: BTreeSet<&String> = seen.iter().collect();
    assert_eq!((seen.len(), distinct.len(), pages), (CALLS, CALLS, 3));
    let whole = run(&home, ["--json", "tree", TRACE]).json();
    assert_eq!(tasks_of(&whole), seen);
    assert_eq!(whole["next"], Value::Null);
}

#[tokio::test]
async fn a_page_of_a_tree_counts_what_is_on_other_pages() {
    let delegating_node = DelegatingNode::new(AGENTS);
    let [root, middle, leaf] = delegating_node.three_levels();
    delegating_node.json(&["tree", &root, "--cancel"]);
    let operator = Operator::of(&delegating_node.node, &delegating_node.home);
    let whole = operator.good(&format!("trees/{leaf}")).await;
    let expected = whole["trees"][0]["tasks"].as_array().unwrap();
    assert_eq!((expected.len(), &expected[0]["subtree_cost"]["tasks"]), (3, &json!(3)), "{whole}");
    let mut after = String::new();
    for (number, id) in [&root, &middle, &leaf].into_iter().enumerate() {
        let page = operator.good(&format!("trees/{leaf}?limit=1{after}")).await;
        let tree = &page["trees"][0];
        assert_eq!((&tree["tasks"], &tree["total"]), (&json!([expected[number]]), &json!(3)), "{page}");
        assert_eq!(page["next"].as_str(), (number < 2).then_some(id.as_str()), "{page}");
        after = format!("&after={id}");
    }
    let (status, refused) = operator.get(&format!("trees/{leaf}?after=nobody")).await;
    assert!(status == 400 && refused["error"]["message"].as_str().unwrap().contains("after"), "{refused}");
}
