//! `chancery evidence export`: what the node recorded about something, as a bundle that can be checked without it.

use std::io::Write as _;
use std::path::PathBuf;

use chancery_evidence::bundle::verify;

use super::super::node_args::NodeArgs;
use super::super::{Failure, Shared, nearby, show};
use super::verify::forgotten;

const EXAMPLES: &str = "\
Examples:
  chancery evidence export --task TASK -o task.tar.gz
  chancery evidence export --trace TRACE -o trace.tar.gz
  chancery evidence export --since 2026-11-01T00:00:00Z --until 2026-11-02T00:00:00Z -o day.tar.gz
  chancery evidence export > all.tar.gz

The record is signed and checked before anything is taken out of it. A record that was tampered with is not exported: the first
fault is named, and the exit code is 1.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    #[command(flatten)]
    node: NodeArgs,
    /// Everything about one task
    #[arg(long, value_name = "TASK", conflicts_with_all = ["trace", "since", "until"])]
    task: Option<String>,
    /// Everything about the tasks of one trace
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["since", "until"])]
    trace: Option<String>,
    /// Everything from this time on
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Everything before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The file to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Export {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        let asked = [("task", &self.task), ("trace", &self.trace), ("since", &self.since), ("until", &self.until)];
        let wanted: Vec<_> = asked.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
        let bundle = admin.evidence_bundle(&wanted).await?;
        let unwritable = |to: &str, fault: std::io::Error| Failure::Refused(format!("{to}: {fault}"));
        match &self.output {
            Some(file) => {
                let (_, report) = verify(&bundle, &[]).map_err(|fault| Failure::Refused(show::safe(&fault.to_string())))?;
                std::fs::write(file, &bundle).map_err(|fault| unwritable(&file.display().to_string(), fault))?;
                show::print(&format!("{} bytes in {}\n{}", bundle.len(), file.display(), forgotten(&report)));
            }
            None => {
                std::io::stdout().write_all(&bundle).map_err(|fault| unwritable("the standard output", fault))?;
            }
        }
        Ok(())
    }
}
