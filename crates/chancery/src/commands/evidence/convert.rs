//! `chancery evidence convert`: a packet of the older protocol as the frozen adapter sees it.

use std::io::Read as _;
use std::path::PathBuf;

use chancery_evidence::adapter::{AttachmentPolicy, ConversionMode, FolderRawPayloads, MemoryRawPayloads, RawPayloads, convert};

use super::super::{Failure, show};

/// The longest packet that is converted.
const MAX_PACKET: u64 = 64 * 1024 * 1024;

const EXAMPLES: &str = "\
Examples:
  chancery evidence convert packet.json              one packet, strictly
  curl … | chancery evidence convert --lenient -     convert what can be converted, and note the rest as lost
  chancery evidence convert --keep raw packet.json   also store the bytes of the packet in raw/

Prints the batch as JSON. A packet that breaks the contract of the adapter is rejected with the kind of the fault and exit code 2.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Convert {
    /// Reject a packet that cannot be converted whole [default]
    #[arg(long, conflicts_with = "lenient")]
    strict: bool,
    /// Convert what can be converted, and note what is lost
    #[arg(long)]
    lenient: bool,
    /// Store the packet's bytes in this folder under their digest, before they are parsed
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// The packet; `-` reads it from the standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Convert {
    pub(super) fn run(self) -> Result<(), Failure> {
        let packet = self.read()?;
        let kept = AttachmentPolicy::new(MAX_PACKET, ["application/json"]);
        let mode = if self.lenient { ConversionMode::Lenient } else { ConversionMode::Strict };
        let raw_payloads: Box<dyn RawPayloads> = match &self.keep {
            Some(folder) => Box::new(FolderRawPayloads::new(folder, kept)),
            None => Box::new(MemoryRawPayloads::new(kept)),
        };
        let batch = convert(&packet, mode, &*raw_payloads).map_err(|error| Failure::Usage(show::safe(&error.to_string())))?;
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
