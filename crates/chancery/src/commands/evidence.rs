//! `chancery evidence convert`: a packet of the older protocol as the frozen adapter sees it.

use std::io::Read as _;
use std::path::PathBuf;

use chancery_evidence::adapter::{AttachmentPolicy, MemoryRawPayloads, Mode, convert};
use clap::Subcommand;

use super::{Failure, show};

/// The longest packet that is converted.
const MAX_PACKET: u64 = 64 * 1024 * 1024;

const EXAMPLES: &str = "\
Examples:
  chancery evidence convert packet.json              one packet, strictly
  curl … | chancery evidence convert --lenient -     what the strict reading refuses is noted as lost instead

Prints the batch as JSON. A packet that breaks the adapter's contract is refused with the kind of fault, and the exit code is 2.";

#[derive(clap::Args)]
pub(super) struct Evidence {
    #[command(subcommand)]
    command: EvidenceCommand,
}

#[derive(Subcommand)]
enum EvidenceCommand {
    /// Convert an A2A packet into evidence events
    #[command(after_help = EXAMPLES)]
    Convert(Convert),
}

#[derive(clap::Args)]
struct Convert {
    /// Refuse what cannot be converted whole [default]
    #[arg(long, conflicts_with = "lenient")]
    strict: bool,
    /// Convert what can be, and note what was lost
    #[arg(long)]
    lenient: bool,
    /// The packet; `-` reads it from the standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Evidence {
    pub(super) fn run(self) -> Result<(), Failure> {
        let EvidenceCommand::Convert(convert) = self.command;
        convert.run()
    }
}

impl Convert {
    fn run(self) -> Result<(), Failure> {
        let packet = self.read()?;
        let kept = AttachmentPolicy::new(MAX_PACKET, ["application/json"]);
        let mode = if self.lenient { Mode::Lenient } else { Mode::Strict };
        let batch = convert(&packet, mode, &MemoryRawPayloads::new(kept))
            .map_err(|error| Failure::Usage(show::safe(&error.to_string())))?;
        let json = serde_json::to_string(&batch).map_err(|fault| Failure::Refused(fault.to_string()))?;
        show::print_json(&json);
        Ok(())
    }

    fn read(&self) -> Result<Vec<u8>, Failure> {
        let unreadable = |fault: std::io::Error| Failure::Usage(format!("{}: {fault}", self.file.display()));
        if self.file.as_os_str() != "-" {
            return std::fs::read(&self.file).map_err(unreadable);
        }
        let mut packet = Vec::new();
        std::io::stdin().read_to_end(&mut packet).map_err(unreadable)?;
        Ok(packet)
    }
}
