//! `discovery`: which signals about agent cards were seen in a packet (freeze G4-A, v1).
//!
//! A boolean that is true means one thing: a producer put the JSON boolean `true` at the allowlisted path,
//! inside nested objects. It says nothing about the card, its server, or its reader.
//!
//! `typed_payload` and `unmapped` are frozen members of the source enum that v1 never produces: no typed path and no rule for unmapped keys is
//! frozen yet. What v1 does produce is `attributes` and `unknown`. `signature_material_visible` is `false` for every packet in v1.

use serde::Serialize;
use serde_json::Value;

/// On every event, with all four members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DiscoveryFacts {
    /// `attributes.assay_g4.agent_card.visible` was the boolean `true`.
    pub agent_card_visible: bool,
    /// Which class of source set `agent_card_visible`, and nothing about that source.
    pub agent_card_source_kind: AgentCardSource,
    /// `attributes.assay_g4.extended_card_access.visible` was the boolean `true`. Moves independently of the agent card.
    pub extended_card_access_visible: bool,
    /// A slot that v1 leaves at `false`.
    pub signature_material_visible: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCardSource {
    /// Never produced by v1.
    TypedPayload,
    Attributes,
    /// Never produced by v1.
    Unmapped,
    #[default]
    Unknown,
}

/// The classes of source in which a signal was seen.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    typed: bool,
    attributes: bool,
    unmapped: bool,
}

impl AgentCardSource {
    /// The frozen order, all of it, so that a later freeze that adds a source changes no decision between the others.
    fn first_of(seen: Seen) -> Self {
        match seen {
            Seen { typed: true, .. } => Self::TypedPayload,
            Seen { attributes: true, .. } => Self::Attributes,
            Seen { unmapped: true, .. } => Self::Unmapped,
            _ => Self::Unknown,
        }
    }
}

impl DiscoveryFacts {
    /// The attributes as they came are all that v1 looks at; neither capabilities nor other keys nor counts play a part.
    pub(super) fn observe(attributes: Option<&Value>) -> Self {
        let signals = attributes.and_then(|attributes| member(attributes, "assay_g4"));
        let says_visible = |surface| signals.and_then(|signals| member(signals, surface)).is_some_and(is_visible);
        let agent_card_visible = says_visible("agent_card");
        Self {
            agent_card_visible,
            agent_card_source_kind: AgentCardSource::first_of(Seen { attributes: agent_card_visible, ..Seen::default() }),
            extended_card_access_visible: says_visible("extended_card_access"),
            signature_material_visible: false,
        }
    }
}

fn is_visible(surface: &Value) -> bool {
    member(surface, "visible") == Some(&Value::Bool(true))
}

/// A member of an object. Anything that is no object has none.
fn member<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.as_object()?.get(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_source_goes_before_attributes_those_before_unmapped_keys_and_those_before_nothing() {
        for bits in 0..8 {
            let seen = Seen { typed: bits & 4 != 0, attributes: bits & 2 != 0, unmapped: bits & 1 != 0 };
            let first = match bits {
                4.. => AgentCardSource::TypedPayload,
                2.. => AgentCardSource::Attributes,
                1 => AgentCardSource::Unmapped,
                _ => AgentCardSource::Unknown,
            };
            assert_eq!(AgentCardSource::first_of(seen), first, "{seen:?}");
        }
    }
}
