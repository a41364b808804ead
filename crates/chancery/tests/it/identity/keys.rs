//! `chancery keys`: with a node that runs, and with the folder of one that does not.

use serde_json::Value;

use crate::operating::cli::run;
use crate::support::patience::eventually;
use crate::support::server::{Home, Server, Setup};

fn keys(home: &Home) -> Vec<Value> {
    run(home, ["keys", "show", "--json"]).json()["keys"].as_array().expect("a list").clone()
}

fn kids(keys: &[Value]) -> Vec<String> {
    keys.iter().map(|key| key["kid"].as_str().expect("a kid").to_owned()).collect()
}

/// The kids of the published keys.
async fn published(server: &Server) -> Vec<String> {
    let set: Value = reqwest::get(format!("{}/.well-known/jwks.json", server.url())).await.unwrap().json().await.unwrap();
    kids(set["keys"].as_array().expect("keys"))
}

fn signature_of_card(home: &Home) -> Value {
    run(home, ["card", "--json"]).json()["signature"].take()
}

/// The agent that signed the card.
fn agent_id(signature: &Value) -> String {
    let by = signature["by"].as_array().expect("signers");
    by.iter().find_map(|one| one["agentId"].as_str()).expect("an agent").to_owned()
}

#[test]
fn the_same_keys_are_shown_with_and_without_a_node() {
    let home = Home::new();
    let nothing = run(&home, ["keys", "show"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("chancery serve") && !home.data().exists(), "{}", nothing.stderr);

    let server = Setup::in_home(&home).start();
    let running = keys(&home);
    assert_eq!(running.len(), 5, "two for the agent's cards, one for each other use: {running:?}");
    let table = run(&home, ["keys", "show"]).stdout;
    for word in ["USE", "cards", "hop-tokens", "push", "receipts", "echo", "EdDSA", "ES256", "in use"] {
        assert!(table.contains(word), "{word} is not in:\n{table}");
    }
    assert_eq!(agent_id(&signature_of_card(&home)), running.iter().find_map(|key| key["agent_id"].as_str()).unwrap());
    // What a killed node wrote down about itself is still there and leads nowhere.
    server.kill();
    assert!(home.data().join("node.json").exists());
    assert_eq!(kids(&keys(&home)), kids(&running));
}

#[tokio::test]
async fn a_new_key_for_cards_signs_them_at_once_if_told_and_the_old_one_stays_published() {
    let home = Home::new();
    let server = Setup::in_home(&home).env("RUST_LOG", "debug").start();
    let before = signature_of_card(&home);
    assert_eq!(before["state"], "valid", "{before}");
    let old = agent_id(&before);

    let asked = run(&home, ["keys", "rotate", "cards", "--now"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (Some(2), ""), "{}", asked.stderr);
    assert!(asked.stderr.contains(&old) && asked.stderr.contains("--yes"), "{}", asked.stderr);
    assert_eq!(agent_id(&signature_of_card(&home)), old, "nothing was done");

    let before = published(&server).await;
    let rotated = run(&home, ["keys", "rotate", "cards", "--now", "--yes", "--json"]).json();
    let new = rotated["agent_id"]["new"].as_str().expect("a new id").to_owned();
    assert_eq!(rotated["agent_id"]["old"], old.as_str());
    assert_ne!(new, old);
    let signed = eventually("the new key signs", || {
        let signature = signature_of_card(&home);
        (agent_id(&signature) == new).then_some(signature)
    });
    assert_eq!(signed["state"], "valid", "{signed}");
    let after = published(&server).await;
    let made = kids(rotated["keys"].as_array().unwrap());
    assert!(made.len() == 2 && made.iter().chain(&before).all(|kid| after.contains(kid)), "{before:?} {made:?} {after:?}");

    let pinned = run(&home, ["card", "--agent-id", &new]);
    assert_eq!(pinned.code, Some(0), "{}", pinned.stderr);
    let pinned = run(&home, ["card", "--agent-id", &old]);
    assert_eq!(pinned.code, Some(1), "{}", pinned.stdout);
    assert!(pinned.stderr.contains(&old), "{}", pinned.stderr);

    let shown = run(&home, ["keys", "rotate", "cards", "--now", "--yes"]);
    assert!(shown.stderr.contains(&new) && shown.stderr.contains("new agent id"), "both ids are shown: {}", shown.stderr);
}

#[tokio::test]
async fn a_new_key_is_published_before_it_signs() {
    let home = Home::new();
    let server = Setup::in_home(&home).start();
    let old = agent_id(&signature_of_card(&home));
    for arguments in [&["push"][..], &["cards", "--yes", "--lead", "1h", "--overlap", "7d"]] {
        let rotated = run(&home, ["keys", "rotate", "--json"].iter().chain(arguments)).json();
        let made = kids(rotated["keys"].as_array().unwrap());
        eventually("the new keys are listed as published", || {
            let listed = keys(&home);
            made.iter()
                .all(|kid| listed.iter().any(|key| key["kid"] == kid.as_str() && key["state"] == "published"))
                .then_some(())
        });
        crate::support::patience::soon("the new keys are in the JWKS", async || {
            let set = published(&server).await;
            made.iter().all(|kid| set.contains(kid)).then_some(())
        })
        .await;
    }
    let states: Vec<_> = keys(&home).iter().filter(|key| key["use"] == "push").map(|key| key["state"].clone()).collect();
    assert_eq!(states, ["retiring", "published"]);
    let signature = signature_of_card(&home);
    assert_eq!((signature["state"].as_str(), agent_id(&signature)), (Some("valid"), old), "the old key signs for another hour");
}

#[tokio::test]
async fn keys_of_a_node_that_does_not_run_are_rotated_in_its_folder() {
    let home = Home::new();
    Setup::in_home(&home).start().kill();
    let before = kids(&keys(&home));
    let rotated = run(&home, ["keys", "rotate", "receipts", "--now", "--json"]).json();
    let made = kids(rotated["keys"].as_array().unwrap());
    assert_eq!(made.len(), 1);
    let server = Setup::in_home(&home).start();
    let after = published(&server).await;
    assert!(before.iter().chain(&made).all(|kid| after.contains(kid)), "{before:?} {made:?} {after:?}");
}

#[test]
fn what_cannot_be_rotated_is_refused_with_what_to_do() {
    let home = Home::new();
    let nothing = run(&home, ["keys", "rotate", "cards", "--yes"]);
    assert_eq!(nothing.code, Some(1), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("chancery serve"), "{}", nothing.stderr);

    let _server = Setup::in_home(&home).args(["--agent", "conformance", "--agent", "echo"]).start();
    let before = keys(&home);
    for (arguments, code, words) in [
        (&["push", "--agent", "echo"][..], 2, &["cards"][..]),
        (&["tokens"], 2, &["hop-tokens", "receipts"]),
        (&["push", "--now", "--lead", "10m"], 2, &["--lead"]),
        (&["push", "--overlap", "soon"], 2, &["24h"]),
        (&["cards", "--yes"], 2, &["--agent", "conformance", "echo"]),
        (&["cards", "--agent", "nobody", "--yes"], 1, &["nobody", "echo"]),
        (&["cards", "--agent", "echo"], 2, &["--yes", "pin"]),
    ] {
        let ran = run(&home, ["keys", "rotate"].iter().chain(arguments));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", ran.stderr);
        assert!(words.iter().all(|word| ran.stderr.contains(word)), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(keys(&home), before, "nothing was done");
    let rotated = run(&home, ["keys", "rotate", "cards", "--agent", "echo", "--yes"]);
    assert_eq!(rotated.code, Some(0), "{}", rotated.stderr);
}

#[test]
fn a_key_that_was_given_is_replaced_where_it_came_from() {
    let home = Home::new();
    let config = "[agents.echo]\nrun = \"echo\"\nkey_env = \"ECHO_KEY\"\n";
    let _server = Setup::in_home(&home).config(config).env("ECHO_KEY", &"5a".repeat(32)).start();
    let refused = run(&home, ["keys", "rotate", "cards", "--yes"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("given from outside"), "{}", refused.stderr);
}
