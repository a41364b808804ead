//! SWP's mapping under anything a peer can send: nothing panics, and what is written is read as it was.

use std::sync::Arc;

use bytes::Bytes;
use chancery_protocol::{Message, Part, PartContent, Role, SendConfiguration, SendMessage};
use chancery_wire::JsonLimits;
use chancery_wire::swp::codec::{Extension, Extensions, a2a};
use chancery_wire::swp::{Convention, Given, ReportReader, read_task, write_task};
use proptest::prelude::*;

fn octets() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

/// Extensions of the numbers that mean something, with anything in them.
fn extensions() -> impl Strategy<Value = Extensions> {
    let one = (15_u64..20, prop::collection::vec(any::<u8>(), 0..4))
        .prop_map(|(ext_type, value)| Extension { ext_type, value: value.into() });
    prop::collection::vec(one, 0..3).prop_map(|all| all.into_iter().collect())
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        "[^\u{0}]{1,40}".prop_map(Part::text),
        (any::<i32>(), "[a-z]{0,8}").prop_map(|(number, word)| Part::data(&serde_json::json!({ "n": number, "w": [word] }))),
        octets()
            .prop_filter("octets that are there", |octets| !octets.is_empty())
            .prop_map(|octets| Part { media_type: Some("image/png".to_owned()), ..Part::new(PartContent::Raw(octets)) }),
    ]
}

fn send(parts: Vec<Part>) -> SendMessage {
    SendMessage {
        tenant: None,
        message: Arc::new(Message::of_parts(Role::User, "m-1", parts)),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    }
}

proptest! {
    #[test]
    fn any_task_is_read_or_refused(input in octets(), extensions in extensions(), kind in ".{1,10}") {
        let Ok(given) = Given::of(&extensions) else { return Ok(()) };
        let task = a2a::SwpTaskMessage { task_id: Bytes::from_static(b"t"), kind, input };
        for declared in Convention::ALL {
            let _ = read_task(&task, Some("skill"), "name", &given, declared, &JsonLimits::default());
        }
    }

    #[test]
    fn any_reports_are_heard_or_refused(
        reports in prop::collection::vec((any::<bool>(), any::<bool>(), octets(), ".{0,20}", extensions()), 0..6)
    ) {
        let mut reader = ReportReader::new("task", JsonLimits::default());
        for (is_result, ok, octets, words, extensions) in reports {
            let task_id = Bytes::from_static(b"t");
            let _ = match is_result {
                true => reader.result(a2a::TaskResult { task_id, ok, output: octets, error_message: words }, &extensions),
                false => reader.event(a2a::SwpEventMessage { task_id, message: words, event_payload: octets }, &extensions),
            };
        }
    }

    #[test]
    fn a_part_that_is_sent_in_few_words_comes_as_it_was(part in part()) {
        let (task, given) = write_task(&send(vec![part.clone()]), Bytes::from_static(b"t"), "k".to_owned(), false).unwrap();
        let given = Given::of(&given.to_extensions()).unwrap();
        let read = read_task(&task, None, "m-1", &given, Convention::Text, &JsonLimits::default()).unwrap();
        prop_assert_eq!(&read.message.parts, &vec![part]);
    }

    #[test]
    fn a_message_that_is_sent_whole_comes_as_it_was(parts in prop::collection::vec(part(), 1..4)) {
        let whole = send(parts);
        let (task, given) = write_task(&whole, Bytes::from_static(b"t"), "k".to_owned(), true).unwrap();
        let read = read_task(&task, None, "m-1", &given, Convention::Text, &JsonLimits::default()).unwrap();
        prop_assert_eq!(read, whole);
    }
}
