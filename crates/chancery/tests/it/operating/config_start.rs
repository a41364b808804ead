//! `chancery validate` and `chancery serve` say the same of a config, and `--offline` leaves out what depends on the machine.

use chancery_identity::credentials::KeyHash;

use crate::operating::cli::{Ran, run};
use crate::support::certificates::Signer;
use crate::support::server::{Home, Setup};

/// A config that no node starts with, the words for it, and whether that depends on the machine.
const REFUSED: &[(&str, &str, bool)] = &[
    ("listen = '0.0.0.0:0'\n", "chancery.toml:1:10: listen: 0.0.0.0:0 is not a loopback address", false),
    (
        "[callers.a]\nkey_env = 'NO_SUCH_KEY'\n",
        "chancery.toml:2:11: callers.a.key_env: the environment variable NO_SUCH_KEY is not set",
        true,
    ),
    (
        "[tls]\ncert_file = 'none.pem'\nkey_file = 'node.key'\n",
        "chancery.toml:2:13: tls.cert_file: none.pem cannot be read",
        true,
    ),
    (
        "[tls]\ncert_file = 'node.pem'\nkey_file = 'none.key'\n",
        "chancery.toml:3:12: tls.key_file: none.key holds no private key",
        true,
    ),
    ("[tls]\ncert_file = 'node.pem'\nkey_file = 'other.key'\n", "tls: ", true),
    (
        "[agents.a]\nrun = 'echo'\nkey_file = 'none.pem'\n",
        "chancery.toml:3:12: agents.a.key_file: the key in none.pem cannot be read",
        true,
    ),
    (
        "[agents.a]\nrun = 'echo'\nkey_env = 'NO_SUCH_KEY'\n",
        "chancery.toml:3:11: agents.a.key_env: the key in NO_SUCH_KEY is not there",
        true,
    ),
    ("[keys.push]\nenv = 'NO_SUCH_KEY'\n", "keys.push: the key in NO_SUCH_KEY is not there", true),
    ("[agents.a]\nurl = 'http://127.0.0.1:9'\ncredentials = { bearer_env = 'NO_SUCH_TOKEN' }\n", "NO_SUCH_TOKEN", true),
    ("[agents.a]\nurl = 'http://127.0.0.1:9'\ncard_keys = 'none.jwks'\n", "none.jwks", true),
    ("[artifacts]\nschemas = 'no-such-folder'\n", "no-such-folder", true),
    ("[push.origins.'https://h.example']\nsecret_env = ['NO_SUCH_SECRET']\n", "NO_SUCH_SECRET", true),
    (
        "listen = '192.0.2.77:0'\n[callers.a]\nkey_hash = 'HASH'\n",
        "chancery.toml:1:10: listen: this machine does not have the address 192.0.2.77",
        true,
    ),
    (
        "listen = '127.0.0.1:7421'\n[swp]\nlisten = '127.0.0.1:7421'\n",
        "chancery.toml:3:10: swp.listen: is the port of listen = 127.0.0.1:7421",
        false,
    ),
    ("[memory]\ntier = 'node.pem/tier'\n", "chancery.toml:2:8: memory.tier: node.pem is not a folder", true),
    ("[swp]\nlisten = '0.0.0.0:0'\n", "chancery.toml:2:10: swp.listen: 0.0.0.0:0 is not a loopback address", false),
    (
        "[agents.echo]\nrun = 'echo'\n[callers.a]\nkey_hash = 'HASH'\nmay_call = ['ehco']\n",
        "there is no agent ehco here; did you mean `echo`?",
        false,
    ),
];

fn serve(home: &Home) -> Ran {
    Ran::of(home.command().args(["serve", "--memory", "--config", "chancery.toml"]))
}

