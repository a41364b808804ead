//! Budgets, trees, freezes and explanations, as operators see them.

pub(crate) mod bill;
pub(crate) mod budgets;
pub(crate) mod explain;
pub(crate) mod freeze;
pub(crate) mod scopes;
pub(crate) mod spans;
pub(crate) mod trees;
