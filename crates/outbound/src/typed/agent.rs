//! The agent at an address that was typed: where, in which version and over which binding it is called.

use std::time::Duration;

use chancery_core::GOVERNANCE_EXTENSION;
use chancery_protocol::{AgentCard, Binding, ErrorKind, Json, Metadata, SendMessage, TraceId, Version};
use serde_json::{Value, json};
use url::Url;

use super::TypedUrl;
use crate::client::{AgentClient, CallConditions, ClientError, ClientLimits, Interface, SwpTerms, new_message_id};
use crate::discovery::read;
use crate::error::CallError;
use crate::guard::{TargetHost, as_web};
use crate::remote::address::candidates;
use crate::remote::original;
use crate::remote::{AddressRules, AgentSettings, UrlPermission, callable};

/// What the operator wants to be spoken, where the card is not to decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedInterface {
    pub binding: Option<Binding>,
    pub version: Option<Version>,
}

/// An agent, with the interfaces at which it can be called.
#[derive(Clone, Debug)]
pub struct TypedAgent {
    typed: TypedUrl,
    /// Its card, if it has one that can be read.
    card: Option<AgentCard>,
    /// Why the card does not say how it is called.
    without_card: Option<String>,
    /// The best first. Never empty.
    interfaces: Vec<Interface>,
}

impl TypedAgent {
    /// Asks for the card and chooses. An agent without a card is called at the address that was typed.
    pub async fn find(typed: TypedUrl, wanted: WantedInterface, within: Duration) -> Result<Self, CallError> {
        let version = wanted.version.unwrap_or(Version::V1_0).as_str();
        let shown = typed.url().as_str();
        let without_card = match typed.fetch_card(Some(version), within).await {
            Ok(found) => match read::read(&found.text) {
                Ok((card, shape, _)) => {
                    let interfaces = typed.interfaces(&card, &found.url, shape, wanted)?;
                    return Ok(Self { typed, card: Some(card), without_card: None, interfaces });
                }
                Err(reason) => format!("the card at {} cannot be read ({reason})", found.url),
            },
            Err(CallError::NoCard { .. }) => format!("no card was found for {shown}"),
            // Whoever may not see the card may call all the same.
            Err(CallError::TurnedAway { status, .. }) => format!("the card of {shown} was not shown ({status})"),
            Err(CallError::NotUnderstood { url, reason }) => format!("the card of {url} cannot be read ({reason})"),
            Err(fault) => return Err(fault),
        };
        let interface = typed.by_itself(wanted)?;
        Ok(Self { typed, card: None, without_card: Some(without_card), interfaces: vec![interface] })
    }

    pub fn typed(&self) -> &TypedUrl {
        &self.typed
    }

    pub fn card(&self) -> Option<&AgentCard> {
        self.card.as_ref()
    }

    /// Why there is no card that says how it is called.
    pub fn without_card(&self) -> Option<&str> {
        self.without_card.as_deref()
    }

