//! `chancery reload`: the node on this machine reads its config file anew.

use chancery_outbound::CallError;

use super::credentials::OwnCertificate;
use super::nearby::admin;
use super::{Failure, Shared, show};

const EXAMPLES: &str = "\
Examples:
  chancery reload          take over what the file says now, or print all that is wrong with it
  kill -HUP PID            the same, without an answer

A node also sees by itself when its file has changed. A file with faults changes nothing. What cannot change while a node
runs (listen, public_url, data, [store], [keys], [tls], [push], [evidence], [artifacts], [memory]) is a fault too;
docs/configuration.md has the whole list.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Reload {
    #[command(flatten)]
    own: OwnCertificate,
}

impl Reload {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let answer = admin(shared, &self.own)?.reload().await.map_err(|error| match error {
            // The file has faults, as `chancery validate` would say.
            CallError::Refused { code: 422, message } => Failure::Usage(show::safe(&message)),
            CallError::Refused { message, .. } => Failure::Refused(show::safe(&message)),
            error => error.into(),
        })?;
        if shared.json {
            show::print_json(&answer.to_string());
        } else {
            let generation = &answer["generation"];
            let word = if answer["changed"] == true { "holds now" } else { "holds still: the file says nothing else" };
            show::print_line(&format!("generation {generation} {word}"));
        }
        Ok(())
    }
}
