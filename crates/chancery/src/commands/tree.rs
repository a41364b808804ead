//! `chancery tree`: a delegation tree, drawn with what each task cost; and its end, from the leaves up.

mod drawn;

use chancery_outbound::Admin;
use serde_json::Value;

use super::node_args::NodeArgs;
use super::{Failure, Shared, nearby, remark, show};

const EXAMPLES: &str = "\
Examples:
  chancery tree TASK                the tree a task belongs to, whichever of its tasks it is
  chancery tree TRACE               all trees of a trace (32 hex digits, as in traceparent)
  chancery tree TASK --cancel       cancel the task and all below it, the deepest first
  chancery tree TRACE --json

HOW shows how the node found the parent of a task: verified (by its hop token), inferred (only one parent is possible), ambiguous
(the strictest of several possible parents), or root (it has no parent). OWN is the cost of the task and ALL the cost of the task
with everything below it, in USD. * marks a task whose agent reported more than the node had reserved for it.

With --cancel the command prints the result for each task: cancelled, already_done, refused, or unreachable (the node has ended the
task, but its agent did not confirm the cancel). The exit code is 1 if a task could not be cancelled.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TreeCommand {
    #[command(flatten)]
    node: NodeArgs,
    /// A trace, or any task
    #[arg(value_name = "TRACE|TASK")]
    id: String,
    /// Cancel the task (or the root of the trace) and everything below it
    #[arg(long)]
    cancel: bool,
    /// Accept an id that the node does not know
    #[arg(long)]
    unknown_ok: bool,
}

impl TreeCommand {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        if self.cancel && !self.unknown_ok {
            return cancel(&admin, &self.id, shared.json).await;
        }
        let answer = admin.trees(&self.id, self.unknown_ok).await?;
        if show::items(&answer["trees"]).is_empty() {
            remark(&format!("there is no tree with the trace or the task {}", show::safe(&self.id)));
        } else if self.cancel {
            return cancel(&admin, &self.id, shared.json).await;
        }
        if shared.json {
            show::print_json(&answer.to_string());
        } else {
            show::print(&drawn::all(&answer));
        }
        Ok(())
    }
}

async fn cancel(admin: &Admin, id: &str, json: bool) -> Result<(), Failure> {
    let answer = admin.cancel_tree(id).await?;
    if json {
        show::print_json(&answer.to_string());
    } else {
        show::print(&cascade(&answer["cascade"]));
    }
    left_over(&answer["cascade"])
}

/// A line for each task, in the order of their cancels.
pub(super) fn cascade(cascade: &Value) -> String {
    let rows = show::items(cascade).iter();
    let cells = rows.map(|one| {
        let [task, agent, outcome] = ["task", "agent", "outcome"].map(|member| show::text(&one[member]));
        [task, agent, outcome, show::safe(one["reason"].as_str().unwrap_or_default())]
    });
    show::columns(cells.collect())
}

/// Whether something may go on.
pub(super) fn left_over(cascade: &Value) -> Result<(), Failure> {
    let tasks = show::items(cascade);
    let may_go_on = tasks.iter().filter(|one| one["outcome"] == "refused" || one["outcome"] == "unreachable").count();
    if may_go_on == 0 {
        remark(&format!("{} of {} cancelled", tasks.iter().filter(|one| one["outcome"] == "cancelled").count(), tasks.len()));
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "{may_go_on} of {} could not be cancelled, or may continue at their remote agents",
        tasks.len()
    )))
}
