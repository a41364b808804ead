//! What is wrong with a request is named by the schema's own path to it.

use chancery_protocol::{Error, ErrorKind, Request};
use prost::Message as _;
use prost_types::value::Kind;
use prost_types::{NullValue, Struct, Timestamp, Value};

use crate::pb::v1::proto::{self, part::Content};
use crate::pb::v1::{card, event, peer, request};
use crate::pb::{Codec, decode_error};

fn part(content: Content) -> proto::Part {
    proto::Part { content: Some(content), ..Default::default() }
}

fn message() -> proto::Message {
    proto::Message { message_id: "m".into(), role: 1, parts: vec![part(Content::Text("hi".into()))], ..Default::default() }
}

fn send(change: impl FnOnce(&mut proto::SendMessageRequest)) -> Result<Request, Error> {
    let mut request = proto::SendMessageRequest { message: Some(message()), ..Default::default() };
    change(&mut request);
    request::send_message(request)
}

fn in_message(change: impl FnOnce(&mut proto::Message)) -> Result<Request, Error> {
    send(|request| change(request.message.as_mut().unwrap()))
}

fn of_no_kind() -> Struct {
    Struct { fields: [("a".to_owned(), Value { kind: None })].into() }
}

#[track_caller]
fn names(result: Result<Request, Error>, field: &str, description: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    assert_eq!(error.violations[0].field, field);
    assert!(error.violations[0].description.contains(description), "{error}");
}

#[test]
fn a_faulty_message_is_refused_by_the_name_of_the_field() {
    assert!(send(|_| {}).is_ok());
    names(send(|request| request.message = None), "message", "is required");
    names(in_message(|message| message.message_id.clear()), "message.message_id", "is required");
    names(in_message(|message| message.role = 0), "message.role", "is required");
    names(in_message(|message| message.role = 3), "message.role", "3 is not a role");
    names(in_message(|message| message.metadata = Some(of_no_kind())), "message.metadata", "no kind");
    names(in_message(|message| message.parts.push(proto::Part::default())), "message.parts[1]", "exactly one");
    names(in_message(|message| message.parts[0].metadata = Some(of_no_kind())), "message.parts[0].metadata", "no kind");
    let infinite = Value { kind: Some(Kind::NumberValue(f64::INFINITY)) };
    names(in_message(|message| message.parts = vec![part(Content::Data(infinite))]), "message.parts[0].data", "not finite");
    names(send(|request| request.metadata = Some(of_no_kind())), "metadata", "no kind");
}

#[test]
fn a_faulty_configuration_is_refused_by_the_name_of_the_field() {
    let with = |config: proto::TaskPushNotificationConfig| {
        send(|request| {
            let task_push_notification_config = Some(config);
            request.configuration = Some(proto::SendMessageConfiguration { task_push_notification_config, ..Default::default() });
        })
    };
    names(with(Default::default()), "configuration.task_push_notification_config.url", "is required");
    let authentication = Some(proto::AuthenticationInfo::default());
    let config = proto::TaskPushNotificationConfig { url: "https://a".into(), authentication, ..Default::default() };
    names(with(config), "configuration.task_push_notification_config.authentication.scheme", "is required");
}

#[test]
fn requests_without_their_ids_are_refused() {
    names(request::get_task(Default::default()), "id", "is required");
    names(request::cancel_task(Default::default()), "id", "is required");
    names(request::subscribe_to_task(Default::default()), "id", "is required");
    names(request::get_push_config(Default::default()), "task_id", "is required");
    names(request::delete_push_config(Default::default()), "task_id", "is required");
    names(request::list_push_configs(Default::default()), "task_id", "is required");
    let of_task = proto::GetTaskPushNotificationConfigRequest { task_id: "t".into(), ..Default::default() };
    names(request::get_push_config(of_task), "id", "is required");
    let url = "https://a".to_owned();
    let config = proto::TaskPushNotificationConfig { url, ..Default::default() };
    names(request::create_push_config(config), "task_id", "is required");
}

#[test]
fn a_filter_nobody_knows_is_refused_rather_than_ignored() {
    let status = |status| request::list_tasks(proto::ListTasksRequest { status, ..Default::default() });
    names(status(9), "status", "9 is not a task state");
    names(status(-1), "status", "-1 is not a task state");
    let after = Some(Timestamp { seconds: i64::MAX, nanos: 0 });
    let request = proto::ListTasksRequest { status_timestamp_after: after, ..Default::default() };
    names(request::list_tasks(request), "status_timestamp_after", "years");
}

