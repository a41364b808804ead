//! Official SDK clients of both protocol versions, and the `rvagent-a2a` crate, against the built server; prints one table.

#[path = "interop/fronts.rs"]
mod fronts;
#[path = "interop/server.rs"]
mod server;
#[path = "interop/table.rs"]
mod table;
#[path = "interop/toolbox.rs"]
mod toolbox;

use std::collections::BTreeSet;
use std::io::Write;

use fronts::{Prepare, RUST, RVAGENT, SDKS};
use server::Server;
use table::{Family, Row};
use toolbox::Toolbox;

/// The official clients hand the address of gRPC to their gRPC library as it stands, which takes host and port only.
const SETTINGS: &str = "[card]\nbindings = ['JSONRPC', 'HTTP+JSON', 'GRPC-TARGET']\n";

#[test]
fn official_sdk_clients_work_in_every_version_and_binding() {
    run(SDKS, fronts::SDK_DRIVERS);
}

#[test]
fn the_official_rust_client_works_in_every_binding() {
    run(RUST, &[fronts::RUST_DRIVER]);
}

#[test]
fn the_rvagent_client_works_as_far_as_its_wire_goes() {
    run(RVAGENT, &[fronts::RVAGENT_DRIVER]);
}

fn run(families: &[Family], drivers: &[Prepare]) {
    let tools = Toolbox::new();
    let mut commands = Vec::new();
    for prepare in drivers {
        match prepare(&tools) {
            Ok(command) => commands.push(command),
            Err(missing) if std::env::var_os("CI").is_none() => {
                return say(&format!("skipped, not everything can be installed here: {missing}\n"));
            }
            Err(missing) => panic!("cannot install what the suite needs: {missing}"),
        }
    }

    let settings = tools.log(families[0].sdk).with_extension("toml");
    std::fs::write(&settings, SETTINGS).expect("the settings can be written");
    let settings = settings.to_str().expect("the path of the target folder is text");
    let server = Server::serving(&["--config", settings, "--agent", "conformance"], &tools.log(families[0].sdk));
    let mut rows = Vec::new();
    for mut command in commands {
        let output = command.arg(&server.base).output().expect("a prepared driver starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        rows.extend(printed.lines().map(|line| serde_json::from_str::<Row>(line).expect("a driver prints rows")));
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            say(&format!("{command:?} ended with {}: {complaint}\n", output.status));
        }
    }
    say(&table::render(families, &rows));
    let faults = faults(families, &rows);
    assert!(faults.is_empty(), "{} rows are wrong:\n{}", faults.len(), faults.join("\n"));
}

/// Every row that failed, is missing, or was never asked for.
fn faults(families: &[Family], rows: &[Row]) -> Vec<String> {
    let expected: BTreeSet<_> = families.iter().flat_map(Family::rows).collect();
    let got: BTreeSet<_> = rows.iter().map(Row::key).collect();
    let failed = rows.iter().filter(|row| !row.ok).map(|row| format!("{}: {}", row.key(), row.detail));
    let missing = expected.difference(&got).map(|key| format!("{key}: no such row was printed"));
    let unknown = got.difference(&expected).map(|key| format!("{key}: not in the expected list"));
    failed.chain(missing).chain(unknown).collect()
}

#[test]
fn a_row_that_is_missing_failed_or_unknown_is_a_fault() {
    let mut rows: Vec<Row> = RVAGENT.iter().flat_map(Family::good_rows).collect();
    assert_eq!(faults(RVAGENT, &rows), Vec::<String>::new());
    rows[0].ok = false;
    rows[1].operation = "unheard-of".into();
    rows.pop();
    assert_eq!(faults(RVAGENT, &rows).len(), 4, "one failed, one renamed (missing and unknown), one gone");
}

/// Straight to the terminal: the table is wanted from a passing run too, whose output the harness would keep.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).expect("stdout takes the table");
}
