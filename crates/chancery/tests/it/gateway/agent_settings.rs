//! `[agents.NAME]` overrides, names from cards, and what is kept about agents over a restart.

use serde_json::{Value, json};

use super::scripted::{Asked, Script, Scripted, card};
use super::{in_front_of, in_front_of_with};
use crate::operating::cli::run;
use crate::support::patience::{eventually, soon};
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};

/// An agent that answers at every path, under this name.
async fn named(name: &str) -> Scripted {
    let name = name.to_owned();
    Scripted::start(|own| {
        let mut shown = card(own, json!({}));
        shown["name"] = json!(name);
        move |asked: &Asked| if asked.path.contains(".well-known") { Script::json(&shown) } else { Script::completed(asked) }
    })
    .await
}

fn names(server: &Server) -> Vec<String> {
    let all = run(server.home(), ["agents", "ls", "--json"]).json();
    all["agents"].as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
}

fn with_urls(home: &Home, urls: &[&str]) -> Server {
    let flags = urls.iter().flat_map(|url| ["--agent", url]);
    Setup::in_home(home).args(flags).start()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_with_headers_and_modes_outranks_the_card() {
    let (shown, meant) = (named("Shown").await, named("Meant").await);
    let settings = format!(
        "address = '{}/here'\nversion = '1.0'\nheaders = {{ X-Tenant = 'acme' }}\nheaders_env = {{ X-Secret = 'SECRET' }}\ninput_modes = ['application/pdf']\n",
        meant.url()
    );
    let home = Home::new();
    let config = format!("[agents.front]\nurl = '{}'\n{settings}", shown.url());
    let gateway = Setup::in_home(&home).env("SECRET", "hush").config(&config).start();
    let sent = gateway.send("hi").await;
    assert_eq!(sent["task"]["artifacts"][0]["parts"][0]["text"], "alpha", "{sent}");
    assert!(shown.calls().is_empty(), "the card's address is not called");
    let called = &meant.calls()[0];
    assert_eq!(
        (called.path.as_str(), called.headers["x-tenant"].as_str(), called.headers["x-secret"].as_str()),
        ("/here", "acme", "hush")
    );
    assert_eq!(shown.all()[0].headers["x-secret"], "hush", "headers go with the fetch of the card too");
    let ours: Value = reqwest::get(format!("{}/.well-known/agent-card.json", gateway.url())).await.unwrap().json().await.unwrap();
    assert_eq!(ours["defaultInputModes"], json!(["application/pdf"]));
    assert!(!gateway.log().contains("hush"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_and_a_version_that_are_set_are_the_only_ones_spoken() {
    let agent = Scripted::start(|own| {
        let mut shown = card(own, json!({}));
        let entry = |binding: &str| json!({ "url": own, "protocolBinding": binding, "protocolVersion": "1.0" });
        shown["supportedInterfaces"] = json!([entry("JSONRPC"), entry("HTTP+JSON")]);
        move |asked: &Asked| match asked.path.as_str() {
            path if path.contains(".well-known") => Script::json(&shown),
            "/message:send" => Script::json(&json!({ "task": { "id": "t", "contextId": "c",
                "status": { "state": "TASK_STATE_COMPLETED" }, "artifacts": [{ "artifactId": "a", "parts": [{ "text": "alpha" }] }] } })),
            _ => Script::completed(asked),
        }
    })
    .await;
    for (setting, path, kind) in [
        ("", "/", Some("SendMessage")),
        ("binding = 'HTTP+JSON'", "/message:send", None),
        ("version = '0.3'", "/", Some("message/send")),
    ] {
        let sent = in_front_of_with(&agent.url(), "", setting).send("hi").await;
        assert_eq!(sent["task"]["artifacts"][0]["parts"][0]["text"], "alpha", "{setting}: {sent}");
        let called = agent.calls().pop().expect("a call");
        assert_eq!(called.path, path, "{setting}");
        assert!(kind.is_none_or(|kind| called.kind() == kind), "{setting}: {}", called.kind());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_takes_longer_than_its_timeout_fails_the_task_with_that_reason() {
    let agent = Scripted::agent(|_| Script::default().hang()).await;
    let sent = in_front_of_with(&agent.url(), "", "timeout_ms = 200").send("hi").await;
    let words = sent["task"]["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
    assert!(words.contains("did not answer in time"), "{sent}");
    assert_eq!(agent.calls().iter().filter(|asked| asked.kind() == "SendMessage").count(), 1, "not sent again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_file_stands_for_the_card_and_a_strict_agent_is_held_to_it() {
    let agent = Scripted::start(|_| {
        move |asked: &Asked| {
            if asked.body.is_empty() { Script::page(500, "text/plain", "no card") } else { Script::completed(asked) }
        }
    })
    .await;
    let home = Home::new();
    let mut given = card(&agent.url(), json!({}));
    given.as_object_mut().unwrap().remove("version");
    given["version"] = json!("1");
    std::fs::write(home.path().join("card.json"), given.to_string()).unwrap();
    let section = format!("[agents.front]\nurl = '{}'\ncard_file = 'card.json'\n", agent.url());
    let gateway = Setup::in_home(&home).config(&section).start();
    let sent = gateway.send("hi").await;
    assert_eq!(sent["task"]["artifacts"][0]["parts"][0]["text"], "alpha", "{sent}");
    assert!(agent.all().iter().all(|asked| !asked.body.is_empty()), "the card is never fetched");
    gateway.kill();

    given["supportedInterfaces"][0]["url"] = json!(agent.url().replace("127.0.0.1", "localhost"));
    std::fs::write(home.path().join("card.json"), given.to_string()).unwrap();
    let strict = Setup::in_home(&home).config(&format!("{section}strict = true\n")).start();
    let sent = strict.send("hi").await;
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_FAILED", "another spelling is another address: {sent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_given_by_url_get_the_names_on_their_cards_and_keep_them() {
    let (one, other) = (named("Weather Agent").await, named("Weather Agent").await);
    let home = Home::new();
    let gateway = with_urls(&home, &[&one.url(), &other.url()]);
    assert_eq!(names(&gateway), ["weather-agent", "weather-agent-2"]);
    let sent = gateway.send("hi").await;
    let task = sent["task"]["id"].as_str().expect("a task").to_owned();
    gateway.terminate();
    // The other order, and one more: whoever has a name keeps it.
    let third = named("Weather Agent").await;
    let again = with_urls(&home, &[&other.url(), &third.url(), &one.url()]);
    assert_eq!(names(&again), ["weather-agent", "weather-agent-2", "weather-agent-3"]);
    let url = format!("{}/agents/weather-agent", again.url());
    let ran = run(again.home(), ["tasks", "get", &task, "--json"]).json();
    assert_eq!(ran["record"]["agent"], "weather-agent", "{url}: {ran}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_was_not_there_is_named_by_host_and_port_until_its_card_is_read() {
    let address = lasting_address();
    let home = Home::new();
    let gateway = with_urls(&home, &[&format!("http://{address}")]);
    assert_eq!(names(&gateway), [format!("127-0-0-1-{}", address.port())]);
    let card_of = async || -> Value {
        reqwest::get(format!("{}/.well-known/agent-card.json", gateway.url())).await.unwrap().json().await.unwrap()
    };
    assert_eq!(card_of().await["description"], "This agent has not been reached yet.");
    let back_home = Home::new();
    let _back = Setup::at(&back_home, address).args(["--memory", "--agent", "echo", "--agent-name", "parrot"]).start();
    soon("the card's name", async || (names(&gateway) == ["parrot"]).then_some(())).await;
    let sent = gateway.send("hi").await;
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED", "still at the root: {sent}");
    gateway.terminate();
    assert_eq!(names(&with_urls(&home, &[&format!("http://{address}")])), ["parrot"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_not_there_is_shown_to_the_operator_with_the_cause_and_to_callers_without_it() {
    let address = lasting_address();
    let home = Home::new();
    let gateway = with_urls(&home, &[&format!("http://{address}")]);
    let name = format!("127-0-0-1-{}", address.port());
    let sent = gateway.send("hi").await;
    let reason = sent["task"]["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("cannot be reached") && !reason.contains("refused"), "what listens where is not for callers: {sent}");
    let fault = run(gateway.home(), ["agents", "show", &name, "--json"]).json()["replicas"][0]["fault"].take();
    assert!(fault.as_str().is_some_and(|fault| fault.contains("Connection refused")), "{fault}");
    let explained = run(gateway.home(), ["explain", sent["task"]["id"].as_str().expect("a task")]).stdout;
    assert!(explained.contains(&format!("reason    {reason}\n")), "{explained}");
    let lines: Vec<Value> = gateway.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let warned = |line: &&Value| line["level"] == "WARN" && line["url"] == json!(format!("http://{address}"));
    let warning = lines.iter().find(warned).expect("a warning with the URL");
    assert!(warning["reason"].as_str().is_some_and(|reason| reason.contains("Connection refused")), "{warning}");
    let (_, printed) = gateway.terminate();
    assert!(printed.contains("no card yet: not reached: Connection refused"), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_folder_from_before_names_came_from_cards_keeps_its_names() {
    let agent = named("Weather").await;
    let home = Home::new();
    // As an older node left it: keys under the name it gave.
    let older = Setup::in_home(&home).args(["--agent", &agent.url(), "--agent-name", "agent"]).start();
    let sent = older.send("hi").await;
    let task = sent["task"]["id"].as_str().expect("a task").to_owned();
    older.terminate();
    let gateway = with_urls(&home, &[&agent.url()]);
    assert_eq!(names(&gateway), ["agent"]);
    let got = gateway.call("GetTask", json!({ "id": task })).await;
    assert_eq!(got["result"]["id"], json!(task), "{got}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_card_is_not_hidden_behind_a_made_up_one() {
    let agent = Scripted::start(|_| |_: &Asked| Script::json(&json!({ "name": "No address" }))).await;
    let gateway = in_front_of(&agent.url(), "");
    let shown: Value =
        reqwest::get(format!("{}/.well-known/agent-card.json", gateway.url())).await.unwrap().json().await.unwrap();
    let words = shown["description"].as_str().unwrap_or_default();
    assert!(words.starts_with("This agent cannot be called: its card was rejected: "), "{shown}");
    let state = run(gateway.home(), ["agents", "show", "front", "--json"]).json()["state"].take();
    assert!(state.as_str().is_some_and(|state| state.starts_with("card rejected: ")), "{state}");
    let (_, printed) = gateway.terminate();
    assert!(printed.contains(": card rejected: "), "{printed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_learnt_about_an_agent_survives_a_kill() {
    let agent = Scripted::start(|own| {
        let mut shown = card(own, json!({}));
        shown["iconUrl"] = Value::Null;
        move |asked: &Asked| if asked.path.contains(".well-known") { Script::json(&shown) } else { Script::completed(asked) }
    })
    .await;
    let home = Home::new();
    let config = format!("[agents.front]\nurl = '{}'\n", agent.url());
    let gateway = Setup::in_home(&home).config(&config).start();
    let facts = home.data().join("agent_facts.json");
    let on_disk = || std::fs::read_to_string(&facts).ok().filter(|text| text.contains("null-member"));
    eventually("the facts are on disk", on_disk);
    gateway.kill();
    let again = Setup::in_home(&home).config(&config).start();
    let replica = run(again.home(), ["agents", "show", "front", "--json"]).json()["replicas"][0].take();
    assert_eq!(replica["leniencies"]["null-member"], 2, "once for each start: {replica}");
    assert_eq!(replica["deviations"], json!(["iconUrl is null"]));
}
