//! Several nodes: two that list each other, three in a row under the cap of the first, and one that is killed again and again.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::one_way::{cards_of, path};
use super::{ANYWHERE_HERE, QUICK};
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::Combination;
use crate::tasks::crash::chance::Chance;

fn node(listen: SocketAddr, config: &str) -> Server {
    let home = Home::new();
    let data = home.data();
    Setup::at(&home, listen).args(["--memory", "--data"]).args([data]).config(&format!("{QUICK}{ANYWHERE_HERE}{config}")).start()
}

async fn send(node: &Server, metadata: Value) -> Value {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "echo hello" }], "metadata": metadata });
    node.call("SendMessage", json!({ "message": message })).await
}

/// Each gives what it gets to the other. The first knows its own token when it comes back, and ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_that_list_each_other_end_the_one_task_they_are_sent() {
    for combination in Combination::ALL {
        let places = [lasting_address(), lasting_address()];
        let urls = places.map(|place| format!("http://{place}"));
        let cards = [cards_of(&urls[0]).await, cards_of(&urls[1]).await];
        let listing = |other: usize| format!("[agents.peer]\nurl = '{}{}'\n", cards[other].url(), path(combination));
        let nodes = [node(places[0], &listing(1)), node(places[1], &listing(0))];
        let answer = send(&nodes[0], json!({})).await;
        let text = answer.to_string();
        assert!(text.contains("RECURSION_REVISIT") && !text.contains("COMPLETED"), "{}: {answer}", combination.name());
        for node in &nodes {
            let listed = node.call("ListTasks", json!({})).await;
            let tasks = listed["result"]["tasks"].as_array().map_or(0, Vec::len);
            assert!(tasks <= 1, "{}: {tasks} tasks: {listed}", combination.name());
        }
    }
}

/// What the first may spend is all that the others may, whatever the caller says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cap_of_the_first_node_binds_the_third() {
    for (price, fits) in [("0.05", true), ("0.06", false)] {
        for combination in Combination::ALL {
            let last = node(
                lasting_address(),
                &format!("[agents.conformance]\nrun = 'conformance'\nprice = {{ per_call_usd = '{price}' }}\n"),
            );
            let last_cards = cards_of(last.url()).await;
            let second =
                node(lasting_address(), &format!("[agents.middle]\nurl = '{}{}'\n", last_cards.url(), path(combination)));
            let second_cards = cards_of(second.url()).await;
            let cap = "[budget.tree]\nmax_usd = '0.05'\n";
            let first =
                node(lasting_address(), &format!("{cap}[agents.front]\nurl = '{}{}'\n", second_cards.url(), path(combination)));
            for said in [json!({}), json!({ "ruvector": { "budget": { "usd": 5 } } })] {
                let answer = send(&first, said.clone()).await;
                assert_eq!(answer.to_string().contains("TASK_STATE_COMPLETED"), fits, "{} {said}: {answer}", combination.name());
                assert_eq!(answer.to_string().contains("BUDGET_EXHAUSTED"), !fits, "{} {answer}", combination.name());
            }
        }
    }
}

/// What the first node has seen tasks cost is no bound for the next one: those that were free may go on being so under a cap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_tasks_cost_before_is_no_cap_for_the_next_one() {
    for cap in ["[budget.tree]\nmax_usd = '0.50'\n", "[budget.caller.'*']\nmax_usd = '0.50'\nwindow = '1d'\n"] {
        let back = node(lasting_address(), "[agents.conformance]\nrun = 'conformance'\n");
        let front = node(lasting_address(), &format!("{cap}[agents.front]\nurl = '{}'\n", back.url()));
        for number in 0..8 {
            let answer = send(&front, json!({})).await;
            assert!(answer.to_string().contains("TASK_STATE_COMPLETED"), "{number}, {cap}: {answer}");
        }
    }
}

/// Killed at any moment under load: what was admitted counts, no more and no less.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_goes_on_where_it_was_after_every_kill() {
    const CAP: usize = 60;
    let mut chance = Chance::new("a ledger after every kill");
    let home = Home::new();
    let config = format!(
        "[limits]\ncalls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\n[budget.global]\n\
         [budget.agent.conformance]\nmax_tasks = {CAP}\nmax_usd = '0.60'\nwindow = '1d'\n\
         [agents.conformance]\nrun = 'conformance'\nprice = {{ per_call_usd = '0.01' }}\n"
    );
    let start = || Setup::in_home(&home).config(&config).start();
    for _kill in 0..crate::support::counts::full_counts(4, 40) {
        let server = start();
        let url = server.url().to_owned();
        let calls: Vec<_> = (0..8)
            .map(|number| {
                let url = url.clone();
                tokio::spawn(async move {
                    let text = ["echo", "sleep 40", "sleep 600000"][number % 3];
                    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
                    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
                    let request = reqwest::Client::new().post(url).header("A2A-Version", "1.0").json(&body);
                    drop(request.send().await);
                })
            })
            .collect();
        tokio::time::sleep(std::time::Duration::from_millis(chance.within(0..=120))).await;
        server.kill();
        for call in calls {
            call.await.expect("a caller does not panic");
        }
    }
    let server = start();
    let mut refused = None;
    for _ in 0..=CAP {
        let answer = server
            .call("SendMessage", json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "echo" }] } }))
            .await;
        if answer["error"].is_object() {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("the cap is reached");
    assert!(
        refused["error"]["message"].as_str().is_some_and(|message| message.starts_with("BUDGET_EXHAUSTED agent")),
        "{refused}"
    );
    let listed = server.call("ListTasks", json!({ "pageSize": 1 })).await;
    assert_eq!(listed["result"]["totalSize"], json!(CAP), "every task that was ever admitted counts, and nothing else does");
}
