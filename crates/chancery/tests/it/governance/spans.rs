//! The span of a turn: where its task stands in its tree, and in the end what it cost.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use chancery::config::TaskLimits;
use chancery::{Finished, RunError, TaskRunner, TaskUpdateSink, Turn, async_trait};
use chancery_protocol::{Metadata, TaskState};
use chancery_store::MemoryStore;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use crate::support::bare_service::BareService;

/// Logs a word while it works, and reports what it used.
struct Spender;

#[async_trait]
impl TaskRunner for Spender {
    async fn run(&self, _turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        tracing::info!("at work");
        let mut message = updates.text("done");
        let serde_json::Value::Object(usage) = json!({ "usage": { "input_tokens": 7, "output_tokens": 2, "cost_usd": "0.25" } })
        else {
            unreachable!()
        };
        message.metadata = Some(Metadata::from_object(usage));
        Ok(updates.complete(Some(message)))
    }
}

type Fields = HashMap<String, String>;

/// What is on each span named `turn`, and the span each event was in.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Log>>);

#[derive(Default)]
struct Log {
    turns: HashMap<u64, Fields>,
    events: Vec<(String, Option<u64>)>,
}

struct Written<'a>(&'a mut Fields);

impl Visit for Written<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl<S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>> Layer<S> for Seen {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        if attributes.metadata().name() == "turn" {
            let mut fields = Fields::new();
            attributes.record(&mut Written(&mut fields));
            self.0.lock().unwrap().turns.insert(id.into_u64(), fields);
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, _: Context<'_, S>) {
        if let Some(fields) = self.0.lock().unwrap().turns.get_mut(&id.into_u64()) {
            record.record(&mut Written(fields));
        }
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::new();
        event.record(&mut Written(&mut fields));
        let within = context.event_span(event).map(|span| span.id().into_u64());
        self.0.lock().unwrap().events.push((fields.remove("message").unwrap_or_default(), within));
    }
}

#[tokio::test]
async fn a_turn_is_logged_under_its_trace_with_what_it_cost() {
    let seen = Seen::default();
    let _logging = tracing::subscriber::set_default(tracing_subscriber::registry().with(seen.clone()));
    let bare_service = BareService::new(MemoryStore::new(), Arc::new(Spender), TaskLimits::default());
    let task = bare_service.send("hello").await;
    assert_eq!(task.status.state, TaskState::Completed);

    let seen = seen.0.lock().unwrap();
    let (_, within) = seen.events.iter().find(|(message, _)| message == "at work").expect("the agent's own word");
    let span = &seen.turns[&within.expect("inside a span")];
    let expected = [
        ("task", task.id.to_string()),
        ("agent", "workshop".to_owned()),
        ("trace_id", BareService::context().trace.to_string()),
        ("depth", "0".to_owned()),
        ("attribution", "root".to_owned()),
        ("gen_ai.usage.input_tokens", "7".to_owned()),
        ("gen_ai.usage.output_tokens", "2".to_owned()),
        ("chancery.cost_usd", "0.25".to_owned()),
    ];
    for (name, value) in expected {
        assert_eq!(span.get(name), Some(&value), "{name}: {span:?}");
    }
}
