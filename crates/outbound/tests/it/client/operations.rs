//! Every operation that a version and binding has, there and back.

use chancery_outbound::client::{CallConditions, WasSent};
use chancery_outbound::{AgentCredentials, ClientError};
use chancery_protocol::{Binding, ErrorKind, Operation, TraceId, Version};
use chancery_wire::json::methods;

use super::agent::{Answer, ScriptedAgent, Step, conditions};
use super::samples::{Speaks, changed, chunk, reply, request, task, with_tenant};
use chancery_protocol::{TaskEvent, TaskState};

fn has((version, binding): (Version, Binding), operation: Operation) -> bool {
    methods::name(version, operation).is_some()
        && (version, binding, operation) != (Version::V0_3, Binding::Grpc, Operation::ListTasks)
}

#[tokio::test]
async fn every_operation_arrives_as_it_was_asked_and_its_reply_as_it_was_given() {
    for speaks in Speaks::ALL {
        let version = speaks.0;
        let agent = ScriptedAgent::start(speaks, move |asked| Answer::Reply(reply(version, asked.operation()))).await;
        let client = agent.client();
        for operation in Operation::ALL.into_iter().filter(|one| !one.streams() && has(speaks, *one)) {
            let sent = request(version, operation);
            let answered = client.call(&sent, &conditions()).await.unwrap_or_else(|fault| panic!("{speaks:?} {fault:?}"));
            assert_eq!(answered, reply(version, operation), "{speaks:?} {operation:?}");
            let expected = if version == Version::V1_0 { with_tenant(sent) } else { sent };
            assert_eq!(agent.seen().last().unwrap().0, expected, "{speaks:?} {operation:?}");
        }
    }
}

#[tokio::test]
async fn every_stream_gives_its_events_in_order_and_then_ends() {
    for speaks in Speaks::ALL {
        let version = speaks.0;
        let mut events =
            vec![changed(TaskState::Working), chunk("a", false, false), chunk("b", true, true), changed(TaskState::Completed)];
        if version != Version::Original {
            events.insert(0, TaskEvent::Created(task(TaskState::Submitted).into()));
        }
        let steps: Vec<_> = events.iter().cloned().map(Step::Event).collect();
        let agent = ScriptedAgent::start(speaks, move |_| Answer::Events(steps.clone())).await;
        let client = agent.client();
        for operation in [Operation::StreamMessage, Operation::SubscribeToTask] {
            let sent = request(version, operation);
            let mut stream = client.stream(&sent, &conditions()).await.unwrap_or_else(|fault| panic!("{speaks:?} {fault:?}"));
            let mut heard = Vec::new();
            while let Some(one) = stream.next().await.unwrap_or_else(|fault| panic!("{speaks:?} {fault:?}")) {
                assert_eq!(one.face.unwrap().task_id.as_str(), "t-1", "{speaks:?}");
                assert_eq!(
                    one.id.as_deref().map(str::to_owned),
                    (speaks.1 != Binding::Grpc).then(|| (heard.len() + 1).to_string()),
                    "{speaks:?}"
                );
                heard.push(one.event);
            }
            assert_eq!(heard, events, "{speaks:?} {operation:?}");
            assert_eq!(stream.next().await.unwrap(), None, "an ended stream stays ended");
            let expected = if version == Version::V1_0 { with_tenant(sent) } else { sent };
            assert_eq!(agent.seen().last().unwrap().0, expected, "{speaks:?} {operation:?}");
        }
    }
}

#[tokio::test]
async fn what_goes_with_a_call_arrives_with_it() {
    for speaks in Speaks::ALL {
        let version = speaks.0;
        let agent = ScriptedAgent::start(speaks, move |asked| Answer::Reply(reply(version, asked.operation()))).await;
        let conditions = CallConditions {
            extensions: vec!["urn:x".to_owned(), "urn:y".to_owned()],
            credentials: AgentCredentials::api_key("k-1"),
            idempotency_key: Some("once".to_owned()),
            ..CallConditions::new(TraceId(7))
        };
        agent.client().call(&request(version, Operation::GetTask), &conditions).await.unwrap();
        let headers = agent.seen().remove(0).1;
        let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(TraceId::from_traceparent(&header("traceparent").unwrap()), Some(TraceId(7)), "{speaks:?}");
        assert_eq!(header("x-api-key").as_deref(), Some("k-1"));
        assert_eq!(header("idempotency-key").as_deref(), Some("once"));
        assert!(header("user-agent").unwrap().starts_with("chancery/"));
        let (asked, newer, older) = (header("a2a-version"), header("a2a-extensions"), header("x-a2a-extensions"));
        let found = (asked.as_deref(), newer.as_deref(), older.as_deref());
        let expected = match version {
            Version::V1_0 => (Some("1.0"), Some("urn:x,urn:y"), None),
            Version::V0_3 => (Some("0.3"), None, Some("urn:x,urn:y")),
            Version::Original => (None, None, None),
        };
        assert_eq!(found, expected, "{speaks:?}");
    }
}

#[tokio::test]
async fn what_a_version_cannot_say_is_not_sent() {
    for speaks in Speaks::ALL {
        let version = speaks.0;
        let agent = ScriptedAgent::start(speaks, |_| panic!("nothing may arrive")).await;
        for operation in Operation::ALL.into_iter().filter(|one| !one.streams() && !has(speaks, *one)) {
            let fault = agent.client().call(&request(version, operation), &conditions()).await.unwrap_err();
            let ClientError::NotAsked(error) = &fault else { panic!("{speaks:?} {operation:?}: {fault:?}") };
            assert_eq!((error.kind, fault.sent()), (ErrorKind::UnsupportedOperation, WasSent::No));
        }
        assert!(agent.seen().is_empty());
    }
}

#[tokio::test]
async fn a_stream_is_no_call_and_a_call_no_stream() {
    let speaks = (Version::V1_0, Binding::JsonRpc);
    let agent = ScriptedAgent::start(speaks, |_| panic!("nothing may arrive")).await;
    for operation in Operation::ALL {
        let request = request(Version::V1_0, operation);
        let fault = match operation.streams() {
            true => agent.client().call(&request, &conditions()).await.unwrap_err(),
            false => agent.client().stream(&request, &conditions()).await.unwrap_err(),
        };
        assert!(matches!(fault, ClientError::NotAsked(_)), "{operation:?}: {fault:?}");
    }
}
