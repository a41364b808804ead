//! Names of scopes: one that means nobody, or several, freezes nobody and says so; one that means somebody says who it is.

use serde_json::{Value, json};

use crate::operating::cli::{Ran, run};
use crate::support::delegating_node::{AGENTS, DelegatingNode};
use crate::support::server::{Home, Server, Setup};

/// A node whose caller `planner` is of the tenant `acme`, and whose `writer`s would be hard to tell apart on an open node.
fn acme() -> (Home, Server, String) {
    let home = Home::new();
    let added = run(&home, ["callers", "add", "planner", "--tenant", "acme"]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let config = "[agents.echo]\nrun = 'echo'\n[budget.caller.planner]\nmax_tasks = 9\nwindow = '1h'\n\
                  [budget.agent.echo]\nmax_tasks = 99\nwindow = '1h'\n";
    let node = Setup::in_home(&home).config(config).start();
    (home, node, added.stdout.trim_end().to_owned())
}

fn send(home: &Home, key: &str) -> Ran {
    Ran::of(home.command().args(["send", "hello"]).env("CHANCERY_KEY", key))
}

#[track_caller]
fn assert_ends(home: &Home, arguments: &[&str], code: i32, words: &[&str]) -> Ran {
    let ran = run(home, arguments);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(code), "{arguments:?}: {said}");
    assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {words:?} {said}");
    ran
}

#[test]
fn a_caller_is_frozen_by_its_name_alone_and_the_answer_says_of_which_tenant_it_is() {
    let (home, _node, key) = acme();
    assert_eq!(send(&home, &key).code, Some(0));
    assert_ends(&home, &["freeze", "caller", "planner"], 0, &["caller:acme/planner frozen"]);
    let kept_out = send(&home, &key);
    assert!(kept_out.code == Some(1) && kept_out.stderr.contains("FROZEN"), "{}", kept_out.stderr);
    let thawed = assert_ends(&home, &["thaw", "caller", "planner", "--json"], 0, &[]).json();
    assert_eq!(thawed, json!({ "scope": "caller", "name": "acme/planner", "thawed": true }));
    assert_eq!(send(&home, &key).code, Some(0));
}

#[test]
fn a_name_that_nobody_has_changes_nothing_and_offers_the_one_that_was_meant() {
    let (home, _node, key) = acme();
    for (arguments, words) in [
        (&["freeze", "caller", "planer"][..], &["no caller planer", "did you mean `acme/planner`?"][..]),
        (&["freeze", "caller", "default/planner"], &["no caller default/planner", "acme/planner"]),
        (&["freeze", "caller", "somebody-else"], &["no caller somebody-else", "acme/planner"]),
        (&["freeze", "tenant", "acmee"], &["no tenant acmee", "`acme`"]),
        (&["freeze", "agent", "ecko"], &["no agent ecko", "`echo`"]),
        (&["thaw", "caller", "planer"], &["no caller planer"]),
        (&["thaw", "caller", "planner"], &["caller:acme/planner is not frozen"]),
        (&["budgets", "caller", "planer"], &["no caller planer", "`acme/planner`"]),
        (&["budgets", "agent", "ecko"], &["no agent ecko"]),
        (&["budgets", "skill", "deep"], &["no skill deep"]),
        (&["tree", "nothing"], &["nothing"]),
    ] {
        let ran = assert_ends(&home, arguments, 1, words);
        assert_eq!(ran.stdout, "", "{arguments:?}");
    }
    assert_eq!(run(&home, ["freeze", "list"]).stdout, "");
    assert_eq!(send(&home, &key).code, Some(0));

    for (arguments, words) in [
        (&["freeze", "caller", "whoever", "--unknown-ok"][..], &["caller:default/whoever frozen", "does not know this name"][..]),
        (&["freeze", "tenant", "lab", "--unknown-ok"], &["tenant:lab frozen"]),
        (&["thaw", "caller", "whoever"], &["caller:default/whoever thawed"]),
        (&["thaw", "caller", "whoever", "--unknown-ok"], &["is not frozen"]),
        (&["budgets", "caller", "whoever", "--unknown-ok"], &["nothing is counted for caller:default/whoever"]),
        (&["tree", "nothing", "--unknown-ok"], &["there is no tree with the trace or the task nothing"]),
        (&["tree", "nothing", "--cancel", "--unknown-ok"], &["there is no tree with the trace or the task nothing"]),
    ] {
        assert_ends(&home, arguments, 0, words);
    }
}

