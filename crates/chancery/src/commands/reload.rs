//! `chancery reload`: the node on this machine reads its config file again.

use chancery::cli_support::every_key;
use chancery::config::TakesEffect;
use chancery_outbound::CallError;

use super::nearby::admin;
use super::node_args::NodeArgs;
use super::{Failure, Shared, show};

const EXAMPLES: &str = "\
Examples:
  chancery reload          apply the config file, or print all its faults
  kill -HUP PID            the same, without output

The command lists each changed key and when its new value takes effect: at once, or for new connections. The node also detects changes
of its file itself. If the file has a fault, the node changes nothing.";

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
            let word = if answer["changed"] == true { "is active" } else { "is unchanged: the file has no changes" };
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
