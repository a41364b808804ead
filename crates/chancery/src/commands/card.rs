//! `chancery card`: an agent's card, who signed it, and what is wrong with it.

mod card_keys;
mod lint;
mod verify;

use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use chancery::protocol::{AgentCard, AgentId, Binding, GetExtendedCard, Reply, Request, Version};
use chancery_outbound::discovery::{CardDeviation, deviations, leniencies};
use chancery_outbound::{ClientLimits, ConnectionTerms, FetchedCard, TrustedRoots, TypedAgent, TypedUrl, WantedInterface};
use chancery_wire::Codec as _;
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::tolerant::Leniency;
use serde_json::{Value, json};

use self::card_keys::{CardSource, Pins};
use self::lint::{Finding, Severity, lint};
use self::verify::{Signature, State, verify};
use super::credentials::{CredentialArgs, warn_of_plain};
use super::interface_flags::{binding, version};
use super::{Failure, Shared, nearby, show};

const FETCH_WITHIN: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  chancery card                                            of the node on this machine
  chancery card http://127.0.0.1:7420/agents/parrot        of one of its agents
  chancery card https://agent.example.org                  at /.well-known/agent-card.json or agent.json there
  chancery card https://agent.example.org/card.json        at exactly this address
  chancery card swp://agents.example.org:7777/echo         over SWP
  chancery card card.json                                  in a file; `-` reads stdin
  chancery card --a2a-version 0.3 https://agent.example.org
  chancery card --agent-id ID https://agent.example.org    signed by that agent, or it is refused
  chancery card --extended --key-file planner.key          the card for authenticated callers
  chancery card --extended --binding GRPC https://agent.example.org

Signatures are verified with the keys at the address they name, if that is where the card came from, or with those you
give. Exit code 1 when a signature does not verify, or when the card lacks what its version requires.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Card {
    /// The agent's URL, or a file with a card [default: the node on this machine]
    #[arg(value_name = "URL|FILE")]
    from: Option<String>,
    /// The protocol version to ask for: 1.0, 0.3 or original; `none` lets the server choose [default: 1.0]
    #[arg(long, value_name = "VERSION", value_parser = asked_version)]
    a2a_version: Option<AskedVersion>,
    /// Ask for the extended card too, with the caller's credentials
    #[arg(long)]
    extended: bool,
    /// Ask for the extended card over this binding: JSONRPC, HTTP+JSON or GRPC
    #[arg(long, value_name = "BINDING", requires = "extended", value_parser = binding)]
    binding: Option<Binding>,
    /// Verify with the public keys in this file only: JWK, JWKS or PEM
    #[arg(long, visible_alias = "key", value_name = "FILE")]
    verify_key: Option<PathBuf>,
    /// The AgentID that must have signed the card
    #[arg(long, value_name = "ID")]
    agent_id: Option<AgentId>,
    /// Fail if the card is unsigned or its key is unknown
    #[arg(long)]
    require_signature: bool,
    #[command(flatten)]
    credentials: CredentialArgs,
}

/// The version of the requested card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AskedVersion {
    This(Version),
    Any,
}

fn asked_version(text: &str) -> Result<AskedVersion, &'static str> {
    if text == "none" { Ok(AskedVersion::Any) } else { version(text).map(AskedVersion::This) }
}

/// What `from` turned out to be.
enum From {
    Nearby(String, TrustedRoots),
    Web(String),
    Paper(String),
}