#[test]
fn what_serve_refuses_validate_refuses_in_the_same_words() {
    let (nodes, home) = (Signer::new("nodes"), Home::new());
    let node = nodes.node();
    for (name, text) in [("node.pem", &node.certificate), ("node.key", &node.key), ("other.key", &nodes.node().key)] {
        std::fs::write(home.path().join(name), text).expect("the home takes files");
    }
    let hash = KeyHash::of("the-key-of-somebody").to_string();
    for (config, words, needs_machine) in REFUSED {
        let config = config.replace("HASH", &hash);
        std::fs::write(home.path().join("chancery.toml"), &config).expect("the home takes files");
        let (validated, served) = (run(&home, ["validate"]), serve(&home));
        assert_eq!((validated.code, served.code), (Some(2), Some(2)), "{config}: {} {}", validated.stdout, served.stderr);
        assert!(validated.stdout.contains(words), "{config}: {}", validated.stdout);
        let lines: Vec<&str> = validated.stdout.lines().collect();
        assert!(lines.iter().all(|line| served.stderr.contains(line)), "{config}: {lines:?} {}", served.stderr);
        let offline = run(&home, ["validate", "--offline"]);
        assert_eq!(offline.code, Some(if *needs_machine { 0 } else { 2 }), "{config}: {}", offline.stdout);
        assert!(!home.data().exists(), "{config}: nothing was made");
    }
    for config in ["listen = '0.0.0.0:0'\n", "[swp]\nlisten = '0.0.0.0:0'\n"] {
        std::fs::write(home.path().join("chancery.toml"), config).expect("the home takes files");
        assert_eq!(run(&home, ["validate", "--insecure"]).code, Some(0), "{config}");
    }
}

#[test]
fn a_data_folder_that_cannot_be_made_is_refused_before_anything_is_made() {
    let home = Home::new();
    std::fs::write(home.path().join("file"), "").expect("the home takes files");
    for data in ["file", "file/data", "/proc/no-such-folder/data"] {
        let config = format!("listen = '127.0.0.1:0'\ndata = '{data}'\n");
        std::fs::write(home.path().join("chancery.toml"), config).expect("the home takes files");
        let validated = run(&home, ["validate"]);
        let served = Ran::of(home.command().args(["serve", "--config", "chancery.toml"]));
        assert_eq!((validated.code, served.code), (Some(2), Some(2)), "{data}: {} {}", validated.stdout, served.stderr);
        assert!(validated.stdout.starts_with("chancery.toml:2:8: data: "), "{data}: {}", validated.stdout);
        assert!(served.stderr.contains(validated.stdout.trim_end()), "{data}: {} {}", validated.stdout, served.stderr);
        assert_eq!(run(&home, ["validate", "--offline"]).code, Some(0), "{data}");
    }
}

#[test]
fn callers_that_were_added_make_a_public_address_sound() {
    let home = Home::new();
    std::fs::write(home.path().join("chancery.toml"), "listen = '0.0.0.0:0'\n").expect("the home takes files");
    assert_eq!(run(&home, ["validate"]).code, Some(2));
    assert_eq!(run(&home, ["callers", "add", "planner"]).code, Some(0));
    let ran = run(&home, ["validate"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(run(&home, ["validate", "--offline"]).code, Some(2), "the data folder is this machine's");
}

#[test]
fn budgets_and_policies_for_nobody_are_faults_for_validate_and_warnings_for_serve() {
    let home = Home::new();
    assert_eq!(run(&home, ["callers", "add", "planner", "--tenant", "acme"]).code, Some(0));
    let config = "[budget.caller.planner]\nmax_tasks = 1\nwindow = '1h'\n[budget.caller.planer]\nmax_tasks = 1\nwindow = '1h'\n\
                  [budget.tenant.default]\nmax_tasks = 1\nwindow = '1h'\n[budget.agent.ecko]\nmax_tasks = 1\nwindow = '1h'\n\
                  [policy.caller.'acme/planner']\nmax_tokens = 9\n[policy.caller.'other/planner']\nmax_tokens = 9\n";
    std::fs::write(home.path().join("chancery.toml"), config).expect("the home takes files");
    let ran = run(&home, ["validate"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(2), 4), "{}", ran.stdout);
    let scopes = [
        "budget.caller.planer: applies to nothing: there is no caller planer here; did you mean `acme/planner`?",
        "budget.tenant.default: applies to nothing: there is no tenant default here",
        "budget.agent.ecko: applies to nothing: there is no agent ecko here; did you mean `echo`?",
        "policy.caller.other/planner: applies to nothing: there is no caller other/planner here",
    ];
    assert!(scopes.iter().all(|scope| ran.stdout.contains(scope)), "{}", ran.stdout);
    assert_eq!(run(&home, ["validate", "--unknown-ok"]).code, Some(0));
    let server = Setup::in_home(&home).config(config).start();
    let log = server.log();
    assert!(scopes.iter().all(|scope| log.contains(scope)), "{log}");
}
