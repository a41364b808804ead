//! Calls at the root address are routed by the skill they name, over every version and binding, here and elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_protocol::{
    GetTask, Message, Metadata, Reply, Request, Role, SendConfiguration, SendMessage, Sent, Task, TaskEvent, TaskState, Version,
};
use serde_json::{Value, json};

use crate::operating::cli::run;
use crate::support::patience::soon;
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, Conditions, Refusal, WireClient};

/// The conformance agent does what it is told; the echo agents say it again. So their answers tell who served.
const ONE_OF_EACH: &str = "[agents.front]\nrun = 'conformance'\n[agents.say]\nrun = 'echo'\n[swp]\nlisten = '127.0.0.1:0'\n";
const TWO_ALIKE: &str = "[agents.front]\nrun = 'echo'\n[agents.a]\nrun = 'conformance'\n[agents.b]\nrun = 'conformance'\n\
    [routing]\ndefault_selector = 'round_robin'\nseed = 7\n";

fn node(config: &str) -> Server {
    let home = Home::new();
    let data = home.data();
    Setup::in_home(&home).args(["--memory", "--data"]).args([data]).config(config).start()
}

fn send(combination: Combination, name: &str, skill: Option<&str>, text: &str) -> SendMessage {
    let metadata = skill.map(|skill| Metadata::from_object(json!({ "skill": skill }).as_object().expect("an object").clone()));
    SendMessage {
        tenant: None,
        message: Arc::new(Message::text(Role::User, format!("m-{name}"), text)),
        configuration: SendConfiguration::default(),
        metadata,
        client_task_id: (combination.version == Version::Original).then(|| format!("own-{name}").into()),
        unknown: Default::default(),
    }
}

fn task_of(reply: Result<Reply, Refusal>) -> Arc<Task> {
    match reply {
        Ok(Reply::Sent(Sent::Task(shown)) | Reply::Task(shown)) => shown.task,
        other => panic!("{other:?}"),
    }
}

