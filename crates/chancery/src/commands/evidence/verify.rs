//! `chancery evidence verify`: whether a bundle is what it says, found out from the bundle alone.

use std::io::Read as _;
use std::path::PathBuf;

use chancery_evidence::bundle::{Report, verify};
use serde_json::json;

use super::super::{Failure, Shared, show};

const EXAMPLES: &str = "\
Examples:
  chancery evidence verify task.tar.gz
  chancery evidence verify task.tar.gz --key KID     and it was that key that signed
  chancery evidence verify - < task.tar.gz

Checks the container, the digests, the order, the links of the record, its checkpoints and their signatures. Whose key signed is not in
the bundle: compare it with `chancery keys show` of the node, or with its /.well-known/jwks.json. The first fault is named, and the exit code is 1.

Of a bundle of others, without entries of a record, only the format is checked (`format_only` with --json). With --key such a bundle is refused:
nothing in it is signed.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Verify {
    /// The bundle; `-` reads it from the standard input
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// The key that must have signed; repeat it where keys were rotated
    #[arg(long, value_name = "KID", allow_hyphen_values = true)]
    key: Vec<String>,
}

/// What is not in a bundle because its node had forgotten it.
pub(super) fn forgotten(report: &Report) -> String {
    let Report { kept_from, cut, .. } = report;
    let mut said = String::new();
    if *kept_from > 0 {
        said = format!("\nThe record began with entry {kept_from}: what came before had been forgotten.\n");
    }
    for task in cut {
        said.push_str(&format!("The beginning of task {} is not there.\n", show::safe(task)));
    }
    said
}

impl Verify {
    pub(super) fn run(self, shared: &Shared) -> Result<(), Failure> {
        let unreadable = |fault: std::io::Error| Failure::Usage(format!("{}: {fault}", self.bundle.display()));
        let mut bytes = Vec::new();
        if self.bundle.as_os_str() == "-" {
            std::io::stdin().read_to_end(&mut bytes).map_err(unreadable)?;
        } else {
            bytes = std::fs::read(&self.bundle).map_err(unreadable)?;
        }
        let keys: Vec<&str> = self.key.iter().map(String::as_str).collect();
        let (checked, report) = verify(&bytes, &keys).map_err(|fault| Failure::Refused(show::safe(&fault.to_string())))?;
        if shared.json {
            let (run, events, format_only) = (&checked.manifest.run_id, checked.events.len(), report.entries == 0);
            let found = json!({ "run_id": run, "events": events, "format_only": format_only, "record": report });
            show::print_json(&found.to_string());
            return Ok(());
        }
        let mut rows = vec![
            ["run".to_owned(), show::safe(&checked.manifest.run_id)],
            ["events".to_owned(), checked.events.len().to_string()],
            ["entries".to_owned(), report.entries.to_string()],
            ["packets".to_owned(), report.packets.to_string()],
            ["checkpoints".to_owned(), report.checkpoints.to_string()],
        ];
        if let (Some(first), Some(last)) = (report.first, report.last) {
            rows.push(["from, to".to_owned(), format!("{first}, {last}")]);
        }
        rows.extend(report.keys.iter().map(|kid| ["signed by".to_owned(), show::safe(kid)]));
        show::print(&format!("No fault was found.\n\n{}", show::columns(rows)));
        show::print(&forgotten(&report));
        if report.entries == 0 {
            show::print("\nThere is nothing of a record in it: only its format was checked.\n");
        }
        Ok(())
    }
}
