//! The keys of `[agents.NAME]` that set how the node calls one remote agent. They override its card.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use chancery_outbound::remote::{AgentSettings, LineageSetting, StreamMode};
use chancery_protocol::{Binding, Version};
use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use url::Url;

use super::effect::declare_section;

/// Overrides of an agent's card and habits. The default leaves everything to the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallSettings {
    /// Its card is read from this file of the node's machine and never fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card_file: Option<PathBuf>,
    /// The URL that calls go to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The binding to call with. Without it the card decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<BindingSetting>,
    /// The version to call with. Without it the card decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Whether calls ask for a stream.
    #[serde(skip_serializing_if = "is_default")]
    pub stream: StreamMode,
    /// Where the node sends the agent the lineage of its tasks.
    #[serde(skip_serializing_if = "is_default")]
    pub lineage: LineageSetting,
    /// Sent with every call and every fetch of the card.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The same, by the variables of the environment that have the values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers_env: BTreeMap<String, String>,
    /// How long a call may take to be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The `defaultInputModes` of the card that this node shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_modes: Option<Vec<String>>,
    /// A card or an answer that deviates from its version is rejected.
    #[serde(skip_serializing_if = "is_default")]
    pub strict: bool,
}

declare_section!(CallSettings {
    card_file: Live,
    address: Live,
    binding: Live,
    version: Live,
    stream: Live,
    headers: Live,
    headers_env: Live,
    timeout_ms: Live,
    input_modes: Live,
    strict: Live,
    lineage: Live,
});

/// A binding as it is written in a config: in the words of cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindingSetting {
    /// JSON-RPC over HTTP.
    #[serde(rename = "JSONRPC")]
    JsonRpc,
    /// HTTP with JSON bodies.
    #[serde(rename = "HTTP+JSON")]
    Rest,
    /// gRPC.
    #[serde(rename = "GRPC")]
    Grpc,
    /// SWP.
    #[serde(rename = "SWP")]
    Swp,
}

impl From<BindingSetting> for Binding {
    fn from(setting: BindingSetting) -> Self {
        match setting {
            BindingSetting::JsonRpc => Self::JsonRpc,
            BindingSetting::Rest => Self::Rest,
            BindingSetting::Grpc => Self::Grpc,
            BindingSetting::Swp => Self::Swp,
        }
    }
}

/// Headers that every call has already, or that belong to the connection.
const OWN_HEADERS: [&str; 9] =
    ["a2a-version", "accept", "connection", "content-length", "content-type", "host", "te", "transfer-encoding", "upgrade"];

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl CallSettings {
    /// Returns whether the section says nothing.
    pub fn is_default(&self) -> bool {
        is_default(self)
    }

    /// What is wrong with them, as (key, fault).
    pub(crate) fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if let Some(address) = &self.address {
            let is_url =
                Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "http" | "https" | "swp" | "swps") && url.has_host());
            if !is_url {
                faults.push(("address", format!("{address:?} is no http, https, swp or swps URL")));
            }
        }
        if self.version == Some(Version::Original) && self.binding.is_some_and(|one| one != BindingSetting::JsonRpc) {
            faults.push(("binding", "the original protocol is spoken over JSONRPC only".to_owned()));
        }
        for (key, headers) in [("headers", &self.headers), ("headers_env", &self.headers_env)] {
            for name in headers.keys() {
                match HeaderName::from_bytes(name.as_bytes()) {
                    Err(_) => faults.push((key, format!("{name:?} is no name of a header"))),
                    Ok(name) if OWN_HEADERS.contains(&name.as_str()) => {
                        faults.push((key, format!("{name} is set by the node itself")));
                    }
                    Ok(_) => {}
                }
            }
        }
        for (name, value) in &self.headers {
            if HeaderValue::from_str(value).is_err() {
                faults.push(("headers", format!("the value of {name:?} cannot stand in a header")));
            }
        }
        if self.timeout_ms == Some(0) {
            faults.push(("timeout_ms", "must be more than 0".to_owned()));
        }
        if self.input_modes.as_ref().is_some_and(|modes| modes.is_empty() || modes.iter().any(|mode| mode.trim().is_empty())) {
            faults.push(("input_modes", "names no media type; leave it out to show the agent's own".to_owned()));
        }
        faults
    }

    /// The settings with the values that the environment of this process has for them.
    pub fn settled(&self) -> Result<AgentSettings, String> {
        self.settle(|name| std::env::var(name).ok())
    }

    /// The settings with the values that `variable` has for them.
    fn settle(&self, variable: impl Fn(&str) -> Option<String>) -> Result<AgentSettings, String> {
        if let Some((key, fault)) = self.faults().into_iter().next() {
            return Err(format!("{key}: {fault}"));
        }
        let header = |name: &String, value: &str, is_secret: bool| {
            let bad = |_| format!("headers: {name} cannot be sent");
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("headers: {name:?} is no name of a header"))?;
            let mut value = HeaderValue::from_str(value).map_err(bad)?;
            value.set_sensitive(is_secret);
            Ok::<_, String>((name, value))
        };
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            headers.push(header(name, value, false)?);
        }
        for (name, of) in &self.headers_env {
            let value = variable(of).ok_or_else(|| format!("headers_env: the environment variable {of} is not set"))?;
            headers.push(header(name, &value, true)?);
        }
        Ok(AgentSettings {
            address: self.address.clone(),
            binding: self.binding.map(Binding::from),
            version: self.version,
            stream: self.stream,
            lineage: self.lineage,
            headers,
            timeout: self.timeout_ms.map(Duration::from_millis),
            strict: self.strict,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn headers_from_the_environment_are_read_when_the_node_starts_and_never_printed() {
        let settings = CallSettings {
            headers: map(&[("X-Tenant", "acme")]),
            headers_env: map(&[("X-Secret", "VARIABLE")]),
            timeout_ms: Some(1),
            ..CallSettings::default()
        };
        let settled = settings.settle(|name| (name == "VARIABLE").then(|| "hush".to_owned())).unwrap();
        assert_eq!(settled.headers.len(), 2);
        assert_eq!(settled.timeout, Some(Duration::from_millis(1)));
        assert!(!format!("{settled:?}").contains("hush"));
        let missing = settings.settle(|_| None).unwrap_err();
        assert_eq!(missing, "headers_env: the environment variable VARIABLE is not set");
    }

    #[test]
    fn every_key_says_what_is_wrong_with_its_value() {
        let settings = CallSettings {
            address: Some("agent:1".to_owned()),
            binding: Some(BindingSetting::Grpc),
            version: Some(Version::Original),
            headers: map(&[("a b", "x"), ("Accept", "x"), ("X-A", "a\nb")]),
            timeout_ms: Some(0),
            input_modes: Some(Vec::new()),
            ..CallSettings::default()
        };
        let faults: Vec<_> = settings.faults().into_iter().map(|(key, _)| key).collect();
        assert_eq!(faults, ["address", "binding", "headers", "headers", "headers", "timeout_ms", "input_modes"]);
        assert!(CallSettings::default().faults().is_empty() && CallSettings::default().is_default());
    }
}
