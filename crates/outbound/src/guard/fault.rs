//! What is wrong with the `[outbound]` section, one entry at a time.

/// A setting of `[outbound]` that the guard cannot use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("outbound.{setting}: {fault}")]
pub struct OutboundFault {
    /// The name of the setting.
    pub setting: &'static str,
    /// Why the guard cannot use it.
    pub fault: String,
}

impl OutboundFault {
    pub(super) fn new(setting: &'static str, fault: impl Into<String>) -> Self {
        Self { setting, fault: fault.into() }
    }
}
