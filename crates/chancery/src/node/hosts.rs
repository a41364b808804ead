//! Which hosts a node answers to.

use super::{Node, NodeBuilder};

impl NodeBuilder {
    /// A node without callers also answers to hosts that are not its own, unless its config has `hosts`. Web pages that DNS
    /// rebinding leads to it can then call its agents.
    pub fn insecure(mut self, is_insecure: bool) -> Self {
        self.is_insecure = is_insecure;
        self
    }
}

impl Node {
    /// Whether only requests to the node's own hosts are answered: loopback names and addresses, the listen address, the public
    /// URL and the configured hosts. That is so while the node has no callers.
    pub fn refuses_other_hosts(&self) -> bool {
        self.doors_handle.doors().refuses_other_hosts()
    }
}
