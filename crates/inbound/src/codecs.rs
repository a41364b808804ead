//! Which codec speaks a version over a binding.

use chancery_protocol::{Binding, Dialect, Version};
use chancery_wire::Codec;
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v0_3::rest::V0_3Rest;
use chancery_wire::json::v0_3::wrapped::V0_3Wrapped;
use chancery_wire::json::v1_0::V1_0;

/// Which codec writes the JSON-RPC answers of a dialect.
pub(crate) fn dialect_codec(dialect: Dialect) -> &'static dyn Codec {
    match dialect {
        Dialect::Plain(version) => codec(version, Binding::JsonRpc),
        Dialect::Wrapped0_3 => &V0_3Wrapped,
    }
}

pub(crate) fn codec(version: Version, binding: Binding) -> &'static dyn Codec {
    match (version, binding) {
        (Version::V1_0, _) => &V1_0,
        (Version::V0_3, Binding::Rest) => &V0_3Rest,
        (Version::V0_3, _) => &V0_3,
        (Version::Original, _) => &Original,
    }
}
