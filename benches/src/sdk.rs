//! Agents that others' SDKs make, as the tests of interoperability have them: started on the core of the servers.

#[allow(dead_code, reason = "shared with the tests against other programs")]
#[path = "../../crates/chancery/tests/interop/toolbox.rs"]
mod toolbox;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, anyhow};

use self::toolbox::Toolbox;
use crate::ground::Ground;
use crate::server::Server;

/// Where all of them take JSON-RPC.
pub(crate) const PATH: &str = "rpc";

#[derive(Debug, Clone, Copy)]
pub(crate) enum Sdk {
    Python,
    Js,
    Rust,
}

impl Sdk {
    /// With what `cargo xtask interop` installed; the agent in Rust is built first.
    pub(crate) fn start(self, ground: &Ground) -> Result<Server> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/interop");
        // This program is in a folder of Cargo's target folder, named by its profile.
        let target = ground.own_program().ancestors().nth(2).unwrap_or(Path::new("target"));
        let tools = Toolbox::at(sources, target.join("tmp/interop"), "release");
        let prepared = match self {
            Self::Python => tools.python("python_1_3", "agent.py"),
            Self::Js => tools.node("js_1_3", "agent.mjs"),
            Self::Rust => tools.cargo("rust_0_2", "rust-agent"),
        };
        let prepared = prepared.map_err(|missing| anyhow!("an agent of another SDK cannot be made ready: {missing}"))?;
        let mut command = pinned(ground, &prepared);
        command.args(["JSONRPC", "1.0", "yes"]);
        Server::start_saying_where(command, ground.scratch().join(format!("sdk-{self:?}.log")))
    }
}

fn pinned(ground: &Ground, prepared: &Command) -> Command {
    let mut command = ground.on_server_core(Path::new(prepared.get_program()));
    command.args(prepared.get_args());
    command
}
