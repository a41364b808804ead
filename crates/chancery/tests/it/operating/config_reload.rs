//! A config file that changes under a running node: all of it holds, or none, and nobody who calls notices.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::operating::cli::run;
use crate::support::bad_configs::BAD;
use crate::support::patience::{eventually, soon};
use crate::support::server::{Home, Server, Setup};

const KEY: &str = "a-key-that-is-long-enough-for-this";
const OTHER_KEY: &str = "another-key-that-is-long-enough";

/// A node with a file, in a home of its own.
struct Watched {
    home: Home,
    server: Server,
    client: reqwest::Client,
}

impl Watched {
    fn start(config: &str) -> Self {
        let home = Home::new();
        let setup = Setup::in_home(&home).config(config).env("LOAD_KEY", KEY).env("OTHER_KEY", OTHER_KEY);
        let server = setup.start();
        eventually("the file is watched", || server.log().contains("watching the config file").then_some(()));
        Self { server, home, client: reqwest::Client::new() }
    }

    fn file(&self) -> PathBuf {
        self.home.path().join("chancery.toml")
    }

    /// As editors save: a new file, put in the place of the old one.
    fn put(&self, text: &str) {
        let beside = self.home.path().join(".chancery.toml.swp");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(&beside, self.file()).unwrap();
    }

    async fn admin(&self, post: bool, path: &str) -> (StatusCode, Value) {
        let token = std::fs::read_to_string(self.home.data().join("admin.token")).unwrap();
        let url = format!("{}/admin/v1/{path}", self.server.url());
        let request = if post { self.client.post(url) } else { self.client.get(url) };
        let answer = request.bearer_auth(token.trim()).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    async fn holds(&self) -> Value {
        self.admin(false, "config").await.1
    }

    async fn generation(&self) -> u64 {
        self.holds().await["generation"].as_u64().unwrap()
    }

    async fn until_generation(&self, generation: u64) {
        soon("the new config holds", async || (self.generation().await >= generation).then_some(())).await;
    }

    /// The faults of the file that is refused now, once there is one.
    async fn rejection(&self) -> Vec<String> {
        soon("the file is refused", async || {
            let rejected = self.holds().await["rejected"].take();
            let faults = rejected["faults"].as_array()?.iter().map(shown).collect::<Vec<_>>();
            (!faults.is_empty()).then_some(faults)
        })
        .await
    }

    async fn status(&self, path: &str, key: &str) -> StatusCode {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
        let url = format!("{}{path}", self.server.url());
        let request = self.client.post(url).header("A2A-Version", "1.0").header("X-API-Key", key).json(&body);
        request.send().await.unwrap().status()
    }
}

fn shown(fault: &Value) -> String {
    format!("{}:{}: {}", fault["line"], fault["column"], fault["message"].as_str().unwrap_or_default())
}

const ONE: &str = "[agents.echo]\nrun = 'echo'\n[callers.load]\nkey_env = 'LOAD_KEY'\n[limits]\ncalls_per_second_per_caller = 0\n\
                   calls_per_second_per_address = 0\n";

fn two() -> String {
    format!(
        "{ONE}json_depth = 63\npage_size = 99\n[callers.other]\nkey_env = 'OTHER_KEY'\nmay_call = ['more']\n\
         [agents.more]\nrun = 'conformance'\n[retention]\nmax_tasks = 77\n[routing]\ndefault_selector = 'round_robin'\n"
    )
}

/// Calls until it is told to stop. Answers how many calls were made and what went wrong.
async fn load(url: String, path: &str, stop: Arc<AtomicBool>, made: Arc<AtomicU64>) -> Vec<String> {
    let (client, mut wrong) = (reqwest::Client::new(), Vec::new());
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let text = format!("{path} {number}");
        let message = json!({ "messageId": text, "role": "ROLE_USER", "parts": [{ "text": text }] });
        let body = json!({ "jsonrpc": "2.0", "id": number, "method": "SendMessage", "params": { "message": message } });
        let request = client.post(format!("{url}{path}")).header("A2A-Version", "1.0").header("X-API-Key", KEY).json(&body);
        let answer: Result<Value, _> = match request.send().await {
            Ok(answer) => answer.json().await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) if answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED" => {}
            other => wrong.push(format!("{other:?}")),
        }
        match client.get(format!("{url}/.well-known/agent-card.json")).send().await {
            Ok(answer) if answer.status() == StatusCode::OK => {}
            other => wrong.push(format!("{other:?}")),
        }
        made.fetch_add(1, Ordering::Relaxed);
    }
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_changes_of_the_file_under_load_drop_no_call() {
    let node = Watched::start(ONE);
    let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let workers: Vec<_> = ["/", "/agents/echo", "/", "/agents/echo"]
        .into_iter()
        .map(|path| tokio::spawn(load(node.server.url().to_owned(), path, Arc::clone(&stop), Arc::clone(&made))))
        .collect();
    let (good, mut generation, mut refused) = ([two(), ONE.to_owned()], 1, 0);
    for change in 0..50 {
        let before = made.load(Ordering::Relaxed);
        if change % 5 == 4 {
            node.put(BAD[change % BAD.len()].text);
            assert!(!node.rejection().await.is_empty());
            refused += 1;
        } else {
            node.put(&good[usize::try_from(generation + 1).unwrap() % 2]);
            generation += 1;
            node.until_generation(generation).await;
        }
        soon("calls are made with it", async || (made.load(Ordering::Relaxed) > before + 4).then_some(())).await;
    }
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        let wrong = worker.await.unwrap();
        assert!(wrong.is_empty(), "{} of {} failed: {:#?}", wrong.len(), made.load(Ordering::Relaxed), &wrong[..1]);
    }
    assert!(made.load(Ordering::Relaxed) >= 250);
    assert_eq!((node.generation().await, refused), (generation, 10), "each good file was taken once, no bad one");
    assert_eq!(node.server.terminate().0.code(), Some(0));
}

