//! What is wrong with the `[outbound]` section, one entry at a time.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("outbound.{setting}: {fault}")]
pub struct OutboundFault {
    pub setting: &'static str,
    pub fault: String,
}

impl OutboundFault {
    pub(super) fn new(setting: &'static str, fault: impl Into<String>) -> Self {
        Self { setting, fault: fault.into() }
    }
}
