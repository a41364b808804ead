//! Programs that sign and verify with somebody else's code, and the table of what came of it.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::fronts::{Prepare, ready};
use crate::say;
use crate::toolbox::Toolbox;

/// A program of `tests/interop` that signs and verifies with somebody else's code.
pub(crate) struct Implementation {
    program: OsString,
    arguments: Vec<OsString>,
}

impl Implementation {
    pub(crate) fn ready(tools: &Toolbox, prepare: Prepare) -> Self {
        let command = ready(tools, prepare);
        Self { program: command.get_program().to_owned(), arguments: command.get_args().map(OsStr::to_owned).collect() }
    }

    pub(crate) fn run(&self, arguments: &[&str], given: &Value) -> Value {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a prepared program starts");
        let mut stdin = child.stdin.take().expect("its input is ours");
        stdin.write_all(given.to_string().as_bytes()).expect("it reads its input");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?} ended with {}: {complaint}", output.status);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|fault| panic!("{command:?} printed no JSON: {fault}: {complaint}"))
    }
}

#[derive(Default)]
pub(crate) struct Table {
    text: String,
    rows: usize,
    faults: Vec<String>,
}

impl Table {
    pub(crate) fn row(&mut self, row: String, good: bool, seen: &dyn std::fmt::Display) {
        self.rows += 1;
        let _ = writeln!(self.text, "{} {row}", if good { "ok  " } else { "FAIL" });
        if !good {
            self.faults.push(format!("{row}: {seen}"));
        }
    }

    /// Prints the table; it must have every row and no fault.
    pub(crate) fn settle(self, rows: usize) {
        say(&format!("\n{}{} of {} rows ok\n", self.text, self.rows - self.faults.len(), self.rows));
        assert!(self.faults.is_empty(), "{} rows are wrong:\n{}", self.faults.len(), self.faults.join("\n"));
        assert_eq!(self.rows, rows, "rows are missing");
    }
}
