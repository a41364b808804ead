//! How streams live, fall silent, break off and end.

use std::time::Duration;

use chancery_outbound::client::{CallConditions, Transport};
use chancery_outbound::{ClientError, ClientLimits};
use chancery_protocol::{Binding, Operation, Reply, TaskEvent, TaskState, Version};
use futures::future::join_all;

use super::agent::{Answer, ScriptedAgent, Step, client, conditions};
use super::raw::{CHUNKED, EVENTS, RawAgent, Then, chunked, json};
use super::samples::{Speaks, changed, request};

/// Far less than the default, far more than a loaded machine needs between two writes.
const SILENCE: u64 = 1_500;

fn impatient() -> ClientLimits {
    ClientLimits { read_ms: SILENCE, ..ClientLimits::default() }
}

fn has_comments(binding: Binding) -> bool {
    binding != Binding::Grpc
}

#[tokio::test]
async fn heartbeats_keep_a_quiet_stream_alive() {
    let pause = &Step::Pause(Duration::from_millis(SILENCE / 3));
    let speaks = Speaks::ALL.into_iter().filter(|(_, binding)| has_comments(*binding));
    join_all(speaks.map(async |speaks| {
        // Together the pauses are longer than silence may last.
        let mut steps: Vec<Step> = (0..5).flat_map(|_| [pause.clone(), Step::Heartbeat]).collect();
        steps.push(Step::Event(changed(TaskState::Completed)));
        let agent = ScriptedAgent::start(speaks, move |_| Answer::Events(steps.clone())).await;
        let client = agent.client_with(impatient());
        let mut stream = client.stream(&request(speaks.0, Operation::SubscribeToTask), &conditions()).await.unwrap();
        let heard = stream.next().await.unwrap_or_else(|fault| panic!("{speaks:?}: {fault:?}"));
        assert_eq!(heard.unwrap().event, changed(TaskState::Completed), "{speaks:?}");
        assert_eq!(stream.next().await.unwrap(), None, "{speaks:?}");
    }))
    .await;
}

#[tokio::test]
async fn silence_beyond_the_limit_is_a_cut() {
    for speaks in Speaks::ALL {
        let steps = vec![Step::Event(changed(TaskState::Working)), Step::Pause(Duration::from_secs(3_600))];
        let agent = ScriptedAgent::start(speaks, move |_| Answer::Events(steps.clone())).await;
        let client = agent.client_with(ClientLimits { read_ms: 300, ..ClientLimits::default() });
        let mut stream = client.stream(&request(speaks.0, Operation::StreamMessage), &conditions()).await.unwrap();
        assert!(stream.next().await.unwrap().is_some(), "{speaks:?}");
        let fault = stream.next().await.unwrap_err();
        assert!(fault.is_cut(), "{speaks:?}: {fault:?}");
        assert!(stream.next().await.unwrap_err().is_cut(), "{speaks:?}: a cut stream never looks ended");
    }
}

#[tokio::test]
async fn silence_is_counted_on_when_a_wait_is_given_up_and_begun_again() {
    for speaks in Speaks::ALL {
        let steps = vec![Step::Event(changed(TaskState::Working)), Step::Pause(Duration::from_secs(3_600))];
        let agent = ScriptedAgent::start(speaks, move |_| Answer::Events(steps.clone())).await;
        let client = agent.client_with(ClientLimits { read_ms: 300, ..ClientLimits::default() });
        let mut stream = client.stream(&request(speaks.0, Operation::StreamMessage), &conditions()).await.unwrap();
        assert!(stream.next().await.unwrap().is_some(), "{speaks:?}");
        let mut waits = 0;
        let fault = loop {
            assert!(waits < 200, "{speaks:?}: waits for ever");
            match tokio::time::timeout(Duration::from_millis(20), stream.next()).await {
                Err(_) => waits += 1,
                Ok(heard) => break heard.unwrap_err(),
            }
        };
        assert!(fault.is_cut(), "{speaks:?}: {fault:?}");
    }
}

