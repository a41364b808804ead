//! `chancery evidence`: the packets the adapter is held to, and bundles out of the record of a running node.

mod cards;
mod deliveries;
mod live;
mod record;
mod removed;
mod retention;
mod signers;
mod verifying;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::operating::cli::run;
use crate::support::server::Home;

fn packets() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/evidence/packets");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("packets").map(|file| file.expect("a file").path()).collect();
    files.sort();
    files
}

#[test]
fn a_packet_is_converted_or_refused_with_exit_code_2_and_lenience_takes_no_packet_away() {
    let home = Home::new();
    let (mut converted, mut refused) = (0, 0);
    for packet in packets() {
        let strict = run(&home, [Path::new("evidence"), Path::new("convert"), &packet]);
        let lenient = run(&home, [Path::new("evidence"), Path::new("convert"), Path::new("--lenient"), &packet]);
        match strict.code {
            Some(0) => {
                let batch: Value = serde_json::from_str(&strict.stdout).expect("a batch is JSON");
                let types: Vec<_> = batch["events"].as_array().expect("events").iter().map(|event| &event["type"]).collect();
                assert!(
                    types.iter().all(|kind| kind.as_str().is_some_and(|kind| kind.starts_with("assay.adapter.a2a."))),
                    "{types:?}"
                );
                assert_eq!(lenient.code, Some(0), "{}", packet.display());
                converted += 1;
            }
            Some(2) => {
                assert!(strict.stdout.is_empty() && !strict.stderr.is_empty(), "{}", packet.display());
                refused += 1;
            }
            other => panic!("{other:?}: {}", strict.stderr),
        }
    }
    assert!(converted > 0 && refused > 0, "{converted} converted, {refused} refused");
}

#[test]
fn a_packet_comes_from_a_file_or_the_standard_input() {
    let home = Home::new();
    let packet = packets().into_iter().find(|file| file.to_string_lossy().contains("happy")).expect("a packet");
    let from_file = run(&home, [Path::new("evidence"), Path::new("convert"), &packet]);
    let piped =
        home.command().args(["evidence", "convert", "-"]).stdin(Stdio::from(std::fs::File::open(&packet).unwrap())).output();
    let piped = String::from_utf8(piped.expect("it runs").stdout).expect("text");
    assert_eq!(from_file.code, Some(0), "{}", from_file.stderr);
    assert_eq!(piped, from_file.stdout);
    let missing = run(&home, ["evidence", "convert", "no-such-file.json"]);
    assert!(missing.code == Some(2) && missing.stderr.contains("no-such-file.json"), "{}", missing.stderr);
}

#[test]
fn a_packet_is_kept_before_it_is_read_also_if_it_is_refused() {
    let home = Home::new();
    for packet in packets() {
        let folder = home.path().join("raw");
        let ran = run(&home, [Path::new("evidence"), Path::new("convert"), Path::new("--keep"), &folder, &packet]);
        assert!(matches!(ran.code, Some(0 | 2)), "{}", ran.stderr);
        let bytes = std::fs::read(&packet).unwrap();
        let digest = chancery_evidence::record::hex(&chancery_evidence::record::sha256(&bytes));
        assert_eq!(std::fs::read(folder.join(&digest[..2]).join(&digest)).unwrap(), bytes, "{}", packet.display());
    }
    let nowhere = home.path().join("log");
    std::fs::write(&nowhere, "a file").unwrap();
    let ran = run(&home, [Path::new("evidence"), Path::new("convert"), Path::new("--keep"), &nowhere, &packets()[0]]);
    assert!(ran.code == Some(2) && ran.stderr.contains("Infrastructure: "), "{}", ran.stderr);
}
