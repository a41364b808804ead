//! Verifies the signatures of 1.0 and 0.3 cards.

use chancery_protocol::AgentId;
use serde_json::Value;

use super::forms::{self, CardShape, Form, Payload, SIGNATURES};
use super::{CardFault, jku_allowed};
use crate::jws::{Detached, Header};
use crate::keys::{Algorithm, PublicKey};
use crate::strict_json;

/// A card with more signatures is refused unread.
pub const MAX_SIGNATURES: usize = 16;
/// How many keys are tried for one signature.
pub const MAX_CANDIDATES: usize = 8;

/// What a signature says of its key. None of it is proven before the signature is.
#[derive(Clone, Copy, Debug)]
pub struct KeyHint<'a> {
    pub algorithm: Algorithm,
    pub kid: Option<&'a str>,
    /// Where the keys are, if that is an address we accept; see [`jku_allowed`].
    pub jku: Option<&'a str>,
}

/// Where keys to verify with come from: pinned, or fetched before. At most [`MAX_CANDIDATES`] of the first are tried.
pub trait CardKeys {
    fn candidates(&self, hint: &KeyHint<'_>) -> Vec<PublicKey>;
}

impl<F: Fn(&KeyHint<'_>) -> Vec<PublicKey>> CardKeys for F {
    fn candidates(&self, hint: &KeyHint<'_>) -> Vec<PublicKey> {
        self(hint)
    }
}

#[derive(Clone, Debug, Default)]
pub struct VerifyRules {
    /// Where the card came from.
    pub card_url: Option<String>,
    /// Origins whose `jku` is accepted beside the card's own.
    pub jku_origins: Vec<String>,
}

impl VerifyRules {
    fn accepts(&self, jku: &str) -> bool {
        jku_allowed(jku, self.card_url.as_deref(), &self.jku_origins)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedSignature {
    /// The thumbprint of the key, not what the signature calls it.
    pub kid: String,
    pub algorithm: Algorithm,
    pub jku: Option<String>,
    /// The agent with that key, if it is an Ed25519 key.
    pub agent_id: Option<AgentId>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// One for each key, however often it signed.
    pub by: Vec<VerifiedSignature>,
    /// Signatures that no candidate key verified. They prove nothing, also nothing bad.
    pub unverified: usize,
    /// The card as far as every one of these keys signed it, without the signatures. Read this and not what came over the wire:
    /// what it lacks, nobody vouched for.
    pub card: Value,
}

struct Proof {
    key: PublicKey,
    jku: Option<String>,
    form: Form,
}

/// Succeeds if at least one signature verifies.
pub fn verify_card_signatures(text: &str, keys: &dyn CardKeys, rules: &VerifyRules) -> Result<Verified, CardFault> {
    let card = strict_json::parse(text)?;
    let Value::Object(card) = &card else { return Err(CardFault::NotACard("it is not an object".to_owned())) };
    let signatures = signatures(card.get(SIGNATURES))?;
    let payloads = forms::to_verify(card, CardShape::of(card))?;

    let mut proofs: Vec<Proof> = Vec::new();
    let mut refused = Vec::new();
    for (at, signature) in signatures.iter().enumerate() {
        match signature.as_ref().map_err(Clone::clone).and_then(|signature| prove(signature, &payloads, keys, rules)) {
            Ok(proof) => match proofs.iter_mut().find(|other| other.key == proof.key) {
                Some(same) => same.form = same.form.min(proof.form),
                None => proofs.push(proof),
            },
            Err(reason) => refused.push(format!("signature {}: {reason}", at + 1)),
        }
    }
    let Some(least) = proofs.iter().map(|proof| proof.form).max() else {
        return Err(CardFault::invalid(refused.join("; ")));
    };
    let covered = payloads.into_iter().find(|payload| payload.form == least).map(|payload| payload.covered);
    Ok(Verified {
        by: proofs.into_iter().map(named).collect(),
        unverified: refused.len(),
        card: covered.ok_or_else(|| CardFault::invalid("nothing is covered"))?,
    })
}

/// The addresses of keys that the card's signatures name and we accept: what to fetch before verifying.
pub fn card_key_urls(text: &str, rules: &VerifyRules) -> Result<Vec<String>, CardFault> {
    let card = strict_json::parse(text)?;
    let mut urls: Vec<String> = Vec::new();
    for signature in signatures(card.get(SIGNATURES))?.into_iter().flatten() {
        let jku = signature.header().ok().and_then(|header| header.jku).filter(|jku| rules.accepts(jku));
        urls.extend(jku.filter(|jku| !urls.contains(jku)));
    }
    Ok(urls)
}

/// Those with the members of a signature; what else is in the list is a signature that cannot be verified.
fn signatures(member: Option<&Value>) -> Result<Vec<Result<Detached, String>>, CardFault> {
    let list = match member {
        None | Some(Value::Null) => return Err(CardFault::Unsigned),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(CardFault::NotACard("its signatures are not a list".to_owned())),
    };
    match list.len() {
        0 => return Err(CardFault::Unsigned),
        many if many > MAX_SIGNATURES => return Err(CardFault::TooManySignatures(many)),
        _ => {}
    }
    let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
    let read = |entry: &Value| match (text(entry, "protected"), text(entry, "signature")) {
        (Some(protected), Some(signature)) => Ok(Detached { protected, signature }),
        _ => Err("it lacks its protected header or the signature".to_owned()),
    };
    Ok(list.iter().map(read).collect())
}

fn prove(signature: &Detached, payloads: &[Payload], keys: &dyn CardKeys, rules: &VerifyRules) -> Result<Proof, String> {
    let Header { algorithm, kid, jku } = signature.header()?;
    // An address we do not accept is nobody's to fetch. A key that is known otherwise still counts.
    let jku = jku.filter(|jku| rules.accepts(jku));
    let hint = KeyHint { algorithm, kid: kid.as_deref(), jku: jku.as_deref() };
    let candidates = keys.candidates(&hint).into_iter().filter(|key| key.algorithm() == algorithm).take(MAX_CANDIDATES);
    for key in candidates {
        if let Some(payload) = payloads.iter().find(|payload| signature.verify(&payload.bytes, &key)) {
            return Ok(Proof { key, jku, form: payload.form });
        }
    }
    Err(format!("no {algorithm} key at hand verifies it"))
}

fn named(Proof { key, jku, .. }: Proof) -> VerifiedSignature {
    VerifiedSignature { kid: key.kid(), algorithm: key.algorithm(), jku, agent_id: key.agent_id() }
}
