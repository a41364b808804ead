//! The agents others' servers make: how each is started, and what it cannot do.

use crate::fronts::Prepare;

/// An agent behind the gateway, called by us over one binding.
pub(crate) struct Back {
    pub(crate) sdk: &'static str,
    pub(crate) sdk_version: &'static str,
    pub(crate) protocol: &'static str,
    pub(crate) binding: &'static str,
    pub(crate) streams: bool,
    pub(crate) agent: Prepare,
    pub(crate) cannot: &'static [Cannot],
}

/// Rows that are not possible with an agent, for callers of some versions.
pub(crate) struct Cannot {
    pub(crate) protocols: &'static [&'static str],
    pub(crate) operations: &'static [&'static str],
    pub(crate) reason: &'static str,
}

impl Back {
    pub(crate) fn name(&self) -> String {
        let streams = if self.streams { "" } else { " without streams" };
        format!("{} {}, A2A {} over {}{streams}", self.sdk, self.sdk_version, self.protocol, self.binding)
    }

    /// What the agent is started with.
    pub(crate) fn arguments(&self) -> [&'static str; 3] {
        [self.binding, self.protocol, self.streams()]
    }

    pub(crate) fn streams(&self) -> &'static str {
        if self.streams { "yes" } else { "no" }
    }

    pub(crate) fn cannot(&self, protocol: &str, operation: &str) -> Option<&'static Cannot> {
        self.cannot.iter().find(|cannot| cannot.protocols.contains(&protocol) && cannot.operations.contains(&operation))
    }
}

const PYTHON: Prepare = |tools| tools.python("python_1_3", "agent.py");
const OLDER_PYTHON: Prepare = |tools| tools.python("python_0_3", "agent.py");
const JS: Prepare = |tools| tools.node("js_1_3", "agent.mjs");
const OLDER_JS: Prepare = |tools| tools.node("js_0_3", "agent.mjs");
const RUST: Prepare = |tools| tools.cargo("rust_0_2", "rust-agent");
const RVAGENT: Prepare = |tools| tools.cargo("rvagent", "rvagent-agent");

const NEWER: &[&str] = &["1.0", "0.3"];

const NO_STREAMS: &[Cannot] = &[
    Cannot {
        protocols: NEWER,
        operations: &["stream"],
        reason: "its card says that it does not stream, so its artifact is seen when it is whole and not in chunks",
    },
    Cannot { protocols: &["original"], operations: &["send-subscribe"], reason: "the same" },
];

const RVAGENT_CANNOT: &[Cannot] = &[
    Cannot {
        protocols: NEWER,
        operations: &["message"],
        reason: "in the original protocol an agent answers with a task and with nothing else",
    },
    Cannot {
        protocols: NEWER,
        operations: &["stream"],
        reason: "its server answers a request to stream with one answer at the end, so an artifact never comes in chunks",
    },
    Cannot { protocols: &["original"], operations: &["send-subscribe"], reason: "the same" },
];

#[rustfmt::skip]
const fn back(sdk: &'static str, sdk_version: &'static str, protocol: &'static str, binding: &'static str, agent: Prepare) -> Back {
    Back { sdk, sdk_version, protocol, binding, streams: true, agent, cannot: &[] }
}

const fn without_streams(back: Back) -> Back {
    Back { streams: false, cannot: NO_STREAMS, ..back }
}

pub(crate) const BACKS: &[Back] = &[
    back("python", "1.3.0", "1.0", "JSONRPC", PYTHON),
    back("python", "1.3.0", "1.0", "HTTP+JSON", PYTHON),
    back("python", "1.3.0", "1.0", "GRPC", PYTHON),
    without_streams(back("python", "1.3.0", "1.0", "JSONRPC", PYTHON)),
    back("python", "1.3.0", "0.3", "JSONRPC", PYTHON),
    back("python", "0.3.26", "0.3", "JSONRPC", OLDER_PYTHON),
    back("python", "0.3.26", "0.3", "HTTP+JSON", OLDER_PYTHON),
    back("python", "0.3.26", "0.3", "GRPC", OLDER_PYTHON),
    back("js", "1.3.0", "1.0", "JSONRPC", JS),
    back("js", "1.3.0", "1.0", "HTTP+JSON", JS),
    back("js", "1.3.0", "1.0", "GRPC", JS),
    back("js", "1.3.0", "0.3", "HTTP+JSON", JS),
    back("js", "0.3.14", "0.3", "JSONRPC", OLDER_JS),
    back("js", "0.3.14", "0.3", "HTTP+JSON", OLDER_JS),
    back("js", "0.3.14", "0.3", "GRPC", OLDER_JS),
    without_streams(back("js", "0.3.14", "0.3", "JSONRPC", OLDER_JS)),
    back("rust", "0.5.3", "1.0", "JSONRPC", RUST),
    back("rust", "0.5.3", "1.0", "HTTP+JSON", RUST),
    back("rust", "0.5.3", "1.0", "GRPC", RUST),
    Back { streams: false, cannot: RVAGENT_CANNOT, ..back("rvagent", "0.1.0", "original", "JSONRPC", RVAGENT) },
];
