//! Programs that others wrote against the built server: SDK clients, agents, frameworks and libraries. `cargo xtask interop` fetches them.
#![allow(clippy::disallowed_methods, reason = "tests start tasks as they like, and wait for them")]

mod backs;
mod frameworks;
mod fronts;
mod grid;
mod implementation;
mod machine;
mod matrix;
mod server;
mod snippets;
mod table;
mod toolbox;

mod adapters;
mod bodies;
mod cards;
mod clients;
mod commands;
mod framework_matrix;
mod gateway;
mod instrumented;
mod rvagent;
mod webhooks;

use std::io::Write as _;

/// Straight to the terminal: the tables are wanted from a passing run too, whose output the harness would keep.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).expect("stdout takes the text");
}
