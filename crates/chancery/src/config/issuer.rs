//! The `[issuers.NAME]` sections: whose tokens are accepted.

use chancery_identity::credentials::{Accept, Issuer, Issuers, TokenAlgorithm};
use chancery_protocol::MayCall;
use serde::Deserialize;

use super::effect::{TakesEffect, declare_keys, effect_of};
use super::one_or_more::{Granted, OneOrMore};
use super::section::Section;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fields {
    issuer: Option<String>,
    audience: OneOrMore<String>,
    jwks_url: Option<String>,
    algorithms: Option<Vec<TokenAlgorithm>>,
    leeway_s: Option<u32>,
    accept: Option<Accept>,
    caller_claim: Option<String>,
    tenant_claim: Option<String>,
    may_call: Option<Vec<Granted>>,
    max_lifetime_s: Option<u32>,
}

declare_keys!(Fields {
    issuer: Live,
    audience: Live,
    jwks_url: Live,
    algorithms: Live,
    leeway_s: Live,
    accept: Live,
    caller_claim: Live,
    tenant_claim: Live,
    may_call: Live,
    max_lifetime_s: Live,
});

/// When a change of a key of an issuer's section takes effect.
pub(super) fn effect(key: &str) -> TakesEffect {
    effect_of::<Fields>(key)
}

/// The keys an issuer's section can have.
#[cfg(test)]
pub(super) fn keys() -> &'static [&'static str] {
    super::fields::field_names::<Fields>()
}

pub(super) fn read_all(issuers: &mut Section<'_, '_>) -> Vec<Issuer> {
    let mut read = Vec::new();
    issuers.each(|name, section| {
        let fields: Fields = section.fields();
        let Some(iss) = fields.issuer else {
            if !section.has_fault_at("issuer") {
                section.complain("needs `issuer`: the `iss` of its tokens".to_owned());
            }
            return;
        };
        let mut issuer = Issuer { audiences: fields.audience.0, ..Issuer::new(name, iss, "") };
        issuer.jwks_url = fields.jwks_url;
        issuer.tenant_claim = fields.tenant_claim;
        if let Some(algorithms) = fields.algorithms {
            issuer.algorithms = algorithms;
        }
        if let Some(leeway_s) = fields.leeway_s {
            issuer.leeway_s = leeway_s;
        }
        if let Some(max_lifetime_s) = fields.max_lifetime_s {
            issuer.max_lifetime_s = max_lifetime_s;
        }
        if let Some(accept) = fields.accept {
            issuer.accept = accept;
        }
        if let Some(claim) = fields.caller_claim {
            issuer.caller_claim = claim;
        }
        if let Some(grants) = fields.may_call {
            issuer.may_call = MayCall::Only(grants.into_iter().map(|granted| granted.0).collect());
        }
        read.push(issuer);
    });
    if issuers.is_sound()
        && let Err(faults) = Issuers::new(read.clone())
    {
        for fault in faults {
            issuers.complain(fault.to_string());
        }
    }
    read
}
