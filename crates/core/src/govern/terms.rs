//! What a call says about how it is to be governed: in our extension's member of the metadata, or in the ADR's.

use std::borrow::Cow;

use chancery_protocol::raw_json::pick;
use chancery_protocol::{Error, Metadata, SendMessage};
use chancery_rules::MicroUsd;
use chancery_rules::budget::Price;
use chancery_rules::lineage::ClaimedContext;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::check::plain_text;

/// The extension by which governance speaks with callers and agents.
pub const GOVERNANCE_EXTENSION: &str = "https://chancery.dev/a2a/governance/v1";

/// Where the ADR keeps the same.
const VENDOR: &str = "ruvector";

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallTerms {
    pub(crate) hop_token: Option<String>,
    pub(crate) skill: Option<String>,
    /// What the task and everything below it may cost at most.
    pub(crate) budget: Wish,
    /// What the caller expects the task to cost: it can raise what is held for it, never lower it.
    pub(crate) estimate: Wish,
    pub(crate) claimed: Option<Box<ClaimedContext>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Wish {
    #[serde(alias = "max_usd", alias = "max_cost_usd")]
    pub(crate) usd: Option<MicroUsd>,
    #[serde(alias = "max_tokens")]
    pub(crate) tokens: Option<u64>,
}

impl CallTerms {
    /// The message's own metadata counts before what came beside it. What cannot be understood is refused: a cap that was
    /// meant and not understood would be no cap.
    pub(crate) fn of(send: &SendMessage) -> Result<Self, Error> {
        let mut terms = Self::default();
        for (place, metadata) in [("message.metadata", &send.message.metadata), ("metadata", &send.metadata)] {
            if let Some(metadata) = metadata.as_ref().filter(|metadata| may_hold_terms(metadata)) {
                terms.read(place, metadata)?;
            }
        }
        Ok(terms)
    }

    /// What the caller expects the task to cost.
    pub(crate) fn hint(&self) -> Price {
        Price { usd: self.estimate.usd, tokens: self.estimate.tokens }
    }

    fn read(&mut self, place: &str, metadata: &Metadata) -> Result<(), Error> {
        let [governance, vendor, skill] = pick(metadata.text(), [GOVERNANCE_EXTENSION, VENDOR, "skill"]);
        for (name, member) in [(GOVERNANCE_EXTENSION, governance), (VENDOR, vendor)] {
            if let Some(object) = member.filter(|text| text.starts_with('{')) {
                self.read_member(&format!("{place}.{name}"), object)?;
            }
        }
        self.name_skill(|| format!("{place}.skill"), skill)
    }

    fn read_member(&mut self, place: &str, object: &str) -> Result<(), Error> {
        let [hop_token, skill, budget, estimate, context] = pick(object, ["hop_token", "skill", "budget", "estimate", "context"]);
        if self.hop_token.is_none() {
            self.hop_token = text(hop_token).map(Cow::into_owned);
        }
        self.name_skill(|| format!("{place}.skill"), skill)?;
        if let Some(budget) = member(place, "budget", budget)? {
            self.budget = self.budget.narrowed(budget);
        }
        if let Some(estimate) = member(place, "estimate", estimate)? {
            self.estimate = self.estimate.or(estimate);
        }
        // A claim is never malformed: it makes its call deeper as far as it can be understood. All claims of a call count.
        if let Some(context) = context.filter(|text| text.starts_with('{')) {
            let claimed = serde_json::from_str(context).unwrap_or_else(|_| ClaimedContext::unreadable());
            self.claimed = Some(Box::new(match self.claimed.take() {
                Some(before) => before.and(claimed),
                None => claimed,
            }));
        }
        Ok(())
    }

    /// A call is for one skill: who may have one could otherwise name that here and another there.
    fn name_skill(&mut self, place: impl FnOnce() -> String, said: Option<&str>) -> Result<(), Error> {
        let Some(named) = text(said) else { return Ok(()) };
        match &self.skill {
            Some(other) if *other != named => {
                Err(Error::invalid_field(place(), format!("the call also names the skill {other:?}")))
            }
            Some(_) => Ok(()),
            None => {
                plain_text(&place(), &named)?;
                self.skill = Some(named.into_owned());
                Ok(())
            }
        }
    }
}

impl Wish {
    /// Of several caps all hold.
    fn narrowed(self, other: Self) -> Self {
        Self { usd: self.usd.into_iter().chain(other.usd).min(), tokens: self.tokens.into_iter().chain(other.tokens).min() }
    }

    fn or(self, other: Self) -> Self {
        Self { usd: self.usd.or(other.usd), tokens: self.tokens.or(other.tokens) }
    }
}

/// Looks without parsing: most metadata holds nothing for us.
fn may_hold_terms(metadata: &Metadata) -> bool {
    let text = metadata.text();
    ["chancery.dev", VENDOR, "skill", "\\"].iter().any(|mark| text.contains(mark))
}

/// What is no text says nothing.
fn text(said: Option<&str>) -> Option<Cow<'_, str>> {
    let said = said?;
    match said.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(said).ok().map(Cow::Owned),
    }
}

