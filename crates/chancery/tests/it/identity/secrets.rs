//! A whole run with every kind of secret there is, at the most talkative log there is: no secret is found anywhere but in the
//! place that is meant to keep it.

mod search;
mod webhooks;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chancery_identity::SealKey;
use chancery_identity::credentials::KeyHash;
use chancery_protocol::Request;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use self::search::{Secret, readable};
use crate::identity::credentials::{TestAgent, TestIssuer, assert_accepted, assert_turned_away, hello, operate};
use crate::support::certificates::{Signed, Signer};
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, RawAnswer, RawCall, RawClient};

const HASHED_KEY: &str = "known-to-the-config-by-its-hash-only";
const ENV_KEY: &str = "comes-to-the-node-by-its-environment";
const MISTYPED_KEY: &str = "known-to-the-config-by-its-hash-onlz";
const HASHED_NAME: &str = "hashed";

fn random() -> Vec<u8> {
    SealKey::random_bytes().expect("random bytes").to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn pkcs8(pem: &str) -> Vec<u8> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).expect("a key in PEM").secret_der().to_vec()
}

/// Everything a node is told that nobody else should hear.
struct Told {
    agent_key: String,
    push_seed: Vec<u8>,
    hop_seed: Vec<u8>,
    caller_seed: Vec<u8>,
    node: Signed,
    caller: Signed,
    token: String,
    expired_token: String,
}

impl Told {
    fn secrets(&self) -> Vec<Secret> {
        let signature = |token: &str| token.rsplit('.').next().expect("a signature").to_owned();
        vec![
            Secret::new("key by hash", HASHED_KEY.as_bytes()),
            Secret::new("key by environment", ENV_KEY.as_bytes()),
            Secret::new("mistyped key", MISTYPED_KEY.as_bytes()),
            Secret::new("agent key, given by file", &pkcs8(&self.agent_key)),
            Secret::new("push key, given by file", &self.push_seed),
            Secret::new("hop token key, given by environment", &self.hop_seed),
            Secret::new("a caller's signing key", &self.caller_seed),
            Secret::new("TLS key", &pkcs8(&self.node.key)),
            Secret::new("a caller's TLS key", &pkcs8(&self.caller.key)),
            Secret::new("token", self.token.as_bytes()),
            Secret::new("token's signature", signature(&self.token).as_bytes()),
            Secret::new("expired token", self.expired_token.as_bytes()),
            Secret::new("expired token's signature", signature(&self.expired_token).as_bytes()),
        ]
    }
}

/// What the node made for itself, each with the one file it may be in.
fn made_secrets(data: &Path) -> Vec<(Secret, &'static str)> {
    let read = |name: &str| std::fs::read(data.join(name)).expect("a file of the data folder");
    let token = String::from_utf8(read("admin.token")).expect("text");
    let mut made = vec![
        (Secret::new("admin token", token.trim().as_bytes()), "admin.token"),
        (Secret::new("seal key", &read("seal.key")), "seal.key"),
    ];
    let keys: Value = serde_json::from_slice(&read("keys.json")).expect("JSON");
    for key in keys["keys"].as_array().expect("a list") {
        let der = STANDARD.decode(key["pkcs8"].as_str().expect("a private key")).expect("base64");
        // The private bytes by themselves, too: they stand behind a head of fixed length.
        let start = if key["algorithm"] == "EdDSA" { 16 } else { 36 };
        made.push((Secret::new(format!("{} of {}", key["algorithm"], key["use"]), &der[start..start + 32]), "keys.json"));
        made.push((Secret::new(format!("PKCS#8 {} of {}", key["algorithm"], key["use"]), &der), "keys.json"));
    }
    assert!(made.len() >= 2 + 2 * 3, "a node makes keys for its cards, at least: {keys}");
    made
}

/// All that was answered, and the two answers that show a new key.
#[derive(Default)]
struct Heard {
    answers: Vec<String>,
    shown: Vec<String>,
}

impl Heard {
    fn take(&mut self, answer: &RawAnswer) {
        self.answers.push(format!("{answer:?}"));
    }
}

