//! The named limits on registrations.

use serde::{Deserialize, Serialize};

use super::registration::RegistrationLimits;

/// Part of the `[push]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PushLimits {
    /// Bytes of a URL.
    pub url_bytes: usize,
    /// Bytes of a token.
    pub token_bytes: usize,
    /// Bytes of the credentials.
    pub credentials_bytes: usize,
    /// The most registrations of one task.
    pub configs_per_task: usize,
    /// The most registrations of one tenant.
    pub configs_per_tenant: usize,
    /// The largest page of a list of registrations.
    pub page_size: i32,
}

impl Default for PushLimits {
    fn default() -> Self {
        Self {
            url_bytes: 2_048,
            token_bytes: 4_096,
            credentials_bytes: 8_192,
            configs_per_task: 10,
            configs_per_tenant: 10_000,
            page_size: 100,
        }
    }
}

impl PushLimits {
    pub(crate) fn counted(&self) -> RegistrationLimits {
        RegistrationLimits { per_task: self.configs_per_task, per_tenant: self.configs_per_tenant }
    }
}
