//! `chancery send`: a message to an agent of any version and binding, and what it answers.

mod answer;
mod message;

use std::time::Duration;

use chancery::protocol::{Binding, Reply, Request, SendMessage};
use chancery_outbound::client::{CallConditions, ClientError};
use chancery_outbound::{AgentClient, ClientLimits, EventStream, Interface, TypedAgent, TypedUrl};

use self::answer::{StreamProgress, show_reply};
use self::message::MessageFlags;
use super::credentials::{CredentialArgs, warn_of_plain};
use super::interface_flags::InterfaceFlags;
use super::{Failure, Shared, nearby, remark, show};

/// How long an agent may take to show its card.
const CARD_WITHIN: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  chancery send hello                                     to the node on this machine
  chancery send parrot hello                              to its agent named parrot
  chancery send https://agent.example.org hello           to a remote agent, in the version and binding of its card
  chancery send --binding GRPC --a2a-version 0.3 https://agent.example.org hello
  chancery send swp://agents.example.org:7777/echo hello  over SWP
  chancery send --stream 'stream 5 200'                   print the answer as it arrives
  chancery send --task TASK 'complete blue'               answer a task that asked for something
  chancery send --skill translate --budget 0.25 hello     ask for one skill, with a budget of 0.25 USD
  chancery send --data '{\"city\":\"Bern\"}' --file map.png 'what is this?'
  chancery send --metadata customer=42 --idempotency-key order-7 'ship it'
  chancery --data FOLDER send hello                       to the node with that data folder
  echo long text | chancery send -                        take the text from stdin
  CHANCERY_KEY=$KEY chancery send hello                   as the caller with that key
  chancery send --sign-with agent.pem hello               as the agent with that key, by a signature

The command fetches the agent's card first and uses its version, binding and address. It calls an agent without a card at the URL itself,
as A2A 1.0 over JSON-RPC. --binding and --a2a-version override both.

The answer's text goes to stdout. The task's id, its state and its cost, if the agent reports one, go to stderr. With --json stdout has
the answer in the JSON of A2A 1.0, one object per line, also if the agent uses another version.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SendCommand {
    /// The agent, by its URL or by its name on the node of this machine [default: that node's first agent], and the text; `-`
    /// reads the text from stdin
    #[arg(num_args = 1..=2, value_names = ["URL|NAME", "TEXT"], required_unless_present_any = ["data", "files"])]
    words: Vec<String>,
    /// The agent's address [default: the node on this machine]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The agent's name on that node [default: the node's first]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Print events as they arrive
    #[arg(long)]
    stream: bool,
    /// Print the task's id as soon as the agent returns it, and do not wait for the answer
    #[arg(long, conflicts_with = "stream")]
    no_wait: bool,
    #[command(flatten)]
    interface: InterfaceFlags,
    /// How many seconds to wait for an answer, or for the next event of a stream
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    #[command(flatten)]
    message: MessageFlags,
    #[command(flatten)]
    credentials: CredentialArgs,
}

/// A message on its way to one agent.
struct Sending<'a> {
    agent: &'a TypedAgent,
    conditions: CallConditions,
    limits: ClientLimits,
    json: bool,
    is_stream: bool,
    no_wait: bool,
}

impl SendCommand {
    pub(super) async fn run(mut self, shared: &Shared) -> Result<(), Failure> {
        self.address()?;
        let (mut url, trust) = match &self.url {
            Some(url) => (url.clone(), None),
            None => nearby::place(shared).map(|place| (place.url, Some(place.trust)))?,
        };
        if let Some(agent) = &self.agent {
            url = format!("{}/agents/{agent}", url.trim_end_matches('/'));
        }
        let wanted = self.interface.wanted()?;
        let is_nearby = trust.is_some();
        let typed = TypedUrl::new(&url, self.credentials.terms(trust)?)?;
        let typed = if is_nearby { typed.staying_here() } else { typed };
        warn_of_plain(&typed);
        let send = self.message.message(self.words.last().map(String::as_str), self.no_wait)?;
        let timeout = Duration::from_secs(self.timeout);
        let agent = TypedAgent::find(typed, wanted, timeout.min(CARD_WITHIN)).await?;
        self.tell_of_guesses(&agent);
        let mut conditions = agent.conditions()?;
        conditions.idempotency_key = self.message.idempotency_key.clone();
        if !self.stream {
            conditions.deadline = Some(timeout);
        }
        let sending = Sending {
            agent: &agent,
            conditions,
            limits: limits(timeout),
            json: shared.json,
            is_stream: self.stream,
            no_wait: self.no_wait,
        };
        sending.put(send).await
    }