/// Calls with good and bad credentials of each kind, over every door.
async fn call_with_everything(heard: &mut Heard, told: &Told, server: &Server, root: &str) {
    let client = RawClient::over_tls(server.url(), root, None);
    let shows_certificate = RawClient::over_tls(server.url(), root, Some(&told.caller.both()));
    let agent = TestAgent::new(told.caller_seed[..].try_into().expect("32 bytes"));
    for combination in Combination::ALL {
        let bearer = |secret: &str| hello(combination).with("authorization", &format!("Bearer {secret}"));
        let key = |secret: &str| hello(combination).with("x-api-key", secret);
        let signed = agent.sign(hello(combination), server.url());
        let accepted = [key(HASHED_KEY), bearer(ENV_KEY), bearer(&told.token), signed.clone()];
        for call in &accepted {
            let answer = client.ask(call).await;
            assert_accepted(&answer, &combination.name());
            heard.take(&answer);
        }
        let answer = shows_certificate.ask(&hello(combination)).await;
        assert_accepted(&answer, "a certificate");
        heard.take(&answer);
        let refused = [
            key(MISTYPED_KEY),
            bearer(MISTYPED_KEY),
            bearer(&told.expired_token),
            key(&told.token),
            key(HASHED_KEY).with("authorization", &format!("Bearer {ENV_KEY}")),
            key(HASHED_KEY).with("authorization", &format!("Basic {ENV_KEY}")),
            signed,
        ];
        for call in &refused {
            let answer = client.ask(call).await;
            assert_turned_away(combination, &answer, &combination.name());
            heard.take(&answer);
        }
        let two = shows_certificate.ask(&key(HASHED_KEY)).await;
        assert_turned_away(combination, &two, "two callers");
        heard.take(&two);
        // Calls that are let in and fail later, with the credentials beside all else there is to complain about.
        let mut nonsense = key(HASHED_KEY).with("last-event-id", "none");
        heard.take(&client.ask(&nonsense).await);
        nonsense.body = b"{ no JSON".to_vec();
        heard.take(&client.ask(&nonsense).await);
        if let Some(card) = RawCall::of(combination, &Request::GetExtendedCard(Default::default())) {
            heard.take(&client.ask(&card.with("x-api-key", HASHED_KEY)).await);
        }
    }
}

/// The operator's side: callers added, rotated, revoked and listed, keys rotated, and a token that is not quite right.
async fn operate_everything(heard: &mut Heard, home: &Home, server: &Server, root: &str) {
    let roots = [reqwest::Certificate::from_pem(root.as_bytes()).expect("a certificate")];
    let http = reqwest::Client::builder().no_proxy().tls_certs_only(roots).build().expect("a client");
    for (path, body) in [("callers", json!({ "name": "added" })), ("callers/added/rotate", json!({ "overlap_seconds": 60 }))] {
        let answer = operate(&http, home, server, path, &body).await;
        let key = answer["key"].as_str().expect("a key").to_owned();
        let client = RawClient::over_tls(server.url(), root, None);
        let answered = client.ask(&hello(Combination::ALL[0]).with("x-api-key", &key)).await;
        assert_accepted(&answered, "an added key");
        heard.take(&answered);
        heard.shown.push(key);
    }
    let rotated = operate(&http, home, server, "keys/rotate", &json!({ "use": "cards", "owner": "second" })).await;
    heard.answers.push(rotated.to_string());
    let token = std::fs::read_to_string(home.data().join("admin.token")).expect("a token");
    let paths = ["callers", "keys", "node", "tasks", "nothing", "callers/added/rotate"];
    for (path, token) in paths.iter().flat_map(|path| [(path, token.trim()), (path, &token[1..20])]) {
        let request = http.get(format!("{}/admin/v1/{path}", server.url())).bearer_auth(token);
        heard.take(&RawAnswer::read(request.send().await.expect("an answer")).await);
    }
    let taken = http.post(format!("{}/admin/v1/callers", server.url())).bearer_auth(token.trim());
    heard.take(&RawAnswer::read(taken.json(&json!({ "name": HASHED_NAME })).send().await.expect("an answer")).await);
    let revoked = operate(&http, home, server, "callers/added/revoke", &json!({})).await;
    heard.answers.push(revoked.to_string());
    for page in ["agent-card.json", "agent.json", "jwks.json"] {
        let request = http.get(format!("{}/.well-known/{page}", server.url()));
        heard.take(&RawAnswer::read(request.send().await.expect("an answer")).await);
    }
}

/// Every file below a folder, by its name. A running node puts files in the place of others: if one goes while we look, we look again.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let look = || -> std::io::Result<Vec<(String, Vec<u8>)>> {
        std::fs::read_dir(folder)?
            .map(|entry| {
                entry.and_then(|entry| Ok((entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?)))
            })
            .collect()
    };
    for _ in 0..100 {
        match look() {
            Err(gone) if gone.kind() == std::io::ErrorKind::NotFound => {}
            looked => return looked.expect("files that can be read"),
        }
    }
    panic!("the files of {} do not come to rest", folder.display());
}

