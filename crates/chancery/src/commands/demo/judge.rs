//! Compares the events of the demo with the promises of its settings. No code here knows the script of a
//! scene.

use std::collections::BTreeSet;

use chancery::config::Config;
use chancery_core::budget::{Amount, Caps};
use chancery_core::{MicroUsd, Rule};

use super::agents::Order;
use super::records::RecordsView;

#[derive(Debug, Default)]
pub(super) struct Judge {
    faults: BTreeSet<String>,
    /// The most that was spent and set aside at once in the tree.
    pub(super) peak: MicroUsd,
}

impl Judge {
    /// What must hold at every moment.
    pub(super) fn look(&mut self, picture: &RecordsView, config: &Config) {
        for (scope, standing) in &picture.budgets {
            let taken = standing.settled.saturating_add(standing.reserved);
            if let Some(over) = over(taken, standing.limit.caps) {
                self.fault(format!("{scope}: {over}"));
            }
            if scope.kind() == "tree" {
                self.peak = self.peak.max(taken.usd);
            }
        }
        let recursion = &config.governance.recursion;
        for task in &picture.tasks {
            let kinship = &task.kinship;
            if kinship.depth > recursion.max_call_depth {
                self.fault(format!("a call of depth {} was admitted to {}", kinship.depth, task.agent));
            }
            let revisits = kinship.path.contains(&task.agent) && !recursion.revisit_allowlist.contains(&task.agent);
            if recursion.deny_revisit && revisits {
                self.fault(format!("{} was called again: {} → {}", task.agent, kinship.path, task.agent));
            }
        }
    }

    /// What must hold at the end.
    pub(super) fn conclude(&mut self, picture: &RecordsView, order: &Order, config: &Config) {
        self.look(picture, config);
        let cap = config.governance.budget.tree.max_usd;
        for (root, settled, _) in picture.spent() {
            self.peak = self.peak.max(settled);
            if let Some(cap) = cap.filter(|cap| settled > *cap) {
                self.fault(format!("tree {root} spent {settled} USD, its cap is {cap} USD"));
            }
        }
        match order {
            // Nobody in it stops by itself. That an agent could not be reached would stop it too, but is no rule of ours.
            Order::HandOn { .. } if !picture.refused.iter().any(|refusal| refusal.rule != Some(Rule::Selector)) => {
                self.fault("the loop ended, but no rule stopped it".to_owned());
            }
            Order::FanOut { calls } => {
                let made = picture.tasks.len().saturating_sub(1) + picture.refused.len();
                if made < *calls && !picture.tasks.is_empty() {
                    self.fault(format!("{calls} calls were made, but {made} are on record"));
                }
            }
            _ => {}
        }
    }

    pub(super) fn fault(&mut self, fault: String) {
        self.faults.insert(fault);
    }

    pub(super) fn into_faults(self) -> Vec<String> {
        self.faults.into_iter().collect()
    }
}

fn over(taken: Amount, caps: Caps) -> Option<String> {
    let usd = caps.usd.filter(|cap| taken.usd > *cap).map(|cap| format!("{} USD spent and held, the cap is {cap}", taken.usd));
    let tokens = caps.tokens.filter(|cap| taken.tokens > *cap);
    let tasks = caps.tasks.filter(|cap| taken.tasks > *cap);
    usd.or_else(|| tokens.map(|cap| format!("{} tokens spent and held, the cap is {cap}", taken.tokens)))
        .or_else(|| tasks.map(|cap| format!("{} tasks, the cap is {cap}", taken.tasks)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery::TaskState;
    use chancery::protocol::{Timestamp, TraceId};
    use chancery_core::lineage::{AgentPath, Attribution};
    use chancery_core::{LineageRecord, Spend, TreeTask};

    #[test]
    fn more_than_a_cap_is_seen_in_every_dimension_and_as_much_is_not() {
        let caps = Caps { usd: Some(MicroUsd(10)), tokens: Some(5), tasks: Some(2) };
        let taken = |usd, tokens, tasks| Amount { usd: MicroUsd(usd), tokens, tasks };
        assert_eq!(over(taken(10, 5, 2), caps), None);
        for more in [taken(11, 0, 0), taken(0, 6, 0), taken(0, 0, 3)] {
            assert!(over(more, caps).is_some(), "{more:?}");
        }
        assert_eq!(over(taken(i64::MAX, u64::MAX, u64::MAX), Caps::NONE), None);
    }

    fn task(agent: &str, path: &[&str], depth: u32, settled: i64) -> TreeTask {
        let settled = Amount::of_task(MicroUsd(settled), 0);
        TreeTask {
            task: "t".into(),
            agent: agent.into(),
            tenant: "default".into(),
            caller: "you".into(),
            state: TaskState::Completed,
            created_at: Timestamp::default(),
            status_at: Timestamp::default(),
            kinship: LineageRecord {
                root: "t".into(),
                trace: TraceId(1),
                made: false,
                parent: None,
                depth,
                path: AgentPath::new(path.iter().map(|&agent| agent.into())),
                attribution: Attribution::Verified,
                claimed: None,
                skill: None,
                allowance: None,
            },
            spend: Spend { settled, ..Spend::default() },
        }
    }

    #[test]
    fn what_a_rule_should_have_stopped_is_a_fault() {
        let config = Config::parse("[budget.tree]\nmax_usd = '0.10'\n").unwrap();
        let faults = |task: TreeTask| {
            let mut judge = Judge::default();
            judge.conclude(&RecordsView { tasks: vec![task], ..RecordsView::default() }, &Order::FanOut { calls: 0 }, &config);
            judge.into_faults()
        };
        assert_eq!(faults(task("a", &["you", "b"], 8, 100_000)), [""; 0]);
        for (wrong, words) in [
            (task("a", &["you"], 9, 0), "depth 9"),
            (task("a", &["you", "a", "b"], 2, 0), "you → a → b → a"),
            (task("a", &["you"], 0, 100_001), "0.100001"),
        ] {
            let faults = faults(wrong);
            assert!(faults.len() == 1 && faults[0].contains(words), "{words}: {faults:?}");
        }
    }

    #[test]
    fn a_loop_that_ends_without_a_refusal_is_a_fault() {
        let mut judge = Judge::default();
        judge.conclude(&RecordsView::default(), &Order::HandOn { forgetful: Vec::new() }, &Config::default());
        assert_eq!(judge.into_faults().len(), 1);
    }
}
