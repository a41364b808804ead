//! The copy of `attributes` that goes into evidence: keys sorted, and arrays of nothing but strings sorted too.

use serde_json::Value;

/// Other arrays keep their order, scalars stay as they are.
pub(super) fn normalized(value: &Value) -> Value {
    match value {
        Value::Array(items) if items.iter().all(Value::is_string) => {
            Value::Array(sorted_strings(items).into_iter().map(Value::String).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(normalized).collect()),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().map(|(key, member)| (key.clone(), normalized(member))).collect();
            members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        scalar => scalar.clone(),
    }
}

/// The strings among the items in code point order, duplicates kept.
pub(super) fn sorted_strings(items: &[Value]) -> Vec<String> {
    let mut strings: Vec<String> = items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    strings.sort_unstable();
    strings
}
