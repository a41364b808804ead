//! Puts together who callers are: from the config, the callers that were added, and the keys of issuers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use chancery_core::{Agents, Clock};
use chancery_identity::credentials::{
    AllowAll, Allowlist, Authenticator, Authority, CallerRecord, Callers, Checks, IdentityResolver, Issuers, SignatureRules,
};
use chancery_outbound::{Guard, JwksCache};
use chancery_protocol::MayCall;

use crate::build_error::BuildError;
use crate::caller_book::CallerBook;
use crate::config::{Config, PublicUrl, SwpUrl};

/// The callers of the config, with the keys the environment has for them.
pub(crate) fn configured_callers(config: &Config) -> Result<Vec<CallerRecord>, BuildError> {
    let (mut records, mut faults) = (Vec::new(), Vec::new());
    for caller in &config.callers {
        match caller.with_key(|name| std::env::var(name).ok()) {
            Ok(record) => records.push(record),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(records) } else { Err(BuildError::Credentials(faults.join("; "))) }
}

/// What callers are recognised with, whatever the config says of them.
#[derive(Clone, Debug)]
pub(crate) struct Reception {
    pub(crate) callers: Arc<CallerBook>,
    pub(crate) resolver: Option<Arc<dyn IdentityResolver>>,
    pub(crate) public_url: PublicUrl,
    /// Where SWP peers reach the node, if they do.
    pub(crate) swp_url: Option<SwpUrl>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The keys of issuers, fetched through the guarded way out.
pub(crate) fn key_sets(config: &Config, reception: &Reception) -> Result<Arc<JwksCache>, BuildError> {
    let guard = Guard::new(config.outbound.clone(), &[reception.public_url.url().clone()])
        .map_err(|faults| BuildError::Outbound(joined(&faults)))?;
    let clock = Arc::clone(&reception.clock);
    Ok(Arc::new(JwksCache::new(guard.client(), move || clock.now())))
}

/// A node nobody is configured to call is open to everybody. `preview` has the callers as they will be.
pub(crate) fn authenticator(
    config: &Config,
    reception: &Reception,
    preview: Callers,
    key_sets: impl FnOnce() -> Result<Arc<JwksCache>, BuildError>,
) -> Result<Authenticator, BuildError> {
    let Reception { callers, resolver, public_url, .. } = reception;
    if preview.is_empty() && config.issuers.is_empty() && config.identity.allow.is_none() && resolver.is_none() {
        return Ok(Authenticator::open());
    }
    let listed = config.identity.allow.clone().map(|ids| Arc::new(Allowlist::from_iter(ids)) as Arc<dyn IdentityResolver>);
    let issuers = Issuers::new(config.issuers.clone()).map_err(|faults| BuildError::Credentials(joined(&faults)))?;
    let checks = Checks {
        callers: Arc::new(ArcSwap::from_pointee(preview)),
        issuers,
        key_sets: key_sets()?,
        signatures: Some(signature_rules(config, public_url)?),
        resolver: resolver.clone().or(listed).unwrap_or_else(|| Arc::new(AllowAll::default())),
        agents_may_call: MayCall::Everything,
        client_certificates: config.tls.client_ca_file.is_some(),
    };
    match checks.faults() {
        faults if faults.is_empty() => Ok(Authenticator::new(Checks { callers: callers.live(), ..checks })),
        faults => Err(BuildError::Credentials(joined(&faults))),
    }
}

fn joined(faults: &[impl ToString]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A signed request is good here if it was signed for the name this node goes by, or the address it listens at.
fn signature_rules(config: &Config, public_url: &PublicUrl) -> Result<SignatureRules, BuildError> {
    let bad = |fault: &str| BuildError::Credentials(format!("identity: {fault}"));
    let named: Authority = public_url.url().origin().ascii_serialization().parse().map_err(bad)?;
    let listen = format!("{}://{}", public_url.url().scheme(), config.node.listen).parse().map_err(bad)?;
    // An address that stands for all of the machine's is nobody's name for it.
    let is_name = !config.node.listen.ip().is_unspecified() && config.node.listen.port() != 0 && listen != named;
    let authorities = if is_name { vec![named, listen] } else { vec![named] };
    let mut rules = SignatureRules::new(authorities).map_err(bad)?;
    rules.signature_window_s = config.identity.signature_window_s;
    rules.most_nonces = config.identity.signatures_remembered;
    Ok(rules)
}

/// Refuses grants of the config that name no agent of this node: whoever wrote one meant another. Those of callers that were
/// added may name one that was removed since.
pub(crate) fn check_grants(callers: &CallerBook, agents: &Agents) -> Result<(), BuildError> {
    let mut faults = Vec::new();
    for (record, configured) in callers.list() {
        let granted = match &record.may_call {
            MayCall::Everything => Vec::new(),
            MayCall::Only(grants) => grants.iter().map(|grant| ("may_call", grant.agent.clone())).collect(),
        };
        let is_agent = record.agent.iter().map(|agent| ("agent", agent.clone()));
        for (key, agent) in granted.into_iter().chain(is_agent).filter(|(_, agent)| agents.get(agent).is_none()) {
            if configured {
                faults.push(format!("callers.{}.{key}: there is no agent {agent} here", record.name));
            } else {
                tracing::warn!(caller = record.name, %agent, "a caller that was added names an agent that is not here");
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(BuildError::Credentials(faults.join("; "))) }
}
