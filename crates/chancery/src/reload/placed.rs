//! Finds the place in a config file that a fault of the node belongs to.

use crate::build_error::BuildError;
use crate::caller_registry::CallerRegistryError;
use crate::config::{ConfigFault, Places};

/// The faults behind an error, each at the key it is about.
pub(crate) fn placed(error: BuildError, places: &Places) -> Vec<ConfigFault> {
    let (key, message) = match &error {
        BuildError::Callers(CallerRegistryError::Faulty(faults)) => {
            return faults.iter().map(|fault| places.fault(&format!("callers.{}", fault.name), &fault.reason)).collect();
        }
        BuildError::Agent { name, fault } => return vec![places.fault(&format!("agents.{name}"), fault)],
        BuildError::Rules(faults) => return faults.iter().map(|fault| places.fault("policy.rules", fault)).collect(),
        BuildError::TlsFile(error) => return vec![places.fault(&format!("tls.{}", error.key()), &error.reason())],
        BuildError::Callers(_) | BuildError::Credentials(_) | BuildError::WouldOpen => ("callers", error.to_string()),
        BuildError::Outbound(fault) => ("outbound", fault.clone()),
        BuildError::Push(fault) => ("push", fault.clone()),
        BuildError::Tls(_) => ("tls", error.to_string()),
        BuildError::Artifacts(_) => ("artifacts.schemas", error.to_string()),
        BuildError::Keys(_) => ("keys", error.to_string()),
        BuildError::Store(_) => ("store.url", error.to_string()),
        _ => ("agents", error.to_string()),
    };
    vec![places.fault(key, &message)]
}