#[tokio::test]
async fn a_broken_connection_is_a_cut_and_not_an_end() {
    for speaks in Speaks::ALL {
        // The pause lets the event be read before the connection takes it along.
        let pause = Step::Pause(Duration::from_millis(50));
        let steps = vec![Step::Event(changed(TaskState::Working)), pause, Step::Cut];
        let agent = ScriptedAgent::start(speaks, move |_| Answer::Events(steps.clone())).await;
        let mut stream = agent.client().stream(&request(speaks.0, Operation::StreamMessage), &conditions()).await.unwrap();
        assert!(stream.next().await.unwrap().is_some(), "{speaks:?}");
        let fault = stream.next().await.unwrap_err();
        assert!(fault.is_cut(), "{speaks:?}: {fault:?}");
    }
}

#[tokio::test]
async fn the_deadline_of_a_stream_holds_however_much_it_says() {
    let conditions = &CallConditions { deadline: Some(Duration::from_millis(400)), ..conditions() };
    join_all(Speaks::ALL.map(async |speaks| {
        let steps: Vec<Step> = (0..10_000)
            .flat_map(|_| [Step::Pause(Duration::from_millis(50)), Step::Event(changed(TaskState::Working))])
            .collect();
        let agent = ScriptedAgent::start(speaks, move |_| Answer::Events(steps.clone())).await;
        let mut stream = agent.client().stream(&request(speaks.0, Operation::StreamMessage), conditions).await.unwrap();
        let fault = loop {
            match stream.next().await {
                Ok(heard) => assert!(heard.is_some()),
                Err(fault) => break fault,
            }
        };
        assert!(matches!(fault, ClientError::Transport(Transport::OutOfTime { .. })), "{speaks:?}: {fault:?}");
    }))
    .await;
}

const RPC: (Version, Binding) = (Version::V1_0, Binding::JsonRpc);

fn event(state: &str, id: u64) -> String {
    format!(
        "id: {id}\ndata: {{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{{\"statusUpdate\":{{\"taskId\":\"t\",\"contextId\":\"c\",\
         \"status\":{{\"state\":\"TASK_STATE_{state}\"}},\"unknown\":[1]}}}}}}\n\n"
    )
}

async fn raw_stream(answer: String, then: Then) -> (RawAgent, Result<chancery_outbound::EventStream, ClientError>) {
    let agent = RawAgent::saying(answer, then).await;
    let asked = request(Version::V1_0, Operation::StreamMessage);
    let stream = client(&agent.url(), RPC, impatient()).stream(&asked, &conditions()).await;
    (agent, stream)
}

