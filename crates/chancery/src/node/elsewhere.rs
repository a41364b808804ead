//! What a node says of the agents elsewhere that it stands in front of.

use super::Node;

impl Node {
    /// A line for every agent elsewhere: its name, version, binding and address, and where it deviates.
    pub fn agents_elsewhere(&self) -> Vec<String> {
        self.reloader.agents_elsewhere()
    }
}
