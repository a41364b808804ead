//! Who signs the record: one key after the other, all of them the node's own.

use super::record::{SMALL, evidence, exported, serve};
use crate::operating::cli::run;
use crate::support::patience::soon;
use crate::support::server::Home;

#[tokio::test(flavor = "multi_thread")]
async fn a_record_goes_on_with_the_next_key_and_is_checked_by_both() {
    let home = Home::new();
    let (server, line) = serve(&home, SMALL);
    for _ in 0..8 {
        line.send("complete").await;
    }
    let rotated = run(&home, ["keys", "rotate", "receipts", "--now", "--overlap", "0s", "--json"]);
    assert_eq!(rotated.code, Some(0), "{}", rotated.stderr);
    let both = async || {
        line.send("complete").await;
        let (file, _, report) = exported(&home, &[]);
        (report.keys.len() == 2).then_some((file, report.keys))
    };
    let (file, keys) = soon("the next key signs", both).await;
    assert!(server.terminate().0.success());
    let keys: Vec<_> = keys.into_iter().collect();
    let file = file.to_string_lossy().into_owned();
    let named = |named: &[&str]| evidence(&Home::new(), &[&["verify", &file], named].concat());
    assert_eq!(named(&["--key", &keys[0], "--key", &keys[1]]).code, Some(0));
    for key in &keys {
        let ran = named(&["--key", key]);
        assert!(ran.code == Some(1) && ran.stderr.contains("CheckpointKey"), "{}", ran.stderr);
    }
    // The old key has retired and is forgotten with the next start; what it signed is the node's all the same.
    let (_server, _line) = serve(&home, SMALL);
    let left = run(&home, ["keys", "show", "--json"]).stdout;
    assert_eq!(keys.iter().filter(|key| left.contains(*key)).count(), 1, "{left}");
    let ran = evidence(&home, &["status"]);
    assert!(ran.code == Some(0), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_somebody_else_signed_is_not_taken_for_the_nodes_own() {
    let home = Home::new();
    let (server, line) = serve(&home, SMALL);
    let task = line.send("complete").await["task"]["id"].as_str().unwrap().to_owned();
    let (_, _, report) = exported(&home, &[]);
    assert!(server.terminate().0.success());
    // To the node it is as if a stranger had signed all of it: these were never its keys.
    for file in ["keys.json", "receipt-keys.json"] {
        std::fs::remove_file(home.data().join(file)).unwrap();
    }
    let (_server, line) = serve(&home, SMALL);
    line.send("complete").await;
    let stranger = report.keys.first().unwrap();
    for arguments in [&["status"][..], &["export"], &["export", "--task", &task]] {
        let ran = evidence(&home, arguments);
        let said = ran.stderr.contains(&format!("checkpoint 1 is signed by {stranger}, which was never a key of this node"));
        assert!(ran.code == Some(1) && said, "{arguments:?}: {}", ran.stderr);
    }
}
