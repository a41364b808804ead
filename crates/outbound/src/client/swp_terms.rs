//! Settings of an SWP peer that are not in its address.

use crate::terms::ClientCertificate;

/// Settings of an SWP peer beside its address.
#[derive(Clone, Debug, Default)]
pub struct SwpTerms {
    /// The peer accepts whole A2A messages in protobuf, and answers with them.
    pub speaks_a2a: bool,
    /// The skill for messages that name none.
    pub skill: Option<String>,
    /// The client certificate for TLS.
    pub certificate: Option<ClientCertificate>,
}
