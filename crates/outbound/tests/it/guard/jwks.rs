//! Key sets and discovery: kept, renewed, never asked for twice at once, and fetched through the guard.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chancery_identity::credentials::{Issuer, KeySet, KeySetFault, KeySets};
use chancery_outbound::guard::{Guard, GuardError, Whole};
use chancery_outbound::{JwksCache, JwksError, JwksLimits};
use chancery_protocol::Timestamp;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use url::Url;

use crate::guard::fakes::loopback;
use crate::guard::receiver::{Receiver, read_head};

/// A server of documents by path, a clock to move, and the cache between them.
struct Scene {
    server: Receiver,
    pages: Arc<Mutex<HashMap<String, String>>>,
    asked: Arc<AtomicUsize>,
    /// One permit lets one answer out.
    gate: Arc<Semaphore>,
    seconds: Arc<AtomicI64>,
    cache: JwksCache,
}

const KEYS: &str = "/keys";

/// A set of one Ed25519 key of that name.
fn key_set(kid: &str) -> String {
    let x = "A".repeat(43);
    format!(r#"{{"keys":[{{"kid":"{kid}","kty":"OKP","crv":"Ed25519","x":"{x}"}}]}}"#)
}

impl Scene {
    async fn new() -> Self {
        let pages: Arc<Mutex<HashMap<String, String>>> = Arc::default();
        let (asked, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)));
        let (book, count, door) = (pages.clone(), asked.clone(), gate.clone());
        let server = Receiver::new(move |mut stream: TcpStream, seen| {
            let (book, count, door) = (book.clone(), count.clone(), door.clone());
            async move {
                let head = read_head(&mut stream).await;
                count.fetch_add(1, Ordering::SeqCst);
                door.acquire().await.unwrap().forget();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let missing = || "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned();
                let answer = book.lock().unwrap().get(path).cloned().unwrap_or_else(missing);
                seen.write(&mut stream, answer.as_bytes()).await;
            }
        })
        .await;
        let seconds = Arc::new(AtomicI64::new(1_000_000));
        let clock = seconds.clone();
        let now = move || Timestamp::from_micros(clock.load(Ordering::SeqCst) * 1_000_000);
        let cache = JwksCache::new(Guard::new(loopback(), &[]).unwrap().client(), now);
        Self { server, pages, asked, gate, seconds, cache }
    }

    fn page(&self, path: &str, cache_control: &str, body: &str) {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncache-control: {cache_control}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        self.pages.lock().unwrap().insert(path.to_owned(), answer);
    }

    fn keys_page(&self, cache_control: &str, kid: &str) {
        self.page(KEYS, cache_control, &key_set(kid));
    }

    fn tear(&self, path: &str) {
        self.pages.lock().unwrap().remove(path);
    }

    fn later(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    fn url(&self) -> Url {
        self.server.url(KEYS).parse().unwrap()
    }

    async fn kid(&self, refresh: bool) -> Result<String, JwksError> {
        let keys = self.cache.keys(&self.url(), refresh).await?;
        Ok(keys["keys"][0]["kid"].as_str().unwrap().to_owned())
    }

    async fn asked_times(&self, times: usize) {
        let asked = async {
            while self.asked() < times {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), asked).await.expect("nobody asked");
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn keys_are_kept_for_as_long_as_the_answer_says_within_bounds() {
    for (said, kept) in [("max-age=120", 120), ("max-age=1", 60), ("no-store", 60), ("max-age=999999", 3_600), ("public", 300)] {
        let scene = Scene::new().await;
        scene.keys_page(said, "one");
        assert_eq!(scene.kid(false).await.unwrap(), "one");
        scene.keys_page(said, "two");
        scene.later(kept - 1);
        assert_eq!(scene.kid(false).await.unwrap(), "one", "{said}");
        scene.later(1);
        assert_eq!(scene.kid(false).await.unwrap(), "two", "{said}");
        assert_eq!(scene.asked(), 2, "{said}");
    }
}

#[tokio::test]
async fn an_unknown_key_id_asks_again_at_most_every_30_seconds() {
    let scene = Scene::new().await;
    scene.keys_page("max-age=3600", "one");
    scene.kid(false).await.unwrap();
    scene.keys_page("max-age=3600", "two");
    scene.later(29);
    assert_eq!(scene.kid(true).await.unwrap(), "one");
    scene.later(1);
    assert_eq!(scene.kid(true).await.unwrap(), "two");
    for _ in 0..100 {
        assert_eq!(scene.kid(true).await.unwrap(), "two");
    }
    assert_eq!(scene.asked(), 2);
}

#[tokio::test]
async fn a_hundred_callers_at_once_ask_once() {
    let scene = Arc::new(Scene::new().await);
    scene.keys_page("max-age=60", "one");
    scene.gate.forget_permits(Semaphore::MAX_PERMITS);
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let scene = scene.clone();
            tokio::spawn(async move { scene.kid(false).await.unwrap() })
        })
        .collect();
    scene.asked_times(1).await;
    scene.gate.add_permits(100);
    for caller in callers {
        assert_eq!(caller.await.unwrap(), "one");
    }
    assert_eq!(scene.asked(), 1);
}

