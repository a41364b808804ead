//! What a config cannot change while its node runs: doing so is a fault that says so, and the file is refused whole.

use crate::config::{AgentConfig, Config, Fault, Places};

const REASON: &str = "cannot change while the node runs; restart it, or put back what was there";

/// Every key that says something else and is only read at a start.
pub(super) fn needed(before: &Config, after: &Config, places: &Places) -> Vec<Fault> {
    let (was, is) = (before, after);
    let mut changed: Vec<String> = [
        ("listen", was.node.listen != is.node.listen),
        ("public_url", was.node.public_url != is.node.public_url),
        ("data", was.node.data != is.node.data),
        ("store.synchronous", was.store.synchronous != is.store.synchronous),
        ("evidence", was.evidence != is.evidence),
        // How long a nonce is remembered was settled when it came.
        ("identity.signature_window_s", was.identity.signature_window_s != is.identity.signature_window_s),
        ("identity.signatures_remembered", was.identity.signatures_remembered != is.identity.signatures_remembered),
        ("keys.hop_tokens", was.keys.hop_tokens != is.keys.hop_tokens),
        ("keys.push", was.keys.push != is.keys.push),
        ("keys.receipts", was.keys.receipts != is.keys.receipts),
        ("swp.listen", was.swp.door.listen != is.swp.door.listen),
        ("swp.public_url", was.swp.door.public_url != is.swp.door.public_url),
        ("memory.tier", was.memory.tier != is.memory.tier),
        ("memory.shard", was.memory.shard != is.memory.shard),
        ("memory.issuers", was.memory.issuers != is.memory.issuers),
        ("memory.max_collection_bytes", was.memory.max_collection_bytes != is.memory.max_collection_bytes),
        ("memory.resident_bytes", was.memory.resident_bytes != is.memory.resident_bytes),
        ("memory.max_grant_hours", was.memory.max_grant_hours != is.memory.max_grant_hours),
        ("push", was.push != is.push),
        ("artifacts.schemas", was.artifacts.schemas != is.artifacts.schemas),
        (
            "artifacts.accept_lower_version_artifacts",
            was.artifacts.accept_lower_version_artifacts != is.artifacts.accept_lower_version_artifacts,
        ),
        ("artifacts.offload", was.artifacts.offload != is.artifacts.offload),
        ("artifacts.offload_above_bytes", was.artifacts.offload_above_bytes != is.artifacts.offload_above_bytes),
        ("artifacts.restore_bytes", was.artifacts.restore_bytes != is.artifacts.restore_bytes),
        ("artifacts.offload_task_bytes", was.artifacts.offload_task_bytes != is.artifacts.offload_task_bytes),
        ("tls.cert_file", was.tls.cert_file != is.tls.cert_file),
        ("tls.key_file", was.tls.key_file != is.tls.key_file),
        ("tls.client_ca_file", was.tls.client_ca_file != is.tls.client_ca_file),
        ("tls.client_certificates", was.tls.client_certificates != is.tls.client_certificates),
    ]
    .into_iter()
    .filter(|(_, changed)| *changed)
    .map(|(key, _)| key.to_owned())
    .collect();
    let agent_before = |name: &str| before.agents.iter().find(|(other, _)| other == name).map(|(_, agent)| agent);
    let other_key = |name: &str, agent: &AgentConfig| agent_before(name).is_some_and(|before| before.key != agent.key);
    let keys = after.agents.iter().filter(|(name, agent)| other_key(name, agent));
    changed.extend(keys.map(|(name, _)| {
        let key = format!("agents.{name}.key_env");
        if places.has(&key) { key } else { format!("agents.{name}.key_file") }
    }));
    changed.iter().map(|key| places.fault(key, REASON)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_needs_a_restart_is_named_where_it_stands_and_the_others_are_not() {
        let before = Config::parse("[agents.a]\nrun = 'echo'\n").unwrap();
        let text = "listen = '127.0.0.1:1'\npublic_url = 'http://h'\ndata = 'd'\ndedupe = 'message_id'\n\
                    [agents.a]\nrun = 'echo'\nkey_env = 'K'\n[agents.b]\nrun = 'echo'\nkey_env = 'L'\n\
                    [store]\nsynchronous = 'normal'\n[identity]\nsignature_window_s = 1\nsignatures_remembered = 1\n\
                    [keys.push]\nenv = 'P'\n[tls]\ncert_file = 'c'\nkey_file = 'k'\n[limits]\nbody_bytes = 1\n[health]\nfailures = 1\n";
        let (after, places) = Config::read(text).unwrap();
        let found: Vec<_> = needed(&before, &after, &places).iter().map(|fault| (fault.line, fault.message.clone())).collect();
        let keys: Vec<_> = found.iter().map(|(line, message)| (*line, message.split(':').next().unwrap())).collect();
        let expected = [
            (1, "listen"),
            (2, "public_url"),
            (3, "data"),
            (12, "store.synchronous"),
            (14, "identity.signature_window_s"),
            (15, "identity.signatures_remembered"),
            (16, "keys.push"),
            (19, "tls.cert_file"),
            (20, "tls.key_file"),
            (7, "agents.a.key_env"),
        ];
        assert_eq!(keys, expected, "{found:#?}");
        assert!(found.iter().all(|(_, message)| message.contains("restart")), "{found:#?}");
        assert!(needed(&after, &after, &places).is_empty());
    }
}
