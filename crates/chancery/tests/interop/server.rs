//! A server on a free port, ours or an agent that others wrote, killed when dropped.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a cold start may take on a loaded machine.
const START: Duration = Duration::from_secs(180);

pub(crate) struct Server {
    process: Child,
    pub(crate) base: String,
}

impl Server {
    /// The built server with these arguments. `log` takes what it writes to stderr.
    pub(crate) fn serving(arguments: &[&str], log: &Path) -> Self {
        // Another build can be measured with the same tests.
        let binary = std::env::var_os("CHANCERY_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_chancery").into());
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--memory"]).args(arguments);
        Self::start(&mut command, log)
    }

    /// Anything that prints its address on stdout.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let log = File::create(log).expect("the log can be written");
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("a prepared server starts");
        let stdout = process.stdout.take().expect("stdout is piped");
        let mut server = Self { process, base: String::new() };

        let (found, base) = mpsc::channel();
        // The thread reads on after the address, so that the server never blocks on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(base) = base_url(&line) {
                    let _ = found.send(base);
                }
            }
        });
        server.base = base.recv_timeout(START).expect("the server prints its address; its log is in the target folder");
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `http://127.0.0.1:PORT` out of a line of text, with the path if there is one.
fn base_url(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("http://127.0.0.1:")?;
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    let (port, rest) = rest.split_at(digits);
    let in_path = |letter: &char| letter.is_ascii_alphanumeric() || "/-_~.".contains(*letter);
    let path: String = if rest.starts_with('/') { rest.chars().take_while(in_path).collect() } else { String::new() };
    (!port.is_empty()).then(|| format!("http://127.0.0.1:{port}{}", path.trim_end_matches(['/', '.'])))
}
