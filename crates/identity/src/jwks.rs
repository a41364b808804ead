//! Public keys as JSON Web Keys: what we publish, and what others publish for us to verify with.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_protocol::Timestamp;
use serde::{Deserialize, Serialize};

use crate::cards::{CardKeys, KeyHint};
use crate::keys::{Algorithm, KeyFault, KeyRing, KeyUse, PublicKey};

/// How many keys of a set are looked at. A longer set is somebody's mistake or attack.
pub const MAX_KEYS: usize = 64;

/// Members we do not know are ignored, as RFC 7517 asks, and so is a private half.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jwk {
    /// The type of the key, such as `OKP`.
    pub kty: String,
    /// The curve, such as `Ed25519`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crv: Option<String>,
    /// The x coordinate, in base64url.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<String>,
    /// The y coordinate, in base64url.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<String>,
    /// The id of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kid: Option<String>,
    /// The algorithm, such as `EdDSA`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alg: Option<String>,
    /// The `use` member, `sig` for signatures.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    pub public_use: Option<String>,
    /// Which of our uses the key has. Others' keys have no such member.
    #[serde(default, rename = "chancery:use", skip_serializing_if = "Option::is_none")]
    pub key_use: Option<String>,
}

impl Jwk {
    /// Makes the JSON form of a public key.
    pub fn of(key: &PublicKey, key_use: Option<KeyUse>) -> Self {
        let encode = |bytes: &[u8]| Some(URL_SAFE_NO_PAD.encode(bytes));
        let raw = key.raw();
        let (kty, crv, x, y) = match key.algorithm() {
            Algorithm::EdDsa => ("OKP", "Ed25519", encode(raw), None),
            Algorithm::Es256 => ("EC", "P-256", encode(&raw[1..33]), encode(&raw[33..])),
        };
        Self {
            kty: kty.to_owned(),
            crv: Some(crv.to_owned()),
            x,
            y,
            kid: Some(key.kid()),
            alg: Some(key.algorithm().as_str().to_owned()),
            public_use: Some("sig".to_owned()),
            key_use: key_use.map(|one| one.as_str().to_owned()),
        }
    }

    /// Returns the public key.
    pub fn public_key(&self) -> Result<PublicKey, KeyFault> {
        let algorithm = match (self.kty.as_str(), self.crv.as_deref()) {
            ("OKP", Some("Ed25519")) => Algorithm::EdDsa,
            ("EC", Some("P-256")) => Algorithm::Es256,
            _ => return Err(KeyFault::NotAPublicKey("only Ed25519 and P-256 keys verify here")),
        };
        if self.alg.as_deref().is_some_and(|named| Algorithm::from_jose(named) != Some(algorithm)) {
            return Err(KeyFault::NotAPublicKey("its alg does not fit its curve"));
        }
        if self.public_use.as_deref().is_some_and(|one| one != "sig") {
            return Err(KeyFault::NotAPublicKey("it is not for signatures"));
        }
        let coordinate = |text: &Option<String>| {
            let bytes = text.as_deref().and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
            bytes.filter(|bytes| bytes.len() == 32).ok_or(KeyFault::NotAPublicKey("a coordinate is 32 bytes in base64url"))
        };
        match algorithm {
            Algorithm::EdDsa => PublicKey::from_raw(algorithm, &coordinate(&self.x)?),
            Algorithm::Es256 => PublicKey::from_raw(algorithm, &[&[4], &*coordinate(&self.x)?, &*coordinate(&self.y)?].concat()),
        }
    }

    fn is_for(&self, key_use: KeyUse) -> bool {
        self.key_use.as_deref().is_none_or(|named| named == key_use.as_str())
    }
}

/// A set of public keys in their JSON form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jwks {
    /// The keys.
    pub keys: Vec<Jwk>,
}

impl Jwks {
    /// What a node publishes: every key that has not retired.
    pub fn of(ring: &KeyRing, now: Timestamp) -> Self {
        Self { keys: ring.published(now).map(|record| Jwk::of(&record.public, Some(record.key_use))).collect() }
    }

    /// The keys of a set that fit this use and algorithm, those of the named kid first. What cannot be used is passed over.
    pub fn candidates(&self, key_use: KeyUse, algorithm: Algorithm, kid: Option<&str>) -> Vec<PublicKey> {
        let fits = |jwk: &&Jwk| jwk.is_for(key_use);
        let mut named: Vec<(bool, PublicKey)> = self
            .keys
            .iter()
            .take(MAX_KEYS)
            .filter(fits)
            .filter_map(|jwk| Some((jwk.kid.is_some() && jwk.kid.as_deref() == kid, jwk.public_key().ok()?)))
            .filter(|(_, key)| key.algorithm() == algorithm)
            .collect();
        named.sort_by_key(|(named, _)| !named);
        named.into_iter().map(|(_, key)| key).collect()
    }
}

impl CardKeys for Jwks {
    fn candidates(&self, hint: &KeyHint<'_>) -> Vec<PublicKey> {
        self.candidates(KeyUse::Cards, hint.algorithm, hint.kid)
    }
}
