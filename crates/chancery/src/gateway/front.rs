//! The card of a remote agent as this node serves it: with the node's addresses, and only with promises that
//! the node keeps.

use chancery_outbound::discovery::{Discovered, Verification};
use chancery_outbound::remote::Extended;
use chancery_protocol::{AgentCapabilities, AgentCard, AgentExtension, AgentProvider, Metadata};
use serde_json::json;
use url::Url;

/// The extension that names the agent's own card, and what was changed in it.
pub(crate) const FRONTED: &str = "urn:chancery:fronted:v1";
/// The prefix of extensions that only this node may write. Those of the agent's card are removed.
const OURS: &str = "urn:chancery:";

/// The card without interfaces and schemes, which the node that mounts it adds.
pub(crate) fn front(found: &Discovered, public_url: &Url) -> AgentCard {
    shown(found, &found.card, fronted(found, None), public_url)
}

/// The same for the card that the agent shows to those it knows.
pub(crate) fn front_extended(found: &Discovered, extended: &Extended, public_url: &Url) -> AgentCard {
    shown(found, &extended.card, fronted(found, Some(&extended.verification)), public_url)
}

fn shown(found: &Discovered, theirs: &AgentCard, fronted: AgentExtension, public_url: &Url) -> AgentCard {
    let hosts = &hosts(found, theirs);
    let elsewhere = |url: &Option<String>| url.clone().filter(|url| !is_of_agent(url, hosts));
    let provider = theirs.provider.as_ref().map(|provider| AgentProvider {
        url: if is_of_agent(&provider.url, hosts) { public_url.to_string() } else { provider.url.clone() },
        organization: provider.organization.clone(),
    });
    let mut skills = theirs.skills.clone();
    for skill in &mut skills {
        // They name schemes of a card that is not shown.
        skill.security_requirements.clear();
    }
    let extensions = theirs.capabilities.extensions.iter().filter_map(|extension| extended(extension, hosts));
    AgentCard {
        name: theirs.name.clone(),
        description: theirs.description.clone(),
        version: theirs.version.clone(),
        provider,
        documentation_url: elsewhere(&theirs.documentation_url),
        icon_url: elsewhere(&theirs.icon_url),
        capabilities: AgentCapabilities {
            // Streams are ours: what the agent says is recorded and handed out, however it says it.
            streaming: Some(true),
            // Webhooks are ours too: the node that mounts the card says whether there are any.
            push_notifications: None,
            extensions: extensions.chain([fronted]).collect(),
            extended_agent_card: None,
        },
        default_input_modes: theirs.default_input_modes.clone(),
        default_output_modes: theirs.default_output_modes.clone(),
        skills,
        ..AgentCard::default()
    }
}

/// Where the agent itself is.
fn hosts(found: &Discovered, theirs: &AgentCard) -> Vec<String> {
    let listed = found.card.supported_interfaces.iter().chain(&theirs.supported_interfaces);
    let of_interface = listed.map(|interface| interface.url.as_str());
    // gRPC addresses may come without a scheme.
    let read = |url: &str| Url::parse(&if url.contains("://") { url.to_owned() } else { format!("http://{url}") }).ok();
    of_interface.chain([found.url.as_str()]).filter_map(read).filter_map(|url| url.host_str().map(str::to_lowercase)).collect()
}

/// Whether a URL leads to the agent itself, past this node. One that cannot be read may lead anywhere.
fn is_of_agent(url: &str, hosts: &[String]) -> bool {
    let Ok(url) = Url::parse(url) else { return true };
    url.host_str().is_some_and(|host| hosts.contains(&host.to_lowercase()))
}

/// An extension as we can offer it: nothing in it leads to the agent. A required one stays by its name, which callers have to
/// say.
fn extended(theirs: &AgentExtension, hosts: &[String]) -> Option<AgentExtension> {
    let names_agent = |text: &str| hosts.iter().any(|host| text.to_lowercase().contains(host));
    let params = theirs.params.clone();
    // Written anew, so that no escape hides a name.
    let params = params.filter(|params| !names_agent(&serde_json::Value::Object(params.to_object()).to_string()));
    let hidden = params.is_some() != theirs.params.is_some() || names_agent(&theirs.uri);
    if theirs.uri.starts_with(OURS) || (hidden && !theirs.required) {
        return None;
    }
    Some(AgentExtension { params, ..theirs.clone() })
}

fn fronted(found: &Discovered, extended: Option<&Verification>) -> AgentExtension {
    let agent_ids = match &found.verification {
        Verification::Verified { agent_ids, .. } => agent_ids.clone(),
        _ => Vec::new(),
    };
    let mut params = serde_json::Map::new();
    params.insert("cardDigest".to_owned(), json!(format!("sha256:{}", found.digest)));
    params.insert("cardVersion".to_owned(), json!(found.version.to_string()));
    params.insert("verification".to_owned(), json!(found.verification.name()));
    if let Some(verification) = extended {
        params.insert("extendedVerification".to_owned(), json!(verification.name()));
    }
    if !agent_ids.is_empty() {
        params.insert("agentIds".to_owned(), json!(agent_ids));
    }
    AgentExtension {
        uri: FRONTED.to_owned(),
        description: "Served by a gateway for a remote agent; digest and verification belong to the card of that agent"
            .to_owned(),
        required: false,
        params: Some(Metadata::from_object(params)),
    }
}
