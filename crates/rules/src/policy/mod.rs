//! What one task may do and take: whose it is and which skill it asks for decide.

mod book;
mod config;
mod error;
mod expression;
mod judge;
mod slots;

pub use self::book::PolicyBook;
pub use self::config::{CallerPolicy, DEFAULT_CONCURRENCY, PolicyConfig, RuleConfig, TaskPolicy};
pub use self::error::PolicyError;
pub use self::expression::{CallFacts, Expression, PolicyRule, RuleKind, Rules};
pub use self::judge::{AskedSkill, PolicyQuestion, judge};
pub use self::slots::{Slot, Slots, UNLIMITED};
