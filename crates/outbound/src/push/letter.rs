//! Writes a notification: the body in the form of its registration, and the headers that are the same each time.

use std::sync::Arc;

use chancery_core::TaskRecord;
use chancery_core::notify::{Letter, SpanKind, WebhookDelivery, WebhookPayload};
use chancery_core::push::PushProfile;
use chancery_identity::webhook::{Carries, WebhookId};
use chancery_protocol::{NamedTask, Task};
use chancery_wire::TaskNames;
use chancery_wire::json::push::{Body, Kind, NotificationBody, Shape, body};

use super::config::{CourierConfig, OriginRules};

pub(super) fn write(config: &CourierConfig, rules: Option<&OriginRules>, delivery: &WebhookDelivery) -> Letter {
    let registration = &*delivery.registration;
    let webhook_id = webhook_id(delivery);
    let Body { bytes, kind } = told(config, delivery, &webhook_id);
    let mut headers: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    let mut add = |name: &str, value: &str| headers.push((name.into(), value.into()));
    let content_type = rules.and_then(|rules| rules.content_type.as_deref()).unwrap_or(content_type(registration.profile));
    add("content-type", content_type);
    if let Some(version) = version(registration.profile) {
        add("a2a-version", version);
    }
    add("a2a-event-seq", &delivery.span.to.to_string());
    if delivery.span.kind != SpanKind::Single {
        add("a2a-event-compacted", &format!("{}-{}", delivery.from, delivery.span.to));
    }
    if registration.profile == PushProfile::NeuralPost {
        add("x-neuralpost-resulttype", kind.as_str());
        add("x-neuralpost-delivery", &webhook_id);
    }
    Letter { webhook_id: webhook_id.into(), body: bytes.into(), headers }
}

fn webhook_id(delivery: &WebhookDelivery) -> String {
    let WebhookDelivery { registration, from, span, .. } = delivery;
    let carries = match span.kind {
        SpanKind::Single => Carries::Entry,
        SpanKind::Merged => Carries::MergedFrom(*from),
        SpanKind::Snapshot => Carries::Snapshot,
    };
    WebhookId::new(&registration.url, registration.lane, span.to, carries).to_string()
}

fn content_type(profile: PushProfile) -> &'static str {
    match profile {
        PushProfile::V1 => "application/a2a+json",
        PushProfile::V03Task | PushProfile::V03Event | PushProfile::Original | PushProfile::NeuralPost => "application/json",
    }
}

fn version(profile: PushProfile) -> Option<&'static str> {
    match profile {
        PushProfile::V1 => Some("1.0"),
        PushProfile::V03Task | PushProfile::V03Event | PushProfile::NeuralPost => Some("0.3"),
        PushProfile::Original => None,
    }
}

fn shape(profile: PushProfile) -> Shape {
    match profile {
        PushProfile::V1 => Shape::V1,
        PushProfile::V03Task => Shape::V0_3Task,
        PushProfile::V03Event => Shape::V0_3Event,
        PushProfile::Original => Shape::Original,
        PushProfile::NeuralPost => Shape::Envelope,
    }
}

fn told(config: &CourierConfig, delivery: &WebhookDelivery, id: &str) -> Body {
    let shape = shape(delivery.registration.profile);
    let record = &*delivery.record;
    let written = match &delivery.payload {
        WebhookPayload::Event(entry) => body(shape, NotificationBody::Event(&face(record), &entry.event), id),
        WebhookPayload::Task(task) if shape == Shape::V1 => {
            body(shape, NotificationBody::Task(&shown(record, Arc::clone(task))), id)
        }
        WebhookPayload::Task(task) => {
            let short = body(shape, NotificationBody::Task(&shown(record, with_less_history(task, config.task_history))), id);
            let fits = short.filter(|body| body.bytes.len() <= config.task_bytes);
            fits.or_else(|| body(shape, NotificationBody::Task(&shown(record, thin(task))), id))
        }
    };
    // The engine hands over only what is told in some form.
    written.unwrap_or(Body { bytes: b"{}".to_vec(), kind: Kind::Task })
}

/// The end of a long conversation.
fn with_less_history(task: &Arc<Task>, most: usize) -> Arc<Task> {
    let Some(excess) = task.history.len().checked_sub(most).filter(|excess| *excess > 0) else { return Arc::clone(task) };
    let mut task = Task::clone(task);
    task.history.drain(..excess);
    Arc::new(task)
}

/// Which task it is and how it stands; the rest can be asked for.
fn thin(task: &Task) -> Arc<Task> {
    Arc::new(Task {
        id: task.id.clone(),
        context_id: task.context_id.clone(),
        status: task.status.clone(),
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        unknown: Default::default(),
    })
}

fn face(record: &TaskRecord) -> TaskNames {
    TaskNames {
        task_id: record.id.clone(),
        context_id: record.context_id.clone(),
        client_task_id: record.client_task_id.clone(),
        artifacts: Vec::new(),
        stays_open: false,
    }
}

fn shown(record: &TaskRecord, task: Arc<Task>) -> NamedTask {
    NamedTask { task, dialect: record.dialect, client_task_id: record.client_task_id.clone() }
}

