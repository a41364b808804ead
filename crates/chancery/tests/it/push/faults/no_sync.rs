//! F10: the disk under a running server takes writes and cannot keep them. Whoever sends is told so, nothing that was answered is lost,
//! and what was refused never was.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::full_disk::{LINES, begin_ten, send};
use super::journal::{Journal, all_lanes};
use crate::push::LOCAL;
use crate::push::receiver::{Act, Receiver};
use crate::support::counts::full_counts;
use crate::support::line::is_terminal;
use crate::support::patience::soon;
use crate::support::server::{Home, Setup};

/// What is put before the C library, built with the compiler that built SQLite.
fn shim(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("no_sync.c"), folder.join("no_sync.so"));
    std::fs::write(&source, include_str!("no_sync.c")).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl").status();
    assert!(built.expect("there is a C compiler").success());
    library
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_keeps_nothing_is_told_to_callers_and_nothing_that_was_answered_is_lost() {
    let receiver = Receiver::new(|_| Act::Slow(200, Duration::from_millis(50))).await;
    let (home, folder) = (Home::new(), tempfile::tempdir().unwrap());
    let (library, fault) = (shim(folder.path()), folder.path().join("fault"));
    let setup = || Setup::in_home(&home).args(["--agent", "conformance"]).config(&format!("{LOCAL}{LINES}"));
    let faulty = [("LD_PRELOAD", &library), ("FAULTY_DISK", &fault)];
    let set = |setup: Setup, (name, value): (&str, &PathBuf)| setup.env(name, value.to_str().expect("a plain path"));
    let server = faulty.into_iter().fold(setup(), set).start();
    let mut tasks = Vec::new();
    for round in 0..full_counts(2, 30) {
        tasks.extend(begin_ten(&server, &receiver, round).await);
        std::fs::write(&fault, "").unwrap();
        for number in 0..5 {
            let refused = send(&server, &receiver, &format!("refused-{round}-{number}"), "complete").await;
            assert!(refused["error"].is_object(), "nothing can be kept, and yet: {refused}");
        }
        std::fs::remove_file(&fault).unwrap();
        let well = async || {
            let sent = send(&server, &receiver, &format!("after-{round}"), "complete").await;
            Some(sent["result"]["task"]["id"].clone()).filter(|id| id.is_string())
        };
        tasks.push(soon("work goes on", well).await);
    }
    // Answered is answered, also if the server is gone the next moment.
    server.kill();
    let server = setup().start();
    for id in &tasks {
        let ended = async || {
            let state = server.call("GetTask", json!({ "id": id })).await["result"]["status"]["state"].take();
            state.as_str().filter(|state| is_terminal(state)).map(drop)
        };
        soon("a task that was answered is there, and ends", ended).await;
    }
    let come_to_rest = async || all_lanes(&server).await.iter().all(|lane| lane["pending"] == 0).then_some(());
    soon("everything is delivered", come_to_rest).await;
    let got = receiver.got();
    let mut journal = Journal::read(&got, &[], |_| true);
    let lanes = journal.hold(&server).await;
    println!("{lanes} registrations, {} requests", got.len());
    assert!(journal.complaints.is_empty(), "{:#?}", journal.complaints);
    assert!(!got.iter().any(|got| got.path.contains("refused")), "what was refused never was");
}
