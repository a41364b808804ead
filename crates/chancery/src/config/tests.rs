//! What the loader promises: every fault at once, each with its place, and defaults that match the shipped file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use chancery_inbound::Headerless;

use super::fields::field_names;
use super::*;

fn faults(text: &str) -> Vec<String> {
    Config::parse(text).unwrap_err().iter().map(ToString::to_string).collect()
}

fn examples() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/examples"))
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(Config::parse("").unwrap(), Config::default());
}

#[test]
fn what_is_set_is_taken_and_the_rest_stays_as_it_was() {
    let text = "listen = '127.0.0.2:1'\ndedupe = 'message_id'\npublic_url = 'https://h/a/'\n[limits]\nbody_bytes = 5\njson_depth = 3\n\
                page_size = 7\n[card]\nheaderless = '0.3'\n[store]\nsynchronous = 'normal'\n[retention]\nmax_tasks = 9\n\
                [agents.z]\nrun = 'conformance'\ntitle = 'Zed'\n[agents.a]\nrun = 'echo'\n";
    let config = Config::parse(text).unwrap();
    assert_eq!(config.node.listen.to_string(), "127.0.0.2:1");
    assert_eq!(config.node.public_url.unwrap().to_string(), "https://h/a");
    assert_eq!(config.node.dedupe, Dedupe::MessageId);
    let limits = LimitsConfig::default();
    assert_eq!(config.limits.inbound, InboundLimits { body_bytes: 5, ..limits.inbound });
    assert_eq!(config.limits.json, JsonLimits { json_depth: 3, ..limits.json });
    assert_eq!(config.limits.tasks, TaskLimits { page_size: 7, ..limits.tasks });
    assert_eq!(config.card.headerless, Headerless::V0_3);
    assert_eq!(config.store.synchronous, Synchronous::Normal);
    assert_eq!(config.retention, RetentionConfig { max_tasks: 9, ..RetentionConfig::default() });
    let names: Vec<_> =
        config.agents.iter().map(|(name, agent)| (name.as_str(), agent.source.clone(), agent.title.as_deref())).collect();
    assert_eq!(
        names,
        [("z", AgentSource::BuiltIn(BuiltIn::Conformance), Some("Zed")), ("a", AgentSource::BuiltIn(BuiltIn::Echo), None)],
        "in the order of the file"
    );
}

#[test]
fn all_faults_are_told_at_once_in_the_order_of_the_text() {
    let text = "lissten = '127.0.0.1:1'\nlisten = 7\n[limits]\njson_dept = 1\nbody_bytes = -1\nnonsense = true\n[retention]\n\
                max_tasks = 'all'\n[card]\nheaderless = 'both'\n[bugdet]\nx = 1\n[agents.a]\nrun = 'ehco'\n[agents.'B C']\nrun = 'echo'\n\
                [agents.c]\nuri = 'http://h'\n";
    let found = faults(text);
    let expected = [
        ("1:1: ", "unknown key `lissten`; did you mean `listen`?"),
        ("2:10: ", "listen: expected an IP address and a port, as in \"127.0.0.1:8080\", got 7"),
        ("4:1: ", "unknown key `limits.json_dept`; did you mean `json_depth`?"),
        ("5:14: ", "limits.body_bytes: expected a whole number ≥ 0, got -1"),
        ("6:1: ", "unknown key `limits.nonsense`; there are: message_parts, "),
        ("8:13: ", "retention.max_tasks: expected a whole number ≥ 0, got \"all\""),
        ("10:14: ", "card.headerless: unknown value `both`"),
        ("11:2: ", "unknown key `bugdet`; did you mean `budget`?"),
        ("14:7: ", "agents.a.run: unknown value `ehco`, expected one of `echo`, `conformance`, `recall`; did you mean `echo`?"),
        ("15:9: ", "agents.B C: an agent's name is "),
        ("17:9: ", "agents.c: needs `url`, or `run`"),
        ("18:1: ", "unknown key `agents.c.uri`; did you mean `url`?"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (fault, (place, message)) in found.iter().zip(expected) {
        assert!(fault.starts_with(place) && fault[place.len()..].starts_with(message), "{fault}\nwanted {place}{message}");
    }
}

#[test]
fn a_syntax_fault_does_not_hide_the_others() {
    let found = faults("listen = \n[limits\njson_dept = 1\n[retention]\nmax_tusks = 1\n");
    assert!(found[0].starts_with("1:"), "{found:#?}");
    assert!(found.iter().any(|fault| fault.starts_with("2:")), "{found:#?}");
    assert!(found.iter().any(|fault| fault.starts_with("5:1: unknown key `retention.max_tusks`")), "{found:#?}");
}

#[test]
fn a_key_given_twice_is_a_fault() {
    let found = faults("dedupe = 'off'\ndedupe = 'message_id'\n");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("2:1: duplicate key"), "{found:#?}");
}

#[test]
fn a_section_that_is_none_and_agents_that_are_nobody_are_faults() {
    assert_eq!(faults("limits = 3"), ["1:1: limits: must be a section, not an integer"]);
    let found = faults("[agents]\n");
    assert!(found[0].starts_with("1:2: agents: names no agent"), "{found:#?}");
    assert_eq!(faults("agents.a = 'echo'"), ["1:8: agents.a: must be a section, not a string"]);
}

#[test]
fn values_are_checked_where_they_stand() {
    for (text, word) in [
        ("listen = 'localhost'", "expected an IP address and a port"),
        ("public_url = 'h:1'", "must begin with http"),
        ("public_url = 'http://h?x=1'", "no user, query or fragment"),
        ("dedupe = 'on'", "`off` or `message_id`"),
        ("[store]\nsynchronous = 'off'", "`full` or `normal`"),
    ] {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].contains(word), "{found:#?}");
    }
}

