//! Whether a card is signed, by whom, and whether that is true.

use chancery::protocol::AgentId;
use chancery_identity::cards::{CardFault, KeyHint, VerifiedCard, VerifyRules, verify_card_signatures, verify_original_card};
use chancery_identity::{Jwks, KeyUse, PublicKey, strict_json};
use serde_json::{Value, json};

use super::super::show;
use super::card_keys::{CardSource, Pins, introduced, published};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Valid,
    Unsigned,
    Invalid,
    /// The card is signed by an unknown key.
    NoKey,
    /// It came in a form that its signature does not cover.
    Unchecked,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Unsigned => "unsigned",
            Self::Invalid => "invalid",
            Self::NoKey => "no key",
            Self::Unchecked => "not checked",
        }
    }
}

#[derive(Debug)]
struct Signer {
    /// Cards of the original protocol have no names of keys.
    kid: Option<String>,
    algorithm: &'static str,
    agent_id: Option<AgentId>,
}

#[derive(Debug)]
pub(super) struct Signature {
    pub(super) state: State,
    by: Vec<Signer>,
    pub(super) reason: Option<String>,
    /// Members that no signature covers. Any server on the way could have added them.
    uncovered: Vec<String>,
}

impl Signature {
    fn without(state: State, reason: impl Into<Option<String>>) -> Self {
        Self { state, by: Vec::new(), reason: reason.into(), uncovered: Vec::new() }
    }

    /// A card whose form is not the one that was signed.
    pub(super) fn unchecked(reason: &str) -> Self {
        Self::without(State::Unchecked, Some(reason.to_owned()))
    }

    fn invalid(reason: impl Into<String>) -> Self {
        Self::without(State::Invalid, Some(reason.into()))
    }

    pub(super) fn to_json(&self) -> Value {
        let by = |one: &Signer| json!({ "kid": one.kid, "algorithm": one.algorithm, "agentId": one.agent_id });
        let mut shown = json!({ "state": self.state.word(), "by": self.by.iter().map(by).collect::<Vec<_>>() });
        if let Some(reason) = &self.reason {
            shown["reason"] = json!(reason);
        }
        if !self.uncovered.is_empty() {
            shown["uncovered"] = json!(self.uncovered);
        }
        shown
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let because = self.reason.as_ref().map(|reason| format!(": {}", show::safe(reason))).unwrap_or_default();
        let mut lines = match self.state {
            State::Valid => self.by.iter().map(signer_line).collect(),
            State::Unsigned => vec![format!("signature     none{because}")],
            State::Invalid => vec![format!("signature     INVALID{because}")],
            State::NoKey | State::Unchecked => vec![format!("signature     not verified{because}")],
        };
        lines.extend(self.uncovered.iter().map(|path| format!("not signed    {}", show::safe(path))));
        lines
    }
}

fn signer_line(signer: &Signer) -> String {
    let agent = signer.agent_id.as_ref().map(|id| format!(", agent {id}")).unwrap_or_default();
    let key = signer.kid.as_ref().map(|kid| format!(" key {kid}")).unwrap_or_default();
    format!("signature     valid: {}{key}{agent}", signer.algorithm)
}

/// Verifies the text of a card.
pub(super) async fn verify(text: &str, card: &Value, origin: &CardSource<'_>, pins: &Pins) -> Signature {
    let is_listed = card["signatures"].as_array().is_some_and(|list| !list.is_empty());
    let is_original = card.get("signature").is_some() || card.pointer("/metadata/ruvector/signature").is_some();
    match (is_listed, is_original) {
        (true, _) => listed(text, card, origin, pins).await,
        (false, true) => original(text, pins),
        (false, false) => {
            let mixed = card.get("supportedInterfaces").is_some() && card.get("url").is_some();
            let reason =
                mixed.then_some("a card of both versions at once is never signed; ask for one of them with --a2a-version");
            Signature::without(State::Unsigned, reason.map(str::to_owned))
        }
    }
}

