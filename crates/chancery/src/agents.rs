//! The agents that come with the binary, and the cards they are announced with.

mod card;
mod conformance;
mod echo;
mod recall;

use std::sync::Arc;

use chancery_core::TaskRunner;
use chancery_protocol::AgentCard;
use serde::{Deserialize, Serialize};

pub(crate) use self::card::interfaces;
pub use self::card::new_card;
pub use self::conformance::Conformance;
pub use self::echo::Echo;
pub use self::recall::RecallAgent;

/// An agent that comes with the binary, by the word that config and command line use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BuiltIn {
    /// Completes every task with one artifact: the text it was sent.
    Echo,
    /// Does what the message says, so that every state can be seen without a model.
    Conformance,
    /// Resolves memory by its witness, and returns the entries nearest to a query.
    Recall,
}

impl BuiltIn {
    /// Every built-in agent.
    pub const ALL: [Self; 3] = [Self::Echo, Self::Conformance, Self::Recall];

    /// Returns the word that config and command line use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Conformance => "conformance",
            Self::Recall => "recall",
        }
    }

    /// Returns the card of the agent.
    pub fn card(self) -> AgentCard {
        match self {
            Self::Echo => echo::card(),
            Self::Conformance => conformance::card(),
            Self::Recall => recall::card(),
        }
    }

    /// Makes the runner of the agent.
    pub fn runner(self) -> Arc<dyn TaskRunner> {
        match self {
            Self::Echo => Arc::new(Echo::default()),
            Self::Conformance => Arc::new(Conformance),
            Self::Recall => Arc::new(RecallAgent),
        }
    }
}

#[cfg(test)]
mod tests;
