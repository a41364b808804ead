//! `chancery freeze` and `chancery thaw`: the stop button, and its release.

use chancery_outbound::ScopeName;
use serde_json::Value;

use super::node_args::NodeArgs;
use super::{Failure, Shared, nearby, remark, show};

const FREEZE_EXAMPLES: &str = "\
Examples:
  chancery freeze tree TASK                        admit no new call in the tree that a task belongs to
  chancery freeze caller planner --why 'runaway'   admit no new call of a caller; the caller sees the reason
  chancery freeze caller acme/planner              the same where two tenants have a caller `planner`
  chancery freeze agent research                   admit no new call to an agent
  chancery freeze tenant acme
  chancery freeze everything
  chancery freeze ls                               what is frozen, by whom and since when

After the command returns, the node admits no new call in that scope and answers FROZEN. The freeze survives restarts and ends with
`chancery thaw`. Running tasks continue: stop them with `chancery tree TASK --cancel`.

A name without a tenant means the caller of that name in any tenant, and the answer shows the tenant. If no caller or several callers
have the name, the command freezes nothing and exits with 1. To freeze a caller that does not exist yet, use --unknown-ok.";

const THAW_EXAMPLES: &str = "\
Examples:
  chancery thaw tree TASK
  chancery thaw caller planner
  chancery thaw agent research
  chancery thaw everything            ends only the freeze of everything; other freezes stay
  chancery freeze ls                  what is frozen";

#[derive(clap::Args)]
#[command(after_help = FREEZE_EXAMPLES)]
pub(super) struct FreezeCommandArgs {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: FreezeCommand,
    /// The reason; stored, and shown in the error of rejected calls
    #[arg(long, global = true, value_name = "TEXT")]
    why: Option<String>,
    /// Accept a name that the node does not know; a caller without a tenant then belongs to `default`
    #[arg(long, global = true)]
    unknown_ok: bool,
}

#[derive(clap::Subcommand)]
enum FreezeCommand {
    /// List the freezes
    #[command(name = "ls", alias = "list")]
    List,
    #[command(flatten)]
    Scope(FreezableScope),
}

#[derive(clap::Args)]
#[command(after_help = THAW_EXAMPLES)]
pub(super) struct Thaw {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    scope: FreezableScope,
    /// Exit with 0 too if nothing is frozen there, or the name is unknown
    #[arg(long, global = true)]
    unknown_ok: bool,
}

#[derive(clap::Subcommand)]
enum FreezableScope {
    /// A delegation tree, by its trace or any of its tasks
    Tree {
        #[arg(value_name = "TRACE|TASK")]
        id: String,
    },
    /// A caller: NAME, or TENANT/NAME where tenants have callers of the same name
    Caller {
        /// The name of the caller
        name: String,
    },
    /// An agent of the node
    Agent {
        /// The name of the agent
        name: String,
    },
    /// A tenant with all its callers
    Tenant {
        /// The name of the tenant
        name: String,
    },
    /// The whole node
    Everything,
}

impl FreezableScope {
    fn named(&self, unknown_ok: bool) -> ScopeName<'_> {
        let (kind, name) = match self {
            Self::Tree { id } => ("tree", Some(id.as_str())),
            Self::Caller { name } => ("caller", Some(name.as_str())),
            Self::Agent { name } => ("agent", Some(name.as_str())),
            Self::Tenant { name } => ("tenant", Some(name.as_str())),
            Self::Everything => ("everything", None),
        };
        ScopeName { kind, name, unknown_ok }
    }
}

impl FreezeCommandArgs {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        let FreezeCommand::Scope(scope) = &self.command else {
            let answer = admin.freezes().await?;
            if shared.json {
                show::print_json(&answer.to_string());
            } else {
                show::print(&list(&answer["freezes"]));
            }
            return Ok(());
        };
        let frozen = admin.freeze(scope.named(self.unknown_ok), self.why.as_deref()).await?;
        if shared.json {
            show::print_json(&frozen.to_string());
            return Ok(());
        }
        show::print_line(&format!("{} frozen", named(&frozen)));
        if frozen["known"] == false {
            remark("the node does not know this name; it will reject calls under it");
        }
        Ok(())
    }
}

impl Thaw {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        let thawed = admin.thaw(self.scope.named(self.unknown_ok)).await?;
        if shared.json {
            show::print_json(&thawed.to_string());
        } else if thawed["thawed"] == false {
            remark(&format!("{} is not frozen", named(&thawed)));
        } else {
            show::print_line(&format!("{} thawed", named(&thawed)));
        }
        Ok(())
    }
}

/// `caller:default/planner`, or `everything`.
fn named(freeze: &Value) -> String {
    let scope = show::text(&freeze["scope"]);
    if freeze["name"].is_string() { format!("{scope}:{}", show::text(&freeze["name"])) } else { scope }
}

fn list(freezes: &Value) -> String {
    let rows = show::items(freezes);
    if rows.is_empty() {
        return String::new();
    }
    let head = ["FROZEN", "SINCE", "BY", "WHY"].map(str::to_owned);
    let row = |freeze: &Value| [named(freeze), show::text(&freeze["at"]), show::text(&freeze["by"]), show::text(&freeze["why"])];
    show::columns(std::iter::once(head).chain(rows.iter().map(row)).collect())
}
