//! What gets through a receiver, what does not and why, and what its sender is answered.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::FromRef;
use axum::response::IntoResponse;
use axum::{Router, routing::post};
use bytes::Bytes;
use chancery_identity::keys::Push;
use chancery_identity::webhook::{
    Carries, HmacSecret, JwtFault, PushClaims, PushKeys, ReplayCheck, Scheme, VerifyFault, WebhookId, body_signature,
    mint_push_jwt, neuralpost_signature, sign,
};
use chancery_identity::{Algorithm, SigningKey};
use chancery_protocol::{TaskEvent, TaskState, Timestamp};
use chancery_receiver::{
    AcceptedDelivery, Builder, GuardFault, Incomplete, MOST_BODY_BYTES, NotificationForm, NotificationRefusal, ReceivedDelivery,
    Receiver, ReceiverClock, ReplayGuard, SenderProof,
};
use http::{HeaderMap, Request, StatusCode};
use serde_json::json;
use tower::ServiceExt as _;

const URL: &str = "https://agent.example.org/hook?tenant=1";
const NOW: i64 = 1_800_000_000;

#[derive(Debug)]
struct TestClock(AtomicI64);

impl ReceiverClock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed) * 1_000_000)
    }
}

fn clock() -> Arc<TestClock> {
    Arc::new(TestClock(AtomicI64::new(NOW)))
}

fn secret() -> HmacSecret {
    HmacSecret::from_bytes(vec![7; 32]).unwrap()
}

fn key() -> SigningKey<Push> {
    SigningKey::from_seed(&"07".repeat(32)).unwrap()
}

fn body(task: &str, state: &str) -> String {
    json!({ "statusUpdate": { "taskId": task, "contextId": "c", "status": { "state": state } } }).to_string()
}

fn working() -> String {
    body("task-1", "TASK_STATE_WORKING")
}

fn signed(id: &WebhookId, body: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", id.to_string().parse().unwrap());
    headers.insert("webhook-timestamp", NOW.into());
    let signature = sign(&id.to_string(), NOW, body.as_bytes(), [&secret()], [&key()]).unwrap().unwrap();
    headers.insert("webhook-signature", signature.parse().unwrap());
    headers
}

fn entry(seq: u64) -> WebhookId {
    WebhookId::new(URL, 3, seq, Carries::Entry)
}

fn receiver(build: impl FnOnce(Builder) -> Builder) -> Receiver {
    build(Receiver::builder().clock(clock())).build().unwrap()
}

fn by_secret() -> Receiver {
    receiver(|builder| builder.url(URL).secret(secret()))
}

async fn receive(receiver: &Receiver, headers: &HeaderMap, body: &str) -> Result<ReceivedDelivery, NotificationRefusal> {
    receiver.receive(headers, Bytes::from(body.to_owned())).await
}

async fn refused(receiver: &Receiver, headers: &HeaderMap, body: &str) -> NotificationRefusal {
    receive(receiver, headers, body).await.unwrap_err()
}

#[tokio::test]
async fn a_signed_notification_gets_through_with_all_that_is_known_of_it() {
    let mut headers = signed(&entry(9), &working());
    headers.insert("a2a-event-attempt", 2.into());
    headers.insert("a2a-event-compacted", "4-9".parse().unwrap());
    let delivery = receive(&by_secret(), &headers, &working()).await.unwrap();
    assert_eq!(delivery.task().unwrap().as_str(), "task-1");
    assert!(matches!(&delivery.notification.event, TaskEvent::Status(change) if change.status.state == TaskState::Working));
    assert_eq!(delivery.notification.form, NotificationForm::V1_0);
    assert_eq!(delivery.id.as_deref(), Some(&*entry(9).to_string()));
    assert_eq!((delivery.lane, delivery.seq, delivery.attempt, delivery.compacted), (Some(3), Some(9), Some(2), Some((4, 9))));
    assert_eq!((delivery.proofs.as_slice(), delivery.replay), (&[SenderProof::Signature(Scheme::V1)][..], false));
    let by_key = receiver(|builder| builder.url(URL).keys(PushKeys::new([key().public().clone()])));
    let delivery = receive(&by_key, &headers, &working()).await.unwrap();
    assert_eq!(delivery.proofs, [SenderProof::Signature(Scheme::V1a)]);
    drop(delivery);
}

