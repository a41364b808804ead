//! API keys, and the headers they come in.

use std::time::Duration;

use arc_swap::ArcSwap;
use chancery_identity::credentials::{
    ApiKeyRecord, Authenticator, CallerRecord, Callers, Checks, KeyHash, MOST_CREDENTIAL_BYTES, RefusalKind,
};
use chancery_protocol::{ErrorKind, IdentityProof, MayCall};
use http::HeaderValue;
use secrecy::ExposeSecret as _;

use super::{NOW_S, ask, at, bearer, callers, headers, now, only_keys, who, with_key};

const KEY: &str = "0123456789abcdef";

#[tokio::test]
async fn a_key_is_accepted_in_either_header_and_gives_what_the_record_says() {
    let mut record = with_key("ci", KEY);
    record.tenant = "acme".to_owned();
    record.agent = Some("runner".into());
    record.may_call = MayCall::Only(vec!["echo/say".parse().unwrap()]);
    let authenticator = only_keys(vec![record.clone(), with_key("other", "another key of 16")]);
    for headers in [
        bearer(KEY),
        headers(&[("authorization", &format!("bEARER   {KEY} "))]),
        headers(&[("x-api-key", KEY)]),
        headers(&[("x-api-key", KEY), ("authorization", &format!("Bearer {KEY}"))]),
        headers(&[("x-api-key", KEY), ("x-api-key", KEY)]),
    ] {
        let known = ask(&authenticator, &headers, None, now()).await.unwrap();
        assert_eq!((&*known.caller.tenant, &*known.caller.name), ("acme", "ci"));
        assert_eq!(known.standing.proof, IdentityProof::ApiKey);
        assert_eq!(known.standing.agent, record.agent);
        assert_eq!(known.standing.may_call, record.may_call);
        assert_eq!(known.standing.agent_id, None);
    }
}

#[tokio::test]
async fn a_key_nobody_has_or_no_key_at_all_is_refused() {
    let authenticator = only_keys(vec![with_key("ci", KEY)]);
    assert_eq!(ask(&authenticator, &headers(&[]), None, now()).await, Err(RefusalKind::Missing));
    for wrong in ["0123456789abcdeF", "0123456789abcde", "0123456789abcdef0", &KeyHash::of(KEY).to_string(), "a.b.c"] {
        let by_bearer = ask(&authenticator, &bearer(wrong), None, now()).await.unwrap_err();
        assert!(matches!(by_bearer, RefusalKind::Unknown | RefusalKind::Malformed), "{wrong}");
        assert_eq!(ask(&authenticator, &headers(&[("x-api-key", wrong)]), None, now()).await, Err(RefusalKind::Unknown));
    }
}

#[tokio::test]
async fn two_different_credentials_are_refused_even_if_both_are_good() {
    let authenticator = only_keys(vec![with_key("ci", KEY), with_key("other", "another-key-of-16")]);
    for conflict in [
        headers(&[("x-api-key", KEY), ("authorization", "Bearer another-key-of-16")]),
        headers(&[("x-api-key", KEY), ("x-api-key", "another-key-of-16")]),
        headers(&[("authorization", &format!("Bearer {KEY}")), ("authorization", "Bearer another-key-of-16")]),
    ] {
        assert_eq!(ask(&authenticator, &conflict, None, now()).await, Err(RefusalKind::Conflict));
    }
}

#[tokio::test]
async fn headers_that_hold_no_single_credential_are_malformed() {
    let authenticator = only_keys(vec![with_key("ci", KEY)]);
    let longest = "k".repeat(MOST_CREDENTIAL_BYTES);
    for (name, value) in [
        ("authorization", "Basic dXNlcjpwYXNz"),
        ("authorization", "Digest x"),
        ("authorization", KEY),
        ("authorization", "Bearer"),
        ("authorization", "Bearer "),
        ("authorization", "Bearer a b"),
        ("authorization", ""),
        ("x-api-key", ""),
        ("x-api-key", " "),
        ("x-api-key", &format!("{longest}k")),
        ("signature", "sig=:AA==:"),
        ("signature-input", "sig=()"),
    ] {
        assert_eq!(
            ask(&authenticator, &headers(&[(name, value)]), None, now()).await,
            Err(RefusalKind::Malformed),
            "{name} {value}"
        );
    }
    assert_eq!(ask(&authenticator, &headers(&[("x-api-key", &longest)]), None, now()).await, Err(RefusalKind::Unknown));
    let mut not_ascii = headers(&[]);
    not_ascii.insert("x-api-key", HeaderValue::from_bytes(b"0123456789abcde\xff").unwrap());
    assert_eq!(ask(&authenticator, &not_ascii, None, now()).await, Err(RefusalKind::Malformed));
}

#[tokio::test]
async fn a_key_ends_at_its_end_and_not_a_microsecond_later() {
    let mut record = CallerRecord::new("ci");
    record.keys.push(ApiKeyRecord { hash: KeyHash::of(KEY), made_at: at(0), expires_at: Some(now()) });
    let authenticator = only_keys(vec![record]);
    let just_before = chancery_protocol::Timestamp::from_micros(now().micros() - 1);
    assert_eq!(who(ask(&authenticator, &bearer(KEY), None, just_before).await), Ok("default/ci".to_owned()));
    assert_eq!(ask(&authenticator, &bearer(KEY), None, now()).await, Err(RefusalKind::Expired));
}

