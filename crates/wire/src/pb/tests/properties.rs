//! Every message survives the way to bytes and back.

use std::sync::Arc;

use bytes::Bytes;
use chancery_protocol::{Json, Message, Metadata, Part, PartContent, Role, TaskEvent};
use proptest::prelude::*;
use serde_json::Value;

use super::through_bytes;
use crate::TaskNames;
use crate::pb::{v0_3, v1};

/// Any JSON that a double can carry, a few levels deep.
fn json() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i32>().prop_map(Value::from),
        // A whole number comes back without its point, which serde_json holds for another value.
        (-1e15..1e15_f64).prop_filter("has a fraction", |number| number.fract() != 0.0).prop_map(Value::from),
        (-(1_i64 << 53)..=1 << 53).prop_map(Value::from),
    ];
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number, any::<String>().prop_map(Value::from)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn metadata() -> impl Strategy<Value = Option<Metadata>> {
    let object = prop::collection::btree_map(any::<String>(), json(), 0..4);
    prop::option::of(object.prop_map(|map| Metadata::from_object(map.into_iter().collect())))
}

fn non_empty() -> impl Strategy<Value = Option<String>> {
    prop::option::of("\\PC{1,12}")
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        any::<String>().prop_map(PartContent::Text),
        any::<Vec<u8>>().prop_map(|bytes| PartContent::Raw(Bytes::from(bytes))),
        any::<String>().prop_map(PartContent::Url),
        json().prop_map(|value| PartContent::Data(Json::from_value(&value))),
    ];
    (content, metadata(), non_empty(), non_empty()).prop_map(|(content, metadata, filename, media_type)| Part {
        content,
        metadata,
        filename,
        media_type,
        unknown: Default::default(),
    })
}

fn message() -> impl Strategy<Value = Message> {
    let ids = ("\\PC{1,12}", non_empty(), non_empty(), prop::collection::vec("\\PC{1,12}", 0..3));
    let role = prop_oneof![Just(Role::User), Just(Role::Agent)];
    let extensions = prop::collection::vec(any::<String>(), 0..3);
    (ids, role, prop::collection::vec(part(), 0..4), metadata(), extensions).prop_map(
        |((message_id, context_id, task_id, references), role, parts, metadata, extensions)| Message {
            message_id: message_id.into(),
            context_id: context_id.map(Into::into),
            task_id: task_id.map(Into::into),
            role,
            parts,
            metadata,
            extensions,
            reference_task_ids: references.into_iter().map(Into::into).collect(),
            unknown: Default::default(),
        },
    )
}

fn face() -> TaskNames {
    TaskNames::named("t".into(), "c".into())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_message_of_1_0_comes_back_whole(message in message()) {
        let event = TaskEvent::Replied(Arc::new(message));
        let (_, back) = v1::event::read(through_bytes(v1::event::write(&face(), &event).unwrap())).unwrap();
        prop_assert_eq!(back, event);
    }

    #[test]
    fn any_message_comes_back_through_0_3_without_what_it_has_no_place_for(message in message()) {
        let message = Message {
            parts: message.parts.into_iter().map(as_0_3_has_it).collect(),
            reference_task_ids: Vec::new(),
            ..message
        };
        let event = TaskEvent::Replied(Arc::new(message));
        let (_, back) = v0_3::event::read(through_bytes(v0_3::event::write(&face(), &event).unwrap())).unwrap();
        prop_assert_eq!(back, event);
    }
}

/// Text and data have no name, bytes do not look like base64, and wrapping forgets that metadata was there and empty.
fn as_0_3_has_it(part: Part) -> Part {
    let bare = |content| Part { filename: None, media_type: None, metadata: None, content, unknown: Default::default() };
    match part.content {
        PartContent::Raw(bytes) => Part { content: PartContent::Raw([b"\x00", &*bytes].concat().into()), ..part },
        PartContent::Text(_) => Part { metadata: part.metadata, ..bare(part.content) },
        PartContent::Data(ref json) if json.is_object() => Part { metadata: part.metadata, ..bare(part.content) },
        PartContent::Data(_) => bare(part.content),
        PartContent::Url(_) => part,
    }
}