fn member<T: DeserializeOwned>(place: &str, name: &str, said: Option<&str>) -> Result<Option<T>, Error> {
    let Some(said) = said else { return Ok(None) };
    let fault = |fault: serde_json::Error| Error::invalid_field(format!("{place}.{name}"), fault.to_string());
    // By way of a value, so that the fault names no line and column of something the caller never saw.
    let value: Value = serde_json::from_str(said).map_err(fault)?;
    serde_json::from_value(value).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{ErrorKind, Message, Part, Role, SendConfiguration};
    use serde_json::json;
    use std::sync::Arc;

    fn send(message: Value, beside: Value) -> SendMessage {
        let metadata = |value: Value| value.as_object().map(|object| Metadata::from_object(object.clone()));
        let said = Message { metadata: metadata(message), ..Message::of_parts(Role::User, "m", vec![Part::text("x")]) };
        SendMessage {
            tenant: None,
            message: Arc::new(said),
            configuration: SendConfiguration::default(),
            metadata: metadata(beside),
            client_task_id: None,
            unknown: Default::default(),
        }
    }

    #[test]
    fn terms_are_read_from_both_members_and_both_places() {
        let ours = json!({ GOVERNANCE_EXTENSION: { "hop_token": "t", "budget": { "max_usd": "0.10" } } });
        let vendor = json!({ "ruvector": { "skill": "s", "budget": { "usd": 5, "tokens": 7 }, "context": { "depth": 3 } } });
        let terms = CallTerms::of(&send(ours, vendor)).unwrap();
        assert_eq!(terms.hop_token.as_deref(), Some("t"));
        assert_eq!(terms.skill.as_deref(), Some("s"));
        assert_eq!(terms.budget, Wish { usd: Some(MicroUsd(100_000)), tokens: Some(7) });
        assert_eq!(terms.claimed.unwrap().depth, Some(3));
        let more = json!({ "ruvector": { "budget": { "usd": 5 } } });
        let less = json!({ GOVERNANCE_EXTENSION: { "budget": { "usd": 1 } } });
        for (message, beside) in [(&more, &less), (&less, &more)] {
            let terms = CallTerms::of(&send(message.clone(), beside.clone())).unwrap();
            assert_eq!(terms.budget.usd, Some(MicroUsd(1_000_000)), "all caps hold, wherever they are");
        }
        assert_eq!(CallTerms::of(&send(json!({ "skill": "s" }), Value::Null)).unwrap().skill.as_deref(), Some("s"));
        assert_eq!(CallTerms::of(&send(json!({ "other": 1 }), Value::Null)).unwrap(), CallTerms::default());
    }

    #[test]
    fn a_cap_that_is_not_understood_is_refused_and_a_claim_never_is() {
        for wish in [json!({ "usd": "-1" }), json!({ "usd": "a" }), json!({ "usd": "0.0000001" }), json!({ "more": 1 }), json!(3)]
        {
            let refusal = CallTerms::of(&send(json!({ "ruvector": { "budget": wish } }), Value::Null)).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::InvalidParams, "{refusal}");
            assert!(refusal.message.contains("message.metadata.ruvector.budget"), "{refusal}");
        }
        CallTerms::of(&send(json!({ "ruvector": { "context": 7, "skill": 8 } }), Value::Null)).unwrap();
    }

    #[test]
    fn no_claim_of_a_call_hides_another_one() {
        let claim = |depth: u32, agent: &str| json!({ "depth": depth, "visited_agents": [agent] });
        let places = [
            (json!({ "ruvector": { "context": claim(9, "b") } }), json!({ "ruvector": { "context": claim(0, "a") } })),
            (
                json!({ GOVERNANCE_EXTENSION: { "context": claim(0, "a") }, "ruvector": { "context": claim(9, "b") } }),
                Value::Null,
            ),
        ];
        for (one, other) in places {
            for (message, beside) in [(&one, &other), (&other, &one)] {
                let claimed = CallTerms::of(&send(message.clone(), beside.clone())).unwrap().claimed.unwrap();
                assert_eq!(claimed.depth, Some(9));
                assert!(["a", "b"].iter().all(|agent| claimed.visited_agents.contains(agent)), "{claimed:?}");
            }
        }
        // A number that nothing can hold is no number of JSON readers, and still no way past the depth.
        let huge = serde_json::from_str(r#"{"ruvector":{"context":{"depth":1e999}}}"#).unwrap();
        let send = SendMessage { metadata: Some(huge), ..send(Value::Null, Value::Null) };
        assert_eq!(CallTerms::of(&send).unwrap().claimed.unwrap().depth, Some(u32::MAX));
    }
}
