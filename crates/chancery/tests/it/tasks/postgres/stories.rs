//! Every story over every transport and version, told to a node on PostgreSQL.

use crate::support::postgres::{database, on_database, shared};
use crate::support::server::Home;
use crate::support::wire_client::Combination;
use crate::tasks::scenarios::{CELLS, Matrix};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_story_is_the_same_with_tasks_in_postgresql() {
    let (home, url) = (Home::new(), database());
    let server = on_database(&home, &url, "[limits]\nconnections_per_address = 2000\ncancel_grace_ms = 50\n");
    let matrix = Matrix::tell(server.url(), &Combination::ALL, |_| None).await;
    println!("{}", matrix.table());
    let faults = matrix.faults();
    assert!(faults.is_empty(), "{} of {} failed:\n{}", faults.len(), matrix.told() + faults.len(), faults.join("\n"));
    assert_eq!(matrix.told(), CELLS, "stories told in all ways they can be told");

    let name = url.rsplit('/').next().expect("a database");
    let tasks: usize = shared().sql(name, &["SELECT count(*) FROM tasks"]).parse().expect("a number");
    assert!(tasks > CELLS, "{tasks} tasks are in the database");
    assert!(!home.data().join("chancery.db").exists(), "the folder has the keys alone");
    assert!(home.data().join("seal.key").exists());
}
