//! The card as caches, browsers and clients of every version fetch it.

use reqwest::header::HeaderMap;
use reqwest::{Method, Response};
use serde_json::Value;

use crate::support::server::{Home, Server, Setup};

const CARD: &str = "/.well-known/agent-card.json";

async fn fetch(server: &Server, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = reqwest::Client::new().request(method, format!("{}{path}", server.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

async fn card(server: &Server, path: &str, headers: &[(&str, &str)]) -> Value {
    let response = fetch(server, Method::GET, path, headers).await;
    assert_eq!((response.status().as_u16(), &response.headers()["content-type"]), (200, &"application/json".parse().unwrap()));
    response.json().await.unwrap()
}

/// Whether the members that only this version has are there.
fn shape(card: &Value) -> (bool, bool) {
    let newer = card.get("supportedInterfaces").is_some();
    let older = card.get("url").is_some() && card.get("preferredTransport").is_some() && card.get("protocolVersion").is_some();
    (newer, older)
}

fn two_agents(config: &str) -> Server {
    let home = Home::new();
    Setup::in_home(&home).args(["--memory", "--agent", "conformance", "--agent", "echo"]).config(config).start()
}

#[tokio::test]
async fn the_header_chooses_exactly_one_version_and_without_it_the_setting_does() {
    for (setting, expected) in [("hybrid", (true, true)), ("1.0", (true, false)), ("0.3", (false, true))] {
        let server = two_agents(&format!("[card]\nheaderless = '{setting}'\n"));
        assert_eq!(shape(&card(&server, CARD, &[]).await), expected, "{setting}");
        for (version, expected) in
            [("1.0", (true, false)), ("1.0.1", (true, false)), ("0.3", (false, true)), ("0.3.0", (false, true))]
        {
            assert_eq!(shape(&card(&server, CARD, &[("A2A-Version", version)]).await), expected, "{version}");
        }
        let unknown = fetch(&server, Method::GET, CARD, &[("A2A-Version", "4.0")]).await;
        assert_eq!(unknown.status(), 400);
    }
}

#[tokio::test]
async fn caches_are_told_all_they_need() {
    let server = two_agents("");
    let mut tags = Vec::new();
    for version in [None, Some("1.0"), Some("0.3")] {
        let asked: Vec<_> = version.map(|version| ("A2A-Version", version)).into_iter().collect();
        let first = fetch(&server, Method::GET, CARD, &asked).await;
        let headers = first.headers().clone();
        assert_eq!(headers["vary"], "A2A-Version, Host");
        assert!(headers["cache-control"].to_str().unwrap().contains("max-age"), "{headers:?}");
        let text = |name: &str| headers[name].to_str().unwrap().to_owned();
        let (tag, date) = (text("etag"), text("last-modified"));
        let body = first.bytes().await.unwrap();

        let weak = format!("\"other\", W/{tag}");
        for known in [
            [("If-None-Match", tag.as_str())].as_slice(),
            &[("If-None-Match", &weak)],
            &[("If-None-Match", "*")],
            &[("If-Modified-Since", &date)],
            // The tag decides where there is one.
            &[("If-None-Match", &tag), ("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")],
        ] {
            let again = fetch(&server, Method::GET, CARD, &[&asked, known].concat()).await;
            assert_eq!((again.status().as_u16(), &again.headers()["etag"]), (304, &headers["etag"]), "{known:?}");
            assert!(again.headers().contains_key("vary"));
            assert!(again.bytes().await.unwrap().is_empty());
        }
        for unknown in [
            [("If-None-Match", "\"other\"")].as_slice(),
            &[("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")],
            &[("If-Modified-Since", "some day")],
            &[("If-None-Match", "\"other\""), ("If-Modified-Since", &date)],
        ] {
            let again = fetch(&server, Method::GET, CARD, &[&asked, unknown].concat()).await;
            assert_eq!(again.status().as_u16(), 200, "{unknown:?}");
            assert_eq!(again.bytes().await.unwrap(), body);
        }
        tags.push(tag);
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "each shape has a tag of its own");
}

/// The headers that say what a body is, without the one that says when it was sent.
fn about(headers: &HeaderMap) -> Vec<(String, String)> {
    let kept = headers.iter().filter(|(name, _)| *name != "date");
    let mut all: Vec<_> = kept.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    all.sort();
    all
}

#[tokio::test]
async fn head_says_the_same_without_the_body() {
    let server = two_agents("");
    for path in [CARD, "/.well-known/agent.json"] {
        let (whole, head) = (fetch(&server, Method::GET, path, &[]).await, fetch(&server, Method::HEAD, path, &[]).await);
        assert_eq!((head.status(), about(head.headers())), (whole.status(), about(whole.headers())));
        assert!(head.bytes().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn no_header_of_a_stranger_gets_into_the_card() {
    let config = "public_url = 'https://agents.example.org/a2a'\n";
    let server = Setup::in_home(&Home::new()).args(["--memory", "--insecure"]).config(config).start();
    let public = ("Host", "agents.example.org");
    let honest = fetch(&server, Method::GET, CARD, &[public]).await.bytes().await.unwrap();
    assert!(std::str::from_utf8(&honest).unwrap().contains("https://agents.example.org/a2a"));
    for hostile in [
        ("Host", "evil.example"),
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Proto", "gopher"),
        ("Forwarded", "host=evil.example;proto=http"),
        ("X-Original-URL", "/evil"),
    ] {
        for host in ["agents.example.org", "evil.example"] {
            let headers = if hostile.0 == "Host" { vec![hostile] } else { vec![("Host", host), hostile] };
            let seen = fetch(&server, Method::GET, CARD, &headers).await.bytes().await.unwrap();
            assert_eq!(seen, honest, "{headers:?}");
        }
    }
    // What a proxy on this machine forwards is not local, whatever host it says.
    let forwarded = [("Host", "127.0.0.1:7420"), ("X-Forwarded-For", "192.0.2.1")];
    assert_eq!(fetch(&server, Method::GET, CARD, &forwarded).await.bytes().await.unwrap(), honest);
}

#[tokio::test]
async fn every_agent_has_its_card_under_its_name_and_the_first_also_at_the_root() {
    let server = two_agents("");
    let url = server.url();
    let named = card(&server, &format!("/agents/echo{CARD}"), &[]).await;
    assert_eq!(named["name"], "Echo");
    assert_eq!(named["url"], format!("{url}/agents/echo"));
    assert_eq!(named["supportedInterfaces"][0]["url"], format!("{url}/agents/echo"));
    assert_eq!(card(&server, CARD, &[]).await["name"], "Conformance");
    assert_eq!(card(&server, &format!("/agents/conformance{CARD}"), &[]).await["name"], "Conformance");
    let original = card(&server, "/agents/echo/.well-known/agent.json", &[]).await;
    assert_eq!((&original["name"], &original["url"]), (&"Echo".into(), &format!("{url}/agents/echo").into()));
    assert_eq!(fetch(&server, Method::GET, &format!("/agents/nobody{CARD}"), &[]).await.status(), 404);
}

/// Binding and address of each interface that a card of 0.3 lists.
fn listed_in_0_3(card: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{card}")).to_owned();
    let main = (text(&card["preferredTransport"]), text(&card["url"]));
    let more = card["additionalInterfaces"].as_array().into_iter().flatten();
    [main].into_iter().chain(more.map(|one| (text(&one["transport"]), text(&one["url"])))).collect()
}

#[tokio::test]
async fn every_interface_on_a_0_3_card_is_a_url_and_grpc_is_there_once() {
    let agents =
        "[agents.conformance]\nrun = 'conformance'\ntenants = ['acme']\n[agents.echo]\nrun = 'echo'\nhosts = ['echo.example']\n";
    let slim = "[swp]\nlisten = '127.0.0.1:0'\n";
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--memory"]).config(&format!("{agents}{slim}")).start();
    let older = ("A2A-Version", "0.3");
    let at_root = card(&server, CARD, &[older]).await;
    let below = card(&server, &format!("/agents/echo{CARD}"), &[older]).await;
    let at_host = card(&server, CARD, &[older, ("Host", "echo.example")]).await;
    let mixed = card(&server, CARD, &[]).await;
    assert_eq!(shape(&mixed), (true, true), "without a setting, the card for clients that name no version is both");
    for (what, card, grpc) in [("root", &at_root, 1), ("path", &below, 0), ("host", &at_host, 1), ("mixed", &mixed, 1)] {
        let listed = listed_in_0_3(card);
        for (binding, address) in &listed {
            let url = url::Url::parse(address).unwrap_or_else(|fault| panic!("{what}: {binding} at {address}: {fault}"));
            assert!(url.has_host() && ["http", "https"].contains(&url.scheme()), "{what}: {binding} at {address}");
        }
        // The preferred interface may be listed once more among the others.
        let found: std::collections::BTreeSet<_> = listed.iter().filter(|(binding, _)| binding == "GRPC").collect();
        assert_eq!(found.len(), grpc, "{what}: {listed:?}");
        let more = card["additionalInterfaces"].as_array().into_iter().flatten();
        assert_eq!(more.filter(|one| one["transport"] == "GRPC").count(), grpc, "{what}: {card}");
    }
}