/// F6, at the receiver's door.
#[tokio::test]
async fn a_copy_is_refused_once_the_message_was_taken_and_heard_if_it_was_not() {
    let (receiver, headers) = (by_secret(), signed(&entry(1), &working()));
    let first = receive(&receiver, &headers, &working()).await.unwrap();
    let refusal = refused(&receiver, &headers, &working()).await;
    assert!(matches!(refusal, NotificationRefusal::UnderWay));
    assert_eq!(refusal.status(), StatusCode::TOO_EARLY, "its sender comes again");
    drop(first);
    let again = receive(&receiver, &headers, &working()).await.unwrap();
    assert_eq!(again.accept().await, AcceptedDelivery { remembered: true });
    let refusal = refused(&receiver, &headers, &working()).await;
    assert!(matches!(refusal, NotificationRefusal::Duplicate));
    assert_eq!(refusal.status(), StatusCode::OK, "its sender is done");
}

#[tokio::test]
async fn what_comes_late_is_known_for_it_unless_an_operator_sent_it_again() {
    let receiver = by_secret();
    receive(&receiver, &signed(&entry(5), &working()), &working()).await.unwrap().accept().await;
    let late = signed(&entry(4), &working());
    let refusal = refused(&receiver, &late, &working()).await;
    assert!(matches!(refusal, NotificationRefusal::Stale) && refusal.status() == StatusCode::OK);
    let mut replayed = late.clone();
    replayed.insert("a2a-event-replay", "1".parse().unwrap());
    assert!(receive(&receiver, &replayed, &working()).await.unwrap().replay);
    let resent = WebhookId { resent: Some(1), ..entry(4) };
    assert!(receive(&receiver, &signed(&resent, &working()), &working()).await.unwrap().replay);
    let other = body("task-2", "TASK_STATE_WORKING");
    assert!(receive(&receiver, &signed(&entry(3), &other), &other).await.is_ok(), "another task's lane may count alike");
    let snapshot = WebhookId { carries: Carries::Snapshot, ..entry(5) };
    assert!(receive(&receiver, &signed(&snapshot, &working()), &working()).await.is_ok(), "as late as the last one");
    // What an operator tries out comes before its turn, and leaves the turn of the others to them.
    let tried = WebhookId { carries: Carries::Snapshot, resent: Some(0), ..entry(9) };
    receive(&receiver, &signed(&tried, &working()), &working()).await.unwrap().accept().await;
    assert!(receive(&receiver, &signed(&entry(6), &working()), &working()).await.is_ok());
}

#[tokio::test]
async fn every_fault_of_a_signature_has_its_name_and_401() {
    let good = signed(&entry(1), &working());
    let clock = clock();
    let receiver = Receiver::builder().clock(clock.clone()).url(URL).secret(secret()).build().unwrap();
    let mut cases = Vec::new();
    let mut altered = good.clone();
    altered.remove("webhook-id");
    cases.push((refused(&receiver, &altered, &working()).await, "signature_missing"));
    cases.push((refused(&receiver, &good, &body("task-2", "TASK_STATE_WORKING")).await, "signature_wrong"));
    let elsewhere = WebhookId::new("https://other.example.org/hook", 3, 1, Carries::Entry);
    cases.push((refused(&receiver, &signed(&elsewhere, &working()), &working()).await, "other_audience"));
    clock.0.store(NOW + 360, Ordering::Relaxed);
    cases.push((refused(&receiver, &good, &working()).await, "too_old"));
    clock.0.store(NOW - 360, Ordering::Relaxed);
    cases.push((refused(&receiver, &good, &working()).await, "too_new"));
    for (refusal, code) in cases {
        assert_eq!((refusal.code(), refusal.status()), (code, StatusCode::UNAUTHORIZED), "{refusal}");
        assert!(refusal.is_unauthorized());
    }
    assert!(matches!(
        refused(&by_secret(), &HeaderMap::new(), "").await,
        NotificationRefusal::Signature(VerifyFault::Missing("webhook-id"))
    ));
}