#[tokio::test]
async fn while_one_renews_the_others_use_what_they_have() {
    let scene = Arc::new(Scene::new().await);
    scene.keys_page("max-age=60", "one");
    scene.kid(false).await.unwrap();
    scene.keys_page("max-age=60", "two");
    scene.later(60);
    scene.gate.forget_permits(Semaphore::MAX_PERMITS);
    let renewing = tokio::spawn({
        let scene = scene.clone();
        async move { scene.kid(false).await.unwrap() }
    });
    scene.asked_times(2).await;
    assert_eq!(scene.kid(false).await.unwrap(), "one");
    // Who knows that the old ones will not do waits for the answer.
    let (waiting, _) = tokio::join!(scene.kid(true), async { scene.gate.add_permits(1) });
    assert_eq!(waiting.unwrap(), "two");
    assert_eq!(renewing.await.unwrap(), "two");
    assert_eq!((scene.kid(false).await.unwrap().as_str(), scene.asked()), ("two", 2));
}

#[tokio::test]
async fn keys_that_cannot_be_renewed_stay_for_an_hour_and_then_are_gone() {
    let scene = Scene::new().await;
    scene.keys_page("max-age=60", "one");
    scene.kid(false).await.unwrap();
    scene.tear(KEYS);
    scene.later(60);
    assert_eq!(scene.kid(false).await.unwrap(), "one");
    assert_eq!(scene.kid(false).await.unwrap(), "one");
    assert_eq!(scene.asked(), 2, "a failure is not repeated at once");
    scene.later(3_599);
    assert_eq!(scene.kid(false).await.unwrap(), "one");
    scene.later(1);
    assert_eq!(scene.kid(false).await.unwrap_err(), JwksError::Status(http::StatusCode::NOT_FOUND));
    scene.keys_page("max-age=60", "two");
    scene.later(4);
    assert!(scene.kid(false).await.is_ok(), "five seconds after the last attempt");
}

#[tokio::test]
async fn a_failure_is_remembered_for_five_seconds() {
    let scene = Scene::new().await;
    scene.kid(false).await.unwrap_err();
    scene.keys_page("max-age=60", "one");
    scene.later(4);
    scene.kid(false).await.unwrap_err();
    assert_eq!(scene.asked(), 1);
    scene.later(1);
    assert_eq!(scene.kid(false).await.unwrap(), "one");
}

#[tokio::test]
async fn what_is_no_key_set_is_refused() {
    for body in [
        "",
        "[]",
        "{}",
        r#"{"keys":{}}"#,
        r#"{"keys":[1]}"#,
        r#"{"keys":[],"keys":[]}"#,
        "{\"keys\":[]}x",
        "\u{feff}{\"keys\":[]}",
        "<html>",
    ] {
        let scene = Scene::new().await;
        scene.page(KEYS, "public", body);
        let fault = scene.cache.keys(&scene.url(), false).await.unwrap_err();
        assert!(matches!(fault, JwksError::Malformed(_)), "{body}: {fault}");
    }
}

