//! Runs one test program: passes its lines on, names the tests that run, and ends a run that exceeds its bound.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::costs::{TestTime, show};
use crate::processes::end_with_children;
use crate::roster::Roster;

/// Minutes that one test binary may take before it is ended; a whole number.
pub(crate) const BOUND: &str = "CHANCERY_TEST_BINARY_MINUTES";

const DEFAULT_BOUND: Duration = Duration::from_secs(40 * 60);

/// How often a line says how far a run is.
const PROGRESS: Duration = Duration::from_secs(60);

/// Without a test that ends for so long, the line says so.
const SILENCE: Duration = Duration::from_secs(120);

/// How often the program is looked after while it prints nothing.
const LOOK: Duration = Duration::from_secs(1);

/// How long a program may take, and how often a line tells of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WatchLimits {
    pub bound: Option<Duration>,
    pub progress: Duration,
    pub silence: Duration,
}

impl WatchLimits {
    /// For runs that take as long as they take.
    pub(crate) const UNBOUNDED: Self = Self { bound: None, progress: PROGRESS, silence: SILENCE };

    /// The bound of the environment, or the usual one.
    pub(crate) fn from_environment() -> Result<Self> {
        Ok(Self { bound: Some(read_bound(std::env::var(BOUND).ok().as_deref())?), ..Self::UNBOUNDED })
    }
}

fn read_bound(minutes: Option<&str>) -> Result<Duration> {
    match minutes.map(str::parse::<u64>) {
        None => Ok(DEFAULT_BOUND),
        Some(Ok(minutes @ 1..)) => Ok(Duration::from_secs(minutes.saturating_mul(60))),
        Some(_) => bail!("{BOUND} takes minutes, a whole number from 1 on"),
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct WatchedRun {
    pub succeeded: bool,
    pub exceeded_bound: bool,
    /// The tests that were running when the program ended, as far as known.
    pub unfinished: Vec<String>,
    pub tests: Vec<TestTime>,
}

/// Runs the program. `hear` takes every line of its stdout.
pub(crate) fn watch(
    name: &str,
    command: &mut Command,
    names: Vec<String>,
    limits: WatchLimits,
    mut hear: impl FnMut(&str),
) -> Result<WatchedRun> {
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {name}"))?;
    let mut roster = Roster::new(names, tests_at_once(), began);
    let lines = child.stdout.take().map(read_lines).context("a piped stdout is there")?;
    let mut next_progress = began + limits.progress;
    let mut has_ended = false;
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => {
                println!("{line}");
                roster.hear(&line, Instant::now());
                hear(&line);
            }
            // A process that a test left behind holds the pipe open for as long as it lives; its lines are nothing to wait for.
            Err(RecvTimeoutError::Timeout) if has_ended => break,
            Err(RecvTimeoutError::Timeout) => has_ended = child.try_wait()?.is_some(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let now = Instant::now();
        if now >= next_progress {
            next_progress = now + limits.progress;
            println!("{}", progress_line(name, &roster, now, now.duration_since(began), limits.silence));
        }
        if limits.bound.is_some_and(|bound| now.duration_since(began) > bound) {
            return Ok(end(name, &mut child, roster, now.duration_since(began)));
        }
    }
    let succeeded = child.wait()?.success();
    let unfinished = roster.unfinished(Instant::now());
    Ok(WatchedRun { succeeded, exceeded_bound: false, unfinished, tests: roster.into_times() })
}

fn end(name: &str, child: &mut Child, roster: Roster, after: Duration) -> WatchedRun {
    let unfinished = roster.unfinished(Instant::now());
    end_with_children(child);
    println!("-- {name}: ended after {}, the bound of one test binary ({BOUND}); unfinished: {}", show(after), list(&unfinished));
    WatchedRun { succeeded: false, exceeded_bound: true, unfinished, tests: roster.into_times() }
}

fn progress_line(name: &str, roster: &Roster, now: Instant, since: Duration, silence: Duration) -> String {
    let head = format!("-- {name}: {} after {}", roster.progress(), show(since));
    let unfinished = list(&roster.unfinished(now));
    if roster.silence(now) >= silence {
        format!("{head}; none has ended for {}; unfinished: {unfinished}", show(roster.silence(now)))
    } else {
        format!("{head}; running: {unfinished}")
    }
}

pub(crate) fn list(names: &[String]) -> String {
    if names.is_empty() { "not known".to_owned() } else { names.join(", ") }
}

/// As many as the harness runs at once.
fn tests_at_once() -> usize {
    let set = std::env::var("RUST_TEST_THREADS").ok().and_then(|threads| threads.parse().ok());
    set.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into))
}

/// Lines as they arrive. They are split by bytes: a test may print anything, and its noise must not end the run.
fn read_lines(stdout: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, names: &[&str], limits: WatchLimits) -> (WatchedRun, Vec<String>) {
        let mut heard = Vec::new();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let run = watch("sh", Command::new("sh").args(["-c", script]), names, limits, |line| heard.push(line.to_owned()));
        (run.unwrap(), heard)
    }

    #[test]
    fn every_line_is_heard_and_the_end_is_the_programs_own() {
        let (run, heard) = shell("echo 'test a ... ok'; printf '\\377\\n'; echo end", &["a", "b"], WatchLimits::UNBOUNDED);
        assert!(run.succeeded && !run.exceeded_bound);
        assert!(run.unfinished.len() == 1 && run.unfinished[0].starts_with("b ("), "{:?}", run.unfinished);
        assert_eq!(run.tests.iter().map(|test| test.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(heard, ["test a ... ok", "\u{fffd}", "end"]);
        assert!(!shell("exit 101", &[], WatchLimits::UNBOUNDED).0.succeeded);
    }

    #[test]
    fn a_run_beyond_its_bound_is_ended_and_names_the_tests_that_had_not() {
        let limits = WatchLimits { bound: Some(Duration::from_millis(1)), ..WatchLimits::UNBOUNDED };
        let (run, _) = shell("echo 'test a ... ok'; sleep 600 & wait", &["a", "b"], limits);
        assert!(!run.succeeded && run.exceeded_bound);
        assert!(run.unfinished.iter().any(|name| name.starts_with("b (")), "{:?}", run.unfinished);
    }

    #[test]
    fn a_process_that_outlives_the_program_does_not_hold_the_run_up() {
        let (run, heard) = shell("sleep 8 & echo 'test a ... ok'", &["a"], WatchLimits::UNBOUNDED);
        assert!(run.succeeded);
        assert_eq!(heard, ["test a ... ok"]);
    }

    #[test]
    fn a_silent_run_names_the_tests_that_hang() {
        let start = Instant::now();
        let roster = Roster::new(vec!["a::hangs".to_owned()], 2, start);
        let line = |seconds| {
            progress_line("rules it", &roster, start + Duration::from_secs(seconds), Duration::from_secs(seconds), SILENCE)
        };
        assert_eq!(line(60), "-- rules it: 0 of 1 tests have ended after 1 min 00 s; running: a::hangs (1 min 00 s)");
        let hangs = "none has ended for 2 min 00 s; unfinished: a::hangs (2 min 00 s)";
        assert_eq!(line(120), format!("-- rules it: 0 of 1 tests have ended after 2 min 00 s; {hangs}"));
    }

    #[test]
    fn the_bound_is_a_whole_number_of_minutes() {
        assert_eq!(read_bound(None).unwrap(), Duration::from_secs(2400));
        assert_eq!(read_bound(Some("3")).unwrap(), Duration::from_secs(180));
        for wrong in ["", "0", "-1", "1.5", "soon"] {
            assert!(read_bound(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
