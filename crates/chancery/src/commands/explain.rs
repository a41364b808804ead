//! `chancery explain`: the verdict and the facts of each rule about a call, in the order of evaluation.

use serde_json::Value;

use super::node_args::NodeArgs;
use super::{Failure, Shared, nearby, show};

const EXAMPLES: &str = "\
Examples:
  chancery explain TASK             the rules that admitted a task, its limits, and its cost
  chancery explain DECISION         why a call was rejected; the error contains decision=ID
  chancery explain                  the newest rejections, and the newest decisions about messages to running tasks
  chancery explain TASK --json

The node evaluates the rules in this order and stops at the first rejection: lineage, freeze, budget, recursion, selector, policy.
The rule `memory` is evaluated each time a task reads shared memory: it checks the grant.
For a remote agent the rule `selector` shows where the agent receives the lineage. `sent` is the bytes of lineage in the last call.
The rule `answer` shows an answer that the node could not decode: its structure, without its content.

In a budget, hint_usd is the caller's estimate and estimate_usd is the amount that the node reserved. A cap is never exceeded if the
price is in the config or on the card. With a learnt price (observed, policy, remainder) a cap can be exceeded.
The excess is at most the sum of (report - reservation) over some calls of that agent and skill.
These are the calls in flight when the node settled the first report above its reservation.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Explain {
    #[command(flatten)]
    node: NodeArgs,
    /// A task, or a decision [default: list the newest decisions]
    #[arg(value_name = "TASK|DECISION")]
    id: Option<String>,
    /// How many decisions to list
    #[arg(long, value_name = "COUNT", default_value_t = 20, conflicts_with = "id")]
    limit: usize,
}

impl Explain {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let admin = nearby::admin(shared, &self.node)?;
        let answer = match &self.id {
            // As it stands in the error.
            Some(id) => admin.explain(id.strip_prefix("decision=").unwrap_or(id)).await?,
            None => admin.decisions(self.limit).await?,
        };
        if shared.json {
            show::print_json(&answer.to_string());
        } else if self.id.is_none() {
            show::print(&list(&answer["decisions"]));
        } else if answer["decision"].is_object() {
            show::print(&decision(&answer["decision"]));
        } else {
            show::print(&task(&answer));
        }
        Ok(())
    }
}

fn list(decisions: &Value) -> String {
    let head = ["DECISION", "AT", "CALLER", "AGENT", "VERDICT"].map(str::to_owned);
    let row = |decision: &Value| {
        [
            show::text(&decision["id"]),
            show::text(&decision["at"]),
            caller(decision),
            show::text(&decision["agent"]),
            verdict(decision),
        ]
    };
    let rows = show::items(decisions);
    if rows.is_empty() { String::new() } else { show::columns(std::iter::once(head).chain(rows.iter().map(row)).collect()) }
}

fn caller(of: &Value) -> String {
    format!("{}/{}", show::text(&of["tenant"]), show::text(&of["caller"]))
}

fn verdict(decision: &Value) -> String {
    if decision["refused"].is_string() { show::text(&decision["refused"]) } else { "admitted".to_owned() }
}

/// A refusal, or a message that a task went on with.
fn decision(decision: &Value) -> String {
    let mut facts = vec![
        ["decision".to_owned(), show::text(&decision["id"])],
        ["verdict".to_owned(), verdict(decision)],
        ["at".to_owned(), show::text(&decision["at"])],
        ["caller".to_owned(), caller(decision)],
        ["agent".to_owned(), show::text(&decision["agent"])],
    ];
    for name in ["task", "root", "trace"] {
        if decision[name].is_string() {
            facts.push([name.to_owned(), show::text(&decision[name])]);
        }
    }
    let page = match decision["page"].as_str() {
        Some(page) => format!("\n{} is explained in {}\n", verdict(decision), show::safe(page)),
        None => String::new(),
    };
    format!("{}\n{}{page}", show::columns(facts), verdicts(&decision["verdicts"]))
}

fn task(answer: &Value) -> String {
    let (lineage, spend) = (&answer["lineage"], &answer["spend"]);
    let amount = |of: &Value| format!("{} USD, {} tokens", show::text(&of["usd"]), show::text(&of["tokens"]));
    let mut facts = [
        ["task", &show::text(&answer["task"])],
        ["state", &show::state_name(answer["state"].as_str().unwrap_or_default())],
        ["made", &show::text(&answer["created_at"])],
        ["caller", &caller(answer)],
        ["agent", &show::text(&answer["agent"])],
        ["skill", &show::text(&lineage["skill"])],
        ["trace", &show::text(&lineage["trace"])],
        ["root", &show::text(&lineage["root"])],
        ["parent", &show::text(&lineage["parent"])],
        ["depth", &format!("{} ({})", show::text(&lineage["depth"]), show::text(&lineage["attribution"]))],
        ["reserved", &amount(&spend["reserved"])],
        ["settled", &amount(&spend["settled"])],
    ]
    .map(|row| row.map(|cell: &str| cell.to_owned()))
    .to_vec();
    if answer["reason"].is_string() {
        facts.insert(2, ["reason".to_owned(), show::text(&answer["reason"])]);
    }
    if ["usd", "tokens"].iter().any(|of| !show::is_nothing(&spend["overrun"][of])) {
        facts.push(["overrun".to_owned(), amount(&spend["overrun"])]);
    }
    let sources = format!("estimate: {}, actual: {}", show::text(&spend["estimated_by"]), show::text(&spend["known_by"]));
    facts.push(["known by".to_owned(), sources]);
    facts.extend(guarantee(spend["estimated_by"].as_str().unwrap_or_default()).map(|cap| ["caps".to_owned(), cap.to_owned()]));
    if lineage["claimed"].is_object() {
        facts.push(["claimed".to_owned(), show::safe(&lineage["claimed"].to_string())]);
    }
    facts.extend(sent(&answer["lineage_sent"]).map(|sent| ["sent".to_owned(), sent]));
    let later = show::items(&answer["later"]).iter().map(|later| format!("\n{}", decision(later)));
    format!("{}\n{}{}", show::columns(facts), verdicts(&answer["verdicts"]), later.collect::<String>())
}

