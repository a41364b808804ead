//! The port through which the service seals its tokens, over the node's own key.

use chancery_core::Seal;
use chancery_identity::SealKey;

#[derive(Debug)]
pub(crate) struct KeySeal(pub(crate) SealKey);

impl Seal for KeySeal {
    fn seal(&self, purpose: &str, content: &[u8]) -> String {
        self.0.seal(purpose, content)
    }

    fn open(&self, purpose: &str, token: &str) -> Option<Vec<u8>> {
        self.0.open(purpose, token)
    }

    fn mark(&self, purpose: &str, content: &[u8]) -> [u8; 32] {
        self.0.mark(purpose, content)
    }

    fn digest(&self, content: &[u8]) -> [u8; 32] {
        SealKey::digest(content)
    }
}