/// A card that brings its own key: it proves that the holder of the agent id made it.
fn original(text: &str, pins: &Pins) -> Signature {
    let verified = strict_json::parse(text).map_err(CardFault::from).and_then(|card| verify_original_card(&card));
    let agent_id = match verified {
        Ok(agent_id) => agent_id,
        Err(fault) => return Signature::invalid(fault.to_string()),
    };
    if pins.agent_id.as_ref().is_some_and(|pinned| *pinned != agent_id) {
        return Signature::invalid(format!("it is signed, but by another agent: {agent_id}"));
    }
    let is_theirs = |set: &Jwks| set.keys.iter().filter_map(|key| key.public_key().ok()?.agent_id()).any(|id| id == agent_id);
    if pins.keys.as_ref().is_some_and(|set| !is_theirs(set)) {
        return Signature::invalid(format!("it is signed, but with another key, that of agent {agent_id}"));
    }
    let by = vec![Signer { kid: None, algorithm: "EdDSA", agent_id: Some(agent_id) }];
    Signature { state: State::Valid, by, reason: None, uncovered: Vec::new() }
}

async fn listed(text: &str, card: &Value, origin: &CardSource<'_>, pins: &Pins) -> Signature {
    let card_url = if let CardSource::Web(url, _) = origin { Some((*url).to_owned()) } else { None };
    let rules = VerifyRules { card_url, jku_origins: Vec::new() };
    let (sets, missed) = match &pins.keys {
        Some(pinned) => (vec![pinned.clone()], None),
        None => {
            let own = pins.agent_id.as_ref().and_then(|id| introduced(card, id));
            let (mut sets, missed) = published(text, origin, &rules).await;
            sets.extend(own.map(|key| Jwks { keys: vec![key] }));
            (sets, missed)
        }
    };
    let candidates = |hint: &KeyHint<'_>| -> Vec<PublicKey> {
        sets.iter().flat_map(|set| set.candidates(KeyUse::Cards, hint.algorithm, hint.kid)).collect()
    };
    let VerifiedCard { by, card: covered, .. } = match verify_card_signatures(text, &candidates, &rules) {
        Ok(verified) => verified,
        Err(CardFault::CardSignatureInvalid(_)) if sets.is_empty() => return Signature::without(State::NoKey, missed),
        Err(fault) => return Signature::invalid(fault.to_string()),
    };
    let by = by.into_iter().map(|one| Signer { kid: Some(one.kid), algorithm: one.algorithm.as_str(), agent_id: one.agent_id });
    let by: Vec<Signer> = by.collect();
    if let Some(pinned) = pins.agent_id.as_ref().filter(|pinned| by.iter().all(|one| one.agent_id.as_ref() != Some(*pinned))) {
        return Signature::invalid(format!("it is signed, but not by agent {pinned}"));
    }
    let mut uncovered = Vec::new();
    compare(card, &covered, "", &mut uncovered);
    uncovered.retain(|path| path != "/signatures");
    Signature { state: State::Valid, by, reason: None, uncovered }
}

/// The paths of what is in the card and not in what was signed. What is empty says nothing, signed or not.
fn compare(card: &Value, covered: &Value, path: &str, uncovered: &mut Vec<String>) {
    match (card, covered) {
        (Value::Object(members), _) => {
            for (name, member) in members {
                let here = format!("{path}/{name}");
                match covered.get(name) {
                    Some(same) => compare(member, same, &here, uncovered),
                    None if says_nothing(member) => {}
                    None => uncovered.push(here),
                }
            }
        }
        (Value::Array(items), Value::Array(same)) if items.len() == same.len() => {
            for (at, (item, same)) in items.iter().zip(same).enumerate() {
                compare(item, same, &format!("{path}/{at}"), uncovered);
            }
        }
        (item, same) if item == same => {}
        _ => uncovered.push(path.to_owned()),
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(says_nothing),
        Value::Object(members) => members.values().all(says_nothing),
        _ => false,
    }
}