/// How many bytes the lineage of a task added to the call of its agent. Known while the task is open, and for a moment after it.
fn sent(lineage: &Value) -> Option<String> {
    let bytes = lineage["bytes"].as_u64()?;
    let cut = if lineage["cut"] == true { "; cut to fit" } else { "" };
    let (by, most) = (show::text(&lineage["by"]), show::text(&lineage["max_bytes"]));
    Some(format!("{bytes} bytes of lineage by {by}, of at most {most}{cut}"))
}

/// What the caps of a call are worth, by where its estimate came from. Without a cap the list is empty.
fn guarantee(estimated_by: &str) -> Option<&'static str> {
    match estimated_by.strip_suffix("+hint").unwrap_or(estimated_by) {
        "config" | "card" => Some("hold: the price is known beforehand"),
        "observed" | "policy" | "remainder" => {
            Some("hold, but for what calls in flight report above their reservations: the price is learnt")
        }
        _ => None,
    }
}

/// A line for each rule that was asked.
fn verdicts(verdicts: &Value) -> String {
    let row = |(place, verdict): (usize, &Value)| {
        let said = if verdict["passed"] == true { "passed" } else { "REFUSED" };
        let facts =
            show::items(&verdict["facts"]).iter().map(|fact| format!("{}={}", show::text(&fact[0]), show::text(&fact[1])));
        [(place + 1).to_string(), show::text(&verdict["rule"]), said.to_owned(), facts.collect::<Vec<_>>().join("  ")]
    };
    show::columns(show::items(verdicts).iter().enumerate().map(row).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_is_told_what_its_caps_are_worth() {
        let shown = |estimated_by: &str| task(&json!({ "spend": { "estimated_by": estimated_by } }));
        for known in ["config", "config+hint", "card", "card+hint"] {
            assert!(shown(known).contains("caps      hold: the price is known beforehand\n"), "{known}: {}", shown(known));
        }
        for learnt in ["observed", "observed+hint", "policy", "remainder"] {
            assert!(shown(learnt).contains("caps      hold, but for what calls in flight report"), "{learnt}: {}", shown(learnt));
        }
        assert!(!shown("none").contains("caps"));
    }

    #[test]
    fn a_task_that_failed_says_why_below_its_state() {
        let shown = task(&json!({ "state": "TASK_STATE_FAILED", "reason": "agent front: model down\u{1b}[2J" }));
        assert!(shown.contains("state     failed\nreason    agent front: model down"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "an agent's words reach the terminal without control characters");
        assert!(!task(&json!({ "state": "TASK_STATE_COMPLETED", "reason": null })).contains("reason"));
    }

    #[test]
    fn a_task_says_how_many_bytes_its_lineage_added() {
        let shown = |sent: serde_json::Value| task(&json!({ "lineage_sent": sent }));
        let sent = shown(json!({ "by": "header", "bytes": 812, "max_bytes": 2048, "cut": false }));
        assert!(sent.contains("812 bytes of lineage by header, of at most 2048\n"), "{sent}");
        let cut = shown(json!({ "by": "both", "bytes": 250, "max_bytes": 256, "cut": true }));
        assert!(cut.contains("250 bytes of lineage by both, of at most 256; cut to fit\n"), "{cut}");
        assert!(!shown(json!(null)).contains("bytes of lineage"));
    }

    #[test]
    fn a_refusal_is_told_rule_by_rule_with_its_page() {
        let shown = decision(&json!({
            "id": "d1", "at": "now", "tenant": "default", "caller": "ada", "agent": "echo", "refused": "RECURSION_REVISIT",
            "page": "docs/errors/RECURSION_REVISIT.md",
            "verdicts": [
                { "rule": "lineage", "passed": true, "facts": [["attribution", "inferred"]] },
                { "rule": "recursion", "passed": false, "facts": [["path", "a → b → a"], ["depth", 2]] },
            ],
        }));
        assert!(shown.contains("1  lineage    passed   attribution=inferred\n"), "{shown}");
        assert!(shown.contains("2  recursion  REFUSED  path=a → b → a  depth=2\n"), "{shown}");
        assert!(shown.ends_with("RECURSION_REVISIT is explained in docs/errors/RECURSION_REVISIT.md\n"), "{shown}");
    }
}
