//! What an agent says its work cost, wherever in its metadata it says so.

use std::borrow::Cow;
use std::fmt;

use chancery_protocol::{Message, Metadata, TaskEvent};
use chancery_rules::MicroUsd;
use chancery_rules::budget::{self, Amount, Reportable, Reported};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::terms::GOVERNANCE_EXTENSION;

/// The words of OpenTelemetry for the same.
const INPUT: &str = "gen_ai.usage.input_tokens";
const OUTPUT: &str = "gen_ai.usage.output_tokens";

/// What was reported for the whole task so far. The last word counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) usd: Reported<MicroUsd>,
    pub(crate) input_tokens: Reported<u64>,
    pub(crate) output_tokens: Reported<u64>,
}

impl Report {
    /// What an update reports, if anything.
    pub(crate) fn of(event: &TaskEvent) -> Option<Self> {
        let of_message = |message: Option<&Message>| message.and_then(|message| message.metadata.as_ref()).and_then(Self::read);
        match event {
            TaskEvent::Status(change) => {
                let beside = change.metadata.as_ref().and_then(Self::read);
                beside.or_else(|| of_message(change.status.message.as_deref()))
            }
            TaskEvent::Replied(message) => of_message(Some(message)),
            TaskEvent::Artifact(chunk) => chunk.metadata.as_ref().and_then(Self::read),
            TaskEvent::Created(_) | TaskEvent::Said(_) => None,
        }
    }

    /// Everything that was said before, and now. What is no amount does not take back what was one.
    pub(crate) fn and(self, later: Self) -> Self {
        Self {
            usd: later_of(self.usd, later.usd),
            input_tokens: later_of(self.input_tokens, later.input_tokens),
            output_tokens: later_of(self.output_tokens, later.output_tokens),
        }
    }

    pub(crate) fn usd(&self) -> Option<MicroUsd> {
        said(self.usd)
    }

    pub(crate) fn tokens(&self) -> Option<u64> {
        match (said(self.input_tokens), said(self.output_tokens)) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
        }
    }

    /// What was said of tokens, by the names everybody knows.
    pub(crate) fn tokens_by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let named = [(INPUT, self.input_tokens), (OUTPUT, self.output_tokens)];
        named.into_iter().filter_map(|(name, tokens)| Some((name, said(tokens)?)))
    }

    /// The part of it that is beyond what was counted before.
    pub(crate) fn since(&self, before: Amount) -> budget::Report {
        let tokens = match (self.tokens(), self.input_tokens) {
            (Some(tokens), _) => Reported::Said(tokens.saturating_sub(before.tokens)),
            (None, nothing) => nothing,
        };
        let usd = match self.usd {
            Reported::Said(usd) => Reported::Said(MicroUsd((usd.0 - before.usd.0).max(0))),
            other => other,
        };
        budget::Report { usd, tokens }
    }

    fn read(metadata: &Metadata) -> Option<Self> {
        // Most metadata says nothing of cost; that is seen without parsing it.
        if !["usage", "cost"].iter().any(|mark| metadata.text().contains(mark)) {
            return None;
        }
        let Ok(said) = serde_json::from_str::<Said>(metadata.text()) else { return None };
        let mut report = Self::default();
        let mut found = false;
        // The ADR's member usually says the same once more.
        let vendor = said.ruvector.filter(|vendor| said.governance.is_none_or(|ours| ours.get() != vendor.get()));
        for member in [said.governance, vendor].into_iter().flatten() {
            found |= serde_json::from_str(member.get()).is_ok_and(|member| report.add(&member));
        }
        found |= report.add(&said);
        found.then_some(report)
    }

    fn add(&mut self, said: &Said<'_>) -> bool {
        let within = |object: &Option<Value>, name: &str| object.as_ref().and_then(|object| object.get(name)).cloned();
        // Another control plane says what all that was done for the task cost.
        let cost = if said.subtree_cost.as_ref().is_some_and(Value::is_object) { &said.subtree_cost } else { &said.cost };
        let usd = within(cost, "usd").or_else(|| within(&said.usage, "cost_usd"));
        let tokens = |name: &str, long: &str, beside: &Option<Value>| {
            within(&said.usage, name).or_else(|| within(&said.usage, long)).or_else(|| beside.clone())
        };
        let input = tokens("input_tokens", INPUT, &said.input_tokens);
        let output = tokens("output_tokens", OUTPUT, &said.output_tokens);
        self.usd = later_of(read(usd.as_ref()), self.usd);
        self.input_tokens = later_of(read(input.as_ref()), self.input_tokens);
        self.output_tokens = later_of(read(output.as_ref()), self.output_tokens);
        usd.is_some() || input.is_some() || output.is_some()
    }
}