#[tokio::test]
async fn what_the_file_says_holds_at_once_and_what_it_no_longer_says_does_not() {
    let node = Watched::start(ONE);
    assert_eq!(node.status("/agents/more", KEY).await, StatusCode::NOT_FOUND);
    assert_eq!(node.status("/", OTHER_KEY).await, StatusCode::UNAUTHORIZED);
    let first = node.holds().await;
    assert_eq!((&first["generation"], &first["rejected"]), (&json!(1), &Value::Null), "{first}");

    std::fs::write(node.file(), two()).unwrap();
    node.until_generation(2).await;
    assert_eq!(node.status("/agents/more", OTHER_KEY).await, StatusCode::OK);
    assert_eq!(node.status("/", KEY).await, StatusCode::OK);
    let second = node.holds().await;
    assert_ne!(first["digest"], second["digest"]);
    assert!(second["digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:") && digest.len() == 71), "{second}");
    assert!(node.server.log().contains("\"generation\":2"), "{}", node.server.log());

    node.put(ONE);
    node.until_generation(3).await;
    assert_eq!(node.status("/agents/more", KEY).await, StatusCode::NOT_FOUND);
    assert_eq!(node.status("/", OTHER_KEY).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_file_with_faults_changes_nothing_and_each_is_logged_and_shown() {
    let node = Watched::start(&two());
    let bad =
        format!("{}json_dept = 1\n[agents.third]\nrun = 'echo'\n[callers.load2]\nkey_env = 'NOT_SET'\nagent = 'nobody'\n", two());
    node.put(&bad);
    let faults = node.rejection().await;
    assert_eq!(faults.len(), 2, "{faults:#?}");
    assert!(faults[0].contains("unknown key `routing.json_dept`"), "{faults:#?}");
    assert!(faults[1].contains("callers.load2.agent: there is no agent nobody here"), "{faults:#?}");
    let log = node.server.log();
    assert!(log.contains("WARN") && log.contains("json_dept") && log.contains("the old config stays in effect"), "{log}");
    // Who asks is told the same, and what only shows once the rest is understood.
    let (status, answer) = node.admin(true, "reload").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(answer["error"]["details"].as_array().unwrap().iter().map(shown).collect::<Vec<_>>(), faults);
    node.put(&bad.replace("json_dept = 1\n", "").replace("agent = 'nobody'\n", ""));
    let ran = run(&node.home, ["reload"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("chancery.toml:") && ran.stderr.contains("the environment variable NOT_SET is not set"),
        "{}",
        ran.stderr
    );

    assert_eq!(node.generation().await, 1);
    assert_eq!(node.status("/agents/third", KEY).await, StatusCode::NOT_FOUND);
    assert_eq!(node.status("/agents/more", OTHER_KEY).await, StatusCode::OK);
    node.put(&two());
    let ran = run(&node.home, ["reload"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "generation 1 is unchanged: the file has no changes\n"));
    assert_eq!(node.holds().await["rejected"], Value::Null, "what was wrong has been put right");
}

#[tokio::test]
async fn half_a_file_is_not_taken_for_a_whole_one() {
    let node = Watched::start(ONE);
    let text = two();
    let (half, rest) = text.split_at(text.find("[callers.other]").unwrap());
    assert!(chancery::Config::parse(half).is_ok(), "it would be taken if it were whole");
    let mut file = File::create(node.file()).unwrap();
    file.write_all(half.as_bytes()).and_then(|()| file.sync_all()).unwrap();
    for _ in 0..20 {
        assert_eq!(node.generation().await, 1);
    }
    file.write_all(rest.as_bytes()).unwrap();
    drop(file);
    node.until_generation(2).await;
    assert_eq!(node.generation().await, 2, "the half was no generation of its own");
    assert_eq!(node.status("/agents/more", OTHER_KEY).await, StatusCode::OK);
}

#[tokio::test]
async fn what_needs_a_restart_and_what_would_let_everybody_in_is_refused_whole() {
    let node = Watched::start(&format!("dedupe = 'off'\n{ONE}"));
    node.put(&format!("dedupe = 'message_id'\npublic_url = 'http://h:1'\n{ONE}[store]\nsynchronous = 'normal'\n"));
    let faults = node.rejection().await;
    assert_eq!(faults.len(), 2, "{faults:#?}");
    assert!(faults[0].starts_with("2:14: public_url: cannot change while the node runs; restart"), "{faults:#?}");
    assert!(faults[1].contains(": store.synchronous: "), "{faults:#?}");

    node.put("[agents.echo]\nrun = 'echo'\n");
    let ran = run(&node.home, ["reload"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("the node would accept every client"), "{}", ran.stderr);
    assert_eq!((node.generation().await, node.status("/", "chk_nobody").await), (1, StatusCode::UNAUTHORIZED));
    // --listen outranks the file, so the file may say what it likes.
    node.put(&format!("listen = '127.0.0.1:1'\ndedupe = 'message_id'\n{ONE}"));
    node.until_generation(2).await;
}

#[tokio::test]
async fn a_hang_up_and_the_admin_api_reload_too_and_a_file_that_is_gone_changes_nothing() {
    let node = Watched::start(ONE);
    std::fs::remove_file(node.file()).unwrap();
    assert!(node.rejection().await[0].contains("cannot be read"));
    assert_eq!(node.status("/", KEY).await, StatusCode::OK);
    std::fs::write(node.file(), two()).unwrap();
    node.server.signal("HUP");
    node.until_generation(2).await;
    node.put(ONE);
    let (status, answer) = node.admin(true, "reload").await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    eventually("the log says so", || node.server.log().contains("\"generation\":3").then_some(()));
    assert_eq!(node.generation().await, 3);
}

#[tokio::test]
async fn callers_in_the_file_close_an_open_node_at_once() {
    let node = Watched::start("[agents.echo]\nrun = 'echo'\n");
    assert_eq!(node.status("/", "").await, StatusCode::OK);
    node.put(ONE);
    node.until_generation(2).await;
    assert_eq!(node.status("/", "chk_nobody").await, StatusCode::UNAUTHORIZED);
    assert_eq!(node.status("/", KEY).await, StatusCode::OK);
    let card: Value =
        reqwest::get(format!("{}/.well-known/agent-card.json", node.server.url())).await.unwrap().json().await.unwrap();
    assert!(card["securitySchemes"].is_object(), "the card says what is asked for: {card}");
}

#[tokio::test]
async fn a_file_that_is_mounted_by_a_link_is_seen_to_change() {
    let home = Home::new();
    let mount = home.path().join("mount");
    let put = |version: &str, text: &str| {
        std::fs::create_dir_all(mount.join(version)).unwrap();
        std::fs::write(mount.join(version).join("node.toml"), text).unwrap();
        std::os::unix::fs::symlink(version, mount.join("..tmp")).unwrap();
        std::fs::rename(mount.join("..tmp"), mount.join("..data")).unwrap();
    };
    put("..1", "[limits]\njson_depth = 50\n");
    std::os::unix::fs::symlink("..data/node.toml", mount.join("node.toml")).unwrap();
    let server = Setup::in_home(&home).args([Path::new("--config"), &mount.join("node.toml")]).start();
    put("..2", "[limits]\njson_depth = 51\n");
    eventually("the new config holds", || server.log().contains("\"generation\":2").then_some(()));
}

#[tokio::test]
async fn a_node_without_a_file_has_nothing_to_reload() {
    let home = Home::new();
    let _server = Setup::in_home(&home).start();
    let ran = run(&home, ["reload"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("without a config file"), "{}", ran.stderr);
}

#[tokio::test]
async fn agents_elsewhere_come_and_go_with_the_file_and_those_that_stay_keep_what_is_known_of_them() {
    let (there, also_there) = (Setup::conformance().start(), Setup::conformance().start());
    let of = |more: &str| format!("[agents.far]\nurl = '{}'\n{more}[outbound]\nallow_http = true\n", there.url());
    let node = Watched::start(&of(""));
    assert_eq!(node.status("/", "").await, StatusCode::OK);
    let health = async || node.admin(false, "agents/far/health").await.1["replicas"][0]["results"].take();
    let known = health().await;
    assert_ne!(known, json!(0), "a call was seen");

    node.put(&of(&format!("[agents.further]\nurl = '{}'\n", also_there.url())));
    node.until_generation(2).await;
    assert_eq!(node.status("/agents/further", "").await, StatusCode::OK);
    assert_eq!(health().await, known, "it was not begun anew");

    node.put(&of("title = 'Far'\n"));
    node.until_generation(3).await;
    assert_eq!(node.status("/agents/further", "").await, StatusCode::NOT_FOUND);
    let card: Value =
        reqwest::get(format!("{}/.well-known/agent-card.json", node.server.url())).await.unwrap().json().await.unwrap();
    assert_eq!(card["name"], "Far");
}

#[tokio::test]
async fn twenty_bad_files_are_each_refused_with_every_fault_named_and_placed() {
    assert!(BAD.len() >= 20);
    let node = Watched::start(ONE);
    for bad in BAD {
        let file = node.home.path().join("bad.toml");
        std::fs::write(&file, bad.text).unwrap();
        let ran = run(&node.home, [Path::new("validate"), &file]);
        assert_eq!(ran.code, Some(2), "{}", bad.text);
        let said: Vec<_> = ran.stdout.lines().collect();
        assert_eq!(said.len(), bad.faults.len(), "{}\n{said:#?}", bad.text);
        for (said, expected) in said.iter().zip(bad.faults) {
            let place = format!("{}:", file.display());
            let fault = said.strip_prefix(&place).unwrap_or_else(|| panic!("{said} has no {place}"));
            assert!(fault.starts_with(expected), "{fault}\nwanted {expected}\n{}", bad.text);
        }
        assert!(bad.faults.len() >= 2, "several at once: {}", bad.text);

        node.put(bad.text);
        let (status, answer) = node.admin(true, "reload").await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{}", bad.text);
        let refused: Vec<_> = answer["error"]["details"].as_array().unwrap().iter().map(shown).collect();
        assert_eq!(refused.len(), bad.faults.len(), "{refused:#?}");
        for (fault, expected) in refused.iter().zip(bad.faults) {
            assert!(fault.starts_with(expected), "{fault}\nwanted {expected}");
        }
    }
    assert_eq!(node.generation().await, 1);
    assert_eq!(node.status("/", KEY).await, StatusCode::OK);
}
