//! `chancery agents` and the catalog: agents elsewhere that come, change, fail and go while the node in front of them runs.

use serde_json::{Value, json};

use crate::operating::cli::{Ran, run};
use crate::support::patience::eventually;
use crate::support::server::{Home, Server, Setup};

/// Cards are looked at with every call, so that a change is seen at once.
const FRONT: &str = "[discovery]\nttl_s = 0\n";
/// The agent at the root of its node.
const FIRST: &str = "[agents.tester]\nrun = \"conformance\"\n";
/// Somebody else at the root, and the agent only at a path of its own: its card names another address.
const SECOND: &str = "[agents.other]\nrun = \"echo\"\n[agents.tester]\nrun = \"conformance\"\n";

fn front(home: &Home) -> Server {
    Setup::in_home(home).config(FRONT).start()
}

/// The agent's node at the address of an earlier one.
fn backend_at(home: &Home, url: &str, config: &str) -> Server {
    Setup::at(home, url.trim_start_matches("http://")).config(config).start()
}

fn add(home: &Home, url: &str, arguments: &[&str]) {
    let ran = run(home, ["agents", "add", url, "--name", "tester"].iter().chain(arguments));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "/agents/tester\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("is served now"), "{}", ran.stderr);
}

fn send(home: &Home, text: &str) -> Ran {
    run(home, ["send", "--agent", "tester", text])
}

#[track_caller]
fn answers(ran: &Ran, text: &str) {
    assert_eq!((ran.code, ran.stdout.trim_end()), (Some(0), text), "{}", ran.stderr);
}

fn listed(home: &Home) -> Option<Value> {
    let mut all = run(home, ["agents", "list", "--json"]).json();
    all["agents"].as_array_mut().unwrap().iter_mut().find(|agent| agent["name"] == "tester").map(Value::take)
}

fn state(home: &Home) -> String {
    listed(home).expect("tester is there")["state"].as_str().unwrap().to_owned()
}

#[track_caller]
fn is_refused(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{}", ran.stderr);
    assert!(words.iter().all(|word| ran.stderr.contains(word)), "{words:?} are not in: {}", ran.stderr);
}

#[test]
fn an_added_agent_is_called_at_once_and_after_a_restart_until_it_is_removed() {
    let (home, back_home) = (Home::new(), Home::new());
    let backend = Setup::in_home(&back_home).config(FIRST).start();
    let node = front(&home);
    is_refused(&send(&home, "complete hi"), 1, &[]);
    add(&home, backend.url(), &["--title", "Tester"]);
    answers(&send(&home, "complete hi"), "hi");
    let url = format!("{}/agents/tester", node.url());
    let card = run(&home, ["card", "--json", &url]).json();
    assert_eq!((&card["card"]["name"], &card["signature"]["state"]), (&json!("Tester"), &json!("valid")), "{card}");
    let agent = listed(&home).unwrap();
    assert_eq!((&agent["source"], &agent["pin"], &agent["state"]), (&json!("added"), &json!(true), &json!("served")));
    assert_eq!(agent["replicas"][0]["verification"], "verified", "{agent}");
    let table = run(&home, ["agents", "list"]).stdout;
    assert!(["tester", "added", "verified", "echo", "here"].iter().all(|word| table.contains(word)), "{table}");

    node.terminate();
    let kept = run(&home, ["agents", "list"]);
    assert!(kept.stdout.contains("tester") && kept.stderr.contains("no node runs"), "{}", kept.stderr);
    let _node = front(&home);
    answers(&send(&home, "complete again"), "again");
    let removed = run(&home, ["agents", "remove", "tester"]);
    assert_eq!((removed.code, removed.stdout.as_str()), (Some(0), ""), "{}", removed.stderr);
    is_refused(&send(&home, "complete hi"), 1, &[]);
    assert!(listed(&home).is_none());
    // Its tasks come back with it.
    add(&home, backend.url(), &[]);
    let tasks = run(&home, ["tasks", "list"]).stdout;
    assert_eq!(tasks.matches("tester").count(), 2, "{tasks}");
}