#[tokio::test]
async fn after_a_rotation_both_keys_work_for_the_overlap_and_after_a_revocation_none() {
    let mut record = CallerRecord::new("ci");
    let old = record.rotate(at(NOW_S - 1_000), CallerRecord::OVERLAP).unwrap();
    let new = record.rotate(now(), Duration::from_secs(60)).unwrap();
    let shared = callers(vec![record.clone()]);
    let authenticator = Authenticator::new(Checks::new(shared.clone()));
    let (old, new) = (bearer(old.expose_secret()), bearer(new.expose_secret()));
    assert!(ask(&authenticator, &old, None, at(NOW_S + 59)).await.is_ok());
    assert!(ask(&authenticator, &new, None, at(NOW_S + 59)).await.is_ok());
    assert_eq!(ask(&authenticator, &old, None, at(NOW_S + 60)).await, Err(RefusalKind::Expired));
    assert!(ask(&authenticator, &new, None, at(NOW_S + 60)).await.is_ok());

    record.revoke();
    shared.store(Callers::new(vec![record]).unwrap().into());
    for key in [&old, &new] {
        assert_eq!(ask(&authenticator, key, None, at(NOW_S + 59)).await, Err(RefusalKind::Unknown));
    }
}

#[test]
fn all_faults_of_all_callers_are_told_at_once() {
    let mut first = with_key("ci", KEY);
    first.certificates.push("dns:ci.example".parse().unwrap());
    first.agent_ids.push("ab".repeat(32).parse().unwrap());
    let mut second = CallerRecord { name: "Bad Name".to_owned(), ..first.clone() };
    second.tenant = String::new();
    let third = CallerRecord::new("ci");
    let fourth = CallerRecord::new("ab".repeat(32));
    let faults = Callers::new(vec![first, second, third, fourth]).unwrap_err();
    let told: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 7, "{told:#?}");
    for expected in
        ["name: must", "tenant: must", "key sha256:", "dns:ci.example", "agent id abab", "two callers", "is an agent id"]
    {
        assert!(told.iter().any(|fault| fault.contains(expected)), "{expected} in {told:#?}");
    }
    // No fault holds the key itself.
    assert!(told.iter().all(|fault| !fault.contains(KEY)));
}

#[tokio::test]
async fn an_open_node_asks_nobody_and_reads_no_credential() {
    let open = Authenticator::open();
    assert!(open.is_open());
    for headers in [headers(&[]), bearer("x"), headers(&[("authorization", "Basic x"), ("signature", "garbage")])] {
        let known = ask(&open, &headers, Some(b"no certificate"), now()).await.unwrap();
        assert_eq!((&*known.caller.tenant, &*known.caller.name), ("default", "anonymous"));
        assert_eq!(*known.standing, chancery_protocol::CallerStanding::default());
    }
}

#[tokio::test]
async fn a_node_without_any_caller_lets_nobody_in() {
    let shared = std::sync::Arc::new(ArcSwap::from_pointee(Callers::default()));
    let authenticator = Authenticator::new(Checks::new(shared));
    assert_eq!(ask(&authenticator, &headers(&[]), None, now()).await, Err(RefusalKind::Missing));
    assert_eq!(ask(&authenticator, &bearer(KEY), None, now()).await, Err(RefusalKind::Unknown));
}

#[test]
fn what_needs_no_body_is_settled_before_it_is_read() {
    let authenticator = only_keys(vec![with_key("ci", KEY)]);
    let early = |headers| authenticator.check_early(&authenticator.present(&headers, None).unwrap(), now());
    assert_eq!(&*early(bearer(KEY)).unwrap().unwrap().caller.name, "ci");
    assert_eq!(early(bearer("another-key-of-16")).unwrap_err().kind, RefusalKind::Unknown);
    assert_eq!(early(headers(&[])).unwrap_err().kind, RefusalKind::Missing);
}

#[tokio::test]
async fn a_refusal_tells_the_caller_nothing_about_the_reason() {
    let mut record = CallerRecord::new("ci");
    record.keys.push(ApiKeyRecord { hash: KeyHash::of(KEY), made_at: at(0), expires_at: Some(at(1)) });
    let authenticator = only_keys(vec![record]);
    let error = |headers: http::HeaderMap| {
        let presented = authenticator.present(&headers, None)?;
        authenticator.check_early(&presented, now())
    };
    let expired = error(bearer(KEY)).unwrap_err().to_error();
    for other in [bearer("another-key-of-16"), headers(&[("authorization", "Basic x")])] {
        assert_eq!(error(other).unwrap_err().to_error(), expired);
    }
    assert_eq!(expired.kind, ErrorKind::Unauthenticated);
    assert_ne!(error(headers(&[])).unwrap_err().to_error().message, expired.message);
}
