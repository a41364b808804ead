//! The extensions of an envelope: pairs of type and value, checked once and then read where they lie.

use bytes::{Bytes, BytesMut};

use crate::{FrameReason, Reject, uvarint};

/// One extension. Types 0 to 15 belong to the core and its bindings, the others to profiles; unknown ones mean nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    pub ext_type: u64,
    pub value: Bytes,
}

/// A well-formed block of extensions. A type may occur more than once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extensions {
    block: Bytes,
}

impl Extensions {
    pub fn parse(block: Bytes) -> Result<Self, Reject> {
        let mut rest = block.clone();
        while !rest.is_empty() {
            take(&mut rest).map_err(|_| FrameReason::MalformedExtension)?;
        }
        Ok(Self { block })
    }

    pub fn as_block(&self) -> &Bytes {
        &self.block
    }

    pub fn is_empty(&self) -> bool {
        self.block.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Extension> + use<> {
        let mut rest = self.block.clone();
        // What is in `block` was read once already, so nothing is lost with the error.
        std::iter::from_fn(move || take(&mut rest).ok())
    }

    /// The first extension of this type.
    pub fn get(&self, ext_type: u64) -> Option<Bytes> {
        self.iter().find(|extension| extension.ext_type == ext_type).map(|extension| extension.value)
    }
}

fn take(rest: &mut Bytes) -> Result<Extension, FrameReason> {
    let ext_type = uvarint::read(rest)?;
    Ok(Extension { ext_type, value: uvarint::read_bytes(rest)? })
}

impl FromIterator<Extension> for Extensions {
    fn from_iter<I: IntoIterator<Item = Extension>>(extensions: I) -> Self {
        let mut block = BytesMut::new();
        for extension in extensions {
            uvarint::write(extension.ext_type, &mut block);
            uvarint::write_bytes(&extension.value, &mut block);
        }
        Self { block: block.freeze() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_in_order_and_a_type_may_occur_twice() {
        let block = Bytes::from_static(&[0x81, 0x20, 2, 7, 8, 16, 0, 16, 1, 9]);
        let extensions = Extensions::parse(block.clone()).expect("reads");
        let types: Vec<_> = extensions.iter().map(|extension| extension.ext_type).collect();
        assert_eq!(types, [4097, 16, 16]);
        assert_eq!(extensions.get(16), Some(Bytes::new()));
        assert_eq!(extensions.get(1), None);
        assert_eq!(extensions.iter().collect::<Extensions>().as_block(), &block);
    }

    #[test]
    fn a_block_that_is_cut_anywhere_inside_a_pair_is_refused() {
        for block in [&[16][..], &[0x80], &[16, 2, 1], &[16, 0, 16], &[0xff; 11]] {
            let reject = Extensions::parse(Bytes::copy_from_slice(block)).expect_err("is malformed");
            assert_eq!(reject.reason(), FrameReason::MalformedExtension, "{block:?}");
        }
    }
}
