//! Official SDK clients of both protocol versions, and the `rvagent-a2a` crate, against the built server; prints one table.

use std::collections::BTreeSet;

use crate::fronts::{self, BINDINGS, Prepare, RUST, RVAGENT, SDKS};
use crate::machine::MACHINE;
use crate::server::Server;
use crate::table::{self, Family, Row};
use crate::toolbox::Toolbox;
use crate::{instrumented, say};

/// The official clients hand the address of gRPC to their gRPC library as it stands, which takes host and port only.
const SETTINGS: &str = "[card]\nbindings = ['JSONRPC', 'HTTP+JSON', 'GRPC-TARGET']\n";

/// A node that knows one caller, whose key no client here has.
const ONE_CALLER: &str =
    "[callers.planner]\nkey_hash = 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'\n";

const WITHOUT_CREDENTIALS: &str = "without-credentials";

/// Only 0.3 has codes that can be taken for something else.
const STRANGERS: &[Family] = &[
    Family { sdk: "python", sdk_version: "0.3.26", protocol: "0.3", bindings: BINDINGS, operations: &[WITHOUT_CREDENTIALS] },
    Family { sdk: "js", sdk_version: "0.3.14", protocol: "0.3", bindings: BINDINGS, operations: &[WITHOUT_CREDENTIALS] },
];

/// The driver's word for what is asked at the address of an agent.
const AT_ADDRESS: &str = "at-address";

/// gRPC has no path that could hold an address.
#[rustfmt::skip]
const AT_ADDRESSES: &[Family] = &[
    Family { sdk: "python", sdk_version: "1.3.0",  protocol: "1.0", bindings: WITH_PATH, operations: CARD_TO_ANSWER },
    Family { sdk: "python", sdk_version: "1.3.0",  protocol: "0.3", bindings: WITH_PATH, operations: CARD_TO_ANSWER },
    Family { sdk: "python", sdk_version: "0.3.26", protocol: "0.3", bindings: WITH_PATH, operations: CARD_TO_ANSWER },
    Family { sdk: "js",     sdk_version: "1.3.0",  protocol: "1.0", bindings: WITH_PATH, operations: CARD_TO_ANSWER },
    Family { sdk: "js",     sdk_version: "1.3.0",  protocol: "0.3", bindings: WITH_PATH, operations: CARD_TO_ANSWER },
    Family { sdk: "js",     sdk_version: "0.3.14", protocol: "0.3", bindings: WITH_PATH, operations: CARD_TO_ANSWER },
];

const WITH_PATH: &[&str] = &["JSONRPC", "HTTP+JSON"];

const CARD_TO_ANSWER: &[&str] = &["card", "send", "multi-turn", "stream", "get", "cancel"];

#[test]
fn official_sdk_clients_work_in_every_version_and_binding() {
    run(SDKS, fronts::SDK_DRIVERS, "", &[]);
}

#[test]
fn official_sdk_clients_go_from_the_card_to_an_answer_at_the_address_of_an_agent() {
    run(AT_ADDRESSES, fronts::SDK_DRIVERS, "", &[AT_ADDRESS]);
}

#[test]
fn official_clients_of_0_3_report_missing_credentials_and_not_a_missing_task() {
    let drivers: &[Prepare] = &[|tools| tools.python("python_0_3", "driver.py"), |tools| tools.node("js_0_3", "driver.mjs")];
    run(STRANGERS, drivers, ONE_CALLER, &[WITHOUT_CREDENTIALS]);
}

#[test]
fn the_official_rust_client_works_in_every_binding() {
    run(RUST, &[fronts::RUST_DRIVER], "", &[]);
}

#[test]
fn the_rvagent_client_works_as_far_as_its_wire_goes() {
    run(RVAGENT, &[fronts::RVAGENT_DRIVER], "", &[]);
}

/// Runs drivers with these arguments behind the address, against a server whose config has these lines beside the usual.
fn run(families: &[Family], drivers: &[Prepare], lines: &str, arguments: &[&str]) {
    let _shared = MACHINE.blocking_read();
    let tools = Toolbox::new();
    let commands: Vec<_> = drivers.iter().map(|prepare| fronts::ready(&tools, *prepare)).collect();

    // Tests run at once, and each has a server of its own.
    let log = tools.log(&[&[families[0].sdk], arguments].concat().join("-"));
    let settings = log.with_extension("toml");
    std::fs::write(&settings, format!("{SETTINGS}{lines}")).expect("the settings can be written");
    let settings = settings.to_str().expect("the path of the target folder is text");
    let data = log.with_extension("data");
    let folder = data.to_str().expect("the path of the target folder is text");
    // At an address the client is the agent `echo`: an agent that calls itself is refused.
    let at_address = arguments == [AT_ADDRESS];
    let agents: &[&str] = if at_address { &["--agent", "echo", "--agent", "conformance"] } else { &["--agent", "conformance"] };
    let server = Server::serving(&[&["--config", settings, "--data", folder], agents].concat(), &log);
    let base = match at_address {
        // The JS SDK looks for a card beside the last part of a URL that has no slash at its end.
        true => format!("{}/agents/conformance/", instrumented::address(&data, "echo")),
        false => server.base.clone(),
    };
    let mut rows = Vec::new();
    for mut command in commands {
        let output = command.arg(&base).args(arguments).output().expect("a prepared driver starts");
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
