//! A node in front of agents elsewhere: it is told from them by nothing, and their faults are its answers.

mod a2a_cli;
mod addresses;
mod agent_settings;
pub(crate) mod agents;
mod canary;
mod chain;
mod cheapest;
mod circuit_breaker;
mod deputies;
mod discover;
mod doctor;
mod executor_remote;
mod extended;
mod fallback;
mod faults;
mod front_card;
mod guards_loops;
mod guards_nodes;
mod hostile_card;
mod input_modes;
mod laws;
mod lineage_bytes;
mod lineage_ring;
mod missed_words;
mod one_client;
pub(crate) mod one_way;
mod open_loops;
mod open_trees;
mod pages;
mod passed_on;
mod recorded;
mod refused;
mod relay;
mod ring;
mod scripted;
mod signposts;
pub(crate) mod skill_routes;
mod unknown_members;

use crate::support::server::{Home, Server, Setup};

/// Pauses a test can wait for. Agents on other ports of this machine may be called, because a card says so.
const QUICK: &str = "[peers]\nreconnect_ms = 10\nmax_reconnect_ms = 40\npoll_ms = 10\nmax_poll_ms = 40\n";
const ANYWHERE_HERE: &str = "[outbound]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n";
/// A hundred callers at once over each transport are more connections than one address may usually have.
const CROWD: &str = "[limits]\nconnections_per_address = 2000\n";

/// A node in front of the agent at that URL, with its tasks in memory.
fn in_front_of(url: &str, config: &str) -> Server {
    in_front_of_with(url, config, "")
}

/// The same, asking the agent for a stream whatever its callers ask for.
fn streaming_from(url: &str, config: &str) -> Server {
    in_front_of_with(url, config, "stream = 'always'")
}

/// The same with settings of the agent.
fn in_front_of_with(url: &str, config: &str, settings: &str) -> Server {
    let home = Home::new();
    let data = home.data();
    let config = format!("{config}\n[agents.front]\nurl = '{url}'\n{settings}\n");
    Setup::in_home(&home).args(["--memory", "--data"]).args([data]).config(&config).start()
}

/// A node with the conformance agent.
fn conformance() -> Server {
    Setup::conformance().config(&format!("{CROWD}cancel_grace_ms = 50\n")).start()
}
