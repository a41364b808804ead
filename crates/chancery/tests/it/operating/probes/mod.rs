//! Probes that servers like this one fail: bursts, panics, parked tasks, races, and what things cost.

mod bursts;
mod costs;
mod endings;
mod hang_ups;
mod idle;
mod races;
mod retries;
mod slow_readers;
mod stops;

use crate::support::line::Line;
use crate::support::server::{Home, Server, Setup};

/// Nobody is to be turned away here: limits have tests of their own.
const OPEN: &str = "[limits]\ncalls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\nstreams_per_caller = 1000\n\
                    streams_per_task = 1000\nconnections_per_address = 1000\n";

/// Where tasks are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kept {
    InMemory,
    OnDisk,
}

/// A server of the conformance agent, and a line to it.
fn serve(home: &Home, kept: Kept, more: &str) -> (Server, Line) {
    let setup = Setup::in_home(home).args(["--agent", "conformance", "--data"]).args([home.data()]);
    let setup = if kept == Kept::InMemory { setup.args(["--memory"]) } else { setup };
    let server = setup.config(&format!("{OPEN}{more}")).start();
    let token = std::fs::read_to_string(home.data().join("admin.token")).expect("a token");
    let line = Line::to(server.url(), &token);
    (server, line)
}
