//! What governs calls, seen from outside the control plane: each rule by the name the decision record gives its test.

mod around;
mod attacks;
mod budget_guard;
mod dispatch_order;
mod fan_out;
mod hop_tokens;
mod house;
mod policy_guard;
mod recursion_guard;
mod retries;
mod simulation;
mod skills;
mod stop;
mod trace_lineage;
mod turns;
