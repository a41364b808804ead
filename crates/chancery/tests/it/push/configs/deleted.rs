//! Registrations outlive the process that took them, and nothing else.

use super::{Client, config};
use crate::support::server::{Home, Setup};
use crate::support::wire_client::Combination;

#[tokio::test]
async fn a_restart_keeps_what_was_registered_and_what_was_deleted_stays_deleted() {
    let home = Home::new();
    let start = || Setup::in_home(&home).args(["--agent", "conformance"]).start();
    let server = start();
    let client = Client::new(&server, Combination::ALL[0]);
    let task = client.ended_task("").await;
    client.create(config(Some(&task), Some("a"), "https://hooks.example/a")).await.unwrap();
    client.create(config(Some(&task), Some("b"), "https://hooks.example/b")).await.unwrap();
    client.delete(&task, "a").await.unwrap();
    drop(server);
    let server = start();
    for combination in super::with_lists() {
        let client = Client::new(&server, combination);
        assert_eq!(client.urls(&task).await, ["https://hooks.example/b"], "{}", combination.name());
    }
}

#[tokio::test]
async fn secrets_are_in_no_file_of_the_node() {
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--agent", "conformance"]).start();
    let client = Client::new(&server, Combination::ALL[0]);
    let task = client.ended_task("").await;
    let mut given = config(Some(&task), Some("a"), "https://hooks.example/a");
    given.token = Some("a-token-to-look-for".to_owned());
    given.authentication = super::bearer("credentials-to-look-for");
    client.create(given).await.unwrap();
    let mut files = Vec::new();
    let mut folders = vec![home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    assert!(files.iter().any(|file| file.extension().is_some_and(|kind| kind == "db")), "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).unwrap_or_default();
        for secret in ["a-token-to-look-for", "credentials-to-look-for"] {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} is in {}", file.display());
        }
    }
}