#[tokio::test]
async fn no_secret_is_written_down_or_told_where_it_does_not_belong() {
    let (issuer, home) = (TestIssuer::start().await, Home::new());
    let (nodes, callers) = (Signer::new("nodes"), Signer::new("callers"));
    let mut late = TestIssuer::claims("planner");
    late["exp"] = json!(crate::identity::credentials::seconds_from_now(-1000));
    let told = Told {
        agent_key: rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key").serialize_pem(),
        push_seed: random(),
        hop_seed: random(),
        caller_seed: random(),
        node: nodes.node(),
        caller: callers.caller("spiffe://acme/certified"),
        token: issuer.token(&TestIssuer::claims("planner")),
        expired_token: issuer.token(&late),
    };
    let put = |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("the home takes files");
    put("agent.pem", &told.agent_key);
    put("push.key", &hex(&told.push_seed));
    put("node.pem", &told.node.certificate);
    put("node.key", &told.node.key);
    put("callers.pem", &callers.pem());
    let agent = TestAgent::new(told.caller_seed[..].try_into().expect("32 bytes"));
    let skills = "extended_skills = [{ id = 'more', name = 'More', description = 'Does more.', tags = ['more'] }]";
    let config = [
        issuer.config("[callers.planner]\ntoken = { issuer = 'acme', subject = 'planner' }"),
        format!("[agents.echo]\nrun = 'echo'\nkey_file = 'agent.pem'\n{skills}\n[agents.second]\nrun = 'conformance'\n"),
        format!("[callers.{HASHED_NAME}]\nkey_hash = '{}'\n[callers.by-env]\nkey_env = 'CALLER_KEY'\n", KeyHash::of(HASHED_KEY)),
        format!("[callers.signs]\nagent_id = '{}'\n[callers.certified]\ncertificate = 'spiffe://acme/certified'\n", agent.id),
        "[keys.push]\nfile = 'push.key'\n[keys.hop_tokens]\nenv = 'HOP_KEY'\n".to_owned(),
        "[tls]\ncert_file = 'node.pem'\nkey_file = 'node.key'\nclient_ca_file = 'callers.pem'\n".to_owned(),
    ];
    let setup = Setup::in_home(&home).env("RUST_LOG", "trace").env("CALLER_KEY", ENV_KEY);
    let server = setup.env("HOP_KEY", &STANDARD.encode(&told.hop_seed)).config(&config.concat()).start();

    let mut heard = Heard::default();
    call_with_everything(&mut heard, &told, &server, &nodes.pem()).await;
    operate_everything(&mut heard, &home, &server, &nodes.pem()).await;
    server.signal("HUP");
    let said_first = format!("{}\n{}", server.url(), server.curl());
    // The write-ahead log is only there while it runs.
    let mut left = files(&home.data());
    assert!(left.iter().any(|(name, bytes)| name.ends_with("-wal") && !bytes.is_empty()), "the log before the database");
    let mut places = made_secrets(&home.data());
    let (status, rest) = server.terminate();
    assert!(status.success());
    left.extend(files(&home.data()));
    left.push(("stdout".to_owned(), format!("{said_first}\n{rest}").into_bytes()));
    left.push(("stderr".to_owned(), std::fs::read(home.path().join("log")).expect("a log")));
    left.push(("answers".to_owned(), heard.answers.join("\n").into_bytes()));

    places.extend(told.secrets().into_iter().map(|secret| (secret, "nowhere")));
    places.extend(heard.shown.iter().map(|key| (Secret::new("an added key", key.as_bytes()), "nowhere")));
    let left: Vec<(String, String)> = left.into_iter().map(|(name, bytes)| (name, readable(&bytes))).collect();
    let mut leaks = Vec::new();
    for (secret, place) in &places {
        let found: Vec<&str> = left.iter().filter(|(_, text)| secret.is_in(text)).map(|(name, _)| name.as_str()).collect();
        assert_eq!(found.contains(place), *place != "nowhere", "{} is kept in {place}: {found:?}", secret.what);
        leaks.extend(found.iter().filter(|name| *name != place).map(|name| format!("{} in {name}", secret.what)));
    }
    let looked_at: usize = left.iter().map(|(_, text)| text.chars().count()).sum();
    println!("{} secrets, {} places, {looked_at} bytes, {} found", places.len(), left.len(), leaks.len());
    let log = &left.iter().find(|(name, _)| name == "stderr").expect("it is there").1;
    assert!(log.contains("TRACE"), "the log is as talkative as it can be");
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[test]
fn a_key_that_cannot_be_used_is_complained_about_without_being_shown() {
    let home = Home::new();
    let secret = hex(&random());
    let put = |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("the home takes files");
    put("bad.key", &format!("{secret}zz"));
    put("bad.pem", &format!("-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----\n"));
    for config in [
        "[keys.push]\nfile = 'bad.key'\n",
        "[keys.push]\nfile = 'bad.pem'\n",
        "[keys.push]\nenv = 'BAD_KEY'\n",
        "[agents.echo]\nrun = 'echo'\nkey_file = 'bad.key'\n",
        "[callers.a]\nkey_env = 'BAD_CALLER_KEY'\n",
        &format!("[callers.a]\nkey_hash = '{secret}'\n"),
        &format!("[callers.a]\nkey = '{secret}'\n"),
    ] {
        put("bad.toml", config);
        let mut command = home.command();
        command.env("RUST_LOG", "trace").env("BAD_KEY", format!("{secret}zz")).env("BAD_CALLER_KEY", format!("{secret} zz"));
        let refused =
            command.args(["serve", "--listen", "127.0.0.1:0", "--memory", "--config", "bad.toml"]).output().expect("it runs");
        let said = [refused.stdout, refused.stderr].concat();
        assert!(!refused.status.success(), "{config}");
        let shown = Secret::new("the key", secret.as_bytes()).is_in(&readable(&said));
        assert!(!shown, "{config}: {}", String::from_utf8_lossy(&said));
    }
}
