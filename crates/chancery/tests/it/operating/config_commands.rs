//! `chancery init`, `validate` and `schema`, to the letter.

use serde_json::{Value, json};

use crate::operating::cli::run;
use crate::support::server::{Home, Setup};

#[test]
fn init_writes_a_file_that_serves_and_its_schema_and_writes_over_nothing() {
    let home = Home::new();
    let ran = run(&home, ["init"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "chancery.toml\n"), "{}", ran.stderr);
    let text = std::fs::read_to_string(home.path().join("chancery.toml")).unwrap();
    assert_eq!(text.lines().next(), Some("#:schema ./chancery.schema.json"));
    assert_eq!(chancery::Config::parse(&text).unwrap(), chancery::Config::default());
    let schema = std::fs::read_to_string(home.path().join("chancery.schema.json")).unwrap();
    assert_eq!(run(&home, ["schema"]).stdout, schema);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["additionalProperties"], json!(false));

    std::fs::write(home.path().join("chancery.toml"), "mine = 1").unwrap();
    let ran = run(&home, ["init"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("chancery.toml exists; --force"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(home.path().join("chancery.toml")).unwrap(), "mine = 1");
    assert_eq!(run(&home, ["init", "--force"]).code, Some(0));
    assert_eq!(run(&home, ["validate"]).code, Some(0));
}

#[test]
fn init_can_put_the_node_in_front_of_an_agent_elsewhere() {
    let home = Home::new();
    assert_eq!(run(&home, ["init", "--agent", "here"]).code, Some(2));
    assert!(!home.path().join("chancery.toml").exists());
    let ran = run(&home, ["init", "--config", "node.toml", "--agent", "http://127.0.0.1:9"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = run(&home, ["validate", "node.toml"]);
    assert_eq!(ran.stdout, "OK node.toml: listens at 127.0.0.1:7420, agents agent, no callers\n", "{}", ran.stderr);
}

#[test]
fn validate_says_all_faults_and_ends_with_2_or_says_ok() {
    let home = Home::new();
    let text = "lissten = 1\n[agents.echo]\nrun = 'echo'\n[callers.a]\nkey_env = 'K'\nmay_call = ['ehco']\n[routing]\ndefault_selector = 'fast'\n";
    std::fs::write(home.path().join("chancery.toml"), text).unwrap();
    let ran = run(&home, ["validate"]);
    let expected = "\
chancery.toml:1:1: unknown key `lissten`; did you mean `listen`?
chancery.toml:6:12: callers.a.may_call: there is no agent ehco here; did you mean `echo`?
chancery.toml:8:20: routing.default_selector: unknown value `fast`, expected one of `cheapest_under_latency`, `lowest_latency`, \
         `round_robin`, `capability_match`, `power_of_two_choices`
";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), expected));
    assert_eq!(ran.stderr, "chancery: 3 faults in chancery.toml\n");
    let ran = run(&home, ["validate", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &answer["ok"], answer["faults"].as_array().map(Vec::len)), (Some(2), &json!(false), Some(3)));
    let first = json!({ "line": 1, "column": 1, "message": "unknown key `lissten`; did you mean `listen`?" });
    assert_eq!(answer["faults"][0], first);

    std::fs::write(home.path().join("chancery.toml"), "[agents.echo]\nrun = 'echo'\n[callers.a]\nkey_env = 'K'\n").unwrap();
    let ran = run(&home, ["validate", "--offline"]);
    let ok = "OK chancery.toml: listens at 127.0.0.1:7420, agents echo, 1 caller\n";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), ok, ""));
    let ran = run(&home, ["validate", "--offline", "--json"]);
    assert_eq!(ran.json()["holds"]["callers"], json!(1));
    let ran = run(&home, ["validate", "no-such.toml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.starts_with("chancery: cannot read no-such.toml: "), "{}", ran.stderr);
}

#[test]
fn validate_names_common_mistakes_with_their_line_and_without_words_of_rust() {
    let home = Home::new();
    let key = ["sk", "-live-0123"].concat();
    for (text, expected) in [
        ("[limits]\nbody_bytes = -1\n".to_owned(), "2:14: limits.body_bytes: expected a whole number ≥ 0, got -1"),
        ("hosts = []\nlisten: 127.0.0.1:80\n".to_owned(), "2:9: this line is YAML; a config is TOML or JSON"),
        ("listen = '127.0.0.1:70000'\n".to_owned(), "1:10: listen: port 70000 does not exist: the highest port is 65535"),
        (format!("[callers.a]\nkey_hash = 'x'\nkey = '{key}'\n"), "3:1: unknown key `callers.a.key`; a secret does not belong"),
        (format!("[callers.a]\nkey_env = '{key}'\n"), "2:11: callers.a.key_env: expected the name of an environment variable"),
        (
            "[[policy.rules]]\nname = 'r'\ndeny_when = \"caler == 'x'\"\n".to_owned(),
            "3:13: policy.rules[0].deny_when: the rule \"r\": there is no name \"caler\"",
        ),
        ("[routing]\ndefault_selector = 'roundrobin'\n".to_owned(), "2:20: routing.default_selector: unknown value `roundrobin`"),
    ] {
        std::fs::write(home.path().join("chancery.toml"), &text).unwrap();
        let ran = run(&home, ["validate"]);
        assert_eq!(ran.code, Some(2), "{text}");
        assert!(ran.stdout.lines().any(|line| line.starts_with(&format!("chancery.toml:{expected}"))), "{text}\n{}", ran.stdout);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        for word in ["invalid type", "variant", "u64", "u32", "integer `", &key] {
            assert!(!said.contains(word), "{word}: {said}");
        }
    }
}

#[test]
fn a_key_under_its_old_name_is_read_and_warned_of_by_validate_and_at_the_start() {
    let (home, old) = (Home::new(), "[peers]\npoll_most_ms = 2000\n");
    let warning = "peers.poll_most_ms: is the old name of this key; write peers.max_poll_ms";
    std::fs::write(home.path().join("chancery.toml"), old).unwrap();
    let ran = run(&home, ["validate"]);
    let expected =
        format!("chancery.toml:2:1: warning: {warning}\nOK chancery.toml: listens at 127.0.0.1:7420, agents echo, no callers\n");
    assert_eq!((ran.code, ran.stdout), (Some(0), expected));
    let answer = run(&home, ["validate", "--json"]).json();
    assert_eq!(answer["warnings"], json!([{ "line": 2, "column": 1, "message": warning }]));
    let server = Setup::in_home(&home).config(old).start();
    assert!(server.log().contains(warning), "{}", server.log());

    std::fs::write(home.path().join("chancery.toml"), format!("{old}max_poll_ms = 2000\n")).unwrap();
    let ran = run(&home, ["validate"]);
    let fault = "chancery.toml:2:1: peers.poll_most_ms: is the old name of peers.max_poll_ms, which is set too; remove it\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), fault));
}

#[test]
fn a_budget_that_callers_of_an_open_node_evade_is_warned_of_by_validate_and_at_the_start() {
    let home = Home::new();
    let config = "[budget.tenant.'*']\nmax_tasks = 1\nwindow = '1h'\n";
    let warning = "budget.tenant.*: limits each tenant separately, and without callers every call may name a new tenant";
    std::fs::write(home.path().join("chancery.toml"), config).unwrap();
    let ran = run(&home, ["validate"]);
    assert!(ran.code == Some(0) && ran.stdout.contains(&format!("warning: {warning}")), "{}{}", ran.stdout, ran.stderr);
    let server = Setup::in_home(&home).config(config).start();
    assert!(server.log().contains(warning), "{}", server.log());
}

#[test]
fn validate_knows_the_agents_that_were_added() {
    let home = Home::new();
    let server = Setup::in_home(&home).start();
    let elsewhere = Setup::conformance().start();
    let ran = run(&home, ["agents", "add", elsewhere.url(), "--name", "added"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let hash = chancery_identity::credentials::KeyHash::of("the-key-of-somebody");
    let config = format!("[callers.a]\nkey_hash = '{hash}'\nmay_call = ['added', 'echo']\n");
    std::fs::write(home.path().join("chancery.toml"), config).unwrap();
    let ran = run(&home, ["validate"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    drop(server);
    assert_eq!(run(&Home::new(), [std::path::Path::new("validate"), &home.path().join("chancery.toml")]).code, Some(2));
}
