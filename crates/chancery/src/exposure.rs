//! Listeners that accept every client or unencrypted credentials: `chancery serve` refuses them without
//! `--insecure`.

use std::net::SocketAddr;

/// Why a node without callers may not listen there, if it may not.
pub fn open_listener_fault(address: SocketAddr, is_open: bool, insecure: bool) -> Option<String> {
    let is_refused = is_open && !address.ip().is_loopback() && !insecure;
    is_refused.then(|| {
        format!(
            "{address} is not a loopback address, and without callers nobody is authenticated: anybody who reaches it could use the \
             agents and read every task. Add callers ([callers.NAME] in the config, or `chancery callers add NAME`), or \
             say --insecure"
        )
    })
}

/// Why a node may not listen for SWP there, if it may not: frames are not sent in plain where others could read them.
pub fn plain_swp_fault(address: SocketAddr, speaks_tls: bool, insecure: bool) -> Option<String> {
    let is_refused = !speaks_tls && !address.ip().is_loopback() && !insecure;
    is_refused.then(|| {
        format!(
            "{address} is not a loopback address, and without [tls] SWP is in plain: set [tls] with client_ca_file, or say --insecure"
        )
    })
}
