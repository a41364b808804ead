//! Rules as functions without I/O: the sections of a config that set them, and the types of their facts and verdicts.

/// Budgets: caps, prices, and the state of an account.
pub mod budget {
    pub use chancery_rules::budget::{
        Account, ActualSource, Amount, BudgetConfig, BudgetScope, BudgetStanding, BudgetWindow, Caps, EstimateSource,
        GlobalBudget, Limit, OverflowPolicy, Price, ScopeBudget, SettledReservation, TreeBudget, UnknownShare,
    };
}

/// Health of agents: circuit breakers, outliers and checks.
pub mod health {
    pub use chancery_rules::health::{BreakerConfig, BreakerState, CheckConfig, HealthConfig, OutlierConfig};
}

/// Lineage: the tree of tasks that a call belongs to.
pub mod lineage {
    pub use chancery_rules::lineage::{
        AgentIdIndex, AgentNaming, AgentPath, AgentRef, Attribution, ClaimedContext, LineageConfig, TaskContext, TokenCheck,
        TokenClaims, Unattributed,
    };
}

/// Policies: rules of the operator and of the program.
pub mod policy {
    pub use chancery_rules::policy::{
        CallFacts, CallerPolicy, Expression, PolicyBook, PolicyConfig, PolicyError, PolicyRule, RuleConfig, RuleKind, Rules,
        TaskPolicy,
    };
}

/// Limits on the depth of a tree of calls, and on calls that come back to an agent.
pub mod recursion {
    pub use chancery_rules::recursion::{RecursionError, RecursionPolicy};
}

/// The choice of a replica, or of an agent with a skill.
pub mod routing {
    pub use chancery_rules::routing::{
        CapabilityMatch, ChainedSelector, CheapestUnderLatency, Fallback, LowestLatency, PeerId, PeerSelector, PeerSnapshot,
        PowerOfTwoChoices, RoundRobin, RoutingConfig, RoutingPlan, SelectorName, Share, TaskSpec,
    };
}

pub use chancery_rules::{MicroUsd, MoneyFault};
