//! Where a signing key comes from, if it is not one the node made itself: `[keys.USE]`, and `key_file` or `key_env` of an
//! agent.

use std::path::PathBuf;

use chancery_identity::SigningKey;
use chancery_identity::keys::Domain;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::effect::{TakesEffect, declare_keys, effect_of};
use super::section::Section;

/// A private key in PEM (PKCS#8), or the 32 bytes of an Ed25519 seed in hex or base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A file.
    File(PathBuf),
    /// A variable of the environment.
    Env(String),
}

/// Why a configured key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the key in {source_name} {fault}")]
pub struct KeySourceError {
    source_name: String,
    fault: String,
}

impl KeySource {
    /// At most one of the two; both is a fault.
    pub(super) fn of(file: Option<PathBuf>, env: Option<String>) -> Result<Option<Self>, &'static str> {
        match (file, env) {
            (Some(_), Some(_)) => Err("a key comes from a file or from the environment, not from both"),
            (Some(file), None) => Ok(Some(Self::File(file))),
            (None, Some(env)) => Ok(Some(Self::Env(env))),
            (None, None) => Ok(None),
        }
    }

    fn text(&self) -> Result<SecretString, KeySourceError> {
        match self {
            Self::File(file) => std::fs::read_to_string(file).map(Into::into).map_err(|error| KeySourceError {
                source_name: file.display().to_string(),
                fault: format!("cannot be read: {error}"),
            }),
            Self::Env(name) => std::env::var(name)
                .map(Into::into)
                .map_err(|_| KeySourceError { source_name: name.clone(), fault: "is not there".to_owned() }),
        }
    }

    pub(crate) fn load<D: Domain>(&self) -> Result<SigningKey<D>, KeySourceError> {
        let text = self.text()?;
        let text = text.expose_secret().trim();
        let key = if text.starts_with("-----BEGIN") { SigningKey::from_pem(text) } else { SigningKey::from_seed(text) };
        key.map_err(|fault| {
            let source_name = match self {
                Self::File(file) => file.display().to_string(),
                Self::Env(name) => name.clone(),
            };
            KeySourceError { source_name, fault: format!("cannot be used: {fault}") }
        })
    }
}

/// Keys of the node's own uses. Keys of agents stand with the agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeysConfig {
    /// Signs hop tokens.
    pub hop_tokens: Option<KeySource>,
    /// Signs push notifications.
    pub push: Option<KeySource>,
    /// Signs the record.
    pub receipts: Option<KeySource>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fields {
    file: Option<PathBuf>,
    env: Option<String>,
}

declare_keys!(Fields { file: Restart, env: Restart });

/// When another source of a key takes effect.
pub(super) fn effect() -> TakesEffect {
    effect_of::<Fields>("file")
}

pub(super) fn read(keys: &mut Section<'_, '_>) -> KeysConfig {
    KeysConfig { hop_tokens: one(keys, "hop_tokens"), push: one(keys, "push"), receipts: one(keys, "receipts") }
}

fn one(keys: &mut Section<'_, '_>, name: &'static str) -> Option<KeySource> {
    let read = |section: &mut Section<'_, '_>| {
        let fields: Fields = section.fields();
        match KeySource::of(fields.file, fields.env) {
            Ok(None) => {
                section.complain("needs `file` or `env`".to_owned());
                None
            }
            Ok(source) => source,
            Err(fault) => {
                section.complain(fault.to_owned());
                None
            }
        }
    };
    keys.section(name, read).flatten()
}
