//! TLS on the listener: both HTTP versions and gRPC over it, who may connect, and a certificate that is changed while it serves.

use std::path::Path;

use chancery_identity::credentials::KeyHash;
use chancery_protocol::Binding;
use reqwest::tls::TlsInfo;
use reqwest::{Certificate, ClientBuilder, Identity, Version};

use crate::identity::credentials::{assert_accepted, hello};
use crate::support::certificates::{Signed, Signer};
use crate::support::patience::{eventually, soon};
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, RawClient};

const TLS: &str = "[tls]\ncert_file = 'node.pem'\nkey_file = 'node.key'\n";

fn put(home: &Home, name: &str, text: &str) {
    // Whole or not at all, as those who renew certificates do.
    let (beside, place) = (home.path().join(format!("{name}.new")), home.path().join(name));
    std::fs::write(&beside, text).expect("the home takes files");
    std::fs::rename(&beside, &place).expect("the home takes files");
}

fn put_node(home: &Home, node: &Signed) {
    put(home, "node.pem", &node.certificate);
    put(home, "node.key", &node.key);
}

/// A client that trusts this root alone.
fn client(root: &Signer, identity: Option<&Signed>, change: impl FnOnce(ClientBuilder) -> ClientBuilder) -> reqwest::Client {
    let roots = [Certificate::from_pem(root.pem().as_bytes()).expect("a certificate")];
    let builder = change(reqwest::Client::builder().no_proxy().tls_certs_only(roots).tls_info(true));
    let identity = identity.map(|signed| Identity::from_pem(signed.both().as_bytes()).expect("an identity"));
    identity.into_iter().fold(builder, ClientBuilder::identity).build().expect("a client")
}

fn start(home: &Home, config: &str) -> Server {
    Setup::in_home(home).args(["--memory"]).config(config).start()
}

/// What the node showed on the connection this answer came over.
fn shown(response: &reqwest::Response) -> Vec<u8> {
    let info = response.extensions().get::<TlsInfo>().expect("a connection over TLS");
    info.peer_certificate().expect("a certificate").to_vec()
}

#[tokio::test]
async fn both_versions_of_http_and_grpc_are_spoken_over_tls_and_nothing_plain() {
    let (nodes, home) = (Signer::new("nodes"), Home::new());
    put_node(&home, &nodes.node());
    let server = start(&home, TLS);
    let health = format!("{}/healthz", server.url());
    for (version, client) in [
        (Version::HTTP_11, client(&nodes, None, ClientBuilder::http1_only)),
        (Version::HTTP_2, client(&nodes, None, |builder| builder)),
        (Version::HTTP_2, client(&nodes, None, ClientBuilder::http2_prior_knowledge)),
    ] {
        let response = client.get(&health).send().await.expect("an answer");
        assert_eq!((response.status().as_u16(), response.version()), (200, version));
    }
    let raw = RawClient::over_tls(server.url(), &nodes.pem(), None);
    for combination in Combination::ALL {
        assert_accepted(&raw.ask(&hello(combination)).await, &combination.name());
    }
    let plain = reqwest::Client::new().get(health.replace("https://", "http://")).send().await;
    assert!(plain.is_err(), "{plain:?}");
    let distrustful = client(&Signer::new("others"), None, |builder| builder).get(&health).send().await;
    assert!(distrustful.is_err(), "a client that trusts others does not talk to it: {distrustful:?}");
    let card = client(&nodes, None, |builder| builder).get(format!("{}/.well-known/agent-card.json", server.url()));
    let card = card.send().await.expect("an answer").text().await.expect("text");
    assert!(card.contains(server.url()) && !card.contains("http://"), "{card}");
}

