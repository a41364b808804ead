//! A database that is away for a while: callers wait or are told to come back, nothing is half done, and streams stay open.

use std::time::Duration;

use chancery_protocol::{Binding, ErrorKind, Message, Request, Role, SendConfiguration, SendMessage, Version};
use chancery_testkit::PostgresServer;
use serde_json::json;
use tonic_types::StatusExt as _;

use super::{line_to, state};
use crate::support::line::{Beside, Event};
use crate::support::patience::soon;
use crate::support::postgres::on_database;
use crate::support::server::Home;
use crate::support::wire_client::{Combination, Conditions, RawCall, RawClient, Refusal, WireClient};
use crate::tasks::disk::readiness;

/// Callers are told to come back soon.
const HASTY: &str = "[store]\npatience_ms = 300\n[swp]\nlisten = '127.0.0.1:0'\n";

fn message(combination: Combination) -> SendMessage {
    let own_id = (combination.version == Version::Original).then(|| "t-refused".into());
    SendMessage {
        tenant: None,
        message: Message::text(Role::User, "m", "complete meanwhile").into(),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: own_id,
        unknown: Default::default(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_database_every_binding_says_come_back_and_open_streams_go_on_afterwards() {
    let (home, mut database) = (Home::new(), PostgresServer::start(true));
    let server = on_database(&home, &database.url("postgres"), HASTY);
    let line = line_to(&home, &server);
    let kept = line.send("complete before").await["task"].take();
    let mut streams = [line.streaming_send("stream 1000000 20").await, line.streaming_send("sleep 600000").await];
    let mut seen: Vec<Vec<Event>> = Vec::new();
    for stream in &mut streams {
        seen.push(vec![stream.next().await.unwrap().expect("the stream is open")]);
    }
    assert_eq!(readiness(&server).await.0, 200);
    database.stop_at_once();

    let raw = RawClient::new(server.url());
    for combination in Combination::ALL.into_iter().chain([Combination::SWP]) {
        let request = Request::SendMessage(message(combination));
        let refused = WireClient::new(server.url(), combination).call(&request, &Conditions::default()).await;
        let refusal = refused.err().unwrap_or_else(|| panic!("{} was answered", combination.name()));
        refusal.check(ErrorKind::Unavailable, combination).unwrap();
        match (combination.binding, &refusal) {
            (Binding::Grpc, Refusal::Grpc(status)) => {
                let delay = status.get_error_details().retry_info().and_then(|info| info.retry_delay);
                assert_eq!(delay, Some(Duration::from_secs(5)), "{}", combination.name());
            }
            (Binding::Swp, refusal) => assert!(refusal.message().ends_with("; retry after 5 s"), "{}", refusal.message()),
            _ => {
                let answer = raw.ask(&RawCall::of(combination, &request).expect("every version can send")).await;
                assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{answer:?}");
            }
        }
    }
    let (status, body) = readiness(&server).await;
    assert_eq!(status, 503, "{body}");
    assert!(body["reason"].as_str().is_some_and(|reason| reason.contains("cannot be reached")), "{body}");
    let alive = reqwest::get(format!("{}/livez", server.url())).await.unwrap();
    assert_eq!(alive.status().as_u16(), 200);
    soon("the log says it", async || server.log().contains("the database is away: calls wait for it").then_some(())).await;

    database.go_on();
    soon("the node is ready again", async || (readiness(&server).await.0 == 200).then_some(())).await;
    let listed = server.call("ListTasks", json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 3, "none of the refused calls made a task: {listed}");
    assert_eq!(server.call("GetTask", json!({ "id": kept["id"] })).await["result"], kept);
    let first = seen[0][0].id;
    while seen[0].len() < 100 {
        let event = streams[0].next().await.unwrap().expect("the stream stayed open");
        seen[0].push(event);
    }
    let ids: Vec<u64> = seen[0].iter().map(|event| event.id).collect();
    assert_eq!(ids, (first..first + 100).collect::<Vec<_>>(), "without gaps and repeats");
    let quiet = seen[1][0].payload["task"]["id"].clone();
    let cancelled = server.call("CancelTask", json!({ "id": quiet })).await;
    assert_eq!(state(&cancelled["result"]), "TASK_STATE_CANCELED", "{cancelled}");
    let mut rest = Vec::new();
    while let Some(event) = streams[1].next().await.unwrap() {
        rest.push(event);
    }
    assert!(rest.last().is_some_and(Event::ends_the_task), "{rest:?}");
    let after = line.send("complete after").await;
    assert_eq!(state(&after["task"]), "TASK_STATE_COMPLETED", "{after}");
    soon("the log says it", async || server.log().contains("the database is back").then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_for_a_database_that_is_back_in_time() {
    let (home, mut database) = (Home::new(), PostgresServer::start(true));
    let server = on_database(&home, &database.url("postgres"), "[store]\npatience_ms = 60000\n");
    let line = line_to(&home, &server);
    let kept = line.send("complete before").await["task"].take();
    database.stop_at_once();
    let params = |key: &str| {
        let message = json!({ "messageId": key, "role": "ROLE_USER", "parts": [{ "text": "complete meanwhile" }] });
        json!({ "message": message })
    };
    let sends: Vec<_> = (0..8)
        .map(|number| {
            let (line, key) = (line.clone(), format!("key-{number}"));
            let params = params(&key);
            tokio::spawn(async move { line.call("SendMessage", &params, Beside::key(&key)).await.unwrap() })
        })
        .collect();
    let get = {
        let (line, id) = (line.clone(), kept["id"].clone());
        tokio::spawn(async move { line.call("GetTask", &json!({ "id": id }), Beside::default()).await.unwrap() })
    };
    soon("the node is not ready", async || (readiness(&server).await.0 == 503).then_some(())).await;
    assert!(sends.iter().all(|send| !send.is_finished()), "they wait");
    database.go_on();
    let mut made = Vec::new();
    for send in sends {
        let answer = send.await.unwrap();
        assert_eq!(state(&answer["result"]["task"]), "TASK_STATE_COMPLETED", "{answer}");
        made.push(answer["result"]["task"]["id"].clone());
    }
    assert_eq!(get.await.unwrap()["result"], kept);
    for (number, task) in made.iter().enumerate() {
        let key = format!("key-{number}");
        let again = line.call("SendMessage", &params(&key), Beside::key(&key)).await.unwrap();
        assert_eq!(again["result"]["task"]["id"], *task, "the key has its task");
    }
    let listed = server.call("ListTasks", json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 9, "each call made one task: {listed}");
}