/// The members of metadata that can speak of cost; the rest is passed over. Of members that are there twice the last counts.
#[derive(Default)]
struct Said<'a> {
    governance: Option<&'a RawValue>,
    ruvector: Option<&'a RawValue>,
    subtree_cost: Option<Value>,
    cost: Option<Value>,
    usage: Option<Value>,
    input_tokens: Option<Value>,
    output_tokens: Option<Value>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Said<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        /// Borrowed unless it is written with escapes.
        #[derive(serde::Deserialize)]
        #[serde(transparent)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Said<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Said<'de>, A::Error> {
                let mut said = Said::default();
                while let Some(Name(name)) = map.next_key()? {
                    match &*name {
                        GOVERNANCE_EXTENSION => said.governance = map.next_value()?,
                        "ruvector" => said.ruvector = map.next_value()?,
                        "subtree_cost" => said.subtree_cost = map.next_value()?,
                        "cost" => said.cost = map.next_value()?,
                        "usage" => said.usage = map.next_value()?,
                        INPUT => said.input_tokens = map.next_value()?,
                        OUTPUT => said.output_tokens = map.next_value()?,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(said)
            }
        }

        from.deserialize_map(Members)
    }
}

fn said<N>(reported: Reported<N>) -> Option<N> {
    match reported {
        Reported::Said(number) => Some(number),
        _ => None,
    }
}

fn later_of<N>(before: Reported<N>, later: Reported<N>) -> Reported<N> {
    match (before, later) {
        (before, Reported::Nothing) | (before @ Reported::Said(_), Reported::Nonsense(_)) => before,
        (_, later) => later,
    }
}

/// Reading a report never fails: what is no amount is kept as that.
fn read<N: Reportable>(value: Option<&Value>) -> Reported<N> {
    value.map_or(Reported::Nothing, |value| Reported::deserialize(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Option<Report> {
        Report::read(&Metadata::from_object(value.as_object().unwrap().clone()))
    }

    #[test]
    fn usage_is_read_wherever_agents_put_it() {
        let all =
            Report { usd: Reported::Said(MicroUsd(20_000)), input_tokens: Reported::Said(3), output_tokens: Reported::Said(4) };
        for said in [
            json!({ "usage": { "cost_usd": 0.02, "input_tokens": 3, "output_tokens": 4 } }),
            json!({ "usage": { "cost_usd": "0.02", INPUT: 3, OUTPUT: 4 } }),
            json!({ GOVERNANCE_EXTENSION: { "cost": { "usd": "0.02" }, INPUT: 3, OUTPUT: 4 } }),
            json!({ "ruvector": { "cost": { "usd": 0.02 }, "usage": { "input_tokens": 3, "output_tokens": 4 } } }),
            json!({ GOVERNANCE_EXTENSION: { "cost": { "usd": "0.02" } }, "usage": { "cost_usd": 9, "input_tokens": 3, "output_tokens": 4 } }),
        ] {
            assert_eq!(read(said.clone()), Some(all), "{said}");
        }
        assert_eq!(read(json!({ "other": 1 })), None);
        assert_eq!(read(json!({ "usage": "much" })), None);
    }

    #[test]
    fn what_is_no_amount_changes_nothing() {
        let before = Report { usd: Reported::Said(MicroUsd(5)), ..Report::default() };
        for usd in [json!(-1), json!("NaN"), json!(1e308), json!("1e400"), json!(true), json!([1]), json!({ "a": 1 })] {
            let report = read(json!({ "usage": { "cost_usd": usd } })).unwrap();
            assert!(matches!(report.usd, Reported::Nonsense(_)), "{usd}: {report:?}");
            assert_eq!(before.and(report), before, "{usd}");
        }
    }

    #[test]
    fn a_report_for_the_whole_task_is_counted_once() {
        let report = read(json!({ "usage": { "cost_usd": "0.05", "input_tokens": 30, "output_tokens": 12 } })).unwrap();
        let turn = report.since(Amount { usd: MicroUsd(20_000), tokens: 40, tasks: 1 });
        assert_eq!((turn.usd, turn.tokens), (Reported::Said(MicroUsd(30_000)), Reported::Said(2)));
        let less = report.since(Amount { usd: MicroUsd(90_000), tokens: 90, tasks: 1 });
        assert_eq!((less.usd, less.tokens), (Reported::Said(MicroUsd(0)), Reported::Said(0)));
    }
}
