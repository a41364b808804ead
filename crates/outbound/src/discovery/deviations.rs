//! Lists where a card departs from the text of its version, by member. Such a card is read all the same.

use chancery_wire::tolerant::{Leniencies, Leniency};
use serde_json::Value;

/// One member of a card that deviates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardDeviation {
    pub leniency: Leniency,
    /// As `skills[0].description`.
    pub member: String,
    pub fault: &'static str,
}

const CARD: [&str; 6] = ["name", "version", "capabilities", "defaultInputModes", "defaultOutputModes", "skills"];
const SKILL: [&str; 3] = ["id", "name", "tags"];

/// Returns the deviations of a card's text. A text that is no JSON object has none: it is not read either.
pub fn deviations(text: &str) -> Vec<CardDeviation> {
    let Ok(card) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let mut found = Vec::new();
    // Only the original protocol lets cards go without a description and modes.
    let is_original = card["authentication"].is_object() && card.get("supportedInterfaces").is_none();
    let optional = |name: &str| is_original && name.starts_with("default");
    let required = CARD.into_iter().filter(|name| !optional(name));
    require(&card, "", required, &mut found);
    if !is_original {
        require(&card, "", ["description"], &mut found);
    }
    for (index, skill) in items(&card["skills"]) {
        let members = SKILL.into_iter().chain(["description"]).filter(|name| !is_original || ["id", "name"].contains(name));
        require(skill, &format!("skills[{index}]."), members, &mut found);
    }
    if card["provider"].is_object() {
        require(&card["provider"], "provider.", ["organization", "url"], &mut found);
    }
    match card.get("supportedInterfaces") {
        Some(listed) => {
            for (index, interface) in items(listed) {
                let place = format!("supportedInterfaces[{index}].");
                require(interface, &place, ["url", "protocolBinding"], &mut found);
                version(interface, &place, &mut found);
            }
        }
        None if !is_original => version(&card, "", &mut found),
        None => {}
    }
    nulls(&card, "", &mut found);
    found
}

/// The names of the deviations, once each.
pub fn leniencies(deviations: &[CardDeviation]) -> Leniencies {
    deviations.iter().map(|one| one.leniency).collect()
}

fn items(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

fn require<'m>(object: &Value, place: &str, members: impl IntoIterator<Item = &'m str>, found: &mut Vec<CardDeviation>) {
    for name in members {
        let snake = || object.get(snake_case(name));
        if object.get(name).or_else(snake).is_none_or(Value::is_null) {
            found.push(CardDeviation {
                leniency: Leniency::IncompleteCard,
                member: format!("{place}{name}"),
                fault: "is missing",
            });
        }
    }
}

fn version(object: &Value, place: &str, found: &mut Vec<CardDeviation>) {
    let stated = object.get("protocolVersion").or_else(|| object.get("protocol_version"));
    if stated.and_then(Value::as_str).is_none_or(|text| text.trim().is_empty()) {
        let member = format!("{place}protocolVersion");
        found.push(CardDeviation { leniency: Leniency::NoInterfaceVersion, member, fault: "is missing" });
    }
}

/// Members beside the required ones that are `null`; those were listed as missing.
fn nulls(card: &Value, place: &str, found: &mut Vec<CardDeviation>) {
    for (name, value) in card.as_object().into_iter().flatten() {
        let member = format!("{place}{name}");
        if value.is_null() && !found.iter().any(|one| one.member == member) {
            found.push(CardDeviation { leniency: Leniency::NullMember, member, fault: "is null" });
        }
    }
}

fn snake_case(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_ascii_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn card() -> Value {
        json!({
            "name": "A", "description": "d", "version": "1", "capabilities": {}, "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"], "skills": [{ "id": "s", "name": "S", "description": "d", "tags": [] }],
            "supportedInterfaces": [{ "url": "https://a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        })
    }

    fn members(card: &Value) -> Vec<String> {
        deviations(&card.to_string()).into_iter().map(|one| format!("{} {}", one.member, one.fault)).collect()
    }

    #[test]
    fn law_1_4_1_a_card_that_lacks_members_is_listed_member_by_member() {
        assert_eq!(members(&card()), [""; 0]);
        let mut bare = card();
        for name in ["description", "version", "capabilities"] {
            bare.as_object_mut().unwrap().remove(name);
        }
        bare["skills"][0]["description"] = Value::Null;
        bare["provider"] = json!({ "organization": "O" });
        bare["iconUrl"] = Value::Null;
        let expected = [
            "version is missing",
            "capabilities is missing",
            "description is missing",
            "skills[0].description is missing",
            "provider.url is missing",
            "iconUrl is null",
        ];
        assert_eq!(members(&bare), expected);
    }

    #[test]
    fn law_1_4_2_an_entry_without_a_version_is_listed_even_beside_a_top_level_one() {
        let mut open = card();
        open["supportedInterfaces"][0].as_object_mut().unwrap().remove("protocolVersion");
        open["protocolVersion"] = json!("0.3");
        assert_eq!(members(&open), ["supportedInterfaces[0].protocolVersion is missing"]);
        assert_eq!(leniencies(&deviations(&open.to_string())), Leniencies::from([Leniency::NoInterfaceVersion]));
    }

    #[test]
    fn cards_of_older_versions_are_held_to_their_own_members() {
        let original = json!({
            "name": "A", "url": "https://a", "version": "1", "capabilities": {}, "authentication": { "schemes": [] },
            "skills": [{ "id": "s", "name": "S" }],
        });
        assert_eq!(members(&original), [""; 0]);
        let mut older = card();
        older.as_object_mut().unwrap().remove("supportedInterfaces");
        older["url"] = json!("https://a");
        assert_eq!(members(&older), ["protocolVersion is missing"]);
        assert!(deviations("[]").len() > 3 && deviations("no JSON").is_empty());
    }
}
