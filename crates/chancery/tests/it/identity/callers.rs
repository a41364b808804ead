//! `chancery callers` and what calls show: keys that are made once, work, are replaced and taken away.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use chancery_identity::SigningKey;
use chancery_identity::keys::Cards;
use serde_json::{Value, json};

use crate::operating::cli::{Ran, run};
use crate::support::patience::exit_of;
use crate::support::server::{Home, Server, Setup};

/// Adds a caller and answers its key.
fn add(home: &Home, arguments: &[&str]) -> String {
    let ran = run(home, ["callers", "add"].iter().chain(arguments));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let key = ran.stdout.trim_end().to_owned();
    assert!(ran.stdout.lines().count() == 1 && key.starts_with("chk_"), "the key alone: {:?}", ran.stdout);
    assert!(ran.stderr.contains("not shown again") && !ran.stderr.contains(&key), "{}", ran.stderr);
    key
}

fn send_with(home: &Home, key: &str) -> Ran {
    Ran::of(home.command().env("CHANCERY_KEY", key).args(["send", "hello"]))
}

#[track_caller]
fn works(ran: &Ran) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{}", ran.stderr);
}

#[track_caller]
fn is_turned_away(ran: &Ran, words: &[&str]) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(words.iter().all(|word| ran.stderr.contains(word)), "{words:?} are not in: {}", ran.stderr);
}

