//! `chancery bill`: what was spent, by tree, caller, agent, skill or tenant.

mod account;
mod csv;

use std::time::Duration;

use serde_json::Value;

pub(super) use self::account::line;
use super::duration::duration;
use super::node_args::NodeArgs;
use super::{Failure, Shared, nearby, remark, show};

const EXAMPLES: &str = "\
Examples:
  chancery bill --since 30d                       what each agent cost in the last 30 days
  chancery bill --since 24h --by caller           what each caller spent, as TENANT/NAME
  chancery bill --since 7d --by root              what each delegation tree cost, by its root task (see `chancery tree ID`)
  chancery bill --since 30d --by tenant --csv > bill.csv
  chancery --json bill --since 1h --by skill

The bill has every turn that the node settled in that time, with the reported or the estimated cost. It includes turns of deleted tasks
([retention] max_cost_age_hours) and no running turns. The lines add up to the total, to the millionth of a dollar. In CSV a name that
a spreadsheet would read as a formula has a ' before it.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BillCommand {
    #[command(flatten)]
    node: NodeArgs,
    /// How far back: a number with s, m, h or d, as in 90s, 10m, 24h or 30d
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    since: Duration,
    /// What to add up by
    #[arg(long, value_name = "WHAT", default_value = "agent", value_parser = ["root", "caller", "agent", "skill", "tenant"])]
    by: String,
    /// Print comma-separated values with a header line and without the total
    #[arg(long)]
    csv: bool,
}

impl BillCommand {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        if self.csv && shared.json {
            return Err(Failure::Usage("--csv and --json are two forms of the same answer; choose one".to_owned()));
        }
        let admin = nearby::admin(shared, &self.node)?;
        let bill = admin.bill(self.since.as_secs(), &self.by).await?;
        if shared.json {
            show::print_json(&bill.to_string());
            return Ok(());
        }
        let lines = show::items(&bill["lines"]);
        if self.csv {
            let head = [self.by.as_str(), "usd", "tokens", "tasks"].map(str::to_owned);
            let rows = lines.iter().map(|line| [&self.by, "usd", "tokens", "tasks"].map(|of| plain(&line[of])));
            show::print(&csv::table(std::iter::once(head).chain(rows)));
        } else if lines.is_empty() {
            remark(&format!("nothing was settled since {}", show::text(&bill["since"])));
        } else {
            show::print(&table(&self.by, lines, &bill["total"]));
        }
        if let Some(notice) = incomplete(&bill) {
            remark(&notice);
        }
        Ok(())
    }
}

/// A row for each line, and the total under them.
fn table(by: &str, lines: &[Value], total: &Value) -> String {
    let head = [by.to_uppercase(), "USD".to_owned(), "TOKENS".to_owned(), "TASKS".to_owned()];
    let row =
        |name: String, cost: &Value| [name, show::text(&cost["usd"]), show::text(&cost["tokens"]), show::text(&cost["tasks"])];
    let rows = lines.iter().map(|line| row(show::text(&line[by]), line));
    show::columns(std::iter::once(head).chain(rows).chain([row("total".to_owned(), total)]).collect())
}

/// What is missing from a bill that goes further back than costs are kept.
fn incomplete(bill: &Value) -> Option<String> {
    let (since, kept) = (bill["since"].as_str()?, bill["kept_since"].as_str()?);
    // Both are written alike, so that they sort as texts.
    (since < kept).then(|| {
        let kept = show::safe(kept);
        format!("before {kept} only tasks that are still kept are in the bill ([retention] max_cost_age_hours)")
    })
}

/// A member for programs: nothing where it is not there.
fn plain(value: &Value) -> String {
    if value.is_null() { String::new() } else { show::text(value) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_stand_over_their_total_and_what_has_no_name_is_a_dash() {
        let lines = [
            json!({ "skill": "sum", "usd": "0.030001", "tokens": 12, "tasks": 2 }),
            json!({ "skill": null, "usd": "0", "tokens": 0, "tasks": 1 }),
        ];
        let total = json!({ "usd": "0.030001", "tokens": 12, "tasks": 3 });
        let expected = "SKILL  USD       TOKENS  TASKS\nsum    0.030001  12      2\n-      0         0       1\ntotal  0.030001  12      3\n";
        assert_eq!(table("skill", &lines, &total), expected);
    }

    #[test]
    fn a_bill_that_goes_back_too_far_says_so() {
        let bill = |kept: Value| json!({ "since": "2026-01-02T00:00:00.000Z", "kept_since": kept });
        assert_eq!(incomplete(&bill(Value::Null)), None);
        assert_eq!(incomplete(&bill(json!("2026-01-02T00:00:00.000Z"))), None);
        let notice = incomplete(&bill(json!("2026-01-02T00:00:00.001Z"))).unwrap();
        assert!(notice.contains("max_cost_age_hours"), "{notice}");
    }
}