#[test]
fn what_a_peer_gets_wrong_is_the_peers_fault() {
    let kind = |error: Error| (error.kind, error.violations[0].field.clone());
    let blamed = |field: &str| (ErrorKind::InvalidAgentResponse, field.to_owned());
    assert_eq!(kind(peer::sent(Default::default()).unwrap_err()), blamed("payload"));
    assert_eq!(kind(peer::task(Default::default()).unwrap_err()), blamed("id"));
    let page =
        proto::ListTasksResponse { tasks: vec![proto::Task { id: "t".into(), ..Default::default() }], ..Default::default() };
    assert_eq!(kind(peer::tasks(page).unwrap_err()), blamed("tasks[0].status"));
    assert_eq!(kind(event::read(Default::default()).unwrap_err()), blamed("payload"));
    let update = proto::TaskStatusUpdateEvent { task_id: "t".into(), context_id: "c".into(), ..Default::default() };
    let payload = Some(proto::stream_response::Payload::StatusUpdate(update));
    assert_eq!(kind(event::read(proto::StreamResponse { payload }).unwrap_err()), blamed("status_update.status"));
    let mut scheme = proto::AgentCard::default();
    scheme.security_schemes.insert("key".into(), Default::default());
    assert_eq!(kind(card::read(scheme).unwrap_err()), blamed("security_schemes.key.scheme"));
}

/// The bytes of a send request whose only part is data: a null in so many lists. Made from the inside out, because the
/// encoder would need as many stack frames.
fn lists(levels: usize) -> Vec<u8> {
    let within = |tag: u8, inner: Vec<u8>| {
        let mut bytes = vec![tag << 3 | 2];
        prost::encode_length_delimiter(inner.len(), &mut bytes).unwrap();
        bytes.extend(inner);
        bytes
    };
    let null = Value { kind: Some(Kind::NullValue(NullValue::NullValue.into())) }.encode_to_vec();
    let value = (0..levels).fold(null, |value, _| within(6, within(1, value)));
    let mut bytes = proto::Message { parts: Vec::new(), ..message() }.encode_to_vec();
    bytes.extend(within(5, within(4, value)));
    within(2, bytes)
}

fn decode(bytes: &[u8]) -> Result<proto::SendMessageRequest, Error> {
    proto::SendMessageRequest::decode(bytes).map_err(|fault| decode_error(&fault))
}

#[test]
fn data_nested_deeper_than_the_reader_goes_is_refused_as_bytes() {
    request::send_message(decode(&lists(47)).unwrap()).unwrap();
    for levels in [64, 100, 2_000] {
        let fault = decode(&lists(levels)).unwrap_err();
        assert_eq!(fault.kind, ErrorKind::InvalidParams);
        assert!(fault.violations[0].field.starts_with("message.parts.content.kind.values"), "{fault}");
        assert_eq!(fault.violations[0].description, "recursion limit reached");
    }
}

#[test]
fn text_that_is_not_utf_8_is_refused_by_the_name_of_the_field() {
    let mut bytes = proto::SendMessageRequest { message: Some(message()), ..Default::default() }.encode_to_vec();
    let at = bytes.windows(2).position(|pair| pair == b"hi").unwrap();
    bytes[at] = 0xff;
    let fault = decode(&bytes).unwrap_err();
    assert_eq!(fault.violations[0].field, "message.parts.content");
    assert!(fault.violations[0].description.contains("UTF-8"), "{fault}");
    let cut = decode(&bytes[..bytes.len() - 1]).unwrap_err();
    assert_eq!(cut.kind, ErrorKind::InvalidParams);
}

/// Reads one gRPC frame around `bytes` the way the generated stubs do.
async fn received<M: prost::Message + prost::Name + Default + 'static>(bytes: &[u8]) -> Result<Option<M>, tonic::Status> {
    use tonic::codec::Codec as _;
    let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    let frame = [&[0], &length[..], bytes].concat();
    let body = http_body_util::Full::new(bytes::Bytes::from(frame));
    let decoder = Codec::<proto::SendMessageResponse, M>::default().decoder();
    tonic::Streaming::new_request(decoder, body, None, None).message().await
}

#[tokio::test]
async fn unreadable_bytes_on_a_call_are_the_senders_fault() {
    let request = proto::SendMessageRequest { message: Some(message()), ..Default::default() };
    assert_eq!(received(&request.encode_to_vec()).await.unwrap(), Some(request));
    let status = received::<proto::SendMessageRequest>(&lists(100)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert!(status.message().starts_with("message.parts.content.kind.values"), "{status}");
    let source = std::error::Error::source(&status).unwrap();
    assert!(source.is::<prost::DecodeError>());
    let older = received::<crate::pb::v0_3::proto::SendMessageRequest>(b"\xff").await.unwrap_err();
    assert_eq!(older.code(), tonic::Code::InvalidArgument);
    assert!(older.message().starts_with("InvalidParamsError: the bytes are no message of the service: "), "{older}");
}
