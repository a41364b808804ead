//! A task of the profile as the message it stands for, and a message as a task.

use std::sync::Arc;

use bytes::Bytes;
use chancery_protocol::{
    Error, ErrorKind, Json, Message, MessageId, Metadata, Part, PartContent, Request, Role, SendConfiguration, SendMessage,
};
use chancery_swp::a2a;
use prost::Message as _;

use super::content::{Content, Convention, Given, malformed};
use crate::pb::v1;
use crate::scan::JsonLimits;

/// The message that a task stands for. `skill` is what its kind names; `name` becomes the message's id where the input has none.
pub fn read_task(
    task: &a2a::SwpTaskMessage,
    skill: Option<&str>,
    name: &str,
    given: &Given,
    declared: Convention,
    json: &JsonLimits,
) -> Result<SendMessage, Error> {
    let convention = given.convention.unwrap_or(declared);
    if convention == Convention::A2a && !task.input.is_empty() {
        return read_whole(&task.input, skill);
    }
    let content = Content { bytes: task.input.clone(), convention, media_type: given.media_type.clone() };
    let parts = vec![content.part(json)?.unwrap_or_else(|| empty_part(&content))];
    let send = SendMessage {
        tenant: None,
        message: Arc::new(Message::of_parts(Role::User, MessageId::new(name), parts)),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    };
    Ok(SendMessage { metadata: skill.map(|skill| with_skill(None, skill)), ..send })
}

/// The part that an empty input stands for: a message of A2A has at least one.
fn empty_part(content: &Content) -> Part {
    match content.convention {
        Convention::Text | Convention::A2a => Part::text(""),
        Convention::Json => Part::data(&serde_json::Value::Null),
        Convention::Opaque => Part { media_type: content.media_type.clone(), ..Part::new(PartContent::Raw(Bytes::new())) },
    }
}

fn read_whole(input: &Bytes, skill: Option<&str>) -> Result<SendMessage, Error> {
    let request = v1::proto::SendMessageRequest::decode(input.clone()).map_err(|fault| malformed(&fault.to_string()))?;
    let Request::StreamMessage(send) = v1::request::stream_message(request)? else {
        return Err(Error::new(ErrorKind::Internal, "a message was read as something else"));
    };
    if send.configuration.task_push_notification_config.is_some() {
        return Err(Error::new(ErrorKind::PushNotificationNotSupported, "the profile has no word for push notifications"));
    }
    match (skill, send.skill()) {
        (Some(skill), Some(other)) if other != skill => {
            Err(Error::invalid_field("kind", "names another skill than the message does"))
        }
        (Some(skill), None) => Ok(SendMessage { metadata: Some(with_skill(send.metadata.as_ref(), skill)), ..send }),
        _ => Ok(send),
    }
}

fn with_skill(metadata: Option<&Metadata>, skill: &str) -> Metadata {
    let skill = Json::from_value(&serde_json::Value::from(skill));
    metadata.cloned().unwrap_or_else(Metadata::empty).with("skill", skill)
}

/// A message as the task to send for it. As A2A it loses nothing; otherwise its parts become octets, and a task of the peer's
/// cannot be gone on with.
pub fn write_task(send: &SendMessage, task_id: Bytes, kind: String, whole: bool) -> Result<(a2a::SwpTaskMessage, Given), Error> {
    if whole {
        let input = v1::peer::send_message(send).encode_to_vec().into();
        let given = Given { convention: Some(Convention::A2a), ..Given::default() };
        return Ok((a2a::SwpTaskMessage { task_id, kind, input }, given));
    }
    if send.message.task_id.is_some() {
        let message = "the profile cannot go on with a task; this agent takes new ones only";
        return Err(Error::new(ErrorKind::UnsupportedOperation, message));
    }
    let content = Content::of(&send.message.parts);
    let given = content.given();
    Ok((a2a::SwpTaskMessage { task_id, kind, input: content.bytes }, given))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(input: &[u8]) -> a2a::SwpTaskMessage {
        a2a::SwpTaskMessage { task_id: Bytes::from_static(b"t-1"), kind: "sum".into(), input: Bytes::copy_from_slice(input) }
    }

    fn read(input: &[u8], given: &Given) -> Result<SendMessage, Error> {
        read_task(&task(input), Some("sum"), "swp-1", given, Convention::Json, &JsonLimits::default())
    }

    #[test]
    fn the_kind_is_the_skill_and_the_input_is_read_as_declared() {
        let send = read(br#"{"x":1}"#, &Given::default()).unwrap();
        assert_eq!((send.skill().as_deref(), send.message.message_id.as_str()), (Some("sum"), "swp-1"));
        assert_eq!(send.message.parts, [Part::data(&json!({ "x": 1 }))]);
        let said = Given { convention: Some(Convention::Text), ..Given::default() };
        assert_eq!(read(br#"{"x":1}"#, &said).unwrap().message.parts, [Part::text(r#"{"x":1}"#)]);
        assert_eq!(read(b"{", &Given::default()).unwrap_err().kind, ErrorKind::InvalidParams);
    }

    #[test]
    fn an_empty_input_is_an_empty_part_by_every_convention() {
        let raw = Part { media_type: Some("image/png".into()), ..Part::new(PartContent::Raw(Bytes::new())) };
        for (convention, part) in [
            (None, Part::data(&json!(null))),
            (Some(Convention::Json), Part::data(&json!(null))),
            (Some(Convention::Text), Part::text("")),
            (Some(Convention::A2a), Part::text("")),
            (Some(Convention::Opaque), raw),
        ] {
            let given = Given { convention, media_type: Some("image/png".into()), ..Given::default() };
            let send = read(b"", &given).unwrap();
            assert_eq!(send.message.parts, [part], "{convention:?}");
            assert_eq!((send.skill().as_deref(), send.message.message_id.as_str()), (Some("sum"), "swp-1"), "{convention:?}");
        }
    }

    #[test]
    fn a_whole_message_comes_through_as_it_was_and_names_no_other_skill() {
        let mut message = Message::text(Role::User, "m-1", "hello");
        message.context_id = Some("talk".into());
        message.metadata = Some(Metadata::from_object(json!({ "a": 1 }).as_object().unwrap().clone()));
        let send = SendMessage {
            tenant: None,
            message: Arc::new(message),
            configuration: SendConfiguration { history_length: Some(3), ..SendConfiguration::default() },
            metadata: Some(with_skill(None, "sum")),
            client_task_id: None,
            unknown: Default::default(),
        };
        let (task, given) = write_task(&send, Bytes::from_static(b"t"), "sum".into(), true).unwrap();
        let back = |skill| read_task(&task, skill, "n", &given, Convention::Text, &JsonLimits::default());
        assert_eq!(back(Some("sum")).unwrap(), send);
        assert_eq!(back(None).unwrap(), send);
        assert_eq!(back(Some("product")).unwrap_err().violations[0].field, "kind");
    }

    #[test]
    fn without_protobuf_a_task_cannot_be_gone_on_with() {
        let mut message = Message::text(Role::User, "m-1", "blue");
        message.task_id = Some("theirs".into());
        let send = SendMessage { message: Arc::new(message), ..read(b"1", &Given::default()).unwrap() };
        let refused = write_task(&send, Bytes::from_static(b"t"), "sum".into(), false).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::UnsupportedOperation);
    }
}
