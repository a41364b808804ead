//! `chancery budgets`: every cap something counts against, and how much of it is taken.

use chancery_outbound::ScopeName;
use chancery_rules::MicroUsd;
use serde_json::Value;

use super::node_args::NodeArgs;
use super::{Failure, Shared, nearby, remark, show};

const EXAMPLES: &str = "\
Examples:
  chancery budgets                    a line per cap: of the node, tenants, callers, agents, skills and open trees
  chancery budgets caller             the caps of callers
  chancery budgets caller planner     the caps of one caller, in any tenant; use TENANT/NAME if several tenants have the name
  chancery budgets --json

SPENT counts within the sliding window. HELD is reserved for running tasks. OVER is what agents reported beyond the reservation; it
counts against the cap too. In the bar: █ spent and over, ▒ held, · left. The section [budget] of the config file sets the caps. If no
scope or several scopes have the name, the command prints the candidates and exits with 1.";

const BAR: u128 = 20;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Budgets {
    #[command(flatten)]
    node: NodeArgs,
    /// Only budgets of this kind
    #[arg(value_name = "KIND", value_parser = ["global", "tenant", "caller", "agent", "skill", "tree"])]
    kind: Option<String>,
    /// Only the caps of this name; for a tree, any of its tasks
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Accept a name that the node does not know
    #[arg(long)]
    unknown_ok: bool,
}

impl Budgets {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        let scope = |kind| ScopeName { kind, name: self.name.as_deref(), unknown_ok: self.unknown_ok };
        let answer = admin.budgets(self.kind.as_deref().map(scope)).await?;
        if shared.json {
            show::print_json(&answer.to_string());
            return Ok(());
        }
        let rows: Vec<_> = show::items(&answer["budgets"]).iter().flat_map(rows).collect();
        if rows.is_empty() {
            let of = answer["scope"].as_str().map(|scope| format!(" for {}", show::safe(scope))).unwrap_or_default();
            remark(&format!("nothing is counted{of}: [budget] has no cap, or no caller has sent a call yet"));
            return Ok(());
        }
        let head = ["BUDGET", "WINDOW", "OF", "LIMIT", "SPENT", "HELD", "OVER", "LEFT", ""].map(str::to_owned);
        show::print(&show::columns(std::iter::once(head).chain(rows).collect()));
        Ok(())
    }
}

/// A row for each cap of a budget.
fn rows(budget: &Value) -> impl Iterator<Item = [String; 9]> {
    ["usd", "tokens", "tasks"].into_iter().filter(|of| !budget["limit"][of].is_null()).map(move |of| {
        let cell = |name: &str| show::text(&budget[name][of]);
        [
            show::text(&budget["scope"]),
            show::text(&budget["window"]),
            of.to_owned(),
            cell("limit"),
            cell("settled"),
            cell("reserved"),
            cell("overrun"),
            cell("remaining"),
            bar(budget, of),
        ]
    })
}

fn bar(budget: &Value, of: &str) -> String {
    let count = |name: &str| count(&budget[name][of]);
    let limit = count("limit").max(1);
    // Something is seen of the smallest amount.
    let cells = |amount: u128| (amount * BAR).div_ceil(limit).min(BAR);
    let spent = cells(count("settled") + count("overrun"));
    let taken = cells(count("settled") + count("overrun") + count("reserved"));
    let draw = |mark: &str, cells: u128| mark.repeat(usize::try_from(cells).unwrap_or_default());
    format!("{}{}{}", draw("█", spent), draw("▒", taken - spent), draw("·", BAR - taken))
}

/// Money in its smallest unit, or a number as it is.
fn count(value: &Value) -> u128 {
    match value {
        Value::Number(number) => number.as_u64().unwrap_or_default().into(),
        money => serde_json::from_value::<MicroUsd>(money.clone()).map_or(0, |usd| u128::try_from(usd.0).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bar_shows_what_is_spent_held_and_left() {
        let budget = |settled: &str, reserved: &str| {
            json!({
                "limit": { "usd": "1", "tokens": null, "tasks": 4 },
                "settled": { "usd": settled, "tasks": 1 }, "reserved": { "usd": reserved, "tasks": 0 }, "overrun": { "usd": "0", "tasks": 9 },
            })
        };
        assert_eq!(bar(&budget("0.5", "0.25"), "usd"), "██████████▒▒▒▒▒·····");
        assert_eq!(bar(&budget("0.000001", "0"), "usd"), "█···················");
        assert_eq!(bar(&budget("0", "1"), "usd"), "▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒");
        assert_eq!(bar(&budget("0", "0"), "tasks"), "████████████████████", "an overrun does not draw past the end");
        assert_eq!(rows(&budget("0", "0")).count(), 2);
    }
}