/// The keys of every section, as the structs name them.
fn all_names() -> Vec<&'static str> {
    [
        field_names::<NodeConfig>(),
        field_names::<TaskLimits>(),
        field_names::<InboundLimits>(),
        field_names::<JsonLimits>(),
        field_names::<RetentionConfig>(),
        field_names::<CardConfig>(),
        field_names::<StoreConfig>(),
        field_names::<EvidenceConfig>(),
        field_names::<IdentityConfig>(),
        field_names::<chancery_outbound::JwksLimits>(),
        field_names::<TlsConfig>(),
        field_names::<SwpDoor>(),
        field_names::<chancery_inbound::SwpRules>(),
        field_names::<chancery_wire::swp::codec::SwpLimits>(),
        field_names::<GuardConfig>(),
        field_names::<DiscoveryConfig>(),
        field_names::<ClientLimits>(),
        field_names::<FollowLimits>(),
        push_names().as_slice(),
        agent::keys(),
        caller::keys(),
        issuer::keys(),
    ]
    .concat()
}

fn push_names() -> Vec<&'static str> {
    [
        field_names::<PushOffer>(),
        field_names::<chancery_core::push::PushLimits>(),
        field_names::<chancery_outbound::push::CourierConfig>(),
        field_names::<chancery_core::notify::NotifyConfig>(),
        field_names::<chancery_core::notify::Bounds>(),
        field_names::<chancery_core::notify::SlotLimits>(),
        field_names::<chancery_outbound::push::OriginRules>(),
    ]
    .concat()
}

#[test]
fn no_key_of_push_belongs_to_two_components() {
    let names = push_names();
    assert!(names.len() > 30);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn no_key_of_the_joined_limits_belongs_to_two_components() {
    let names = [field_names::<TaskLimits>(), field_names::<InboundLimits>(), field_names::<JsonLimits>()].concat();
    assert!(names.len() > 20);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn the_shipped_file_is_the_default_and_shows_every_key() {
    let text = std::fs::read_to_string(examples().join("chancery.toml")).unwrap();
    assert_eq!(Config::parse(&text).unwrap(), Config::default());
    let shown: BTreeSet<&str> =
        text.lines().filter_map(|line| line.trim_start_matches("# ").split_once(" = ")).map(|(key, _)| key).collect();
    let hidden: Vec<_> = all_names().into_iter().filter(|name| !shown.contains(name)).collect();
    assert_eq!(hidden, [""; 0], "keys the shipped file does not show");
}

#[test]
fn every_config_among_the_examples_loads() {
    let mut loaded = 0;
    for entry in std::fs::read_dir(examples()).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "toml") {
            Config::load(&file).unwrap();
            loaded += 1;
        }
    }
    assert!(loaded >= 2);
}

#[test]
fn a_file_that_cannot_be_read_and_a_faulty_one_are_named() {
    let missing = Config::load(std::path::Path::new("no/such.toml")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read no/such.toml: "), "{missing}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "a = 1\nb = 2\n").unwrap();
    let faulty = Config::load(&file).unwrap_err().to_string();
    let lines: Vec<_> = faulty.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].starts_with(&format!("{}:2:1: unknown key `b`", file.display())), "{faulty}");
}

#[test]
fn agents_that_have_to_prove_themselves_are_pinned_unless_told_otherwise() {
    let id = "ab".repeat(32);
    for (said, pinned) in [
        (String::new(), false),
        ("pin = true".to_owned(), true),
        ("verify = 'require'".to_owned(), true),
        ("verify = 'off'".to_owned(), false),
        (format!("agent_id = '{id}'"), true),
        (format!("agent_id = '{id}'\npin = false"), false),
    ] {
        let config = Config::parse(&format!("[agents.a]\nurl = 'https://a.example'\n{said}\n")).unwrap();
        let AgentSource::Remote(remote) = &config.agents[0].1.source else { panic!("it is elsewhere") };
        assert_eq!(remote.pin, pinned, "{said}");
    }
    assert!(faults("[agents.a]\nrun = 'echo'\npin = true")[0].contains("`pin`"));
}

