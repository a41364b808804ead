//! JSON text to protobuf's Struct and Value, and back.

use std::fmt;

use chancery_protocol::{Error, Json, Metadata};
use prost_types::value::Kind;
use prost_types::{ListValue, NullValue, Struct, Value};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Objects and lists within one another, as many as a JSON request may nest. What protobuf readers take is less: most
/// stop at 100 messages within one another, and each object is three of them (the value, the object, the member).
pub const MAX_DEPTH: usize = 64;

/// The object as protobuf has it. Every number becomes a double, so an integer beyond 2^53 loses its last digits here.
pub(super) fn to_struct(metadata: &Metadata) -> Struct {
    match read_text(metadata.text()).kind {
        Some(Kind::StructValue(object)) => object,
        _ => Struct::default(),
    }
}

/// The value as protobuf has it. Every number becomes a double, so an integer beyond 2^53 loses its last digits here.
pub(super) fn to_value(json: &Json) -> Value {
    read_text(json.text())
}

pub(super) fn to_metadata(object: &Struct) -> Result<Metadata, Error> {
    let mut text = Vec::new();
    write_object(&mut text, object, MAX_DEPTH)?;
    Metadata::try_from(parsed(text)?).map_err(|fault| Error::invalid_field("", fault))
}

pub(super) fn to_json(value: &Value) -> Result<Json, Error> {
    let mut text = Vec::new();
    write_value(&mut text, value, MAX_DEPTH)?;
    parsed(text)
}

fn parsed(text: Vec<u8>) -> Result<Json, Error> {
    let text = String::from_utf8(text).map_err(|fault| Error::invalid_field("", fault.to_string()))?;
    Json::parse(text).map_err(|fault| Error::invalid_field("", fault.to_string()))
}

