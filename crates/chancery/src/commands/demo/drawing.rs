//! A picture of the records as text of at most 79 columns: the tree, what was refused in it, and the bar of its budget.

use chancery_core::budget::BudgetScope;
use chancery_core::{MicroUsd, TreeTask};

use super::paint::{Paint, Tone};
use super::records::{RecordsView, RefusedCall};
use super::stage::ROOT;
use crate::commands::show;

/// The width of the tree, up to the columns after it.
const TREE: usize = 27;
/// Branches further right than this are drawn no further right.
const DEEPEST: usize = 22;
const BAR: usize = 30;
/// So that nothing wraps on a terminal of 80 columns.
const WIDTH: usize = 79;

/// One thing below a task: another task, or calls that were refused for the same reason.
enum TreeBranch<'a> {
    Task(&'a TreeTask),
    Refused(Vec<&'a RefusedCall>),
}

pub(super) struct Drawing<'a> {
    pub(super) picture: &'a RecordsView,
    pub(super) paint: Paint,
    /// The cap of the tree.
    pub(super) cap: Option<MicroUsd>,
}

impl Drawing<'_> {
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("  {}", self.paint.tone(Tone::Loud, ROOT))];
        self.below(None, "  ", &mut lines);
        if !self.picture.tasks.is_empty() {
            lines.push(String::new());
            lines.push(self.bar());
        }
        lines
    }

    fn below(&self, parent: Option<&TreeTask>, indent: &str, lines: &mut Vec<String>) {
        let twigs = self.twigs(parent);
        for (place, twig) in twigs.iter().enumerate() {
            let last = place + 1 == twigs.len();
            let (branch, next) = if last { ("└ ", "  ") } else { ("├ ", "│ ") };
            match twig {
                TreeBranch::Task(task) => {
                    lines.push(self.task(task, &format!("{indent}{branch}")));
                    let deeper = if indent.chars().count() < DEEPEST { format!("{indent}{next}") } else { indent.to_owned() };
                    self.below(Some(task), &deeper, lines);
                }
                TreeBranch::Refused(refused) => {
                    self.refused(refused, &format!("{indent}{branch}"), &format!("{indent}{next}"), lines)
                }
            }
        }
    }

    fn twigs(&self, parent: Option<&TreeTask>) -> Vec<TreeBranch<'_>> {
        let above = parent.map(|parent| &parent.task);
        let tasks = self.picture.tasks.iter().filter(|task| task.kinship.parent.as_ref() == above);
        let mut twigs: Vec<TreeBranch<'_>> = tasks.map(TreeBranch::Task).collect();
        let mut groups: Vec<Vec<&RefusedCall>> = Vec::new();
        for refusal in self.picture.refused.iter().filter(|refusal| refusal.parent.as_ref() == above) {
            match groups.iter_mut().find(|group| alike(group, refusal)) {
                Some(group) => group.push(refusal),
                None => groups.push(vec![refusal]),
            }
        }
        twigs.extend(groups.into_iter().map(TreeBranch::Refused));
        twigs
    }

    fn task(&self, task: &TreeTask, branch: &str) -> String {
        let left = format!("{branch}{}", called(&task.caller, &task.agent, task.kinship.parent.is_some()));
        let (tone, word) = match task.state {
            state if state.is_terminal() && state.name() == "TASK_STATE_COMPLETED" => (Tone::Good, show::state(state)),
            state if state.is_terminal() => (Tone::Bad, show::state(state)),
            state => (Tone::Busy, show::state(state)),
        };
        let spend = &task.spend;
        let money = match (spend.reserved.usd, spend.settled.usd) {
            (MicroUsd::ZERO, spent) => format!("${spent} spent"),
            (held, _) => format!("${held} held"),
        };
        let attribution = self.paint.tone(Tone::Quiet, format!("{:<10}", task.kinship.attribution.as_str()));
        format!("{left:<TREE$} {attribution}{} {money}", self.paint.tone(tone, format!("{word:<12}")))
    }

    fn refused(&self, refused: &[&RefusedCall], branch: &str, below: &str, lines: &mut Vec<String>) {
        let Some(first) = refused.first() else { return };
        let left = format!("{branch}{}", called(&first.decision.caller, &first.decision.agent, first.parent.is_some()));
        let attribution = self.paint.tone(Tone::Quiet, format!("{:<10}", first.attribution.as_deref().unwrap_or("-")));
        let times = if refused.len() > 1 { format!(" × {}", refused.len()) } else { String::new() };
        let code = self.paint.tone(Tone::Bad, format!("refused: {}{times}", first.code));
        lines.push(format!("{left:<TREE$} {attribution}{code}"));
        for line in reasons(first) {
            lines.push(fitted(&format!("{below}  "), &line));
        }
    }

    /// What is spent and held of what the tree may cost.
    fn bar(&self) -> String {
        let standing = self.picture.budgets.iter().find(|(scope, _)| matches!(scope, BudgetScope::Tree(_)));
        let (settled, reserved) = match standing {
            Some((_, standing)) => (standing.settled.usd, standing.reserved.usd),
            // A tree that is over has no account any more; its tasks say what they cost.
            None => self.picture.spent().first().map_or_else(Default::default, |(_, settled, reserved)| (*settled, *reserved)),
        };
        let Some(cap) = self.cap else { return format!("  no cap on the tree: ${settled} spent, ${reserved} held") };
        let spent = cells(settled, cap);
        let held = cells(settled.saturating_add(reserved), cap).saturating_sub(spent);
        let free = BAR.saturating_sub(spent + held);
        let bar = [(Tone::Good, "█", spent), (Tone::Busy, "▒", held), (Tone::Quiet, "·", free)]
            .map(|(tone, cell, count)| self.paint.tone(tone, cell.repeat(count)));
        format!("  budget [{}] ${settled} spent, ${reserved} held of ${cap}", bar.concat())
    }
}

