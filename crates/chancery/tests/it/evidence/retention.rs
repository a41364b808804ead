//! Old segments go by themselves: what is left still verifies, and bundles say what is gone.

use serde_json::json;

use super::record::{SMALL, evidence, exported, serve};
use crate::support::patience::soon;
use crate::support::server::Home;

/// Of `SMALL`.
const SEGMENT: u64 = 16;
/// All but a few of the entries are to go, as soon as the node has signed for the first time.
const FEW: &str = "keep_entries = 20\ncheckpoint_seconds = 1\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_verifies_and_a_bundle_says_what_is_gone() {
    let home = Home::new();
    let (server, line) = serve(&home, SMALL);
    let waiting = line.send("ask which?").await["task"]["id"].as_str().unwrap().to_owned();
    let forgotten = line.send("complete this").await["task"]["id"].as_str().unwrap().to_owned();
    for number in 0..20 {
        line.send(&format!("complete {number}")).await;
    }
    let (_, events, before) = exported(&home, &["--task", &waiting]);
    let trace = events[0]["data"]["trace"].as_str().unwrap().to_owned();
    assert_eq!((before.scope.kept_from, before.cut.len()), (0, 0));
    assert!(server.terminate().0.success());

    let (_server, line) = serve(&home, &format!("{SMALL}{FEW}"));
    line.follow_up(&json!(waiting), "complete that").await;
    // At least so many stay, and less than a segment more. After that nothing goes, since nothing happens.
    let status = async || {
        let record = &evidence(&home, &["status", "--json"]).json()["record"];
        let (first, end) = (record["first"].as_u64()?, record["end"].as_u64()?);
        (end - first < 20 + SEGMENT).then_some(first)
    };
    let first = soon("old segments go", status).await;
    assert!(first > 0);

    let file = home.path().join("cut.tar.gz");
    let file = file.to_string_lossy().into_owned();
    let said = evidence(&home, &["export", "--task", &waiting, "-o", &file]);
    assert!(said.stdout.contains(&format!("The beginning of task {waiting} is not there.")), "{} {}", said.stdout, said.stderr);
    let said = evidence(&Home::new(), &["verify", &file]);
    assert!(said.stdout.contains(&format!("The record began with entry {first}")), "{} {}", said.stdout, said.stderr);
    let (_, _, cut) = exported(&home, &["--task", &waiting]);
    assert!(cut.cut.contains(&waiting) && cut.scope.kept_from == first && cut.entries > 0, "{cut:?}");
    let (_, _, of_trace) = exported(&home, &["--trace", &trace]);
    assert_eq!(of_trace.entries, cut.entries, "the store still knows whose trace it is");
    let (_, _, all) = exported(&home, &[]);
    assert_eq!((all.first, all.scope.kept_from), (Some(first), first));
    let nothing = evidence(&home, &["export", "--task", &forgotten]);
    assert!(nothing.code == Some(1) && nothing.stderr.contains("no entry that matches"), "{}", nothing.stderr);
}
