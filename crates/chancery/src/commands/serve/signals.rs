//! What signals do to `chancery serve`: SIGTERM and SIGINT stop it, SIGHUP makes it read its files again.

use std::sync::{Arc, Weak};

use anyhow::Context as _;
use chancery::cli_support::{Announced, Whereabouts};
use chancery::{Node, ReloadError};
use chancery_core::{LoopNeed, spawn_watched};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::commands::Failure;

/// Reloads config and certificate at every SIGHUP, which certificate tools send after a renewal. It writes
/// the current certificate to the data folder.
pub(super) fn reload_on_hang_up(
    node: &Arc<Node>,
    announced: Option<Weak<Announced>>,
    mut here: Whereabouts,
) -> Result<(), Failure> {
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let (node, stopping) = (Arc::clone(node), node.chancery().shutdown_token());
    let loops = node.chancery().loops().clone();
    loops.start("SIGHUP", LoopNeed::Optional, async move {
        while let Some(Some(())) = stopping.run_until_cancelled(hang_up.recv()).await {
            match node.reload().await {
                // What is wrong with a file was logged where it was found.
                Ok(_) | Err(ReloadError::Rejected(_)) => {}
                Err(error @ ReloadError::NoFile) => tracing::debug!(%error, "SIGHUP has no config file to reload"),
            }
            match node.reload_tls() {
                Ok(()) if node.speaks_tls() => tracing::info!("reloaded the TLS certificates"),
                Ok(()) => {}
                Err(error) => tracing::error!(%error, "cannot reload the TLS certificate; the node keeps the old one"),
            }
            here.certificate = node.certificate();
            let announced = announced.as_ref().and_then(Weak::upgrade);
            if let Some(Err(error)) = announced.map(|announced| announced.change(&here)) {
                tracing::error!(%error, "cannot write the new certificate to the data folder; commands on this machine reject it until the node restarts");
            }
        }
    });
    Ok(())
}

/// Fires at the first SIGTERM or SIGINT. A second one ends the process there and then.
pub(super) fn stop_on_signal() -> Result<CancellationToken, Failure> {
    let stop = CancellationToken::new();
    let fired = stop.clone();
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    // It is there before the node and after it, so that no tracker of a node has it.
    spawn_watched("signals", async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if fired.is_cancelled() {
                std::process::exit(1);
            }
            fired.cancel();
        }
    });
    Ok(stop)
}