    /// Where it can be called, the best first.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    pub fn client(&self, interface: &Interface, limits: ClientLimits) -> Result<AgentClient, CallError> {
        let guard = self.typed.guard_for(&interface.url);
        let client = match interface.binding {
            Binding::Swp => AgentClient::over_swp(guard, interface.clone(), limits, &self.swp_terms()),
            _ => AgentClient::new(guard, interface.clone(), limits),
        };
        client.map_err(|error| self.explained(interface, &error))
    }

    /// The conditions of a call. It requests extensions that the agent has; an agent without a card may have
    /// any.
    pub fn conditions(&self) -> Result<CallConditions, CallError> {
        let knows = |card: &AgentCard| card.capabilities.extensions.iter().any(|one| one.uri == GOVERNANCE_EXTENSION);
        let asks = self.card.as_ref().is_none_or(knows);
        Ok(CallConditions {
            credentials: self.typed.terms().credentials()?,
            signer: self.typed.terms().signer.clone(),
            extensions: asks.then(|| GOVERNANCE_EXTENSION.to_owned()).into_iter().collect(),
            ..CallConditions::new(TraceId(uuid::Uuid::now_v7().as_u128()))
        })
    }

    /// The message as an agent of this version wants it. The original protocol lets the client name the task, and its agents want a
    /// skill and a lineage.
    pub fn addressed(&self, mut send: SendMessage, version: Version, trace: TraceId) -> SendMessage {
        if version == Version::Original {
            let skill = send.skill().or_else(|| self.first_skill()).unwrap_or_default();
            let told = original::told(send.metadata.as_ref(), &skill, trace);
            send.metadata = Some(with_policy(told));
            let named = send.message.task_id.as_ref().map_or_else(new_message_id, ToString::to_string);
            send.client_task_id.get_or_insert_with(|| named.into());
        }
        send
    }

    /// The fault of a call, in words for the user of a command line.
    pub fn explained(&self, interface: &Interface, error: &ClientError) -> CallError {
        let guard = self.typed.guard_for(&interface.url);
        CallError::of_client(&interface.url, error, guard, self.typed.terms().shows_something())
    }

    /// Whether an agent that answered this did nothing and may know another version or address.
    pub fn may_know_another(&self, error: &ClientError) -> bool {
        let ClientError::Refused(error) = error else { return false };
        self.card.is_some() && matches!(error.kind, ErrorKind::MethodNotFound | ErrorKind::VersionNotSupported)
    }

    fn first_skill(&self) -> Option<String> {
        self.card.as_ref()?.skills.first().map(|skill| skill.id.clone())
    }

    fn swp_terms(&self) -> SwpTerms {
        let is_a2a = |card: &AgentCard| {
            let mut listed = card.supported_interfaces.iter().filter(|one| Interface::binding_of(one) == Some(Binding::Swp));
            listed.next().is_some_and(|first| first.protocol_binding == chancery_wire::swp::BINDING)
        };
        SwpTerms {
            speaks_a2a: self.card.as_ref().is_some_and(is_a2a),
            skill: self.first_skill(),
            certificate: self.typed.terms().certificate.clone(),
        }
    }
}

impl TypedUrl {
    /// The interfaces of a card that can be called, in the order of the card. One whose URL was typed exactly
    /// goes first.
    fn interfaces(
        &self,
        card: &AgentCard,
        card_url: &str,
        shape: Version,
        wanted: WantedInterface,
    ) -> Result<Vec<Interface>, CallError> {
        let settings = AgentSettings { binding: wanted.binding, version: wanted.version, ..AgentSettings::default() };
        let rules = AddressRules { configured: self.url(), card_url, shape, settings: &settings };
        let callable = callable(rules, card, |url| self.permission(url));
        let mut found = candidates(&callable, None);
        // Where a version is wanted, an entry that states it goes before one that states another.
        found.sort_by_key(|(at, one)| wanted.version.is_some() && !is_stated(card, &callable[*at].listed, one));
        let mut all: Vec<Interface> = found.into_iter().map(|(_, one)| one).collect();
        if let Some(address) = self.caller_address() {
            // Over gRPC and SWP there is no path to say it with.
            all.retain(|one| matches!(one.binding, Binding::JsonRpc | Binding::Rest));
            all.iter_mut().for_each(|one| one.url = by_way_of(&one.url, self.url(), &address));
        }
        let typed = self.url().as_str().trim_end_matches('/');
        all.sort_by_key(|one| one.url.trim_end_matches('/') != typed);
        let callable = all.len();
        if self.stays_here {
            all.retain(|one| self.is_at_same_host(&one.url));
            if all.is_empty() {
                return self.by_itself(wanted).map(|one| vec![one]);
            }
        }
        if self.terms().signer.is_some() {
            all.retain(|one| matches!(one.binding, Binding::JsonRpc | Binding::Rest));
        }
        if self.terms().is_for_one_host() {
            all.retain(|one| self.is_at_same_host(&one.url));
        }
        match (all.is_empty(), callable) {
            (false, _) => Ok(all),
            (true, 0) => Err(CallError::NotPossible { reason: self.nothing_callable(card, wanted) }),
            (true, _) => Err(CallError::NotPossible {
                reason: format!(
                    "the card of {} lists only other hosts, or bindings without signatures ({}); your credentials are for the host of \
                     the URL that you gave. Give the address of the interface instead",
                    self.url(),
                    listed(card)
                ),
            }),
        }
    }

    fn nothing_callable(&self, card: &AgentCard, wanted: WantedInterface) -> String {
        let (url, listed) = (self.url(), listed(card));
        match (wanted.version, wanted.binding) {
            (Some(Version::Original), Some(Binding::Rest | Binding::Grpc | Binding::Swp)) => {
                "the original protocol is spoken over JSON-RPC only; use --binding JSONRPC".to_owned()
            }
            _ => format!(
                "{url} cannot be called: its card lists no address that may be called in a version spoken here ({listed})"
            ),
        }
    }

