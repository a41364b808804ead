//! `chancery evidence`: packets into events, bundles out of the record, and whether a bundle is what it says.

mod convert;
mod export;
mod status;
mod verify;

use clap::Subcommand;

use super::{Failure, Shared};

#[derive(clap::Args)]
pub(super) struct Evidence {
    #[command(subcommand)]
    command: EvidenceCommand,
}

#[derive(Subcommand)]
enum EvidenceCommand {
    /// Convert an A2A packet into evidence events
    Convert(convert::Convert),
    /// Write a bundle of a node's record
    Export(export::Export),
    /// Check a bundle without a node, and name the first fault
    Verify(verify::VerifyBundleCommand),
    /// Check the record of a node
    Status(status::Status),
}

impl Evidence {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        match self.command {
            EvidenceCommand::Convert(convert) => convert.run(),
            EvidenceCommand::Export(export) => export.run(shared).await,
            EvidenceCommand::Verify(verify) => verify.run(shared),
            EvidenceCommand::Status(status) => status.run(shared).await,
        }
    }
}