pub(super) fn of_kind(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

/// Text that is JSON by its grammar and still no value (a number no double can hold, half a surrogate pair) is null.
fn read_text(text: &str) -> Value {
    let mut reader = serde_json::Deserializer::from_str(text);
    Levels(MAX_DEPTH).deserialize(&mut reader).unwrap_or_else(|_| null())
}

fn null() -> Value {
    of_kind(Kind::NullValue(NullValue::NullValue.into()))
}

/// Reads a value with at most so many levels. Deeper values become null: no reader could read them. They
/// cannot come from a request, because the door limits its depth.
struct Levels(usize);

impl<'de> DeserializeSeed<'de> for Levels {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Levels {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(null())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(of_kind(Kind::BoolValue(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(of_kind(Kind::NumberValue(value as f64)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(of_kind(Kind::NumberValue(value as f64)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(of_kind(Kind::NumberValue(value)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(of_kind(Kind::StringValue(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(of_kind(Kind::StringValue(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let Some(below) = self.0.checked_sub(1) else {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(null());
        };
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(Levels(below))? {
            values.push(value);
        }
        Ok(of_kind(Kind::ListValue(ListValue { values })))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let Some(below) = self.0.checked_sub(1) else {
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(null());
        };
        let mut object = Struct::default();
        while let Some(name) = members.next_key::<String>()? {
            object.fields.insert(name, members.next_value_seed(Levels(below))?);
        }
        Ok(of_kind(Kind::StructValue(object)))
    }
}

fn write_value(out: &mut Vec<u8>, value: &Value, levels: usize) -> Result<(), Error> {
    match &value.kind {
        None => return Err(Error::invalid_field("", "has a value of no kind")),
        Some(Kind::NullValue(_)) => out.extend_from_slice(b"null"),
        Some(Kind::BoolValue(value)) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Some(Kind::NumberValue(number)) => write_number(out, *number)?,
        Some(Kind::StringValue(text)) => write_text(out, text)?,
        Some(Kind::ListValue(list)) => write_list(out, list, levels)?,
        Some(Kind::StructValue(object)) => write_object(out, object, levels)?,
    }
    Ok(())
}

fn write_list(out: &mut Vec<u8>, list: &ListValue, levels: usize) -> Result<(), Error> {
    let below = one_less(levels)?;
    out.push(b'[');
    for (index, value) in list.values.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_value(out, value, below)?;
    }
    out.push(b']');
    Ok(())
}

fn write_object(out: &mut Vec<u8>, object: &Struct, levels: usize) -> Result<(), Error> {
    let below = one_less(levels)?;
    out.push(b'{');
    for (index, (name, value)) in object.fields.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(out, name)?;
        out.push(b':');
        write_value(out, value, below)?;
    }
    out.push(b'}');
    Ok(())
}

fn one_less(levels: usize) -> Result<usize, Error> {
    levels.checked_sub(1).ok_or_else(|| Error::invalid_field("", format!("is nested deeper than {MAX_DEPTH} levels")))
}

/// Whole numbers are written without a point, as ProtoJSON does: `5` came in as `5.0` and leaves as `5`.
fn write_number(out: &mut Vec<u8>, number: f64) -> Result<(), Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_finite() {
        return Err(Error::invalid_field("", "has a number that is not finite"));
    }
    let whole = number.fract() == 0.0 && number.abs() <= EXACT && !(number == 0.0 && number.is_sign_negative());
    let written = if whole { serde_json::to_writer(out, &(number as i64)) } else { serde_json::to_writer(out, &number) };
    written.map_err(|fault| Error::invalid_field("", fault.to_string()))
}

fn write_text(out: &mut Vec<u8>, text: &str) -> Result<(), Error> {
    serde_json::to_writer(out, text).map_err(|fault| Error::invalid_field("", fault.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    fn nested(levels: usize) -> Json {
        json(&format!("{}1{}", "[".repeat(levels), "]".repeat(levels)))
    }

    #[test]
    fn every_kind_of_value_comes_back() {
        for text in [
            "null",
            "true",
            "false",
            "0",
            "-7",
            "9007199254740991",
            "0.1",
            "-0.0",
            "1e300",
            r#""a \"quoted\" line\nand \u0000 more ☃""#,
            "[]",
            "{}",
            r#"[1,[null,{"a":[{}]}],"b"]"#,
            r#"{"":{"":[]},"name":"x","on":false}"#,
        ] {
            assert_eq!(to_json(&to_value(&json(text))).unwrap(), json(text), "{text}");
        }
    }

    #[test]
    fn integers_beyond_the_reach_of_a_double_lose_digits() {
        let back = to_json(&to_value(&json("9007199254740993"))).unwrap();
        assert_eq!(back.text(), "9007199254740992");
        assert_eq!(to_json(&to_value(&json("18446744073709551615"))).unwrap().to_value(), 1.8446744073709552e19);
    }

    #[test]
    fn text_that_is_no_value_becomes_null() {
        assert_eq!(to_value(&json("1e999")), null());
        assert_eq!(to_value(&json(r#""\ud800""#)), null());
    }

    #[test]
    fn sixty_four_levels_pass_and_one_more_is_refused_on_the_way_in() {
        assert_eq!(to_json(&to_value(&nested(64))).unwrap(), nested(64));
        let deeper = of_kind(Kind::ListValue(ListValue { values: vec![to_value(&nested(64))] }));
        let fault = to_json(&deeper).unwrap_err();
        assert_eq!(fault.violations[0].description, "is nested deeper than 64 levels");
    }

    #[test]
    fn what_lies_deeper_than_the_limit_is_cut_off_on_the_way_out() {
        for levels in [65, 100, 127, 100_000] {
            let cut = to_json(&to_value(&nested(levels))).unwrap();
            let expected = format!("{}null{}", "[".repeat(64), "]".repeat(64));
            assert_eq!(cut.text(), expected, "{levels} levels");
        }
    }

    #[test]
    fn what_json_cannot_say_is_refused() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(to_json(&of_kind(Kind::NumberValue(number))).is_err());
        }
        assert!(to_json(&Value { kind: None }).is_err());
        let object = Struct { fields: [("a".to_owned(), Value { kind: None })].into() };
        assert!(to_metadata(&object).is_err());
    }
}
