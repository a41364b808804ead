//! Commands and nodes that speak TLS: the node's own certificate, private roots, and certificates of callers.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};

use crate::operating::cli::{Ran, run};
use crate::support::patience::eventually;
use crate::support::server::Home;

/// Signs certificates, and keeps them as files in a home.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new(home: &Home, file: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(home.path().join(file), issuer.pem()).unwrap();
        Self { issuer }
    }

    /// `NAME.pem` and `NAME.key`.
    fn issue(&self, home: &Home, name: &str, names: Vec<SanType>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names;
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(home.path().join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(home.path().join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

/// A node that speaks TLS.
struct Node {
    process: Child,
    url: String,
}

impl Node {
    fn start(home: &Home, config: &str) -> Self {
        let file = home.path().join("chancery.toml");
        std::fs::write(&file, config).unwrap();
        let mut command = home.command();
        command.args([Path::new("serve"), Path::new("--listen"), Path::new("127.0.0.1:0"), Path::new("--config"), &file]);
        let log = std::fs::File::create(home.path().join("log")).unwrap();
        let mut process = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let node = Self { process, url: url.trim_end().to_owned() };
        let log = || std::fs::read_to_string(home.path().join("log")).unwrap();
        assert!(node.url.starts_with("https://127.0.0.1:"), "{:?} {}", node.url, log());
        node
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const TLS: &str = "[tls]\ncert_file = \"node.pem\"\nkey_file = \"node.key\"\n";

#[test]
fn commands_know_the_certificate_of_the_node_on_this_machine_whoever_issued_it() {
    let home = Home::new();
    let authority = Authority::new(&home, "ca.pem");
    authority.issue(&home, "node", vec![dns("agents.example.org")]);
    let node = Node::start(&home, TLS);
    for arguments in [&["send", "hello"][..], &["tasks", "list"], &["keys", "show"], &["callers", "list"], &["card"]] {
        let ran = run(&home, arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
    }
    let card = run(&home, ["card", "--json"]).json();
    assert_eq!(card["signature"]["state"], "valid", "{card}");
    let stranger = Home::new();
    let ran = run(&stranger, ["send", "--url", &node.url, "hello"]);
    assert_eq!(ran.code, Some(3), "the system knows nothing of it: {}", ran.stderr);
    assert!(ran.stderr.contains("--ca-file"), "{}", ran.stderr);

    // A renewed certificate is known as soon as the node has it.
    authority.issue(&home, "node", vec![dns("agents.example.org")]);
    let before = std::fs::read_to_string(home.data().join("node.json")).unwrap();
    assert!(Command::new("kill").args(["-HUP", &node.process.id().to_string()]).status().unwrap().success());
    eventually("the new certificate is written down", || {
        (std::fs::read_to_string(home.data().join("node.json")).unwrap() != before).then_some(())
    });
    assert_eq!(run(&home, ["tasks", "list"]).code, Some(0));

    // Whoever answers in its place has another certificate, and gets no token.
    std::fs::write(home.data().join("node.json"), before).unwrap();
    let refused = run(&home, ["tasks", "list"]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("another certificate than the node"), "{}", refused.stderr);
}

#[test]
fn a_private_root_is_believed_if_it_is_given() {
    let home = Home::new();
    let authority = Authority::new(&home, "ca.pem");
    authority.issue(&home, "node", vec![SanType::IpAddress([127, 0, 0, 1].into())]);
    let node = Node::start(&home, TLS);
    let ca = home.path().join("ca.pem");
    let stranger = Home::new();
    let with_ca = |arguments: &[&str]| Ran::of(stranger.command().args(arguments).arg("--ca-file").arg(&ca));
    let sent = with_ca(&["send", "--url", &node.url, "hello"]);
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "hello\n"), "{}", sent.stderr);
    let card = with_ca(&["card", "--json", &node.url]).json();
    assert_eq!(card["signature"]["state"], "valid", "{card}");

    let other = Authority::new(&stranger, "other.pem");
    other.issue(&stranger, "unused", vec![dns("x")]);
    let ran = run(&stranger, ["send", "--url", &node.url, "--ca-file", "other.pem", "hello"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let ran = run(&stranger, ["send", "--url", &node.url, "--ca-file", "unused.key", "hello"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

#[test]
fn a_caller_is_known_by_its_certificate() {
    let home = Home::new();
    let authority = Authority::new(&home, "ca.pem");
    authority.issue(&home, "node", vec![dns("agents.example.org")]);
    authority.issue(&home, "planner", vec![dns("planner.example.org")]);
    authority.issue(&home, "stranger", vec![dns("stranger.example.org")]);
    let added = run(&home, ["callers", "add", "planner", "--certificate", "dns:planner.example.org"]);
    assert_eq!((added.code, added.stdout.as_str()), (Some(0), ""), "{}", added.stderr);
    let config = format!("{TLS}client_ca_file = \"ca.pem\"\nclient_certificates = \"required\"\n");
    let _node = Node::start(&home, &config);
    let as_ = |name: &str, arguments: &[&str]| {
        run(
            &home,
            arguments.iter().copied().chain(["--client-cert", &format!("{name}.pem"), "--client-key", &format!("{name}.key")]),
        )
    };
    let sent = as_("planner", &["send", "hello"]);
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "hello\n"), "{}", sent.stderr);
    let refused = as_("stranger", &["send", "hello"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
    let without = run(&home, ["send", "hello"]);
    assert_eq!(without.code, Some(3), "without a certificate there is no connection: {}", without.stderr);
    assert!(without.stderr.contains("--client-cert"), "{}", without.stderr);
    // The operator's commands need one too where the node takes no connection without.
    for arguments in [["tasks", "list"], ["callers", "list"], ["keys", "show"]] {
        let ran = as_("planner", &arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
    }
}
