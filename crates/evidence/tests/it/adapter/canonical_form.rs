//! §5.1 of the sheet: the adapter's own canonical JSON.

use chancery_evidence::adapter::{canonical_json_bytes, digest_canonical_json};
use serde_json::Value;

fn canonical(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap();
    String::from_utf8(canonical_json_bytes(&value).unwrap()).unwrap()
}

#[test]
fn numbers_keep_their_kind() {
    for (number, form) in [
        ("1", "1"),
        ("1.0", "1.0"),
        ("1e2", "100.0"),
        ("-0", "-0.0"),
        ("0", "0"),
        ("0.1", "0.1"),
        ("123456789.5", "123456789.5"),
        ("1e-7", "1e-7"),
        ("0.00001", "0.00001"),
        ("1e21", "1e+21"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("-9223372036854775808", "-9223372036854775808"),
    ] {
        assert_eq!(canonical(number), form, "5.1, 5.2");
    }
}

#[test]
fn keys_go_by_code_point_and_not_by_utf16() {
    let keys = "{\"\u{1f600}\":1,\"\u{ffff}\":2,\"b\":[3,1,2],\"a\":{\"d\":null,\"c\":true}}";
    assert_eq!(canonical(keys), "{\"a\":{\"c\":true,\"d\":null},\"b\":[3,1,2],\"\u{ffff}\":2,\"\u{1f600}\":1}", "5.1, 5.2");
    assert_eq!(canonical(r#"{ "\u0062" : 1 , "a\"" : 2 }"#), r#"{"a\"":2,"b":1}"#, "5.1: sorted by what they say");
}

#[test]
fn only_what_must_be_is_escaped() {
    let text = "\"\\ \u{8}\u{c}\n\r\t\u{0}\u{1f} / \u{7f} \u{2028} é \u{1f600}";
    let form = "\"\\\"\\\\ \\b\\f\\n\\r\\t\\u0000\\u001f / \u{7f} \u{2028} é \u{1f600}\"";
    assert_eq!(String::from_utf8(canonical_json_bytes(text).unwrap()).unwrap(), form, "5.1");
}

#[test]
fn digests_are_lower_case_hex_without_a_prefix() {
    let empty_object = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!(digest_canonical_json(&serde_json::json!({})).unwrap(), empty_object, "5.1");
}
