//! An insecure seal, for tests that are not about seals.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use chancery_core::Seal;

#[derive(Clone, Copy, Debug, Default)]
pub struct PlainSeal;

impl Seal for PlainSeal {
    fn seal(&self, purpose: &str, content: &[u8]) -> String {
        let hex: String = content.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{purpose}.{hex}")
    }

    fn open(&self, purpose: &str, token: &str) -> Option<Vec<u8>> {
        let hex = token.strip_prefix(purpose)?.strip_prefix('.')?;
        let pairs = hex.as_bytes().chunks(2);
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
    }

    fn mark(&self, purpose: &str, content: &[u8]) -> [u8; 32] {
        self.digest(&[purpose.as_bytes(), content].concat())
    }

    fn digest(&self, content: &[u8]) -> [u8; 32] {
        let mut digest = [0; 32];
        for (round, part) in digest.chunks_mut(8).enumerate() {
            let mut hasher = DefaultHasher::new();
            (round, content).hash(&mut hasher);
            part.copy_from_slice(&hasher.finish().to_be_bytes());
        }
        digest
    }
}