#[tokio::test]
async fn an_answer_without_a_usable_key_does_not_replace_a_good_set() {
    let many = vec![ED25519; KeySet::MOST_KEYS + 1].join(",");
    let answers = [
        r#"{"keys":[]}"#.to_owned(),
        r#"{"keys":[{"kty":"odd","kid":"two"}]}"#.to_owned(),
        ED25519.replace(r#""kid""#, r#""use":"enc","kid""#).replacen('{', r#"{"keys":[{"#, 1) + "]}",
        format!(r#"{{"keys":[{many}]}}"#),
    ];
    for answer in answers {
        let scene = Scene::new().await;
        scene.keys_page("max-age=600", "one");
        assert_eq!(scene.kid(false).await.unwrap(), "one");
        scene.page(KEYS, "max-age=600", &answer);
        scene.later(30);
        for _ in 0..100 {
            assert_eq!(scene.kid(true).await.unwrap(), "one", "{answer}");
        }
        assert_eq!(scene.asked(), 2, "whoever sends unknown key ids causes one fetch in refresh_s");
        scene.later(570 + 3_600 - 1);
        assert_eq!(scene.kid(false).await.unwrap(), "one", "{answer}: for stale_s after it expired");
        scene.later(1);
        let fault = scene.kid(false).await.unwrap_err();
        assert!(matches!(fault, JwksError::NoUsableKey | JwksError::Malformed(_)), "{answer}: {fault}");
        scene.keys_page("max-age=600", "two");
        scene.later(5);
        assert_eq!(scene.kid(false).await.unwrap(), "two", "{answer}: after retry_s it is fetched again");
    }
}

#[tokio::test]
async fn how_long_keys_count_is_a_setting_and_a_zero_bounds_fetches_all_the_same() {
    let scene = Scene::new().await;
    let limits = JwksLimits { min_age_s: 2, max_age_s: 10, refresh_s: 0, retry_s: 0, stale_s: 0, ..JwksLimits::default() };
    let seconds = scene.seconds.clone();
    let now = move || Timestamp::from_micros(seconds.load(Ordering::SeqCst) * 1_000_000);
    let cache = JwksCache::with_limits(Guard::new(loopback(), &[]).unwrap().client(), now, limits);
    let kid =
        async |refresh| cache.keys(&scene.url(), refresh).await.map(|keys| keys["keys"][0]["kid"].as_str().unwrap().to_owned());
    scene.keys_page("max-age=3600", "one");
    assert_eq!(kid(false).await.unwrap(), "one");
    scene.keys_page("max-age=3600", "two");
    for _ in 0..100 {
        assert_eq!(kid(true).await.unwrap(), "one");
    }
    assert_eq!(scene.asked(), 1, "0 counts as a second");
    scene.later(1);
    assert_eq!(kid(true).await.unwrap(), "two", "a new key is seen after refresh_s");
    scene.keys_page("max-age=3600", "three");
    scene.later(9);
    assert_eq!(kid(false).await.unwrap(), "two");
    scene.later(1);
    assert_eq!(kid(false).await.unwrap(), "three", "a withdrawn key is gone after max_age_s");
}

#[tokio::test]
async fn a_key_set_may_have_256_kib() {
    for (bytes, fits) in [(256 * 1024, true), (256 * 1024 + 1, false)] {
        let scene = Scene::new().await;
        let set = key_set("one").replace("\"keys\"", "\"x\":\"\",\"keys\"");
        let filling = format!("\"x\":\"{}\"", "y".repeat(bytes - set.len()));
        scene.page(KEYS, "public", &set.replace("\"x\":\"\"", &filling));
        match scene.cache.keys(&scene.url(), false).await {
            Ok(_) => assert!(fits),
            Err(fault) => assert!(!fits && fault == JwksError::Guard(GuardError::TooBig(Whole::Body)), "{fault}"),
        }
    }
}

#[tokio::test]
async fn only_so_many_documents_are_remembered() {
    let scene = Scene::new().await;
    let now = || Timestamp::from_micros(1);
    let limits = JwksLimits { sets: 3, ..JwksLimits::default() };
    let cache = JwksCache::with_limits(Guard::new(loopback(), &[]).unwrap().client(), now, limits);
    for number in 0..10 {
        let path = format!("/{number}");
        scene.page(&path, "max-age=600", &key_set("one"));
        cache.keys(&scene.server.url(&path).parse().unwrap(), false).await.unwrap();
    }
    assert_eq!(scene.asked(), 10);
    // The last one is still there; of the first ten at most three are.
    cache.keys(&scene.server.url("/9").parse().unwrap(), false).await.unwrap();
    assert_eq!(scene.asked(), 10);
    for number in 0..10 {
        cache.keys(&scene.server.url(&format!("/{number}")).parse().unwrap(), false).await.unwrap();
    }
    assert!(scene.asked() >= 17, "{}", scene.asked());
}

#[tokio::test]
async fn discovery_takes_the_issuer_at_its_exact_word() {
    let scene = Scene::new().await;
    let (bare, slashed) = (scene.server.url(""), scene.server.url("/"));
    let document = |issuer: &str| format!(r#"{{"issuer":"{issuer}","jwks_uri":"{}"}}"#, scene.server.url(KEYS));
    let place = "/.well-known/openid-configuration";
    scene.page(place, "public", &document(&bare));
    assert_eq!(scene.cache.discover(&bare).await.unwrap(), scene.url());
    assert!(matches!(scene.cache.discover(&slashed).await.unwrap_err(), JwksError::OtherIssuer(_)));
    assert_eq!(scene.cache.discover(&bare).await.unwrap(), scene.url());
    assert_eq!(scene.asked(), 2);
    let below = scene.server.url("/tenant/one");
    scene.page(&format!("/tenant/one{place}"), "public", &document(&below));
    assert_eq!(scene.cache.discover(&below).await.unwrap(), scene.url());
}

#[tokio::test]
async fn every_address_that_discovery_names_is_guarded() {
    let scene = Scene::new().await;
    for issuer in [
        "https://169.254.169.254",
        "http://10.0.0.1",
        "file:///etc",
        "https://user@issuer.example",
        "https://issuer.example\t",
        "nothing",
    ] {
        let fault = scene.cache.discover(issuer).await.unwrap_err();
        assert!(matches!(fault, JwksError::Guard(GuardError::Blocked(_)) | JwksError::Issuer(_)), "{issuer}: {fault}");
    }
    for inside in ["https://169.254.169.254/keys", "http://10.0.0.1/keys", "file:///etc/passwd", ""] {
        let path = format!("/{}", inside.len());
        let issuer = scene.server.url(&path);
        scene.page(
            &format!("{path}/.well-known/openid-configuration"),
            "public",
            &format!(r#"{{"issuer":"{issuer}","jwks_uri":"{inside}"}}"#),
        );
        let fault = scene.cache.discover(&issuer).await.unwrap_err();
        assert!(matches!(fault, JwksError::Guard(GuardError::Blocked(_))), "{inside}: {fault}");
        assert_eq!(fault.public(), "the address could not be reached");
    }
    assert_eq!(scene.asked(), 4, "only the four documents were fetched");
}

/// The public key of RFC 8037's example.
const ED25519: &str = r#"{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

#[tokio::test]
async fn those_who_check_tokens_get_the_keys_of_an_issuer_read_once() {
    let scene = Scene::new().await;
    scene.page(KEYS, "max-age=600", &format!(r#"{{"keys":[{ED25519},{{"kty":"odd"}}]}}"#));
    let mut issuer = Issuer::new("ours", scene.server.url("/tenant"), "node");
    let document = format!(r#"{{"issuer":"{}","jwks_uri":"{}"}}"#, issuer.issuer, scene.server.url(KEYS));
    scene.page("/tenant/.well-known/openid-configuration", "max-age=600", &document);
    let found = scene.cache.key_set(&issuer, false).await.unwrap();
    assert_eq!((found.len(), scene.asked()), (1, 2));
    issuer.jwks_url = Some(scene.server.url(KEYS));
    for refresh in [false, true] {
        let again = scene.cache.key_set(&issuer, refresh).await.unwrap();
        assert!(Arc::ptr_eq(&found, &again), "the set was read again");
    }
    assert_eq!(scene.asked(), 2);
    scene.later(30);
    let renewed = scene.cache.key_set(&issuer, true).await.unwrap();
    assert!(!Arc::ptr_eq(&found, &renewed) && scene.asked() == 3);
}

#[tokio::test]
async fn an_issuer_whose_keys_are_inside_or_nowhere_has_none() {
    let scene = Scene::new().await;
    let mut issuer = Issuer::new("theirs", scene.server.url(""), "node");
    for place in [Some("https://169.254.169.254/keys"), Some("http://10.0.0.1/keys"), Some("https://[::1]/keys"), None] {
        issuer.jwks_url = place.map(str::to_owned);
        let fault = scene.cache.key_set(&issuer, false).await.unwrap_err();
        assert!(matches!(fault, KeySetFault::Unreachable(_)), "{place:?}: {fault}");
    }
    let many = vec![ED25519; KeySet::MOST_KEYS + 1].join(",");
    scene.page(KEYS, "public", &format!(r#"{{"keys":[{many}]}}"#));
    issuer.jwks_url = Some(scene.server.url(KEYS));
    let fault = scene.cache.key_set(&issuer, false).await.unwrap_err();
    assert!(fault.to_string().contains("65 keys are more than 64"), "{fault}");
}
