//! Caps against callers that lie about what their calls will cost, at a real node that is killed under their
//! calls and started again.

use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::operating::cli::run;
use crate::support::patience::soon;
use crate::support::server::{Home, Server, Setup};
use crate::tasks::crash::chance::Chance;

/// So many calls of `research` fit each cap, on dollars, tokens and tasks alike.
const CALLS: u64 = 10;
const CAPS: &str = "max_usd = '1'\nmax_tokens = 1000\nmax_tasks = 10\n";
const NODE: &str = r#"
[agents.planner]
run = "conformance"
price = { per_call_usd = "0", per_call_tokens = 0 }

[agents.research]
run = "conformance"
price = { per_call_usd = "0.10", per_call_tokens = 100 }

[agents.unpriced]
run = "conformance"

[callers.user]
key_env = "USER_KEY"

[callers.other]
key_env = "OTHER_KEY"

[callers.planner-bot]
key_env = "PLANNER_KEY"
agent = "planner"

[policy.default]
max_concurrency = 1000

[limits]
calls_per_second_per_caller = 0
calls_per_second_per_address = 0
"#;
const USER: &str = "key-of-the-user-0123456789abcdef";
const OTHER: &str = "key-of-the-other-0123456789abcdef";
const PLANNER: &str = "key-of-the-planner-0123456789abcdef";

fn start(home: &Home, budget: &str) -> Server {
    let setup = Setup::in_home(home).config(&format!("{NODE}{budget}"));
    setup.env("USER_KEY", USER).env("OTHER_KEY", OTHER).env("PLANNER_KEY", PLANNER).start()
}

/// What the liars say; a node refuses what is no number of dollars.
fn estimate(call: u64) -> Value {
    let usd = ["0", "0.000001", "0.09", "0.10", "10", "8999999999", "-1"][call as usize % 7];
    let tokens = [0, 1, 100, u64::MAX][call as usize % 4];
    json!({ "usd": usd, "tokens": tokens })
}

/// Made once: it reads the machine's certificates.
fn client() -> reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    CLIENT.get_or_init(|| reqwest::Client::builder().pool_max_idle_per_host(0).build().expect("a client")).clone()
}

async fn call(url: String, key: &str, text: &str, estimate: Value) -> Option<Value> {
    let metadata = json!({ "https://chancery.dev/a2a/governance/v1": { "estimate": estimate } });
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }], "metadata": metadata });
    let params = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
    let request = client().post(url).header("A2A-Version", "1.0").header("X-API-Key", key).json(&body);
    request.send().await.ok()?.json().await.ok()
}

/// Two hundred calls at once, each with another lie.
fn two_hundred(server: &Server, key: &'static str) -> Vec<tokio::task::JoinHandle<Option<Value>>> {
    let url = format!("{}/agents/research", server.url());
    let one = |number: u64| {
        let (url, text) = (url.clone(), ["echo", "sleep 30", "sleep 600000"][number as usize % 3]);
        tokio::spawn(async move { call(url, key, text, estimate(number)).await })
    };
    (0..200).map(one).collect()
}

fn micros(usd: &Value) -> u64 {
    let usd: chancery_core::MicroUsd = serde_json::from_value(usd.clone()).expect("an amount of money");
    u64::try_from(usd.0).expect("not negative")
}

/// Every budget of the node is within its caps, and nothing was ever reported past a reservation.
fn look(home: &Home) {
    let shown = run(home, ["--json", "budgets"]).json();
    for budget in shown["budgets"].as_array().expect("a list") {
        let number = |amount: &Value, of: &str| if of == "usd" { micros(&amount[of]) } else { amount[of].as_u64().unwrap() };
        for of in ["usd", "tokens", "tasks"].into_iter().filter(|of| !budget["limit"][of].is_null()) {
            let taken = number(&budget["settled"], of) + number(&budget["reserved"], of);
            assert!(taken <= number(&budget["limit"], of), "{of}: {budget}");
            assert_eq!(number(&budget["overrun"], of), 0, "{of}: {budget}");
        }
    }
}

