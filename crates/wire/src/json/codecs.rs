//! The table that says which codec writes and reads a version over a binding.

use chancery_protocol::{Binding, Dialect, Version};

use super::original::Original;
use super::v0_3::V0_3;
use super::v0_3::rest::V0_3Rest;
use super::v0_3::wrapped::V0_3Wrapped;
use super::v1_0::V1_0;
use crate::codec::Codec;

/// Returns the codec of a version over a binding. Only 0.3 has another JSON over REST than over JSON-RPC.
pub fn codec(version: Version, binding: Binding) -> &'static dyn Codec {
    match (version, binding) {
        (Version::V1_0, _) => &V1_0,
        (Version::V0_3, Binding::Rest) => &V0_3Rest,
        (Version::V0_3, _) => &V0_3,
        (Version::Original, _) => &Original,
    }
}

/// Returns the codec that writes the JSON-RPC answers of a dialect.
pub fn dialect_codec(dialect: Dialect) -> &'static dyn Codec {
    match dialect {
        Dialect::Plain(version) => codec(version, Binding::JsonRpc),
        Dialect::Wrapped0_3 => &V0_3Wrapped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_and_binding_has_its_codec() {
        let names = |binding| [Version::V1_0, Version::V0_3, Version::Original].map(|version| codec(version, binding).name());
        assert_eq!(names(Binding::JsonRpc), [V1_0.name(), V0_3.name(), Original.name()]);
        assert_eq!(names(Binding::Rest), [V1_0.name(), V0_3Rest.name(), Original.name()]);
        assert_eq!(dialect_codec(Dialect::Plain(Version::V0_3)).name(), V0_3.name());
        assert_eq!(dialect_codec(Dialect::Wrapped0_3).name(), V0_3Wrapped.name());
    }
}