#[tokio::test]
async fn a_token_counts_under_either_name_and_under_both_if_both_are_there() {
    let receiver = receiver(|builder| builder.token("s3cret".to_owned()));
    let with = |tokens: &[(&'static str, &str)]| {
        let mut headers = HeaderMap::new();
        for (name, token) in tokens {
            headers.append(*name, token.parse().unwrap());
        }
        headers
    };
    let (old, new) = ("x-a2a-notification-token", "a2a-notification-token");
    for good in [&[(old, "s3cret")][..], &[(new, "s3cret")], &[(old, "s3cret"), (new, "s3cret")]] {
        let delivery = receive(&receiver, &with(good), &working()).await.unwrap();
        assert_eq!((delivery.proofs.as_slice(), &delivery.id), (&[SenderProof::Token][..], &None));
    }
    for bad in [&[][..], &[(old, "other")], &[(old, "s3cret"), (new, "other")], &[(old, "s3cret"), (old, "")], &[(old, "s3cre")]]
    {
        assert!(matches!(refused(&receiver, &with(bad), &working()).await, NotificationRefusal::Token), "{bad:?}");
    }
}

#[tokio::test]
async fn everything_that_was_agreed_on_must_be_shown() {
    let receiver =
        receiver(|builder| builder.url(URL).secret(secret()).token("t".to_owned()).credentials("Bearer", "c".to_owned()));
    let mut headers = signed(&entry(1), &working());
    assert!(matches!(refused(&receiver, &headers, &working()).await, NotificationRefusal::Token));
    headers.insert("a2a-notification-token", "t".parse().unwrap());
    assert!(matches!(refused(&receiver, &headers, &working()).await, NotificationRefusal::Credentials));
    for wrong in ["Bearer x", "Basic c", "c", "Bearer"] {
        headers.insert("authorization", wrong.parse().unwrap());
        assert!(matches!(refused(&receiver, &headers, &working()).await, NotificationRefusal::Credentials), "{wrong}");
    }
    headers.insert("authorization", "bearer c".parse().unwrap());
    let delivery = receive(&receiver, &headers, &working()).await.unwrap();
    assert_eq!(delivery.proofs, [SenderProof::Token, SenderProof::Credentials, SenderProof::Signature(Scheme::V1)]);
    assert!(!format!("{receiver:?}").contains("\"t\""), "no secret is printed");
}

#[tokio::test]
async fn a_token_of_the_sender_is_for_this_url_without_its_query_and_for_this_body() {
    let keys = PushKeys::new([key().public().clone()]);
    let receiver = receiver(|builder| builder.url(URL).keys(keys).jwt(Some("https://node/card".to_owned())));
    let token = |audience: &str, id: &WebhookId, body: &str| {
        let now = Timestamp::from_micros(NOW * 1_000_000);
        let claims = PushClaims::new("https://node/card", audience, &id.to_string(), "task-1", body.as_bytes(), now);
        format!("Bearer {}", mint_push_jwt(&key(), &claims).unwrap())
    };
    let audience = "https://agent.example.org/hook";
    let mut headers = signed(&entry(1), &working());
    assert!(matches!(refused(&receiver, &headers, &working()).await, NotificationRefusal::Credentials));
    for (token, fault) in [
        (token("https://other.example.org/hook", &entry(1), &working()), JwtFault::Audience),
        (token(audience, &entry(2), &working()), JwtFault::OtherMessage),
        (token(audience, &entry(1), "{}"), JwtFault::OtherBody),
    ] {
        headers.insert("authorization", token.parse().unwrap());
        assert!(matches!(refused(&receiver, &headers, &working()).await, NotificationRefusal::Jwt(found) if found == fault));
    }
    headers.insert("authorization", token(audience, &entry(1), &working()).parse().unwrap());
    let delivery = receive(&receiver, &headers, &working()).await.unwrap();
    assert_eq!(delivery.proofs, [SenderProof::Signature(Scheme::V1a), SenderProof::Jwt]);
    drop(delivery);

    // However its owner spells it, a token is for it in the same spelling, and in the usual one.
    for url in ["https://Agent.example.org:443/hook?tenant=1", "https://agent.example.org"] {
        let receiver = self::receiver(|builder| builder.url(url).keys(PushKeys::new([key().public().clone()])).jwt(None));
        let cut = url.split('?').next().unwrap();
        let usual = if cut.ends_with("hook") { "https://agent.example.org/hook" } else { "https://agent.example.org/" };
        for (seq, audience) in [(1, cut), (2, usual)] {
            let id = WebhookId::new(url, 7, seq, Carries::Entry);
            let mut headers = signed(&id, &working());
            headers.insert("authorization", token(audience, &id, &working()).parse().unwrap());
            assert!(receive(&receiver, &headers, &working()).await.is_ok(), "{audience}");
        }
    }

    let other = SigningKey::<Push>::generate(Algorithm::EdDsa).unwrap();
    receiver.set_keys(PushKeys::new([other.public().clone()]));
    assert!(
        matches!(refused(&receiver, &headers, &working()).await, NotificationRefusal::Signature(VerifyFault::BadSignature)),
        "keys changed"
    );
}

#[tokio::test]
async fn the_signatures_of_other_senders_are_verified_and_their_copies_known_by_what_was_signed() {
    let text = body("task-1", "TASK_STATE_WORKING");
    let plain = receiver(|builder| builder.body_signature("tok".to_owned()));
    let mut headers = HeaderMap::new();
    assert!(matches!(refused(&plain, &headers, &text).await, NotificationRefusal::BodySignature));
    headers.insert("x-a2a-signature", body_signature(b"tok", text.as_bytes()).parse().unwrap());
    receive(&plain, &headers, &text).await.unwrap().accept().await;
    assert!(matches!(refused(&plain, &headers, &text).await, NotificationRefusal::Duplicate));

    let task = json!({ "kind": "task", "id": "task-1", "contextId": "c", "status": { "state": "working" } });
    let text = json!({ "jsonrpc": "2.0", "id": "task-1", "result": task }).to_string();
    let posted = receiver(|builder| builder.neuralpost("whsec_abc".to_owned()));
    let with = |seconds: i64| {
        let mut headers = HeaderMap::new();
        headers.insert("x-neuralpost-signature", neuralpost_signature("whsec_abc", seconds, text.as_bytes()).parse().unwrap());
        headers.insert("x-neuralpost-timestamp", seconds.into());
        headers
    };
    let delivery = receive(&posted, &with(NOW), &text).await.unwrap();
    assert_eq!(
        (delivery.notification.form, delivery.proofs.as_slice()),
        (NotificationForm::NeuralPost, &[SenderProof::NeuralPost][..])
    );
    delivery.accept().await;
    assert!(matches!(refused(&posted, &with(NOW + 1), &text).await, NotificationRefusal::Duplicate), "a retry has another time");
    let late = refused(&posted, &with(NOW - 301), &text).await;
    assert!(matches!(late, NotificationRefusal::Signature(VerifyFault::TooOld { seconds: 301 })));
    let mut moved = with(NOW);
    moved.insert("x-neuralpost-timestamp", (NOW + 1).into());
    assert!(matches!(refused(&posted, &moved, &text).await, NotificationRefusal::BodySignature));
}

#[tokio::test]
async fn only_tasks_somebody_waits_for_get_through_and_only_bodies_that_are_notifications() {
    let receiver = receiver(|builder| builder.url(URL).secret(secret()).expecting(|task| task.as_str() == "task-1"));
    assert!(receive(&receiver, &signed(&entry(1), &working()), &working()).await.is_ok());
    let other = body("task-2", "TASK_STATE_WORKING");
    let refusal = refused(&receiver, &signed(&entry(2), &other), &other).await;
    assert!(matches!(&refusal, NotificationRefusal::UnexpectedTask(task) if task == "task-2"));
    assert_eq!(refusal.status(), StatusCode::NOT_FOUND);
    let refusal = refused(&receiver, &signed(&entry(3), "{}"), "{}").await;
    assert_eq!((refusal.code(), refusal.status()), ("not_a_notification", StatusCode::BAD_REQUEST));
    let (receiver, headers) = (by_secret(), signed(&entry(4), "[1"));
    assert!(matches!(refused(&receiver, &headers, "[1").await, NotificationRefusal::NotANotification(_)));
}

#[test]
fn a_receiver_that_lets_everybody_in_says_so() {
    let incomplete = |builder: Builder| builder.build().unwrap_err();
    assert_eq!(incomplete(Receiver::builder()), Incomplete::NoDemands);
    assert_eq!(incomplete(Receiver::builder().url(URL)), Incomplete::NoDemands);
    assert!(Receiver::builder().everybody().build().is_ok());
    let keys = || PushKeys::new([key().public().clone()]);
    assert_eq!(incomplete(Receiver::builder().keys(keys())), Incomplete::NoUrl);
    assert_eq!(incomplete(Receiver::builder().url(URL).jwt(None)), Incomplete::NoKeys);
    assert_eq!(incomplete(Receiver::builder().url("hook").keys(keys()).jwt(None)), Incomplete::NotAUrl("hook".to_owned()));
}

/// A guard that cannot be asked, as one behind a network may be.
#[derive(Debug)]
struct Broken;

#[async_trait::async_trait]
impl ReplayGuard for Broken {
    async fn begin(&self, _: &str, _: Timestamp) -> Result<ReplayCheck, GuardFault> {
        Err(GuardFault("no connection".to_owned()))
    }

    async fn taken(&self, _: &str, _: Timestamp) -> Result<(), GuardFault> {
        Err(GuardFault("no connection".to_owned()))
    }

    fn dropped(&self, _: &str) {}
}

#[tokio::test]
async fn nothing_gets_through_while_copies_cannot_be_told() {
    let receiver = receiver(|builder| builder.url(URL).secret(secret()).guard(Arc::new(Broken)));
    let refusal = refused(&receiver, &signed(&entry(1), &working()), &working()).await;
    assert_eq!((refusal.code(), refusal.status()), ("unavailable", StatusCode::SERVICE_UNAVAILABLE));
}

/// The state of an application that has more than a receiver.
#[derive(Clone)]
struct App {
    receiver: Receiver,
    seen: Arc<Mutex<Vec<String>>>,
    failures: Arc<AtomicU32>,
}

impl FromRef<App> for Receiver {
    fn from_ref(app: &App) -> Self {
        app.receiver.clone()
    }
}

async fn hook(axum::extract::State(app): axum::extract::State<App>, delivery: ReceivedDelivery) -> axum::response::Response {
    if app.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    app.seen.lock().unwrap().push(delivery.task().unwrap().to_string());
    delivery.accept().await.into_response()
}

async fn answer(app: &App, headers: &HeaderMap, body: impl Into<Body>) -> StatusCode {
    let mut request = Request::post("/hook").body(body.into()).unwrap();
    *request.headers_mut() = headers.clone();
    let router = Router::new().route("/hook", post(hook)).with_state(app.clone());
    router.oneshot(request).await.unwrap().status()
}

#[tokio::test]
async fn a_handler_is_called_once_per_message_and_again_after_it_failed() {
    let app = App { receiver: by_secret(), seen: Arc::default(), failures: Arc::new(AtomicU32::new(1)) };
    let headers = signed(&entry(1), &working());
    assert_eq!(answer(&app, &headers, working()).await, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(answer(&app, &headers, working()).await, StatusCode::NO_CONTENT);
    assert_eq!(answer(&app, &headers, working()).await, StatusCode::OK, "a copy");
    assert_eq!(answer(&app, &HeaderMap::new(), working()).await, StatusCode::UNAUTHORIZED);
    assert_eq!(*app.seen.lock().unwrap(), ["task-1"]);
}

#[tokio::test]
async fn a_body_is_read_up_to_a_mebibyte_and_no_further() {
    let app = App { receiver: receiver(|builder| builder.token("t".to_owned())), seen: Arc::default(), failures: Arc::default() };
    let mut headers = HeaderMap::new();
    headers.insert("a2a-notification-token", "t".parse().unwrap());
    let padded = |length: usize| {
        let body = working();
        let padding = " ".repeat(length - body.len());
        format!("{body}{padding}")
    };
    assert_eq!(answer(&app, &headers, padded(MOST_BODY_BYTES)).await, StatusCode::NO_CONTENT);
    assert_eq!(answer(&app, &headers, padded(MOST_BODY_BYTES + 1)).await, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(matches!(
        refused(&app.receiver, &headers, &padded(MOST_BODY_BYTES + 1)).await,
        NotificationRefusal::TooLarge(MOST_BODY_BYTES)
    ));
}
