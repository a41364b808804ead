//! JSON of an agent elsewhere is held to the schema it names, whatever its caller speaks.

use std::sync::Arc;

use chancery::{Config, Node, new_card};
use chancery_core::{Finished, RunError, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{
    ArtifactKind, Message, PartContent, Reply, Request, Role, SendConfiguration, SendMessage, Sent, TaskState, Version,
};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::server::{Home, Setup};
use crate::support::wire_client::{Combination, Conditions, WireClient};

const SCHEMA: &str = "https://example.org/counted.json";

/// Counts, by a number or by a word.
struct Counter;

#[async_trait::async_trait]
impl TaskRunner for Counter {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let count = match turn.message.first_text() {
            Some("well") => json!(3),
            _ => json!("three"),
        };
        let value = json!({ "of": [{ "count": count }] });
        let kind = ArtifactKind::StructuredJson { value, schema: Some(SCHEMA.to_owned()) };
        updates.artifact(kind.to_artifact("counted")).await?;
        Ok(updates.complete(None))
    }
}

fn message(combination: Combination, text: &str) -> Request {
    Request::SendMessage(SendMessage {
        tenant: None,
        message: Arc::new(Message::text(Role::User, "m", text)),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (combination.version == Version::Original).then(|| format!("own-{text}").into()),
        unknown: Default::default(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn json_that_does_not_obey_its_schema_fails_the_task_and_names_the_place_in_every_version() {
    let stop = CancellationToken::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut card = new_card("Counter", "Counts");
    card.default_output_modes = vec!["application/json".to_owned()];
    let node = Node::builder().agent("counter", card, Counter).config(Config::parse("").unwrap()).public_url(&url);
    let node = node.memory().build().await.unwrap();
    let stopped = stop.clone();
    tokio::spawn(async move { node.serve(listener, stopped).await });
    let (home, schemas) = (Home::new(), tempfile::tempdir().unwrap());
    let item = json!({ "type": "object", "properties": { "count": { "type": "integer" } } });
    let schema = json!({ "$id": SCHEMA, "properties": { "of": { "type": "array", "items": item } } });
    std::fs::write(schemas.path().join("counted.json"), schema.to_string()).unwrap();
    let config = format!(
        "[agents.front]\nurl = '{url}'\n[artifacts]\nschemas = '{}'\n[outbound]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n",
        schemas.path().display()
    );
    let gateway = Setup::in_home(&home).config(&config).start();
    for combination in Combination::ALL {
        let client = WireClient::new(gateway.url(), combination);
        let name = combination.name();
        let sent = client.call(&message(combination, "well"), &Conditions::default()).await;
        let Ok(Reply::Sent(Sent::Task(done))) = sent else { panic!("{name}: {sent:?}") };
        assert_eq!(done.task.status.state, TaskState::Completed, "{name}: {done:?}");
        let counted = &done.task.artifacts[0].parts[0].content;
        assert!(matches!(counted, PartContent::Data(json) if json.text().contains("3")), "{name}: {counted:?}");
        let sent = client.call(&message(combination, "badly"), &Conditions::default()).await;
        let Ok(Reply::Sent(Sent::Task(failed))) = sent else { panic!("{name}: {sent:?}") };
        assert_eq!(failed.task.status.state, TaskState::Failed, "{name}: {failed:?}");
        let said = failed.task.status.message.as_ref().and_then(|message| message.first_text()).unwrap_or_default();
        assert!(said.contains("INVALID_AGENT_RESPONSE") && said.contains("at /of/0/count"), "{name}: {said}");
        assert!(failed.task.artifacts.is_empty(), "{name}: nothing of it is kept");
    }
    stop.cancel();
}
