//! The laws of addresses, on cards as they are met.

use super::*;

const CONFIGURED: &str = "http://127.0.0.1:9001/agent";

fn card(listed: &[(&str, &str, &str)]) -> AgentCard {
    let interface = |(url, binding, version): &(&str, &str, &str)| AgentInterface {
        url: (*url).to_owned(),
        protocol_binding: (*binding).to_owned(),
        tenant: None,
        protocol_version: (*version).to_owned(),
    };
    AgentCard { supported_interfaces: listed.iter().map(interface).collect(), ..AgentCard::default() }
}

fn of(configured: &str, card: &AgentCard, settings: &AgentSettings, allowed: &[&str]) -> Vec<CallableInterface> {
    let configured = &Url::parse(configured).unwrap();
    let at_root = format!("{}/.well-known/agent-card.json", configured.as_str().trim_end_matches('/'));
    let rules = AddressRules { configured, card_url: &at_root, shape: Version::V1_0, settings };
    let origin = |text: &str| as_web(text).or_else(|| Url::parse(text).ok()).map(|url| url.origin());
    callable(rules, card, |url| {
        let named = |text: &&str| origin(text) == origin(url);
        match allowed.iter().any(&named) || named(&configured.as_str()) {
            true => UrlPermission::Named,
            // As the guard's own rules have it: names over TLS, and nothing else.
            false if url.starts_with("https://") && url.contains(".example") => UrlPermission::Public,
            false => UrlPermission::Denied,
        }
    })
}

fn one(configured: &str, url: &str, binding: &str, allowed: &[&str]) -> Option<(String, Option<AddressChange>)> {
    let all = of(configured, &card(&[(url, binding, "1.0")]), &AgentSettings::default(), allowed);
    all.first().map(|one| (one.url.clone(), one.change))
}

#[track_caller]
fn check(configured: &str, listed: &str, url: &str, change: Option<AddressChange>) {
    assert_eq!(one(configured, listed, "JSONRPC", &[]), Some((url.to_owned(), change)), "{configured} with {listed}");
}

#[test]
fn law_1_4_3_all_spellings_of_the_loopback_and_of_no_host_are_the_configured_host() {
    let there = "http://127.0.0.1:9001/rpc";
    check(CONFIGURED, there, there, None);
    for host in ["localhost", "127.0.0.2", "[::1]", "0.0.0.0", "[::]", "LOCALHOST.", "agent.localhost", "[::ffff:127.0.0.1]"] {
        check(CONFIGURED, &format!("http://{host}:9001/rpc"), there, Some(AddressChange::Respelled));
    }
    check("http://localhost:9001", there, "http://localhost:9001/rpc", Some(AddressChange::Respelled));
    check("http://agent:8000", "http://localhost:8000/", "http://agent:8000/", Some(AddressChange::Respelled));
    check("http://[::1]:9001", "http://0.0.0.0:9001", "http://[::1]:9001/", Some(AddressChange::Respelled));
}

#[test]
fn law_1_4_3_a_loopback_on_another_port_needs_the_operators_word() {
    let (other, moved) = ("http://localhost:9002/rpc", "http://127.0.0.1:9001/rpc");
    check(CONFIGURED, other, moved, Some(AddressChange::NotAllowed));
    let allowed = |allowed: &str| one(CONFIGURED, other, "JSONRPC", &[allowed]);
    let respelled = Some(("http://127.0.0.1:9002/rpc".to_owned(), Some(AddressChange::Respelled)));
    assert_eq!(allowed("http://127.0.0.1:9002"), respelled);
    assert_eq!(allowed("http://localhost:9002"), Some((other.to_owned(), None)), "as the card spells it");
    // A public name over TLS is allowed by default, but here it would be one that nobody wrote.
    check("https://a.example", "https://localhost:8443/rpc", "https://a.example/rpc", Some(AddressChange::NotAllowed));
}

#[test]
fn law_1_4_4_another_host_or_port_that_is_not_allowed_becomes_the_configured_origin_with_the_cards_path() {
    let moved = Some(AddressChange::NotAllowed);
    check(CONFIGURED, "http://192.0.2.77:9001/rpc?x=1", "http://127.0.0.1:9001/rpc?x=1", moved);
    check(CONFIGURED, "http://127.0.0.1:1/rpc", "http://127.0.0.1:9001/rpc", moved);
    check(CONFIGURED, "http://user:secret@192.0.2.77/rpc", "http://127.0.0.1:9001/rpc", moved);
    check(CONFIGURED, "https://a.example/rpc", "https://a.example/rpc", None);
    let allowed = one(CONFIGURED, "http://192.0.2.77:9001/rpc", "JSONRPC", &["http://192.0.2.77:9001"]);
    assert_eq!(allowed, Some(("http://192.0.2.77:9001/rpc".to_owned(), None)));
}