#[cfg(test)]
mod tests {
    use chancery_core::notify::Span;
    use chancery_core::push::{PushEvents, Registration, RegistrationId};
    use chancery_protocol::{Artifact, Caller, Message, Part, Role, TaskState, TaskStatus, Timestamp, TraceId, Version};
    use serde_json::Value;

    use super::*;

    fn delivery(profile: PushProfile, span: Span, artifact_bytes: usize) -> WebhookDelivery {
        let at = Timestamp::from_micros(0);
        let status = TaskStatus { state: TaskState::Completed, message: None, timestamp: None, unknown: Default::default() };
        let history = (0..12).map(|number| Arc::new(Message::text(Role::User, format!("m{number}"), "hi"))).collect();
        let task = Task {
            id: "t".into(),
            context_id: "c".into(),
            status,
            artifacts: vec![Arc::new(Artifact::new("a", vec![Part::text("x".repeat(artifact_bytes))]))],
            history,
            metadata: None,
            unknown: Default::default(),
        };
        let registration = Registration {
            lane: 7,
            task: "t".into(),
            id: RegistrationId::new("r"),
            owner: Caller::new("tenant", "caller"),
            agent: "agent".into(),
            version: Version::V0_3,
            profile,
            events: PushEvents::Status,
            url: "https://hooks.example/".into(),
            origin: "https://hooks.example:443".into(),
            scheme: None,
            sealed: None,
            created_at: at,
            trace: TraceId(1),
        };
        let record = TaskRecord {
            id: "t".into(),
            context_id: "c".into(),
            agent: "agent".into(),
            owner: Caller::new("tenant", "caller"),
            dialect: Version::Original.into(),
            client_task_id: Some("mine".into()),
            created_at: at,
        };
        let (registration, record) = (Arc::new(registration), Arc::new(record));
        WebhookDelivery { registration, record, from: 3, span, payload: WebhookPayload::Task(Arc::new(task)) }
    }

    fn written(profile: PushProfile, artifact_bytes: usize) -> Value {
        let letter = write(&CourierConfig::default(), None, &delivery(profile, Span::single(5), artifact_bytes));
        serde_json::from_slice(&letter.body).unwrap()
    }

    #[test]
    fn older_versions_get_the_end_of_the_history_and_the_newest_gets_all_of_it() {
        let old = written(PushProfile::V03Task, 1);
        assert_eq!(old["history"].as_array().unwrap().len(), 10);
        assert_eq!(old["history"][0]["messageId"], "m2");
        assert_eq!(written(PushProfile::V1, 1)["task"]["history"].as_array().unwrap().len(), 12);
    }

    #[test]
    fn a_task_at_the_limit_goes_out_whole_and_a_bigger_one_thin() {
        let most = CourierConfig::default().task_bytes;
        let around = written(PushProfile::V03Task, 0).to_string().len();
        let whole = |bytes: usize| written(PushProfile::V03Task, bytes).get("artifacts").is_some();
        assert!(whole(most - around));
        assert!(!whole(most - around + 1));
        let thin = written(PushProfile::V03Task, most);
        assert_eq!((&thin["id"], &thin["status"]["state"]), (&"t".into(), &"completed".into()));
        assert!(thin.get("history").is_none_or(|history| history.as_array().is_some_and(Vec::is_empty)), "{thin}");
        assert!(written(PushProfile::V1, most)["task"]["artifacts"].is_array(), "what can be asked for is what is told");
    }

    #[test]
    fn each_form_has_its_headers_and_what_stands_for_several_entries_says_so() {
        let header = |letter: &Letter, name: &str| {
            letter.headers.iter().find(|(found, _)| &**found == name).map(|(_, value)| value.to_string())
        };
        let config = CourierConfig::default();
        let letter = write(&config, None, &delivery(PushProfile::V03Task, Span::single(5), 1));
        assert_eq!(header(&letter, "content-type").as_deref(), Some("application/json"));
        assert_eq!(header(&letter, "a2a-version").as_deref(), Some("0.3"));
        assert_eq!((header(&letter, "a2a-event-seq").as_deref(), header(&letter, "a2a-event-compacted")), (Some("5"), None));
        let rules = OriginRules { content_type: Some("text/json".into()), ..OriginRules::default() };
        let letter = write(&config, Some(&rules), &delivery(PushProfile::V1, Span::snapshot(9), 1));
        assert_eq!(header(&letter, "content-type").as_deref(), Some("text/json"));
        assert_eq!(header(&letter, "a2a-event-compacted").as_deref(), Some("3-9"));
        assert!(letter.webhook_id.ends_with("_7_9-s"), "{}", letter.webhook_id);
        let letter = write(&config, None, &delivery(PushProfile::Original, Span::single(5), 1));
        assert_eq!(header(&letter, "a2a-version"), None);
        assert_eq!(serde_json::from_slice::<Value>(&letter.body).unwrap()["id"], "mine");
        let letter = write(&config, None, &delivery(PushProfile::NeuralPost, Span::single(5), 1));
        assert_eq!(header(&letter, "x-neuralpost-resulttype").as_deref(), Some("task"));
        assert_eq!(header(&letter, "x-neuralpost-delivery").as_deref(), Some(&*letter.webhook_id));
    }
}
