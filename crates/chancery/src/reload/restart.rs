//! The changes that a running node cannot take over: each is a fault at its key, and the file is rejected whole.

use crate::config::{ChangedKey, ConfigFault, Places, TakesEffect};

const REASON: &str = "cannot change while the node runs; restart it, or put back what was there";

/// A fault for every changed key that takes effect at a start only.
pub(super) fn needed(changes: &[ChangedKey], places: &Places) -> Vec<ConfigFault> {
    let at_start = changes.iter().filter(|change| change.takes_effect == TakesEffect::Restart);
    at_start.map(|change| places.fault(&change.key, REASON)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn every_key_that_needs_a_restart_is_named_where_it_stands_and_the_others_are_not() {
        let before = Config::parse("[agents.a]\nrun = 'echo'\n").unwrap();
        let text = "listen = '127.0.0.1:1'\npublic_url = 'http://h'\ndata = 'd'\ndedupe = 'message_id'\n\
                    [agents.a]\nrun = 'echo'\nkey_env = 'K'\n[agents.b]\nrun = 'echo'\nkey_env = 'L'\n\
                    [store]\nsynchronous = 'normal'\n[identity]\nsignature_window_s = 1\nsignatures_remembered = 1\n\
                    [keys.push]\nenv = 'P'\n[tls]\ncert_file = 'c'\nkey_file = 'k'\n[limits]\nbody_bytes = 1\n[health]\nfailures = 1\n";
        let (after, places) = Config::read(text).unwrap();
        let mut found = needed(&before.changed_keys(&after), &places);
        found.sort_by_key(|fault| fault.line);
        let keys: Vec<_> = found.iter().map(|fault| (fault.line, fault.message.split(':').next().unwrap())).collect();
        let expected = [
            (1, "listen"),
            (2, "public_url"),
            (3, "data"),
            (7, "agents.a.key_env"),
            (12, "store.synchronous"),
            (14, "identity.signature_window_s"),
            (15, "identity.signatures_remembered"),
            (16, "keys.push"),
            (19, "tls.cert_file"),
            (20, "tls.key_file"),
        ];
        assert_eq!(keys, expected, "{found:#?}");
        assert!(found.iter().all(|fault| fault.message.contains("restart")), "{found:#?}");
        assert!(needed(&after.changed_keys(&after), &places).is_empty());
    }
}