#[test]
fn law_1_4_4_tls_is_never_given_up_for_the_same_host() {
    let moved = Some(AddressChange::NotAllowed);
    check("https://a.example", "http://a.example/rpc", "https://a.example/rpc", moved);
    let insisted = one("https://a.example", "http://a.example/rpc", "JSONRPC", &["http://a.example"]);
    assert_eq!(insisted, Some(("https://a.example/rpc".to_owned(), moved)));
    check("https://a.example:8443", "http://localhost:8000/rpc", "https://a.example:8443/rpc", moved);
}

#[test]
fn law_1_4_4_grpc_stays_at_its_port_or_is_left_out() {
    let grpc = |url: &str, allowed: &[&str]| one(CONFIGURED, url, "GRPC", allowed);
    assert_eq!(grpc("127.0.0.1:9002", &[]), None);
    assert_eq!(grpc("192.0.2.77:9001", &[]), None);
    assert_eq!(grpc("", &[]), None);
    assert_eq!(grpc("127.0.0.1:9002", &["http://127.0.0.1:9002"]), Some(("127.0.0.1:9002".to_owned(), None)));
    let respelled = Some(("127.0.0.1:9001".to_owned(), Some(AddressChange::Respelled)));
    assert_eq!(grpc("0.0.0.0:9001", &[]), respelled);
    assert_eq!(grpc("grpc://localhost:9001", &[]), respelled);
    assert_eq!(grpc("a.example:443", &[]), Some(("a.example:443".to_owned(), None)), "dialled with TLS");
    assert_eq!(grpc("grpcs://a.example", &[]), Some(("https://a.example:443".to_owned(), None)));
    let both = card(&[("192.0.2.77:9002", "GRPC", "1.0"), ("http://192.0.2.77:9001/rpc", "JSONRPC", "1.0")]);
    let all = of(CONFIGURED, &both, &AgentSettings::default(), &[]);
    assert_eq!(all.iter().map(|one| one.url.as_str()).collect::<Vec<_>>(), ["http://127.0.0.1:9001/rpc"]);
}

#[test]
fn law_1_4_5_a_relative_url_is_resolved_against_the_cards_address() {
    let relative = Some(AddressChange::Relative);
    check(CONFIGURED, "/rpc", "http://127.0.0.1:9001/rpc", relative);
    check(CONFIGURED, "../rpc", "http://127.0.0.1:9001/agent/rpc", relative);
    check(CONFIGURED, "//192.0.2.77/rpc", "http://127.0.0.1:9001/rpc", Some(AddressChange::NotAllowed));
}

#[test]
fn law_1_4_5_no_usable_url_means_the_configured_one() {
    let unusable = Some(AddressChange::Unusable);
    for listed in ["", " ", "dummy", "http://", "https://{host}:{port}/", "file:///rpc", "192.0.2.77:9001/rpc", "a2a/rpc"] {
        check(CONFIGURED, listed, CONFIGURED, unusable);
    }
    check(CONFIGURED, "127.0.0.1:9001/rpc", "http://127.0.0.1:9001/rpc", unusable);
    check(CONFIGURED, "localhost:9001/rpc", "http://127.0.0.1:9001/rpc", unusable);
    check("http://h/a/.well-known/agent-card.json", "", "http://h/a", unusable);
    check("http://h/cards/mine.json", "dummy", "http://h/cards", unusable);
}

#[test]
fn law_1_4_2_an_entry_without_a_version_is_tried_in_the_version_of_its_shape_first() {
    let card = card(&[("http://127.0.0.1:9001/", "JSONRPC", ""), ("http://127.0.0.1:9001/v1", "HTTP+JSON", "")]);
    let configured = &Url::parse(CONFIGURED).unwrap();
    let settings = &AgentSettings::default();
    let versions = |shape: Version| {
        let rules = AddressRules { configured, card_url: CONFIGURED, shape, settings };
        let all = callable(rules, &card, |_| UrlPermission::Named);
        all.into_iter().map(|one| one.versions).collect::<Vec<_>>()
    };
    let (v1, v0_3, original) = (Version::V1_0, Version::V0_3, Version::Original);
    assert_eq!(versions(v1), [vec![v1, v0_3, original], vec![v1, v0_3]]);
    assert_eq!(versions(v0_3), [vec![v0_3, v1, original], vec![v0_3, v1]]);
}

