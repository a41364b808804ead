//! Cards of agents served here: the members every one needs, and the addresses they answer at.

use chancery_protocol::{AgentCapabilities, AgentCard, AgentInterface, AgentSkill};
use url::Url;

/// A card for an agent of this process. Skills, modes and the rest can be changed on it; a card without interfaces gets
/// those of the node that serves it.
pub fn new_card(name: impl Into<String>, description: impl Into<String>) -> AgentCard {
    let (name, description) = (name.into(), description.into());
    let skill = AgentSkill {
        id: "default".to_owned(),
        name: name.clone(),
        description: description.clone(),
        tags: vec!["general".to_owned()],
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        security_requirements: Vec::new(),
    };
    AgentCard {
        name,
        description,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            ..AgentCapabilities::default()
        },
        default_input_modes: vec!["text/plain".to_owned()],
        default_output_modes: vec!["text/plain".to_owned()],
        skills: vec![skill],
        ..AgentCard::default()
    }
}

const VERSIONS: [&str; 2] = ["1.0", "0.3"];

/// Every address an agent mounted at `base` answers at, the preferred one first. gRPC has no paths to mount agents
/// under, so only the agent at the root has `grpc`.
pub(crate) fn interfaces(base: &str, grpc: Option<&str>) -> Vec<AgentInterface> {
    let interface = |version: &str, binding: &str, url: &str| AgentInterface {
        url: url.to_owned(),
        protocol_binding: binding.to_owned(),
        tenant: None,
        protocol_version: version.to_owned(),
    };
    let of_version = |version: &'static str| {
        let http = ["JSONRPC", "HTTP+JSON"].map(|binding| interface(version, binding, base));
        http.into_iter().chain(grpc.map(|authority| interface(version, "GRPC", authority)))
    };
    VERSIONS.into_iter().flat_map(of_version).collect()
}

/// `host:port`, as gRPC clients dial it.
pub(crate) fn authority(public_url: &Url) -> Option<String> {
    Some(format!("{}:{}", public_url.host_str()?, public_url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_address_is_json_rpc_of_the_newest_version_and_each_pair_is_there_once() {
        let addresses = interfaces("http://h:1/agents/a", Some("h:1"));
        let pairs: Vec<_> = addresses.iter().map(|one| (&*one.protocol_version, &*one.protocol_binding, &*one.url)).collect();
        assert_eq!(
            pairs,
            [
                ("1.0", "JSONRPC", "http://h:1/agents/a"),
                ("1.0", "HTTP+JSON", "http://h:1/agents/a"),
                ("1.0", "GRPC", "h:1"),
                ("0.3", "JSONRPC", "http://h:1/agents/a"),
                ("0.3", "HTTP+JSON", "http://h:1/agents/a"),
                ("0.3", "GRPC", "h:1"),
            ]
        );
        assert_eq!(interfaces("http://h:1", None).len(), 4);
    }

    #[test]
    fn an_authority_always_names_its_port() {
        for (url, expected) in [("http://h:1/x", "h:1"), ("https://h", "h:443"), ("http://[::1]:7/", "[::1]:7")] {
            assert_eq!(authority(&Url::parse(url).unwrap()).as_deref(), Some(expected));
        }
    }
}
