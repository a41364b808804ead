//! Requests signed by an agent's key: what they must cover, when, for whom, and how often.

use std::sync::Arc;

use chancery_identity::credentials::{
    Allowlist, Authenticator, CallerRecord, Callers, Checks, NonceMemory, RefusalKind, RequestFacts, SignatureRules, fresh_nonce,
};
use chancery_protocol::{CallGrant, ErrorKind, IdentityProof, MayCall, Timestamp};
use http::{HeaderMap, Method};

use super::signing::{Agent, BODY, PATH, request};
use super::{NOW_S, ask_with, at, callers, now};

fn rules() -> SignatureRules {
    SignatureRules::new(vec!["http://127.0.0.1:8080".parse().unwrap(), "https://Node.Example:443".parse().unwrap()]).unwrap()
}

fn listing(agent: &Agent) -> CallerRecord {
    let mut record = CallerRecord::new("peer");
    record.agent_ids.push(agent.id());
    record
}

fn knowing(agent: &Agent) -> Authenticator {
    Authenticator::new(Checks { signatures: Some(rules()), ..Checks::new(callers(vec![listing(agent)])) })
}

async fn kind(authenticator: &Authenticator, request: &RequestFacts<'_>, now: Timestamp) -> Result<(), RefusalKind> {
    ask_with(authenticator, request, None, now).await.map(|_| ()).map_err(|refusal| refusal.kind)
}

fn good(agent: &Agent, nonce: &str) -> String {
    format!(";created={NOW_S};nonce=\"{nonce}\";keyid=\"{}\";alg=\"ed25519\"", agent.keyid())
}

const COVERED: [&str; 4] = ["@method", "@authority", "@path", "content-digest"];

#[tokio::test]
async fn a_signed_request_proves_the_agent_of_its_key() {
    let agent = Agent::new();
    let authenticator = knowing(&agent);
    let headers = agent.sign(PATH, now(), &fresh_nonce().unwrap());
    assert!(authenticator.present(&headers, None).unwrap().needs_body());
    let known = ask_with(&authenticator, &request(&headers), None, now()).await.unwrap();
    assert_eq!(&*known.caller.name, "peer");
    assert_eq!(known.standing.proof, IdentityProof::Signature);
    assert_eq!(known.standing.agent_id, Some(agent.id()));
    let headers = agent.sign("/tasks?pageSize=5", now(), "query");
    let with_query = RequestFacts { path_and_query: "/tasks?pageSize=5", ..request(&headers) };
    assert!(ask_with(&authenticator, &with_query, None, now()).await.is_ok());
}

#[tokio::test]
async fn where_one_name_counts_a_request_signed_for_another_of_the_nodes_is_refused() {
    let agent = Agent::new();
    let authenticator = knowing(&agent);
    let headers = agent.sign(PATH, now(), "host");
    let (other, own) = ("http://127.0.0.1:8080".parse().unwrap(), "https://node.example".parse().unwrap());
    let to_other = RequestFacts { meant_for: Some(&other), ..request(&headers) };
    assert_eq!(kind(&authenticator, &to_other, now()).await, Err(RefusalKind::BadSignature));
    let to_own = RequestFacts { meant_for: Some(&own), ..request(&headers) };
    assert_eq!(kind(&authenticator, &to_own, now()).await, Ok(()));
}

