//! Puts together who callers are: from the config, the callers that were added, and the keys of issuers.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use chancery_core::{Agents, Clock};
use chancery_identity::credentials::{
    AllowAll, Allowlist, Authenticator, Authority, CallerRecord, Callers, Checks, IdentityResolver, Issuers, SignatureRules,
};
use chancery_outbound::{Guard, JwksCache};
use chancery_protocol::MayCall;

use crate::build_error::BuildError;
use crate::caller_registry::CallerRegistry;
use crate::config::{Config, ConfigFault, Places, PublicUrl, SwpUrl};
use crate::stored_nonces::StoredNonces;

/// The callers of the config, with the keys the environment has for them.
pub(crate) fn configured_callers(config: &Config) -> Result<Vec<CallerRecord>, BuildError> {
    let faults = |faults: Vec<ConfigFault>| faults.into_iter().map(|fault| fault.message).collect::<Vec<_>>().join("; ");
    callers_with_keys(config, &Places::default()).map_err(|found| BuildError::Credentials(faults(found)))
}

/// The same, with each fault where it stands in the file.
pub(crate) fn callers_with_keys(config: &Config, places: &Places) -> Result<Vec<CallerRecord>, Vec<ConfigFault>> {
    let (mut records, mut faults) = (Vec::new(), Vec::new());
    for caller in &config.callers {
        let section = format!("callers.{}", caller.record.name);
        match caller.with_key(|name| std::env::var(name).ok()) {
            Ok(record) => records.push(record),
            Err(fault) => {
                let fault = fault.strip_prefix(&format!("{section}: ")).unwrap_or(&fault);
                faults.push(places.fault(&format!("{section}.key_env"), fault));
            }
        }
    }
    if faults.is_empty() { Ok(records) } else { Err(faults) }
}

/// The credentials that recognise callers, from the config and from the data folder.
#[derive(Clone, Debug)]
pub(crate) struct CallerDirectory {
    pub(crate) callers: Arc<CallerRegistry>,
    pub(crate) resolver: Option<Arc<dyn IdentityResolver>>,
    pub(crate) public_url: PublicUrl,
    /// Where SWP peers reach the node, if they do.
    pub(crate) swp_url: Option<SwpUrl>,
    /// Whether the operator asked for a node without its safeguards: it answers to every host, if none is configured.
    pub(crate) is_insecure: bool,
    pub(crate) clock: Arc<dyn Clock>,
    /// Of signed requests.
    pub(crate) nonces: Arc<StoredNonces>,
}

/// The keys of issuers, fetched through the guarded way out.
pub(crate) fn key_sets(config: &Config, caller_directory: &CallerDirectory) -> Result<Arc<JwksCache>, BuildError> {
    let guard = Guard::new(config.outbound.clone(), &[caller_directory.public_url.url().clone()])
        .map_err(|faults| BuildError::Outbound(joined(&faults)))?;
    let clock = Arc::clone(&caller_directory.clock);
    Ok(Arc::new(JwksCache::with_limits(guard.client(), move || clock.now(), config.jwks)))
}

/// A node without configured callers accepts every call. `preview` has the callers after the change.
pub(crate) fn authenticator(
    config: &Config,
    caller_directory: &CallerDirectory,
    preview: Callers,
    key_sets: impl FnOnce() -> Result<Arc<JwksCache>, BuildError>,
) -> Result<Authenticator, BuildError> {
    let CallerDirectory { callers, resolver, public_url, .. } = caller_directory;
    if preview.is_empty() && config.issuers.is_empty() && config.identity.allow.is_none() && resolver.is_none() {
        return Ok(Authenticator::open());
    }
    let listed = config.identity.allow.clone().map(|ids| Arc::new(Allowlist::from_iter(ids)) as Arc<dyn IdentityResolver>);
    let issuers = Issuers::new(config.issuers.clone()).map_err(|faults| BuildError::Credentials(joined(&faults)))?;
    let checks = Checks {
        callers: Arc::new(ArcSwap::from_pointee(preview)),
        issuers,
        key_sets: key_sets()?,
        tokens_remembered_s: config.identity.tokens_remembered_s,
        signatures: Some(signature_rules(config, public_url)?),
        nonces: Some(caller_directory.nonces.clone()),
        resolver: resolver.clone().or(listed).unwrap_or_else(|| Arc::new(AllowAll::default())),
        agents_may_call: MayCall::Everything,
        client_certificates: config.tls.client_ca_file.is_some(),
    };
    match checks.faults() {
        faults if faults.is_empty() => Ok(Authenticator::new(Checks { callers: callers.live(), ..checks })),
        faults => Err(BuildError::Credentials(joined(&faults))),
    }
}

