//! Every story in `fixtures/scenarios`, told to one server over every transport in every version.

mod check;
pub(crate) mod lines;
mod story;
mod teller;
mod watched;

use std::path::Path;

use futures::FutureExt as _;

use self::story::Story;
use self::teller::Teller;
use crate::server::Setup;
use crate::wire_client::{Combination, WireClient};

/// How many stories are told in how many ways: the cells of the matrix that are not marked as impossible.
const CELLS: usize = 164;

enum Cell {
    Told,
    /// Why not.
    NotApplicable(String),
    Failed(String),
}

async fn tell(url: &str, story: &Story, combination: Combination) -> Cell {
    if let Some(reason) = story.not_applicable(combination) {
        return Cell::NotApplicable(reason.to_owned());
    }
    let telling = Teller::new(WireClient::new(url, combination), story).tell(story);
    match std::panic::AssertUnwindSafe(telling).catch_unwind().await {
        Ok(Ok(())) => Cell::Told,
        Ok(Err(fault)) => Cell::Failed(fault),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            Cell::Failed(text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default())
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_story_is_the_same_over_every_transport_and_version() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/scenarios");
    let stories = Story::all_in(&folder);
    // A hundred callers at once over each transport are more connections than one address may usually have.
    let server = Setup::conformance().config("[limits]\nconnections_per_address = 2000\ncancel_grace_ms = 50\n").start();

    // All ways of telling a story at once; one story after the other.
    let mut rows = Vec::new();
    for story in &stories {
        let cells = Combination::ALL.map(|combination| tell(server.url(), story, combination));
        rows.push((story, futures::future::join_all(cells).await));
    }

    let (mut told, mut faults) = (0, Vec::new());
    let names: Vec<String> = Combination::ALL.iter().map(|combination| format!("{:>17}", combination.name())).collect();
    println!("{:<28}{}", "", names.concat());
    for (story, cells) in &rows {
        let mut line = format!("{:<28}", story.name);
        for (combination, cell) in Combination::ALL.into_iter().zip(cells) {
            line += &format!(
                "{:>17}",
                match cell {
                    Cell::Told => "told",
                    Cell::NotApplicable(_) => "not applicable",
                    Cell::Failed(_) => "FAILED",
                }
            );
            match cell {
                Cell::Told => told += 1,
                Cell::NotApplicable(_) => {}
                Cell::Failed(fault) => faults.push(format!("{} over {}: {fault}", story.name, combination.name())),
            }
        }
        println!("{line}  {}", story.story);
    }
    for (story, cells) in &rows {
        for (combination, cell) in Combination::ALL.into_iter().zip(cells) {
            if let Cell::NotApplicable(reason) = cell {
                println!("{} not over {}: {reason}", story.name, combination.name());
            }
        }
    }
    assert!(faults.is_empty(), "{} of {} failed:\n{}", faults.len(), told + faults.len(), faults.join("\n"));
    assert_eq!(told, CELLS, "stories told in all ways they can be told");
}
