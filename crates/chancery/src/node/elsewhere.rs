//! The list of remote agents of a node.

use super::Node;

impl Node {
    /// A line for every remote agent: its name, version, binding and address, and where it deviates.
    pub fn agents_elsewhere(&self) -> Vec<String> {
        self.reloader.agents_elsewhere()
    }
}
