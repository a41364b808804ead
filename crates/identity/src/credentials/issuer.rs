//! Who may issue tokens to callers of this node, and what this node asks of them.

use std::collections::HashSet;

use chancery_protocol::MayCall;
use serde::{Deserialize, Serialize};

use super::CallerFault;
use super::caller::{checked_name, grants};

/// How a token may be signed. What a shared secret signs, or nothing, has no value here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TokenAlgorithm {
    /// Ed25519.
    EdDSA,
    /// ECDSA with P-256 and SHA-256.
    ES256,
    /// ECDSA with P-384 and SHA-384.
    ES384,
    /// RSA with PKCS#1 v1.5 and SHA-256.
    RS256,
    /// RSA with PKCS#1 v1.5 and SHA-384.
    RS384,
    /// RSA with PKCS#1 v1.5 and SHA-512.
    RS512,
    /// RSA-PSS with SHA-256.
    PS256,
    /// RSA-PSS with SHA-384.
    PS384,
    /// RSA-PSS with SHA-512.
    PS512,
}

impl TokenAlgorithm {
    /// By its name in the header of a token. RFC 9864 names the curve of the first.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "EdDSA" | "Ed25519" => Self::EdDSA,
            "ES256" => Self::ES256,
            "ES384" => Self::ES384,
            "RS256" => Self::RS256,
            "RS384" => Self::RS384,
            "RS512" => Self::RS512,
            "PS256" => Self::PS256,
            "PS384" => Self::PS384,
            "PS512" => Self::PS512,
            _ => return None,
        })
    }
}

/// Which subjects of an issuer are callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    /// Those that a caller record lists.
    #[default]
    Listed,
    /// All: one that no record lists is a caller named `ISSUER:SUBJECT`.
    Any,
}

/// An issuer of tokens that the node trusts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issuer {
    /// What configuration calls it; may be left out where the issuer stands under its name.
    #[serde(default)]
    pub name: String,
    /// The `iss` of its tokens, exactly.
    pub issuer: String,
    /// The `aud` of tokens for this node: one of these must be among them.
    pub audiences: Vec<String>,
    /// Where its keys are; left out, its discovery document says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    /// The signature algorithms that the node accepts.
    #[serde(default = "default_algorithms")]
    pub algorithms: Vec<TokenAlgorithm>,
    /// How far its clock may be from ours.
    #[serde(default = "default_leeway_s")]
    pub leeway_s: u32,
    /// The tokens of the issuer that the node accepts.
    #[serde(default)]
    pub accept: Accept,
    /// The claim that says who the caller is.
    #[serde(default = "default_caller_claim")]
    pub caller_claim: String,
    /// The claim with the tenant of a caller that no record lists; left out, `default`. If it is named here,
    /// a token without it is rejected: it must not fall into an unintended tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_claim: Option<String>,
    /// What callers may call that no record lists.
    #[serde(default, with = "grants", skip_serializing_if = "grants::are_everything")]
    pub may_call: MayCall,
    /// Tokens that live longer, from `iat` to `exp`, are refused, and so are tokens without `iat`. 0 is no bound.
    #[serde(default = "default_max_lifetime_s")]
    pub max_lifetime_s: u32,
}

impl Issuer {
    /// The largest tolerance for clocks that differ, in seconds.
    pub const MOST_LEEWAY_S: u32 = 300;

    /// Makes an issuer with the default settings.
    pub fn new(name: impl Into<String>, issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            issuer: issuer.into(),
            audiences: vec![audience.into()],
            jwks_url: None,
            algorithms: default_algorithms(),
            leeway_s: default_leeway_s(),
            accept: Accept::Listed,
            caller_claim: default_caller_claim(),
            tenant_claim: None,
            may_call: MayCall::Everything,
            max_lifetime_s: default_max_lifetime_s(),
        }
    }

    /// Where its discovery document is, if that is where its keys are looked up.
    pub fn discovery_url(&self) -> Option<String> {
        let base = self.issuer.strip_suffix('/').unwrap_or(&self.issuer);
        self.jwks_url.is_none().then(|| format!("{base}/.well-known/openid-configuration"))
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Err(fault) = checked_name(&self.name) {
            faults.push(format!("name: {fault}"));
        }
        if self.issuer.is_empty() {
            faults.push("issuer: must not be empty".to_owned());
        } else if self.jwks_url.is_none() && !self.issuer.starts_with("https://") && !self.issuer.starts_with("http://") {
            faults.push("issuer: is no URL, so jwks_url must say where its keys are".to_owned());
        }
        if self.audiences.is_empty() || self.audiences.iter().any(String::is_empty) {
            faults.push("audiences: must name this node".to_owned());
        }
        if self.algorithms.is_empty() {
            faults.push("algorithms: must not be empty".to_owned());
        }
        if self.leeway_s > Self::MOST_LEEWAY_S {
            faults.push(format!("leeway_s: {} is more than {}", self.leeway_s, Self::MOST_LEEWAY_S));
        }
        if self.caller_claim.is_empty() || self.tenant_claim.as_deref().is_some_and(str::is_empty) {
            faults.push("caller_claim, tenant_claim: must not be empty".to_owned());
        }
        faults
    }
}

/// The issuers of a node, each with its own name and its own `iss`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issuers(Vec<Issuer>);

impl Issuers {
    /// All faults at once.
    pub fn new(issuers: Vec<Issuer>) -> Result<Self, Vec<CallerFault>> {
        let mut faults = Vec::new();
        let (mut names, mut values) = (HashSet::new(), HashSet::new());
        for issuer in &issuers {
            let mut found = issuer.faults();
            if !names.insert(&issuer.name) {
                found.push("two issuers have this name".to_owned());
            }
            if !values.insert(&issuer.issuer) {
                found.push("another issuer has the same iss".to_owned());
            }
            faults.extend(found.into_iter().map(|reason| CallerFault { name: issuer.name.clone(), reason }));
        }
        if faults.is_empty() { Ok(Self(issuers)) } else { Err(faults) }
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Issuer> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn by_iss(&self, iss: &str) -> Option<&Issuer> {
        self.0.iter().find(|issuer| issuer.issuer == iss)
    }
}

fn default_algorithms() -> Vec<TokenAlgorithm> {
    vec![TokenAlgorithm::EdDSA, TokenAlgorithm::ES256, TokenAlgorithm::RS256]
}

fn default_leeway_s() -> u32 {
    60
}

/// A day: a stolen token is of no use for longer, and the access tokens of common issuers live for an hour.
fn default_max_lifetime_s() -> u32 {
    24 * 60 * 60
}

fn default_caller_claim() -> String {
    "sub".to_owned()
}
