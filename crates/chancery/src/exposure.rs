//! Listeners that accept every client or unencrypted credentials: `chancery serve` refuses them without
//! `--insecure`.

use std::net::SocketAddr;

/// Why a node without callers may not listen there, if it may not.
pub fn open_listener_fault(address: SocketAddr, is_open: bool, insecure: bool) -> Option<String> {
    let is_refused = is_open && !address.ip().is_loopback() && !insecure;
    is_refused.then(|| {
        format!(
            "{address} is not a loopback address, and the node has no callers: every client that reaches it could use the agents and \
             read every task. Add a caller ([callers.NAME] in the config, or `chancery callers add NAME`), or use --insecure"
        )
    })
}

/// Why a node may not listen for SWP there, if it may not: frames are not sent in plain where others could read them.
pub fn plain_swp_fault(address: SocketAddr, speaks_tls: bool, insecure: bool) -> Option<String> {
    let is_refused = !speaks_tls && !address.ip().is_loopback() && !insecure;
    is_refused.then(|| {
        format!(
            "{address} is not a loopback address, and without [tls] SWP is not encrypted: set [tls] with client_ca_file, or use --insecure"
        )
    })
}
