//! `chancery card` says who signed a card, and whether that is true.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::operating::cli::run;
use crate::support::server::{Home, Server, Setup};

/// A node, and files with its cards and keys.
struct Cards {
    home: Home,
    server: Server,
}

impl Cards {
    async fn new() -> Self {
        let home = Home::new();
        let server = Setup::in_home(&home).start();
        let cards = Self { home, server };
        for (name, path, version) in [
            ("newer.json", "/.well-known/agent-card.json", "1.0"),
            ("older.json", "/.well-known/agent-card.json", "0.3"),
            ("original.json", "/.well-known/agent.json", "1.0"),
            ("jwks.json", "/.well-known/jwks.json", "1.0"),
        ] {
            let get = reqwest::Client::new().get(format!("{}{path}", cards.server.url())).header("A2A-Version", version);
            let text = get.send().await.unwrap().text().await.unwrap();
            cards.write(name, &text);
        }
        cards
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.home.path().join(name)).unwrap()
    }

    /// The exit code, and what is said of the signature.
    fn judged(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let ran = run(&self.home, ["card", "--json"].iter().chain(arguments));
        let card: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {}", ran.stderr));
        (ran.code, card["signature"].clone())
    }

    #[track_caller]
    fn judge(&self, arguments: &[&str], code: i32, state: &str) -> Value {
        let (found, signature) = self.judged(arguments);
        assert_eq!((found, signature["state"].as_str()), (Some(code), Some(state)), "{arguments:?}: {signature}");
        signature
    }
}

#[tokio::test]
async fn cards_of_every_version_verify_from_the_node_from_its_address_and_from_files() {
    let cards = Cards::new().await;
    let id = cards.judge(&[], 0, "valid")["by"][0]["agentId"].as_str().unwrap().to_owned();
    let url = cards.server.url().to_owned();
    let original = format!("{url}/.well-known/agent.json");
    let localhost = url.replace("127.0.0.1", "localhost");
    for arguments in [
        &[url.as_str()][..],
        &["--a2a-version", "0.3", &url],
        &[&original],
        &["--agent-id", &id, &url],
        &["--agent-id", &id, &original],
        &["--verify-key", "jwks.json", "newer.json"],
        &["--key", "jwks.json", "older.json"],
        &["--agent-id", &id, "newer.json"],
        &["--agent-id", &id, "older.json"],
        &["original.json"],
        &["--verify-key", "jwks.json", "original.json"],
    ] {
        let signature = cards.judge(arguments, 0, "valid");
        let by = signature["by"].as_array().unwrap();
        assert!(by.iter().any(|one| one["agentId"] == id.as_str() && one["algorithm"] == "EdDSA"), "{arguments:?}: {signature}");
        assert_eq!(signature.get("uncovered"), None, "{arguments:?}");
    }
    let text = run(&cards.home, ["card"]).stdout;
    assert!(
        text.contains("signature     valid: EdDSA key ") && text.contains(&id) && text.contains("valid: ES256 key "),
        "{text}"
    );
    // The card names the keys at the host it was fetched from.
    cards.judge(&["--require-signature", &localhost], 0, "valid");
    cards.judge(&["--agent-id", &id, &localhost], 0, "valid");
}

#[tokio::test]
async fn a_card_that_was_changed_does_not_verify() {
    let cards = Cards::new().await;
    for name in ["newer.json", "older.json", "original.json"] {
        let mut card: Value = serde_json::from_str(&cards.read(name)).unwrap();
        card["description"] = json!("something else");
        cards.write("changed.json", &card.to_string());
        let signature = cards.judge(&["--verify-key", "jwks.json", "changed.json"], 1, "invalid");
        assert!(signature["reason"].is_string() && signature["by"] == json!([]), "{signature}");
    }
    let ran = run(&cards.home, ["card", "changed.json"]);
    assert!(
        ran.stderr.contains("does not verify") && ran.stdout.contains("signature     INVALID"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );

    // What no signature covers is named.
    let mut card: Value = serde_json::from_str(&cards.read("newer.json")).unwrap();
    card["skills"][0]["x-extra"] = json!("put there later");
    cards.write("extra.json", &card.to_string());
    let signature = cards.judge(&["--verify-key", "jwks.json", "extra.json"], 0, "valid");
    assert_eq!(signature["uncovered"], json!(["/skills/0/x-extra"]));

    // Two readers of this text could see two cards.
    let twice = cards.read("newer.json").replacen("\"name\":", "\"name\":\"other\",\"name\":", 1);
    cards.write("twice.json", &twice);
    cards.judge(&["--verify-key", "jwks.json", "twice.json"], 1, "invalid");
}

#[tokio::test]
async fn a_card_without_a_signature_or_without_a_key_fails_only_where_one_is_required() {
    let cards = Cards::new().await;
    let url = cards.server.url().to_owned();
    let mixed = cards.judge(&["--a2a-version", "none", &url], 0, "unsigned");
    assert!(mixed["reason"].as_str().unwrap().contains("--a2a-version"), "{mixed}");
    let mut card: Value = serde_json::from_str(&cards.read("newer.json")).unwrap();
    card.as_object_mut().unwrap().remove("signatures");
    cards.write("unsigned.json", &card.to_string());
    cards.judge(&["unsigned.json"], 0, "unsigned");
    cards.judge(&["newer.json"], 0, "no key");
    let id = "ab".repeat(32);
    for required in [&["--require-signature"][..], &["--verify-key", "jwks.json"], &["--agent-id", &id]] {
        cards.judge(&[required, &["unsigned.json"]].concat(), 1, "unsigned");
    }
    cards.judge(&["--require-signature", "newer.json"], 1, "no key");
}

#[tokio::test]
async fn a_pin_of_somebody_else_is_not_met() {
    let cards = Cards::new().await;
    let other = Home::new();
    let stranger = Setup::in_home(&other).start();
    let theirs = reqwest::get(format!("{}/.well-known/jwks.json", stranger.url())).await.unwrap().text().await.unwrap();
    cards.write("theirs.json", &theirs);
    let id = "ab".repeat(32);
    let url = cards.server.url().to_owned();
    for card in ["newer.json", "older.json", "original.json", &url] {
        cards.judge(&["--verify-key", "theirs.json", card], 1, "invalid");
    }
    for card in ["original.json", &url] {
        cards.judge(&["--agent-id", &id, card], 1, "invalid");
    }
    cards.judge(&["--agent-id", &id, "newer.json"], 1, "no key");

    // One key of the set, as a JWK.
    let set: Value = serde_json::from_str(&cards.read("jwks.json")).unwrap();
    let own = set["keys"].as_array().unwrap().iter().find(|key| key["chancery:use"] == "cards").unwrap();
    cards.write("one.json", &own.to_string());
    cards.judge(&["--verify-key", "one.json", "newer.json"], 0, "valid");
    cards.write("private.pem", "-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----\n");
    let ran = run(&cards.home, ["card", "--verify-key", "private.pem", "newer.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
}

#[tokio::test]
async fn a_card_can_come_from_stdin() {
    let cards = Cards::new().await;
    let mut child = cards
        .home
        .command()
        .args(["card", "--json", "--verify-key", "jwks.json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(cards.read("newer.json").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let card: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &card["signature"]["state"]), (Some(0), &json!("valid")));
}
