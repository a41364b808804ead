//! One `agent.json` for both kinds of readers: the signature of the `rvagent-a2a` crate inside, the ADR's around it.

use chancery_protocol::AgentId;
use serde_json::Value;

use super::adr::{self, AGENT_ID};
use super::{CardFault, rvagent};
use crate::keys::{Cards, SigningKey};

/// Sets `agent_id` and both signatures. The inner one comes first, because the outer one covers it.
pub fn sign_original_card(card: &mut Value, key: &SigningKey<Cards>) -> Result<AgentId, CardFault> {
    rvagent::sign_rvagent_view(card, key)?;
    adr::sign_adr_card(card, key)
}

/// Who signed a card that may have either signature or both. The ADR's covers the whole card and decides if it is there; where both
/// are, they must be of one agent.
pub fn verify_original_card(card: &Value) -> Result<AgentId, CardFault> {
    let inner = match rvagent::verify_rvagent_card(card) {
        Err(CardFault::Unsigned) => None,
        other => Some(other?),
    };
    let outer = match adr::verify_card_value(card) {
        Err(CardFault::Unsigned) => None,
        other => Some(other?),
    };
    match (outer, inner) {
        (Some(outer), Some(inner)) if outer != inner => Err(CardFault::invalid("its two signatures are of two agents")),
        (Some(agent), _) => Ok(agent),
        // A claim beside the inner signature is not covered by it, so it has to be true by itself.
        (None, Some(agent)) => match card.get(AGENT_ID) {
            Some(claimed) if claimed.as_str() != Some(agent.as_str()) => {
                Err(CardFault::invalid("agent_id is not that of the key"))
            }
            _ => Ok(agent),
        },
        (None, None) => Err(CardFault::Unsigned),
    }
}

/// A card that verified, as far as its signatures cover it: the ADR's all of it, the inner one no more than its crate reads.
pub fn covered_original_card(card: &Value) -> Result<Value, CardFault> {
    match adr::verify_card_value(card) {
        Ok(_) => Ok(card.clone()),
        Err(_) => rvagent::view(card),
    }
}
