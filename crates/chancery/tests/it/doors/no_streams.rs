//! Agents inside the node whose card says that they do not stream: no version and no binding streams from them.

use std::sync::Arc;

use chancery::{Artifact, Finished, Node, Part, RunError, TaskRunner, TaskUpdateSink, Turn, async_trait, new_card};
use chancery_protocol::{
    ErrorKind, Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, SubscribeToTask, TaskState, Version,
};
use serde_json::Value;

use crate::support::wire_client::{Combination, Conditions, WireClient};

struct Quick;

#[async_trait]
impl TaskRunner for Quick {
    async fn run(&self, _: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        updates.artifact(Artifact::new("answer", vec![Part::text("done")])).await?;
        Ok(updates.complete(None))
    }
}

/// A node with an agent whose card says this of streaming.
async fn node(streaming: Option<bool>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let mut card = new_card("Quick", "Answers at once.");
    card.capabilities.streaming = streaming;
    let node = Node::builder().agent("quick", card, Quick).memory().public_url(url.as_str()).build().await.expect("a node");
    tokio::spawn(async move { axum::serve(listener, node.router()).await.expect("a server") });
    url
}

fn sending(combination: Combination, name: &str) -> SendMessage {
    SendMessage {
        tenant: None,
        message: Arc::new(Message::of_parts(Role::User, name, vec![Part::text("hello")])),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (combination.version == Version::Original).then(|| name.into()),
        unknown: Default::default(),
    }
}

#[tokio::test]
async fn an_agent_that_does_not_stream_refuses_every_stream_and_answers_every_send() {
    let url = node(Some(false)).await;
    for combination in Combination::ALL {
        let (client, none) = (WireClient::new(&url, combination), Conditions::default());
        let sent = client.call(&Request::SendMessage(sending(combination, &combination.name())), &none).await;
        let Ok(Reply::Sent(Sent::Task(task))) = sent else { panic!("{combination:?}: {sent:?}") };
        assert_eq!(task.task.status.state, TaskState::Completed, "{combination:?}");

        let id = task.client_task_id.as_deref().map_or_else(|| task.task.id.clone(), Into::into);
        for request in [
            Request::StreamMessage(sending(combination, "another")),
            Request::SubscribeToTask(SubscribeToTask { tenant: None, id }),
        ] {
            let refused = client.stream(&request, &none).await.err().expect("the stream is refused");
            refused
                .check(ErrorKind::UnsupportedOperation, combination)
                .unwrap_or_else(|fault| panic!("{combination:?}: {fault}"));
            assert!(refused.message().contains("does not stream"), "{combination:?}: {}", refused.message());
        }
    }
}

#[tokio::test]
async fn a_card_that_says_nothing_of_streaming_says_yes() {
    let url = node(None).await;
    let card: Value = reqwest::get(format!("{url}/.well-known/agent-card.json")).await.unwrap().json().await.unwrap();
    assert_eq!(card["capabilities"]["streaming"], true, "{card}");
    for combination in Combination::ALL {
        let (client, none) = (WireClient::new(&url, combination), Conditions::default());
        let streamed = client.stream(&Request::StreamMessage(sending(combination, &combination.name())), &none).await;
        assert!(streamed.is_ok(), "{combination:?}: {:?}", streamed.err());
    }
}
