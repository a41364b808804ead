//! `chancery init`: a config file to begin with, and the schema that editors check it against.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use chancery::cli_support::{SCHEMA_FILE, TakenOver, from_rvagent, schema, template};

use super::{Failure, remark, show};

const EXAMPLES: &str = "\
Examples:
  chancery init                                       write chancery.toml and chancery.schema.json to this folder
  chancery init --agent http://localhost:9001         the same for a node in front of this agent
  chancery init --from a2a.toml                       convert the config of an rvagent-a2a server (docs/from-rvagent.md)
  chancery init --config /etc/chancery/node.toml      write both files to /etc/chancery

The file has every setting with its default and a comment. Editors that support #:schema complete and check it.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Init {
    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "chancery.toml")]
    config: PathBuf,
    /// A remote agent behind the node; can be given several times [default: the echo agent]
    #[arg(long = "agent", value_name = "URL")]
    agents: Vec<String>,
    /// Convert this config of an rvagent-a2a server, TOML or JSON
    #[arg(long, value_name = "FILE", conflicts_with = "agents")]
    from: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

impl Init {
    pub(super) fn run(self) -> Result<(), Failure> {
        let TakenOver { text, remarks } = match &self.from {
            Some(file) => taken_over(file)?,
            None => TakenOver { text: template(&self.agents), remarks: Vec::new() },
        };
        if let Err(faults) = chancery::Config::parse(&text) {
            let reasons: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
            return Err(Failure::Usage(format!("--agent: {}", reasons.join("; "))));
        }
        let schema_file = self.config.with_file_name(SCHEMA_FILE);
        // Both or none: a half-done start would need --force to be finished.
        if !self.force
            && let Some(there) = [&self.config, &schema_file].into_iter().find(|file| file.exists())
        {
            return Err(Failure::Refused(format!("{} exists; --force replaces it", there.display())));
        }
        write(&schema_file, &schema_text(), self.force)?;
        write(&self.config, &text, self.force)?;
        show::print_line(&self.config.display().to_string());
        for said in &remarks {
            remark(said);
        }
        remark(&format!("serve it with `chancery serve --config {}`", self.config.display()));
        Ok(())
    }
}

/// The config that an `a2a.toml` means, or every fault of it at once.
fn taken_over(file: &Path) -> Result<TakenOver, Failure> {
    let text =
        std::fs::read_to_string(file).map_err(|error| Failure::Refused(format!("cannot read {}: {error}", file.display())))?;
    from_rvagent(&text).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(|fault| format!("{}:{fault}", file.display())).collect();
        Failure::Refused(lines.join("\n"))
    })
}

/// The schema as it is printed and written.
pub(super) fn schema_text() -> String {
    format!("{:#}\n", schema())
}

fn write(file: &Path, text: &str, over: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    if over {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(file).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::Refused(format!("cannot write {}: {error}", file.display())))
}
