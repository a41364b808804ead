//! Logs, on stderr: for people on a terminal, as JSON for everything else.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Starts logging. `RUST_LOG` says how much; without it, what an operator should know.
pub(super) fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // A log that cannot be written, as on a full disk, is nothing to complain of on stderr: that would be a panic in whatever was at work.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false);
    let started =
        if std::io::stderr().is_terminal() { log.try_init() } else { log.json().flatten_event(true).with_ansi(false).try_init() };
    if let Err(error) = started {
        super::complain(&format!("logs cannot be written: {error}"));
    }
}
