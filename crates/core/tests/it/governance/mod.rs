//! What governs calls, seen from outside the control plane: each rule by the name the decision record gives its test.

mod around;
mod attacks;
mod bill;
mod budget_guard;
mod dispatch_order;
mod fan_out;
mod governed_plane;
mod hints;
mod hop_tokens;
mod idempotency_keys;
mod late_calls;
mod learnt_prices;
mod open_node;
mod own_names;
mod policy_guard;
mod recursion_guard;
mod retries;
mod ring;
mod simulation;
mod skill_routes;
mod skills;
mod steady_windows;
mod stop;
mod trace_lineage;
mod turns;
