//! `chancery freeze` and `chancery thaw`: nothing new gets in from the moment the command returns, until it is told otherwise.

use serde_json::json;

use crate::operating::cli::Ran;
use crate::support::delegating_node::{AGENTS, DelegatingNode, decision_in};
use crate::support::patience::eventually;

fn echo(node: &DelegatingNode, caller: &str, agent: &str) -> Ran {
    node.send_as(caller, &["--agent", agent, "hello"])
}

#[track_caller]
fn is_let_in(ran: &Ran) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{}", ran.stderr);
}

#[track_caller]
fn is_kept_out(ran: &Ran, words: &[&str]) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(words.iter().chain(&["FROZEN"]).all(|word| ran.stderr.contains(word)), "{words:?}: {}", ran.stderr);
}

#[test]
fn each_scope_keeps_out_its_own_and_lets_others_in_until_it_is_thawed() {
    let node = DelegatingNode::new(AGENTS);
    let is_in = ["user", "planner-bot"];
    // What is frozen, how it is named, and whether user and planner-bot get to the writer.
    for (what, named, lets_in) in [
        (&["caller", "user"][..], "caller:default/user", [false, true]),
        (&["caller", "default/planner-bot"], "caller:default/planner-bot", [true, false]),
        (&["agent", "writer"], "agent:writer", [false, false]),
        (&["agent", "research"], "agent:research", [true, true]),
        (&["tenant", "default"], "tenant:default", [false, false]),
        (&["everything"], "everything", [false, false]),
    ] {
        let frozen = node.text(&[&["freeze"], what, &["--why", "an exercise"]].concat());
        assert_eq!(frozen, format!("{named} frozen\n"));
        for (caller, lets_in) in is_in.into_iter().zip(lets_in) {
            match lets_in {
                true => is_let_in(&echo(&node, caller, "writer")),
                false => is_kept_out(&echo(&node, caller, "writer"), &[named, "an exercise", "operator"]),
            }
        }
        let listed = node.text(&["freeze", "list"]);
        assert!(listed.lines().count() == 2 && listed.contains(named) && listed.contains("an exercise"), "{listed}");
        assert_eq!(node.text(&[&["thaw"], what].concat()), format!("{named} thawed\n"));
        is_in.into_iter().for_each(|caller| is_let_in(&echo(&node, caller, "writer")));
        assert_eq!(node.text(&["freeze", "list"]), "");
    }
}

#[test]
fn a_frozen_tree_takes_no_more_calls_and_its_tasks_go_on() {
    let node = DelegatingNode::new(AGENTS);
    let [root, middle, _] = node.three_levels();
    // Named by any of its tasks.
    assert_eq!(node.text(&["freeze", "tree", &middle]), format!("tree:{root} frozen\n"));
    is_kept_out(&echo(&node, "research-bot", "writer"), &[&root]);
    is_let_in(&echo(&node, "user", "writer"));
    assert_eq!(node.state(&middle), "TASK_STATE_WORKING");
    node.text(&["thaw", "tree", &root]);
    is_let_in(&echo(&node, "research-bot", "writer"));
}

#[test]
fn a_freeze_holds_over_a_restart() {
    let node = DelegatingNode::new(AGENTS);
    is_let_in(&echo(&node, "user", "writer"));
    node.text(&["freeze", "agent", "writer", "--why", "leaks"]);
    let before = node.json(&["freeze", "list"]);
    assert_eq!(before["freezes"][0]["by"], "operator");
    let node = node.restarted(AGENTS);
    assert_eq!(node.json(&["freeze", "list"]), before);
    is_kept_out(&echo(&node, "user", "writer"), &["leaks"]);
    is_let_in(&echo(&node, "user", "research"));
    node.text(&["thaw", "agent", "writer"]);
    let node = node.restarted(AGENTS);
    is_let_in(&echo(&node, "user", "writer"));
}

#[test]
fn what_cannot_be_frozen_or_thawed_is_refused_with_a_reason() {
    let node = DelegatingNode::new(AGENTS);
    for (arguments, code, word) in [
        (&["freeze", "agent", "nobody"][..], 1, "planner"),
        (&["freeze", "tree", "nothing"], 1, "nothing"),
        (&["freeze", "caller", "/x"], 1, "TENANT/NAME"),
        (&["freeze", "caller"], 2, "NAME"),
        (&["freeze", "world"], 2, "world"),
        (&["freeze", "everything", "--why", &"x".repeat(1025)], 1, "1024"),
        (&["thaw", "agent", "writer"], 1, "agent:writer is not frozen"),
        (&["thaw", "everything"], 1, "is not frozen"),
        (&["thaw", "list"], 2, "list"),
    ] {
        let ran = node.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(word), "{arguments:?}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn the_admin_api_says_what_is_wrong_with_what_it_is_asked() {
    let node = DelegatingNode::new(AGENTS);
    let token = std::fs::read_to_string(node.home.data().join("admin.token")).unwrap();
    let client = reqwest::Client::new();
    let at = |path: &str| format!("{}/admin/v1/{path}", node.node.url());
    let ask = async |request: reqwest::RequestBuilder| {
        let answer = request.bearer_auth(token.trim()).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<serde_json::Value>().await.unwrap()["error"]["message"].clone())
    };
    for (body, word) in [
        (json!({ "scope": "world" }), "everything"),
        (json!({ "scope": "everything", "name": "x" }), "leave the name out"),
        (json!({ "scope": "agent" }), "the name of the agent"),
        (json!({ "scope": "agent", "name": "" }), "the name of the agent"),
        (json!({ "scope": "agent", "name": "writer", "until": "noon" }), "until"),
        (json!([1]), "JSON"),
    ] {
        let (status, message) = ask(client.post(at("freezes")).json(&body)).await;
        assert!((400..=422).contains(&status), "{body}: {status}");
        assert!(message.as_str().is_some_and(|message| message.contains(word)), "{body}: {message}");
    }
    for path in ["decisions?limit=0", "decisions?limit=1001", "decisions?limit=many", "decisions?most=3"] {
        let (status, message) = ask(client.get(at(path))).await;
        assert!(status == 400 && message.is_string(), "{path}: {message}");
    }
    assert_eq!(ask(client.delete(at("freezes"))).await.0, 400);
    let unasked = client.get(at("freezes")).send().await.unwrap();
    assert_eq!(unasked.status(), 401);
    assert_eq!(node.json(&["freeze", "list"])["freezes"], json!([]));
}

#[test]
fn refusals_do_not_outgrow_what_is_to_be_kept_of_them() {
    let node = DelegatingNode::new(&format!("{AGENTS}\n[retention]\nmax_decisions = 8\nsweep_every_seconds = 86400\n"));
    node.text(&["freeze", "everything"]);
    let mut last = String::new();
    for _ in 0..20 {
        last = decision_in(&echo(&node, "user", "writer").stderr);
    }
    let kept = || node.json(&["explain", "--limit", "1000"])["decisions"].as_array().unwrap().len();
    eventually("a sweep", || (kept() <= 9).then_some(()));
    assert_eq!(node.json(&["explain", &last])["decision"]["refused"], "FROZEN");
}
