//! The clients others wrote: how each is started, and every row it owes.

use std::process::Command;

use crate::table::Family;
use crate::toolbox::Toolbox;

pub(crate) const BINDINGS: &[&str] = &["JSONRPC", "HTTP+JSON", "GRPC"];

#[rustfmt::skip]
const V1_0: &[&str] = &[
    "card", "send", "message", "multi-turn", "stream", "get", "list", "cancel", "resubscribe", "resubscribe-parked",
    "task-not-found", "refused-stream", "task-not-cancelable", "push",
];

/// As 1.0, but no SDK has a list operation for 0.3.
#[rustfmt::skip]
const V0_3: &[&str] = &[
    "card", "send", "message", "multi-turn", "stream", "get", "cancel", "resubscribe", "resubscribe-parked",
    "task-not-found", "refused-stream", "task-not-cancelable", "push",
];

#[rustfmt::skip]
const ORIGINAL: &[&str] = &[
    "card", "send", "executor", "multi-turn", "rejected-as-failed", "get", "cancel", "stream", "send-subscribe", "resubscribe",
    "resubscribe-get", "task-not-found", "refused-stream", "task-not-cancelable", "push",
];

/// Every row the drivers must produce. A driver that prints fewer, or others, fails the test.
#[rustfmt::skip]
pub(crate) const SDKS: &[Family] = &[
    Family { sdk: "python", sdk_version: "1.3.0",  protocol: "1.0", bindings: BINDINGS, operations: V1_0 },
    Family { sdk: "python", sdk_version: "1.3.0",  protocol: "0.3", bindings: BINDINGS, operations: V0_3 },
    Family { sdk: "python", sdk_version: "0.3.26", protocol: "0.3", bindings: BINDINGS, operations: V0_3 },
    Family { sdk: "js",     sdk_version: "1.3.0",  protocol: "1.0", bindings: BINDINGS, operations: V1_0 },
    Family { sdk: "js",     sdk_version: "1.3.0",  protocol: "0.3", bindings: BINDINGS, operations: V0_3 },
    Family { sdk: "js",     sdk_version: "0.3.14", protocol: "0.3", bindings: BINDINGS, operations: V0_3 },
];

#[rustfmt::skip]
pub(crate) const RUST: &[Family] = &[
    Family { sdk: "rust", sdk_version: "0.2.9", protocol: "1.0", bindings: BINDINGS, operations: V1_0 },
];

#[rustfmt::skip]
pub(crate) const RVAGENT: &[Family] = &[
    Family { sdk: "rvagent-a2a", sdk_version: "0.1.0", protocol: "original", bindings: &["JSONRPC"], operations: ORIGINAL },
];

/// Gets one driver ready to run, or says what is missing.
pub(crate) type Prepare = fn(&Toolbox) -> Result<Command, String>;

/// The program, which `cargo xtask interop` fetched. A test without it fails and repeats what to run.
pub(crate) fn ready(tools: &Toolbox, prepare: Prepare) -> Command {
    prepare(tools).unwrap_or_else(|missing| panic!("{missing}"))
}

pub(crate) const SDK_DRIVERS: &[Prepare] = &[
    |tools| tools.python("python_1_3", "driver.py"),
    |tools| tools.python("python_0_3", "driver.py"),
    |tools| tools.node("js_1_3", "driver.mjs"),
    |tools| tools.node("js_0_3", "driver.mjs"),
];

pub(crate) const RUST_DRIVER: Prepare = |tools| tools.cargo("rust_0_2", "interop-rust");

pub(crate) const RVAGENT_DRIVER: Prepare = |tools| tools.cargo("rvagent", "interop-rvagent");
