//! The part of the `[push]` section that says whom notifications may be sent to, and how.

use chancery_core::push::{PushEvents, PushProfile};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::challenge::Challenge;
use crate::guard::GuardConfig;

/// The settings of requests to webhooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CourierConfig {
    /// Addresses that may be notified although they are not public.
    pub allow_nets: Vec<IpNet>,
    /// Names (`name` or `*.name`) that may lead to private addresses.
    pub allow_hosts: Vec<String>,
    /// Names or addresses that are never notified.
    pub deny_hosts: Vec<String>,
    /// Whether plain http may be spoken, to what `allow_nets` or `allow_hosts` names.
    pub allow_http: bool,
    /// Whether webhooks get a challenge when they are registered.
    pub challenge: Challenge,
    /// Finding the address and reaching it.
    pub connect_ms: u64,
    /// The TLS handshake.
    pub tls_ms: u64,
    /// The whole exchange, the answer's body included.
    pub exchange_ms: u64,
    /// The most bytes of the headers of an answer.
    pub response_header_bytes: usize,
    /// More of an answer is not read.
    pub response_body_bytes: usize,
    /// A 0.3 task that is bigger is sent without artifacts and history.
    pub task_bytes: usize,
    /// How many messages of its history a 0.3 task is sent with.
    pub task_history: usize,
    /// Whether notifications are signed with the node's Ed25519 key.
    pub ed25519: bool,
    /// Whether the body alone is signed too, with the registration's token. Registrations of the original
    /// protocol always get it. A party that sees such a notification can replay it.
    pub body_hmac: bool,
}

impl Default for CourierConfig {
    fn default() -> Self {
        Self {
            allow_nets: Vec::new(),
            allow_hosts: Vec::new(),
            deny_hosts: Vec::new(),
            allow_http: false,
            challenge: Challenge::Off,
            connect_ms: 3_000,
            tls_ms: 5_000,
            exchange_ms: 15_000,
            response_header_bytes: 16_384,
            response_body_bytes: 16_384,
            task_bytes: 262_144,
            task_history: 10,
            ed25519: true,
            body_hmac: false,
        }
    }
}

impl CourierConfig {
    /// The guard's rules for notifications. Roots, proxy and the shape of URLs are those of everything that goes out.
    pub fn guard(&self, outbound: &GuardConfig) -> GuardConfig {
        GuardConfig {
            allow_nets: self.allow_nets.clone(),
            allow_hosts: self.allow_hosts.clone(),
            deny_hosts: self.deny_hosts.clone(),
            allow_http: self.allow_http,
            connect_ms: self.connect_ms,
            tls_ms: self.tls_ms,
            exchange_ms: self.exchange_ms,
            response_header_bytes: self.response_header_bytes,
            response_body_bytes: self.response_body_bytes,
            ..outbound.clone()
        }
    }
}

/// `[push.origins."https://…"]`: what holds for one origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OriginRules {
    /// In place of the content type of the registration's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// In place of the form of the registration's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<PushProfile>,
    /// In place of which events that form has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<PushEvents>,
    /// 4xx is tried again, for receivers that answer 404 while they are being deployed.
    pub retry_4xx: bool,
    /// Environment variables with the secrets (`whsec_…`) that notifications are signed with, the newest first.
    pub secret_env: Vec<String>,
}
