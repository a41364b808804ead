//! Cards of agents served here: the members every one needs, and the addresses they answer at.

use chancery_protocol::{AgentCapabilities, AgentCard, AgentInterface, AgentSkill};
use url::Url;

use crate::config::CardBinding;

/// A card for an agent of this process. Skills, modes and the rest can be changed on it; a card without interfaces gets
/// those of the node that serves it.
pub fn new_card(name: impl Into<String>, description: impl Into<String>) -> AgentCard {
    let (name, description) = (name.into(), description.into());
    let skill = AgentSkill::new("default", description.clone()).named(name.clone()).tagged("general");
    AgentCard {
        name,
        description,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() },
        default_input_modes: vec!["text/plain".to_owned()],
        default_output_modes: vec!["text/plain".to_owned()],
        skills: vec![skill],
        ..AgentCard::default()
    }
}

const VERSIONS: [&str; 2] = ["1.0", "0.3"];

/// Every address an agent mounted at `base` answers at, in the order of `bindings`. gRPC has no paths to mount agents under,
/// so it is listed only for an agent that is `at_root` of its host.
pub(crate) fn interfaces(base: &str, at_root: bool, bindings: &[CardBinding]) -> Vec<AgentInterface> {
    let url = Url::parse(base).ok();
    let of_binding = |version: &'static str, binding: &CardBinding| {
        let (name, url) = match binding {
            CardBinding::JsonRpc => ("JSONRPC", Some(base.to_owned())),
            CardBinding::HttpJson => ("HTTP+JSON", Some(base.to_owned())),
            CardBinding::Grpc => ("GRPC", url.as_ref().filter(|_| at_root).map(origin)),
            CardBinding::GrpcTarget => ("GRPC", url.as_ref().filter(|_| at_root).and_then(target)),
        };
        Some(AgentInterface { url: url?, protocol_binding: name.to_owned(), tenant: None, protocol_version: version.to_owned() })
    };
    VERSIONS.into_iter().flat_map(|version| bindings.iter().filter_map(move |binding| of_binding(version, binding))).collect()
}

/// The URL without its path, which gRPC calls do not have.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// `host:port`, as gRPC libraries dial it.
fn target(url: &Url) -> Option<String> {
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CardConfig;

    fn pairs(base: &str, at_root: bool, bindings: &[CardBinding]) -> Vec<(String, String, String)> {
        let interfaces = interfaces(base, at_root, bindings).into_iter();
        interfaces.map(|one| (one.protocol_version, one.protocol_binding, one.url)).collect()
    }

    fn pair(version: &str, binding: &str, url: &str) -> (String, String, String) {
        (version.to_owned(), binding.to_owned(), url.to_owned())
    }

    #[test]
    fn the_preferred_address_is_json_rpc_of_the_newest_version_and_each_pair_is_there_once() {
        let root = "http://h:1";
        let all = ["JSONRPC", "HTTP+JSON", "GRPC"];
        let expected: Vec<_> =
            ["1.0", "0.3"].iter().flat_map(|version| all.map(|binding| pair(version, binding, root))).collect();
        assert_eq!(pairs(root, true, &CardConfig::default().bindings), expected);
        let below = pairs("http://h:1/agents/a", false, &CardConfig::default().bindings);
        assert!(below.iter().all(|(_, binding, url)| binding != "GRPC" && url == "http://h:1/agents/a"), "{below:?}");
    }

    #[test]
    fn a_grpc_target_has_no_scheme_and_always_a_port() {
        for (url, expected) in [("http://h:1/x", "h:1"), ("https://h", "h:443"), ("http://[::1]:7", "[::1]:7")] {
            assert_eq!(pairs(url, true, &[CardBinding::GrpcTarget])[0], pair("1.0", "GRPC", expected));
        }
        assert_eq!(pairs("https://h:2/x", true, &[CardBinding::Grpc])[0], pair("1.0", "GRPC", "https://h:2"));
    }
}
