//! Makes a bundle of events, or says why none can be made that a reader would take.

use super::container::pack;
use super::event::{BundleEvent, Stamp};
use super::limits;
use super::manifest::{Manifest, Producer};
use crate::record::{hex, sha256};

#[derive(Debug, thiserror::Error)]
pub enum SealFault {
    #[error("event {seq} has {bytes} bytes, more than the {} of a line", limits::LINE_BYTES)]
    TooLong { seq: usize, bytes: usize },
    #[error("{0} has more than {1}")]
    TooMuch(&'static str, u64),
    #[error(transparent)]
    Unwritable(#[from] std::io::Error),
}

fn within(what: &'static str, found: usize, most: u64) -> Result<(), SealFault> {
    if found as u64 > most { Err(SealFault::TooMuch(what, most)) } else { Ok(()) }
}

/// Events in their order become one file. The same events always become the same bytes. What a reader takes at most is kept to.
pub fn seal(stamp: &Stamp, events: &[BundleEvent]) -> Result<Vec<u8>, SealFault> {
    let (mut lines, mut root) = (Vec::new(), Vec::new());
    within("the list of events", events.len(), limits::EVENTS as u64)?;
    for (seq, event) in events.iter().enumerate() {
        let (event, hash) = event.stamped(stamp, seq).map_err(std::io::Error::from)?;
        let line = serde_json_canonicalizer::to_vec(&event).map_err(std::io::Error::from)?;
        if line.len() > limits::LINE_BYTES {
            return Err(SealFault::TooLong { seq, bytes: line.len() });
        }
        lines.extend(line);
        lines.push(b'\n');
        within("the file of events", lines.len(), limits::EVENTS_BYTES)?;
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
    let bundle = pack(&manifest.bytes().map_err(std::io::Error::from)?, &lines)?;
    within("the bundle", bundle.len(), limits::BUNDLE_BYTES)?;
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_as_a_reader_takes_is_not_too_much() {
        assert!(within("the bundle", 5, 5).is_ok());
        let fault = within("the bundle", 6, 5).unwrap_err();
        assert_eq!(fault.to_string(), "the bundle has more than 5");
    }
}