impl Card {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let pins = Pins { keys: self.verify_key.as_deref().map(Pins::read_keys).transpose()?, agent_id: self.agent_id.clone() };
        let (fetched, signature) = match self.from(shared)? {
            From::Paper(text) => {
                let fetched = on_paper(self.from.clone().unwrap_or_default(), text)?;
                let signature = verify(&fetched.text, &fetched.card, &CardSource::Paper, &pins).await;
                (fetched, signature)
            }
            From::Nearby(url, trust) => {
                let (node, fetched) = self.fetch(&url, Some(trust)).await?;
                let signature = verify(&fetched.text, &fetched.card, &CardSource::Nearby(&node), &pins).await;
                (fetched, signature)
            }
            From::Web(url) => {
                let (typed, fetched) = self.fetch(&url, None).await?;
                let origin = CardSource::Web(&fetched.url, &typed);
                let signature = verify(&fetched.text, &fetched.card, &origin, &pins).await;
                (fetched, signature)
            }
        };
        // An extended card of 0.3 is read and written again on its way here, which no signature outlives.
        let is_rewritten = self.extended && fetched.card["protocolVersion"].is_string();
        let signature =
            if is_rewritten { Signature::unchecked("ask with --a2a-version 1.0 to have it checked") } else { signature };
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
        let is_url =
            ["http://", "https://", "swp://", "swps://"].iter().any(|scheme| from.to_ascii_lowercase().starts_with(scheme));
        if is_url {
            return Ok(From::Web(from.clone()));
        }
        if self.extended {
            return Err(Failure::Usage("an extended card needs the URL of its agent".to_owned()));
        }
        let mut text = String::new();
        let read = match from.as_str() {
            "-" => std::io::stdin().read_to_string(&mut text).map(|_| text),
            file => std::fs::read_to_string(file),
        };
        let bad = |fault| {
            Failure::Usage(format!("{from:?} is not an http, https, swp or swps URL, and not a file that can be read: {fault}"))
        };
        read.map(From::Paper).map_err(bad)
    }

    async fn fetch(&self, url: &str, trust: Option<TrustedRoots>) -> Result<(TypedUrl, FetchedCard), Failure> {
        let is_nearby = trust.is_some();
        let terms = self.credentials.terms(trust)?;
        if !self.extended {
            // Nobody is asked who they are for a public card, so nothing is shown.
            let typed = TypedUrl::new(url, ConnectionTerms { secret: None, signer: None, ..terms })?;
            let version = match self.a2a_version {
                None => Some(Version::V1_0.as_str()),
                Some(AskedVersion::This(version)) => Some(version.as_str()),
                Some(AskedVersion::Any) => None,
            };
            let fetched = typed.fetch_card(version, FETCH_WITHIN).await?;
            return Ok((typed, fetched));
        }
        let typed = TypedUrl::new(url, terms)?;
        let typed = if is_nearby { typed.staying_here() } else { typed };
        warn_of_plain(&typed);
        let version = match self.a2a_version {
            Some(AskedVersion::This(version)) => Some(version),
            None | Some(AskedVersion::Any) => None,
        };
        let agent = TypedAgent::find(typed.clone(), WantedInterface { binding: self.binding, version }, FETCH_WITHIN).await?;
        let fetched = extended(&agent).await?;
        Ok((typed, fetched))
    }
}

/// Asks for the extended card at the first interface that knows what that is.
async fn extended(agent: &TypedAgent) -> Result<FetchedCard, Failure> {
    let ask = Request::GetExtendedCard(GetExtendedCard { tenant: None });
    let mut conditions = agent.conditions()?;
    conditions.deadline = Some(FETCH_WITHIN);
    let mut first_refusal = None;
    for interface in agent.interfaces() {
        let client = agent.client(interface, ClientLimits { retries: 0, ..ClientLimits::default() })?;
        let error = match client.call(&ask, &conditions).await {
            Ok(Reply::Card(card)) => {
                return on_paper(agent.typed().url().to_string(), card_text(interface.version, &card));
            }
            Ok(_) => return Err(Failure::Refused("the agent's answer is not a card".to_owned())),
            Err(error) => error,
        };
        let explained = agent.explained(interface, &error);
        if !agent.may_know_another(&error) {
            return Err(explained.into());
        }
        first_refusal.get_or_insert(explained);
    }
    Err(first_refusal.map_or_else(|| Failure::Refused("the agent has no interface that can be called".to_owned()), Failure::from))
}

/// The card in the JSON of its version.
fn card_text(version: Version, card: &AgentCard) -> String {
    let text = match version {
        Version::V1_0 => V1_0.encode_card(card),
        Version::V0_3 => V0_3.encode_card(card),
        Version::Original => Original.encode_card(card),
    };
    String::from_utf8_lossy(&text).into_owned()
}

fn on_paper(url: String, text: String) -> Result<FetchedCard, Failure> {
    FetchedCard::new(url, text).map_err(Failure::from)
}

fn judge(signature: &Signature, is_required: bool, findings: &[Finding]) -> Result<(), Failure> {
    let why = || signature.reason.as_ref().map(|reason| format!(": {}", show::safe(reason))).unwrap_or_default();
    match signature.state {
        State::Invalid => return Err(Failure::Refused(format!("the card's signature does not verify{}", why()))),
        State::Unsigned if is_required => return Err(Failure::Refused(format!("the card is not signed{}", why()))),
        State::NoKey | State::Unchecked if is_required => {
            return Err(Failure::Refused(format!("the card's signature cannot be verified{}", why())));
        }
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
