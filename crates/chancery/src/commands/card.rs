//! `chancery card`: fetches an agent's card, shows it and says what is wrong with it.

mod lint;

use std::time::Duration;

use chancery_outbound::Peer;
use serde_json::{Value, json};

use self::lint::{Finding, Severity, lint};
use super::{Failure, Shared, nearby, show};

const FETCH_WITHIN: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  chancery card                                            of the node on this machine
  chancery card http://127.0.0.1:7420/agents/parrot        of one of its agents
  chancery card https://agent.example.org                  at /.well-known/agent-card.json there
  chancery card https://agent.example.org/card.json        at exactly this address
  chancery card --a2a-version 0.3 https://agent.example.org

Exit code 1 when the card lacks what its version requires.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Card {
    /// The agent's address [default: the node on this machine]
    url: Option<String>,
    /// The protocol version to ask for; `none` lets the server choose
    #[arg(long, value_name = "VERSION", default_value = "1.0")]
    a2a_version: String,
}

impl Card {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let url = self.url.map_or_else(|| nearby::url(shared), Ok)?;
        let version = (self.a2a_version != "none").then_some(self.a2a_version.as_str());
        let fetched = Peer::new(&url, FETCH_WITHIN)?.fetch_card(version).await?;
        let findings = lint(&fetched.card);
        if shared.json {
            let found: Vec<_> = findings.iter().map(Finding::to_json).collect();
            show::print_json(&json!({ "url": fetched.url, "card": fetched.card, "findings": found }).to_string());
        } else {
            show::print(&described(&fetched.url, &fetched.card, &findings));
        }
        match findings.iter().filter(|finding| finding.severity == Severity::Fault).count() {
            0 => Ok(()),
            faults => Err(Failure::Refused(format!("the card has {faults} fault{}", if faults == 1 { "" } else { "s" }))),
        }
    }
}

fn described(url: &str, card: &Value, findings: &[Finding]) -> String {
    let text = |value: &Value| show::safe(value.as_str().unwrap_or("-"));
    let mut lines = vec![
        format!("{} {}", text(&card["name"]), text(&card["version"])),
        text(&card["description"]),
        format!("card          {}", show::safe(url)),
    ];
    for (binding, version, address) in addresses(card) {
        lines.push(format!("interface     {:<10} {:<6} {}", show::safe(&binding), show::safe(&version), show::safe(&address)));
    }
    let able = |name: &str| if card["capabilities"][name] == true { "yes" } else { "no" };
    lines.push(format!("streaming     {}", able("streaming")));
    lines.push(format!("push          {}", able("pushNotifications")));
    for skill in card["skills"].as_array().into_iter().flatten() {
        lines.push(format!("skill         {}: {}", text(&skill["id"]), text(&skill["description"])));
    }
    if card["signatures"].as_array().is_some_and(|signatures| !signatures.is_empty()) {
        lines.push("signatures    present, not verified".to_owned());
    }
    for finding in findings {
        lines.push(format!("{:<13} {}", finding.severity.word(), show::safe(&finding.message)));
    }
    if findings.is_empty() {
        lines.push("lint          nothing to complain about".to_owned());
    }
    lines.join("\n") + "\n"
}

/// Binding, version and URL of each address, in either version's layout.
fn addresses(card: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let newer = card["supportedInterfaces"].as_array().into_iter().flatten();
    let newer: Vec<_> =
        newer.map(|one| (text(&one["protocolBinding"]), text(&one["protocolVersion"]), text(&one["url"]))).collect();
    if !newer.is_empty() {
        return newer;
    }
    let version = text(&card["protocolVersion"]);
    let preferred = card["preferredTransport"].as_str().unwrap_or("JSONRPC").to_owned();
    let others = card["additionalInterfaces"].as_array().into_iter().flatten();
    let others = others.map(|one| (text(&one["transport"]), version.clone(), text(&one["url"])));
    let mut all = vec![(preferred, version.clone(), text(&card["url"]))];
    all.extend(others);
    all.dedup();
    all
}
