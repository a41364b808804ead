//! `chancery store`: whether the database of the node on this machine is sound.

use std::path::{Path, PathBuf};

use chancery_store::{Examined, SqliteStore};
use clap::Subcommand;
use serde_json::json;

use super::{Failure, Shared, nearby, show};

const EXAMPLES: &str = "\
Examples:
  chancery store check                    chancery.db in the data folder
  chancery store check --data /srv/node   in another folder
  chancery store check copy.db            a backup, or what `sqlite3 .recover` made

The command reads every page of the file, every task and its log, and lists the damage. It changes nothing. The node may run, but only a
check of a stopped node shows one moment. The exit code is 1 if anything is damaged. Of a PostgreSQL database it reads nothing:
`chancery validate` checks the connection, and pg_amcheck the data.";

/// The answer where the database is no file.
const NOT_A_FILE: &str = "`chancery store check` reads files of SQLite, and this is a PostgreSQL database. `chancery validate` checks the \
                          connection, the version and the rights; run pg_amcheck on the server to check the data";

#[derive(clap::Args)]
pub(super) struct StoreCommandArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Subcommand)]
enum StoreCommand {
    /// List the damage in the database and how to repair it
    Check(Check),
}

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct Check {
    /// The database [default: chancery.db in the data folder]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl StoreCommandArgs {
    pub(super) fn run(self, shared: &Shared) -> Result<(), Failure> {
        match self.command {
            StoreCommand::Check(check) => check.run(shared),
        }
    }
}

impl Check {
    fn run(self, shared: &Shared) -> Result<(), Failure> {
        let file = match self.file {
            // The URL is not repeated: it may hold a password.
            Some(file) if is_url(&file) => return Err(Failure::Usage(NOT_A_FILE.to_owned())),
            Some(file) => file,
            None if std::env::var_os("CHANCERY_STORE").is_some() => return Err(Failure::Usage(NOT_A_FILE.to_owned())),
            None => nearby::folder(shared)?.join("chancery.db"),
        };
        let examined = SqliteStore::examine(&file).map_err(|error| Failure::Usage(error.to_string()))?;
        let Examined { tasks, entries, damage, not_named } = &examined;
        let shown = file.display();
        if shared.json {
            let sound = examined.is_sound();
            let answer = json!({
                "file": file, "sound": sound, "tasks": tasks, "entries": entries, "damage": damage, "notNamed": not_named,
            });
            show::print_json(&answer.to_string());
        } else if examined.is_sound() {
            show::print_line(&format!("{shown} is sound: {tasks} tasks with {entries} entries were read."));
        } else {
            damage.iter().for_each(|what| show::print_line(&format!("damaged: {}", show::safe(what))));
            if *not_named > 0 {
                show::print_line(&format!("damaged: and {not_named} more"));
            }
            show::print_line(&format!("\n{}", what_next(&shown.to_string())));
        }
        match damage.len() as u64 + not_named {
            0 => Ok(()),
            faults => Err(Failure::Refused(format!("{shown} is damaged in {faults} places; {tasks} tasks could be read"))),
        }
    }
}

fn is_url(file: &Path) -> bool {
    file.to_str().is_some_and(|text| ["postgres:", "postgresql:"].iter().any(|scheme| text.starts_with(scheme)))
}

fn what_next(file: &str) -> String {
    format!(
        "What to do:\n\
         1. Stop the node. Copy {file}, {file}-wal and {file}-shm to another disk before anything else touches them.\n\
         2. Put your newest backup in their place, remove {file}-wal and {file}-shm, and start the node. Tasks made since the\n   \
            backup are lost; a caller that retries with its Idempotency-Key creates its task again.\n\
         3. Without a backup, save what can be read and check it before you use it:\n   \
            sqlite3 {file} .recover | sqlite3 recovered.db && chancery store check recovered.db\n\
         docs/operating.md lists what a damaged file and a damaged -wal lose."
    )
}