#[tokio::test]
async fn a_name_that_two_tenants_have_is_not_guessed() {
    let home = Home::new();
    let server = Setup::in_home(&home).start();
    for tenant in ["acme", "lab"] {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
        let sent = server.call("SendMessage", json!({ "tenant": tenant, "message": message })).await;
        assert!(sent["result"]["task"]["id"].is_string(), "{sent}");
    }
    let candidates = ["acme/anonymous", "default/anonymous", "lab/anonymous"];
    assert_ends(&home, &["freeze", "caller", "anonymous"], 1, &candidates);
    assert_eq!(run(&home, ["freeze", "list"]).stdout, "");
    // With the flag it is the one of `default`, which the node knows: it does not say otherwise.
    let frozen = assert_ends(&home, &["freeze", "caller", "anonymous", "--unknown-ok", "--json"], 0, &[]).json();
    assert_eq!((&frozen["name"], &frozen["known"]), (&json!("default/anonymous"), &json!(true)), "{frozen}");
    assert_ends(&home, &["thaw", "caller", "anonymous"], 0, &["caller:default/anonymous thawed"]);
    for one in ["acme/anonymous", "lab/anonymous"] {
        assert_ends(&home, &["freeze", "caller", one], 0, &[one]);
    }
    assert_ends(&home, &["thaw", "caller", "anonymous"], 1, &["acme/anonymous", "lab/anonymous"]);
    assert_ends(&home, &["thaw", "caller", "acme/anonymous"], 0, &["caller:acme/anonymous thawed"]);
    assert_ends(&home, &["thaw", "caller", "anonymous"], 0, &["caller:lab/anonymous thawed"]);

    let token = std::fs::read_to_string(home.data().join("admin.token")).expect("a token");
    let url = format!("{}/admin/v1/freezes", server.url());
    let ask = async |name: &str| {
        let body = json!({ "scope": "caller", "name": name });
        let answer = reqwest::Client::new().post(&url).bearer_auth(token.trim()).json(&body).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json::<Value>().await.expect("JSON"))
    };
    assert_eq!(ask("anonymous").await.0, 409);
    assert_eq!(ask("nobody").await.0, 404);
    let (status, frozen) = ask("lab/anonymous").await;
    assert_eq!((status, &frozen["name"], &frozen["known"]), (200, &json!("lab/anonymous"), &json!(true)));
}

/// A caller that only its calls name, after more tasks of others than the node goes through for suggestions.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_known_by_any_of_its_tasks_however_many_are_newer() {
    let home = Home::new();
    let rates = "[limits]\ncalls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\n";
    let server = Setup::in_home(&home).config(&format!("[agents.echo]\nrun = 'echo'\n{rates}")).start();
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
    let sent = server.call("SendMessage", json!({ "tenant": "lab", "message": message })).await;
    assert!(sent["result"]["task"]["id"].is_string(), "{sent}");
    for _ in 0..21 {
        let calls = (0..50).map(|_| server.call("SendMessage", json!({ "tenant": "acme", "message": message })));
        for sent in futures::future::join_all(calls).await {
            assert!(sent["result"]["task"]["id"].is_string(), "{sent}");
        }
    }
    // Its tenant is found, and it is not taken for the caller of another.
    assert_ends(&home, &["freeze", "caller", "lab/anonymous"], 0, &["caller:lab/anonymous frozen"]);
    assert_ends(&home, &["freeze", "tenant", "lab"], 0, &["tenant:lab frozen"]);
    let candidates = ["acme/anonymous", "default/anonymous", "lab/anonymous"];
    assert_ends(&home, &["freeze", "caller", "anonymous"], 1, &candidates);
}

#[test]
fn budgets_are_shown_of_one_kind_or_of_one_scope_by_its_name() {
    let (home, _node, key) = acme();
    assert_eq!(send(&home, &key).code, Some(0));
    let shown = |arguments: &[&str]| {
        let answer = assert_ends(&home, &[&["budgets"], arguments, &["--json"]].concat(), 0, &[]).json();
        let scopes = answer["budgets"].as_array().expect("a list").iter().map(|budget| budget["scope"].clone());
        (answer["scope"].clone(), scopes.collect::<Vec<Value>>())
    };
    let (planner, echo) = (json!("caller:acme/planner"), json!("agent:echo"));
    assert_eq!(shown(&["caller", "planner"]), (planner.clone(), vec![planner.clone()]));
    assert_eq!(shown(&["agent"]), (json!("agent"), vec![echo.clone()]));
    let (_, all) = shown(&[]);
    assert!(all.contains(&planner) && all.contains(&echo), "{all:?}");
    assert_eq!(run(&home, ["budgets", "caller", "acme/planner"]).code, Some(0));
    assert_eq!(run(&home, ["budgets", "world"]).code, Some(2));
}

#[test]
fn an_id_that_was_cut_short_is_offered_whole() {
    let node = DelegatingNode::new(AGENTS);
    let task = node.begin("user", "writer");
    let ran = node.run(&["tree", &task[..task.len() - 4]]);
    assert!(ran.code == Some(1) && ran.stderr.contains(&format!("did you mean `{task}`?")), "{}", ran.stderr);
    let ran = node.run(&["freeze", "tree", &task[..task.len() - 4]]);
    assert!(ran.code == Some(1) && ran.stderr.contains(&task), "{}", ran.stderr);
}
