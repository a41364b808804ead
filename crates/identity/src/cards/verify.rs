//! Verifies the signatures of 1.0 and 0.3 cards.

use chancery_protocol::AgentId;
use serde_json::Value;

use super::forms::{self, CardShape, Form, SIGNATURES, SignedPayload};
use super::{CardFault, jku_allowed};
use crate::jws::{Detached, Header, SignatureFault};
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
pub struct VerifiedCard {
    /// One for each key, however often it signed.
    pub by: Vec<VerifiedSignature>,
    /// Signatures that no candidate key verified. They prove nothing, also nothing bad.
    pub unverified: usize,
    /// The card as far as every one of these keys signed it, without the signatures. Read this and not the
    /// received card: no signature covers the members that are missing here.
    pub card: Value,
}

struct Proof {
    key: PublicKey,
    jku: Option<String>,
    form: Form,
}

/// Succeeds if at least one signature verifies.
pub fn verify_card_signatures(text: &str, keys: &dyn CardKeys, rules: &VerifyRules) -> Result<VerifiedCard, CardFault> {
    let card = strict_json::parse(text)?;
    let Value::Object(card) = &card else { return Err(CardFault::NotACard("it is not an object".to_owned())) };
    let signatures = signatures(card.get(SIGNATURES))?;
    let payloads = forms::to_verify(card, CardShape::of(card))?;

    let mut proofs: Vec<Proof> = Vec::new();
    let mut refused = Vec::new();
    for (at, signature) in signatures.iter().enumerate() {
        match signature.as_ref().map_err(ToString::to_string).and_then(|signature| prove(signature, &payloads, keys, rules)) {
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
    Ok(VerifiedCard {
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

/// Checks that keys could verify the card's signatures, for when no key is known. A card is refused if one of them is malformed
/// or says `alg: none`, or if none of them uses an algorithm we support: such a card is not an unsigned one.
pub fn check_signature_forms(text: &str) -> Result<(), CardFault> {
    let card = strict_json::parse(text)?;
    let signatures = signatures(card.get(SIGNATURES))?;
    let (mut malformed, mut unsupported) = (Vec::new(), Vec::new());
    for (at, signature) in signatures.iter().enumerate() {
        let fault = signature.as_ref().map_err(Clone::clone).and_then(Detached::check_form);
        match fault {
            Ok(()) => {}
            Err(SignatureFault::Malformed(reason)) => malformed.push(format!("signature {}: {reason}", at + 1)),
            Err(SignatureFault::Unsupported(reason)) => unsupported.push(format!("signature {}: {reason}", at + 1)),
        }
    }
    if !malformed.is_empty() {
        return Err(CardFault::invalid(malformed.join("; ")));
    }
    if unsupported.len() == signatures.len() {
        return Err(CardFault::invalid(unsupported.join("; ")));
    }
    Ok(())
}

/// The entries of the list, each with the members of a signature or the fault of one that lacks them.
fn signatures(member: Option<&Value>) -> Result<Vec<Result<Detached, SignatureFault>>, CardFault> {
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
        _ => Err(SignatureFault::Malformed("it lacks its protected header or the signature".to_owned())),
    };
    Ok(list.iter().map(read).collect())
}

fn prove(signature: &Detached, payloads: &[SignedPayload], keys: &dyn CardKeys, rules: &VerifyRules) -> Result<Proof, String> {
    let Header { algorithm, kid, jku } = signature.header().map_err(|fault| fault.to_string())?;
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

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    use super::*;

    fn entry(header: &Value, signature_bytes: usize) -> Value {
        let protected = URL_SAFE_NO_PAD.encode(header.to_string());
        json!({ "protected": protected, "signature": URL_SAFE_NO_PAD.encode(vec![7; signature_bytes]) })
    }

    fn outcome(signatures: &Value) -> Result<(), CardFault> {
        check_signature_forms(&json!({ "name": "A", "signatures": signatures }).to_string())
    }

    #[test]
    fn a_signature_that_no_key_could_verify_is_not_an_absent_one() {
        let (good, unknown) = (entry(&json!({ "alg": "EdDSA" }), 64), entry(&json!({ "alg": "ES512" }), 64));
        let none = entry(&json!({ "alg": "none" }), 0);
        assert!(outcome(&json!([good])).is_ok());
        assert!(outcome(&json!([good, unknown])).is_ok(), "another signer may use what we do not know");
        for absent in [json!(null), json!([])] {
            assert!(matches!(outcome(&absent), Err(CardFault::Unsigned)), "{absent}");
        }
        let refused = [
            (json!([7]), "lacks its protected header"),
            (json!([{ "protected": "e30" }]), "lacks its protected header"),
            (json!([{ "protected": "%", "signature": "AA" }]), "not base64url"),
            (json!([{ "protected": "e30", "signature": "AA" }]), "names no algorithm"),
            (json!([none]), "\"none\" is not allowed"),
            (json!([good, none]), "signature 2"),
            (json!([unknown]), "\"ES512\" is not allowed"),
            (json!([entry(&json!({ "alg": "EdDSA" }), 63)]), "63 bytes"),
            (json!([entry(&json!({ "alg": "EdDSA", "crit": ["b64"] }), 64)]), "critical"),
        ];
        for (signatures, word) in refused {
            match outcome(&signatures) {
                Err(CardFault::CardSignatureInvalid(reason)) => assert!(reason.contains(word), "{signatures}: {reason}"),
                other => panic!("{signatures}: {other:?}"),
            }
        }
        assert!(matches!(outcome(&json!({})), Err(CardFault::NotACard(_))));
    }
}
