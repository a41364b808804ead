//! What an agent says its work cost, wherever in its metadata it says so.

use chancery_protocol::raw_json::{member, pick};
use chancery_protocol::{Message, Metadata, TaskEvent};
use chancery_rules::MicroUsd;
use chancery_rules::budget::{self, Amount, Reportable, Reported};

use super::terms::GOVERNANCE_EXTENSION;

/// The words of OpenTelemetry for the same.
const INPUT: &str = "gen_ai.usage.input_tokens";
const OUTPUT: &str = "gen_ai.usage.output_tokens";

/// What was reported for the whole task so far. The last word counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CostReport {
    pub(crate) usd: Reported<MicroUsd>,
    /// What of it the agent says is its own, where it speaks of all that was done for the task.
    pub(crate) own: Option<MicroUsd>,
    pub(crate) input_tokens: Reported<u64>,
    pub(crate) output_tokens: Reported<u64>,
}

impl CostReport {
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
            own: if said(later.usd).is_some() { later.own } else { self.own },
            input_tokens: later_of(self.input_tokens, later.input_tokens),
            output_tokens: later_of(self.output_tokens, later.output_tokens),
        }
    }

    /// The part of it that a turn said something of: what earlier turns said is no word on what this one cost. Of tokens all counts
    /// that is known, because one half may have been said before.
    pub(crate) fn as_far_as_in(self, turn: Self) -> Self {
        if turn.tokens().is_some() { Self { usd: turn.usd, own: turn.own, ..self } } else { turn }
    }

    /// The same without what was done for the task on this node and told to the one who reports: that is counted where it was done.
    /// What the agent says is its own stays.
    pub(crate) fn without(self, told: MicroUsd) -> Self {
        match (self.usd, self.own) {
            (Reported::Said(usd), Some(own)) => {
                let left = usd.0.saturating_sub(told.0).max(own.0.min(usd.0));
                Self { usd: Reported::Said(MicroUsd(left)), ..self }
            }
            _ => self,
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

    /// The reported tokens, by their common names.
    pub(crate) fn tokens_by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let named = [(INPUT, self.input_tokens), (OUTPUT, self.output_tokens)];
        named.into_iter().filter_map(|(name, tokens)| Some((name, said(tokens)?)))
    }

    /// The part of it that is beyond what was counted before.
    pub(crate) fn since(&self, before: Amount) -> budget::ReportedCost {
        let tokens = match (self.tokens(), self.input_tokens) {
            (Some(tokens), _) => Reported::Said(tokens.saturating_sub(before.tokens)),
            (None, nothing) => nothing,
        };
        let usd = match self.usd {
            Reported::Said(usd) => Reported::Said(MicroUsd((usd.0 - before.usd.0).max(0))),
            other => other,
        };
        budget::ReportedCost { usd, tokens }
    }

    fn read(metadata: &Metadata) -> Option<Self> {
        // Most metadata says nothing of cost; that is seen without taking it apart.
        if !["usage", "cost"].iter().any(|mark| metadata.text().contains(mark)) {
            return None;
        }
        let said = CostMembers::of(metadata.text());
        let mut report = Self::default();
        let mut found = false;
        // The ADR's member usually says the same once more.
        let vendor = said.ruvector.filter(|_| said.governance != said.ruvector);
        for member in [said.governance, vendor].into_iter().flatten() {
            found |= report.add(&CostMembers::of(member));
        }
        found |= report.add(&said);
        found.then_some(report)
    }

    fn add(&mut self, said: &CostMembers<'_>) -> bool {
        // Another control plane says what all that was done for the task cost.
        let whole = said.subtree_cost.filter(|cost| cost.starts_with('{'));
        let usd = within(whole.or(said.cost), "usd").or_else(|| within(said.usage, "cost_usd"));
        let tokens = |name: &str, long: &str, beside| within(said.usage, name).or_else(|| within(said.usage, long)).or(beside);
        let input = tokens("input_tokens", INPUT, said.input_tokens);
        let output = tokens("output_tokens", OUTPUT, said.output_tokens);
        if whole.is_some() && !matches!(self.usd, Reported::Said(_)) {
            self.own = Some(said_usd(within(said.cost, "usd")).unwrap_or(MicroUsd::ZERO));
        }
        self.usd = later_of(read(usd), self.usd);
        self.input_tokens = later_of(read(input), self.input_tokens);
        self.output_tokens = later_of(read(output), self.output_tokens);
        usd.is_some() || input.is_some() || output.is_some()
    }
}

/// The members of metadata that can speak of cost, as they are spelled.
struct CostMembers<'a> {
    governance: Option<&'a str>,
    ruvector: Option<&'a str>,
    subtree_cost: Option<&'a str>,
    cost: Option<&'a str>,
    usage: Option<&'a str>,
    input_tokens: Option<&'a str>,
    output_tokens: Option<&'a str>,
}

impl<'a> CostMembers<'a> {
    fn of(object: &'a str) -> Self {
        let names = [GOVERNANCE_EXTENSION, "ruvector", "subtree_cost", "cost", "usage", INPUT, OUTPUT];
        let [governance, ruvector, subtree_cost, cost, usage, input_tokens, output_tokens] = pick(object, names);
        Self { governance, ruvector, subtree_cost, cost, usage, input_tokens, output_tokens }
    }
}

fn within<'a>(object: Option<&'a str>, name: &str) -> Option<&'a str> {
    object.and_then(|object| member(object, name))
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

fn said_usd(value: Option<&str>) -> Option<MicroUsd> {
    said(read(value))
}

/// Reading a report never fails: what is no amount is kept as that.
fn read<N: Reportable>(value: Option<&str>) -> Reported<N> {
    value.map_or(Reported::Nothing, |value| serde_json::from_str(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(value: Value) -> Option<CostReport> {
        CostReport::read(&Metadata::from_object(value.as_object().unwrap().clone()))
    }

    #[test]
    fn usage_is_read_wherever_agents_put_it() {
        let all = CostReport {
            usd: Reported::Said(MicroUsd(20_000)),
            own: None,
            input_tokens: Reported::Said(3),
            output_tokens: Reported::Said(4),
        };
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
        let before = CostReport { usd: Reported::Said(MicroUsd(5)), ..CostReport::default() };
        for usd in [json!(-1), json!("NaN"), json!(1e308), json!("1e400"), json!(true), json!([1]), json!({ "a": 1 })] {
            let report = read(json!({ "usage": { "cost_usd": usd } })).unwrap();
            assert!(matches!(report.usd, Reported::Nonsense(_)), "{usd}: {report:?}");
            assert_eq!(before.and(report), before, "{usd}");
        }
    }

    #[test]
    fn what_earlier_turns_said_is_no_word_on_what_a_later_one_cost() {
        let earlier = read(json!({ "usage": { "cost_usd": "0.05", "input_tokens": 100, "output_tokens": 50 } })).unwrap();
        assert_eq!(earlier.as_far_as_in(CostReport::default()), CostReport::default());
        let turn = read(json!({ "usage": { "output_tokens": 90 } })).unwrap();
        let both = earlier.and(turn).as_far_as_in(turn);
        assert_eq!((both.usd, both.tokens()), (Reported::Nothing, Some(190)), "one half of the tokens had been said before");
        let turn = read(json!({ "usage": { "cost_usd": "0.07" } })).unwrap();
        let both = earlier.and(turn).as_far_as_in(turn);
        assert_eq!((both.usd(), both.tokens()), (Some(MicroUsd(70_000)), None));
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
