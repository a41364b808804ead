//! Operators' commands from another machine: by URL and token file, over TLS, and never with the token in the clear by accident.

use std::path::PathBuf;

use crate::operating::cli::{Ran, run};
use crate::support::certificates::Signer;
use crate::support::server::{Home, Server, Setup};

/// A home in which no node runs, with the token of one that runs elsewhere.
struct Elsewhere {
    home: Home,
    token: PathBuf,
    url: String,
}

impl Elsewhere {
    fn of(server: &Server) -> Self {
        let home = Home::new();
        let token = home.path().join("token");
        std::fs::copy(server.home().data().join("admin.token"), &token).unwrap();
        Self { home, token, url: server.url().to_owned() }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let node = ["--url", &self.url, "--token-file", self.token.to_str().unwrap()];
        run(&self.home, [arguments, &node].concat())
    }
}

#[test]
fn operators_commands_work_with_a_url_and_a_token_file() {
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--agent", "conformance"]).start();
    let sent = run(&home, ["send", "complete hello"]);
    let task = sent.stderr.split_whitespace().nth(1).expect("an id").to_owned();
    let there = Elsewhere::of(&server);

    let listed = there.run(&["tasks", "ls"]);
    assert!(listed.code == Some(0) && listed.stdout.contains(&task), "{}{}", listed.stdout, listed.stderr);
    for arguments in [
        &["tasks", "show", &task][..],
        &["tasks", "watch", &task],
        &["tree", &task],
        &["explain", &task],
        &["explain"],
        &["budgets"],
        &["bill", "--since", "1h"],
        &["freeze", "agent", "conformance"],
        &["freeze", "ls"],
        &["thaw", "agent", "conformance"],
        &["agents", "ls"],
        &["callers", "add", "planner"],
        &["callers", "ls"],
        &["callers", "rm", "planner"],
        &["keys", "ls"],
        &["keys", "rotate", "push"],
        &["push", "ls"],
        &["push", "dead", "ls"],
        &["push", "keys", "ls"],
        &["push", "secrets", "ls"],
        &["push", "vault", "ls"],
        &["evidence", "status"],
        &["evidence", "export", "--task", &task, "-o", "bundle"],
    ] {
        let ran = there.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    }
    assert!(run(&home, ["callers", "ls"]).stdout.contains("planner"), "it was added there");
    assert!(!there.home.data().exists(), "and nothing was written here");
    // The flags may also stand before the subcommand.
    let before = ["tasks", "--url", &there.url, "--token-file", "token", "ls"];
    assert_eq!(run(&there.home, before).code, Some(0));
}

#[test]
fn what_is_missing_or_wrong_is_said_and_nothing_is_sent() {
    let home = Home::new();
    let server = Setup::in_home(&home).start();
    let there = Elsewhere::of(&server);
    let token = there.token.to_str().unwrap();
    let (empty, wrong) = (there.home.path().join("empty"), there.home.path().join("wrong"));
    std::fs::write(&empty, "\n").unwrap();
    std::fs::write(&wrong, "wrong").unwrap();
    let url = server.url();
    for (arguments, code, word) in [
        (&["--url", url][..], 2, "--token-file"),
        (&["--token-file", token], 2, "--url"),
        (&["--insecure-http"], 2, "--url"),
        (&["--url", url, "--token-file", "nowhere"], 2, "nowhere"),
        (&["--url", url, "--token-file", empty.to_str().unwrap()], 2, "no token"),
        (&["--url", url, "--token-file", wrong.to_str().unwrap()], 1, "token"),
        (&["--url", "http://192.0.2.1:7420", "--token-file", token], 2, "--insecure-http"),
        (&["--url", "http://node.invalid", "--token-file", token], 2, "--insecure-http"),
        (&["--url", "swp://127.0.0.1:1", "--token-file", token], 2, "http"),
        (&["--url", "node", "--token-file", token], 2, "node"),
        (&["--url", "http://127.0.0.1:1", "--token-file", token], 3, "127.0.0.1"),
    ] {
        for command in [["tasks", "ls"], ["callers", "ls"]] {
            let ran = run(&there.home, [&command[..], arguments].concat());
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(word), "{arguments:?}: {}", ran.stderr);
        }
    }
    // An address that is not the loopback's, and at which this machine answers.
    let port = url.rsplit(':').next().unwrap();
    let anywhere = ["tasks", "ls", "--token-file", token, "--insecure-http", "--url"];
    let ran = run(&there.home, [&anywhere[..], &[&format!("http://0.0.0.0:{port}")]].concat());
    assert_ne!(ran.code, Some(2), "{}", ran.stderr);
}

#[test]
fn a_node_with_tls_is_trusted_by_its_root() {
    let home = Home::new();
    let signer = Signer::new("a root of our own");
    let signed = signer.node();
    let write = |name: &str, content: &str| std::fs::write(home.path().join(name), content).unwrap();
    write("node.pem", &signed.certificate);
    write("node.key", &signed.key);
    let server = Setup::in_home(&home).config("[tls]\ncert_file = \"node.pem\"\nkey_file = \"node.key\"\n").start();
    let there = Elsewhere::of(&server);
    std::fs::write(there.home.path().join("root.pem"), signer.pem()).unwrap();
    let unknown = there.run(&["tasks", "ls"]);
    assert!(unknown.code == Some(3) && unknown.stderr.contains("--ca-file"), "{}", unknown.stderr);
    let known = there.run(&["tasks", "ls", "--ca-file", "root.pem"]);
    assert_eq!(known.code, Some(0), "{}", known.stderr);
}
