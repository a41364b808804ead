//! Members that no version has pass between versions as they are, and what one version has is never taken for such a member.

use std::sync::Arc;

use chancery_protocol::{
    Artifact, ArtifactChunk, Message, OpenObject, Operation, Part, Reply, Request, Role, SendConfiguration, SendMessage, Sent,
    StatusChange, Task, TaskEvent, TaskStatus,
};
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v0_3::rest::V0_3Rest;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::{Codec, Frames, JsonLimits, scan};
use serde_json::Value;

use crate::samples;

const CODECS: [&dyn Codec; 4] = [&V1_0, &V0_3, &V0_3Rest, &Original];

fn send(message: Message) -> Request {
    Request::SendMessage(SendMessage {
        tenant: None,
        message: Arc::new(message),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: Some("client-1".into()),
        unknown: samples::unknown("params"),
    })
}

fn request(codec: &dyn Codec, request: &Request) -> String {
    let mut request = request.clone();
    if let Request::SendMessage(send) = &mut request {
        // In the original the client names the task.
        send.client_task_id = Some("client-1".into());
    }
    let mut out = Vec::new();
    codec.encode_request(&mut out, &request).unwrap();
    whole(out)
}

fn reply(codec: &dyn Codec, task: Task) -> String {
    let mut out = Vec::new();
    codec.encode_reply(&mut out, &Reply::Task(samples::shown(task)));
    whole(out)
}

fn event(codec: &dyn Codec, event: &TaskEvent) -> String {
    let mut frames = Frames::bare();
    codec.encode_event(&mut frames, &samples::face(), event);
    let text = String::from_utf8(frames.take()).unwrap();
    let payloads: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(payloads.len(), 1, "{text}");
    whole(payloads[0].as_bytes().to_vec())
}

/// No name twice, at any depth.
fn whole(json: Vec<u8>) -> String {
    scan(&json, &JsonLimits::default()).unwrap_or_else(|fault| panic!("{fault}: {}", String::from_utf8_lossy(&json)));
    String::from_utf8(json).unwrap()
}

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The update in an event, without the member some versions wrap it in.
fn update(text: &str) -> Value {
    let mut event = object(text);
    ["statusUpdate", "artifactUpdate"].iter().find_map(|name| event.get_mut(name).map(Value::take)).unwrap_or(event)
}

#[track_caller]
fn all_known<T: OpenObject>(object: &Value) {
    for name in object.as_object().unwrap().keys() {
        let sample = name.starts_with("x-") || name.starts_with('"');
        assert!(sample || T::MEMBERS.contains(&name.as_str()), "{} may have a {name}", std::any::type_name::<T>());
    }
}

fn message_known(message: &Value) {
    all_known::<Message>(message);
    let parts = message.get("parts").or(message.get("content")).unwrap();
    parts.as_array().unwrap().iter().for_each(all_known::<Part>);
}

#[test]
fn whatever_a_version_writes_is_known_to_all() {
    for codec in CODECS {
        let sent = object(&request(codec, &send(samples::said())));
        all_known::<SendMessage>(&sent);
        message_known(sent.get("message").or(sent.get("request")).unwrap());

        let task = object(&reply(codec, samples::task()));
        all_known::<Task>(&task);
        all_known::<TaskStatus>(&task["status"]);
        all_known::<Artifact>(&task["artifacts"][0]);
        task["history"].as_array().unwrap().iter().for_each(message_known);

        for (name, one) in samples::events() {
            match one {
                TaskEvent::Status(_) => all_known::<StatusChange>(&update(&event(codec, &one))),
                TaskEvent::Artifact(_) => {
                    let update = update(&event(codec, &one));
                    all_known::<ArtifactChunk>(&update);
                    all_known::<Artifact>(&update["artifact"]);
                }
                _ => assert!(!name.starts_with("status")),
            }
        }
    }
}

#[test]
fn unknown_members_arrive_as_they_left_from_every_version_to_every_other() {
    let spelled = r#"{"n":[1.0e5, 0.10,12345678901234567890]},"\"quoted\" é":"\u0041\/""#;
    let count = |text: &str| text.matches(spelled).count();
    for from in CODECS {
        for to in CODECS {
            let read =
                from.decode_request(Operation::SendMessage, &request(from, &send(samples::said_more(Role::User)))).unwrap();
            // The call, the message and its five parts.
            assert_eq!(count(&request(to, &read)), 7, "{from:?} to {to:?}");

            let Reply::Task(shown) = from.decode_reply(Operation::GetTask, &reply(from, samples::task_with_more())).unwrap()
            else {
                panic!("a task")
            };
            // The task, its status, the artifact with five parts, and two messages with five each.
            assert_eq!(count(&reply(to, (*shown.task).clone())), 2 + 6 + 12, "{from:?} to {to:?}");

            for (name, count_there) in [("unknown-status", 2 + 6), ("unknown-artifact", 2 + 5)] {
                let (_, told) = samples::events().into_iter().find(|(known, _)| *known == name).unwrap();
                let (_, read) = from.decode_event(&event(from, &told)).unwrap();
                assert_eq!(count(&event(to, &read)), count_there, "{name}, {from:?} to {to:?}");
            }
        }
    }
}

