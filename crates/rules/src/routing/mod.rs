//! Which of several peers gets a task: what is known of each, and the selectors that choose.
//!
//! A selector sees the peers that can be called now (see `health`) and offer what the task needs. It picks
//! one or none. None hands the task to the next selector of a chain, and after the last one the call fails.
//!
//! A peer is cold if it never had a result, or was not called for so long that its measurements are
//! forgotten. Every selector that uses measurements tries a cold peer that has no open task before the
//! others. While that task is open the peer comes after all that are measured (with two choices: it counts as
//! slow as the slowest). So every peer is measured, one that never answers holds few tasks, and a slow first
//! result is not permanent.

mod capability_match;
mod chained;
mod cheapest_under_latency;
mod config;
mod draw;
mod lowest_latency;
mod peer;
mod power_of_two_choices;
mod record;
mod round_robin;
mod share;
mod task_spec;
mod window;

pub use self::capability_match::CapabilityMatch;
pub use self::chained::ChainedSelector;
pub use self::cheapest_under_latency::CheapestUnderLatency;
pub use self::config::{Fallback, RoutingConfig, RoutingPlan, SelectorName};
pub(crate) use self::draw::number_of;
pub use self::lowest_latency::LowestLatency;
pub use self::peer::{PeerId, PeerSnapshot};
pub use self::power_of_two_choices::PowerOfTwoChoices;
pub use self::record::{CallOutcome, PeerRecord};
pub use self::round_robin::RoundRobin;
pub use self::share::Share;
pub use self::task_spec::{TaskSpec, takes_media_type};
pub use self::window::HealthWindow;

/// Chooses a peer for a task.
pub trait PeerSelector: Send + Sync {
    /// One of `peers`, all of which offer what the task needs and can be called; `None` if none of them will do.
    fn select(&self, task: &TaskSpec<'_>, peers: &[PeerSnapshot]) -> Option<PeerId>;

    /// For logs and decisions.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }
}
