//! The source of the keys that verify a card: an argument, the signer's published key set, or the card
//! itself.

use std::path::Path;

use chancery::protocol::AgentId;
use chancery_identity::cards::{IDENTITY_EXTENSION, VerifyRules, card_key_urls};
use chancery_identity::{Jwk, Jwks, PublicKey};
use chancery_outbound::{Fetch, TypedUrl};
use serde_json::{Value, json};

use super::super::Failure;
use super::FETCH_WITHIN;

/// More than this is no list of keys.
const MOST_KEY_BYTES: u64 = 256 * 1024;

/// Where a card came from, which decides where its keys may.
pub(super) enum CardSource<'a> {
    /// The node on this machine, which publishes its keys itself.
    Nearby(&'a TypedUrl),
    /// Where it was found, and the address that was typed.
    Web(&'a str, &'a TypedUrl),
    /// A file or a pipe.
    Paper,
}

/// What the signer has to be.
#[derive(Default)]
pub(super) struct Pins {
    pub(super) keys: Option<Jwks>,
    pub(super) agent_id: Option<AgentId>,
}

impl Pins {
    /// The keys in a file: a JWK, a JWKS, or a public key in PEM.
    pub(super) fn read_keys(file: &Path) -> Result<Jwks, Failure> {
        let bad = |fault: &str| Failure::Usage(format!("{} is no public key to verify with: {fault}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|fault| bad(&fault.to_string()))?;
        if text.contains("-----BEGIN") {
            let key = PublicKey::from_pem(&text).map_err(|fault| bad(&fault.to_string()))?;
            return Ok(Jwks { keys: vec![Jwk::of(&key, None)] });
        }
        let set =
            serde_json::from_str::<Jwks>(&text).or_else(|_| serde_json::from_str(&text).map(|key| Jwks { keys: vec![key] }));
        let set = set.map_err(|_| bad("write a JWK, a JWKS, or PEM with PUBLIC KEY"))?;
        if set.keys.iter().any(|key| key.public_key().is_ok()) {
            Ok(set)
        } else {
            Err(bad("only Ed25519 and P-256 keys verify here"))
        }
    }

    pub(super) fn are_set(&self) -> bool {
        self.keys.is_some() || self.agent_id.is_some()
    }
}

/// The key that the card itself gives for an agent: good if the id is that of the key, because only then is it asked for.
pub(super) fn introduced(card: &Value, agent_id: &AgentId) -> Option<Jwk> {
    let extensions = card["capabilities"]["extensions"].as_array()?;
    let params = extensions.iter().find(|one| one["uri"] == IDENTITY_EXTENSION).map(|one| &one["params"])?;
    let encoded = params["pubkey_ed25519"].as_str()?.trim_end_matches('=').replace('+', "-").replace('/', "_");
    let jwk: Jwk = serde_json::from_value(json!({ "kty": "OKP", "crv": "Ed25519", "x": encoded })).ok()?;
    (jwk.public_key().ok()?.agent_id().as_ref() == Some(agent_id)).then_some(jwk)
}

/// The keys from the URLs in the card's signatures, where the rules trust that URL. If it finds no key, it
/// says why.
pub(super) async fn published(text: &str, origin: &CardSource<'_>, rules: &VerifyRules) -> (Vec<Jwks>, Option<String>) {
    let none = |reason: &str| (Vec::new(), Some(reason.to_owned()));
    let read = |text: &[u8]| serde_json::from_slice::<Jwks>(text).map_err(|fault| format!("not a list of keys: {fault}"));
    match origin {
        CardSource::Paper => none("a card from a file names no keys to trust; give --verify-key FILE or --agent-id ID"),
        CardSource::Nearby(node) => {
            match node.fetch_keys(FETCH_WITHIN).await.map_err(|fault| fault.to_string()).and_then(|keys| read(keys.as_bytes())) {
                Ok(set) => (vec![set], None),
                Err(reason) => none(&format!("the node's keys: {reason}")),
            }
        }
        CardSource::Web(_, typed) => {
            let urls = match card_key_urls(text, rules) {
                Ok(urls) if urls.is_empty() => {
                    return none(
                        "its signatures do not say where the keys are, or not at the card's own origin; give --verify-key",
                    );
                }
                Ok(urls) => urls,
                Err(fault) => return none(&fault.to_string()),
            };
            let (mut sets, mut missed) = (Vec::new(), None);
            for url in urls {
                let mut fetch = Fetch::get(url.as_str());
                fetch.most_bytes = Some(MOST_KEY_BYTES);
                let fetched = typed.guard_for(&url).client().fetch(fetch).await.map_err(|fault| fault.to_string());
                let fetched = fetched.and_then(|answer| match answer.status.is_success() {
                    true => read(&answer.body),
                    false => Err(format!("status {}", answer.status)),
                });
                match fetched {
                    Ok(set) => sets.push(set),
                    Err(reason) => missed = Some(format!("the keys at {url} cannot be had: {reason}")),
                }
            }
            (sets, missed)
        }
    }
}
