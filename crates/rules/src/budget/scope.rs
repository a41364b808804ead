//! What a call is charged to, how much each may take, and over which time.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};

use super::amount::Caps;

/// One of the scopes a call is charged to.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetScope {
    /// The whole node.
    Global,
    /// A tenant, by name.
    Tenant(Arc<str>),
    /// A caller.
    Caller {
        /// The tenant of the caller.
        tenant: Arc<str>,
        /// The name of the caller.
        name: Arc<str>,
    },
    /// An agent, by name.
    Agent(Arc<str>),
    /// A skill of an agent.
    Skill {
        /// The name of the agent.
        agent: Arc<str>,
        /// The id of the skill.
        skill: Arc<str>,
    },
    /// A whole delegation tree, by its root.
    Tree(Arc<str>),
    /// A task and all below it, whose call asked for less than its parent had left.
    Subtree(Arc<str>),
}

impl BudgetScope {
    /// The word before the colon.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Tenant(_) => "tenant",
            Self::Caller { .. } => "caller",
            Self::Agent(_) => "agent",
            Self::Skill { .. } => "skill",
            Self::Tree(_) => "tree",
            Self::Subtree(_) => "subtree",
        }
    }

    /// Whether callers that know nothing of each other are charged to it.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Global | Self::Tenant(_))
    }

    /// Writes what is after the colon, if anything is.
    pub(super) fn write_name(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => Ok(()),
            Self::Tenant(name) | Self::Agent(name) | Self::Tree(name) | Self::Subtree(name) => f.write_str(name),
            Self::Caller { tenant: of, name } | Self::Skill { agent: of, skill: name } => write!(f, "{of}/{name}"),
        }
    }
}

impl fmt::Display for BudgetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        if *self != Self::Global {
            f.write_str(":")?;
        }
        self.write_name(f)
    }
}

/// Over which time amounts are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BudgetWindow {
    /// The last so much time, at any moment.
    Sliding(Duration),
    /// As long as the scope lives.
    Tree,
}

impl BudgetWindow {
    /// A sliding window of one minute.
    pub const MINUTE: Self = Self::Sliding(Duration::from_secs(60));
    /// Shorter ones would be dust: a sixtieth of it is how exactly time is looked at.
    pub const SHORTEST: Duration = Duration::from_secs(1);
    /// Ten years.
    pub const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);
}

/// How much a scope may take, and over which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    /// The caps.
    pub caps: Caps,
    /// The time that the caps are for.
    pub window: BudgetWindow,
}

impl Limit {
    /// Of a tree, or a part of one.
    pub const fn of_tree(caps: Caps) -> Self {
        Self { caps, window: BudgetWindow::Tree }
    }
}

impl fmt::Display for BudgetWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree => f.write_str("tree"),
            Self::Sliding(length) => match (length.as_secs(), length.subsec_millis()) {
                (seconds, 0) if seconds % 86_400 == 0 => write!(f, "{}d", seconds / 86_400),
                (seconds, 0) if seconds % 3_600 == 0 => write!(f, "{}h", seconds / 3_600),
                (seconds, 0) if seconds % 60 == 0 => write!(f, "{}m", seconds / 60),
                (seconds, 0) => write!(f, "{seconds}s"),
                _ => write!(f, "{}ms", length.as_millis()),
            },
        }
    }
}

impl FromStr for BudgetWindow {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const SHAPE: &str = "a window is a number and a unit, such as \"90s\", \"1m\", \"1h\" or \"1d\"";
        if text == "tree" {
            return Ok(Self::Tree);
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| SHAPE)?;
        let millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(SHAPE),
        };
        let length = Duration::from_millis(number.saturating_mul(millis));
        if !(Self::SHORTEST..=Self::LONGEST).contains(&length) {
            return Err("a window is at least a second and at most 3650 days long");
        }
        Ok(Self::Sliding(length))
    }
}

impl Serialize for BudgetWindow {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BudgetWindow {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_read_as_it_is_written() {
        for text in ["1s", "90s", "1m", "5m", "1h", "1d", "3650d", "tree", "1500ms"] {
            assert_eq!(text.parse::<BudgetWindow>().unwrap().to_string(), text);
        }
        for (text, same) in [("60s", "1m"), ("24h", "1d"), ("1000ms", "1s")] {
            assert_eq!(text.parse::<BudgetWindow>().unwrap().to_string(), same);
        }
        for text in ["", "1", "s", "0s", "999ms", "3651d", "1 h", "-1h", "1w", "1.5h", "99999999999999999999d", "Tree", "一h"] {
            assert!(text.parse::<BudgetWindow>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_scope_is_written_with_its_kind_and_its_name() {
        let caller = BudgetScope::Caller { tenant: "default".into(), name: "planner".into() };
        let skill = BudgetScope::Skill { agent: "research".into(), skill: "sum".into() };
        let written = [BudgetScope::Global, caller, skill, BudgetScope::Tree("t1".into())].map(|scope| scope.to_string());
        assert_eq!(written, ["global", "caller:default/planner", "skill:research/sum", "tree:t1"]);
    }
}
