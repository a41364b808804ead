//! Who may do what with which memory until when: signed by the node that says so, and taken back through the tier.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_identity::keys::MemoryGrants;
use chancery_identity::{Algorithm, KeyRing, KeyUse, PublicKey, strict_json};
use chancery_protocol::{AgentId, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::storage_backend::StorageBackend;
use crate::{Capability, GrantRefusal, MemoryError, Witness};

/// A longer text is not looked at.
pub const MAX_GRANT: usize = 4 * 1024;
const TYPE: &str = "chancery-memory-grant+jwt";
/// How far the clocks of nodes that share a tier may be apart.
const LEEWAY: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryGrant {
    pub id: String,
    pub shard: String,
    /// Left out, it opens the whole shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
    pub capabilities: Vec<Capability>,
    /// Who may use it.
    pub grantee: AgentId,
    /// The caller that has to hand it over. If left out, every caller that may call the grantee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presenter: Option<AgentId>,
    /// The grants it was written with, the first one first. Taken back is what any of them was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The grants of a tier: makes those of this node, reads those of all it trusts, and knows which were taken back.
#[derive(Debug)]
pub struct GrantIssuer<'a> {
    pub(crate) shelf: &'a dyn StorageBackend,
    pub(crate) ring: &'a KeyRing,
    pub(crate) issuers: &'a [crate::IssuerKey],
}

impl GrantIssuer<'_> {
    /// The text of a grant. It is kept in the tier too, so that it can be listed.
    pub fn issue(&self, grant: &MemoryGrant) -> Result<String, MemoryError> {
        let key = self.ring.signing::<MemoryGrants>(None, Algorithm::EdDsa, grant.issued_at).ok_or(MemoryError::NoKey)?;
        let header = format!(r#"{{"alg":"EdDSA","kid":"{}","typ":"{TYPE}"}}"#, key.kid());
        let unwritten = |error: serde_json::Error| MemoryError::Tier("a grant cannot be written".into(), Some(Box::new(error)));
        let payload = serde_json::to_vec(grant).map_err(unwritten)?;
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
        let signature = key.sign(signed.as_bytes()).map_err(|_| MemoryError::NoKey)?;
        let text = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
        self.shelf.write(&format!("grants/{}", grant.id), text.as_bytes())?;
        Ok(text)
    }

    /// From now on no node on this tier accepts it, regardless of the issuer.
    pub fn revoke(&self, id: &str, at: Timestamp) -> Result<(), MemoryError> {
        let id =
            Uuid::parse_str(id).map_err(|_| MemoryError::Reference { field: "grant", reason: "is not the id of a grant" })?;
        self.shelf.write(&format!("revoked/{id}"), at.to_string().as_bytes())
    }

    /// Every grant that was issued on this tier, with whether it was taken back.
    pub fn list(&self) -> Result<Vec<(MemoryGrant, bool)>, MemoryError> {
        let mut grants = Vec::new();
        for name in self.shelf.list("grants")? {
            let Some(text) = self.shelf.read(&format!("grants/{name}"), MAX_GRANT as u64)? else { continue };
            if let Ok((grant, _)) = self.read(&String::from_utf8_lossy(&text), Timestamp::from_micros(0)) {
                let mut revoked = false;
                for id in grant.after.iter().chain([&grant.id]) {
                    revoked |= self.is_revoked(id)?;
                }
                grants.push((grant, revoked));
            }
        }
        Ok(grants)
    }

    /// A presented grant, whole or by its id: signed by a trusted node, within its time, and not revoked.
    pub fn open(&self, presented: &str, now: Timestamp) -> Result<MemoryGrant, MemoryError> {
        let (grant, key_counts) = match Uuid::parse_str(presented) {
            Ok(id) => {
                let text = self.shelf.read(&format!("grants/{id}"), MAX_GRANT as u64)?.ok_or(GrantRefusal::NoGrant)?;
                let text = String::from_utf8(text).map_err(|_| GrantRefusal::Malformed("it is not text"))?;
                let (grant, key_counts) = self.read(&text, now)?;
                if Uuid::parse_str(&grant.id) != Ok(id) {
                    return Err(GrantRefusal::Malformed("it lies under the id of another").into());
                }
                (grant, key_counts)
            }
            Err(_) => self.read(presented, now)?,
        };
        if !key_counts {
            return Err(GrantRefusal::UnknownIssuer.into());
        }
        if now >= grant.expires_at {
            return Err(GrantRefusal::Expired.into());
        }
        if now + LEEWAY < grant.issued_at {
            return Err(GrantRefusal::NotYet.into());
        }
        for id in grant.after.iter().chain([&grant.id]) {
            if self.is_revoked(id)? {
                return Err(GrantRefusal::Revoked.into());
            }
        }
        Ok(grant)
    }

    fn is_revoked(&self, id: &str) -> Result<bool, MemoryError> {
        // An id that is none names no file.
        let id = Uuid::parse_str(id).map_err(|_| GrantRefusal::Malformed("its id is not a UUID"))?;
        self.shelf.exists(&format!("revoked/{id}"))
    }

    /// What it says, if the signature is right; and whether its key counts at that time.
    fn read(&self, text: &str, now: Timestamp) -> Result<(MemoryGrant, bool), GrantRefusal> {
        let malformed = GrantRefusal::Malformed;
        if text.len() > MAX_GRANT {
            return Err(malformed("it is too long"));
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(malformed("it has not three parts"))?;
        let (header, payload) = signed.split_once('.').ok_or(malformed("it has not three parts"))?;
        let header = object(header).ok_or(malformed("its header is not JSON"))?;
        let said = |name: &str| header.get(name).and_then(serde_json::Value::as_str);
        if said("alg") != Some("EdDSA") || said("typ") != Some(TYPE) {
            return Err(malformed("its header is not the header of a grant"));
        }
        let (key, counts) = self.key(said("kid").unwrap_or_default(), now).ok_or(GrantRefusal::UnknownIssuer)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed("its signature is not base64url"))?;
        if !key.verify::<MemoryGrants>(signed.as_bytes(), &signature) {
            return Err(GrantRefusal::BadSignature);
        }
        let payload = object(payload).ok_or(malformed("its payload is not JSON"))?;
        let grant = serde_json::from_value(payload).map_err(|_| malformed("its payload lacks members of a grant"))?;
        Ok((grant, counts))
    }

    fn key(&self, kid: &str, now: Timestamp) -> Option<(&PublicKey, bool)> {
        let own = self.ring.records().iter().filter(|record| record.key_use == KeyUse::MemoryGrants);
        let own = own.map(|record| (&record.public, record.retires_at.is_none_or(|end| now < end)));
        let others = self.issuers.iter().map(|issuer| (&issuer.0, true));
        own.chain(others).find(|(key, _)| key.kid() == kid)
    }
}

fn object(base64: &str) -> Option<serde_json::Value> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(base64).ok()?).ok()?;
    strict_json::parse(&text).ok().filter(serde_json::Value::is_object)
}