/// Whatever name is put in, with whatever version's reader, no other version's writer has it twice: `whole` looks.
#[test]
fn a_name_that_some_version_has_is_never_written_twice() {
    let put = |text: &str, at: &str, name: &str| {
        let mut value = object(text);
        let place = value.pointer_mut(at)?.as_object_mut()?;
        if place.contains_key(name) {
            return None;
        }
        place.insert(name.to_owned(), Value::from("smuggled"));
        Some(value.to_string())
    };
    let everything = [
        Message::MEMBERS,
        Part::MEMBERS,
        Artifact::MEMBERS,
        ArtifactChunk::MEMBERS,
        Task::MEMBERS,
        TaskStatus::MEMBERS,
        StatusChange::MEMBERS,
        SendMessage::MEMBERS,
    ];
    let mut written = 0;
    for from in CODECS {
        for name in everything.into_iter().flatten() {
            for at in ["", "/message", "/request", "/message/parts/0", "/request/content/0"] {
                let Some(text) = put(&request(from, &send(samples::said())), at, name) else { continue };
                let Ok(read) = from.decode_request(Operation::SendMessage, &text) else { continue };
                written += CODECS.iter().map(|to| request(*to, &read).len().min(1)).sum::<usize>();
            }
            for at in ["", "/status", "/artifacts/0", "/history/0", "/artifacts/0/parts/0"] {
                let Some(text) = put(&reply(from, samples::task()), at, name) else { continue };
                let Ok(Reply::Task(shown)) = from.decode_reply(Operation::GetTask, &text) else { continue };
                written += CODECS.iter().map(|to| reply(*to, (*shown.task).clone()).len().min(1)).sum::<usize>();
            }
            for (_, told) in samples::events().into_iter().filter(|(kind, _)| matches!(*kind, "status-working" | "artifact-more"))
            {
                for at in ["", "/statusUpdate", "/artifactUpdate", "/artifact"] {
                    let Some(text) = put(&event(from, &told), at, name) else { continue };
                    let Ok((_, read)) = from.decode_event(&text) else { continue };
                    written += CODECS.iter().map(|to| event(*to, &read).len().min(1)).sum::<usize>();
                }
            }
        }
    }
    assert!(written > 3_000, "only {written} were read and written");
}

#[test]
fn what_another_version_would_read_as_its_own_is_not_passed_on() {
    let through = |from: &dyn Codec, to: &dyn Codec, text: &str| {
        object(&request(to, &from.decode_request(Operation::SendMessage, text).unwrap()))
    };
    let part = through(
        &V0_3,
        &V1_0,
        r#"{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"a","mediaType":"b","url":"c","x":1}],
            "content":[],"x":1},"x":1}"#,
    );
    assert_eq!(part["message"]["parts"][0], object(r#"{"text":"a","x":1}"#));
    assert_eq!(part, object(r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a","x":1}],"x":1},"x":1}"#));

    let newest = r#"{"message":{"messageId":"m","role":"ROLE_USER","kind":"task","content":[{"text":"other"}],"parts":[{"text":"a",
        "kind":"data","type":"file","file":{"uri":"u"}}]},"request":{},"id":"theirs","sessionId":"s","skill":"root","policy":{},
        "context":{"depth":-1},"pushNotification":{"url":"http://h"},"acceptedOutputModes":["a/b"],"historyLength":9}"#;
    let Request::SendMessage(sent) = V1_0.decode_request(Operation::SendMessage, newest).unwrap() else { panic!() };
    assert!(sent.unknown.is_empty() && sent.message.unknown.is_empty());
    let original = object(&request(&Original, &Request::SendMessage(sent)));
    assert_eq!(original, object(r#"{"id":"client-1","message":{"role":"user","parts":[{"type":"text","text":"a"}]}}"#));

    let task = r#"{"kind":"task","id":"t","contextId":"c","sessionId":"other","status":{"state":"working","update":{"a":1}},
        "artifacts":[{"artifactId":"a","parts":[],"index":7,"append":true}]}"#;
    let Ok(Reply::Task(shown)) = V0_3.decode_reply(Operation::GetTask, task) else { panic!() };
    let over_rest = object(&reply(&V0_3Rest, (*shown.task).clone()));
    assert_eq!(over_rest["status"], object(r#"{"state":"TASK_STATE_WORKING"}"#));
    let original = object(&reply(&Original, (*shown.task).clone()));
    assert_eq!(original["sessionId"], "c");
    assert_eq!(original["artifacts"][0], object(r#"{"parts":[],"index":0}"#));
}

#[test]
fn a_message_alone_keeps_them_too() {
    for codec in [&V1_0 as &dyn Codec, &V0_3, &V0_3Rest] {
        let mut out = Vec::new();
        codec.encode_reply(&mut out, &Reply::Sent(Sent::Message(Arc::new(samples::said_more(Role::Agent)))));
        let read = codec.decode_reply(Operation::SendMessage, &whole(out)).unwrap();
        let Reply::Sent(Sent::Message(message)) = read else { panic!() };
        assert_eq!(message.unknown.iter().count(), 2);
    }
}
