//! What an agent says its work cost, wherever in its metadata it says so.

use chancery_protocol::{Message, Metadata, TaskEvent};
use chancery_rules::MicroUsd;
use serde_json::{Map, Value};

use super::terms::GOVERNANCE_EXTENSION;

/// The words of OpenTelemetry for the same.
const INPUT: &str = "gen_ai.usage.input_tokens";
const OUTPUT: &str = "gen_ai.usage.output_tokens";

/// What was reported for the whole task so far. The last word counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) usd: Option<MicroUsd>,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    /// Something was said that is no amount. It changes nothing.
    pub(crate) senseless: bool,
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

    /// Everything that was said before, and now.
    pub(crate) fn and(self, later: Self) -> Self {
        Self {
            usd: later.usd.or(self.usd),
            input_tokens: later.input_tokens.or(self.input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
            senseless: self.senseless || later.senseless,
        }
    }

    pub(crate) fn tokens(&self) -> Option<u64> {
        match (self.input_tokens, self.output_tokens) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
        }
    }

    fn read(metadata: &Metadata) -> Option<Self> {
        // Most metadata says nothing of cost; that is seen without parsing it.
        if !["usage", "cost"].iter().any(|mark| metadata.text().contains(mark)) {
            return None;
        }
        let mut object = metadata.to_object();
        let members = [GOVERNANCE_EXTENSION, "ruvector"].into_iter().filter_map(|member| match object.remove(member) {
            Some(Value::Object(said)) => Some(said),
            _ => None,
        });
        let members: Vec<Map<String, Value>> = members.collect();
        let mut report = Self::default();
        let mut found = false;
        for said in members.iter().chain(std::iter::once(&object)) {
            found |= report.add(said);
        }
        found.then_some(report)
    }

    fn add(&mut self, said: &Map<String, Value>) -> bool {
        let within = |name: &str| said.get(name).and_then(Value::as_object);
        let cost = within("cost").and_then(|cost| cost.get("usd"));
        let usage = within("usage");
        let usd = cost.or_else(|| usage.and_then(|usage| usage.get("cost_usd")));
        let tokens = |name: &str, long: &str| {
            let short = usage.and_then(|usage| usage.get(name).or_else(|| usage.get(long)));
            short.or_else(|| said.get(long))
        };
        let (input, output) = (tokens("input_tokens", INPUT), tokens("output_tokens", OUTPUT));
        let mut number = |value: &Value| {
            let number = value.as_u64();
            self.senseless |= number.is_none() && !value.is_null();
            number
        };
        let (input_tokens, output_tokens) = (input.and_then(&mut number), output.and_then(&mut number));
        let money = usd.map(|usd| serde_json::from_value::<MicroUsd>(usd.clone()));
        self.senseless |= matches!(money, Some(Err(_)));
        self.usd = self.usd.or(money.and_then(Result::ok));
        self.input_tokens = self.input_tokens.or(input_tokens);
        self.output_tokens = self.output_tokens.or(output_tokens);
        usd.is_some() || input.is_some() || output.is_some()
    }
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
        let all = Report { usd: Some(MicroUsd(20_000)), input_tokens: Some(3), output_tokens: Some(4), senseless: false };
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
    fn what_is_no_amount_is_noted_and_changes_nothing() {
        for usd in [json!(-1), json!("NaN"), json!(1e308), json!("1e400"), json!(true), json!([1]), json!("0.0000001")] {
            let report = read(json!({ "usage": { "cost_usd": usd } })).unwrap();
            assert_eq!(report, Report { senseless: true, ..Report::default() });
        }
        let before = Report { usd: Some(MicroUsd(5)), ..Report::default() };
        let after = before.and(read(json!({ "usage": { "cost_usd": -1 } })).unwrap());
        assert_eq!((after.usd, after.senseless), (Some(MicroUsd(5)), true));
    }
}
