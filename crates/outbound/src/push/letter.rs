//! Writes a notification: the body in the form of its registration, and the headers that are the same each time.

use std::sync::Arc;

use chancery_core::TaskRecord;
use chancery_core::notify::{Delivery, Letter, Payload, SpanKind};
use chancery_core::push::PushProfile;
use chancery_identity::webhook::{Carries, WebhookId};
use chancery_protocol::{Shown, Task};
use chancery_wire::Face;
use chancery_wire::json::push::{Body, Kind, Shape, Told, body};

use super::config::{CourierConfig, OriginRules};

pub(super) fn write(config: &CourierConfig, rules: Option<&OriginRules>, delivery: &Delivery) -> Letter {
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

fn webhook_id(delivery: &Delivery) -> String {
    let Delivery { registration, from, span, .. } = delivery;
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

fn told(config: &CourierConfig, delivery: &Delivery, id: &str) -> Body {
    let shape = shape(delivery.registration.profile);
    let record = &*delivery.record;
    let written = match &delivery.payload {
        Payload::Event(entry) => body(shape, Told::Event(&face(record), &entry.event), id),
        Payload::Task(task) if shape == Shape::V1 => body(shape, Told::Task(&shown(record, Arc::clone(task))), id),
        Payload::Task(task) => {
            let short = body(shape, Told::Task(&shown(record, with_less_history(task, config.task_history))), id);
            let fits = short.filter(|body| body.bytes.len() <= config.task_bytes);
            fits.or_else(|| body(shape, Told::Task(&shown(record, thin(task))), id))
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

fn face(record: &TaskRecord) -> Face {
    Face {
        task_id: record.id.clone(),
        context_id: record.context_id.clone(),
        client_task_id: record.client_task_id.clone(),
        artifacts: Vec::new(),
    }
}

fn shown(record: &TaskRecord, task: Arc<Task>) -> Shown {
    Shown { task, dialect: record.dialect, client_task_id: record.client_task_id.clone() }
}