/// The usual spellings of this machine.
const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

fn joined(faults: &[impl ToString]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A signed request must be signed for the public name of this node, or for its listen address. A loopback
/// address has several spellings, and a card names the one its client used.
fn signature_rules(config: &Config, public_url: &PublicUrl) -> Result<SignatureRules, BuildError> {
    let bad = |fault: &str| BuildError::Credentials(format!("identity: {fault}"));
    let (listen, url) = (config.node.listen, public_url.url());
    let mut authorities: Vec<Authority> = vec![url.origin().ascii_serialization().parse().map_err(bad)?];
    let of_public = url.port_or_known_default().filter(|_| url.host_str().is_some_and(|host| LOOPBACK_HOSTS.contains(&host)));
    let own_ports = [Some(listen.port()).filter(|port| *port != 0), of_public];
    for port in own_ports.into_iter().flatten() {
        let address = SocketAddr::new(listen.ip(), port).to_string();
        let spellings = LOOPBACK_HOSTS.iter().filter(|_| listen.ip().is_loopback()).map(|host| format!("{host}:{port}"));
        // An address that stands for all of the machine's is nobody's name for it.
        let addresses = Some(address).filter(|_| !listen.ip().is_unspecified());
        for name in addresses.into_iter().chain(spellings) {
            let authority = format!("{}://{name}", url.scheme()).parse().map_err(bad)?;
            if !authorities.contains(&authority) {
                authorities.push(authority);
            }
        }
    }
    let mut rules = SignatureRules::new(authorities).map_err(bad)?;
    rules.signature_window_s = config.identity.signature_window_s;
    rules.most_nonces = config.identity.signatures_remembered;
    Ok(rules)
}

/// Rejects grants of the config that name no agent of this node. Grants of callers that were added may name
/// an agent that was removed since.
pub(crate) fn check_grants(configured: &[CallerRecord], registry: &CallerRegistry, agents: &Agents) -> Result<(), BuildError> {
    let mut faults = Vec::new();
    let added: Vec<_> = registry.list().into_iter().filter(|(_, configured)| !configured).map(|(record, _)| record).collect();
    let all = configured.iter().map(|record| (record, true)).chain(added.iter().map(|record| (record, false)));
    for (record, configured) in all {
        let granted = match &record.may_call {
            MayCall::Everything => Vec::new(),
            MayCall::Only(grants) => grants.iter().map(|grant| ("may_call", grant.agent.clone())).collect(),
        };
        let is_agent = record.agent.iter().map(|agent| ("agent", agent.clone()));
        for (key, agent) in granted.into_iter().chain(is_agent).filter(|(_, agent)| agents.get(agent).is_none()) {
            if configured {
                faults.push(format!("callers.{}.{key}: there is no agent {agent} here", record.name));
            } else {
                tracing::warn!(caller = record.name, %agent, "an added caller names an agent that does not exist; add the agent, or change the caller");
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(BuildError::Credentials(faults.join("; "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorities(listen: &str, public_url: &str) -> Vec<Authority> {
        let mut config = Config::default();
        config.node.listen = listen.parse().unwrap();
        signature_rules(&config, &PublicUrl::try_from(public_url.to_owned()).unwrap()).unwrap().authorities
    }

    fn named(authorities: &[&str]) -> Vec<Authority> {
        authorities.iter().map(|authority| authority.parse().unwrap()).collect()
    }

    #[test]
    fn a_request_may_be_signed_for_any_spelling_of_the_loopback_address_and_for_no_other_host() {
        let local = ["http://127.0.0.1:7420", "http://localhost:7420", "http://[::1]:7420"];
        assert_eq!(authorities("127.0.0.1:7420", "http://127.0.0.1:7420"), named(&local));
        assert_eq!(authorities("127.0.0.1:0", "http://127.0.0.1:7420"), named(&local), "the port that was given out");
        assert_eq!(authorities("0.0.0.0:7420", "https://agents.example"), named(&["https://agents.example"]));
        assert_eq!(authorities("10.0.0.5:7420", "https://a.example"), named(&["https://a.example", "https://10.0.0.5:7420"]));
    }
}