#[test]
fn what_cannot_be_added_approved_or_removed_is_refused_with_a_reason() {
    let (home, back_home) = (Home::new(), Home::new());
    let backend = Setup::in_home(&back_home).config(FIRST).start();
    let url = backend.url();
    is_refused(&run(&home, ["agents", "add", url, "--name", "tester"]), 3, &["chancery serve"]);
    assert_eq!(run(&home, ["agents", "list"]).code, Some(0));
    is_refused(&run(&home, ["agents", "remove", "tester"]), 1, &["no agent tester", "chancery agents ls"]);
    assert!(!home.data().exists(), "nothing was made");

    let config = format!("{FRONT}[agents.echo]\nrun = \"echo\"\n[agents.fixed]\nurl = \"{url}\"\n");
    let _node = Setup::in_home(&home).config(&config).start();
    let nobody = "ab".repeat(32);
    for (arguments, code, words) in [
        (&["add", url, "--name", "Tester"][..], 2, &["a-z"][..]),
        (&["add", "ftp://h", "--name", "tester"], 2, &["http"]),
        (&["add", url, "--name", "echo"], 1, &["already"]),
        (&["add", url, "--name", "fixed"], 1, &["already"]),
        (&["add", url, "--name", "tester", "--bearer-env", "NO_SUCH_VARIABLE"], 2, &["NO_SUCH_VARIABLE"]),
        (&["add", url, "--name", "tester", "--agent-id", &nobody], 1, &["refused", &nobody]),
        (&["add", url, "--name", "tester", "--verify", "maybe"], 2, &["if-present"]),
        (&["add", "--name", "tester"], 2, &["URL"]),
        (&["remove", "fixed"], 1, &["config"]),
        (&["remove", "echo"], 1, &["config"]),
        (&["remove", "tester"], 1, &["no agent tester", "chancery agents ls"]),
        (&["approve", "echo"], 1, &["runs in this node"]),
        (&["approve", "fixed"], 1, &["waits"]),
        (&["health", "tester"], 1, &["no agent tester"]),
    ] {
        let ran = run(&home, ["agents"].iter().chain(arguments));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", ran.stderr);
        assert!(words.iter().all(|word| ran.stderr.contains(word)), "{arguments:?}: {}", ran.stderr);
    }
    assert!(listed(&home).is_none(), "nothing was added");
    let nowhere = run(&home, ["agents", "add", "http://127.0.0.1:1", "--name", "tester"]);
    assert_eq!(nowhere.code, Some(0), "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("not been reached"), "{}", nowhere.stderr);
    assert_eq!(state(&home), "not reached");
}

#[test]
fn a_card_that_promises_something_else_is_held_and_the_old_address_called_until_it_is_approved() {
    let (home, back_home) = (Home::new(), Home::new());
    let backend = Setup::in_home(&back_home).config(FIRST).start();
    let url = backend.url().to_owned();
    let node = front(&home);
    add(&home, &format!("{url}/agents/tester"), &["--verify", "require"]);
    answers(&send(&home, "complete hi"), "hi");
    let pinned = listed(&home).unwrap()["replicas"][0].take();

    backend.terminate();
    let backend = backend_at(&back_home, &url, SECOND);
    // At the old address somebody else answers now, who repeats what is said.
    answers(&send(&home, "complete hi"), "complete hi");
    answers(&send(&home, "complete ho"), "complete ho");
    let held = listed(&home).unwrap();
    assert_eq!(held["state"], "changed, waiting for approval");
    let replica = &held["replicas"][0];
    assert_eq!((&replica["structure"], &replica["approved_at"]), (&pinned["structure"], &pinned["approved_at"]));
    let changes = replica["pending"]["changes"].as_object().unwrap();
    assert_eq!(changes.keys().collect::<Vec<_>>(), ["interfaces"], "{changes:?}");
    let added = changes["interfaces"]["added"].to_string();
    assert!(added.contains(&format!("{url}/agents/tester")), "{added}");
    assert_eq!(node.log().matches("promises something else").count(), 1, "it is warned of once");
    let table = run(&home, ["agents", "list"]).stdout;
    assert!(table.contains("waiting for approval") && table.contains("+ interfaces JSONRPC 1.0"), "{table}");

    is_refused(&run(&home, ["agents", "approve", "tester", "--digest", "ab"]), 1, &["another digest"]);
    let digest = replica["pending"]["structure"].as_str().unwrap();
    let shown = run(&home, ["agents", "list"]).stdout;
    assert!(shown.contains(&format!("chancery agents approve tester --digest {digest}")), "{shown}");
    let approved = run(&home, ["agents", "approve", "tester", "--digest", digest]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    assert!(approved.stdout.contains("+ interfaces JSONRPC 1.0"), "{}", approved.stdout);
    answers(&send(&home, "complete hi"), "hi");
    assert_eq!(state(&home), "served");
    is_refused(&run(&home, ["agents", "approve", "tester"]), 1, &["waits"]);

    // The pin and the card it stands for are known after a restart, too.
    node.terminate();
    backend.terminate();
    let _backend = backend_at(&back_home, &url, FIRST);
    let _node = front(&home);
    answers(&send(&home, "complete hi"), "hi");
    let held = listed(&home).unwrap();
    assert_eq!(held["state"], "changed, waiting for approval", "{held}");
    assert_eq!(held["replicas"][0]["structure"].as_str().map(str::len), Some(64));
    assert_ne!(held["replicas"][0]["structure"], pinned["structure"]);
}

#[test]
fn an_agent_that_is_not_pinned_is_followed_wherever_its_card_goes() {
    let (home, back_home) = (Home::new(), Home::new());
    let backend = Setup::in_home(&back_home).config(FIRST).start();
    let url = backend.url().to_owned();
    let _node = front(&home);
    add(&home, &format!("{url}/agents/tester"), &["--no-pin"]);
    answers(&send(&home, "complete hi"), "hi");
    backend.terminate();
    let _backend = backend_at(&back_home, &url, SECOND);
    answers(&send(&home, "complete hi"), "hi");
    assert_eq!(state(&home), "served");
}

#[test]
fn a_card_of_another_signer_is_refused_and_nobody_is_called() {
    let (home, back_home, other_home) = (Home::new(), Home::new(), Home::new());
    let backend = Setup::in_home(&back_home).config(FIRST).start();
    let url = backend.url().to_owned();
    let node = front(&home);
    add(&home, &url, &[]);
    answers(&send(&home, "complete hi"), "hi");
    let signer = listed(&home).unwrap()["replicas"][0]["agent_ids"][0].as_str().unwrap().to_owned();

    backend.kill();
    let _impostor = backend_at(&other_home, &url, FIRST);
    for _ in 0..2 {
        is_refused(&send(&home, "complete hi"), 1, &[]);
    }
    let refused = listed(&home).unwrap();
    assert_eq!((&refused["state"], &refused["replicas"][0]["pending"]), (&json!("refused"), &Value::Null));
    let log = node.log();
    let warning = log.lines().find(|line| line.contains("rejected the card of an agent")).expect("a warning");
    assert!(warning.contains("WARN") && warning.contains(&signer), "{warning}");
    assert_eq!(log.matches("rejected the card of an agent").count(), 1, "it is warned of once");
    is_refused(&run(&home, ["agents", "approve", "tester"]), 1, &["waits"]);

    // An operator who knows better can say so.
    let anew = run(&home, ["agents", "approve", "tester", "--anew"]);
    assert_eq!(anew.code, Some(0), "{}", anew.stderr);
    answers(&send(&home, "complete hi"), "hi");
    assert_ne!(listed(&home).unwrap()["replicas"][0]["agent_ids"][0], signer);
}

#[test]
fn health_shows_a_breaker_that_opened_because_the_agent_is_gone() {
    let (home, back_home) = (Home::new(), Home::new());
    let backend = Setup::in_home(&back_home).config(FIRST).start();
    let config = format!("{FRONT}[health]\nfailures = 2\ncooldown_ms = 300000\n[peers]\nretries = 0\n");
    let _node = Setup::in_home(&home).config(&config).start();
    add(&home, backend.url(), &[]);
    answers(&send(&home, "complete hi"), "hi");
    let health = || run(&home, ["agents", "health", "tester", "--json"]).json()["replicas"][0].take();
    let well = health();
    assert_eq!(
        (&well["breaker"], &well["failure_share"], &well["open_tasks"]),
        (&json!("closed"), &json!(0.0), &json!(0)),
        "{well}"
    );
    assert!(well["latency_ms"].as_f64().is_some_and(|latency| latency > 0.0) && well["last_heard"].is_string(), "{well}");
    backend.kill();
    let opened = eventually("the breaker opens", || {
        is_refused(&send(&home, "complete hi"), 1, &[]);
        Some(health()).filter(|health| health["breaker"] == "open")
    });
    assert!(opened["breaker_until"].is_string() && opened["failure_share"].as_f64().unwrap() > 0.0, "{opened}");
    let table = run(&home, ["agents", "health", "tester"]).stdout;
    assert!(table.contains("BREAKER") && table.contains("open"), "{table}");
}

#[tokio::test]
async fn the_catalog_shows_a_caller_the_agents_and_skills_it_may_call_and_no_others() {
    let (home, back_home) = (Home::new(), Home::new());
    let backend = Setup::in_home(&back_home).config(FIRST).start();
    let key = |arguments: &[&str]| {
        let ran = run(&home, ["callers", "add"].iter().chain(arguments));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout.trim_end().to_owned()
    };
    let all = key(&["planner"]);
    let node = Setup::in_home(&home).config(FRONT).args(["--agent", "conformance", "--agent", "echo"]).start();
    add(&home, backend.url(), &[]);
    let (few, none) =
        (key(&["few", "--may-call", "echo", "--may-call", "tester/echo"]), key(&["none", "--may-call", "echo/nothing"]));
    let get = async |key: &str, query: &str| {
        let request = reqwest::Client::new().get(format!("{}/agents{query}", node.url())).header("X-API-Key", key);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    let names = |catalog: &Value| -> Vec<String> {
        catalog["agents"].as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
    };
    let (_, everything) = get(&all, "").await;
    assert_eq!(
        (names(&everything), &everything["next"]),
        (vec!["conformance".into(), "echo".into(), "tester".into()], &Value::Null)
    );
    let tester = &everything["agents"][2];
    let card: Value = reqwest::get(tester["card"].as_str().unwrap()).await.unwrap().json().await.unwrap();
    assert_eq!((&card["name"], &card["skills"][0]["id"]), (&tester["title"], &tester["skills"][0]["id"]));

    let (_, some) = get(&few, "").await;
    assert_eq!(names(&some), ["echo", "tester"]);
    assert_eq!(some["agents"][1]["skills"], json!([]), "none of its skills is one that may be asked for");
    assert!(!some.to_string().contains("/agents/conformance"), "{some}");
    assert_eq!(names(&get(&few, "?q=CONFORM").await.1), [""; 0]);
    assert_eq!(names(&get(&none, "?skill=echo").await.1), [""; 0]);
    let skill = everything["agents"][0]["skills"][0]["id"].as_str().unwrap();
    assert_eq!(names(&get(&all, &format!("?skill={skill}")).await.1), ["conformance", "tester"]);
    assert_eq!(names(&get(&all, "?skill=no-such-skill").await.1), [""; 0]);

    let (_, first) = get(&all, "?limit=2").await;
    assert_eq!((names(&first), &first["next"]), (vec!["conformance".into(), "echo".into()], &json!("echo")));
    let (_, rest) = get(&all, "?limit=2&after=echo").await;
    assert_eq!((names(&rest), &rest["next"]), (vec!["tester".into()], &Value::Null));
    assert_eq!(get("chk_nobody-has-this-key", "").await.0, 401);
    assert_eq!(get(&all, "?limit=many").await.0, 400);
}
