//! When a changed key of the config takes effect: each key declares it, and a reload, the docs and `chancery reload` read it.

use serde::Serialize;

/// When the new value of a key counts in a node that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TakesEffect {
    /// At the reload, for every call from then on.
    Live,
    /// At the reload, for connections that are opened from then on.
    NewConnections,
    /// At the next start. A reload rejects a file that changes such a key.
    Restart,
}

impl TakesEffect {
    /// The value as the answer of a reload prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::NewConnections => "new connections",
            Self::Restart => "restart",
        }
    }
}

/// A key whose value differs between two configs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedKey {
    /// The whole name: `limits.body_bytes`, `agents.echo.title`.
    pub key: String,
    /// When the change takes effect.
    pub takes_effect: TakesEffect,
}

/// A struct whose fields are keys of a config section, each with when a change of it takes effect.
pub(super) trait ConfigKeys {
    const KEYS: &'static [(&'static str, TakesEffect)];
}

/// The same for a struct that the config holds as it was read, so that two of them can be compared.
pub(super) trait CompareKeys: ConfigKeys {
    /// The keys whose values differ.
    fn changed(&self, after: &Self) -> Vec<&'static str>;
}

/// When a change of a key of `T` takes effect. Only a name that is no key of `T` counts as one that needs a restart.
pub(super) fn effect_of<T: ConfigKeys>(key: &str) -> TakesEffect {
    T::KEYS.iter().find(|(name, _)| *name == key).map_or(TakesEffect::Restart, |(_, effect)| *effect)
}

/// Declares the keys of a struct: `declare_keys!(Struct { key: Live, other: Restart })`. A field that is left out does not compile.
macro_rules! declare_keys {
    ($type:ty { $($key:ident: $effect:ident),* $(,)? }) => {
        impl $crate::config::effect::ConfigKeys for $type {
            const KEYS: &'static [(&'static str, $crate::config::effect::TakesEffect)] = {
                // Exhaustive on purpose: a new field has to say here when it takes effect.
                #[allow(dead_code, unused_variables, reason = "only the compiler reads it")]
                fn every_field_is_declared(config: &$type) {
                    let Self_ { $($key),* } = config;
                }
                type Self_ = $type;
                &[$((stringify!($key), $crate::config::effect::TakesEffect::$effect)),*]
            };
        }
    };
}

/// The same for a struct that can be compared with another of its kind, field by field.
macro_rules! declare_section {
    ($type:ty { $($key:ident: $effect:ident),* $(,)? }) => {
        $crate::config::effect::declare_keys!($type { $($key: $effect),* });
        impl $crate::config::effect::CompareKeys for $type {
            fn changed(&self, after: &Self) -> Vec<&'static str> {
                let mut changed = Vec::new();
                $(if self.$key != after.$key {
                    changed.push(stringify!($key));
                })*
                changed
            }
        }
    };
}

pub(super) use {declare_keys, declare_section};
