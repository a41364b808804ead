//! Kills a process in the middle of its writes, again and again: what it was told is recorded is there afterwards.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use chancery_core::{Append, Store};
use chancery_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use chancery_testkit::HookedStore;

use crate::contract::sample::{decision, governed_creation, piece, pieces, spend, task};
use crate::server::TestDatabase;

const PLACE: &str = "CHANCERY_TEST_CRASH_PLACE";
const ANSWER_FIRST: &str = "CHANCERY_TEST_CRASH_ANSWER_FIRST";
const WRITERS: u64 = 16;
const CYCLES: u64 = 12;
/// The entries of each append after the first.
const TURNS: [(u64, u64); 3] = [(2, 2), (3, 70), (71, 72)];

/// The store of a folder, or of the database that a URL names.
async fn open(place: &str) -> Arc<dyn Store> {
    if place.starts_with("postgres://") {
        return Arc::new(PostgresStore::open(PostgresOptions::at(place)).await.unwrap());
    }
    // Small limits, so that the log is carried over and started anew while the process is killed.
    let options = SqliteOptions { wal_limit_bytes: 64 * 1024, ..SqliteOptions::default() };
    Arc::new(SqliteStore::open(Path::new(place).join("chancery.db"), options).unwrap())
}

/// The process that is to be killed: appends without end, and says so after each answer.
fn write_until_killed(place: &str, answer_first: bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let sound = open(place).await;
        let store = if answer_first { Arc::new(HookedStore::answering_before_commit(sound)) } else { sound };
        let generation = store.unfinished().await.unwrap().len();
        let writers = (0..WRITERS).map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for round in 0.. {
                    let id = format!("{generation}-{writer}-{round}");
                    let task = task(&id);
                    store.append(Append { spend: Some(spend(1, None)), ..governed_creation(&task, &id, 1) }).await.unwrap();
                    say(&id, 1);
                    for (first, last) in TURNS {
                        let cost = Some(spend(last as i64, None));
                        let decision = Some(decision(&format!("{id} to {last}"), Some(&id)));
                        store.append(Append { spend: cost, decision, ..pieces(&task, first, last) }).await.unwrap();
                        say(&id, last);
                    }
                }
            })
        });
        futures::future::join_all(writers.collect::<Vec<_>>()).await;
    });
}

/// One write for each line, straight to the pipe, so that a line is whole or missing.
fn say(id: &str, seq: u64) {
    std::io::stderr().write_all(format!("recorded {id} {seq}\n").as_bytes()).unwrap();
}

/// Starts the writing process, kills it after so many lines, and answers what it had claimed by then.
fn claims_of_a_killed_writer(test: &str, place: &str, lines: u64, answer_first: bool) -> HashMap<String, u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(PLACE, place)
        .envs(answer_first.then_some((ANSWER_FIRST, "1")))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut claims = HashMap::new();
    let mut seen = 0;
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        let ["recorded", id, seq] = words[..] else { panic!("the writing process said: {line}") };
        let last = claims.entry(id.to_owned()).or_insert(0);
        *last = seq.parse::<u64>().unwrap().max(*last);
        seen += 1;
        if seen == lines {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(seen >= lines, "the writing process ended by itself after {seen} of {lines} lines");
    claims
}

/// What the store does not have although it was claimed. What it has must be whole in any case.
async fn missing(place: &str, claims: &HashMap<String, u64>) -> Vec<String> {
    let store = open(place).await;
    let mut missing = Vec::new();
    for (id, claimed) in claims {
        let stored = store.find_any(id).await.unwrap().map_or(0, |stored| stored.progress.seq);
        let entries = store.entries(&id.as_str().into(), 0, 1000).await.unwrap();
        assert_eq!(entries.len() as u64, stored, "the log of {id} and its progress disagree");
        assert!(entries.iter().skip(1).zip(2..).all(|(entry, seq)| **entry == *piece(seq)), "the log of {id} is damaged");
        // What came with an entry is there if the entry is, and not otherwise.
        let cost = store.governed(&id.as_str().into()).await.unwrap().map_or(0, |governed| governed.spend.settled.tokens);
        assert_eq!(cost, stored, "the log of {id} and what it cost disagree");
        let decided = store.decisions_of(&id.as_str().into()).await.unwrap().len();
        assert_eq!(decided, TURNS.iter().filter(|(_, last)| *last <= stored).count(), "decisions about {id}, {stored} stored");
        if stored < *claimed {
            missing.push(format!("{id}: {claimed} claimed, {stored} stored"));
        }
    }
    missing
}

fn role_of_writer() -> bool {
    let Ok(place) = std::env::var(PLACE) else { return false };
    write_until_killed(&place, std::env::var_os(ANSWER_FIRST).is_some());
    true
}

/// Some number of lines below the limit, from the seed and the cycle.
fn moment(seed: u64, cycle: u64) -> u64 {
    let mixed = (seed ^ cycle.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xD134_2543_DE82_EF95);
    1 + (mixed >> 33) % 700
}

/// Kills the writing process of a test again and again. What it was told is recorded has to be there each time.
fn survive_kills(test: &str, place: &str) {
    let seed = RandomState::new().hash_one(std::process::id());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut all = HashMap::new();
    for cycle in 0..CYCLES {
        all.extend(claims_of_a_killed_writer(test, place, moment(seed, cycle), false));
        let missing = runtime.block_on(missing(place, &all));
        assert!(missing.is_empty(), "seed {seed}, cycle {cycle}: {missing:?}");
    }
}

/// Whether a kill shows that answers came before commits.
fn is_found_out(test: &str, place: &str, cycle: u64) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let claims = claims_of_a_killed_writer(test, place, moment(1, cycle), true);
    !runtime.block_on(missing(place, &claims)).is_empty()
}

fn path_of(folder: &tempfile::TempDir) -> &str {
    folder.path().to_str().unwrap()
}

#[test]
fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    if role_of_writer() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    survive_kills("contract::crash::what_was_acknowledged_survives_a_kill_at_any_moment", path_of(&folder));
}

#[test]
fn what_postgresql_acknowledged_survives_a_kill_of_the_node_at_any_moment() {
    if role_of_writer() {
        return;
    }
    let database = TestDatabase::make();
    let test = "contract::crash::what_postgresql_acknowledged_survives_a_kill_of_the_node_at_any_moment";
    survive_kills(test, &database.url());
}

#[test]
fn a_store_that_answers_before_it_commits_is_found_out() {
    if role_of_writer() {
        return;
    }
    let found_out = (0..CYCLES).any(|cycle| {
        let folder = tempfile::tempdir().unwrap();
        is_found_out("contract::crash::a_store_that_answers_before_it_commits_is_found_out", path_of(&folder), cycle)
    });
    assert!(found_out, "{CYCLES} kills lost nothing although answers came before commits");
}

#[test]
fn a_store_on_postgresql_that_answers_before_it_commits_is_found_out() {
    if role_of_writer() {
        return;
    }
    let test = "contract::crash::a_store_on_postgresql_that_answers_before_it_commits_is_found_out";
    let found_out = (0..CYCLES).any(|cycle| is_found_out(test, &TestDatabase::make().url(), cycle));
    assert!(found_out, "{CYCLES} kills lost nothing although answers came before commits");
}
