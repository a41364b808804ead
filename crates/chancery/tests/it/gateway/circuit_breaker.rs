//! The ADR's `circuit_breaker`: a replica that fails too often leaves the pool, is tried once after a while, and is back when it
//! does well. What is no fault of its own is not held against it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::scripted::{Asked, Script, Scripted};
use super::{QUICK, streaming_from};
use crate::operating::cli::run;
use crate::support::patience::soon;
use crate::support::server::{Home, Server, Setup};

const SEND: &str = "SendStreamingMessage";
/// Turn about, three strikes, and a rest long enough to be seen. Nobody asks it but callers.
const SETTINGS: &str = "[routing]\ndefault_selector = 'round_robin'\nfallback = 'none'\nseed = 1\n\
    [health]\nfailures = 3\nfailure_percent_of = 1000\ncooldown_ms = 4000\nmax_cooldown_ms = 4000\ncheck_every_ms = 0\neject_latency_multiple = 1000\n";

/// An agent that does well, or not, as the test says.
async fn agent(well: &Arc<AtomicBool>) -> Scripted {
    let well = Arc::clone(well);
    Scripted::agent(move |asked: &Asked| {
        if !well.load(Ordering::SeqCst) {
            return Script::page(503, "text/plain", "later");
        }
        let status = json!({ "state": "TASK_STATE_COMPLETED" });
        let artifacts = json!([{ "artifactId": "a", "parts": [{ "text": "done" }] }]);
        let task = json!({ "task": { "id": format!("t-{}", asked.before), "contextId": "c", "status": status, "artifacts": artifacts } });
        Script::events(asked, [&task]).end()
    })
    .await
}

async fn state(server: &Server) -> String {
    server.send("x").await["task"]["status"]["state"].as_str().expect("a state").to_owned()
}

fn breakers(home: &Home) -> Vec<String> {
    let health = run(home, ["agents", "health", "front", "--json"]).json();
    let word = |replica: &Value| replica["breaker"].as_str().expect("a word").to_owned();
    health["replicas"].as_array().expect("replicas").iter().map(word).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn circuit_breaker() {
    let (good, flapping) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
    let (sound, bad) = (agent(&good).await, agent(&flapping).await);
    let home = Home::new();
    let agents = format!("[agents.front]\nstream = 'always'\nurl = ['{}', '{}']\n", sound.url(), bad.url());
    let gateway = Setup::in_home(&home).config(&format!("{QUICK}{SETTINGS}{agents}")).start();

    // It fails three times, once with each of its turns, and then it is not asked.
    soon("the breaker opens", async || {
        state(&gateway).await;
        (bad.count(SEND) == 3).then_some(())
    })
    .await;
    assert!(breakers(&home).contains(&"open".to_owned()), "{:?}", breakers(&home));
    let before = sound.count(SEND);
    for _ in 0..3 {
        assert_eq!(state(&gateway).await, "TASK_STATE_COMPLETED", "the other one does it");
    }
    assert_eq!(sound.count(SEND), before + 3);

    // After its rest one call tries it. It fails again, and rests again.
    soon("a call tries it", async || {
        state(&gateway).await;
        (bad.count(SEND) == 4).then_some(())
    })
    .await;
    assert!(breakers(&home).contains(&"open".to_owned()), "{:?}", breakers(&home));

    // It does well when it is tried the next time, and is back in full.
    flapping.store(true, Ordering::SeqCst);
    soon("a call tries it again", async || {
        assert_eq!(state(&gateway).await, "TASK_STATE_COMPLETED");
        (bad.count(SEND) == 5).then_some(())
    })
    .await;
    let (of_sound, of_bad) = (sound.count(SEND), bad.count(SEND));
    for _ in 0..6 {
        assert_eq!(state(&gateway).await, "TASK_STATE_COMPLETED");
    }
    assert_eq!((sound.count(SEND) - of_sound, bad.count(SEND) - of_bad), (3, 3), "turn about");
    assert_eq!(breakers(&home), ["closed", "closed"]);
}

/// An agent may say no at the door or as the first word of its stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_an_agent_refuses_says_nothing_against_the_agent() {
    let refused = |code: i64, in_stream: bool| {
        Scripted::agent(move |asked: &Asked| match in_stream {
            false => Script::error(asked, code, "not with me"),
            true => Script::stream().refusal(asked, code, "not with me").end(),
        })
    };
    for (code, in_stream, asked) in
        [(-32602, false, 6), (-32602, true, 6), (-32046, true, 6), (-32603, false, 3), (-32603, true, 3)]
    {
        let agent = refused(code, in_stream).await;
        let gateway = streaming_from(&agent.url(), &format!("{QUICK}{SETTINGS}"));
        for _ in 0..6 {
            gateway.send("x").await;
        }
        assert_eq!(agent.count(SEND), asked, "{code}, in the stream: {in_stream}\n{}", gateway.log());
    }
}

/// The one stream we allow ourselves is open, so that nobody else gets as far as the agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_limits_say_nothing_against_the_agent() {
    let cue = Arc::new(Semaphore::new(0));
    let waiting = Arc::clone(&cue);
    let agent = Scripted::agent(move |asked: &Asked| {
        let status = json!({ "state": "TASK_STATE_COMPLETED" });
        let artifacts = json!([{ "artifactId": "a", "parts": [{ "text": "done" }] }]);
        let task = json!({ "task": { "id": format!("t-{}", asked.before), "contextId": "c", "status": status, "artifacts": artifacts } });
        Script::stream().wait(&waiting).event(asked, &task).end()
    })
    .await;
    let gateway = streaming_from(&agent.url(), &format!("{QUICK}streams = 1\nqueue_ms = 20\n{SETTINGS}"));
    let ((), first) = futures::join!(
        async {
            soon("the agent is asked", async || (agent.count(SEND) == 1).then_some(())).await;
            for _ in 0..6 {
                let turned_away = gateway.send("x").await;
                let told = turned_away["task"]["status"]["message"]["parts"][0]["text"].as_str();
                assert_eq!(told, Some("agent front: too many calls to this agent"), "{turned_away}");
            }
            cue.add_permits(2);
        },
        state(&gateway)
    );
    assert_eq!((first.as_str(), state(&gateway).await.as_str()), ("TASK_STATE_COMPLETED", "TASK_STATE_COMPLETED"));
    assert_eq!(breakers(gateway.home()), ["closed"]);
}
