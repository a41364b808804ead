//! The `[outbound]` section: whom we may call, and the limits on every exchange.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::fault::OutboundFault;

/// Everything public may be called over https. The allowances add to that, `deny_hosts` takes away and always wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardConfig {
    /// Addresses that may be called although they are not public, under every name that resolves to them.
    pub allow_nets: Vec<IpNet>,
    /// Names (`name` or `*.name` for all below it) that may resolve to private addresses. Metadata services, link-local and
    /// reserved ranges stay closed even for them: those need `allow_nets`.
    pub allow_hosts: Vec<String>,
    /// Names or addresses that are never called.
    pub deny_hosts: Vec<String>,
    /// Whether plain http may be spoken at all; even then only to what `allow_nets` or `allow_hosts` names.
    pub allow_http: bool,
    /// The egress proxy, as `http://host:port`. Proxies in the environment are never used.
    pub proxy: Option<String>,
    /// More roots to trust, as PEM, besides the system's.
    pub ca_file: Option<PathBuf>,
    /// Finding the address and reaching it.
    pub connect_ms: u64,
    /// The TLS handshake.
    pub tls_ms: u64,
    /// The whole exchange, the body's last byte included.
    pub exchange_ms: u64,
    /// Header names and values of an answer, with four bytes for each line's punctuation.
    pub response_header_bytes: usize,
    /// The body of an answer, where the caller sets nothing else.
    pub response_body_bytes: usize,
    /// How long a URL may be.
    pub url_bytes: usize,
    /// How many addresses of one name are tried.
    pub addresses: usize,
    /// How many 1xx answers may come before the real one.
    pub informational_responses: usize,
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self {
            allow_nets: Vec::new(),
            allow_hosts: Vec::new(),
            deny_hosts: Vec::new(),
            allow_http: false,
            proxy: None,
            ca_file: None,
            connect_ms: 3_000,
            tls_ms: 5_000,
            exchange_ms: 15_000,
            response_header_bytes: 16_384,
            response_body_bytes: 16_384,
            url_bytes: 2_048,
            addresses: 4,
            informational_responses: 8,
        }
    }
}

impl GuardConfig {
    pub(super) fn connect(&self) -> Duration {
        Duration::from_millis(self.connect_ms)
    }

    pub(super) fn tls(&self) -> Duration {
        Duration::from_millis(self.tls_ms)
    }

    pub(super) fn exchange(&self) -> Duration {
        Duration::from_millis(self.exchange_ms)
    }

    /// A limit of zero would refuse everything, which no operator intends.
    pub(super) fn faults(&self) -> Vec<OutboundFault> {
        let limits = [
            ("connect_ms", self.connect_ms == 0),
            ("tls_ms", self.tls_ms == 0),
            ("exchange_ms", self.exchange_ms == 0),
            ("response_header_bytes", self.response_header_bytes == 0),
            ("response_body_bytes", self.response_body_bytes == 0),
            ("url_bytes", self.url_bytes == 0),
            ("addresses", self.addresses == 0),
        ];
        limits.iter().filter(|(_, zero)| *zero).map(|(name, _)| OutboundFault::new(name, "must be more than 0")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Guard;

    #[test]
    fn an_unknown_setting_is_refused_and_a_missing_one_has_its_default() {
        assert_eq!(serde_json::from_str::<GuardConfig>("{}").unwrap(), GuardConfig::default());
        let fault = serde_json::from_str::<GuardConfig>(r#"{"allow_net":[]}"#).unwrap_err();
        assert!(fault.to_string().contains("allow_net"), "{fault}");
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let config = GuardConfig {
            connect_ms: 0,
            addresses: 0,
            allow_hosts: vec!["10.0.0.1".into(), "a b".into()],
            deny_hosts: vec!["".into()],
            proxy: Some("https://user:secret@proxy:1".into()),
            ca_file: Some("no-such-file.pem".into()),
            ..GuardConfig::default()
        };
        let faults = Guard::new(config, &[]).unwrap_err();
        let settings: Vec<_> = faults.iter().map(|fault| fault.setting).collect();
        assert_eq!(
            settings,
            ["connect_ms", "addresses", "allow_hosts", "deny_hosts", "allow_hosts", "proxy", "ca_file"],
            "{faults:?}"
        );
        assert!(!format!("{faults:?}").contains("secret"));
    }
}