fn file(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = home.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A node that lets in only `planner`, and planner's key.
fn closed(arguments: &[&str]) -> (Home, Server, String) {
    let home = Home::new();
    let key = add(&home, &["planner"]);
    let server = Setup::in_home(&home).args(arguments).env("RUST_LOG", "trace").start();
    (home, server, key)
}

#[test]
fn a_caller_added_before_the_first_start_is_let_in_and_nobody_else_is() {
    let (home, server, key) = closed(&[]);
    assert!(server.curl().contains("X-API-Key: $KEY"), "{}", server.curl());
    is_turned_away(&run(&home, ["send", "hello"]), &["CHANCERY_KEY", "--key-file", "--sign-with", "chancery callers add"]);
    is_turned_away(&run(&home, ["send", "--stream", "hello"]), &["CHANCERY_KEY"]);
    works(&send_with(&home, &key));
    is_turned_away(&send_with(&home, "chk_nobody-has-this-key"), &["chancery callers rotate"]);

    let kept = file(&home, "planner.key", &format!("{key}\n"));
    let kept = kept.to_str().unwrap();
    works(&run(&home, ["send", "--key-file", kept, "hello"]));
    works(&run(&home, ["send", "--stream", "--key-file", kept, "hello"]));
    works(&Ran::of(home.command().env("PLANNER", &key).args(["send", "--key-env", "PLANNER", "hello"])));
    let both = Ran::of(home.command().env("PLANNER", &key).args(["send", "--key-env", "PLANNER", "--key-file", kept, "hello"]));
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}

#[test]
fn a_rotated_key_works_beside_the_old_one_and_a_revoked_caller_has_none_at_once() {
    let (home, _server, first) = closed(&[]);
    let rotated = run(&home, ["callers", "rotate", "planner", "--overlap", "1h"]);
    let second = rotated.stdout.trim_end().to_owned();
    assert_eq!(rotated.code, Some(0), "{}", rotated.stderr);
    assert_ne!(first, second);
    works(&send_with(&home, &first));
    works(&send_with(&home, &second));
    let third = run(&home, ["callers", "rotate", "planner", "--overlap", "0s", "--json"]).json();
    is_turned_away(&send_with(&home, &second), &["expired"]);
    works(&send_with(&home, third["key"].as_str().unwrap()));

    let revoked = run(&home, ["callers", "revoke", "planner"]);
    assert_eq!((revoked.code, revoked.stdout.as_str()), (Some(0), ""), "{}", revoked.stderr);
    is_turned_away(&send_with(&home, &first), &["revoked"]);
    is_turned_away(&send_with(&home, third["key"].as_str().unwrap()), &["revoked"]);
    let listed = run(&home, ["callers", "list"]).stdout;
    assert!(listed.contains("planner") && listed.contains("revoked"), "its name stays taken:\n{listed}");
}

#[test]
fn a_node_that_was_started_open_says_that_it_stays_so_until_its_next_start() {
    let home = Home::new();
    let server = Setup::in_home(&home).start();
    let added = run(&home, ["callers", "add", "planner"]);
    assert!(added.stderr.contains("accepts every client"), "{}", added.stderr);
    works(&run(&home, ["send", "hello"]));
    server.terminate();
    let _server = Setup::in_home(&home).start();
    is_turned_away(&run(&home, ["send", "hello"]), &["CHANCERY_KEY"]);
    works(&send_with(&home, added.stdout.trim_end()));
}

#[test]
fn callers_of_a_node_that_does_not_run_are_changed_in_its_folder() {
    let (home, server, first) = closed(&[]);
    // What the killed node wrote down about itself leads nowhere.
    server.kill();
    let second = run(&home, ["callers", "rotate", "planner"]).stdout.trim_end().to_owned();
    let other = add(&home, &["ci", "--tenant", "acme"]);
    let listed = run(&home, ["callers", "list", "--json"]).json();
    let names: Vec<_> = listed["callers"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["planner", "ci"]);
    assert_eq!(run(&home, ["callers", "revoke", "ci"]).code, Some(0));
    let _server = Setup::in_home(&home).start();
    works(&send_with(&home, &first));
    works(&send_with(&home, &second));
    is_turned_away(&send_with(&home, &other), &["revoked"]);
}

#[test]
fn commands_that_want_the_folder_at_once_take_turns() {
    let home = Home::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    let add =
        |name: &&str| home.command().args(["callers", "add", name]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for mut child in names.iter().map(add).collect::<Vec<_>>() {
        assert_eq!(exit_of(&mut child).code(), Some(0));
    }
    let listed = run(&home, ["callers", "list", "--json"]).json();
    let mut found: Vec<_> = listed["callers"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, names);
}

#[test]
fn a_list_shows_who_may_what_and_no_keys() {
    let home = Home::new();
    let id = "ab".repeat(32);
    let config = "[callers.fixed]\nkey_env = \"FIXED_KEY\"\n[issuers.corp]\nissuer = \"https://corp.example\"\naudience = \"here\"\njwks_url = \"https://corp.example/keys\"\n";
    let _server = Setup::in_home(&home).config(config).env("FIXED_KEY", "fixed-0123456789abcdef").start();
    let key = add(&home, &["planner", "--tenant", "acme", "--agent", "echo", "--may-call", "echo", "--may-call", "echo/echo"]);
    let without = run(&home, ["callers", "add", "bot", "--agent-id", &id, "--token", "corp:bot@corp", "--json"]).json();
    assert_eq!((without["name"].as_str(), &without["key"]), (Some("bot"), &Value::Null), "it has another proof");

    let ran = run(&home, ["callers", "list", "--json"]);
    assert!(!ran.stdout.contains("sha256:") && !ran.stdout.contains(&key), "{}", ran.stdout);
    let listed = ran.json()["callers"].take();
    let planner = listed.as_array().unwrap().iter().find(|one| one["name"] == "planner").unwrap();
    assert_eq!((planner["tenant"].as_str(), &planner["may_call"]), (Some("acme"), &json!(["echo", "echo/echo"])));
    let table = run(&home, ["callers", "list"]).stdout;
    for word in ["planner", "acme", "echo echo/echo", "bot", "signature, token", "fixed", "config", "everything"] {
        assert!(table.contains(word), "{word} is not in:\n{table}");
    }
    for (arguments, words) in
        [(&["revoke", "fixed"][..], &["config"][..]), (&["rotate", "fixed"], &["config"]), (&["add", "fixed"], &["already"])]
    {
        let ran = run(&home, ["callers"].iter().chain(arguments));
        is_turned_away(&ran, words);
    }
}

#[test]
fn what_cannot_be_done_is_refused_the_same_way_with_and_without_a_node() {
    let home = Home::new();
    let refusals = || {
        for (arguments, code, words) in [
            (&["add", "planner"][..], 1, &["already", "chancery callers rotate"][..]),
            (&["add", "Planner"], 2, &["a-z"]),
            (&["add", "x", "--tenant", "No Name"], 2, &["tenant"]),
            (&["add", "x", "--may-call", "/skill"], 2, &["AGENT/SKILL"]),
            (&["add", "x", "--certificate", "CN=x"], 2, &["spiffe://"]),
            (&["add", "x", "--agent-id", "7"], 2, &["64"]),
            (&["add", "x", "--token", "corp"], 2, &["ISSUER:SUBJECT"]),
            (&["rotate", "nobody"], 1, &["no caller nobody", "chancery callers ls"]),
            (&["revoke", "nobody"], 1, &["no caller nobody", "chancery callers ls"]),
            (&["rotate", "planner", "--overlap", "1"], 2, &["24h"]),
        ] {
            let ran = run(&home, ["callers"].iter().chain(arguments));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", ran.stderr);
            assert!(words.iter().all(|word| ran.stderr.contains(word)), "{arguments:?}: {}", ran.stderr);
        }
    };
    for arguments in [&["rotate", "planner"][..], &["revoke", "planner"]] {
        let ran = run(&home, ["callers"].iter().chain(arguments));
        is_turned_away(&ran, &["chancery callers add"]);
    }
    assert!(!home.data().exists(), "nothing was made");
    add(&home, &["planner"]);
    refusals();
    let _server = Setup::in_home(&home).start();
    refusals();
    // A node does not start with callers that name what it does not have, so it takes none.
    for (arguments, words) in [
        (["--may-call", "nobody/skill"], ["no agent nobody", "echo"]),
        (["--agent", "nobody"], ["no agent nobody", "echo"]),
        (["--token", "corp:x"], ["no issuer corp", "config"]),
        (["--certificate", "dns:x.example"], ["certificates", "client_ca_file"]),
    ] {
        let ran = run(&home, ["callers", "add", "x"].iter().chain(&arguments));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
        assert!(words.iter().all(|word| ran.stderr.contains(word)), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn an_agent_is_let_in_by_its_signature_alone() {
    let (home, _server, _) = closed(&[]);
    let seed = "c3".repeat(32);
    let agent = SigningKey::<Cards>::from_seed(&seed).unwrap().agent_id().unwrap();
    let added = run(&home, ["callers", "add", "bot", "--agent-id", agent.as_str()]);
    assert_eq!((added.code, added.stdout.as_str()), (Some(0), ""), "{}", added.stderr);
    let seed = file(&home, "bot.seed", &seed);
    let seed = seed.to_str().unwrap();
    works(&run(&home, ["send", "--sign-with", seed, "hello"]));
    works(&run(&home, ["send", "--stream", "--sign-with", seed, "hello"]));
    works(&run(&home, ["send", "--agent", "echo", "--sign-with", seed, "hello"]));
    // A key that nobody asked for does not come along to contradict the signature.
    works(&Ran::of(home.command().env("CHANCERY_KEY", "chk_of-somebody-else").args(["send", "--sign-with", seed, "hello"])));
    let other = file(&home, "other.seed", &"d4".repeat(32));
    is_turned_away(&run(&home, ["send", "--sign-with", other.to_str().unwrap(), "hello"]), &["does not know this key"]);
    let bad = file(&home, "bad.seed", "secret-but-short");
    let ran = run(&home, ["send", "--sign-with", bad.to_str().unwrap(), "hello"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(!ran.stderr.contains("secret-but-short"), "{}", ran.stderr);
}

#[test]
fn a_caller_reaches_what_it_may_and_is_told_whom_to_ask_for_more() {
    let (home, _server, _) = closed(&["--agent", "conformance", "--agent", "echo"]);
    let key = add(&home, &["ci", "--may-call", "echo"]);
    let send = |agent: &str| Ran::of(home.command().env("CHANCERY_KEY", &key).args(["send", "--agent", agent, "hello"]));
    works(&send("echo"));
    is_turned_away(&send("conformance"), &["may_call"]);
}

#[test]
fn an_extended_card_is_for_callers_and_is_signed_too() {
    let home = Home::new();
    let key = add(&home, &["planner"]);
    let config = "[agents.echo]\nrun = \"echo\"\nextended_skills = [{ id = \"audit\", name = \"Audit\", description = \"Shows.\", tags = [\"a\"] }]\n";
    let _server = Setup::in_home(&home).config(config).start();
    is_turned_away(&run(&home, ["card", "--extended"]), &["CHANCERY_KEY"]);
    let card =
        |arguments: &[&str]| Ran::of(home.command().env("CHANCERY_KEY", &key).args(["card", "--json"]).args(arguments)).json();
    let (public, extended) = (card(&[]), card(&["--extended"]));
    let has_audit = |card: &Value| card["card"]["skills"].as_array().unwrap().iter().any(|skill| skill["id"] == "audit");
    assert_eq!((has_audit(&public), has_audit(&extended)), (false, true));
    assert_eq!(
        (&public["signature"]["state"], &extended["signature"]["state"]),
        (&json!("valid"), &json!("valid")),
        "{extended}"
    );
}

#[test]
fn no_key_is_ever_logged_or_kept() {
    let (home, server, first) = closed(&[]);
    let second = run(&home, ["callers", "rotate", "planner"]).stdout.trim_end().to_owned();
    let third = add(&home, &["ci"]);
    for key in [&first, &second, &third] {
        works(&send_with(&home, key));
    }
    let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap();
    let log = server.log();
    assert!(log.contains("an operator gave a caller a new key"), "the log is read while it is written: {log}");
    for secret in [&first, &second, &third, token.trim()] {
        assert!(!log.contains(secret));
    }
    server.terminate();
    for entry in std::fs::read_dir(home.data()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        for key in [&first, &second, &third] {
            assert!(!bytes.contains(key.as_str()), "{}", path.display());
        }
    }
}

/// Who is let in is told that there is no such task.
async fn is_let_in(client: &reqwest::Client, url: &str, key: &str) -> bool {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": "nobody" } });
    let request = client.post(url).header("A2A-Version", "1.0").header("x-api-key", key).json(&body);
    let answer: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    answer["error"]["code"] == -32001
}

/// Whoever is let in after the command has come back would be let in by a key that its owner takes for dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_is_revoked_under_load_is_out_when_the_command_comes_back_and_the_others_stay_in() {
    let home = Home::new();
    let (stolen, kept) = (add(&home, &["stolen"]), add(&home, &["kept"]));
    let limits = "[limits]\ncalls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\n";
    let server = Setup::in_home(&home).config(limits).start();
    let (revoked, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let [before, after, late] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
    let loads: Vec<_> = (0..8)
        .map(|_| {
            let (revoked, stop, url, key) = (Arc::clone(&revoked), Arc::clone(&stop), server.url().to_owned(), stolen.clone());
            let (before, after, late) = (Arc::clone(&before), Arc::clone(&after), Arc::clone(&late));
            tokio::spawn(async move {
                let client = reqwest::Client::new();
                while !stop.load(Ordering::SeqCst) {
                    // Noted before the call begins: only what begins afterwards counts.
                    let is_revoked = revoked.load(Ordering::SeqCst);
                    match (is_revoked, is_let_in(&client, &url, &key).await) {
                        (false, true) => drop(before.fetch_add(1, Ordering::SeqCst)),
                        (true, false) => drop(after.fetch_add(1, Ordering::SeqCst)),
                        (true, true) => drop(late.fetch_add(1, Ordering::SeqCst)),
                        (false, false) => {}
                    }
                }
            })
        })
        .collect();
    crate::support::patience::soon("calls are let in", async || (before.load(Ordering::SeqCst) > 50).then_some(())).await;
    let ran = run(&home, ["callers", "revoke", "stolen"]);
    revoked.store(true, Ordering::SeqCst);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    crate::support::patience::soon("calls are turned away", async || (after.load(Ordering::SeqCst) > 50).then_some(())).await;
    stop.store(true, Ordering::SeqCst);
    for load in loads {
        load.await.expect("it ends");
    }
    assert_eq!(late.load(Ordering::SeqCst), 0, "let in after the caller was revoked");
    assert!(is_let_in(&reqwest::Client::new(), server.url(), &kept).await, "the other caller stays");
}