#[test]
fn law_1_1_5_each_address_is_tried_in_its_stated_version_before_any_in_another() {
    let card = card(&[
        ("http://127.0.0.1:9001/a", "JSONRPC", "1.0"),
        ("http://127.0.0.1:9001/a", "JSONRPC", "0.3"),
        ("http://127.0.0.1:9001/b", "HTTP+JSON", "1.0"),
        ("http://127.0.0.1:9001/c", "JSONRPC", "2.0"),
        ("http://127.0.0.1:9001/d", "urn:pigeon", "1.0"),
    ]);
    let all = of(CONFIGURED, &card, &AgentSettings::default(), &[]);
    let order = |speaks: Option<Version>| {
        let path = |url: &str| url.rsplit('/').next().unwrap_or_default().to_owned();
        candidates(&all, speaks).iter().map(|(_, one)| format!("{} {}", path(&one.url), one.version)).collect::<Vec<_>>()
    };
    let original = Version::Original.to_string();
    let unknown = order(None);
    assert_eq!(unknown[..4], ["a 1.0", "a 0.3", "b 1.0", "b 0.3"]);
    assert_eq!(unknown.last(), Some(&format!("a {original}")));
    assert_eq!(order(Some(Version::V0_3))[..2], ["a 0.3", "b 0.3"]);
    assert!(unknown.len() <= MOST_CANDIDATES);
}

#[test]
fn settings_outrank_the_card() {
    let card = card(&[("http://127.0.0.1:9001/rpc", "JSONRPC", "1.0"), ("http://127.0.0.1:9001/rest", "HTTP+JSON", "1.0")]);
    let urls = |settings: &AgentSettings| {
        let all = of(CONFIGURED, &card, settings, &[]);
        all.into_iter().map(|one| (one.url, one.binding, one.versions)).collect::<Vec<_>>()
    };
    let rest = AgentSettings { binding: Some(Binding::Rest), version: Some(Version::V0_3), ..AgentSettings::default() };
    assert_eq!(urls(&rest), [("http://127.0.0.1:9001/rest".to_owned(), Binding::Rest, vec![Version::V0_3])]);
    let moved = AgentSettings { address: Some("http://10.0.0.1/x".to_owned()), ..AgentSettings::default() };
    let there = urls(&moved);
    assert_eq!((there.len(), there[0].0.as_str(), there[0].1), (1, "http://10.0.0.1/x", Binding::JsonRpc));
    let both = AgentSettings { binding: Some(Binding::Rest), ..moved };
    assert_eq!((urls(&both)[0].0.as_str(), urls(&both)[0].1), ("http://10.0.0.1/x", Binding::Rest));
}

#[test]
fn a_strict_agent_is_called_as_its_card_says_or_not_at_all() {
    let strict = AgentSettings { strict: true, ..AgentSettings::default() };
    let of_strict = |listed: &[(&str, &str, &str)]| of(CONFIGURED, &card(listed), &strict, &[]);
    assert_eq!(of_strict(&[("http://localhost:9001/", "JSONRPC", "1.0")]), []);
    assert_eq!(of_strict(&[("http://127.0.0.1:9001/", "JSONRPC", "")]), []);
    assert_eq!(of_strict(&[("http://127.0.0.1:9001/", "JSONRPC", "1.0")])[0].versions, [Version::V1_0]);
}

#[test]
fn an_swp_address_is_called_over_swp_under_the_configured_host() {
    let configured = "swp://127.0.0.1:7421/echo";
    let both = card(&[("http://127.0.0.1:7420/", "JSONRPC", "1.0"), ("swp://localhost:7421/echo", "SWP", "1.0")]);
    let all = of(configured, &both, &AgentSettings::default(), &[]);
    let urls: Vec<_> = all.iter().map(|one| one.url.as_str()).collect();
    assert_eq!(urls, ["swp://127.0.0.1:7421/echo"]);
    let elsewhere = card(&[("swp://192.0.2.77:7421/echo", "SWP", "1.0")]);
    assert_eq!(of(configured, &elsewhere, &AgentSettings::default(), &[])[0].url, configured);
    assert_eq!(of(CONFIGURED, &elsewhere, &AgentSettings::default(), &[]), [], "SWP cannot be moved to the port of HTTP");
}
