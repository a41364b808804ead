//! Memory by reference, told to built nodes that share a tier: what is handed over, to whom, and what is refused.

mod large_parts;
mod offload;
mod refusals;
mod relay;
mod schemas;
mod two_nodes;
mod witness_handoff;
