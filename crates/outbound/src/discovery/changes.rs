//! What is different between two cards of one agent, member by member, in few words.

use std::collections::BTreeMap;

use chancery_protocol::AgentCard;
use serde::Serialize;
use serde_json::{Value, json};

/// What came, what went and what is no longer the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CardChange {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
}

/// The members that differ in what `structure` looks at.
pub fn changes(before: &AgentCard, after: &AgentCard) -> BTreeMap<&'static str, CardChange> {
    let (before, after) = (promises(before), promises(after));
    let differing = before.into_iter().zip(after).filter_map(|((member, before), (_, after))| {
        let change = CardChange {
            added: after.keys().filter(|name| !before.contains_key(*name)).cloned().collect(),
            removed: before.keys().filter(|name| !after.contains_key(*name)).cloned().collect(),
            changed: before.iter().filter(|(name, what)| after.get(*name).is_some_and(|now| now != *what)).map(name_of).collect(),
        };
        (change != CardChange::default()).then_some((member, change))
    });
    differing.collect()
}

fn name_of((name, _): (&String, &Value)) -> String {
    name.clone()
}

type Named = BTreeMap<String, Value>;

/// Every promise of a card under a name that a person can tell it by. The order of interfaces counts: the first is called.
fn promises(card: &AgentCard) -> [(&'static str, Named); 5] {
    let interfaces = card.supported_interfaces.iter().enumerate().map(|(place, one)| {
        let tenant = one.tenant.as_ref().map_or_else(String::new, |tenant| format!(" for {tenant}"));
        (format!("{} {} {}{tenant}", one.protocol_binding, one.protocol_version, one.url), json!(place))
    });
    let skills = card
        .skills
        .iter()
        .map(|skill| (skill.id.clone(), json!([skill.input_modes, skill.output_modes, skill.security_requirements])));
    let schemes = card.security_schemes.iter().map(|(name, scheme)| (name.clone(), json!(scheme)));
    let required = (!card.security_requirements.is_empty()).then(|| ("required".to_owned(), json!(card.security_requirements)));
    let input = card.default_input_modes.iter().map(|mode| format!("in {mode}"));
    let modes = input.chain(card.default_output_modes.iter().map(|mode| format!("out {mode}")));
    let can = &card.capabilities;
    let flags = [
        ("streaming", can.streaming),
        ("push notifications", can.push_notifications),
        ("extended card", can.extended_agent_card),
    ];
    let flags = flags.into_iter().filter_map(|(name, flag)| Some((name.to_owned(), json!(flag?))));
    let extensions = can.extensions.iter().map(|extension| (extension.uri.clone(), json!(extension.required)));
    [
        ("interfaces", interfaces.collect()),
        ("skills", skills.collect()),
        ("schemes", schemes.chain(required).collect()),
        ("modes", modes.map(|mode| (mode, Value::Null)).collect()),
        ("capabilities", flags.chain(extensions).collect()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::AgentInterface;

    #[test]
    fn a_change_is_told_by_its_member_and_its_name() {
        let interface = |url: &str| AgentInterface {
            url: url.to_owned(),
            protocol_binding: "JSONRPC".into(),
            tenant: None,
            protocol_version: "1.0".into(),
        };
        let before = AgentCard { supported_interfaces: vec![interface("https://a")], ..AgentCard::default() };
        assert!(changes(&before, &AgentCard { description: "other words".into(), ..before.clone() }).is_empty());
        let mut after = before.clone();
        after.supported_interfaces = vec![interface("https://b"), interface("https://a")];
        after.capabilities.streaming = Some(true);
        after.default_input_modes = vec!["text/plain".into()];
        let found = changes(&before, &after);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), ["capabilities", "interfaces", "modes"]);
        assert_eq!(found["interfaces"].added, ["JSONRPC 1.0 https://b"]);
        assert_eq!(found["interfaces"].changed, ["JSONRPC 1.0 https://a"], "it is no longer the first");
        assert_eq!(found["capabilities"].added, ["streaming"]);
        assert_eq!(found["modes"].added, ["in text/plain"]);
    }
}