#[tokio::test]
async fn the_last_chunk_tells_an_end_from_a_cut() {
    for (last, ends) in [("0\r\n\r\n", true), ("", false)] {
        let answer = format!("{CHUNKED}{}{last}", chunked(&event("WORKING", 1)));
        let (_agent, stream) = raw_stream(answer, Then::Close).await;
        let mut stream = stream.unwrap();
        assert!(stream.next().await.unwrap().is_some());
        match ends {
            true => assert_eq!(stream.next().await.unwrap(), None),
            false => assert!(stream.next().await.unwrap_err().is_cut()),
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_inside_an_event_was_cut_even_where_closing_is_ending() {
    for (rest, ends) in [("", true), (": bye\n\n", true), ("data: {\"jsonrpc\"", false), ("data: {}\n", true)] {
        let (_agent, stream) = raw_stream(format!("{EVENTS}{}{rest}", event("WORKING", 1)), Then::Close).await;
        let mut stream = stream.unwrap();
        assert!(stream.next().await.unwrap().is_some());
        match ends {
            true => assert_eq!(stream.next().await.unwrap(), None, "{rest:?}"),
            false => assert!(stream.next().await.unwrap_err().is_cut(), "{rest:?}"),
        }
    }
}

#[tokio::test]
async fn repeated_events_and_ids_are_passed_on_as_they_come() {
    let body = [event("WORKING", 4), event("WORKING", 4), event("COMPLETED", 2), event("WORKING", 9)].concat();
    let (_agent, stream) = raw_stream(format!("{EVENTS}{body}"), Then::Close).await;
    let mut stream = stream.unwrap();
    let mut ids = Vec::new();
    while let Some(heard) = stream.next().await.unwrap() {
        assert!(matches!(heard.event, TaskEvent::Status(_)));
        ids.push(heard.id.unwrap().to_string());
    }
    assert_eq!(ids, ["4", "4", "2", "9"]);
}

#[tokio::test]
async fn an_event_is_read_up_to_its_limit_and_not_beyond() {
    let whole = event("WORKING", 1);
    let line = whole.lines().nth(1).unwrap().len();
    for (event_bytes, fits) in [(line, true), (line - 1, false)] {
        let agent = RawAgent::saying(format!("{EVENTS}{whole}"), Then::Close).await;
        let client = client(&agent.url(), RPC, ClientLimits { event_bytes, ..ClientLimits::default() });
        let mut stream = client.stream(&request(Version::V1_0, Operation::StreamMessage), &conditions()).await.unwrap();
        match (stream.next().await, fits) {
            (Ok(Some(_)), true) | (Err(ClientError::NotUnderstood(_)), false) => {}
            (heard, _) => panic!("{event_bytes}: {heard:?}"),
        }
    }
}

#[tokio::test]
async fn an_event_without_end_is_given_up_at_the_limit() {
    let agent = RawAgent::saying(format!("{EVENTS}data: "), Then::Repeat(vec![b'x'; 8_192])).await;
    let client = client(&agent.url(), RPC, ClientLimits { event_bytes: 100_000, ..ClientLimits::default() });
    let mut stream = client.stream(&request(Version::V1_0, Operation::StreamMessage), &conditions()).await.unwrap();
    assert!(matches!(stream.next().await, Err(ClientError::NotUnderstood(_))));
}

#[tokio::test]
async fn an_oversized_event_over_grpc_is_given_up_too() {
    for version in [Version::V1_0, Version::V0_3] {
        let steps = vec![Step::Event(super::samples::chunk(&"x".repeat(10_000), false, true))];
        let agent = ScriptedAgent::start((version, Binding::Grpc), move |_| Answer::Events(steps.clone())).await;
        for (event_bytes, fits) in [(20_000, true), (10_000, false)] {
            let client = agent.client_with(ClientLimits { event_bytes, ..ClientLimits::default() });
            let mut stream = client.stream(&request(version, Operation::StreamMessage), &conditions()).await.unwrap();
            match (stream.next().await, fits) {
                (Ok(Some(_)), true) | (Err(ClientError::NotUnderstood(_)), false) => {}
                (heard, _) => panic!("{event_bytes}: {heard:?}"),
            }
        }
    }
}

#[tokio::test]
async fn an_agent_that_answers_at_once_gives_a_stream_of_one_event() {
    let task = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}"#;
    for (operation, result) in
        [(Operation::StreamMessage, format!(r#"{{"task":{task}}}"#)), (Operation::SubscribeToTask, task.to_owned())]
    {
        let answer = json(&format!(r#"{{"jsonrpc":"2.0","id":"1","result":{result}}}"#));
        let agent = RawAgent::saying(answer, Then::Close).await;
        let client = client(&agent.url(), RPC, ClientLimits::default());
        let mut stream = client.stream(&request(Version::V1_0, operation), &conditions()).await.unwrap();
        let heard = stream.next().await.unwrap().unwrap();
        assert!(matches!(heard.event, TaskEvent::Created(task) if task.status.state == TaskState::Completed));
        assert_eq!(heard.face.unwrap().task_id.as_str(), "t");
        assert_eq!(stream.next().await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_stream_of_anything_but_events_is_not_understood() {
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi".to_owned();
    let (_agent, stream) = raw_stream(html, Then::Close).await;
    assert!(matches!(stream, Err(ClientError::NotUnderstood(_))), "{stream:?}");
}

#[tokio::test]
async fn a_subscription_is_asked_for_with_the_other_verb_where_the_first_is_not_allowed() {
    for version in [Version::V1_0, Version::V0_3] {
        let refusal = super::raw::http("405 Method Not Allowed", "", "").into_bytes();
        let events = format!("{EVENTS}: hello\n\n").into_bytes();
        let agent = RawAgent::saying_in_turn(vec![(refusal, Then::Close), (events, Then::Close)]).await;
        let client = client(&agent.url(), (version, Binding::Rest), ClientLimits::default());
        let mut stream = client.stream(&request(version, Operation::SubscribeToTask), &conditions()).await.unwrap();
        assert_eq!(stream.next().await.unwrap(), None);
        let verbs: Vec<_> = agent.lines().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(verbs, ["POST", "GET"]);
        // A message is never sent a second time.
        let refusal = super::raw::http("405 Method Not Allowed", "", "").into_bytes();
        let agent = RawAgent::saying(refusal, Then::Close).await;
        let client = super::agent::client(&agent.url(), (version, Binding::Rest), ClientLimits::default());
        client.stream(&request(version, Operation::StreamMessage), &conditions()).await.unwrap_err();
        assert_eq!(agent.requests(), 1);
    }
}

#[tokio::test]
async fn an_agent_of_the_original_with_streams_of_its_own_is_asked_for_those() {
    let pending = json(r#"{"jsonrpc":"2.0","id":"1","result":{"pending":true}}"#).into_bytes();
    let events = "event: status\ndata: {\"id\":\"t-1\",\"status\":{\"state\":\"working\",\"timestamp\":\"2026-01-01T00:00:00Z\"},\
                  \"final\":false,\"metadata\":null}\n\nevent: warning\ndata: {\"lagged\":3}\n\n";
    let answers = vec![(pending, Then::Close), (format!("{EVENTS}{events}").into_bytes(), Then::Close)];
    let agent = RawAgent::saying_in_turn(answers).await;
    let client = client(&agent.url(), (Version::Original, Binding::JsonRpc), ClientLimits::default());
    let mut stream = client.stream(&request(Version::Original, Operation::SubscribeToTask), &conditions()).await.unwrap();
    let heard = stream.next().await.unwrap().unwrap();
    assert_eq!(heard.face.unwrap().client_task_id.as_deref(), Some("t-1"));
    assert!(matches!(heard.event, TaskEvent::Status(change) if change.status.state == TaskState::Working));
    assert_eq!(stream.next().await.unwrap(), None, "a warning is no event of the task");
    assert_eq!(agent.lines(), ["POST /agent HTTP/1.1", "GET /agent/tasks/resubscribe?id=t-1 HTTP/1.1"]);
}

#[tokio::test]
async fn an_agent_that_only_says_that_it_canceled_is_asked_for_the_task() {
    let canceled = json(r#"{"jsonrpc":"2.0","id":"1","result":{"id":"t-1","canceled":true}}"#).into_bytes();
    let task = r#"{"id":"t-1","status":{"state":"canceled","timestamp":"2026-01-01T00:00:00Z"}}"#;
    let task = json(&format!(r#"{{"jsonrpc":"2.0","id":"1","result":{task}}}"#)).into_bytes();
    let agent = RawAgent::saying_in_turn(vec![(canceled, Then::Close), (task, Then::Close)]).await;
    let client = client(&agent.url(), (Version::Original, Binding::JsonRpc), ClientLimits::default());
    let reply = client.call(&request(Version::Original, Operation::CancelTask), &conditions()).await.unwrap();
    assert!(matches!(reply, Reply::Task(shown) if shown.task.status.state == TaskState::Canceled));
    assert_eq!(agent.requests(), 2);
}