/// The agent of each task the node has, by the task.
fn agents_of_tasks(node: &Server) -> BTreeMap<String, String> {
    let listed = run(node.home(), ["--json", "tasks", "list", "--limit", "100"]).json();
    let tasks = listed["tasks"].as_array().unwrap_or_else(|| panic!("{listed}"));
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{listed}")).to_owned();
    tasks.iter().map(|task| (text(&task["id"]), text(&task["agent"]))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_skill_of_a_call_says_who_serves_it_over_every_version_and_binding() {
    let node = node(ONE_OF_EACH);
    for combination in Combination::ALL.into_iter().chain([Combination::SWP]) {
        let client = WireClient::new(node.url(), combination);
        let conditions = Conditions::default();
        for (skill, state) in [
            (Some("echo"), TaskState::Completed),
            (Some("conformance"), TaskState::Failed),
            (Some("nobody-lists-this"), TaskState::Failed),
            (None, TaskState::Failed),
        ] {
            let name = format!("{}-{}", combination.name(), skill.unwrap_or("none"));
            // Of SWP the kind is the skill, and the client of these tests names the agent at the root there.
            if combination == Combination::SWP && skill == Some("echo") {
                continue;
            }
            let made = send(combination, &name, skill, "fail no luck");
            let task = task_of(client.call(&Request::SendMessage(made), &conditions).await);
            assert_eq!(task.status.state, state, "{name}");
            let get = GetTask { tenant: None, id: task.id.clone(), history_length: None };
            let found = task_of(client.call(&Request::GetTask(get), &conditions).await);
            assert_eq!((&found.id, found.status.state), (&task.id, state), "{name}: it is found where it was made");
        }
        if combination == Combination::SWP {
            continue;
        }
        let name = format!("{}-stream", combination.name());
        let made = send(combination, &name, Some("echo"), "fail no luck");
        let mut stream = client.stream(&Request::StreamMessage(made), &conditions).await.expect("a stream");
        let mut last = None;
        while let Some(seen) = stream.next().await.expect("events") {
            if let TaskEvent::Status(change) = &seen.event {
                last = Some(change.status.state);
            }
        }
        assert_eq!(last, Some(TaskState::Completed), "{name}");
    }
    let served: Vec<String> = agents_of_tasks(&node).into_values().collect();
    let by = |agent: &str| served.iter().filter(|served| *served == agent).count();
    assert_eq!((by("say"), by("front")), (7 + 7, 7 * 3 + 3));
}

#[tokio::test]
async fn the_kind_of_an_swp_task_names_a_skill_of_any_agent() {
    let node = node(ONE_OF_EACH);
    let (authority, _) = crate::support::wire_client::swp::address(node.url()).await;
    let url = format!("swp://{authority}");
    let told = |kind: &str, text: &str| run(node.home(), ["swp", "send", &url, kind, text]);
    let ran = told("echo", "fail no luck");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "fail no luck\n"), "{}", ran.stderr);
    assert_eq!(told("conformance", "fail no luck").code, Some(1), "a skill of the agent at the root");
    assert_eq!(told("front", "fail no luck").code, Some(1), "an agent by its name");
    let ran = told("nobody-lists-this", "x");
    assert!(ran.code == Some(1) && ran.stderr.contains("UNSUPPORTED_OPERATION"), "{}", ran.stderr);
    let agents: Vec<String> = agents_of_tasks(&node).into_values().collect();
    assert_eq!(agents.iter().filter(|agent| *agent == "say").count(), 1, "{agents:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_agents_share_the_calls_for_a_skill_and_each_keeps_its_tasks() {
    let node = node(TWO_ALIKE);
    for combination in Combination::ALL {
        let client = WireClient::new(node.url(), combination);
        for round in 0..2 {
            let name = format!("{}-{round}", combination.name());
            let key = Conditions { idempotency_key: Some(name.clone()), ..Conditions::default() };
            let ask = Request::SendMessage(send(combination, &name, Some("conformance"), "ask which?"));
            let asked = task_of(client.call(&ask, &key).await);
            assert_eq!(asked.status.state, TaskState::InputRequired, "{name}");
            let again = task_of(client.call(&ask, &key).await);
            assert_eq!(again.id, asked.id, "{name}: the same call is the same task");

            let mut answer = send(combination, &name, None, "blue");
            answer.message = Arc::new(Message {
                task_id: (combination.version != Version::Original).then(|| asked.id.clone()),
                ..Message::text(Role::User, format!("answer-{name}"), "blue")
            });
            let answered = task_of(client.call(&Request::SendMessage(answer), &Conditions::default()).await);
            assert_eq!((&answered.id, answered.status.state), (&asked.id, TaskState::Completed), "{name}");
        }
    }
    let mut served = BTreeMap::new();
    for agent in agents_of_tasks(&node).into_values() {
        *served.entry(agent).or_insert(0) += 1;
    }
    assert_eq!(served, BTreeMap::from([("a".to_owned(), 7), ("b".to_owned(), 7)]), "each serves every second call");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_is_routed_only_to_agents_it_may_call_and_explain_names_the_one_that_served() {
    let home = Home::new();
    let key = |name: &str, grants: &[&str]| {
        let grants = grants.iter().flat_map(|grant| ["--may-call", grant]);
        let ran = run(&home, ["callers", "add", name].into_iter().chain(grants));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout.trim_end().to_owned()
    };
    // Grants are checked against the agents when the node starts.
    let node = Setup::in_home(&home).config(&format!("{TWO_ALIKE}[callers.x]\nkey_env = 'X_KEY'\n"));
    let keys =
        [("both", &["front", "a", "b"][..]), ("one", &["front", "b"]), ("skill", &["b/conformance"]), ("none", &["front"])];
    let keys = keys.map(|(name, grants)| (name, key(name, grants)));
    let node = node.env("X_KEY", "key-of-x-0123456789abcdef0123456789").start();
    let client = WireClient::new(node.url(), Combination::ALL[0]);
    for (name, key) in keys {
        let conditions = Conditions { api_key: Some(key), ..Conditions::default() };
        for round in 0..4 {
            let call = send(Combination::ALL[0], &format!("{name}-{round}"), Some("conformance"), "complete ok");
            let task = task_of(client.call(&Request::SendMessage(call), &conditions).await);
            let explained = run(&home, ["--json", "explain", task.id.as_str()]).json();
            let agent = explained["agent"].as_str().expect("an agent");
            let allowed: &[&str] = match name {
                "both" => &["a", "b"],
                "none" => &["front"],
                _ => &["b"],
            };
            assert!(allowed.contains(&agent), "{name} was served by {agent}");
        }
    }
}

/// Agents elsewhere, each in a node of its own: when one is gone, the other serves the skill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skill_of_two_agents_elsewhere_is_served_by_the_one_that_is_there() {
    let (one, other) = (node("[agents.x]\nrun = 'conformance'\n"), node("[agents.x]\nrun = 'conformance'\n"));
    let config = format!(
        "[agents.front]\nrun = 'echo'\n[agents.a]\nurl = '{}'\n[agents.b]\nurl = '{}'\n\
         [routing]\ndefault_selector = 'round_robin'\nseed = 7\n[health]\nfailures = 1\ncooldown_ms = 600000\nmax_cooldown_ms = 600000\n\
         [peers]\nretries = 0\n",
        one.url(),
        other.url()
    );
    let gateway = node(&config);
    let client = WireClient::new(gateway.url(), Combination::ALL[0]);
    let tell = async |name: String| {
        let call = send(Combination::ALL[0], &name, Some("conformance"), "complete ok");
        client.call(&Request::SendMessage(call), &Conditions::default()).await
    };
    // Until the cards are read nobody lists the skill.
    soon("both agents are known", async || {
        let page: Value = reqwest::get(format!("{}/agents?skill=conformance", gateway.url())).await.ok()?.json().await.ok()?;
        (page["agents"].as_array()?.len() == 2).then_some(())
    })
    .await;
    for round in 0..6 {
        assert_eq!(task_of(tell(format!("up-{round}")).await).status.state, TaskState::Completed);
    }
    let served: Vec<String> = agents_of_tasks(&gateway).into_values().collect();
    assert_eq!(served.iter().filter(|agent| *agent == "a").count(), 3, "{served:?}");

    one.kill();
    // The first call to it fails and opens its breaker; from then on it is left alone.
    for round in 0..2 {
        let _ = tell(format!("down-{round}")).await;
    }
    for round in 0..6 {
        let task = task_of(tell(format!("left-{round}")).await);
        assert_eq!(task.status.state, TaskState::Completed, "{}", gateway.log());
        let agents = agents_of_tasks(&gateway);
        assert_eq!(agents[task.id.as_str()], "b");
    }
}
