//! `chancery evidence verify`: whether a bundle is what it says, found out from the bundle alone.

use std::io::Read as _;
use std::path::PathBuf;

use chancery_evidence::bundle::{BundleReport, BundleScope, rfc3339, verify};
use chancery_protocol::Timestamp;
use serde_json::json;

use super::super::{Failure, Shared, show};

const EXAMPLES: &str = "\
Examples:
  chancery evidence verify task.tar.gz
  chancery evidence verify task.tar.gz --key KID     also requires that this key signed it
  chancery evidence verify - < task.tar.gz

The command checks the container, the digests, the order, the links of the record, its checkpoints and their signatures. The bundle
does not contain the owner of the signing key: compare the key with `chancery keys ls` of the node or its /.well-known/jwks.json. At
the first fault the command prints it and exits with 1.

The query in the bundle is not signed. Compare it with your own query: an attacker who shortens a bundle can change the query to match.
The command lists the tasks whose beginning or end is not in the bundle.

A bundle of another program has no entries of a record. For it the command checks only the format (`format_only` with --json).
With --key the command rejects such a bundle, because nothing in it is signed.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct VerifyBundleCommand {
    /// The bundle; `-` reads it from the standard input
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// The id of the key that must have signed; can be given several times, for rotated keys
    #[arg(long, value_name = "KID", allow_hyphen_values = true)]
    key: Vec<String>,
}

/// What is not in a bundle because its node had forgotten it.
pub(super) fn forgotten(report: &BundleReport) -> String {
    let BundleReport { scope: BundleScope { kept_from, .. }, cut, .. } = report;
    let mut said = String::new();
    if *kept_from > 0 {
        said = format!("\nThe record began with entry {kept_from}: what came before had been forgotten.\n");
    }
    for task in cut {
        said.push_str(&format!("The beginning of task {} is not there.\n", show::safe(task)));
    }
    said
}

/// Tasks that may have gone on after what is in the bundle.
fn open(report: &BundleReport) -> String {
    let line = |task: &String| {
        format!("The end of task {} is not there: it went on, or what came later was taken out.\n", show::safe(task))
    };
    report.open.iter().map(line).collect()
}

/// What the bundle says was asked for.
fn asked_for(BundleScope { task, trace, since, until, .. }: &BundleScope) -> String {
    let time = |micros: &i64| {
        let text = rfc3339(Timestamp::from_micros(*micros));
        // A time that no calendar has is shown as it stands there.
        let is_same = Timestamp::parse(&text).is_ok_and(|time| time.micros() == *micros);
        if is_same { text } else { format!("{micros} µs") }
    };
    let mut said = Vec::new();
    said.extend(task.as_ref().map(|task| format!("task {}", show::safe(task))));
    said.extend(trace.as_ref().map(|trace| format!("trace {}", show::safe(trace))));
    said.extend(since.as_ref().map(|since| format!("since {}", time(since))));
    said.extend(until.as_ref().map(|until| format!("until {}", time(until))));
    if said.is_empty() { "everything".to_owned() } else { said.join(" ") }
}

impl VerifyBundleCommand {
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
            rows.push(["asked for".to_owned(), asked_for(&report.scope)]);
            rows.push(["from, to".to_owned(), format!("{first}, {last}")]);
        }
        rows.extend(report.keys.iter().map(|kid| ["signed by".to_owned(), show::safe(kid)]));
        show::print(&format!("No fault was found.\n\n{}", show::columns(rows)));
        show::print(&forgotten(&report));
        show::print(&open(&report));
        if report.entries == 0 {
            show::print("\nThere is nothing of a record in it: only its format was checked.\n");
        }
        Ok(())
    }
}
