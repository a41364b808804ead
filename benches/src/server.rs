//! A server process under measurement: started on its core, waited for, ended with the value that holds it.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process;

const START_WITHIN: Duration = Duration::from_secs(20);
const SETTLE_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Server {
    /// Starts `command` with `--listen` and a free port added, and waits until it accepts.
    pub(crate) fn start(command: Command, log: PathBuf) -> Result<Self> {
        let address = free_address()?;
        Self::start_at(command, log, address.clone(), &address)
    }

    /// The same, but it is reached at every address of the loopback.
    pub(crate) fn start_everywhere(command: Command, log: PathBuf) -> Result<Self> {
        let address = free_address()?;
        let everywhere = address.replacen("127.0.0.1", "0.0.0.0", 1);
        Self::start_at(command, log, address, &everywhere)
    }

    /// Starts a program that finds a port by itself and prints its URL.
    pub(crate) fn start_saying_where(mut command: Command, log: PathBuf) -> Result<Self> {
        let output = File::create(&log).with_context(|| log.display().to_string())?;
        let child = without_frames(&mut command).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn();
        let child = child.with_context(|| format!("starting {command:?}"))?;
        let mut server = Self { child, address: String::new(), log };
        let deadline = Instant::now() + START_WITHIN;
        while server.address.is_empty() {
            let said = fs::read_to_string(&server.log).unwrap_or_default();
            let address = said.lines().find_map(|line| line.strip_prefix("http://"));
            server.address = address.filter(|_| said.ends_with('\n')).unwrap_or_default().to_owned();
            server.wait_a_little(deadline)?;
        }
        server.wait_until_it_accepts()?;
        Ok(server)
    }

    fn start_at(mut command: Command, log: PathBuf, address: String, listen: &str) -> Result<Self> {
        let output = File::create(&log).with_context(|| log.display().to_string())?;
        let child = without_frames(&mut command)
            .args(["--listen", listen])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let mut server = Self { child, address, log };
        server.wait_until_it_accepts()?;
        Ok(server)
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory once it has stopped moving.
    pub(crate) fn settled_memory(&self) -> Result<u64> {
        let deadline = Instant::now() + SETTLE_WITHIN;
        let mut before = process::resident(self.pid())?;
        loop {
            sleep(Duration::from_millis(500));
            let now = process::resident(self.pid())?;
            if now.abs_diff(before) < 64 * 1024 || Instant::now() > deadline {
                return Ok(now);
            }
            before = now;
        }
    }

    /// Resident memory as soon as it is below `limit`, or as it is when the time is over.
    pub(crate) fn memory_below(&self, limit: f64, within: Duration) -> Result<f64> {
        let deadline = Instant::now() + within;
        loop {
            let now = process::resident(self.pid())? as f64;
            if now <= limit || Instant::now() > deadline {
                return Ok(now);
            }
            sleep(Duration::from_millis(500));
        }
    }

    fn wait_until_it_accepts(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_WITHIN;
        while TcpStream::connect(&self.address).is_err() {
            self.wait_a_little(deadline)?;
        }
        Ok(())
    }

    /// Between two looks at a server that is to come up: not for one that has ended, and not for ever.
    fn wait_a_little(&mut self, deadline: Instant) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server ended with {status}: {}", self.last_words());
        }
        if Instant::now() > deadline {
            bail!("no server after {START_WITHIN:?}: {}", self.last_words());
        }
        sleep(Duration::from_millis(20));
        Ok(())
    }

    fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

/// The frames of a failure would hide its reason, of which the last lines are shown.
fn without_frames(command: &mut Command) -> &mut Command {
    command.env("RUST_BACKTRACE", "0")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing left to do about either failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> Result<String> {
    let probe = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(probe.local_addr()?.to_string())
}
