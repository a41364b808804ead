//! `chancery card`: an agent's card, who signed it, and what is wrong with it.

mod card_keys;
mod lint;
mod verify;

use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use chancery::protocol::{AgentId, GetExtendedCard, Request};
use chancery_outbound::discovery::{CardDeviation, deviations, leniencies};
use chancery_outbound::{Conditions, FetchedCard, Peer, Terms, Trust};
use chancery_wire::tolerant::Leniency;
use serde_json::{Value, json};

use self::card_keys::{Origin, Pins};
use self::lint::{Finding, Severity, lint};
use self::verify::{Signature, State, verify};
use super::credentials::{Credentials, warn_of_plain};
use super::{Failure, Shared, nearby, show};

const FETCH_WITHIN: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  chancery card                                            of the node on this machine
  chancery card http://127.0.0.1:7420/agents/parrot        of one of its agents
  chancery card https://agent.example.org                  at /.well-known/agent-card.json there
  chancery card https://agent.example.org/card.json        at exactly this address
  chancery card card.json                                  in a file; `-` reads stdin
  chancery card --a2a-version 0.3 https://agent.example.org
  chancery card --agent-id ID https://agent.example.org    signed by that agent, or it is refused
  chancery card --extended --key-file planner.key          what only callers who prove who they are get to see

Signatures are verified with the keys at the address they name, if that is where the card came from, or with those you
give. Exit code 1 when a signature does not verify, or when the card lacks what its version requires.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Card {
    /// The agent's address, or a file with a card [default: the node on this machine]
    #[arg(value_name = "URL|FILE")]
    from: Option<String>,
    /// The protocol version to ask for; `none` lets the server choose
    #[arg(long, value_name = "VERSION", default_value = "1.0")]
    a2a_version: String,
    /// Ask for the extended card, as a caller (A2A 1.0 over JSON-RPC)
    #[arg(long)]
    extended: bool,
    /// Verify with the public keys in this file only: JWK, JWKS or PEM
    #[arg(long, visible_alias = "key", value_name = "FILE")]
    verify_key: Option<PathBuf>,
    /// The agent that must have signed the card, by the id of its key
    #[arg(long, value_name = "ID")]
    agent_id: Option<AgentId>,
    /// An unsigned card, or one whose key is unknown, is a failure too
    #[arg(long)]
    require_signature: bool,
    #[command(flatten)]
    credentials: Credentials,
}

/// What `from` turned out to be.
enum From {
    Nearby(String, Trust),
    Web(String),
    Paper(String),
}

