//! Where a request came from, as far as the connection tells.

use std::net::IpAddr;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct ConnectionOrigin {
    pub address: Option<IpAddr>,
    /// The certificate the caller showed in the TLS handshake, checked there, as DER.
    pub certificate: Option<Arc<[u8]>>,
}

impl From<IpAddr> for ConnectionOrigin {
    fn from(address: IpAddr) -> Self {
        Self { address: Some(address), certificate: None }
    }
}
