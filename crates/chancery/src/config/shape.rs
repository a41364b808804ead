//! Derives the JSON Schema of a type from its `Deserialize`. So the schema of a config needs no list of its
//! own that could differ from the reader.

mod probe;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use self::probe::{ProbeStep, ProbedType, Scalar, accepts, ask};

/// The JSON Schema of what `T` is read from.
pub(super) fn shape<T: DeserializeOwned>() -> Value {
    at::<T>(&mut Vec::new())
}

/// An object with these members and no others.
pub(super) fn closed(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// The shape of what is found by following `steps` from `T`.
fn at<T: DeserializeOwned>(steps: &mut Vec<ProbeStep>) -> Value {
    match ask::<T>(steps) {
        Some(ProbedType::Bool) => json!({ "type": "boolean" }),
        Some(ProbedType::Number) => json!({ "type": "number" }),
        Some(ProbedType::Text) => json!({ "type": "string" }),
        Some(ProbedType::Integer { least, most }) => integer::<T>(steps, least, most),
        Some(ProbedType::List) => json!({ "type": "array", "items": next::<T>(steps, ProbeStep::Inside) }),
        Some(ProbedType::Table) => json!({ "type": "object", "additionalProperties": next::<T>(steps, ProbeStep::Inside) }),
        Some(ProbedType::Struct(fields)) => {
            closed(fields.iter().map(|field| ((*field).to_owned(), next::<T>(steps, ProbeStep::Field(field)))).collect())
        }
        Some(ProbedType::OneOf(variants)) => one_of::<T>(steps, variants),
        Some(ProbedType::Anything) => several::<T>(steps),
        Some(ProbedType::Nothing) | None => json!({}),
    }
}

fn next<T: DeserializeOwned>(steps: &mut Vec<ProbeStep>, step: ProbeStep) -> Value {
    steps.push(step);
    let shape = at::<T>(steps);
    steps.pop();
    shape
}

/// Bounds tighter than those of the number's type are found by trying.
fn integer<T: DeserializeOwned>(steps: &mut Vec<ProbeStep>, least: i64, most: i64) -> Value {
    let taken = |number: i64, steps: &mut Vec<ProbeStep>| {
        steps.push(ProbeStep::Number(number));
        let taken = accepts::<T>(steps);
        steps.pop();
        taken
    };
    let smallest = if least == 0 { (0..=2).find(|number| taken(*number, steps)).unwrap_or(least) } else { least };
    let mut largest = most;
    if !taken(most, steps) && taken(smallest, steps) {
        let (mut good, mut bad) = (smallest, most);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if taken(middle, steps) { good = middle } else { bad = middle }
        }
        largest = good;
    }
    let mut shape = json!({ "type": "integer", "minimum": smallest });
    if largest < i64::MAX {
        shape["maximum"] = json!(largest);
    }
    shape
}

/// Words; a variant that carries something is a table with the variant's name as its only key.
fn one_of<T: DeserializeOwned>(steps: &mut Vec<ProbeStep>, variants: &[&'static str]) -> Value {
    let (mut words, mut tables) = (Vec::new(), Vec::new());
    for variant in variants {
        steps.push(ProbeStep::Variant(variant));
        if matches!(ask::<T>(steps), Some(ProbedType::Nothing)) {
            words.push(*variant);
        } else {
            let inside = at::<T>(steps);
            tables.push(json!({
                "type": "object", "properties": { *variant: inside }, "required": [variant], "additionalProperties": false,
            }));
        }
        steps.pop();
    }
    let words = json!({ "type": "string", "enum": words });
    if tables.is_empty() {
        return words;
    }
    tables.insert(0, words);
    json!({ "anyOf": tables })
}

/// For a type that takes values of several kinds: those it takes. Where a list of something is among them, that something
/// can stand alone too.
fn several<T: DeserializeOwned>(steps: &mut Vec<ProbeStep>) -> Value {
    steps.push(ProbeStep::As(Scalar::List));
    let item = ask::<T>(steps).filter(|asked| !matches!(asked, ProbedType::Anything)).map(|_| at::<T>(steps));
    steps.pop();
    if let Some(item) = item {
        return json!({ "anyOf": [item, { "type": "array", "items": item }] });
    }
    let kinds = [(Scalar::Bool, "boolean"), (Scalar::Integer, "integer"), (Scalar::Float, "number"), (Scalar::Text, "string")];
    let taken: Vec<&str> = kinds
        .into_iter()
        .filter(|(kind, _)| {
            steps.push(ProbeStep::As(*kind));
            let taken = accepts::<T>(steps);
            steps.pop();
            taken
        })
        .map(|(_, name)| name)
        .collect();
    if taken.is_empty() || taken.len() == kinds.len() { json!({}) } else { json!({ "type": taken }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Deserializer};

    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its shape matters")]
    enum Overflow {
        Shed,
        Queue { most: u32 },
    }

    struct Percent;

    impl<'de> Deserialize<'de> for Percent {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let number = u8::deserialize(from)?;
            if (1..=100).contains(&number) { Ok(Self) } else { Err(serde::de::Error::custom("must be from 1 to 100")) }
        }
    }

    #[derive(Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Sample {
        on: bool,
        small: u16,
        large: u64,
        signed: i32,
        share: Option<Percent>,
        ratio: f64,
        name: Option<String>,
        names: Vec<String>,
        by_name: std::collections::BTreeMap<String, u8>,
        overflow: Option<Overflow>,
        inner: Option<Box<Inner>>,
        any: Option<serde_json::Value>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Inner {
        needed: String,
        also: u8,
    }

    #[test]
    fn a_type_says_what_it_is_read_from() {
        let shape = shape::<Sample>();
        assert_eq!(shape["additionalProperties"], json!(false));
        let expected = json!({
            "on": { "type": "boolean" },
            "small": { "type": "integer", "minimum": 0, "maximum": 65535 },
            "large": { "type": "integer", "minimum": 0 },
            "signed": { "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX },
            "share": { "type": "integer", "minimum": 1, "maximum": 100 },
            "ratio": { "type": "number" },
            "name": { "type": "string" },
            "names": { "type": "array", "items": { "type": "string" } },
            "by_name": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 0, "maximum": 255 } },
            "overflow": { "anyOf": [
                { "type": "string", "enum": ["shed"] },
                {
                    "type": "object",
                    "properties": { "queue": closed(Map::from_iter([
                        ("most".to_owned(), json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })),
                    ])) },
                    "required": ["queue"],
                    "additionalProperties": false,
                },
            ] },
            "inner": closed(Map::from_iter([
                ("needed".to_owned(), json!({ "type": "string" })),
                ("also".to_owned(), json!({ "type": "integer", "minimum": 0, "maximum": 255 })),
            ])),
            "any": {},
        });
        assert_eq!(shape["properties"], expected);
    }
}
