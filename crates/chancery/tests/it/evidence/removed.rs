//! Checkpoints that somebody took out of the record of a stopped node are named by its next `evidence status`.

use super::record::{SMALL, evidence, serve};
use crate::support::server::Home;

/// The files of the database.
const FILES: [&str; 3] = ["chancery.db", "chancery.db-wal", "chancery.db-shm"];

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_put_back_lacks_checkpoints_and_status_names_them() {
    let home = Home::new();
    let (server, line) = serve(&home, SMALL);
    line.send("complete").await;
    assert_eq!(evidence(&home, &["status"]).code, Some(0));
    assert!(server.terminate().0.success());
    let earlier = FILES.map(|file| std::fs::read(home.data().join(file)).ok());
    let (server, line) = serve(&home, SMALL);
    for _ in 0..3 {
        line.send("complete").await;
    }
    let status = evidence(&home, &["status", "--json"]);
    assert_eq!(status.code, Some(0), "{}", status.stderr);
    assert!(server.terminate().0.success());
    for (file, content) in FILES.iter().zip(&earlier) {
        let place = home.data().join(file);
        match content {
            Some(content) => std::fs::write(place, content).unwrap(),
            None => drop(std::fs::remove_file(place)),
        }
    }
    let (server, line) = serve(&home, SMALL);
    // The record goes on, and what it signs from now on does not cover that up.
    for round in 0..2 {
        for arguments in [&["status"][..], &["export"]] {
            let ran = evidence(&home, arguments);
            let named = ran.stderr.contains("removed") && ran.stderr.contains("record-mark.json");
            assert!(ran.code == Some(1) && named, "{round} {arguments:?}: {}", ran.stderr);
        }
        for _ in 0..8 {
            line.send("complete").await;
        }
    }
    assert!(server.log().contains("checkpoints that this node signed are missing from the record"), "{}", server.log());
    assert!(server.terminate().0.success());
    std::fs::remove_file(home.data().join("record-mark.json")).unwrap();
    let (_server, _line) = serve(&home, SMALL);
    let status = evidence(&home, &["status"]);
    assert_eq!(status.code, Some(0), "the operator knows why: {}", status.stderr);
}
