//! `chancery freeze` and `chancery thaw`: the stop button, and its release.

use serde_json::Value;

use super::credentials::OwnCertificate;
use super::{Failure, Shared, nearby, remark, show};

const FREEZE_EXAMPLES: &str = "\
Examples:
  chancery freeze tree TASK                        nothing new is done for the tree a task belongs to
  chancery freeze caller planner --why 'runaway'   nothing new of one caller; the reason is shown to it
  chancery freeze caller acme/planner              the same of a caller of another tenant than `default`
  chancery freeze agent research                   nothing new is given to one agent
  chancery freeze tenant acme
  chancery freeze everything
  chancery freeze list                             what is frozen, by whom and since when

From the moment the command returns nothing new is admitted there; callers get FROZEN. It holds over restarts, until
`chancery thaw`. What is running goes on: stop it with `chancery tree TASK --cancel`.";

const THAW_EXAMPLES: &str = "\
Examples:
  chancery thaw tree TASK
  chancery thaw caller planner
  chancery thaw agent research
  chancery thaw everything            only that freeze; others stay
  chancery freeze list                what is frozen";

#[derive(clap::Args)]
#[command(after_help = FREEZE_EXAMPLES)]
pub(super) struct Freeze {
    #[command(flatten)]
    own: OwnCertificate,
    #[command(subcommand)]
    command: FreezeCommand,
    /// Why; kept, and shown to those who are kept out
    #[arg(long, global = true, value_name = "TEXT")]
    why: Option<String>,
}

#[derive(clap::Subcommand)]
enum FreezeCommand {
    /// List what is frozen
    List,
    #[command(flatten)]
    What(What),
}

#[derive(clap::Args)]
#[command(after_help = THAW_EXAMPLES)]
pub(super) struct Thaw {
    #[command(flatten)]
    own: OwnCertificate,
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// A delegation tree, by its trace or any of its tasks
    Tree {
        #[arg(value_name = "TRACE|TASK")]
        id: String,
    },
    /// A caller: NAME of the tenant `default`, or TENANT/NAME
    Caller { name: String },
    /// An agent of the node
    Agent { name: String },
    /// A tenant with all its callers
    Tenant { name: String },
    /// The whole node
    Everything,
}

impl What {
    fn named(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Tree { id } => ("tree", Some(id)),
            Self::Caller { name } => ("caller", Some(name)),
            Self::Agent { name } => ("agent", Some(name)),
            Self::Tenant { name } => ("tenant", Some(name)),
            Self::Everything => ("everything", None),
        }
    }
}

impl Freeze {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.own)?;
        let FreezeCommand::What(what) = &self.command else {
            let answer = admin.freezes().await?;
            if shared.json {
                show::print_json(&answer.to_string());
            } else {
                show::print(&list(&answer["freezes"]));
            }
            return Ok(());
        };
        let (scope, name) = what.named();
        let frozen = admin.freeze(scope, name, self.why.as_deref()).await?;
        if shared.json {
            show::print_json(&frozen.to_string());
            return Ok(());
        }
        show::print_line(&format!("{} frozen", named(&frozen)));
        if frozen["known"] == false {
            remark("nobody of that name is known here yet; whoever comes under it is kept out");
        }
        Ok(())
    }
}

impl Thaw {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.own)?;
        let (scope, name) = self.what.named();
        let thawed = admin.thaw(scope, name).await?;
        if shared.json {
            show::print_json(&thawed.to_string());
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