#[tokio::test]
async fn certificates_of_callers_are_asked_for_as_configured() {
    let (nodes, callers) = (Signer::new("nodes"), Signer::new("callers"));
    let strangers = Signer::new("strangers");
    for (setting, without) in [("optional", true), ("required", false)] {
        let home = Home::new();
        put_node(&home, &nodes.node());
        put(&home, "callers.pem", &callers.pem());
        let server = start(&home, &format!("{TLS}client_ca_file = 'callers.pem'\nclient_certificates = '{setting}'\n"));
        let health = format!("{}/healthz", server.url());
        for (what, identity, served) in [
            ("none", None, without),
            ("a good one", Some(callers.caller("spiffe://acme/a")), true),
            ("one of another authority", Some(strangers.caller("spiffe://acme/a")), false),
            ("one whose time is over", Some(callers.former_caller("spiffe://acme/a")), false),
        ] {
            for change in [ClientBuilder::http1_only as fn(ClientBuilder) -> ClientBuilder, ClientBuilder::http2_prior_knowledge]
            {
                let answer = client(&nodes, identity.as_ref(), change).get(&health).send().await;
                assert_eq!(answer.is_ok(), served, "{setting}, {what}: {answer:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_hang_up_changes_the_certificate_for_new_connections_and_open_ones_live_on() {
    let (nodes, home) = (Signer::new("nodes"), Home::new());
    let (first, second) = (nodes.node(), nodes.node());
    put_node(&home, &first);
    let server = start(&home, TLS);
    let health = format!("{}/healthz", server.url());
    let fresh = async || {
        let response = client(&nodes, None, |builder| builder).get(&health).send().await.expect("an answer");
        shown(&response)
    };
    let lasting = client(&nodes, None, |builder| builder.pool_max_idle_per_host(1));
    let lasting = async || {
        let response = lasting.get(&health).send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        shown(&response)
    };
    assert_eq!((fresh().await, lasting().await), (first.der.clone(), first.der.clone()));

    put_node(&home, &second);
    assert_eq!(fresh().await, first.der, "nothing changes before it is told");
    server.signal("HUP");
    soon("new connections get the new certificate", async || (fresh().await == second.der).then_some(())).await;
    assert_eq!(lasting().await, first.der, "the open connection is the one it was");

    // A file that holds nothing, one of another key, none at all: the certificate stays.
    let mut complaints = 0;
    let mut refused = async |what: &str, change: &dyn Fn()| {
        change();
        server.signal("HUP");
        complaints += 1;
        eventually(what, || {
            (server.log().matches("cannot reload the TLS certificate; the node keeps the old one").count() == complaints)
                .then_some(())
        });
        assert_eq!(fresh().await, second.der, "{what}");
    };
    refused("a damaged certificate", &|| put(&home, "node.pem", "-----BEGIN CERTIFICATE-----\nno")).await;
    refused("a key of another", &|| {
        put(&home, "node.pem", &second.certificate);
        put(&home, "node.key", &first.key);
    })
    .await;
    refused("no key", &|| std::fs::remove_file(home.path().join("node.key")).expect("it was there")).await;
    assert_eq!(lasting().await, first.der);

    put_node(&home, &first);
    server.signal("HUP");
    soon("a good file is taken again", async || (fresh().await == first.der).then_some(())).await;
}

#[test]
fn files_that_cannot_be_used_stop_the_start_by_their_names() {
    let (nodes, home) = (Signer::new("nodes"), Home::new());
    put_node(&home, &nodes.node());
    put(&home, "other.key", &nodes.node().key);
    for (config, named) in [
        ("[tls]\ncert_file = 'none.pem'\nkey_file = 'node.key'\n", "none.pem"),
        ("[tls]\ncert_file = 'node.key'\nkey_file = 'node.key'\n", "tls.cert_file"),
        ("[tls]\ncert_file = 'node.pem'\nkey_file = 'node.pem'\n", "tls.key_file"),
        ("[tls]\ncert_file = 'node.pem'\nkey_file = 'other.key'\n", "certificate and its key"),
        ("[tls]\ncert_file = 'node.pem'\n", "key_file"),
    ] {
        put(&home, "bad.toml", config);
        let refused = home.command().args(["serve", "--listen", "127.0.0.1:0", "--memory", "--config", "bad.toml"]).output();
        let refused = refused.expect("it runs");
        let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && complaint.contains(named), "{config}: {complaint}");
        assert!(!complaint.contains("PRIVATE KEY"), "{complaint}");
    }
}

fn warns(server: &Server, words: &str) -> bool {
    server.log().lines().any(|line| line.contains("WARN") && line.contains(words))
}

#[tokio::test]
async fn beyond_the_loopback_callers_are_enough_to_start_and_tls_to_start_without_a_warning() {
    let home = Home::new();
    let caller = format!("[callers.planner]\nkey_hash = '{}'\n", KeyHash::of("the-key-of-the-planner"));
    let outside = |config: &str, arguments: &[&str]| {
        Setup::at(&home, "0.0.0.0:0").args(["--memory"]).args(arguments).config(config).start()
    };
    put(&home, "open.toml", "");
    let open = home.command().args(["serve", "--listen", "0.0.0.0:0", "--memory", "--config", "open.toml"]).output();
    let open = open.expect("it runs");
    let complaint = String::from_utf8_lossy(&open.stderr).into_owned();
    assert!(open.status.code() == Some(2) && complaint.contains("callers") && complaint.contains("--insecure"), "{complaint}");

    let server = outside(&caller, &[]);
    assert!(warns(&server, "unencrypted"), "{}", server.log());
    let json_rpc = Combination::ALL.into_iter().find(|one| one.binding == Binding::JsonRpc).expect("there is one");
    let call = hello(json_rpc);
    assert!(RawClient::new(server.url()).ask(&call).await.is_refusal());
    let with_key = call.with("x-api-key", "the-key-of-the-planner");
    assert_accepted(&RawClient::new(server.url()).ask(&with_key).await, "a caller");

    // Each one reads its config from the same file, and would notice that it changes.
    drop(server);
    let nodes = Signer::new("nodes");
    put_node(&home, &nodes.node());
    let server = outside(&format!("{TLS}{caller}"), &[]);
    assert!(!warns(&server, ""), "{}", server.log());
    drop(server);
    let server = outside(TLS, &["--insecure"]);
    assert!(warns(&server, "not authenticated"), "{}", server.log());
    assert!(Path::new(&home.path().join("node.pem")).exists());
}

#[test]
fn a_certificate_that_is_not_for_the_nodes_own_names_is_a_warning_at_start() {
    const WARNING: &str = "does not cover the host that callers use";
    let nodes = Signer::new("nodes");
    let log = |certificate: &Signed, config: &str| {
        let home = Home::new();
        put_node(&home, certificate);
        let server = start(&home, &format!("{config}{TLS}"));
        server.log()
    };
    let covered = log(&nodes.node(), "");
    assert!(!covered.contains(WARNING), "{covered}");
    let public = "public_url = 'https://agents.example.org'\n";
    let both = log(&nodes.named(&["127.0.0.1", "agents.example.org"]), public);
    assert!(!both.contains(WARNING), "{both}");
    let listen = log(&nodes.named(&["agents.example.org"]), public);
    let told = |log: &str, words: &[&str]| {
        log.lines().any(|line| line.contains("WARN") && line.contains(WARNING) && words.iter().all(|word| line.contains(word)))
    };
    assert!(told(&listen, &["127.0.0.1", "agents.example.org", "listen"]), "{listen}");
    let elsewhere = log(&nodes.node(), public);
    assert!(told(&elsewhere, &["agents.example.org", "127.0.0.1, localhost", "public_url"]), "{elsewhere}");
}
