//! Where a run takes place: one core for servers, one for load, a folder on a real disk, room for open files.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::process;

#[derive(Debug)]
pub(crate) struct Ground {
    server_core: usize,
    load_core: usize,
    open_files: u64,
    scratch: TempDir,
    /// This program: the load and the yardstick are its subcommands.
    own_program: PathBuf,
}

impl Ground {
    /// Scratch lies beside the program by default: a temporary folder is often memory, where a sync costs nothing.
    pub(crate) fn new(server_core: usize, load_core: usize, scratch: Option<&Path>) -> Result<Self> {
        let own_program = std::env::current_exe().context("own program")?;
        let cores = std::thread::available_parallelism()?.get();
        ensure!(
            server_core != load_core && server_core < cores && load_core < cores,
            "server and load need a core each; there are {cores}"
        );
        for tool in ["taskset", "prlimit", "setpriv"] {
            if Command::new(tool).arg("--version").output().is_err() {
                bail!("{tool} is not here (Debian has it in util-linux)");
            }
        }
        let beside = own_program.parent().unwrap_or_else(|| Path::new("."));
        Ok(Self {
            server_core,
            load_core,
            open_files: process::open_files_limit()?,
            scratch: tempfile::Builder::new().prefix("bench-").tempdir_in(scratch.unwrap_or(beside))?,
            own_program,
        })
    }

    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn own_program(&self) -> &Path {
        &self.own_program
    }

    pub(crate) fn on_server_core(&self, program: &Path) -> Command {
        self.pinned(self.server_core, program)
    }

    pub(crate) fn on_load_core(&self) -> Command {
        self.pinned(self.load_core, &self.own_program)
    }

    fn pinned(&self, core: usize, program: &Path) -> Command {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={0}:{0}", self.open_files));
        // However this program ends, what it started ends too.
        command.args(["setpriv", "--pdeathsig", "KILL", "taskset", "-c", &core.to_string()]).arg(program);
        command
    }

    /// What the figures depend on and the reader cannot see.
    pub(crate) fn describe(&self) -> Result<String> {
        let cores = std::thread::available_parallelism()?;
        let busy = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let busy = busy.split(' ').next().unwrap_or("?").to_owned();
        Ok(format!(
            "{cores} cores (load average {busy}), server on core {}, load on core {}, up to {} open files\n\
             disk: {}, append of 4 KiB and sync: median {:.0} µs",
            self.server_core,
            self.load_core,
            self.open_files,
            self.filesystem(),
            self.sync_micros()?
        ))
    }

    fn filesystem(&self) -> String {
        let told = Command::new("stat").args(["-f", "-c", "%T"]).arg(self.scratch()).output();
        match told {
            Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            Err(_) => "unknown".to_owned(),
        }
    }

    /// The floor of every durable row: nothing that waits for the disk can be faster.
    fn sync_micros(&self) -> Result<f64> {
        let path = self.scratch().join("sync");
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        let mut taken = Vec::new();
        for _ in 0..100 {
            let start = Instant::now();
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
            taken.push(start.elapsed());
        }
        taken.sort_unstable();
        fs::remove_file(path)?;
        Ok(taken[taken.len() / 2].as_secs_f64() * 1e6)
    }
}
