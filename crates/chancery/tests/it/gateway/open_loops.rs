//! A ↔ B on a node without callers: agents that never stop by themselves are stopped by what they pass on, and honest ones are not.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::relay::{Relay, Route};
use super::scripted::Asked;
use super::{ANYWHERE_HERE, QUICK};
use crate::operating::cli::run;
use crate::support::patience::soon;
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};

/// What agents pass on of the call they were given.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Passes {
    Token,
    /// As OpenTelemetry does it with its SDK: the trace id, a span of its own, and `tracestate` as it came.
    Instrumented,
    /// As its API does it alone: `traceparent` as it came.
    Traceparent,
    RuvectorContext,
    /// Nothing: its base URL is its own address.
    Address,
    Nothing,
}

impl Passes {
    fn on(self, asked: &Asked) -> (Vec<(String, String)>, Value) {
        let header = |name: &str| (name.to_owned(), asked.headers.get(name).cloned().unwrap_or_default());
        let span = format!("{:016x}", rand::random::<u64>().max(1));
        match self {
            Self::Token => (vec![header("chancery-hop-token")], Value::Null),
            Self::Instrumented => {
                let parent = header("traceparent").1;
                let trace = parent.split('-').nth(1).unwrap_or_default().to_owned();
                (vec![("traceparent".to_owned(), format!("00-{trace}-{span}-01")), header("tracestate")], Value::Null)
            }
            Self::Traceparent => (vec![header("traceparent")], Value::Null),
            Self::RuvectorContext => {
                let context = asked.params()["metadata"]["ruvector"]["context"].take();
                (Vec::new(), json!({ "ruvector": { "context": context } }))
            }
            Self::Address | Self::Nothing => (Vec::new(), Value::Null),
        }
    }
}

struct Scene {
    node: Server,
    home: Home,
    a: Relay,
    b: Relay,
}

impl Scene {
    async fn start(passes: Passes, answers_first: bool, settings: &str) -> Self {
        let listen = lasting_address();
        let bases: [Arc<OnceLock<String>>; 2] = Default::default();
        let relay = |own: usize, next: &'static str| {
            let base = Arc::clone(&bases[own]);
            Relay::start(move || Route {
                answers_first,
                ..Route::to(format!("{}/agents/{next}", base.get().expect("it is set"))).passing_on(move |asked| passes.on(asked))
            })
        };
        let (a, b) = (relay(0, "b").await, relay(1, "a").await);
        let mut config = format!("{QUICK}{ANYWHERE_HERE}{settings}");
        for (name, relay) in [("a", &a), ("b", &b)] {
            config += &format!(
                "[agents.{name}]\nurl = '{}'\nstream = 'always'\nprice = {{ per_call_usd = '0.02' }}\n{}",
                relay.agent.url(),
                if passes == Passes::RuvectorContext { "lineage = 'metadata'\n" } else { "" }
            );
        }
        let home = Home::new();
        let node = Setup::at(&home, listen).config(&config).start();
        for (base, name) in bases.iter().zip(["a", "b"]) {
            let url = if passes == Passes::Address { address(&home, name, &[]) } else { node.url().to_owned() };
            base.set(url).expect("it is set once");
        }
        Self { node, home, a, b }
    }

    /// Sends one message to A and waits until nothing moves any more.
    async fn go(&self) {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
        let request = reqwest::Client::new().post(format!("{}/agents/a", self.node.url())).header("A2A-Version", "1.0");
        let answer: Value = request.json(&body).send().await.expect("the node answers").json().await.expect("with JSON");
        assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
        soon("all that was asked is answered", async || {
            let (runs, answers) = (self.a.runs() + self.b.runs(), self.a.answers().len() + self.b.answers().len());
            // Each run made a call, and all but the last of those that came too late made another run.
            (answers == runs.min(24)).then_some(())
        })
        .await;
    }

    fn runs(&self) -> (usize, usize) {
        (self.a.runs(), self.b.runs())
    }
}

