//! The part of a signed card that its signatures cover: the server of the card may have added the other
//! members.

use chancery_protocol::AgentCard;
use serde_json::Value;

use super::read;

/// The card without what no signature covers, and its text. `None` if that changes nothing of what is read from it.
pub(super) fn vouched(text: &str, card: &AgentCard, covered: &Value) -> Result<Option<(AgentCard, String)>, String> {
    let wire: Value = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
    let text = within(&wire, Some(covered)).unwrap_or_default().to_string();
    let (read, ..) = read::read(&text)?;
    let read = AgentCard { signatures: card.signatures.clone(), ..read };
    Ok((read != *card).then_some((read, text)))
}

/// As much of a value as is covered. What is empty says nothing, so it need not be: some forms leave out even required members
/// that are.
fn within(value: &Value, covered: Option<&Value>) -> Option<Value> {
    match (value, covered) {
        (Value::Object(members), Some(Value::Object(covered))) => {
            let kept = members.iter().filter_map(|(name, value)| Some((name.clone(), within(value, covered.get(name))?)));
            Some(Value::Object(kept.collect()))
        }
        (Value::Array(items), Some(Value::Array(covered))) => Some(Value::Array(items_within(items, covered))),
        (_, Some(covered)) => Some(covered.clone()),
        (value, None) => hollow(value),
    }
}

fn items_within(items: &[Value], covered: &[Value]) -> Vec<Value> {
    let pairs = |items: &[&Value]| {
        let same = items.len() == covered.len();
        same.then(|| items.iter().zip(covered).filter_map(|(item, covered)| within(item, Some(covered))).collect())
    };
    let all: Vec<&Value> = items.iter().collect();
    // Forms that leave out what is empty leave it out of lists too.
    let said = || all.iter().copied().filter(|item| hollow(item).is_none()).collect::<Vec<_>>();
    pairs(&all).or_else(|| pairs(&said())).unwrap_or_else(|| covered.to_vec())
}

/// What is left of a value that holds nothing but empty ones. `None` if it says anything.
fn hollow(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some(Value::Null),
        Value::String(text) => text.is_empty().then(|| Value::String(String::new())),
        Value::Array(items) => items.iter().all(|item| hollow(item).is_some()).then(|| Value::Array(Vec::new())),
        Value::Object(members) => {
            members.values().all(|value| hollow(value).is_some()).then(|| Value::Object(Default::default()))
        }
        Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn card() -> Value {
        json!({
            "name": "A", "description": "", "version": "1", "capabilities": { "extensions": [] },
            "defaultInputModes": [], "defaultOutputModes": ["text/plain"],
            "supportedInterfaces": [{ "url": "https://a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
            "skills": [{}, { "id": "s", "name": "S", "description": "", "tags": [] }],
        })
    }

    /// As the official SDKs sign it.
    fn dense() -> Value {
        json!({
            "name": "A", "version": "1", "defaultOutputModes": ["text/plain"],
            "supportedInterfaces": [{ "url": "https://a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
            "skills": [{ "id": "s", "name": "S" }],
        })
    }

    #[test]
    fn what_is_empty_stays_and_what_nobody_vouched_for_goes() {
        let read = |value: &Value| within(value, Some(&dense())).unwrap();
        let mut kept = card();
        kept["capabilities"] = json!({});
        kept["skills"].as_array_mut().unwrap().remove(0);
        assert_eq!(read(&card()), kept, "a list has what it was signed with");
        let mut forged = card();
        forged["icon_url"] = json!("https://elsewhere");
        forged["capabilities"]["streaming"] = json!(false);
        forged["skills"][1]["input_modes"] = json!(["x"]);
        forged["securityRequirements"] = json!([{ "schemes": {} }]);
        kept["securityRequirements"] = json!([]);
        kept.as_object_mut().unwrap().remove("capabilities");
        assert_eq!(read(&forged), kept);
    }

    #[test]
    fn a_card_that_is_covered_but_for_what_is_empty_is_read_as_it_came() {
        let mut whole = card();
        whole["skills"].as_array_mut().unwrap().remove(0);
        let text = whole.to_string();
        let (read, ..) = read::read(&text).unwrap();
        assert_eq!(vouched(&text, &read, &dense()), Ok(None));
        whole["icon_url"] = json!("https://elsewhere");
        let text = whole.to_string();
        let (forged, ..) = read::read(&text).unwrap();
        let (card, text) = vouched(&text, &forged, &dense()).unwrap().unwrap();
        assert_eq!((&card, read::read(&text).unwrap().0), (&read, read.clone()));
    }
}