/// Calls of one agent by another that were refused for the same reason are shown as one.
fn alike(group: &[&RefusedCall], refusal: &RefusedCall) -> bool {
    group.first().is_some_and(|first| {
        (&first.code, &first.decision.agent, &first.decision.caller)
            == (&refusal.code, &refusal.decision.agent, &refusal.decision.caller)
    })
}

/// The facts of a refusal, in words.
pub(super) fn reasons(refusal: &RefusedCall) -> Vec<String> {
    if let Some(path) = refusal.fact("path") {
        let depth = refusal.fact("depth").map(|depth| format!(" (depth {depth})")).unwrap_or_default();
        return vec![format!("{path}{depth}")];
    }
    let number = |name| refusal.fact(name).unwrap_or("0");
    if refusal.facts.contains_key("requested") {
        let (unit, of) = match refusal.fact("of") {
            Some("usd") | None => ("$", String::new()),
            Some(of) => ("", format!(" {of}")),
        };
        return vec![format!(
            "{unit}{} asked for; {unit}{} spent + {unit}{} held of {unit}{}{of}",
            number("requested"),
            number("spent"),
            number("reserved"),
            number("limit"),
        )];
    }
    refusal.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

fn cells(part: MicroUsd, whole: MicroUsd) -> usize {
    let (part, whole) = (i128::from(part.0.max(0)), i128::from(whole.0.max(1)));
    let cells = (part * BAR as i128 + whole / 2) / whole;
    usize::try_from(cells).map_or(BAR, |cells| cells.min(BAR))
}

/// Who is called; and by whom, where that is not the one above.
fn called(caller: &str, agent: &str, has_parent: bool) -> String {
    if has_parent || caller == ROOT { agent.to_owned() } else { format!("{caller} → {agent}") }
}

/// A line that begins further left if it would not fit otherwise, and is cut if it does not fit at all.
pub(super) fn fitted(indent: &str, text: &str) -> String {
    let room = WIDTH.saturating_sub(text.chars().count());
    let indent: String = indent.chars().take(room.max(2)).collect();
    let line = format!("{indent}{text}");
    match line.chars().nth(WIDTH) {
        Some(_) => line.chars().take(WIDTH - 1).chain(['…']).collect(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_never_longer_than_it_is() {
        let cap = MicroUsd(100);
        assert_eq!([0, 50, 100, 5_000].map(|part| cells(MicroUsd(part), cap)), [0, BAR / 2, BAR, BAR]);
        assert_eq!(cells(MicroUsd(1), MicroUsd(0)), BAR);
    }

    #[test]
    fn a_line_ends_where_the_terminal_does() {
        assert_eq!(fitted("    ", "x"), "    x");
        let moved = fitted(&" ".repeat(20), &"→".repeat(70));
        assert_eq!(moved.chars().filter(|cell| *cell == '→').count(), 70);
        assert_eq!(moved.chars().count(), WIDTH);
        let cut = fitted("    ", &"→".repeat(200));
        assert!(cut.chars().count() == WIDTH && cut.ends_with('…'), "{cut}");
    }

    #[test]
    fn a_tree_without_anything_in_it_is_its_root_alone() {
        let drawing = Drawing { picture: &RecordsView::default(), paint: Paint::PLAIN, cap: None };
        assert_eq!(drawing.lines(), ["  you"]);
    }
}