    /// The first of two words says whom, as the options do. So does an only word that is a URL, where the message is data or files.
    fn address(&mut self) -> Result<(), Failure> {
        let is_only_address = self.words.len() == 1
            && self.message.has_parts()
            && self.words[0].contains("://")
            && !self.words[0].contains(char::is_whitespace);
        if self.words.len() < 2 && !is_only_address {
            return Ok(());
        }
        let whom = self.words.remove(0);
        if self.url.is_some() || self.agent.is_some() {
            return Err(Failure::Usage(format!(
                "{whom:?} says whom to send to, and --url or --agent does too; quote a text of several words"
            )));
        }
        if whom.contains("://") {
            self.url = Some(whom);
        } else {
            self.agent = Some(whom);
        }
        Ok(())
    }

    /// What the operator should know who relies on the card, or on a budget being kept.
    fn tell_of_guesses(&self, agent: &TypedAgent) {
        if let (Some(reason), [interface, ..]) = (agent.without_card(), agent.interfaces()) {
            let (version, binding) = (interface.version, interface.binding.as_str());
            remark(&show::safe(&format!("{reason}; it is called as A2A {version} over {binding}")));
        }
        if agent.typed().terms().secret.is_some() && agent.interfaces().first().is_some_and(|one| one.binding == Binding::Swp) {
            remark("SWP carries no key, so none is shown; show a certificate with --client-cert and --client-key");
        }
        let knows = |card: &chancery::protocol::AgentCard| {
            card.capabilities.extensions.iter().any(|one| one.uri == chancery_core::GOVERNANCE_EXTENSION)
        };
        if self.message.budget.is_some() && !agent.card().is_some_and(knows) {
            remark("the agent's card does not declare budgets; the agent gets --budget and may ignore it");
        }
    }
}

impl Sending<'_> {
    /// Sends the message to the first interface of the agent that knows the method. One that does not know it has done nothing.
    async fn put(&self, send: SendMessage) -> Result<(), Failure> {
        let all = self.agent.interfaces();
        let mut first_refusal = None;
        for (at, interface) in all.iter().enumerate() {
            if self.no_wait && interface.binding == Binding::Swp {
                return Err(Failure::Usage("an agent over SWP is waited for; leave out --no-wait".to_owned()));
            }
            let client = self.agent.client(interface, self.limits.clone())?;
            let send = self.agent.addressed(send.clone(), interface.version, self.conditions.trace);
            match self.call(&client, send).await {
                Ok(answered) => return self.show(answered, interface).await,
                Err(error) if self.agent.may_know_another(&error) && at + 1 < all.len() => {
                    first_refusal.get_or_insert(self.agent.explained(interface, &error));
                }
                Err(error) => {
                    // Of several refusals, the first is of what the card prefers.
                    let refusal = first_refusal.filter(|_| self.agent.may_know_another(&error));
                    return Err(refusal.unwrap_or_else(|| self.agent.explained(interface, &error)).into());
                }
            }
        }
        Err(Failure::Refused("the agent has no interface that can be called".to_owned()))
    }

    async fn call(&self, client: &AgentClient, send: SendMessage) -> Result<Answered, ClientError> {
        if self.is_stream {
            match client.stream(&Request::StreamMessage(send.clone()), &self.conditions).await {
                Err(error) if error.is_no_streaming() => remark("the agent does not stream; its answer comes whole"),
                opened => return opened.map(|events| Answered::Events(Box::new(events))),
            }
        }
        client.call(&Request::SendMessage(send), &self.conditions).await.map(Answered::Whole)
    }

    async fn show(&self, answered: Answered, interface: &Interface) -> Result<(), Failure> {
        let mut events = match answered {
            Answered::Whole(reply) => return show_reply(&reply, self.json),
            Answered::Events(events) => events,
        };
        let mut shown = StreamProgress::default();
        loop {
            match events.next().await {
                Ok(Some(heard)) => shown.take(&heard, self.json),
                Ok(None) => break,
                Err(error) => {
                    shown.end_line();
                    return Err(self.agent.explained(interface, &error).into());
                }
            }
        }
        shown.end_line();
        if let Some(unreadable) = events.unreadable() {
            remark(&show::safe(&format!("{} events could not be read; {unreadable}", events.skipped())));
        }
        shown.conclude()
    }
}

/// What an agent answered with.
enum Answered {
    Whole(Reply),
    Events(Box<EventStream>),
}

/// An operator waits for one answer, and may want a large one.
fn limits(timeout: Duration) -> ClientLimits {
    ClientLimits {
        connect_ms: 5_000,
        read_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(1),
        answer_bytes: 256 * 1024 * 1024,
        event_bytes: 64 * 1024 * 1024,
        json_depth: 128,
        json_nodes: 10_000_000,
        retries: 0,
        ..ClientLimits::default()
    }
}
