//! Pages of the database are damaged at random: a node answers right or not at all, says so at /readyz, and never panics or hangs.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::readiness;
use crate::support::counts::full_counts;
use crate::support::line::{Beside, Line};
use crate::support::patience::BOUND;
use crate::support::server::{Home, Server, Setup};
use crate::tasks::crash::chance::Chance;

const UNAVAILABLE: i64 = -32044;
const PAGE: u64 = 4096;

/// No answer is refused for coming too often.
const CONFIG: &str = "[limits]\ncalls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\n";

fn setup(home: &Home) -> Setup {
    Setup::in_home(home).args(["--agent", "conformance"]).config(CONFIG)
}

fn store_check(home: &Home) -> Output {
    home.command().args(["store", "check"]).output().expect("the command can be run")
}

/// What a caller is answered about each task, and about all of them, while everything is well.
struct Truth {
    home: Home,
    tasks: BTreeMap<String, Value>,
    listed: Vec<Value>,
}

impl Truth {
    /// Tasks of many sizes: rows that share a page, and such as need several.
    async fn make() -> Self {
        let home = Home::new();
        let server = setup(&home).start();
        let line = line(&server);
        for number in 0..48 {
            let text = match number % 4 {
                0 => format!("stream {} 0", number + 1),
                1 => format!("complete {}", "long ".repeat(400 * number)),
                2 => "stream 20 0".to_owned(),
                _ => format!("complete {number}"),
            };
            line.send(&text).await;
        }
        let listed = list(&line).await.expect("all is well");
        let mut tasks = BTreeMap::new();
        for task in &listed {
            let id = task["id"].as_str().expect("an id").to_owned();
            let whole = asked(&line, "GetTask", json!({ "id": id })).await["result"].take();
            assert!(whole.is_object());
            tasks.insert(id, whole);
        }
        assert_eq!(tasks.len(), 48);
        let (status, _) = server.terminate();
        assert!(status.success());
        let sound = store_check(&home);
        assert!(sound.status.success(), "{}", String::from_utf8_lossy(&sound.stderr));
        Self { home, tasks, listed }
    }

    fn copy(&self) -> Home {
        let home = Home::new();
        std::fs::create_dir_all(home.data()).expect("the home takes folders");
        for entry in std::fs::read_dir(self.home.data()).expect("a folder") {
            let entry = entry.expect("an entry");
            std::fs::copy(entry.path(), home.data().join(entry.file_name())).expect("a file can be copied");
        }
        home
    }

    /// Whether everything was answered. What was answered is right, and the rest unavailable.
    async fn holds(&self, line: &Line, what: &str) -> bool {
        let mut whole = true;
        for (id, task) in &self.tasks {
            let answer = asked(line, "GetTask", json!({ "id": id })).await;
            whole &= judge(&answer, what, |result| result == task);
        }
        match list(line).await {
            Ok(mut listed) => {
                // Without those that were made since.
                listed.retain(|task| task["id"].as_str().is_some_and(|id| self.tasks.contains_key(id)));
                assert!(listed == self.listed, "{what}: a wrong list");
            }
            Err(error) => whole &= judge(&json!({ "error": error }), what, |_| false),
        }
        let message = json!({ "messageId": "new", "role": "ROLE_USER", "parts": [{ "text": "stream 3 0" }] });
        let sent = asked(line, "SendMessage", json!({ "message": message })).await;
        let completed = |result: &Value| result["task"]["status"]["state"] == "TASK_STATE_COMPLETED";
        judge(&sent, what, completed) && whole
    }
}

fn judge(answer: &Value, what: &str, right: impl FnOnce(&Value) -> bool) -> bool {
    if answer["result"].is_object() {
        assert!(right(&answer["result"]), "{what}: a wrong answer: {answer}");
        return true;
    }
    assert_eq!(answer["error"]["code"], UNAVAILABLE, "{what}: {answer}");
    false
}

async fn asked(line: &Line, method: &str, params: Value) -> Value {
    let answer = tokio::time::timeout(BOUND, line.call(method, &params, Beside::default())).await;
    answer.expect("an answer in time").expect("the server is there")
}

/// Nobody has a token here, and nobody needs one.
fn line(server: &Server) -> Line {
    Line::to(server.url(), "")
}

/// All pages of the list, or the error one of them was answered with.
async fn list(line: &Line) -> Result<Vec<Value>, Value> {
    let (mut listed, mut token) = (Vec::new(), String::new());
    loop {
        let mut page = asked(line, "ListTasks", json!({ "pageSize": 20, "pageToken": token, "includeArtifacts": true })).await;
        if page["error"].is_object() {
            return Err(page["error"].take());
        }
        let result = &mut page["result"];
        listed.append(result["tasks"].as_array_mut().expect("tasks"));
        match result["nextPageToken"].as_str() {
            Some(next) if !next.is_empty() => token = next.to_owned(),
            _ => return Ok(listed),
        }
    }
}

/// Overwrites one page of the database, and says which and with what.
fn damage(database: &Path, chance: &mut Chance) -> String {
    let file = OpenOptions::new().write(true).open(database).expect("a database");
    let pages = file.metadata().expect("a file").len() / PAGE;
    let page = chance.within(0..=pages - 1);
    let (name, bytes): (_, Vec<u8>) = match chance.within(0..=2) {
        0 => ("zeroes", vec![0; PAGE as usize]),
        1 => ("ones", vec![0xff; PAGE as usize]),
        _ => ("noise", (0..PAGE).map(|_| chance.within(0..=255) as u8).collect()),
    };
    file.write_all_at(&bytes, page * PAGE).expect("the page is written");
    format!("page {} of {pages} overwritten with {name}", page + 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_page_is_damaged_answers_are_right_or_unavailable_and_readiness_says_so() {
    let mut chance = Chance::new("damaged pages");
    let truth = Truth::make().await;
    let (mut right, mut unavailable, mut stopped) = (0, 0, 0);
    for run in 0..full_counts(12, 100) {
        let home = truth.copy();
        let database = home.data().join("chancery.db");
        let while_it_runs = run % 2 == 1;
        let started = if while_it_runs { Some(setup(&home).start()) } else { None };
        let what = format!("run {run}: {}", damage(&database, &mut chance));
        let server = match started.map_or_else(|| setup(&home).try_start(), Ok) {
            Ok(server) => server,
            Err((status, log)) => {
                stopped += 1;
                assert!(!status.success() && log.contains("chancery store check"), "{what}: {status} {log}");
                assert_eq!(store_check(&home).status.code(), Some(1), "{what}");
                continue;
            }
        };
        let line = line(&server);
        let whole = truth.holds(&line, &what).await;
        let (status, body) = readiness(&server).await;
        assert!(whole || status == 503, "{what}: {status} {body}");
        let log = server.log();
        assert!(!log.contains("panicked"), "{what}: {log}");
        // An answer that is the same a second time, and an end in time.
        assert!(truth.holds(&line, &what).await <= whole, "{what}");
        server.terminate();
        if whole {
            right += 1;
        } else {
            unavailable += 1;
            let named = store_check(&home);
            let (said, advice) = (String::from_utf8_lossy(&named.stdout), "What to do:");
            assert_eq!(named.status.code(), Some(1), "{what}: {said}");
            assert!(said.contains("damaged: ") && said.contains(advice), "{what}: {said}");
        }
    }
    println!("{right} runs answered right, {unavailable} unavailable, {stopped} did not start");
    assert!(unavailable + stopped > 0, "some page matters");
}
