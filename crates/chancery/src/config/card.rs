//! The `[card]` section.

use std::collections::BTreeSet;

use chancery_inbound::Headerless;
use serde::{Deserialize, Serialize};

use super::effect::declare_section;

/// The `[card]` section.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CardConfig {
    /// The version of the card for clients that name no version.
    pub headerless: Headerless,
    /// The bindings that cards list for each version, the preferred one first.
    pub bindings: Vec<CardBinding>,
}

declare_section!(CardConfig { headerless: Live, bindings: Live });

impl Default for CardConfig {
    fn default() -> Self {
        let grpc = cfg!(feature = "grpc").then_some(CardBinding::Grpc);
        let bindings = [CardBinding::JsonRpc, CardBinding::HttpJson].into_iter().chain(grpc).collect();
        Self { headerless: Headerless::default(), bindings }
    }
}

impl CardConfig {
    /// What is wrong with `bindings`, if something is.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let listed = |binding| self.bindings.contains(&binding);
        let is_repeated = self.bindings.iter().collect::<BTreeSet<_>>().len() < self.bindings.len();
        if is_repeated || (listed(CardBinding::Grpc) && listed(CardBinding::GrpcTarget)) {
            return Some("lists each binding once; GRPC and GRPC-TARGET are two forms of one");
        }
        // gRPC has no paths, so that only the agent at the root could be called.
        let has_http = listed(CardBinding::JsonRpc) || listed(CardBinding::HttpJson);
        (!has_http).then_some("needs JSONRPC or HTTP+JSON: gRPC reaches only the agent at the root")
    }
}

/// A binding as cards list it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CardBinding {
    /// JSON-RPC over HTTP.
    #[serde(rename = "JSONRPC")]
    JsonRpc,
    /// HTTP with JSON bodies.
    #[serde(rename = "HTTP+JSON")]
    HttpJson,
    /// gRPC by a URL with a scheme, as strict readers of cards want every address.
    #[serde(rename = "GRPC")]
    Grpc,
    /// gRPC by `host:port`, as the gRPC libraries of the Python, JS, Go and Java SDKs take it.
    #[serde(rename = "GRPC-TARGET")]
    GrpcTarget,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_listed_once_and_one_of_them_has_paths() {
        use CardBinding::{Grpc, GrpcTarget, HttpJson, JsonRpc};
        let fault = |bindings: &[CardBinding]| CardConfig { bindings: bindings.to_vec(), ..CardConfig::default() }.fault();
        for good in [&[JsonRpc][..], &[HttpJson, JsonRpc, GrpcTarget], &[Grpc, HttpJson]] {
            assert_eq!(fault(good), None, "{good:?}");
        }
        for bad in [&[][..], &[Grpc], &[GrpcTarget], &[JsonRpc, JsonRpc], &[JsonRpc, Grpc, GrpcTarget]] {
            assert!(fault(bad).is_some(), "{bad:?}");
        }
        assert_eq!(CardConfig::default().fault(), None);
    }
}
