//! Reads JSON that may be signed: text that two parsers could take for two different things is refused.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How deep lists and objects may be nested.
pub const MAX_DEPTH: usize = 64;
/// The largest integer that every reader of JSON holds exactly (I-JSON, RFC 7493).
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
/// From here on a double is canonically written with an exponent, so that no reader takes it for an exact
/// integer.
const EXPONENT_FROM: f64 = 1e21;
/// serde_json hands values to itself in members with such names, and takes a stranger's for its own: the text in
/// `{"$serde_json::private::RawValue": "…"}` would be read as JSON by the next reader, while we see a string.
const RESERVED: &str = "$serde_json::private::";

/// Why a text is not JSON of one meaning only, with the place.
#[derive(Debug, thiserror::Error)]
#[error("not strict JSON: {0}")]
pub struct StrictJsonFault(#[from] serde_json::Error);

/// How the fault of what is nested too deep begins.
const TOO_DEEP: &str = "nested more than";

impl StrictJsonFault {
    /// Whether the text is nested beyond [`MAX_DEPTH`]. The text after that point was not read.
    pub fn is_too_deep(&self) -> bool {
        self.0.is_data() && self.0.to_string().starts_with(TOO_DEEP)
    }
}

/// Reads one value and nothing after it. Refused: a member named twice (however the name is escaped) or with
/// a name that the JSON library reserves; half of a surrogate pair; a byte order mark; numbers that a double
/// does not hold; and nesting beyond [`MAX_DEPTH`].
pub fn parse(text: &str) -> Result<Value, StrictJsonFault> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict { depth: 0 }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn inside<E: de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom(format_args!("{TOO_DEEP} {MAX_DEPTH} deep")));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        if value > MAX_SAFE_INTEGER { Err(out_of_range(value)) } else { Ok(value.into()) }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > MAX_SAFE_INTEGER { Err(out_of_range(value)) } else { Ok(value.into()) }
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        // Also reached by integers too long for 64 bits, and by `9007199254740993.0`.
        if value.fract() == 0.0 && value.abs() > MAX_SAFE_INTEGER as f64 && value.abs() < EXPONENT_FROM {
            return Err(out_of_range(value));
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut list = Vec::new();
        while let Some(item) = from.next_element_seed(inside)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut members = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            if members.contains_key(&name) {
                return Err(de::Error::custom(format_args!("the member {name:?} is there twice")));
            }
            if name.starts_with(RESERVED) {
                return Err(de::Error::custom(format_args!("the member {name:?} has a reserved name")));
            }
            let value = from.next_value_seed(inside)?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

fn out_of_range<E: de::Error>(value: impl fmt::Display) -> E {
    E::custom(format_args!("{value} is beyond the integers that every reader holds exactly"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_two_meanings_is_refused() {
        let deep = |levels: usize| format!("{}0{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(&deep(MAX_DEPTH)).is_ok());
        for bad in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"x":[{"y":{"b":1,"c":2,"b":3}}]}"#,
            r#"{"$serde_json::private::RawValue":"{}"}"#,
            r#"{"a":[{"\u0024serde_json::private::Number":"1"}]}"#,
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800\u0041""#,
            r#"{"\ud800":1}"#,
            "\u{feff}{}",
            "{} {}",
            "1 2",
            "",
            "nul",
            "NaN",
            "Infinity",
            "01",
            "[1,]",
            "9007199254740992",
            "-9007199254740992",
            "9007199254740992.0",
            "18446744073709551616",
            "100000000000000000000",
            "1e400",
            "-1e400",
            &deep(MAX_DEPTH + 1),
            &deep(100_000),
        ] {
            assert!(parse(bad).is_err(), "{}", bad.chars().take(60).collect::<String>());
        }
    }

    #[test]
    fn everything_else_is_read_as_serde_json_reads_it() {
        for good in [
            "null",
            " {\"a\" : [true, false, \"\\u00e9\\ud83d\\ude00\", {}, []] }\n",
            "9007199254740991",
            "-9007199254740991",
            "1e21",
            "-0",
            "-0.0",
            "0.1",
            "5e-324",
        ] {
            assert_eq!(parse(good).unwrap(), serde_json::from_str::<Value>(good).unwrap(), "{good}");
        }
    }

    #[test]
    fn a_fault_tells_the_place() {
        let fault = parse("{\"a\":1,\n \"a\":2}").unwrap_err().to_string();
        assert_eq!(fault, "not strict JSON: the member \"a\" is there twice at line 2 column 4");
    }
}
