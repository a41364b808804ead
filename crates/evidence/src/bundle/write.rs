//! Makes a bundle of events.

use super::container::pack;
use super::event::{BundleEvent, Stamp};
use super::manifest::{Manifest, Producer};
use crate::record::{hex, sha256};

/// Events in their order become one file. The same events always become the same bytes.
pub fn seal(stamp: &Stamp, events: &[BundleEvent]) -> Result<Vec<u8>, std::io::Error> {
    let (mut lines, mut root) = (Vec::new(), Vec::new());
    for (seq, event) in events.iter().enumerate() {
        let (event, hash) = event.stamped(stamp, seq)?;
        lines.extend(serde_json_canonicalizer::to_vec(&event)?);
        lines.push(b'\n');
        root.extend(hash.as_bytes());
        root.push(b'\n');
    }
    let producer = Producer {
        name: stamp.producer.clone(),
        version: stamp.producer_version.clone(),
        git: Some(stamp.git.clone()).filter(|git| git != "unknown"),
    };
    let root = format!("sha256:{}", hex(&sha256(&root)));
    let manifest = Manifest::of(producer, &stamp.run, events.len(), root, &lines);
    pack(&manifest.bytes()?, &lines)
}
