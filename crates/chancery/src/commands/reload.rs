//! `chancery reload`: the node on this machine reads its config file again.

use chancery::cli_support::every_key;
use chancery::config::TakesEffect;
use chancery_outbound::CallError;

use super::nearby::admin;
use super::node_args::NodeArgs;
use super::{Failure, Shared, show};

const EXAMPLES: &str = "\
Examples:
  chancery reload          take over what the file says now, or print all that is wrong with it
  kill -HUP PID            the same, without an answer

The answer lists each changed key with when its new value takes effect: live, or for new connections. A node also sees by
itself when its file has changed. A file with faults changes nothing.";

/// The examples, and the keys that the config declares as those that need a restart.
fn after_help() -> String {
    let keys = every_key().into_iter().filter(|key| key.takes_effect == TakesEffect::Restart).map(|key| key.key);
    let mut sections: Vec<String> =
        keys.map(|key| key.rsplit_once('.').map_or(key.clone(), |(path, _)| format!("[{path}]"))).collect();
    sections.dedup();
    format!(
        "{EXAMPLES}\n\nA change of a key that needs a restart is a fault too. Such keys are in: {}.\n\
         docs/configuration.md names each of them.",
        sections.join(", ")
    )
}

#[derive(clap::Args)]
#[command(after_help = after_help())]
pub(super) struct Reload {
    #[command(flatten)]
    node: NodeArgs,
}

impl Reload {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let answer = admin(shared, &self.node)?.reload().await.map_err(|error| match error {
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
            for change in answer["changes"].as_array().into_iter().flatten() {
                let key = show::safe(change["key"].as_str().unwrap_or_default());
                let effect = change["takes_effect"].as_str().unwrap_or_default().replace('_', " ");
                show::print_line(&format!("  {key}: {}", show::safe(&effect)));
            }
        }
        Ok(())
    }
}
