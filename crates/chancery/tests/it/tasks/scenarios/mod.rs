//! Every story in `fixtures/scenarios`, told to one server over every transport in every version.

mod check;
pub(crate) mod lines;
mod matrix;
mod story;
mod teller;
mod watched;
mod webhooks;

pub(crate) use self::matrix::Matrix;
pub(crate) use self::teller::tampered;

use crate::support::server::Setup;
use crate::support::wire_client::Combination;

/// How many stories are told in how many ways: the cells of the matrix that are not marked as impossible.
pub(crate) const CELLS: usize = 171;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_story_is_the_same_over_every_transport_and_version() {
    // A hundred callers at once over each transport are more connections than one address may usually have.
    let server = Setup::conformance().config("[limits]\nconnections_per_address = 2000\ncancel_grace_ms = 50\n").start();
    let matrix = Matrix::tell(server.url(), &Combination::ALL, |_| None).await;
    println!("{}", matrix.table());
    let faults = matrix.faults();
    assert!(faults.is_empty(), "{} of {} failed:\n{}", faults.len(), matrix.told() + faults.len(), faults.join("\n"));
    assert_eq!(matrix.told(), CELLS, "stories told in all ways they can be told");
}

/// How many stories can be told over SWP. What the others need and the profile has no word for is in their files.
const SLIM_CELLS: usize = 24;

/// Messages go over SWP, also those that go on with a task. What a story looks up or cancels meanwhile it does over JSON-RPC, at
/// the same node and as the same caller: it is the same task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_story_that_swp_has_words_for_is_the_same_over_swp() {
    // Every message over SWP watches its task: the hundred that are the same at once are a hundred streams of one task.
    let config = "[swp]\nlisten = '127.0.0.1:0'\n\
                  [limits]\nconnections_per_address = 2000\nstreams_per_task = 100\nstreams_per_caller = 100\ncancel_grace_ms = 50\n";
    let server = Setup::conformance().config(config).start();
    let matrix = Matrix::tell(server.url(), &[Combination::SWP], |_| None).await;
    println!("{}", matrix.table());
    let faults = matrix.faults();
    assert!(
        faults.is_empty(),
        "{} of {} failed:\n{}\n{}",
        faults.len(),
        matrix.told() + faults.len(),
        faults.join("\n"),
        server.log()
    );
    assert_eq!(matrix.told(), SLIM_CELLS, "stories told over SWP");
}
