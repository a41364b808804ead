//! `chancery send`, `card` and `discover` call agents of every version over every binding, as the card says or as they are told.

use serde_json::{Value, json};

use super::scripted::{Asked, Script, Scripted, card};
use crate::operating::cli::{Ran, run};
use crate::support::server::{Home, Setup};
use crate::support::wire_client::swp::address;

/// What a node speaks over HTTP.
const SPOKEN: [(&str, &str); 7] = [
    ("1.0", "JSONRPC"),
    ("1.0", "HTTP+JSON"),
    ("1.0", "GRPC"),
    ("0.3", "JSONRPC"),
    ("0.3", "HTTP+JSON"),
    ("0.3", "GRPC"),
    ("original", "JSONRPC"),
];

#[track_caller]
fn said(ran: &Ran, text: &str, what: &str) {
    assert_eq!((ran.code, ran.stdout.trim_end()), (Some(0), text), "{what}: {}", ran.stderr);
}

/// An agent that answers calls with a task of 1.0, and whose card lists these: URL, binding and version.
async fn listing(listed: &[(&str, &str, &str)]) -> Scripted {
    Scripted::start(|own| {
        let one = |(url, binding, version): &(&str, &str, &str)| {
            json!({ "url": url.replace("{URL}", own), "protocolBinding": binding, "protocolVersion": version })
        };
        let mut shown = card(own, json!({}));
        shown["supportedInterfaces"] = listed.iter().map(one).collect();
        let task = json!({ "id": "t", "status": { "state": "completed" },
            "artifacts": [{ "index": 0, "parts": [{ "type": "text", "text": "alpha" }] }] });
        move |asked: &Asked| match asked.kind().as_str() {
            _ if asked.path.contains(".well-known") => Script::json(&shown),
            "tasks/send" => Script::result(asked, &task),
            _ => Script::completed(asked),
        }
    })
    .await
}

