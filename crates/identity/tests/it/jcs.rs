//! RFC 8785 by its own examples, and by the property that a canonical text is its own canonical form.

use chancery_identity::{jcs, strict_json};
use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

fn canonical(value: &Value) -> String {
    String::from_utf8(jcs::canonical(value).unwrap()).unwrap()
}

#[test]
fn numbers_are_written_as_appendix_b_says() {
    let table: &[(u64, &str)] = &[
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ];
    for (bits, written) in table {
        let number = Number::from_f64(f64::from_bits(*bits)).unwrap();
        assert_eq!(canonical(&Value::Number(number)), *written, "{bits:016x}");
    }
    for not_finite in [0x7fff_ffff_ffff_ffff_u64, 0x7ff0_0000_0000_0000] {
        assert_eq!(Number::from_f64(f64::from_bits(not_finite)), None, "JSON has no such number");
    }
}

#[test]
fn the_examples_of_sections_3_2_2_and_3_2_3_come_out_as_printed() {
    let read = |text: &str| strict_json::parse(text).unwrap();
    // §3.2.2
    let primitives = read(concat!(
        r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"#,
        r#""string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#
    ));
    let expected = concat!(
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    assert_eq!(canonical(&primitives), expected);
    // §3.2.3: names sort by UTF-16, so U+1F600 (D83D DE00) comes before U+FB33.
    let names = read(concat!(
        r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","#,
        r#""\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#
    ));
    let order = ["Carriage Return", "One", "Control", "Latin Small", "Euro Sign", "Emoji", "Hebrew"];
    let written = canonical(&names);
    let places: Vec<_> = order.iter().map(|name| written.find(name).unwrap()).collect();
    assert!(places.is_sorted(), "{written}");
}

#[test]
fn astral_names_come_before_the_private_use_area() {
    assert_eq!(
        canonical(&json!({"\u{e000}": 1, "\u{10000}": 2, "\u{ffff}": 3})),
        "{\"\u{10000}\":2,\"\u{e000}\":1,\"\u{ffff}\":3}"
    );
}

#[test]
fn the_same_number_is_written_the_same_way() {
    for (text, written) in
        [("1e21", "1e+21"), ("-0", "0"), ("-0.0", "0"), ("1.0", "1"), ("1E0", "1"), ("10e-1", "1"), ("1e-7", "1e-7")]
    {
        assert_eq!(canonical(&strict_json::parse(text).unwrap()), written, "{text}");
    }
}

#[test]
fn integers_that_a_double_may_round_are_refused() {
    for (integer, fine) in [
        (json!(9_007_199_254_740_991_u64), true),
        (json!(-9_007_199_254_740_991_i64), true),
        (json!(9_007_199_254_740_992_u64), false),
        (json!(-9_007_199_254_740_992_i64), false),
        (json!(9_007_199_254_740_993_u64), false),
        (json!(u64::MAX), false),
        (json!(i64::MIN), false),
    ] {
        assert_eq!(jcs::canonical(&json!({ "a": [integer] })).is_ok(), fine, "{integer}");
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::Number)),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn a_canonical_text_is_its_own_canonical_form(value in values()) {
        let text = value.to_string();
        // Numbers out of range are refused; whatever is read has one canonical form, which is read again as the same.
        if let Ok(read) = strict_json::parse(&text) {
            let once = canonical(&read);
            let again = strict_json::parse(&once).map_err(|fault| TestCaseError::fail(format!("{once}: {fault}")))?;
            prop_assert_eq!(canonical(&again), once);
        }
    }
}
