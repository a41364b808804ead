//! Where an agent is called: at the address that the operator typed, whatever its card names.

use serde_json::{Value, json};

use super::canary::Canary;
use super::scripted::{Asked, Script, Scripted, card};
use super::{in_front_of, in_front_of_with};
use crate::operating::cli::run;
use crate::support::server::{Home, Server, Setup};

/// An agent whose card lists this URL, with `{URL}` for its own. It answers at every path.
async fn listing(url: &str, binding: &str) -> Scripted {
    Scripted::start(|own| {
        let port = own.rsplit(':').next().expect("a port").to_owned();
        let listed = url.replace("{URL}", own).replace("{PORT}", &port);
        let mut shown = card(own, json!({}));
        shown["supportedInterfaces"] = json!([{ "url": listed, "protocolBinding": binding, "protocolVersion": "1.0" }]);
        move |asked: &Asked| if asked.path.contains(".well-known") { Script::json(&shown) } else { Script::completed(asked) }
    })
    .await
}

#[track_caller]
fn is_answered(sent: &Value, what: &str) {
    assert_eq!(sent["task"]["artifacts"][0]["parts"][0]["text"], "alpha", "{what}: {sent}");
}

/// The agent as `chancery agents show` has it.
fn shown(gateway: &Server) -> Value {
    run(gateway.home(), ["agents", "show", "front", "--json"]).json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_4_3_an_agent_is_called_by_every_spelling_of_its_own_host() {
    let spellings = ["http://localhost:{PORT}/rpc", "http://0.0.0.0:{PORT}/rpc", "http://[::1]:{PORT}/rpc", "{URL}/rpc"];
    for listed in spellings {
        let agent = listing(listed, "JSONRPC").await;
        let typed_as_localhost = agent.url().replace("127.0.0.1", "localhost");
        for typed in [agent.url(), typed_as_localhost] {
            let gateway = in_front_of(&typed, "");
            is_answered(&gateway.send("hi").await, &format!("{typed} with {listed}"));
            let called = shown(&gateway)["replicas"][0]["calls"]["address"].take();
            assert_eq!(called, json!(format!("{typed}/rpc")));
        }
        assert!(agent.calls().iter().all(|asked| asked.path == "/rpc"), "the card's path is kept");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_4_3_localhost_is_found_where_the_agent_listens_on_one_address_only() {
    let agent = Scripted::at("::1", |own| {
        let shown = card(own, json!({}));
        move |asked: &Asked| if asked.path.contains(".well-known") { Script::json(&shown) } else { Script::completed(asked) }
    })
    .await;
    let port = agent.url().rsplit(':').next().expect("a port").to_owned();
    let gateway = in_front_of(&format!("http://localhost:{port}"), "");
    is_answered(&gateway.send("hi").await, "an agent on ::1 alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_4_4_a_host_or_port_that_is_neither_configured_nor_allowed_is_never_contacted() {
    let other = Canary::listen().await;
    let agent = listing(&format!("http://{}/rpc", other.address), "JSONRPC").await;
    let gateway = in_front_of(&agent.url(), "");
    is_answered(&gateway.send("hi").await, "the configured origin with the card's path");
    assert_eq!(agent.calls()[0].path, "/rpc");
    other.nobody_came("a port that is not allowed").await;
    let allowed = in_front_of(&agent.url(), super::ANYWHERE_HERE);
    let _ = shown(&allowed);
    assert_eq!(shown(&allowed)["replicas"][0]["calls"]["address"], format!("http://{}/rpc", other.address));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_4_5_a_url_that_says_nothing_means_the_configured_one() {
    for (listed, path) in
        [("", "/agent"), ("dummy", "/agent"), ("/rpc", "/rpc"), ("127.0.0.1:{PORT}/rpc", "/rpc"), ("http://", "/agent")]
    {
        let agent = listing(listed, "JSONRPC").await;
        let gateway = in_front_of(&format!("{}/agent", agent.url()), "");
        is_answered(&gateway.send("hi").await, listed);
        assert_eq!(agent.calls().last().expect("it was called").path, path, "{listed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_4_5_the_address_of_one_operation_leads_to_the_others() {
    // As Agno: JSON-RPC, and every operation at a path of its own.
    let agent = listing("/agents/a/v1/message:stream", "JSONRPC").await;
    let gateway = in_front_of(&agent.url(), "");
    is_answered(&gateway.send("hi").await, "a unary call");
    assert_eq!(agent.calls().last().expect("it was called").path, "/agents/a/v1/message:send");
    assert_eq!(shown(&gateway)["replicas"][0]["leniencies"]["operation-address"], 1);
    let rest = listing("/a/message:send", "HTTP+JSON").await;
    let _ = in_front_of(&rest.url(), "").send("hi").await;
    assert_eq!(rest.calls().last().expect("it was called").path, "/a/message:send");
}

/// An agent that its web framework mounted: calls at `listed` are redirected, and `mounted` answers.
async fn mounted_at(mounted: &'static str, listed: &'static str, location: &str) -> Scripted {
    let away = Script::page_with(307, "text/plain", &[("Location", location)], "");
    Scripted::start(|own| {
        let mut shown = card(own, json!({ "streaming": true }));
        shown["supportedInterfaces"][0]["url"] = json!(format!("{own}{listed}"));
        move |asked: &Asked| match asked.path.as_str() {
            path if path.contains(".well-known") => Script::json(&shown),
            path if path == mounted => Script::completed(asked),
            path if path == listed => away.clone(),
            _ => Script::page(404, "text/plain", "404 Not Found"),
        }
    })
    .await
}

fn paths(agent: &Scripted) -> Vec<String> {
    agent.calls().into_iter().map(|asked| asked.path).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_4_5_an_address_that_is_redirected_for_its_slash_is_called_with_the_other_ending() {
    let canary = Canary::listen().await;
    for (listed, mounted) in [("/a2a", "/a2a/"), ("/a2a/", "/a2a")] {
        let agent = mounted_at(mounted, listed, &canary.url("redirected")).await;
        let gateway = in_front_of(&agent.url(), "");
        for _ in 0..2 {
            is_answered(&gateway.send("hi").await, listed);
        }
        assert_eq!(paths(&agent), [listed, mounted, mounted], "the second call goes there at once");
        assert_eq!(shown(&gateway)["replicas"][0]["leniencies"]["slash-redirect"], 1);

        let agent = mounted_at(mounted, listed, &canary.url("redirected")).await;
        let gateway = in_front_of_with(&agent.url(), "", "stream = 'always'");
        is_answered(&gateway.send("hi").await, "a stream");
        assert_eq!(paths(&agent), [listed, mounted]);

        let agent = mounted_at(mounted, listed, &canary.url("redirected")).await;
        let sent = in_front_of_with(&agent.url(), "", "strict = true").send("hi").await;
        assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_FAILED", "{sent}");
        assert_eq!(paths(&agent), [listed], "a strict agent is held to its card");
    }
    let elsewhere = mounted_at("/other", "/a2a", &canary.url("redirected")).await;
    let sent = in_front_of(&elsewhere.url(), "").send("hi").await;
    let reason = sent["task"]["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
    assert!(reason.contains("redirect"), "the reason is the redirect and not what the other ending answers: {sent}");
    canary.nobody_came("the target of a redirect").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_4_1_a_card_may_be_beside_the_path_of_its_agent() {
    // As Mastra and VoltAgent: `/a2a/ID` with its card at `/.well-known/ID/agent-card.json`.
    let card = json!({ "name": "echo", "description": "", "version": "1", "capabilities": {}, "skills": [],
        "protocolVersion": "0.3.0", "url": "/api/a2a/echo", "defaultInputModes": [], "defaultOutputModes": [] });
    let agent = Scripted::start(|_| {
        move |asked: &Asked| match asked.path.as_str() {
            "/api/.well-known/echo/agent-card.json" => Script::json(&card),
            "/api/a2a/echo" if asked.kind() == "message/send" => Script::completed(asked),
            _ => Script::page(404, "text/plain", "404 Not Found"),
        }
    })
    .await;
    let gateway = in_front_of(&format!("{}/api/a2a/echo", agent.url()), "");
    is_answered(&gateway.send("hi").await, "the address that a client of the agent posts to");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_4_6_an_address_that_is_not_the_cards_is_logged_once_with_both_and_the_setting() {
    let agent = listing("http://192.0.2.77:9/rpc", "JSONRPC").await;
    let gateway = in_front_of(&agent.url(), "[discovery]\nttl_s = 0\n");
    is_answered(&gateway.send("hi").await, "moved");
    is_answered(&gateway.send("hi").await, "moved");
    let lines: Vec<Value> = gateway.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let said: Vec<&Value> = lines.iter().filter(|line| line["card"] == "http://192.0.2.77:9/rpc").collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!((&said[0]["level"], &said[0]["address"]), (&json!("INFO"), &json!(format!("{}/rpc", agent.url()))));
    assert_eq!(said[0]["setting"], r#"[outbound] allow_nets = ["192.0.2.77/32"], allow_http = true"#);
    let replica = shown(&gateway)["replicas"][0].take();
    assert_eq!(replica["leniencies"]["address-replaced"], 1, "{replica}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_4_6_an_agent_without_an_allowed_address_is_warned_of_and_never_called_served() {
    let other = Canary::listen().await;
    let agent = listing(&other.address.to_string(), "GRPC").await;
    let gateway = in_front_of(&agent.url(), "");
    let sent = gateway.send("hi").await;
    let reason = sent["task"]["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("not allowed by [outbound]"), "{sent}");
    other.nobody_came("gRPC at a port that is not allowed").await;
    assert!(gateway.log().contains("no address of its card is allowed"), "{}", gateway.log());
    let agent = shown(&gateway);
    assert!(agent["state"].as_str().is_some_and(|state| state.starts_with("failing: ")), "{agent}");
    let table = run(gateway.home(), ["agents", "ls"]).stdout;
    assert!(!table.contains("served") && table.contains("failing"), "{table}");
    let health = run(gateway.home(), ["agents", "health", "front"]).stdout;
    assert!(health.contains("not allowed by [outbound]"), "{health}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_4_1_a_card_is_taken_from_the_agents_own_url_where_nothing_else_has_it() {
    let agent = Scripted::start(|own| {
        let shown = card(own, json!({}));
        move |asked: &Asked| match asked.body.is_empty() {
            true if asked.path == "/a2a/one" => Script::json(&shown),
            true => Script::page(404, "text/plain", "no"),
            false => Script::completed(asked),
        }
    })
    .await;
    let gateway = in_front_of(&format!("{}/a2a/one", agent.url()), "");
    is_answered(&gateway.send("hi").await, "the URL itself");
    let paths: Vec<String> = agent.all().iter().filter(|asked| asked.body.is_empty()).map(|asked| asked.path.clone()).collect();
    let expected = [
        "/a2a/one/.well-known/agent-card.json",
        "/a2a/one/.well-known/agent.json",
        "/.well-known/one/agent-card.json",
        "/.well-known/agent-card.json",
        "/.well-known/agent.json",
        "/a2a/one",
    ];
    assert_eq!(paths[..6], expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_start_prints_how_every_agent_elsewhere_is_called() {
    let agent = listing("http://0.0.0.0:{PORT}/rpc", "JSONRPC").await;
    let home = Home::new();
    let gateway = Setup::in_home(&home).args(["--memory", "--agent", &agent.url()]).start();
    let (_, rest) = gateway.terminate();
    let line = rest.lines().next().unwrap_or_default();
    for part in ["scripted: A2A 1.0 JSONRPC, no streaming, at ", "/rpc", "0.0.0.0", "deviates: address-replaced"] {
        assert!(line.contains(part), "{part} is not in: {rest}");
    }
}