impl Card {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let pins = Pins { keys: self.verify_key.as_deref().map(Pins::read_keys).transpose()?, agent_id: self.agent_id.clone() };
        let (fetched, signature) = match self.from(shared)? {
            From::Paper(text) => {
                let fetched = on_paper(self.from.clone().unwrap_or_default(), text)?;
                let signature = verify(&fetched.text, &fetched.card, &Origin::Paper, &pins).await;
                (fetched, signature)
            }
            From::Nearby(url, trust) => {
                let (peer, fetched) = self.fetch(&url, Some(trust)).await?;
                let signature = verify(&fetched.text, &fetched.card, &Origin::Nearby(&peer), &pins).await;
                (fetched, signature)
            }
            From::Web(url) => {
                let (_, fetched) = self.fetch(&url, None).await?;
                let origin = Origin::Web(&fetched.url, self.credentials.ca_file());
                let signature = verify(&fetched.text, &fetched.card, &origin, &pins).await;
                (fetched, signature)
            }
        };
        let findings = lint(&fetched.card);
        let tolerated = deviations(&fetched.text);
        if shared.json {
            let found: Vec<_> = findings.iter().map(Finding::to_json).collect();
            let shown = json!({
                "url": fetched.url, "card": fetched.card, "signature": signature.to_json(), "findings": found,
                "leniencies": leniencies(&tolerated),
            });
            show::print_json(&shown.to_string());
        } else {
            show::print(&described(&fetched.url, &fetched.card, &signature, &findings));
            show::print(&overlooked(&tolerated));
        }
        judge(&signature, self.require_signature || pins.are_set(), &findings)
    }

    fn from(&self, shared: &Shared) -> Result<From, Failure> {
        let Some(from) = &self.from else {
            let place = nearby::place(shared)?;
            return Ok(From::Nearby(place.url, place.trust));
        };
        let is_url = ["http://", "https://"].iter().any(|scheme| from.to_ascii_lowercase().starts_with(scheme));
        if is_url {
            return Ok(From::Web(from.clone()));
        }
        if self.extended {
            return Err(Failure::Usage("an extended card comes from an agent: say its URL".to_owned()));
        }
        let mut text = String::new();
        let read = match from.as_str() {
            "-" => std::io::stdin().read_to_string(&mut text).map(|_| text),
            file => std::fs::read_to_string(file),
        };
        let bad =
            |fault| Failure::Usage(format!("{from:?} is not an http or https URL, and not a file that can be read: {fault}"));
        read.map(From::Paper).map_err(bad)
    }

    async fn fetch(&self, url: &str, trust: Option<Trust>) -> Result<(Peer, FetchedCard), Failure> {
        let terms = self.credentials.terms(trust)?;
        if !self.extended {
            // Nobody is asked who they are for a public card, so nothing is shown.
            let peer = Peer::with_terms(url, FETCH_WITHIN, Terms { secret: None, signer: None, ..terms })?;
            let version = (self.a2a_version != "none").then_some(self.a2a_version.as_str());
            let fetched = peer.fetch_card(version).await?;
            return Ok((peer, fetched));
        }
        let peer = Peer::with_terms(url, FETCH_WITHIN, terms.clone())?;
        warn_of_plain(&peer, &terms);
        let ask = Request::GetExtendedCard(GetExtendedCard { tenant: None });
        let answered = peer.call(&ask, &Conditions::default()).await?;
        let fetched = on_paper(url.to_owned(), answered.result)?;
        Ok((peer, fetched))
    }
}

fn on_paper(url: String, text: String) -> Result<FetchedCard, Failure> {
    let read = serde_json::from_str::<Value>(&text).map_err(|fault| fault.to_string());
    let card = read.and_then(|card| if card.is_object() { Ok(card) } else { Err("a card is a JSON object".to_owned()) });
    let card = card.map_err(|fault| Failure::Refused(format!("{} holds no card: {}", show::safe(&url), show::safe(&fault))))?;
    Ok(FetchedCard { url, card, text })
}

fn judge(signature: &Signature, is_required: bool, findings: &[Finding]) -> Result<(), Failure> {
    let why = || signature.reason.as_ref().map(|reason| format!(": {}", show::safe(reason))).unwrap_or_default();
    match signature.state {
        State::Invalid => return Err(Failure::Refused(format!("the card's signature does not verify{}", why()))),
        State::Unsigned if is_required => return Err(Failure::Refused(format!("the card is not signed{}", why()))),
        State::NoKey if is_required => return Err(Failure::Refused(format!("the card's signature cannot be verified{}", why()))),
        _ => {}
    }
    match findings.iter().filter(|finding| finding.severity == Severity::Fault).count() {
        0 => Ok(()),
        faults => Err(Failure::Refused(format!("the card has {faults} fault{}", if faults == 1 { "" } else { "s" }))),
    }
}

fn described(url: &str, card: &Value, signature: &Signature, findings: &[Finding]) -> String {
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
    lines.extend(signature.lines());
    for finding in findings {
        lines.push(format!("{:<13} {}", finding.severity.word(), show::safe(&finding.message)));
    }
    if findings.is_empty() {
        lines.push("lint          nothing to complain about".to_owned());
    }
    lines.join("\n") + "\n"
}

/// The deviations that a node in front of this agent would overlook, by name.
fn overlooked(tolerated: &[CardDeviation]) -> String {
    let line = |leniency: &Leniency| {
        let members = tolerated.iter().filter(|one| one.leniency == *leniency).map(|one| show::safe(&one.member));
        let name = json!(leniency).as_str().unwrap_or_default().to_owned();
        format!("leniency      {name}: a gateway reads the card all the same ({})\n", members.collect::<Vec<_>>().join(", "))
    };
    leniencies(tolerated).iter().map(line).collect()
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
