//! How an agent is called: as its caller called, once, in words it knows.

use std::sync::Arc;

use chancery_protocol::TaskState::{Completed, Submitted, Working};
use chancery_protocol::{Reply, Request, SendConfiguration, Sent};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{
    Carried, GET, STREAM, UNARY, WORDS, calls, client, gateway, gateway_with, message, params, piece, send, sent, status, stream,
    task,
};
use crate::gateway::scripted::{Asked, Script, Scripted};
use crate::operating::cli::run;
use crate::support::patience::soon;
use crate::support::server::{Home, Setup};
use crate::support::wire_client::Conditions;

/// Done at once, whichever way it is asked.
fn done(asked: &Asked) -> Script {
    match asked.kind().as_str() {
        UNARY => Script::result(asked, &json!({ "task": task(Completed, &[WORDS]) })),
        STREAM => {
            Script::events(asked, [&json!({ "task": task(Working, &[]) }), &piece(&[WORDS], false), &status(Completed)]).end()
        }
        _ => Script::result(asked, &task(Completed, &[WORDS])),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_1_1_a_unary_call_is_a_unary_call_and_a_stream_is_a_stream() {
    let agent = Scripted::agent(done).await;
    let gateway = gateway(&agent);
    let client = client(&gateway);
    assert_eq!(send(&client).await, Carried::completed(&[WORDS], &[]));
    assert_eq!(calls(&agent), (1, 0));
    assert_eq!(stream(&client).await, Carried::completed(&[WORDS], &[]));
    assert_eq!(calls(&agent), (1, 1));
    let asked = agent.calls().into_iter().find(|asked| asked.kind() == UNARY).expect("a unary call");
    let configuration = &params(&asked)["configuration"];
    assert!(configuration["returnImmediately"] != json!(true), "a unary call goes out as a blocking one: {configuration}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_1_1_the_operator_decides_where_the_setting_says_so() {
    for (setting, expected) in [("stream = 'always'", (0, 2)), ("stream = 'never'", (2, 0)), ("stream = 'auto'", (1, 1))] {
        let agent = Scripted::agent(done).await;
        let gateway = gateway_with(&agent, setting);
        let client = client(&gateway);
        assert_eq!(send(&client).await, Carried::completed(&[WORDS], &[]), "{setting}");
        assert_eq!(stream(&client).await, Carried::completed(&[WORDS], &[]), "{setting}");
        assert_eq!(calls(&agent), expected, "{setting}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_1_2_an_answer_before_the_end_is_followed_by_polling() {
    let agent = Scripted::agent(|asked| match (asked.kind().as_str(), asked.before) {
        (UNARY, _) => Script::result(asked, &json!({ "task": task(Submitted, &[]) })),
        (_, 0..3) => Script::result(asked, &task(Working, &[])),
        _ => Script::result(asked, &task(Completed, &[WORDS])),
    })
    .await;
    let gateway = gateway(&agent);
    assert_eq!(send(&client(&gateway)).await, Carried::completed(&[WORDS], &[]));
    assert_eq!((calls(&agent), agent.count(GET)), ((1, 0), 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_1_3_a_caller_that_does_not_wait_has_its_task_while_the_agent_works() {
    let cue = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&cue);
    let agent = Scripted::agent(move |asked| match asked.kind().as_str() {
        // As a framework does that ignores `returnImmediately`.
        UNARY => Script::default().wait(&waits).followed_by(Script::result(asked, &json!({ "task": task(Completed, &[WORDS]) }))),
        _ => Script::error(asked, -32001, "Task not found"),
    })
    .await;
    let gateway = gateway(&agent);
    let client = client(&gateway);
    let immediately = SendConfiguration { return_immediately: true, ..SendConfiguration::default() };
    let answer = client.call(&Request::SendMessage(message(immediately)), &Conditions::default()).await;
    let Ok(Reply::Sent(Sent::Task(shown))) = answer else { panic!("{answer:?}") };
    assert_eq!(shown.task.status.state, Working);
    cue.add_permits(1);
    let id = shown.task.id.clone();
    let ended = soon("the task ends", async || {
        let task = super::get(&client, id.clone()).await;
        task.status.state.is_terminal().then_some(task)
    });
    assert_eq!(Carried::of_task(&ended.await), Carried::completed(&[WORDS], &[]));
    assert_eq!(calls(&agent), (1, 0), "the message was put once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_1_4_calls_say_what_they_accept_and_their_version() {
    let agent = Scripted::agent(done).await;
    let gateway = gateway(&agent);
    let client = client(&gateway);
    send(&client).await;
    stream(&client).await;
    for asked in agent.calls() {
        let accepted = if asked.kind() == STREAM { "text/event-stream" } else { "application/json" };
        assert!(asked.headers["accept"].contains(accepted), "{}: {:?}", asked.kind(), asked.headers);
        assert_eq!(asked.headers["a2a-version"], "1.0");
        let part = &params(&asked)["message"]["parts"][0];
        assert_eq!(*part, json!({ "text": "do it" }), "nothing is added that the caller did not give");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_1_5_an_agent_that_does_not_know_a_method_is_tried_in_the_other_versions() {
    let refusals: [fn(&Asked) -> Script; 4] = [
        |asked| Script::error(asked, -32601, "Method not found"),
        |asked| Script::error(asked, -32009, "version not supported"),
        |_| Script::page(404, "text/plain", "nothing here"),
        |_| Script::page(405, "text/plain", "not like this"),
    ];
    for refuse in refusals {
        let agent = Scripted::agent(move |asked| match asked.kind().as_str() {
            "message/send" => {
                let artifact = json!({ "artifactId": "a", "parts": [{ "kind": "text", "text": WORDS }] });
                let done = json!({ "kind": "task", "id": "t", "contextId": "c", "status": { "state": "completed" }, "artifacts": [artifact] });
                Script::result(asked, &done)
            }
            _ => refuse(asked),
        })
        .await;
        let gateway = gateway(&agent);
        let client = client(&gateway);
        for _ in 0..2 {
            assert_eq!(send(&client).await, Carried::completed(&[WORDS], &[]), "{}", gateway.log());
        }
        assert_eq!((agent.count(UNARY), agent.count("message/send")), (1, 2), "what worked is remembered");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_1_5_an_agent_of_the_original_protocol_is_found_behind_a_newer_card() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        "tasks/send" => {
            let id = asked.task().unwrap_or_default();
            let artifact = json!({ "index": 0, "parts": [{ "type": "text", "text": WORDS }] });
            Script::result(
                asked,
                &json!({ "id": id, "sessionId": "s", "status": { "state": "completed" }, "artifacts": [artifact] }),
            )
        }
        _ => Script::error(asked, -32601, "Method not found"),
    })
    .await;
    let gateway = gateway(&agent);
    assert_eq!(send(&client(&gateway)).await.artifacts, [WORDS], "{}", gateway.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_refuses_to_stream_is_called_unary_from_then_on_also_after_a_restart() {
    let refusals: [fn(&Asked) -> Script; 3] = [
        |asked| Script::error(asked, -32004, "Streaming is not supported by the agent"),
        |asked| Script::error(asked, -32603, "streaming not supported"),
        |asked| Script::stream().refusal(asked, -32004, "Streaming is not supported").end(),
    ];
    for refuse in refusals {
        let agent = Scripted::agent(move |asked| match asked.kind().as_str() {
            STREAM => refuse(asked),
            _ => done(asked),
        })
        .await;
        let home = Home::new();
        let start = || {
            let config = format!("{}[agents.front]\nurl = '{}'\n", super::super::QUICK, agent.url());
            Setup::in_home(&home).args(["--data"]).args([home.data()]).config(&config).start()
        };
        let gateway = start();
        assert_eq!(stream(&client(&gateway)).await, Carried::completed(&[WORDS], &[]), "{}", gateway.log());
        assert_eq!(calls(&agent), (1, 1), "nothing was executed for the stream, so the message is put as one call");
        assert_eq!(stream(&client(&gateway)).await, Carried::completed(&[WORDS], &[]));
        assert_eq!(calls(&agent), (2, 1));
        let facts = home.data().join("agent_facts.json");
        soon("what was learnt is on disk", async || std::fs::read_to_string(&facts).ok()?.contains("prefers").then_some(()))
            .await;
        gateway.kill();
        let gateway = start();
        assert_eq!(stream(&client(&gateway)).await, Carried::completed(&[WORDS], &[]));
        assert_eq!(calls(&agent), (3, 1), "what was learnt survives a restart");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_refuses_the_context_of_the_gateway_is_asked_without_one() {
    let agent = Scripted::agent(|asked| match (asked.kind().as_str(), params(asked)["message"]["contextId"].is_string()) {
        (UNARY, true) => Script::error(asked, -32602, "Unknown contextId"),
        _ => done(asked),
    })
    .await;
    let gateway = gateway(&agent);
    assert_eq!(send(&client(&gateway)).await, Carried::completed(&[WORDS], &[]));
    assert_eq!(calls(&agent), (2, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_one_answer_cannot_be_read_is_asked_for_streams_from_then_on() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        UNARY => Script::result(asked, &json!({ "wat": 1 })),
        _ => done(asked),
    })
    .await;
    let gateway = gateway(&agent);
    let client = client(&gateway);
    let failed = send(&client).await;
    assert_eq!(failed.state, "failed", "{failed:?}");
    assert!(failed.said[0].contains("agent front: "), "the reason names the agent: {failed:?}");
    assert_eq!(calls(&agent), (1, 0), "a message is not put twice");
    assert_eq!(send(&client).await, Carried::completed(&[WORDS], &[]));
    assert_eq!(calls(&agent), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_that_does_not_go_away_is_answered_at_once_and_named_after_the_breaker_has_opened() {
    let agent = Scripted::agent(|asked| Script::error(asked, -32603, "model down")).await;
    let gateway = crate::gateway::in_front_of(&agent.url(), &format!("{}[health]\nfailures = 2\n", super::super::QUICK));
    let client = client(&gateway);
    for _ in 0..2 {
        assert_eq!(send(&client).await.said, ["agent front: model down"]);
    }
    let refused = sent(&client, SendConfiguration::default()).await.expect_err("the breaker is open");
    assert!(refused.message().contains("last failure: agent front: model down"), "{refused:?}");
    let listed = run(gateway.home(), ["agents", "ls"]);
    assert!(listed.stdout.contains("failing: ") && !listed.stdout.contains("served"), "{}", listed.stdout);
}