#[test]
fn callers_issuers_keys_and_tls_are_read_as_they_are_written() {
    let hash = format!("sha256:{}", "ab".repeat(32));
    let text = format!(
        "[callers.planner]\nkey_hash = ['{hash}']\ntenant = 'acme'\nagent = 'echo'\nmay_call = ['echo', 'echo/audit']\n\
         certificate = 'dns:planner.acme.example'\nagent_id = '{}'\ntoken = {{ issuer = 'acme', subject = 'planner' }}\n\
         [callers.ci]\nkey_env = 'CI_KEY'\n\
         [issuers.acme]\nissuer = 'https://login.acme.example'\naudience = 'me'\naccept = 'any'\n\
         [keys.push]\nenv = 'PUSH_KEY'\n[tls]\ncert_file = 'a.pem'\nkey_file = 'a.key'\nclient_ca_file = 'ca.pem'\nclient_certificates = 'required'\n\
         [outbound]\nallow_nets = ['10.0.0.0/8']\n[identity]\nallow = ['{}']\n",
        "cd".repeat(32),
        "ef".repeat(32)
    );
    let config = Config::parse(&text).unwrap();
    let planner = &config.callers[0].record;
    assert_eq!((planner.name.as_str(), planner.tenant.as_str(), planner.agent.as_deref()), ("planner", "acme", Some("echo")));
    assert_eq!((planner.keys.len(), planner.certificates.len(), planner.agent_ids.len(), planner.tokens.len()), (1, 1, 1, 1));
    assert_eq!(config.callers[1].key_env.as_deref(), Some("CI_KEY"));
    assert_eq!(config.issuers[0].audiences, ["me"]);
    assert_eq!(config.keys.push, Some(KeySource::Env("PUSH_KEY".to_owned())));
    assert_eq!(config.outbound.allow_nets.len(), 1);
    assert_eq!(config.identity.allow.as_ref().map(Vec::len), Some(1));

    let with_key = config.callers[1].with_key(|name| (name == "CI_KEY").then(|| "a-key-long-enough-to-be-one".to_owned()));
    assert_eq!(with_key.unwrap().keys.len(), 1);
    let missing = config.callers[1].with_key(|_| None).unwrap_err();
    assert!(missing.contains("callers.ci") && missing.contains("CI_KEY"), "{missing}");
    let short = config.callers[1].with_key(|_| Some("short".to_owned())).unwrap_err();
    assert!(short.contains("CI_KEY") && !short.contains("short,") && short.contains("16"), "{short}");
}

#[test]
fn callers_that_could_never_call_are_faults_where_they_stand() {
    for (text, word) in [
        ("[callers.a]\ntenant = 't'", "needs a credential"),
        ("[callers.a]\nkey_hash = 'md5:00'", "sha256:"),
        ("[callers.a]\nkey_env = 'K'\nmay_call = ['/x']", "AGENT or AGENT/SKILL"),
        ("[callers.a]\nagent_id = 'xyz'", "64 lower-case hex digits"),
        ("[callers.A]\nkey_env = 'K'", "a-z"),
        ("[callers.a]\nkey_emv = 'K'", "did you mean `key_env`"),
        ("[issuers.a]\naudience = 'x'", "needs `issuer`"),
        ("[issuers.a]\nissuer = 'https://i'", "audiences: must name this node"),
        ("[issuers.a]\nissuer = 'https://i'\naudience = 'x'\nalgorithms = ['HS256']", "unknown value `HS256`"),
        ("[tls]\ncert_file = 'a.pem'", "needs cert_file and key_file"),
        ("[keys.push]\nfile = 'a'\nenv = 'B'", "not from both"),
        ("[keys.push]\n", "needs `file` or `env`"),
        ("[identity]\nallow = ['nobody']", "64 lower-case hex digits"),
        ("[outbound]\nallow_nets = ['10.0.0.0/33']", "outbound.allow_nets"),
    ] {
        let found = faults(text);
        assert!(found.iter().any(|fault| fault.contains(word)), "{text}\n{found:#?}");
    }
    let hash = format!("sha256:{}", "ab".repeat(32));
    let twice = faults(&format!("[callers.a]\nkey_hash = '{hash}'\n[callers.b]\nkey_hash = '{hash}'"));
    assert!(twice.len() == 1 && twice[0].contains("twice"), "{twice:#?}");
}

#[test]
fn settings_that_would_do_nothing_or_leave_nobody_anything_are_faults_where_they_stand() {
    for (text, word) in [
        ("[tls]\ncert_file = 'a'\nkey_file = 'b'\nclient_certificates = 'required'", "needs tls.client_ca_file"),
        (
            "public_url = 'https://n.example'\n[agents.a]\nrun = 'echo'\nhosts = ['n.example']",
            "the host n.example is the node's own",
        ),
        ("[artifacts]\noffload = true", "artifacts.offload: needs memory.tier"),
        ("[limits]\nconnections = 0", "limits.connections: must be more than 0"),
        ("[limits]\nconnections_per_address = 0", "limits.connections_per_address: must be more than 0"),
        ("[memory]\ntier = 'ftp://x'", "memory.tier: must be a folder, or a file://, s3:// or gs:// URL"),
    ] {
        let found = faults(text);
        assert!(found.len() == 1 && found[0].contains(word), "{text}\n{found:#?}");
    }
}