    /// Where an agent is called whose card says nothing.
    fn by_itself(&self, wanted: WantedInterface) -> Result<Interface, CallError> {
        let is_swp = as_web(self.url().as_str()).is_some();
        let binding = wanted.binding.unwrap_or(if is_swp { Binding::Swp } else { Binding::JsonRpc });
        let version = wanted.version.unwrap_or(Version::V1_0);
        if is_swp != (binding == Binding::Swp) {
            let reason = format!(
                "{} is not called over {}: swp:// and swps:// are SWP, http:// and https:// are the others",
                self.url(),
                binding.as_str()
            );
            return Err(CallError::NotPossible { reason });
        }
        if version == Version::Original && binding != Binding::JsonRpc {
            return Err(CallError::NotPossible {
                reason: self
                    .nothing_callable(&AgentCard::default(), WantedInterface { binding: Some(binding), version: Some(version) }),
            });
        }
        let url = self.url().as_str();
        // The parser adds a slash to a bare host, which some agents take for another path over HTTP+JSON.
        Ok(Interface { url: url.to_owned(), binding, version, tenant: None })
    }

    /// The path that says who calls, where a node gave the caller an address of its own (`chancery agents url`).
    fn caller_address(&self) -> Option<String> {
        let secret = self.url().path().strip_prefix("/via/")?.split('/').next().filter(|secret| !secret.is_empty())?;
        Some(format!("/via/{secret}"))
    }

    fn permission(&self, url: &str) -> UrlPermission {
        match self.guard_for(url).check(url) {
            Err(_) => UrlPermission::Denied,
            Ok(target) if target.is_allowed_host() || matches!(target.host(), TargetHost::Address(_)) => UrlPermission::Named,
            Ok(_) => UrlPermission::Public,
        }
    }
}

/// The cap on a task's cost where agents of the original protocol look for it: those built on `rvagent-a2a` have a policy.
fn with_policy(metadata: Metadata) -> Metadata {
    let budget = metadata.get(GOVERNANCE_EXTENSION).map(|governance| governance["budget"].clone()).unwrap_or_default();
    let Some(Value::Object(mut vendor)) = metadata.get("ruvector").filter(|_| budget.is_object()) else { return metadata };
    // They read a number, and nodes write text to be exact.
    let usd = budget["usd"].as_str().and_then(|usd| serde_json::from_str::<Value>(usd).ok());
    vendor.entry("policy").or_insert_with(|| json!({ "max_cost_usd": usd, "max_tokens": budget["tokens"] }));
    vendor.entry("budget").or_insert(budget);
    metadata.with("ruvector", Json::from_value(&Value::Object(vendor)))
}

/// An address at the node that was typed, with the caller's own path before it. The card does not repeat that path.
fn by_way_of(listed: &str, typed: &Url, address: &str) -> String {
    match Url::parse(listed) {
        Ok(mut url) if url.origin() == typed.origin() && !url.path().starts_with(address) => {
            let path = format!("{address}{}", url.path());
            url.set_path(path.trim_end_matches('/'));
            url.into()
        }
        _ => listed.to_owned(),
    }
}

/// Whether the card states this version for the address that it lists.
fn is_stated(card: &AgentCard, url: &str, interface: &Interface) -> bool {
    card.supported_interfaces.iter().any(|listed| {
        listed.url == url
            && Interface::binding_of(listed) == Some(interface.binding)
            && Interface::version_of(&listed.protocol_version) == Some(interface.version)
    })
}

fn listed(card: &AgentCard) -> String {
    let one = |listed: &chancery_protocol::AgentInterface| {
        format!("{} {} at {}", listed.protocol_binding, listed.protocol_version, listed.url)
    };
    match card.supported_interfaces.as_slice() {
        [] => "none".to_owned(),
        all => all.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_caller_stays_in_every_call_to_its_node_and_goes_nowhere_else() {
        let typed = Url::parse("http://127.0.0.1:7420/via/abc").unwrap();
        let there = |listed: &str| by_way_of(listed, &typed, "/via/abc");
        assert_eq!(there("http://127.0.0.1:7420"), "http://127.0.0.1:7420/via/abc");
        assert_eq!(there("http://127.0.0.1:7420/agents/echo"), "http://127.0.0.1:7420/via/abc/agents/echo");
        assert_eq!(there("http://127.0.0.1:7420/via/abc/x"), "http://127.0.0.1:7420/via/abc/x");
        assert_eq!(there("https://elsewhere.example/x"), "https://elsewhere.example/x");
    }
}