#[test]
fn our_own_doors_are_spoken_to_in_every_version_and_over_every_binding() {
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--agent", "conformance"]).start();
    for (version, binding) in SPOKEN {
        let send = |rest: &[&str]| {
            let flags = ["send", "--url", server.url(), "--a2a-version", version, "--binding", binding];
            run(&home, flags.iter().chain(rest))
        };
        let what = format!("{version} over {binding}");
        said(&send(&["complete good morning"]), "good morning", &what);
        said(&send(&["--stream", "stream 3"]), "chunk-1 chunk-2 chunk-3", &what);
        let failed = send(&["fail no luck"]);
        assert_eq!(failed.code, Some(1), "{what}: {}", failed.stderr);
        assert!(failed.stderr.contains("no luck"), "{what}: {}", failed.stderr);
        let json: Value = serde_json::from_str(&send(&["--json", "complete x"]).stdout).expect("one object");
        assert_eq!(json["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{what}: the JSON of 1.0: {json}");
        let asked = send(&["--json", "ask which colour?"]);
        let asked: Value = serde_json::from_str(&asked.stdout).expect("one object");
        let task = asked["task"]["id"].as_str().expect("a task");
        said(&send(&["--task", task, "complete blue"]), "blue", &what);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_over_swp_is_sent_to_and_its_card_is_shown() {
    let config = "[agents.conformance]\nrun = 'conformance'\n[agents.echo]\nrun = 'echo'\n[swp]\nlisten = '127.0.0.1:0'\n";
    let home = Home::new();
    let node = Setup::in_home(&home).config(config).start();
    let (authority, _) = address(node.url()).await;
    let echo = format!("swp://{authority}/echo");
    said(&run(&home, ["send", &echo, "hello"]), "hello", "by its SWP address");
    said(&run(&home, ["send", "--binding", "SWP", "--url", node.url(), "complete by the card"]), "by the card", "chosen");
    let shown = run(&home, ["card", "--json", &echo]).json();
    assert_eq!(shown["card"]["name"], "Echo", "{shown}");
    let unwaited = run(&home, ["send", "--no-wait", &echo, "hello"]);
    assert_eq!(unwaited.code, Some(2), "{}", unwaited.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_chooses_and_flags_overrule_it() {
    let agent =
        listing(&[("{URL}/old", "JSONRPC", "0.3.0"), ("{URL}/new", "JSONRPC", "1.0"), ("{URL}/rest", "HTTP+JSON", "1.0")]).await;
    let (home, url) = (Home::new(), agent.url());
    let sent = |flags: &[&str]| {
        let ran = run(&home, ["send"].iter().chain(flags).chain(&[url.as_str(), "hi"]));
        assert_eq!(ran.code, Some(0), "{flags:?}: {}", ran.stderr);
        let last = agent.calls().pop().expect("a call");
        (last.kind(), last.path)
    };
    let is = |kind: &str, path: &str| (kind.to_owned(), path.to_owned());
    assert_eq!(sent(&[]), is("message/send", "/old"), "the first that the card lists");
    assert_eq!(
        sent(&["--a2a-version", "1.0"]),
        is("SendMessage", "/new"),
        "the first address that lists the version that was asked for"
    );
    assert_eq!(sent(&["--a2a-version", "original"]), is("tasks/send", "/old"));
    assert_eq!(sent(&["--binding", "http+json", "--a2a-version", "1.0"]).1, "/rest/message:send");
    let typed = run(&home, ["send", &format!("{url}/new"), "hi"]);
    assert_eq!(typed.code, Some(0), "{}", typed.stderr);
    let last = agent.calls().pop().expect("a call");
    assert_eq!((last.kind().as_str(), last.path.as_str()), ("SendMessage", "/new"), "the address that was typed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_does_not_know_its_own_version_is_asked_in_the_next() {
    let agent = Scripted::agent(|asked: &Asked| match asked.kind().as_str() {
        "message/send" => Script::completed(asked),
        _ => Script::error(asked, -32601, "Method not found"),
    })
    .await;
    let ran = run(&Home::new(), ["send", &agent.url(), "hi"]);
    said(&ran, "alpha", "0.3 after 1.0");
    assert_eq!(agent.calls().len(), 2);
    let forced = run(&Home::new(), ["send", "--a2a-version", "1.0", &agent.url(), "hi"]);
    assert_eq!(forced.code, Some(1), "what was forced is not replaced: {}", forced.stderr);
    assert!(forced.stderr.contains("Method not found"), "{}", forced.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_of_the_original_protocol_is_found_where_that_keeps_it() {
    let agent = Scripted::start(|own| {
        let shown = json!({ "name": "Old", "description": "Of the first days.", "version": "1", "url": own,
            "capabilities": {}, "defaultInputModes": ["text"], "defaultOutputModes": ["text"],
            "skills": [{ "id": "obey", "name": "Obey", "description": "Obeys.", "tags": ["old"] }] });
        let task = json!({ "id": "t", "status": { "state": "completed" },
            "artifacts": [{ "index": 0, "parts": [{ "type": "text", "text": "alpha" }] }] });
        move |asked: &Asked| match (asked.path.as_str(), asked.kind().as_str()) {
            ("/.well-known/agent.json", _) => Script::json(&shown),
            (_, "tasks/send") => Script::result(asked, &task),
            (_, "tasks/sendSubscribe") => Script::error(asked, -32601, "Method not found"),
            _ => Script::page(404, "text/plain", "no"),
        }
    })
    .await;
    let (home, url) = (Home::new(), agent.url());
    let found = run(&home, ["discover", "--json", &url]);
    let found: Value = serde_json::from_str(&found.stdout).unwrap_or_else(|_| panic!("{}", found.stderr));
    assert_eq!(found["card"]["name"], "Old");
    assert_eq!(found["url"], format!("{url}/.well-known/agent.json"));
    said(&run(&home, ["send", "--budget", "0.25,tokens=7", &url, "hi"]), "alpha", "tasks/send");
    let params = agent.calls().pop().expect("a call").params();
    assert_eq!((&params["skill"], params["id"].is_string()), (&json!("obey"), true), "{params}");
    assert_eq!(params["policy"], json!({ "max_cost_usd": 0.25, "max_tokens": 7 }), "{params}");
    said(&run(&home, ["send", "--idempotency-key", "k-1", &url, "hi"]), "alpha", "a name for the task");
    assert_eq!(agent.calls().pop().expect("a call").params()["id"], "k-1");
    let streamed = run(&home, ["send", "--stream", "--json", &url, "hi"]);
    assert_eq!(streamed.code, Some(0), "{}", streamed.stderr);
    assert!(streamed.stderr.contains("does not stream"), "{}", streamed.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_a_card_is_called_at_the_url_and_the_operator_is_told() {
    let agent = Scripted::start(|_| {
        |asked: &Asked| match asked.body.is_empty() {
            true => Script::page(404, "text/plain", "no"),
            false => Script::completed(asked),
        }
    })
    .await;
    let (home, url) = (Home::new(), format!("{}/rpc", agent.url()));
    let ran = run(&home, ["send", &url, "hi"]);
    said(&ran, "alpha", "without a card");
    assert!(ran.stderr.contains("no card was found") && ran.stderr.contains("A2A 1.0 over JSONRPC"), "{}", ran.stderr);
    let last = agent.calls().pop().expect("a call");
    assert_eq!((last.kind().as_str(), last.path.as_str()), ("SendMessage", "/rpc"));
    run(&home, ["send", "--a2a-version", "0.3", &url, "hi"]);
    assert_eq!(agent.calls().pop().expect("a call").kind(), "message/send");
    let card = run(&home, ["card", &url]);
    assert_eq!((card.code, card.stdout.as_str()), (Some(1), ""), "{}", card.stderr);
    assert!(card.stderr.contains("/.well-known/agent-card.json or /.well-known/agent.json"), "{}", card.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_at_the_root_of_a_host_is_not_taken_for_another_agents() {
    let agent = Scripted::start(|own| {
        let shown = card(own, json!({}));
        move |asked: &Asked| match (asked.body.is_empty(), asked.path.as_str()) {
            (true, "/.well-known/agent-card.json") => Script::json(&shown),
            (true, _) => Script::page(404, "text/plain", "no"),
            (false, _) => Script::completed(asked),
        }
    })
    .await;
    let other = format!("{}/agents/other", agent.url());
    let shown = run(&Home::new(), ["card", &other]);
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(1), ""), "{}", shown.stderr);
    said(&run(&Home::new(), ["send", &other, "hi"]), "alpha", "at the URL itself");
    assert_eq!(agent.calls().pop().expect("a call").path, "/agents/other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_shows_who_you_are_goes_to_the_host_you_named_and_to_no_other() {
    let agent = listing(&[("https://elsewhere.example/rpc", "JSONRPC", "1.0"), ("elsewhere.example:443", "GRPC", "1.0")]).await;
    let home = Home::new();
    let ran = Ran::of(home.command().env("CHANCERY_KEY", "chk_secret").args(["send", &agent.url(), "hi"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("elsewhere.example") && ran.stderr.contains("the URL that you gave"), "{}", ran.stderr);
    assert!(agent.calls().is_empty());
    let both = listing(&[("https://elsewhere.example/rpc", "JSONRPC", "1.0"), ("{URL}/here", "JSONRPC", "1.0")]).await;
    let ran = Ran::of(home.command().env("CHANCERY_KEY", "chk_secret").args(["send", &both.url(), "hi"]));
    said(&ran, "alpha", "the one that is there");
    let last = both.calls().pop().expect("a call");
    assert_eq!((last.path.as_str(), last.headers["x-api-key"].as_str()), ("/here", "chk_secret"));
    assert!(
        both.all()
            .iter()
            .filter(|asked| asked.path.contains(".well-known"))
            .all(|asked| !asked.headers.contains_key("x-api-key"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_has_every_kind_of_part_and_what_goes_beside_it() {
    let agent = listing(&[("{URL}", "JSONRPC", "1.0")]).await;
    let home = Home::new();
    std::fs::write(home.path().join("facts.json"), r#"{"b":[2]}"#).expect("written");
    std::fs::write(home.path().join("note.txt"), "a note").expect("written");
    let (facts, note) = (format!("@{}", home.path().join("facts.json").display()), home.path().join("note.txt"));
    let url = agent.url();
    let ran = run(
        &home,
        [
            "send",
            "--skill",
            "paint",
            "--data",
            r#"{"a":1}"#,
            "--data",
            &facts,
            "--file",
            note.to_str().expect("text"),
            "--file",
            "https://files.example/map.png",
            "--metadata",
            "customer=42",
            "--metadata",
            r#"{"team":"blue"}"#,
            "--budget",
            "0.25,tokens=100",
            "--context",
            "c-1",
            "--task",
            "t-1",
            "--idempotency-key",
            "k-1",
            &url,
            "hello",
        ],
    );
    said(&ran, "alpha", "all at once");
    assert!(ran.stderr.contains("may ignore it"), "the card says nothing of budgets: {}", ran.stderr);
    let asked = agent.calls().pop().expect("a call");
    let params = asked.params();
    let parts = json!([
        { "text": "hello" }, { "data": { "a": 1 } }, { "data": { "b": [2] } },
        { "raw": "YSBub3Rl", "filename": "note.txt", "mediaType": "text/plain" },
        { "url": "https://files.example/map.png", "filename": "map.png", "mediaType": "image/png" },
    ]);
    let message = &params["message"];
    assert_eq!(message["parts"], parts);
    assert_eq!((&message["messageId"], &message["taskId"], &message["contextId"]), (&json!("k-1"), &json!("t-1"), &json!("c-1")));
    assert_eq!(asked.headers["idempotency-key"], "k-1");
    let beside = json!({ "customer": 42, "team": "blue", "skill": "paint",
        "https://chancery.dev/a2a/governance/v1": { "budget": { "usd": "0.25", "tokens": 100 } } });
    assert_eq!(params["metadata"], beside);

    run(&home, ["send", "--data", "[1]", &url]);
    assert_eq!(agent.calls().pop().expect("a call").params()["message"]["parts"], json!([{ "data": [1] }]), "no text is needed");
}

#[test]
fn a_budget_is_kept_by_the_node_and_data_and_files_reach_its_agent() {
    let home = Home::new();
    let _server = Setup::in_home(&home).args(["--agent", "echo"]).start();
    let sent = run(&home, ["send", "--json", "--budget", "0.50", "hello"]).json();
    let account = &sent["task"]["metadata"]["https://chancery.dev/a2a/governance/v1"];
    assert_eq!(account["remaining"]["usd"], "0.50", "{sent}");
    std::fs::write(home.path().join("note.txt"), "a note").expect("written");
    let note = home.path().join("note.txt");
    let echoed = run(&home, ["send", "--json", "--data", r#"{"a":1}"#, "--file", note.to_str().expect("text")]).json();
    let text = echoed.to_string();
    assert!(text.contains("note.txt") && text.contains(r#"{"a":1}"#), "{text}");
}

#[test]
fn what_cannot_be_sent_is_exit_code_2_with_the_flag_and_the_remedy() {
    let home = Home::new();
    for (arguments, words) in [
        (&["--binding", "soap", "hi"][..], "JSONRPC, HTTP+JSON, GRPC or SWP"),
        (&["--a2a-version", "2.0", "hi"], "1.0, 0.3 or original"),
        (&["--a2a-version", "original", "--binding", "GRPC", "hi"], "JSON-RPC only"),
        (&["--data", "{", "hi"], "no JSON"),
        (&["--data", "@missing.json", "hi"], "missing.json"),
        (&["--file", "missing.png", "hi"], "missing.png"),
        (&["--metadata", "customer", "hi"], "NAME=VALUE"),
        (&["--budget", "much", "hi"], "no amount of USD"),
    ] {
        let ran = run(&home, ["send", "--url", "http://127.0.0.1:1"].iter().chain(arguments));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn an_extended_card_is_had_over_every_binding() {
    let home = Home::new();
    let added = run(&home, ["callers", "add", "planner"]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    std::fs::write(home.path().join("planner.key"), added.stdout.trim()).expect("written");
    let skills = "extended_skills = [{ id = 'audit', name = 'Audit', description = 'Shows.', tags = ['a'] }]";
    let _server = Setup::in_home(&home).config(&format!("[agents.echo]\nrun = 'echo'\n{skills}\n")).start();
    let key = home.path().join("planner.key");
    let key = key.to_str().expect("text");
    for (version, binding) in SPOKEN.into_iter().filter(|(version, _)| *version != "original") {
        let flags = ["card", "--json", "--extended", "--key-file", key, "--a2a-version", version, "--binding", binding];
        let ran = run(&home, flags);
        let shown: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{version} {binding}: {}", ran.stderr));
        let has_audit = shown["card"]["skills"].as_array().is_some_and(|all| all.iter().any(|skill| skill["id"] == "audit"));
        assert!(has_audit, "{version} over {binding}: {shown}");
        let state = if version == "1.0" { "valid" } else { "not checked" };
        assert_eq!(shown["signature"]["state"], state, "{version} over {binding}: {shown}");
    }
}