#[tokio::test]
async fn a_request_that_differs_from_the_signed_one_is_refused() {
    let agent = Agent::new();
    let authenticator = knowing(&agent);
    let headers = agent.sign(PATH, now(), "1");
    let request = request(&headers);
    for (what, changed) in [
        ("method", RequestFacts { method: &Method::PUT, ..request }),
        ("path", RequestFacts { path_and_query: "/message:stream", ..request }),
        ("path case", RequestFacts { path_and_query: "/Message:send", ..request }),
        ("body", RequestFacts { body: br#"{"message":{} }"#, ..request }),
        ("no body", RequestFacts { body: b"", ..request }),
    ] {
        assert_eq!(kind(&authenticator, &changed, now()).await, Err(RefusalKind::BadSignature), "{what}");
    }
    // A query that was added is not covered at all.
    let queried = RequestFacts { path_and_query: "/message:send?x=1", ..request };
    assert_eq!(kind(&authenticator, &queried, now()).await, Err(RefusalKind::Malformed));
    let signed_query = agent.sign("/message:send?x=1", now(), "2");
    for path_and_query in ["/message:send?x=2", "/message:send?", "/message:send"] {
        let changed = RequestFacts { path_and_query, ..super::signing::request(&signed_query) };
        assert_eq!(kind(&authenticator, &changed, now()).await, Err(RefusalKind::BadSignature), "{path_and_query}");
    }
    // None of these attempts used the nonce up.
    assert_eq!(kind(&authenticator, &request, now()).await, Ok(()));
}

#[tokio::test]
async fn every_covered_header_counts_and_so_does_the_order_of_what_is_covered() {
    let agent = Agent::new();
    let authenticator = knowing(&agent);
    let names = ["@method", "@authority", "@path", "content-digest", "a2a-version"];
    let mut headers = agent.sign_as(&names, "node.example", &good(&agent, "1"));
    assert_eq!(kind(&authenticator, &request(&headers), now()).await, Err(RefusalKind::Malformed), "the header is missing");
    headers.insert("a2a-version", "y".parse().unwrap());
    assert_eq!(kind(&authenticator, &request(&headers), now()).await, Err(RefusalKind::BadSignature));
    headers.insert("a2a-version", "x".parse().unwrap());
    headers.append("a2a-version", "x".parse().unwrap());
    assert_eq!(kind(&authenticator, &request(&headers), now()).await, Err(RefusalKind::BadSignature), "twice is not once");
    headers.insert("a2a-version", " x ".parse().unwrap());
    let swapped =
        headers["signature-input"].to_str().unwrap().replace("\"@method\" \"@authority\"", "\"@authority\" \"@method\"");
    let mut reordered = headers.clone();
    reordered.insert("signature-input", swapped.parse().unwrap());
    assert_eq!(kind(&authenticator, &request(&reordered), now()).await, Err(RefusalKind::BadSignature));
    let later = headers["signature-input"].to_str().unwrap().replace(&NOW_S.to_string(), &(NOW_S + 1).to_string());
    let mut redated = headers.clone();
    redated.insert("signature-input", later.parse().unwrap());
    assert_eq!(kind(&authenticator, &request(&redated), now()).await, Err(RefusalKind::BadSignature));
    assert_eq!(kind(&authenticator, &request(&headers), now()).await, Ok(()));
}

#[tokio::test]
async fn a_signature_for_another_node_is_refused_whatever_the_host_header_says() {
    let agent = Agent::new();
    let authenticator = knowing(&agent);
    for (authority, expected) in [
        ("node.example", Ok(())),
        ("127.0.0.1:8080", Ok(())),
        ("evil.example", Err(RefusalKind::BadSignature)),
        ("node.example:8443", Err(RefusalKind::BadSignature)),
        ("Node.Example", Err(RefusalKind::BadSignature)),
        ("node.example:443", Err(RefusalKind::BadSignature)),
    ] {
        let mut headers = agent.sign_as(&COVERED, authority, &good(&agent, authority));
        headers.insert("host", authority.parse().unwrap());
        assert_eq!(kind(&authenticator, &request(&headers), now()).await, expected, "{authority}");
    }
    let whole = ["@method", "@target-uri", "@path", "content-digest"];
    let headers = agent.sign_as(&whole, "node.example", &good(&agent, "uri"));
    assert_eq!(kind(&authenticator, &request(&headers), now()).await, Ok(()));
    let headers = agent.sign_as(&whole, "evil.example", &good(&agent, "uri2"));
    assert_eq!(kind(&authenticator, &request(&headers), now()).await, Err(RefusalKind::BadSignature));
}

#[tokio::test]
async fn a_signature_that_covers_too_little_or_more_than_is_understood_is_refused() {
    let agent = Agent::new();
    let authenticator = knowing(&agent);
    for left_out in COVERED {
        let names: Vec<_> = COVERED.into_iter().filter(|name| *name != left_out).collect();
        let headers = agent.sign_as(&names, "node.example", &good(&agent, "1"));
        assert_eq!(kind(&authenticator, &request(&headers), now()).await, Err(RefusalKind::Malformed), "{left_out}");
    }
    for extra in ["@status", "@request-target", "@method", "X-Upper", "no such"] {
        let names: Vec<_> = COVERED.into_iter().chain([extra]).collect();
        let headers = agent.sign_as(&names, "node.example", &good(&agent, "1"));
        assert_eq!(kind(&authenticator, &request(&headers), now()).await, Err(RefusalKind::Malformed), "{extra}");
    }
    let digest = chancery_identity::credentials::content_digest(BODY);
    let lines = |last: &str| {
        ["\"@method\": POST", "\"@authority\": node.example", &format!("\"@path\": {PATH}"), last].map(str::to_owned)
    };
    let with_parameter = agent.sign_lines(
        "\"@method\" \"@authority\" \"@path\" \"content-digest\";bs",
        &good(&agent, "1"),
        &lines(&format!("\"content-digest\";bs: {digest}")),
    );
    assert_eq!(kind(&authenticator, &request(&with_parameter), now()).await, Err(RefusalKind::Malformed));
}

#[tokio::test]
async fn the_parameters_must_be_there_and_name_an_ed25519_key() {
    let agent = Agent::new();
    let authenticator = knowing(&agent);
    let good = good(&agent, "1");
    let keyid = agent.keyid();
    for (from, to, expected) in [
        (format!(";created={NOW_S}"), "".to_owned(), RefusalKind::Malformed),
        (NOW_S.to_string(), format!("\"{NOW_S}\""), RefusalKind::Malformed),
        (";nonce=\"1\"".to_owned(), "".to_owned(), RefusalKind::Malformed),
        ("nonce=\"1\"".to_owned(), "nonce=\"\"".to_owned(), RefusalKind::Malformed),
        ("nonce=\"1\"".to_owned(), format!("nonce=\"{}\"", "n".repeat(129)), RefusalKind::Malformed),
        (format!(";keyid=\"{keyid}\""), "".to_owned(), RefusalKind::Malformed),
        (keyid.clone(), keyid[..42].to_owned(), RefusalKind::Malformed),
        (keyid.clone(), agent.id().to_string(), RefusalKind::Malformed),
        (keyid.clone(), Agent::new().keyid(), RefusalKind::BadSignature),
        (";alg=\"ed25519\"".to_owned(), "".to_owned(), RefusalKind::Malformed),
        ("ed25519".to_owned(), "hmac-sha256".to_owned(), RefusalKind::WrongAlgorithm),
        ("ed25519".to_owned(), "rsa-pss-sha512".to_owned(), RefusalKind::WrongAlgorithm),
        ("ed25519".to_owned(), "Ed25519".to_owned(), RefusalKind::WrongAlgorithm),
    ] {
        let headers = agent.sign_as(&COVERED, "node.example", &good.replace(&from, &to));
        assert_eq!(kind(&authenticator, &request(&headers), now()).await, Err(expected), "{from} -> {to}");
    }
    let longest =
        agent.sign_as(&COVERED, "node.example", &good.replace("nonce=\"1\"", &format!("nonce=\"{}\"", "n".repeat(128))));
    assert_eq!(kind(&authenticator, &request(&longest), now()).await, Ok(()));
    let tagged = agent.sign_as(&COVERED, "node.example", &format!("{};tag=\"other\";unheard=of", good.replace("\"1\"", "\"2\"")));
    assert_eq!(kind(&authenticator, &request(&tagged), now()).await, Ok(()));
}

#[tokio::test]
async fn a_signature_is_good_for_three_hundred_seconds_either_way_and_no_longer() {
    let agent = Agent::new();
    let authenticator = knowing(&agent);
    for (created, expected) in [
        (NOW_S - 301, Err(RefusalKind::ClockSkew)),
        (NOW_S - 300, Ok(())),
        (NOW_S + 300, Ok(())),
        (NOW_S + 301, Err(RefusalKind::ClockSkew)),
    ] {
        let headers = agent.sign(PATH, at(created), &created.to_string());
        assert_eq!(kind(&authenticator, &request(&headers), now()).await, expected, "{created}");
    }
    let headers = agent.sign(PATH, at(NOW_S - 300), "late");
    let late = Timestamp::from_micros(now().micros() + 1);
    assert_eq!(kind(&authenticator, &request(&headers), late).await, Err(RefusalKind::ClockSkew));
    for (expires, expected) in [(NOW_S, Ok(())), (NOW_S - 1, Err(RefusalKind::Expired))] {
        let nonce = expires.to_string();
        let headers = agent.sign_as(&COVERED, "node.example", &format!("{};expires={expires}", good(&agent, &nonce)));
        assert_eq!(kind(&authenticator, &request(&headers), now()).await, expected, "{expires}");
    }
}

#[tokio::test]
async fn a_nonce_is_good_once_for_each_key_as_long_as_its_signature_could_come_again() {
    let (agent, other) = (Agent::new(), Agent::new());
    let both = vec![listing(&agent), CallerRecord { name: "other".to_owned(), ..listing(&other) }];
    let authenticator = Authenticator::new(Checks { signatures: Some(rules()), ..Checks::new(callers(both)) });
    let headers = agent.sign(PATH, at(NOW_S + 300), "same");
    assert_eq!(kind(&authenticator, &request(&headers), now()).await, Ok(()));
    for later in [0, 1, 300, 600] {
        assert_eq!(kind(&authenticator, &request(&headers), at(NOW_S + later)).await, Err(RefusalKind::Replayed), "{later}");
    }
    assert_eq!(kind(&authenticator, &request(&headers), at(NOW_S + 601)).await, Err(RefusalKind::ClockSkew));
    // Another body or moment under the same nonce is a replay too; another key's is not.
    let again = agent.sign(PATH, now(), "same");
    assert_eq!(kind(&authenticator, &request(&again), now()).await, Err(RefusalKind::Replayed));
    let others = other.sign(PATH, now(), "same");
    assert_eq!(kind(&authenticator, &request(&others), now()).await, Ok(()));
}

#[tokio::test]
async fn what_one_authenticator_has_taken_the_one_that_follows_it_does_not_take_again() {
    let agent = Agent::new();
    let (before, headers) = (knowing(&agent), agent.sign(PATH, now(), "once"));
    assert_eq!(kind(&before, &request(&headers), now()).await, Ok(()));
    assert_eq!(kind(&knowing(&agent), &request(&headers), now()).await, Ok(()), "a stranger to the first takes it");
    let after = knowing(&agent).following(&before);
    assert_eq!(kind(&after, &request(&headers), now()).await, Err(RefusalKind::Replayed));
    let later = agent.sign(PATH, now(), "later");
    assert_eq!(kind(&after, &request(&later), now()).await, Ok(()));
    assert_eq!(kind(&before, &request(&later), now()).await, Err(RefusalKind::Replayed), "and the other way round");
    assert!(Authenticator::open().following(&after).is_open());
}

#[tokio::test]
async fn when_no_nonce_can_be_remembered_signatures_are_refused_and_none_is_forgotten() {
    let (agent, stranger) = (Agent::new(), Agent::new());
    let rules = SignatureRules { most_nonces: 2, ..rules() };
    let authenticator = Authenticator::new(Checks { signatures: Some(rules), ..Checks::new(callers(vec![listing(&agent)])) });
    // Strangers, whose signatures hold as well, take no room.
    for nonce in ["a", "b", "c"] {
        let headers = stranger.sign(PATH, now(), nonce);
        assert_eq!(kind(&authenticator, &request(&headers), now()).await, Err(RefusalKind::Unknown));
    }
    let first = agent.sign(PATH, now(), "1");
    assert_eq!(kind(&authenticator, &request(&first), now()).await, Ok(()));
    assert_eq!(kind(&authenticator, &request(&agent.sign(PATH, now(), "2")), now()).await, Ok(()));
    let third = agent.sign(PATH, now(), "3");
    assert_eq!(kind(&authenticator, &request(&third), now()).await, Err(RefusalKind::Unavailable));
    assert_eq!(kind(&authenticator, &request(&first), now()).await, Err(RefusalKind::Replayed));
    let later = at(NOW_S + 301);
    assert_eq!(kind(&authenticator, &request(&agent.sign(PATH, later, "4")), later).await, Ok(()));
}

#[tokio::test]
async fn a_window_that_is_longer_after_a_restart_opens_for_no_signature_of_before() {
    let (agent, nonces) = (Agent::new(), Arc::new(NonceMemory::default()));
    let with_window = |signature_window_s| {
        let signatures = Some(SignatureRules { signature_window_s, ..rules() });
        let nonces = Some(Arc::clone(&nonces) as _);
        Authenticator::new(Checks { signatures, nonces, ..Checks::new(callers(vec![listing(&agent)])) })
    };
    let used = agent.sign(PATH, now(), "used");
    assert_eq!(kind(&with_window(300), &request(&used), now()).await, Ok(()));
    let later = at(NOW_S + 302);
    nonces.expire(later, u64::MAX);
    let restarted = with_window(3600);
    assert_eq!(kind(&restarted, &request(&used), later).await, Err(RefusalKind::ClockSkew));
    let fresh = agent.sign(PATH, later, "fresh");
    assert_eq!(kind(&restarted, &request(&fresh), later).await, Ok(()));
    let of_this = agent.sign(PATH, at(NOW_S + 700), "of this process");
    assert_eq!(kind(&restarted, &request(&of_this), at(NOW_S + 4200)).await, Ok(()), "the window as it is set");
}

#[tokio::test]
async fn a_nonce_is_kept_for_five_minutes_also_where_the_window_is_shorter() {
    let (agent, nonces) = (Agent::new(), Arc::new(NonceMemory::default()));
    let with_window = |signature_window_s| {
        let signatures = Some(SignatureRules { signature_window_s, ..rules() });
        let nonces = Some(Arc::clone(&nonces) as _);
        Authenticator::new(Checks { signatures, nonces, ..Checks::new(callers(vec![listing(&agent)])) })
    };
    let used = agent.sign(PATH, now(), "used");
    assert_eq!(kind(&with_window(1), &request(&used), now()).await, Ok(()));
    let later = at(NOW_S + 10);
    nonces.expire(later, u64::MAX);
    assert_eq!(kind(&with_window(300), &request(&used), later).await, Err(RefusalKind::Replayed));
}

#[tokio::test]
async fn of_several_signatures_the_one_tagged_for_us_counts() {
    let agent = Agent::new();
    let authenticator = knowing(&agent);
    let with_second = |mut headers: HeaderMap, input: &str, signature: &str| {
        headers.append("signature-input", input.parse().unwrap());
        headers.append("signature", signature.parse().unwrap());
        headers
    };
    let proxy = (r#"proxy=("@method");created=1;tag="proxy""#, "proxy=:AAAA:");
    let headers = with_second(agent.sign(PATH, now(), "1"), proxy.0, proxy.1);
    assert_eq!(kind(&authenticator, &request(&headers), now()).await, Ok(()));
    let untagged = agent.sign_as(&COVERED, "node.example", &good(&agent, "2"));
    let nobody_knows = with_second(untagged, proxy.0, proxy.1);
    assert_eq!(kind(&authenticator, &request(&nobody_knows), now()).await, Err(RefusalKind::Malformed));
    let both = with_second(agent.sign(PATH, now(), "3"), r#"b=("@method");tag="chancery""#, "b=:AAAA:");
    assert_eq!(kind(&authenticator, &request(&both), now()).await, Err(RefusalKind::Malformed));
    let same_label = with_second(agent.sign(PATH, now(), "4"), r#"sig=("@method")"#, "b=:AAAA:");
    assert_eq!(kind(&authenticator, &request(&same_label), now()).await, Err(RefusalKind::Malformed));
    let mut other_label = agent.sign(PATH, now(), "5");
    other_label.insert("signature", "b=:AAAA:".parse().unwrap());
    assert_eq!(kind(&authenticator, &request(&other_label), now()).await, Err(RefusalKind::Malformed));
}

#[tokio::test]
async fn an_agent_nobody_lists_is_a_caller_only_if_the_allowlist_names_it() {
    let (listed, named, stranger) = (Agent::new(), Agent::new(), Agent::new());
    let may_call = MayCall::Only(vec![CallGrant { agent: "echo".into(), skill: None }]);
    let checks = |resolver: Allowlist| Checks {
        signatures: Some(rules()),
        resolver: Arc::new(resolver),
        agents_may_call: may_call.clone(),
        ..Checks::new(callers(vec![listing(&listed)]))
    };
    let authenticator = Authenticator::new(checks([named.id()].into_iter().collect()));
    let headers = named.sign(PATH, now(), "1");
    let known = ask_with(&authenticator, &request(&headers), None, now()).await.unwrap();
    assert_eq!((&*known.caller.tenant, &*known.caller.name), ("default", named.id().as_str()));
    assert_eq!(known.standing.may_call, may_call);
    assert_eq!(known.standing.agent_id, Some(named.id()));
    // A list allows nobody else, not even an agent that a record lists.
    for refused in [&listed, &stranger] {
        let headers = refused.sign(PATH, now(), "1");
        let refusal = ask_with(&authenticator, &request(&headers), None, now()).await.unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::NotAllowed);
        assert_eq!(refusal.to_error().kind, ErrorKind::PermissionDenied);
    }
    let headers = stranger.sign(PATH, now(), "1");
    assert_eq!(
        kind(&knowing(&listed), &request(&headers), now()).await,
        Err(RefusalKind::Unknown),
        "all are allowed, none is named"
    );
}

#[tokio::test]
async fn a_revoked_agent_is_unknown_and_a_node_without_rules_takes_no_signature() {
    let agent = Agent::new();
    let shared = callers(vec![listing(&agent)]);
    let authenticator = Authenticator::new(Checks { signatures: Some(rules()), ..Checks::new(shared.clone()) });
    assert_eq!(kind(&authenticator, &request(&agent.sign(PATH, now(), "1")), now()).await, Ok(()));
    shared.store(Callers::default().into());
    assert_eq!(kind(&authenticator, &request(&agent.sign(PATH, now(), "2")), now()).await, Err(RefusalKind::Unknown));
    let without = Authenticator::new(Checks::new(callers(vec![listing(&agent)])));
    assert_eq!(kind(&without, &request(&agent.sign(PATH, now(), "3")), now()).await, Err(RefusalKind::Unknown));
}

#[tokio::test]
async fn a_digest_of_another_kind_or_none_is_refused() {
    let agent = Agent::new();
    let authenticator = knowing(&agent);
    for digest in ["", "sha-512=:AAAA:", "sha-256=1", "sha-256=:AAAA:, sha-256=:AAAA:", "garbage="] {
        let lines = [
            "\"@method\": POST".to_owned(),
            "\"@authority\": node.example".to_owned(),
            format!("\"@path\": {PATH}"),
            format!("\"content-digest\": {digest}"),
        ];
        let mut headers = agent.sign_lines("\"@method\" \"@authority\" \"@path\" \"content-digest\"", &good(&agent, "1"), &lines);
        headers.insert("content-digest", digest.parse().unwrap());
        assert_eq!(kind(&authenticator, &request(&headers), now()).await, Err(RefusalKind::Malformed), "{digest}");
    }
}

#[tokio::test]
async fn a_strangers_body_need_not_be_read_and_a_known_agents_body_still_counts() {
    let (agent, stranger) = (Agent::new(), Agent::new());
    let authenticator = knowing(&agent);
    fn head(headers: &HeaderMap) -> RequestFacts<'_> {
        RequestFacts { body: b"", ..request(headers) }
    }
    for (headers, expected) in [
        (stranger.sign(PATH, now(), "1"), RefusalKind::Unknown),
        (agent.sign("/other", now(), "1"), RefusalKind::BadSignature),
        (agent.sign(PATH, at(NOW_S - 301), "1"), RefusalKind::ClockSkew),
    ] {
        let mut presented = authenticator.present(&headers, None).unwrap();
        assert_eq!(authenticator.check_head(&mut presented, &head(&headers), now()).unwrap_err().kind, expected);
    }
    let headers = agent.sign(PATH, now(), "1");
    let mut presented = authenticator.present(&headers, None).unwrap();
    authenticator.check_head(&mut presented, &head(&headers), now()).unwrap();
    for (body, moment, expected) in [
        (&b"another"[..], now(), Some(RefusalKind::BadSignature)),
        (BODY, at(NOW_S + 301), Some(RefusalKind::ClockSkew)),
        (BODY, now(), None),
        (BODY, now(), Some(RefusalKind::Replayed)),
    ] {
        let whole = RequestFacts { body, ..request(&headers) };
        let checked = authenticator.check(&presented, &whole, moment).await;
        assert_eq!(checked.err().map(|refusal| refusal.kind), expected);
    }
    // What is not signed is none of its business.
    let unsigned = super::bearer("whatever-it-may-be");
    let mut presented = authenticator.present(&unsigned, None).unwrap();
    assert_eq!(authenticator.check_head(&mut presented, &head(&unsigned), now()), Ok(()));
}