/// How many calls of research were ever let in: every one is a task.
async fn let_in(server: &Server, key: &str) -> u64 {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": { "pageSize": 1 } });
    let url = format!("{}/agents/research", server.url());
    let request = client().post(url).header("A2A-Version", "1.0").header("X-API-Key", key).json(&body);
    let listed: Value = request.send().await.expect("the node answers").json().await.expect("with JSON");
    listed["result"]["totalSize"].as_u64().unwrap_or_else(|| panic!("{listed}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_lie_about_cost_passes_a_cap_at_a_known_price_however_often_the_node_is_killed() {
    let mut chance = Chance::new("no_lie_about_cost_passes_a_cap");
    for scope in ["tenant.default", "caller.user", "agent.research", "skill.'research/conformance'"] {
        let home = Home::new();
        let budget = format!("[budget.{scope}]\n{CAPS}window = '1d'\n");
        for _ in 0..2 {
            let server = start(&home, &budget);
            let calls = two_hundred(&server, USER);
            tokio::time::sleep(Duration::from_millis(chance.within(0..=150))).await;
            server.kill();
            for call in calls {
                call.await.expect("a caller does not panic");
            }
        }
        let server = start(&home, &budget);
        let calls = two_hundred(&server, USER);
        look(&home);
        for call in calls {
            call.await.expect("a caller does not panic");
        }
        look(&home);
        let ran = let_in(&server, USER).await;
        assert!((1..=CALLS).contains(&ran), "{ran} calls of 0.10 were let in under {scope} = 1.00");
    }
}

/// The window of the node's own budget is a minute, so only what stands in it at any moment is bounded.
#[tokio::test(flavor = "multi_thread")]
async fn no_lie_about_cost_passes_the_cap_of_the_node_however_often_it_is_killed() {
    let mut chance = Chance::new("no_lie_about_cost_passes_the_cap_of_the_node");
    let home = Home::new();
    let budget = "[budget.global]\nmax_usd_per_minute = '1'\nmax_tokens_per_minute = 1000\nmax_tasks_per_minute = 10\n";
    for round in 0..3 {
        let server = start(&home, budget);
        let calls = two_hundred(&server, USER);
        tokio::time::sleep(Duration::from_millis(chance.within(0..=150))).await;
        look(&home);
        if round == 2 {
            for call in calls {
                call.await.expect("a caller does not panic");
            }
            look(&home);
            assert!(let_in(&server, USER).await >= 1);
        } else {
            server.kill();
            for call in calls {
                call.await.expect("a caller does not panic");
            }
        }
    }
}

/// Killed under the calls: the tree's account is there again before the first call is let in.
#[tokio::test(flavor = "multi_thread")]
async fn no_lie_about_cost_passes_the_cap_of_a_tree_however_often_the_node_is_killed() {
    let mut chance = Chance::new("no_lie_about_cost_passes_the_cap_of_a_tree");
    let home = Home::new();
    let budget = format!("[budget.tree]\n{}", CAPS.replace("max_tasks = 10", "max_tasks = 11"));
    let mut server = start(&home, &budget);
    // A runner of this process ends with the node, and its tree lives on for as long as it lingers: each round has a tree of its own.
    for _ in 0..2 {
        let root = call(format!("{}/agents/planner", server.url()), USER, "sleep 600000", Value::Null).await.expect("an answer");
        assert!(root["result"]["task"]["id"].is_string(), "{root}");
        let calls = two_hundred(&server, PLANNER);
        tokio::time::sleep(Duration::from_millis(chance.within(0..=150))).await;
        server.kill();
        for call in calls {
            call.await.expect("a caller does not panic");
        }
        server = start(&home, &budget);
        look(&home);
        let root = root["result"]["task"]["id"].as_str().unwrap_or_default().to_owned();
        let tree = run(&home, ["--json", "tree", &root]).json();
        let tasks = tree["trees"][0]["tasks"].as_array().unwrap_or_else(|| panic!("{tree}"));
        let spend = |task: &Value| micros(&task["spend"]["settled"]["usd"]) + micros(&task["spend"]["reserved"]["usd"]);
        let spent: u64 = tasks.iter().map(spend).sum();
        assert!(tasks.len() as u64 <= CALLS + 1 && spent <= 1_000_000, "{spent} in {tree}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_lie_about_cost_passes_the_cap_of_a_tree_at_a_known_price() {
    let home = Home::new();
    let budget = format!("[budget.tree]\n{}", CAPS.replace("max_tasks = 10", "max_tasks = 11"));
    let server = start(&home, &budget);
    let root = call(format!("{}/agents/planner", server.url()), USER, "sleep 600000", Value::Null).await.expect("an answer");
    let root = root["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{root}")).to_owned();
    for call in two_hundred(&server, PLANNER) {
        call.await.expect("a caller does not panic");
    }
    look(&home);
    let ran = let_in(&server, PLANNER).await;
    assert!((1..=CALLS).contains(&ran), "{ran} calls of 0.10 were let in under a tree of 1.00");
    server.kill();
    let server = start(&home, &budget);
    look(&home);
    let tree = run(&home, ["--json", "tree", &root]).json();
    let tasks = tree["trees"][0]["tasks"].as_array().unwrap_or_else(|| panic!("{tree}"));
    let spent: u64 =
        tasks.iter().map(|task| micros(&task["spend"]["settled"]["usd"]) + micros(&task["spend"]["reserved"]["usd"])).sum();
    assert!(tasks.len() as u64 == ran + 1 && spent <= 1_000_000, "{spent} in {tree}");
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_that_expects_ten_dollars_leaves_room_for_others_and_explain_says_so() {
    let home = Home::new();
    let server = start(&home, "[budget.global]\nmax_usd_per_minute = '10'\n");
    let at = |agent: &str| format!("{}/agents/{agent}", server.url());
    let ten = json!({ "usd": "10" });
    let greedy = call(at("unpriced"), USER, "sleep 600000", ten.clone()).await.expect("an answer");
    let greedy = greedy["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{greedy}")).to_owned();
    let priced = call(at("research"), USER, "sleep 600000", ten).await.expect("an answer");
    let priced = priced["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{priced}")).to_owned();
    for agent in ["unpriced", "research", "research"] {
        let answer = call(at(agent), OTHER, "sleep 600000", Value::Null).await.expect("an answer");
        assert!(answer["error"].is_null(), "{agent}: {answer}");
    }
    for (task, says) in [
        (&greedy, ["hint_usd=10.00  estimate_usd=2.50", "source=remainder", "estimate: remainder", "hold, but for what calls"]),
        (
            &priced,
            ["hint_usd=10.00  estimate_usd=1.00", "source=config+hint", "estimate: config+hint", "hold: the price is known"],
        ),
    ] {
        let ran = soon("the task is kept", async || Some(run(&home, ["explain", task])).filter(|ran| ran.code == Some(0))).await;
        for says in says {
            assert!(ran.stdout.contains(says), "{says} is not in:\n{}", ran.stdout);
        }
    }
    look(&home);
}
