//! The control plane for agent-to-agent traffic, as a library.
