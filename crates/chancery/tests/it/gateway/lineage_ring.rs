//! Two nodes with an agent between them each way: a task that comes back to the first node is placed there, although its agents pass
//! on nothing but the hop token they were given.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::relay::{Relay, Route};
use super::{ANYWHERE_HERE, QUICK};
use crate::support::patience::soon;
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Setup};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_pass_on_only_the_token_are_stopped_when_they_come_back_over_another_node() {
    let next: [Arc<OnceLock<String>>; 2] = Default::default();
    let relay = |place: usize| {
        let next = Arc::clone(&next[place]);
        Relay::start(move || {
            Route::to(next.get().expect("it is set").clone()).passing_on(|asked| {
                let token = asked.headers.get("chancery-hop-token").cloned().unwrap_or_default();
                (vec![("chancery-hop-token".to_owned(), token)], Value::Null)
            })
        })
    };
    let (a, b) = (relay(0).await, relay(1).await);
    let node = |name: &str, agent: &Relay| {
        let url = agent.agent.url();
        let config = format!("{QUICK}{ANYWHERE_HERE}[agents.{name}]\nurl = '{url}'\nstream = 'always'\n");
        Setup::at(&Home::new(), lasting_address()).config(&config).start()
    };
    let (first, second) = (node("a", &a), node("b", &b));
    next[0].set(format!("{}/agents/b", second.url())).unwrap();
    next[1].set(format!("{}/agents/a", first.url())).unwrap();
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let answer = first.call("SendMessage", json!({ "message": message })).await;
    assert!(answer.to_string().contains("COMPLETED"), "{answer}");
    soon("B was answered", async || (b.answers().len() == 1).then_some(())).await;
    assert_eq!((a.runs(), b.runs()), (1, 1));
    let [refusal] = &b.refusals()[..] else { panic!("{:?}", b.answers()) };
    assert!(refusal.starts_with("RECURSION_REVISIT") && refusal.contains("attribution=traced"), "{refusal}");
}
