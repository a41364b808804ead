//! Agents built with others' servers behind our gateway, called by others' clients; prints every client before every agent.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::backs::{BACKS, Back};
use crate::fronts::{self, ready};
use crate::grid::{self, Seen};
use crate::machine::MACHINE;
use crate::say;
use crate::server::Server;
use crate::table::{Family, Row};
use crate::toolbox::Toolbox;

/// Agents that are tried at once. More would have the machine's load decide what times out.
const AT_ONCE: usize = 3;

/// The agents' gRPC has a port of its own, and a card may not lead to another place on this machine unless that is allowed. Agents that
/// do not stream are asked more often than usual, or this would take minutes longer. The gateway waits longer for an agent that was told
/// to stop than any check does, so that a cancellation the agent never got is seen. Clients dial gRPC by host and port.
const SETTINGS: &str = r#"
[outbound]
allow_nets = ["127.0.0.1/32"]
allow_http = true
[peers]
poll_ms = 10
[limits]
cancel_grace_ms = 120000
[card]
bindings = ["JSONRPC", "HTTP+JSON", "GRPC-TARGET"]
"#;

#[test]
fn peer_interop_agents_of_every_sdk_serve_clients_of_every_other_through_the_gateway() {
    let _alone = MACHINE.blocking_write();
    let tools = Toolbox::new();
    let drivers = [fronts::SDK_DRIVERS, &[fronts::RUST_DRIVER, fronts::RVAGENT_DRIVER]].concat();
    let drivers: Vec<Command> = drivers.into_iter().map(|driver| ready(&tools, driver)).collect();
    let agents: Vec<Command> = BACKS.iter().map(|back| ready(&tools, back.agent)).collect();
    let settings = tools.log("gateway").with_extension("toml");
    std::fs::write(&settings, SETTINGS).expect("the settings can be written");

    let next = AtomicUsize::new(0);
    let seen = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let which = next.fetch_add(1, Ordering::Relaxed);
                    let Some(back) = BACKS.get(which) else { return };
                    let rows = call(back, &agents[which], &drivers, &settings, &tools, which);
                    seen.lock().expect("nobody panics with it").push((which, Seen { back, rows }));
                }
            });
        }
    });
    let mut seen = seen.into_inner().expect("nobody panicked with it");
    seen.sort_by_key(|(which, _)| *which);
    let seen: Vec<Seen> = seen.into_iter().map(|(_, seen)| seen).collect();

    let families: Vec<&Family> = [fronts::SDKS, fronts::RUST, fronts::RVAGENT].into_iter().flatten().collect();
    say(&grid::render(&families, &seen));
    let faults: Vec<String> = seen.iter().flat_map(|seen| seen.faults(&families)).collect();
    assert!(faults.is_empty(), "{} rows are wrong:\n{}", faults.len(), faults.join("\n"));
}

/// Starts the agent and the gateway before it, and lets every client call the gateway.
fn call(back: &Back, agent: &Command, drivers: &[Command], settings: &Path, tools: &Toolbox, which: usize) -> Vec<Row> {
    let agent = Server::start(again(agent).args(back.arguments()), &tools.log(&format!("agent-{which}")));
    let settings = settings.to_str().expect("the path of the target folder is text");
    let gateway = Server::serving(&["--config", settings, "--agent", &agent.base], &tools.log(&format!("gateway-{which}")));
    let mut rows = Vec::new();
    for driver in drivers {
        let output = again(driver).arg(&gateway.base).output().expect("a prepared driver starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        rows.extend(printed.lines().map(|line| serde_json::from_str::<Row>(line).expect("a driver prints rows")));
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            say(&format!("{driver:?} before {} ended with {}: {complaint}\n", back.name(), output.status));
        }
    }
    rows
}

/// The same program, to be started once more.
fn again(command: &Command) -> Command {
    let mut again = Command::new(command.get_program());
    again.args(command.get_args());
    again
}

#[test]
fn a_row_that_fails_without_a_reason_or_works_against_one_is_a_fault() {
    let back = BACKS.iter().find(|back| !back.cannot.is_empty()).expect("one agent cannot do everything");
    let families: Vec<&Family> = fronts::RVAGENT.iter().collect();
    let rows = |right: bool| {
        let good = families.iter().flat_map(|family| family.good_rows());
        good.map(|row| Row { ok: right == back.cannot(&row.protocol, &row.operation).is_none(), ..row }).collect::<Vec<_>>()
    };
    let faults = |rows| Seen { back, rows }.faults(&families);
    assert_eq!(faults(rows(true)), Vec::<String>::new());
    assert_eq!(faults(rows(false)).len(), rows(false).len(), "every row says the opposite");
    let mut fewer = rows(true);
    fewer[0].operation = "unheard-of".into();
    assert_eq!(faults(fewer).len(), 2, "one is missing and one is unknown");
}
