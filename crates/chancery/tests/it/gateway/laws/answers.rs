//! What an agent said reaches its caller whole, once, and in the place where the agent said it.

use chancery_protocol::TaskState::{self, AuthRequired, Canceled, Completed, InputRequired, Working};
use serde_json::{Value, json};

use super::{
    Carried, GET, STREAM, UNARY, WORDS, artifact, calls, client, explained, gateway, gateway_with, piece, send, status, stream,
    streamed, task, words,
};
use crate::gateway::scripted::{Asked, Script, Scripted};

fn not_found(asked: &Asked) -> Script {
    Script::error(asked, -32001, "Task not found")
}

/// An agent that streams these events, and knows no task afterwards.
async fn streams(events: Vec<Value>) -> Scripted {
    Scripted::agent(move |asked| match asked.kind().as_str() {
        STREAM => Script::events(asked, &events).end(),
        _ => not_found(asked),
    })
    .await
}

fn said(state: TaskState, id: &str, text: &str) -> Value {
    let mut said = status(state);
    said["statusUpdate"]["status"]["message"] = words(id, text);
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_2_9_a_message_is_the_answer_only_if_the_stream_ends_with_it() {
    let hello = json!({ "message": words("m1", "hello") });
    let alone = streams(vec![hello.clone()]).await;
    let carried = stream(&client(&gateway(&alone))).await;
    assert_eq!((carried.state.as_str(), &*carried.said), ("message", &["hello".to_owned()][..]));

    let before =
        streams(vec![hello.clone(), json!({ "task": task(Working, &[]) }), piece(&[WORDS], false), status(Completed)]).await;
    assert_eq!(stream(&client(&gateway(&before))).await, Carried::completed(&[WORDS], &["hello"]));

    let within = streams(vec![json!({ "task": task(Working, &[]) }), hello, piece(&[WORDS], false), status(Completed)]).await;
    assert_eq!(stream(&client(&gateway(&within))).await, Carried::completed(&[WORDS], &["hello"]));
}

/// A task that ended without content is looked up once. Its caller does not wait until the connection of that look breaks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_cannot_be_looked_up_ends_as_its_agent_said() {
    let silent = Scripted::agent(|asked: &Asked| match asked.kind().as_str() {
        STREAM => Script::events(asked, &[json!({ "task": task(Working, &[]) }), status(Completed)]).end(),
        _ => Script::stream().hang(),
    })
    .await;
    let carried = stream(&client(&gateway(&silent))).await;
    assert_eq!((carried.state.as_str(), silent.count(GET)), ("completed", 1), "{carried:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_2_9_pieces_of_one_message_are_joined() {
    let pieces = ["alpha ", "beta ", "gamma"].map(|text| json!({ "message": words("m1", text) }));
    let agent = streams(pieces.to_vec()).await;
    assert_eq!(stream(&client(&gateway(&agent))).await.said, [WORDS]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_2_9_what_follows_the_end_is_read_too() {
    let agent = streams(vec![status(Working), status(Completed), json!({ "task": task(Completed, &[WORDS]) })]).await;
    assert_eq!(stream(&client(&gateway(&agent))).await, Carried::completed(&[WORDS], &[]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_2_9_a_status_that_repeats_a_message_id_replaces_the_message() {
    let growing = ["alpha ", "alpha beta ", WORDS].map(|text| said(Working, "m1", text));
    let events = [vec![json!({ "task": task(Working, &[]) })], growing.to_vec(), vec![status(Completed)]].concat();
    let agent = streams(events).await;
    assert_eq!(stream(&client(&gateway(&agent))).await, Carried::completed(&[], &[WORDS]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_2_9_a_message_in_pieces_within_a_task_is_whole_in_the_end() {
    let begin = json!({ "task": task(Working, &[]) });
    let pieces = ["alpha ", "beta ", "gamma"].map(|text| json!({ "message": words("m1", text) }));
    let [first, second, third] = pieces.clone();
    let mut tool = status(Working);
    tool["statusUpdate"]["metadata"] = json!({ "tool": "started" });
    let whole = || {
        let mut done = task(Completed, &[]);
        done["history"] = json!([words("m1", WORDS)]);
        json!({ "task": done })
    };
    for (name, events) in [
        ("no picture follows", vec![begin.clone(), first.clone(), second.clone(), third.clone(), status(Completed)]),
        (
            "statuses between the pieces",
            vec![begin.clone(), first.clone(), tool.clone(), second.clone(), tool, third.clone(), status(Completed)],
        ),
        ("the whole task follows", vec![begin.clone(), first.clone(), second.clone(), third.clone(), status(Completed), whole()]),
        ("the pieces come before the task", vec![first, second, third, begin.clone(), status(Completed)]),
    ] {
        let agent = streams(events).await;
        let (seen, carried) = streamed(&client(&gateway(&agent))).await;
        assert_eq!(carried, Carried::completed(&[], &[WORDS]), "{name}: {seen:?}");
    }
    let other = json!({ "message": words("m2", "and more") });
    let agent = streams([vec![begin], pieces.to_vec(), vec![other, status(Completed)]].concat()).await;
    assert_eq!(stream(&client(&gateway(&agent))).await, Carried::completed(&[], &[WORDS, "and more"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_1_4_what_the_gateway_tells_an_agent_does_not_come_back_to_the_caller() {
    // As Mastra and VoltAgent: the metadata of the request is the metadata of the task.
    let agent = Scripted::agent(|asked| {
        let mut made = task(Working, &[]);
        made["metadata"] = super::params(asked)["metadata"].clone();
        made["metadata"]["own"] = json!(1);
        let mut done = made.clone();
        (done["status"], done["artifacts"]) = (json!({ "state": Completed.name() }), json!([artifact(&[WORDS])]));
        match asked.kind().as_str() {
            STREAM => Script::events(asked, &[json!({ "task": made }), json!({ "task": done })]).end(),
            UNARY => Script::result(asked, &json!({ "task": done })),
            _ => not_found(asked),
        }
    })
    .await;
    let gateway = gateway_with(&agent, "lineage = 'metadata'");
    let http = reqwest::Client::new();
    for (method, kind) in [("SendStreamingMessage", STREAM), ("SendMessage", UNARY)] {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "do it" }] });
        let call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "message": message, "metadata": { "mine": 2 } } });
        let request = http.post(gateway.url()).header("A2A-Version", "1.0").header("Content-Type", "application/json");
        let answer = request.body(call.to_string()).send().await.expect("an answer").text().await.expect("a body");
        assert!(answer.contains(WORDS) && answer.contains(r#""own":1"#) && answer.contains(r#""mine":2"#), "{method}: {answer}");
        for ours in ["hop_token", "governance/v1", "ruvector", "visited_agents"] {
            assert!(!answer.contains(ours), "{method}, {ours}: {answer}");
        }
        let asked = agent.calls().into_iter().find(|asked| asked.kind() == kind).expect("a call");
        assert!(asked.body.contains("hop_token"), "the agent was told: {}", asked.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_2_10_a_message_that_names_a_task_nobody_knows_is_complete() {
    let mut reply = words("m1", WORDS);
    reply["taskId"] = json!("nowhere");
    let agent = Scripted::agent(move |asked| match asked.kind().as_str() {
        UNARY => Script::result(asked, &json!({ "message": reply })),
        STREAM => Script::events(asked, [&json!({ "message": reply })]).end(),
        _ => not_found(asked),
    })
    .await;
    let gateway = gateway(&agent);
    for carried in [send(&client(&gateway)).await, stream(&client(&gateway)).await] {
        assert_eq!((carried.state.as_str(), &*carried.said), ("message", &[WORDS.to_owned()][..]));
    }
    assert_eq!(agent.count(GET), 0, "there is nothing to look at");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_2_11_pieces_of_an_unknown_artifact_begin_it_and_a_whole_one_replaces_them() {
    let begin = json!({ "task": task(Working, &[]) });
    let agent = streams(vec![
        begin.clone(),
        piece(&["alpha "], true),
        piece(&["beta "], true),
        piece(&[WORDS], false),
        status(Completed),
    ])
    .await;
    assert_eq!(stream(&client(&gateway(&agent))).await, Carried::completed(&[WORDS], &[]));
    let mut last = piece(&[], false);
    last["artifactUpdate"]["lastChunk"] = json!(true);
    let agent = streams(vec![begin, piece(&[WORDS], true), last, status(Completed)]).await;
    assert_eq!(
        stream(&client(&gateway(&agent))).await,
        Carried::completed(&[WORDS], &[]),
        "an empty last piece takes nothing away"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_2_12_ids_are_kept_byte_for_byte() {
    let odd = "29b6/%2F:01a1?#é";
    let agent = Scripted::agent(move |asked| match asked.kind().as_str() {
        UNARY => {
            let mut begun = task(Working, &[]);
            begun["id"] = json!(odd);
            Script::result(asked, &json!({ "task": begun }))
        }
        _ => {
            let mut done = task(Completed, &[WORDS]);
            done["id"] = json!(asked.task().unwrap_or_default());
            Script::result(asked, &done)
        }
    })
    .await;
    assert_eq!(send(&client(&gateway(&agent))).await, Carried::completed(&[WORDS], &[]));
    let looked = agent.calls().into_iter().find(|asked| asked.kind() == GET).expect("a poll");
    assert_eq!(looked.task().as_deref(), Some(odd));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_2_13_an_answer_that_is_only_in_the_history_is_the_answer() {
    let answer = || {
        let mut done = task(Completed, &[]);
        let (mut earlier, asked) =
            (words("old", "of another task"), json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "do it" }] }));
        earlier["taskId"] = json!("another");
        let mut marked = words("new", WORDS);
        marked["metadata"] = json!({ "adk_type": "function_call" });
        done["history"] = json!([earlier, asked, marked]);
        done
    };
    let agent = Scripted::agent(move |asked| match asked.kind().as_str() {
        UNARY => Script::result(asked, &json!({ "task": answer() })),
        STREAM => Script::events(asked, [&json!({ "task": task(Working, &[]) }), &status(Completed)]).end(),
        _ => Script::result(asked, &answer()),
    })
    .await;
    let gateway = gateway(&agent);
    assert_eq!(send(&client(&gateway)).await, Carried::completed(&[], &[WORDS]));
    assert_eq!(stream(&client(&gateway)).await, Carried::completed(&[], &[WORDS]), "a stream without content is looked behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_3_1_a_picture_replaces_what_came_in_events_and_deletes_nothing() {
    let renamed = json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" },
        "artifacts": [{ "artifactId": "another id", "parts": [{ "text": WORDS }] }] });
    let begin = json!({ "task": task(Working, &[]) });
    let agent = streams(vec![begin.clone(), piece(&["alpha "], false), json!({ "task": renamed })]).await;
    assert_eq!(stream(&client(&gateway(&agent))).await, Carried::completed(&[WORDS], &[]));
    let agent =
        streams(vec![begin, said(Working, "m1", "hello"), piece(&[WORDS], false), json!({ "task": task(Completed, &[]) })]).await;
    assert_eq!(stream(&client(&gateway(&agent))).await, Carried::completed(&[WORDS], &["hello"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_3_2_a_stream_that_cannot_be_read_fails_at_once_with_the_true_reason() {
    let agent = streams(vec![json!({ "wat": 1 }), json!({ "wat": "a secret" })]).await;
    let gateway = gateway(&agent);
    let carried = stream(&client(&gateway)).await;
    assert_eq!(carried.state, "failed");
    assert!(carried.said[0].contains("agent front: ") && carried.said[0].contains("event 1"), "{carried:?}");
    assert_eq!(agent.count("SubscribeToTask"), 0, "what cannot be read is not asked for again");
    let log = gateway.log();
    assert!(log.contains(&agent.url()) && !log.contains("a secret"), "the log has the URL and no content: {log}");
    let explained = explained(&gateway);
    for fact in [&*agent.url(), "\"event\"", "\"shape\"", "wat"] {
        assert!(explained.contains(fact), "{fact} is not in: {explained}");
    }
    assert!(!explained.contains("a secret"), "{explained}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_3_2_one_answer_that_cannot_be_read_is_explained_by_its_shape() {
    let agent = Scripted::agent(|asked| Script::result(asked, &json!({ "wat": "a secret" }))).await;
    let gateway = gateway(&agent);
    assert_eq!(send(&client(&gateway)).await.state, "failed");
    let explained = explained(&gateway);
    for fact in [&*agent.url(), "\"shape\"", "wat"] {
        assert!(explained.contains(fact), "{fact} is not in: {explained}");
    }
    assert!(!explained.contains("a secret"), "{explained}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_3_2_an_unreadable_event_is_skipped_and_the_rest_is_looked_up() {
    let begin = || json!({ "task": task(Working, &[]) });
    let bad = || json!({ "wat": 1 });
    let agent = Scripted::agent(move |asked| match asked.kind().as_str() {
        STREAM => Script::events(asked, [&begin(), &bad(), &bad()]).end(),
        UNARY => Script::result(asked, &json!({ "task": task(Completed, &[WORDS]) })),
        _ => Script::result(asked, &task(Completed, &[WORDS])),
    })
    .await;
    let gateway = gateway(&agent);
    assert_eq!(stream(&client(&gateway)).await, Carried::completed(&[WORDS], &[]));
    assert_eq!(stream(&client(&gateway)).await, Carried::completed(&[WORDS], &[]));
    assert_eq!(calls(&agent), (1, 1), "from then on it is called unary");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_3_3_a_task_is_not_completed_with_less_than_the_agent_has() {
    let bad = json!({ "wat": 1 });
    let agent = Scripted::agent(move |asked| match asked.kind().as_str() {
        UNARY => Script::result(asked, &json!({ "task": task(Completed, &[]) })),
        STREAM => Script::events(asked, [&json!({ "task": task(Working, &[]) }), &bad, &status(Completed)]).end(),
        _ => Script::result(asked, &task(Completed, &[WORDS])),
    })
    .await;
    let gateway = gateway(&agent);
    assert_eq!(send(&client(&gateway)).await, Carried::completed(&[WORDS], &[]));
    assert_eq!(stream(&client(&gateway)).await, Carried::completed(&[WORDS], &[]));
    let lost = streams(vec![json!({ "task": task(Working, &[]) }), json!({ "wat": 1 }), status(Completed)]).await;
    assert_eq!(stream(&client(&super::gateway(&lost))).await.state, "failed", "skipped, and nothing was found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_3_4_what_the_gateway_cut_is_joined_and_what_the_agent_cut_stays_so() {
    let pieces = |asked: &Asked| match asked.kind().as_str() {
        UNARY => Script::result(asked, &json!({ "task": task(Completed, &["alpha ", "beta gamma"]) })),
        STREAM => {
            let begin = json!({ "task": task(Working, &[]) });
            let events = [begin, piece(&["alpha "], false), piece(&["beta "], true), piece(&["gamma"], true), status(Completed)];
            Script::events(asked, &events).end()
        }
        _ => not_found(asked),
    };
    let agent = Scripted::agent(pieces).await;
    assert_eq!(send(&client(&gateway(&agent))).await.artifacts, ["alpha ", "beta gamma"], "as the agent cut it");
    let (events, _) = streamed(&client(&gateway(&agent))).await;
    let shown = events.iter().filter(|event| event.starts_with("artifact")).count();
    assert_eq!(shown, 3, "a caller that streams gets the pieces as they come: {events:?}");
    let agent = Scripted::agent(pieces).await;
    let always = gateway_with(&agent, "stream = 'always'");
    assert_eq!(send(&client(&always)).await.artifacts, [WORDS]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_3_5_an_answer_is_said_once() {
    let agent = Scripted::agent(|asked| {
        let mut done = task(Completed, &[WORDS]);
        done["status"]["message"] = words("m1", "bye");
        done["history"] = json!([words("m1", "bye")]);
        Script::result(asked, &json!({ "task": done }))
    })
    .await;
    assert_eq!(send(&client(&gateway(&agent))).await, Carried::completed(&[WORDS], &["bye"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_1_3_6_a_question_may_be_in_an_artifact() {
    let mut asks = task(InputRequired, &[]);
    asks["artifacts"] = json!([{ "artifactId": "a", "name": "Interrupt", "parts": [{ "data": { "value": "which one?" } }] }]);
    let shown = asks.clone();
    let agent = Scripted::agent(move |asked| match asked.kind().as_str() {
        UNARY => Script::result(asked, &json!({ "task": asks })),
        _ => Script::events(asked, [&json!({ "task": task(Working, &[]) }), &status(InputRequired), &json!({ "task": shown })])
            .end(),
    })
    .await;
    let gateway = gateway(&agent);
    for carried in [send(&client(&gateway)).await, stream(&client(&gateway)).await] {
        assert_eq!(carried.state, "input-required");
        assert!(carried.artifacts[0].contains("which one?"), "{carried:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_stays_open_at_auth_required_while_the_agent_goes_on() {
    let asks = said(AuthRequired, "m1", "please authorise");
    let agent = streams(vec![
        json!({ "task": task(Working, &[]) }),
        asks,
        status(Working),
        json!({ "artifactUpdate":
        { "taskId": "t", "contextId": "c", "artifact": artifact(&[WORDS]) } }),
        status(Completed),
    ])
    .await;
    let (events, carried) = streamed(&client(&gateway(&agent))).await;
    assert_eq!((carried.state.as_str(), &*carried.artifacts), ("completed", &[WORDS.to_owned()][..]), "{events:?}");
    assert!(events.iter().any(|event| event.contains("auth-required")), "{events:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canceled_state_of_the_agents_own_is_shown_in_either_spelling() {
    for spelled in ["TASK_STATE_CANCELED", "canceled", "cancelled", "TASK_STATE_CANCELLED"] {
        let agent = Scripted::agent(move |asked| {
            let mut ended = task(Canceled, &[]);
            ended["status"]["state"] = json!(spelled);
            ended["status"]["message"] = words("m1", "stopped");
            Script::result(asked, &json!({ "task": ended }))
        })
        .await;
        assert_eq!(send(&client(&gateway(&agent))).await.state, "canceled", "{spelled}");
    }
}