/// What `chancery agents url` prints.
fn address(home: &Home, agent: &str, more: &[&str]) -> String {
    let ran = run(home, ["agents", "url", agent].iter().chain(more));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

const PLACED: [(Passes, &str); 5] = [
    (Passes::Token, "verified"),
    (Passes::Instrumented, "traced"),
    (Passes::Traceparent, "traced"),
    (Passes::RuvectorContext, "claimed"),
    (Passes::Address, "inferred"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_is_refused_at_its_second_visit_whatever_the_agents_pass_on() {
    for (passes, attribution) in PLACED {
        let scene = Scene::start(passes, false, "").await;
        scene.go().await;
        assert_eq!(scene.runs(), (1, 1), "{passes:?}");
        let refusals = scene.b.refusals();
        assert_eq!(refusals.len(), 1, "{passes:?}: {refusals:?}");
        let said = format!("attribution={attribution}");
        assert!(refusals[0].starts_with("RECURSION_REVISIT") && refusals[0].contains(&said), "{passes:?}: {refusals:?}");
        assert!(refusals[0].contains("a → b → a"), "{passes:?}: {refusals:?}");
        let warned = scene.node.log().contains("no callers are configured: calls between agents are placed by");
        assert!(warned, "{}", scene.node.log());
        let listed = run(&scene.home, ["agents", "ls"]);
        assert!(listed.stdout.contains(&format!("{attribution} 1")), "{passes:?}: {}", listed.stdout);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cap_of_a_tree_holds_whatever_the_agents_pass_on() {
    let rules = "[recursion]\ndeny_revisit = false\nmax_call_depth = 64\n[budget.tree]\nmax_usd = '0.10'\n";
    for (passes, _) in PLACED {
        let scene = Scene::start(passes, false, rules).await;
        scene.go().await;
        let (a, b) = scene.runs();
        assert_eq!((a, b), (3, 2), "{passes:?}: five calls of 0.02 are paid, and no sixth");
        let refusals = scene.b.refusals().into_iter().chain(scene.a.refusals()).collect::<Vec<_>>();
        assert!(refusals.iter().all(|refusal| refusal.starts_with("BUDGET_EXHAUSTED")), "{passes:?}: {refusals:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_answer_first_and_call_on_afterwards_get_no_deeper_than_others() {
    let ways = [
        (Passes::Token, "late "),
        (Passes::Instrumented, "late "),
        (Passes::Traceparent, "late "),
        (Passes::Address, "late "),
        // It claims the agents that it came through, so it is refused like a call of an agent that waits. No task is above it, so the
        // table of agents does not say how it was placed.
        (Passes::RuvectorContext, ""),
    ];
    for (passes, attribution) in ways {
        let scene = Scene::start(passes, true, "").await;
        scene.go().await;
        let (a, b) = scene.runs();
        assert!((2..=9).contains(&(a + b)), "{passes:?}: depths 0 to 8 at most, {a} + {b}");
        let refusals = scene.b.refusals().into_iter().chain(scene.a.refusals()).collect::<Vec<_>>();
        assert_eq!(refusals.len(), 1, "{passes:?}: {refusals:?}");
        // A call that comes before the answer has been heard comes back to an agent that still waits.
        assert!(refusals[0].starts_with("RECURSION_"), "{passes:?}: {refusals:?}");
        let listed = run(&scene.home, ["agents", "ls"]);
        assert!(listed.stdout.contains(attribution), "{passes:?}: {}", listed.stdout);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_pass_on_nothing_run_on_and_are_warned_of() {
    let scene = Scene::start(Passes::Nothing, false, "").await;
    scene.go().await;
    assert_eq!(scene.runs(), (13, 12), "until they stop by themselves");
    let log = scene.node.log();
    let warnings = log.lines().filter(|line| line.contains("possible loop: ")).count();
    assert_eq!(warnings, 1, "once a minute: {log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_carried_on_by_cards_and_is_otherwise_a_path_like_any_other() {
    let scene = Scene::start(Passes::Address, false, "").await;
    let (node, home) = (&scene.node, &scene.home);
    let own = address(home, "a", &[]);
    let secret = own.rsplit('/').next().expect("a path").to_owned();
    assert!(own.starts_with(&format!("{}/via/", node.url())) && secret.len() == 26, "{own}");
    let get = async |url: String| {
        let response = reqwest::get(url).await.expect("the node answers");
        let caching = response.headers().get("cache-control").map(|value| value.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        (status, caching, response.bytes().await.unwrap())
    };
    for (path, named) in [("/agents/b", "/agents/b"), ("", "")] {
        let (status, caching, card) = get(format!("{own}{path}/.well-known/agent-card.json")).await;
        assert_eq!((status, caching.as_deref()), (200, Some("no-store")), "{path}");
        let card: Value = serde_json::from_slice(&card).expect("JSON");
        let interfaces = card["supportedInterfaces"].as_array().expect("interfaces");
        for interface in interfaces {
            let (url, binding) = (interface["url"].as_str().unwrap(), interface["protocolBinding"].as_str().unwrap());
            assert!(url.starts_with(&format!("{own}{named}")), "{url}");
            assert!(["JSONRPC", "HTTP+JSON"].contains(&binding), "{binding}");
        }
        let (_, _, plain) = get(format!("{}{path}/.well-known/agent-card.json", node.url())).await;
        assert!(!String::from_utf8_lossy(&plain).contains("/via/"), "cards of others do not name it");
    }
    let (_, _, catalog) = get(format!("{own}/agents")).await;
    assert!(String::from_utf8_lossy(&catalog).contains(&format!("{own}/agents/b/.well-known")));
    // Somebody else's secret is the path that nobody serves.
    let turned: String = secret.chars().rev().collect();
    for rest in ["", "/agents/b", "/.well-known/agent-card.json", "/agents"] {
        let (wrong, other) = (format!("via/{turned}{rest}"), format!("vib/{turned}{rest}"));
        let (one, two) = (get(format!("{}/{wrong}", node.url())).await, get(format!("{}/{other}", node.url())).await);
        assert_eq!((one.0, one.1), (two.0, two.1), "{rest}");
        assert_eq!(String::from_utf8_lossy(&one.2).replace("/via/", "/vib/"), String::from_utf8_lossy(&two.2), "{rest}");
    }
    let (status, _, _) = get(format!("{own}/admin/v1/agents")).await;
    assert_eq!(status, 404, "the admin API has no address");
    // Another address, while the old one still holds.
    let newer = address(home, "a", &["--rotate"]);
    assert_ne!(own, newer);
    for base in [&own, &newer] {
        let (status, _, card) = get(format!("{base}/agents/b/.well-known/agent-card.json")).await;
        assert_eq!(status, 200);
        assert!(String::from_utf8_lossy(&card).contains(base.as_str()), "each names the address it was asked at");
    }
    scene.go().await;
    let log = node.log();
    assert!(!log.contains(&secret) && !log.contains(newer.rsplit('/').next().unwrap()), "{log}");
    let unknown = run(home, ["agents", "url", "nobody"]);
    assert!(unknown.code != Some(0) && unknown.stderr.contains("no agent nobody"), "{}", unknown.stderr);
}

/// The original protocol's way to send, with a claim that makes it too deep and come back to the agent it is for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_send_with_a_claim_of_depth_and_of_a_visit_is_refused() {
    let node = Setup::conformance().start();
    // What stands in the message, and what beside it.
    let claim = async |within: &str, beside: &str| -> Value {
        let of = |context: &str| format!(r#"{{ "ruvector": {{ "context": {context} }} }}"#);
        let body = format!(
            r#"{{ "jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": {{ "id": "t-{:x}", "metadata": {}, "message": {{
                "role": "user", "parts": [{{ "type": "text", "text": "complete" }}], "metadata": {} }} }} }}"#,
            rand::random::<u64>(),
            of(beside),
            of(within),
        );
        let request = reqwest::Client::new().post(node.url()).header("Content-Type", "application/json").body(body);
        request.send().await.unwrap().json().await.unwrap()
    };
    let send = async |context: Value| claim("{}", &context.to_string()).await;
    let deep = send(json!({ "depth": 99, "visited_agents": ["conformance"] })).await;
    assert!(deep["error"]["message"].as_str().is_some_and(|message| message.starts_with("RECURSION_DEPTH")), "{deep}");
    let visited = send(json!({ "depth": 1, "visited_agents": ["conformance"] })).await;
    assert!(visited["error"]["message"].as_str().is_some_and(|message| message.starts_with("RECURSION_REVISIT")), "{visited}");
    // However it is written, wherever it stands, and whatever stands beside it.
    for depth in ["99", "99.0", "8.5", "\"99\"", "4294967296", "18446744073709551616", "1e300", "1e999"] {
        let context = format!(r#"{{ "depth": {depth} }}"#);
        for (within, beside) in [(&*context, r#"{ "depth": 0 }"#), (r#"{ "depth": 0 }"#, &*context)] {
            let deep = claim(within, beside).await;
            assert!(deep["error"]["message"].as_str().is_some_and(|said| said.starts_with("RECURSION_DEPTH")), "{depth}: {deep}");
        }
    }
    let (here, elsewhere) = (r#"{ "visited_agents": ["conformance"] }"#, r#"{ "depth": 1, "visited_agents": ["x"] }"#);
    for (within, beside) in [(here, elsewhere), (elsewhere, here)] {
        let visited = claim(within, beside).await;
        assert!(visited["error"]["message"].as_str().is_some_and(|said| said.starts_with("RECURSION_REVISIT")), "{visited}");
    }
    let crowd: Vec<String> = (0..1000).map(|number| format!("agent-{number}")).chain(["conformance".to_owned()]).collect();
    let crowded = send(json!({ "visited_agents": crowd })).await;
    assert!(crowded["error"]["message"].as_str().is_some_and(|said| said.starts_with("RECURSION_")), "{crowded}");
    for honest in
        [json!({ "depth": 1, "visited_agents": ["somebody"] }), json!({ "depth": -1 }), json!({ "depth": "deep" }), json!(7)]
    {
        let honest = send(honest).await;
        assert!(honest["result"].is_object(), "{honest}");
    }
}
