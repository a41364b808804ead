//! Signs receipts with the node's key for them.

use arc_swap::ArcSwap;
use chancery_core::notify::Notary;
use chancery_identity::keys::Receipts;
use chancery_identity::{Algorithm, KeyRing, KeyUse, SealKey, SigningKey};
use chancery_protocol::Timestamp;

/// Each key from its own time on.
#[derive(Debug, Default)]
pub(super) struct ReceiptKeys(ArcSwap<Vec<(Timestamp, SigningKey<Receipts>)>>);

impl ReceiptKeys {
    pub(super) fn take_keys(&self, ring: &KeyRing) {
        let times = ring.records().iter().filter(|record| record.key_use == KeyUse::Receipts).map(|record| record.used_from);
        let mut keys: Vec<_> =
            times.filter_map(|from| Some((from, ring.signing::<Receipts>(None, Algorithm::EdDsa, from)?))).collect();
        keys.sort_by_key(|(from, _)| *from);
        self.0.store(keys.into());
    }
}

impl Notary for ReceiptKeys {
    fn digest(&self, content: &[u8]) -> [u8; 32] {
        SealKey::digest(content)
    }

    /// `KID,SIGNATURE`, the signature in hex.
    fn sign(&self, content: &[u8], now: Timestamp) -> Option<String> {
        let keys = self.0.load();
        let (_, key) = keys.iter().rev().find(|(from, _)| *from <= now)?;
        let signature: String = key.sign(content).ok()?.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("{},{signature}", key.kid()))
    }
}
