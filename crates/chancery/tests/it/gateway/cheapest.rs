//! What agents say that their work costs decides who gets it, where the config says so.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;

use super::QUICK;
use super::scripted::{Asked, Script, Scripted};
use crate::support::patience::soon;
use crate::support::server::{Home, Setup};

const SEND: &str = "SendStreamingMessage";
const SETTINGS: &str = "[routing]\ndefault_selector = 'cheapest_under_latency'\nlatency_budget_ms = 600000\nfallback = 'none'\nseed = 1\n\
    [health]\ncheck_every_ms = 0\neject_latency_multiple = 1000\n";

/// Says what each task cost, the first of them not before it is let.
async fn agent(cost_usd: &'static str, cue: &Arc<Semaphore>) -> Scripted {
    let waiting = Arc::clone(cue);
    Scripted::agent(move |asked: &Asked| {
        let task = json!({ "id": format!("t-{}", asked.before), "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" },
            "metadata": { "usage": { "cost_usd": cost_usd } } });
        let began = Script::stream();
        // The gateway looks a task without content up once more, which is answered at once.
        let began = if asked.before == 0 && asked.kind() == SEND { began.wait(&waiting) } else { began };
        began.event(asked, &json!({ "task": task })).end()
    })
    .await
}

/// The cheap one is the slower one: whoever goes by time alone asks the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cheapest_agent_gets_the_tasks() {
    let (cue, none) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(1)));
    let (cheap, dear) = (agent("0.001", &cue).await, agent("0.01", &none).await);
    let home = Home::new();
    let agents = format!("[agents.front]\nstream = 'always'\nurl = ['{}', '{}']\n", cheap.url(), dear.url());
    let gateway = Setup::in_home(&home).config(&format!("{QUICK}{SETTINGS}{agents}")).start();

    // Each is tried once, because nothing is known of it; the cheap one is let go when the other is done.
    let asked = || cheap.count(SEND) + dear.count(SEND);
    let (first, second, ()) = futures::join!(
        gateway.send("x"),
        async {
            soon("one is asked", async || (asked() == 1).then_some(())).await;
            gateway.send("x").await
        },
        async {
            soon("both are asked", async || (asked() == 2).then_some(())).await;
            cue.add_permits(1);
        }
    );
    for sent in [first, second] {
        assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    }
    assert_eq!((cheap.count(SEND), dear.count(SEND)), (1, 1));
    for _ in 0..4 {
        gateway.send("x").await;
    }
    assert_eq!((cheap.count(SEND), dear.count(SEND)), (5, 1), "{}", gateway.log());
}
