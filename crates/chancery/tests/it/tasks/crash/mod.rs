//! The built server is killed again and again under load. What its clients were told is held against what is left.

pub(crate) mod chance;
mod check;
mod clients;
mod record;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use self::chance::Chance;
use self::check::{Census, Complaints};
use self::clients::{Reader, Sender, Tally};
use self::record::Recorded;
use crate::support::counts::full_counts;
use crate::support::line::Line;
use crate::support::patience::exit_of;
use crate::support::postgres::database;
use crate::support::server::{Home, Server, Setup};

const SENDERS: usize = 64;
const READERS: usize = 16;
/// Nobody is to be turned away here: limits have tests of their own.
const CONFIG: &str = "[limits]\ncalls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\n";

/// How a server is tormented.
struct Torment {
    cycles: usize,
    /// The PostgreSQL database of the tasks; without it they are in the data folder.
    database: Option<String>,
    /// The program of a node that answers, and shows events, before they are durable.
    answers_first: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct Outcome {
    complaints: Complaints,
    cycles: usize,
    answers: usize,
    events: usize,
    resumed: u64,
    recorded: usize,
    census: Census,
}

impl Torment {
    fn start(&self, home: &Home) -> Server {
        match &self.answers_first {
            Some(program) => Setup::of_program(home, program).args([home.data()]).start(),
            None => {
                let setup = Setup::in_home(home).args(["--agent", "conformance"]).args(self.store());
                setup.config(CONFIG).start()
            }
        }
    }

    fn store(&self) -> Vec<&str> {
        self.database.iter().flat_map(|url| ["--store", url]).collect()
    }

    /// Kill after kill, until they are all done or something was found.
    async fn inflict(&self, mut chance: Chance) -> Outcome {
        let home = Home::new();
        let mut senders: Vec<Sender> = (0..SENDERS).map(|name| Sender::new(name, chance.fork())).collect();
        let mut readers: Vec<Reader> = (0..READERS).map(|name| Reader::new(name, chance.fork())).collect();
        let mut outcome = Outcome::default();
        let mut answers_checked = vec![0; SENDERS];
        let mut tasks_checked = vec![0; READERS];
        let mut recorded = Recorded::default();
        loop {
            if outcome.cycles > 0 && chance.within(0..=3) == 0 {
                kill_while_starting(&home, &self.store(), Duration::from_millis(chance.within(0..=60)));
            }
            let server = self.start(&home);
            let line = Line::to(server.url(), &std::fs::read_to_string(home.data().join("admin.token")).unwrap());

            let last = outcome.cycles == self.cycles;
            // Each time what is new, and in the end everything once more.
            let answers =
                senders.iter().zip(&answers_checked).flat_map(|(sender, from)| &sender.told[if last { 0 } else { *from }..]);
            outcome.complaints.extend(recorded.hold(&home, answers.clone()));
            outcome.complaints.extend(check::answers(&line, answers).await);
            let watched =
                readers.iter().zip(&tasks_checked).flat_map(|(reader, from)| reader.journal().skip(if last { 0 } else { *from }));
            outcome.complaints.extend(check::events(&line, watched).await);
            outcome.complaints.extend(senders.iter_mut().flat_map(|sender| std::mem::take(&mut sender.complaints)));
            outcome.complaints.extend(readers.iter_mut().flat_map(|reader| std::mem::take(&mut reader.complaints)));
            answers_checked = senders.iter().map(|sender| sender.told.len()).collect();
            tasks_checked = readers.iter().map(|reader| reader.watched.len()).collect();
            if last || !outcome.complaints.is_empty() {
                let census = check::census(&line, &mut outcome.complaints).await;
                outcome.census = census.expect("a server that is not killed answers");
                break;
            }

            let tally = Tally::new();
            let sending: Vec<_> = senders.drain(..).map(|sender| tokio::spawn(sender.run(line.clone(), tally.clone()))).collect();
            let reading: Vec<_> = readers.drain(..).map(|reader| tokio::spawn(reader.run(line.clone(), tally.clone()))).collect();
            tally.reaches(chance.within(1..=400)).await;
            if self.answers_first.is_none() {
                // Anywhere between two answers, also in the middle of a commit.
                tokio::time::sleep(Duration::from_micros(chance.within(0..=20_000))).await;
            }
            server.kill();
            for sender in sending {
                senders.push(sender.await.expect("a sender does not panic"));
            }
            for reader in reading {
                readers.push(reader.await.expect("a reader does not panic"));
            }
            outcome.cycles += 1;
        }
        outcome.recorded = recorded.entries;
        outcome.answers = senders.iter().map(|sender| sender.told.len()).sum();
        let watched = || readers.iter().flat_map(Reader::journal);
        outcome.events = watched().map(|watched| watched.seen.len()).sum();
        outcome.resumed = watched().map(|watched| watched.resumed).sum();
        outcome
    }
}

/// A start that does not get far: the data folder may be in the middle of its recovery.
fn kill_while_starting(home: &Home, store: &[&str], after: Duration) {
    let mut command = home.command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--agent", "conformance"]).args(store);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = command.spawn().expect("the built server starts");
    std::thread::sleep(after);
    process.kill().expect("a child can be killed");
    exit_of(&mut process);
}

/// Kills as many nodes, and expects that nothing is lost.
#[expect(clippy::print_stdout, reason = "it prints how much was checked, as the tests that call it do")]
async fn kill_again_and_again(cycles: usize, database: Option<String>, name: &str) {
    let outcome = Torment { cycles, database, answers_first: None }.inflict(Chance::new(name)).await;
    println!(
        "{} kills; {} answers and {} events checked, {} streams resumed, {} entries of the record, {:?}",
        outcome.cycles, outcome.answers, outcome.events, outcome.resumed, outcome.recorded, outcome.census
    );
    assert!(outcome.complaints.is_empty(), "{} complaints, first: {}", outcome.complaints.len(), outcome.complaints[0]);
    // What there was to check, lest the promise be kept by silence.
    assert_eq!(outcome.cycles, cycles);
    assert!(outcome.answers > 20 * cycles && outcome.events > 20 * cycles, "{outcome:?}");
    assert!(outcome.recorded > outcome.answers, "{outcome:?}");
    assert!(outcome.resumed > cycles as u64 && outcome.census.cut_short > cycles as u64, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_moment_loses_nothing_that_was_acknowledged_or_streamed() {
    kill_again_and_again(full_counts(10, 100), None, "a kill at any moment").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_moment_loses_nothing_with_tasks_in_postgresql() {
    kill_again_and_again(full_counts(4, 100), Some(database()), "a kill at any moment, with PostgreSQL").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_before_it_commits_is_found_out() {
    let answers_first = Some(crate::operating::mount::build("answers_before_commit"));
    let outcome = Torment { cycles: 20, database: None, answers_first }.inflict(Chance::new("answers first")).await;
    assert!(!outcome.complaints.is_empty(), "{} kills found nothing lost", outcome.cycles);
    println!("found after {} kills: {}", outcome.cycles, outcome.complaints[0].chars().take(300).collect::<String>());
}
