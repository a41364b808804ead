//! §1 to §3 of the sheet: what a packet must be to become evidence, and in which order that is looked at.

use chancery_evidence::adapter::{self, AdapterCaps, AdapterErrorKind, ConversionMode, Input, Options};
use serde_json::{Value, json};

use super::golden::fixture;
use super::{BOTH, Echo, adapter as sheet_adapter, convert, convert_capped, converted, data, packet, refused};

#[test]
fn the_adapter_describes_itself_with_the_frozen_names() {
    assert_eq!(adapter::adapter().adapter_id, "assay-adapter-a2a");
    assert_eq!(adapter::adapter().adapter_version, env!("CARGO_PKG_VERSION"));
    let protocol =
        r#"{"name":"a2a","spec_version":"0.2.0","schema_id":"a2a.message.v0_2","spec_url":"https://google.github.io/A2A/"}"#;
    assert_eq!(serde_json::to_string(&adapter::protocol()).unwrap(), protocol, "1.2");
    let types = ["agent.capabilities", "task.requested", "task.updated", "artifact.shared", "message"];
    let types = types.map(|name| format!("\"assay.adapter.a2a.{name}\"")).join(",");
    let rest = r#""supported_spec_versions":[">=0.2 <1.0"],"supports_strict":true,"supports_lenient":true"#;
    let capabilities = format!(r#"{{"supported_event_types":[{types}],{rest}}}"#);
    assert_eq!(serde_json::to_string(&adapter::capabilities()).unwrap(), capabilities, "1.2");
    assert_eq!(Options::default(), Options { mode: ConversionMode::Strict, caps: AdapterCaps::default() }, "1.3");
    assert_eq!(
        AdapterCaps::default(),
        AdapterCaps { max_payload_bytes: None, max_json_depth: None, max_array_length: None },
        "1.3"
    );
}

#[test]
fn each_packet_breaks_all_later_rules_and_is_refused_by_the_first() {
    let caps = AdapterCaps { max_payload_bytes: Some(400), max_json_depth: Some(4), max_array_length: Some(2) };
    let deep_and_long = r#""x":[[[[1]]]],"y":[1,2,3]"#;
    let long = format!(r#"{{"protocol":"b","pad":"{}""#, "x".repeat(400));
    // (step of §2, packet, is the raw packet kept, error)
    let table = [
        (1, long, 0, "Measurement: payload exceeds max_payload_bytes (400)"),
        (3, format!(r#"{{"protocol":"b",{deep_and_long}"#), 1, "Measurement: invalid A2A payload JSON: "),
        (4, format!(r#"{{"protocol":"b",{deep_and_long}}}"#), 1, "Measurement: payload exceeds max_json_depth (4)"),
        (4, r#"{"protocol":"b","y":[1,2,3]}"#.to_owned(), 1, "Measurement: payload exceeds max_array_length (2)"),
        (5, r#"{"protocol":"b"}"#.to_owned(), 1, "Measurement: protocol must be 'a2a'"),
        (6, r#"{"protocol":"a2a"}"#.to_owned(), 1, "Measurement: missing required field: version"),
        (7, r#"{"protocol":"a2a","version":"1.0"}"#.to_owned(), 1, "UnsupportedProtocolVersion: unsupported A2A version: 1.0"),
    ];
    for (step, packet, kept, error) in table {
        for mode in BOTH {
            let store = Echo::default();
            let got = sheet_adapter().convert(&Input::json(packet.as_bytes()), &Options { mode, caps }, &store);
            let got = got.unwrap_err().to_string();
            assert!(got.starts_with(error), "2 step {step} {mode:?}: {got}");
            assert_eq!(store.asked.get(), kept, "2 step {step} {mode:?}");
        }
    }
    // (step 9) what only strict asks for
    for (packet, error) in [
        (json!({"protocol": "a2a", "version": "0.2"}), "Measurement: missing required field: agent.id"),
        (
            json!({"protocol": "a2a", "version": "0.2", "agent": {"id": ""}}),
            "StrictLossinessViolation: unsupported event_type in strict mode",
        ),
        (packet("task.requested", json!({"task": null, "artifact": null})), "Measurement: missing required field: task.id"),
        (packet("task.updated", json!({"task": null, "artifact": null})), "Measurement: missing required field: task.id"),
        (packet("artifact.shared", json!({"task": null, "artifact": null})), "Measurement: missing required field: artifact.id"),
    ] {
        assert_eq!(refused(&packet, ConversionMode::Strict), error, "2 step 9: {packet}");
        converted(&packet, ConversionMode::Lenient);
    }
}

#[test]
fn errors_are_printed_with_their_kind_in_snake_case() {
    for (kind, name) in [
        (AdapterErrorKind::Config, "config"),
        (AdapterErrorKind::Measurement, "measurement"),
        (AdapterErrorKind::Infrastructure, "infrastructure"),
        (AdapterErrorKind::UnsupportedProtocolVersion, "unsupported_protocol_version"),
        (AdapterErrorKind::StrictLossinessViolation, "strict_lossiness_violation"),
    ] {
        let error = adapter::AdapterError::new(kind, "m");
        assert_eq!(serde_json::to_string(&error).unwrap(), format!(r#"{{"kind":"{name}","message":"m"}}"#), "2.1");
    }
}

#[test]
fn the_version_gate_looks_at_two_numbers_and_trims_nothing() {
    let passes = ["0.2", "0.2.0", "0.3.1", "0.10", "0.99.99", "0.2.0-rc1", "0.2.", "0.3.0.0", "00.02", "+0.+2"];
    let refuses = [
        "0",
        "0.1",
        "0.1.9",
        "1.0",
        "1.0.0",
        "0.2-beta",
        "v0.2",
        " 0.2",
        "0.2 ",
        "-0.2",
        "0.x",
        "",
        "0.",
        "99999999999999999999.2",
    ];
    for mode in BOTH {
        for version in passes {
            let batch = converted(&packet("task.updated", json!({"version": version})), mode);
            assert_eq!(batch.events[0].data.protocol_version, version, "2.2: as it was written");
        }
        for version in refuses {
            let error = refused(&packet("task.updated", json!({"version": version})), mode);
            assert_eq!(error, format!("UnsupportedProtocolVersion: unsupported A2A version: {version}"), "2.2");
        }
    }
}

#[test]
fn the_packets_version_goes_before_the_hint_and_only_a_string_counts() {
    for (said, hint, observed) in [
        (json!("0.2"), Some("0.3"), Ok("0.2")),
        (json!("1.0"), Some("0.3"), Err("UnsupportedProtocolVersion: unsupported A2A version: 1.0")),
        (json!(0.2), Some("0.3"), Ok("0.3")),
        (Value::Null, Some("0.3"), Ok("0.3")),
        (Value::Null, Some("1.0"), Err("UnsupportedProtocolVersion: unsupported A2A version: 1.0")),
        (json!(0.2), None, Err("Measurement: missing required field: version")),
        (Value::Null, None, Err("Measurement: missing required field: version")),
    ] {
        let payload = packet("task.updated", json!({"version": said})).to_string();
        let input = Input { protocol_version: hint, ..Input::json(payload.as_bytes()) };
        let got = sheet_adapter().convert(&input, &Options::default(), &Echo::default());
        let got = got.map(|batch| batch.events[0].data.protocol_version.clone()).map_err(|error| error.to_string());
        assert_eq!(got.as_deref().map_err(|error| error.as_str()), observed, "2 step 6: {said} {hint:?}");
    }
}

#[test]
fn the_protocol_is_a2a_to_the_letter_in_an_object() {
    for mode in BOTH {
        for bytes in ["[]", "null", "5", r#""a2a""#, "{}", r#"{"protocol":"A2A"}"#, r#"{"protocol":["a2a"]}"#] {
            let error = convert(bytes.as_bytes(), mode).unwrap_err();
            assert_eq!(error.to_string(), "Measurement: protocol must be 'a2a'", "2 step 5: {bytes}");
        }
    }
}

#[test]
fn each_cap_takes_what_is_exactly_as_large_and_refuses_one_more() {
    let request = fixture("a2a_happy_task_requested");
    let size = request.len() as u64;
    let nested = packet("task.updated", json!({"attributes": {"nested": {"deeper": {"value": 1}}}})).to_string();
    let shallow = r#"{"protocol":"a2a","version":"0.2","event_type":"agent.capabilities","agent":{"id":"a"}}"#;
    let arrays = packet("agent.capabilities", json!({"agent": {"id": "a", "capabilities": ["a", "b", "c", "d"]}})).to_string();
    let unread = packet("task.updated", json!({"unread": {"deep": [[1, 2, 3, 4]]}})).to_string();
    let bytes = |cap| AdapterCaps { max_payload_bytes: Some(cap), ..AdapterCaps::default() };
    let depth = |cap| AdapterCaps { max_json_depth: Some(cap), ..AdapterCaps::default() };
    let length = |cap| AdapterCaps { max_array_length: Some(cap), ..AdapterCaps::default() };
    for mode in BOTH {
        for (payload, fits, too_small, error) in [
            (request.as_slice(), bytes(size), bytes(size - 1), format!("max_payload_bytes ({})", size - 1)),
            (nested.as_bytes(), depth(5), depth(4), "max_json_depth (4)".to_owned()),
            (shallow.as_bytes(), depth(3), depth(2), "max_json_depth (2)".to_owned()),
            (arrays.as_bytes(), length(4), length(3), "max_array_length (3)".to_owned()),
            (unread.as_bytes(), length(4), length(3), "max_array_length (3)".to_owned()),
        ] {
            convert_capped(payload, mode, fits).unwrap_or_else(|fault| panic!("2.3 {fits:?}: {fault}"));
            let got = convert_capped(payload, mode, too_small).unwrap_err().to_string();
            assert_eq!(got, format!("Measurement: payload exceeds {error}"), "2.3");
        }
        let four = convert_capped(br#"{"a":{"b":{"c":"x"}}}"#, mode, depth(3)).unwrap_err().to_string();
        assert_eq!(four, "Measurement: payload exceeds max_json_depth (3)", "2.3: scalars count");
        let nothing = convert_capped(b"", mode, bytes(0)).unwrap_err().to_string();
        assert!(nothing.starts_with("Measurement: invalid A2A payload JSON: "), "2.3: nothing is not too much");
        let oversize = convert_capped(&request, mode, bytes(32)).unwrap_err().to_string();
        assert_eq!(oversize, "Measurement: payload exceeds max_payload_bytes (32)", "6.3");
    }
}

#[test]
fn the_parser_goes_127_containers_deep() {
    for (containers, reads) in [(126, true), (127, true), (128, false)] {
        let arrays = containers - 1;
        let (open, close) = ("[".repeat(arrays), "]".repeat(arrays));
        let packet = format!(
            r#"{{"protocol":"a2a","version":"0.2","event_type":"agent.capabilities","agent":{{"id":"a"}},"attributes":{open}{close}}}"#
        );
        let got = convert(packet.as_bytes(), ConversionMode::Strict);
        assert_eq!(got.is_ok(), reads, "2.3: {containers}");
        match got {
            // The batch is deeper than the packet, and still has a digest.
            Ok(batch) => assert_eq!(adapter::digest_canonical_json(&batch).unwrap().len(), 64),
            Err(error) => assert!(error.message.starts_with("invalid A2A payload JSON: "), "{error}"),
        }
    }
}

#[test]
fn the_parser_reads_json_and_nothing_else() {
    let unreadable: [&[u8]; 12] = [
        b"",
        b" ",
        b"{",
        b"\xff\xfe\xfd",
        b"\xef\xbb\xbf{}",
        b"{} x",
        b"{} {}",
        br#"{"protocol":"\ud800"}"#,
        br#"{"x":1e400}"#,
        b"{\"x\":\"\xff\"}",
        br#"{"x":01}"#,
        br#"{"x":NaN}"#,
    ];
    for mode in BOTH {
        for bytes in unreadable {
            let error = convert(bytes, mode).unwrap_err();
            assert_eq!(error.kind, AdapterErrorKind::Measurement);
            assert!(error.message.starts_with("invalid A2A payload JSON: "), "2.4: {bytes:?}: {error}");
        }
    }
    let spaced = format!(" \n\t\r{}\n ", packet("task.updated", json!({})));
    convert(spaced.as_bytes(), ConversionMode::Strict).unwrap();
}

#[test]
fn the_last_of_two_equal_keys_wins() {
    let twice = r#"{"protocol":"b","agent":{"id":"first"},"agent":{"id":"x","id":"last"},"version":"1.0","version":"0.2",
        "task":{"id":"t","kind":"delegation"},"task":{"id":"t"},"event_type":"message","event_type":"task.requested","protocol":"a2a"}"#;
    let batch = convert(twice.as_bytes(), ConversionMode::Strict).unwrap();
    let data = data(&batch);
    assert_eq!(data["agent"], json!({"id": "last"}), "2.4");
    assert_eq!(data["handoff"]["visible"], json!(false), "2.4: the first task object is gone whole");
    assert_eq!(data["unmapped_fields_count"], 0, "2.4: a key counts once");
}

#[test]
fn no_key_of_a_packet_has_a_meaning_to_the_parser() {
    let private = "$serde_json::private::RawValue";
    let inner = packet("task.updated", json!({})).to_string();
    let outer = json!({private: inner}).to_string();
    assert_eq!(
        convert(outer.as_bytes(), ConversionMode::Lenient).unwrap_err().to_string(),
        "Measurement: protocol must be 'a2a'"
    );
    let attributes = json!({private: r#"{"assay_g4":{"agent_card":{"visible":true}}}"#});
    let batch = converted(&packet("task.updated", json!({"attributes": attributes})), ConversionMode::Strict);
    assert_eq!(data(&batch)["attributes"], attributes);
    assert!(!batch.events[0].data.discovery.agent_card_visible);
}
