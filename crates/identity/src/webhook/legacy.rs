//! The signatures of other senders: over the body alone, and over the time and the body.
//!
//! Neither binds a message to its receiver or to an id, so neither tells a copy from the message. They are for receivers that know
//! nothing better.

use std::fmt::Write as _;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::keys::Push;
use crate::{PublicKey, SigningKey};

const PREFIX: &str = "sha256=";

/// `sha256=` and the HMAC-SHA256 of the body in hex.
pub fn body_signature(secret: &[u8], body: &[u8]) -> String {
    written(secret, &[body])
}

pub fn verify_body_signature(secret: &[u8], body: &[u8], signature: &str) -> bool {
    same(&body_signature(secret, body), signature)
}

/// The Ed25519 signature of the body alone in base64, as `rvagent-a2a` writes and checks it. Only of a JSON object: nothing else that
/// the key signs begins with a brace, so no signature passes for another.
pub fn body_signature_ed25519(key: &SigningKey<Push>, body: &[u8]) -> Option<String> {
    let signature = body.starts_with(b"{").then(|| key.sign_bytes(body).ok()).flatten()?;
    Some(STANDARD.encode(signature))
}

pub fn verify_body_signature_ed25519(key: &PublicKey, body: &[u8], signature: &str) -> bool {
    let signature = STANDARD.decode(signature.trim());
    body.starts_with(b"{") && signature.is_ok_and(|signature| key.verify_bytes(body, &signature))
}

/// The same over `SECONDS.BODY`. The key is the text of the secret, with any prefix.
pub fn neuralpost_signature(secret: &str, seconds: i64, body: &[u8]) -> String {
    written(secret.as_bytes(), &[format!("{seconds}.").as_bytes(), body])
}

pub fn verify_neuralpost(secret: &str, seconds: i64, body: &[u8], signature: &str) -> bool {
    same(&neuralpost_signature(secret, seconds, body), signature)
}

fn written(secret: &[u8], parts: &[&[u8]]) -> String {
    let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret));
    parts.iter().for_each(|part| mac.update(part));
    let mut text = PREFIX.to_owned();
    for byte in mac.sign().as_ref() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Hex in either case, as receivers read it.
fn same(expected: &str, found: &str) -> bool {
    verify_slices_are_equal(expected.as_bytes(), found.to_ascii_lowercase().as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn the_body_is_signed_as_everybody_does() {
        let signed = body_signature(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(signed, "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        assert!(verify_body_signature(b"Jefe", b"what do ya want for nothing?", &signed));
        assert!(verify_body_signature(b"Jefe", b"what do ya want for nothing?", &signed.to_uppercase().replace("SHA", "sha")));
        for bad in ["", "sha256=", &signed[..signed.len() - 1], &signed[7..], &signed.replace("5b", "5c")] {
            assert!(!verify_body_signature(b"Jefe", b"what do ya want for nothing?", bad), "{bad}");
        }
        assert!(!verify_body_signature(b"jefe", b"what do ya want for nothing?", &signed));
    }

    #[test]
    fn the_body_alone_is_signed_with_the_key_of_the_node_if_it_is_an_object() {
        let key = SigningKey::<Push>::generate(crate::Algorithm::EdDsa).unwrap();
        let signed = body_signature_ed25519(&key, br#"{"id":"t"}"#).unwrap();
        assert_eq!(STANDARD.decode(&signed).unwrap().len(), 64);
        assert!(verify_body_signature_ed25519(key.public(), br#"{"id":"t"}"#, &signed));
        assert!(!verify_body_signature_ed25519(key.public(), br#"{"id":"u"}"#, &signed));
        let other = SigningKey::<Push>::generate(crate::Algorithm::EdDsa).unwrap();
        assert!(!verify_body_signature_ed25519(other.public(), br#"{"id":"t"}"#, &signed));
        for bad in ["", "AAAA", &signed[1..]] {
            assert!(!verify_body_signature_ed25519(key.public(), br#"{"id":"t"}"#, bad), "{bad}");
        }
        assert_eq!(
            body_signature_ed25519(&key, b"msg_a.1700000000.{}"),
            None,
            "what another format signs is not signed as a body"
        );
    }

    #[test]
    fn the_time_is_signed_with_the_body_and_the_nonce_is_not() {
        let (secret, body) = ("whsec_abc-_", br#"{"jsonrpc":"2.0"}"#);
        let signed = neuralpost_signature(secret, 1_700_000_000, body);
        assert_eq!(signed, body_signature(secret.as_bytes(), br#"1700000000.{"jsonrpc":"2.0"}"#));
        assert!(verify_neuralpost(secret, 1_700_000_000, body, &signed));
        assert!(!verify_neuralpost(secret, 1_700_000_001, body, &signed));
        // What its documentation tells receivers to check is not what is sent.
        let documented = body_signature(secret.as_bytes(), br#"1700000000.4d2f9f1e.{"jsonrpc":"2.0"}"#);
        assert_ne!(documented, signed);
    }
}
