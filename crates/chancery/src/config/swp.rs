//! The `[swp]` section: where SWP peers find this node, and what they are held to.

use std::fmt;
use std::net::SocketAddr;

use chancery_inbound::{SwpRules, SwpSettings};
use chancery_wire::swp::{BINDING, PORT, codec};
use serde::{Deserialize, Serialize};
use url::Url;

use super::effect::declare_section;
use super::section::Section;

/// The `[swp]` section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwpConfig {
    /// Where the node listens.
    pub door: SwpDoor,
    /// Which frames the node accepts.
    pub rules: SwpRules,
    /// The limits on frames.
    pub limits: codec::SwpLimits,
}

/// Without an address the node does not listen for SWP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwpDoor {
    /// The address to listen at. Without it there is no SWP.
    pub listen: Option<SocketAddr>,
    /// What cards say.
    pub public_url: Option<SwpUrl>,
}

declare_section!(SwpDoor { listen: Restart, public_url: Restart });

impl SwpConfig {
    pub(crate) fn settings(&self) -> SwpSettings {
        SwpSettings { rules: self.rules.clone(), limits: self.limits.clone() }
    }
}

pub(super) fn read(swp: &mut Section<'_, '_>) -> SwpConfig {
    let config = SwpConfig { door: swp.fields(), rules: swp.fields(), limits: swp.fields() };
    for (name, fault) in config.limits.faults() {
        swp.complain(format!("{name} {fault}"));
    }
    if config.rules.idle_ms == 0 {
        swp.complain("idle_ms is 0, which closes every connection at once".to_owned());
    }
    config
}

/// `swp://` or, over TLS, `swps://`, with a host and always with a port. Below it every agent has its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SwpUrl(Url);

impl SwpUrl {
    /// Of an address that is listened at.
    pub fn at(address: SocketAddr, tls: bool) -> Option<Self> {
        let scheme = if tls { "swps" } else { "swp" };
        Self::try_from(format!("{scheme}://{address}")).ok()
    }

    /// As a card lists it for the agent of that name.
    pub(crate) fn interface(&self, agent: &str) -> chancery_protocol::AgentInterface {
        chancery_protocol::AgentInterface {
            url: format!("{self}/{agent}"),
            protocol_binding: BINDING.to_owned(),
            tenant: None,
            protocol_version: "1.0".to_owned(),
        }
    }

    /// The same as guards know it, who think in terms of the web.
    pub(crate) fn as_web(&self) -> Option<Url> {
        chancery_outbound::guard::as_web(self.0.as_str())
    }
}

impl fmt::Display for SwpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl TryFrom<String> for SwpUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut url = Url::parse(&text).map_err(|fault| format!("not a URL: {fault}"))?;
        if !matches!(url.scheme(), "swp" | "swps") {
            return Err(format!("must begin with swp:// or swps://, not {}:", url.scheme()));
        }
        let bare = url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
        if !bare || !matches!(url.path(), "" | "/") || url.host().is_none() {
            return Err("must have a host, and no user, path, query or fragment".to_owned());
        }
        if url.port().is_none() {
            url.set_port(Some(PORT)).map_err(|()| "can have no port".to_owned())?;
        }
        Ok(Self(url))
    }
}

impl From<SwpUrl> for String {
    fn from(url: SwpUrl) -> Self {
        url.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_a_host_and_a_port_and_nothing_else() {
        for (text, url) in [
            ("swp://127.0.0.1:7421", "swp://127.0.0.1:7421"),
            ("swps://agents.example.org/", "swps://agents.example.org:7777"),
            ("swp://[::1]:9", "swp://[::1]:9"),
        ] {
            assert_eq!(SwpUrl::try_from(text.to_owned()).unwrap().to_string(), url);
        }
        for text in ["", "h:1", "http://h:1", "swp://", "swp://h:1/a", "swp://u@h:1", "swp://h:1?x", "swp://h:1#x"] {
            assert!(SwpUrl::try_from(text.to_owned()).is_err(), "{text}");
        }
        assert_eq!(SwpUrl::at(([127, 0, 0, 1], 5).into(), true).unwrap().interface("echo").url, "swps://127.0.0.1:5/echo");
    }
}
