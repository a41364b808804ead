//! Requests signed by an agent's own key (RFC 9421), which prove its agent id.

mod authority;
mod base;
mod dictionary;
mod nonces;
mod sign;
mod structured;
mod verify;

pub use authority::Authority;
pub use nonces::{NONCE_KEY_BYTES, NonceBook, NonceDenied, NonceMemory, NonceUse, is_crowded, share_of_key};
pub use sign::{SignFault, SignedHeaders, UnsignedRequest, fresh_nonce, sign_request};
pub use verify::SignatureRules;
pub(super) use verify::{Signatures, SignedRequest};

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::HeaderName;

use crate::SealKey;

const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
const ALGORITHM: &str = "ed25519";
/// Marks the signature that is meant for us where a request has several.
const TAG: &str = "chancery";

/// The value of `Content-Digest` (RFC 9530) for a body.
pub fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(SealKey::digest(body)))
}

fn verifies(public_key: &[u8; 32], base: &str, signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ED25519, public_key).verify(base.as_bytes(), signature).is_ok()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use http::HeaderMap;

    use super::base::{SignedTarget, signature_base};
    use super::dictionary::dictionary;
    use super::structured::{Bare, DictionaryMember, Item};
    use super::*;

    /// RFC 9421 B.1.4 and B.2.6.
    #[test]
    fn the_ed25519_example_of_the_rfc_gives_its_base_and_verifies() {
        let mut headers = HeaderMap::new();
        headers.insert("date", "Tue, 20 Apr 2021 02:07:55 GMT".parse().unwrap());
        headers.insert("content-type", "application/json".parse().unwrap());
        headers.insert("content-length", "18".parse().unwrap());
        let input = r#"sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519""#;
        let signature = "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:";
        let Some((_, DictionaryMember::List(list))) = dictionary(input).unwrap().pop() else { panic!("a list") };
        let Some((_, DictionaryMember::Item(Item { value: Bare::Bytes(signature), .. }))) = dictionary(signature).unwrap().pop()
        else {
            panic!("bytes")
        };
        let target = SignedTarget {
            method: "POST",
            scheme: "https",
            authority: "example.com",
            path_and_query: "/foo?param=Value&Pet=dog",
        };
        let base = signature_base(&list, target, &headers).unwrap();
        let lines = [
            r#""date": Tue, 20 Apr 2021 02:07:55 GMT"#,
            r#""@method": POST"#,
            r#""@path": /foo"#,
            r#""@authority": example.com"#,
            r#""content-type": application/json"#,
            r#""content-length": 18"#,
            r#""@signature-params": ("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519""#,
        ];
        assert_eq!(base, lines.join("\n"));
        let key: [u8; 32] = URL_SAFE_NO_PAD.decode("JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs").unwrap().try_into().unwrap();
        assert!(verifies(&key, &base, &signature));
        assert!(!verifies(&key, &base.replace("/foo", "/fop"), &signature));
        // The same key makes the same signature.
        let seed = URL_SAFE_NO_PAD.decode("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU").unwrap();
        let pair = aws_lc_rs::signature::Ed25519KeyPair::from_seed_and_public_key(&seed, &key).unwrap();
        assert_eq!(pair.sign(base.as_bytes()).as_ref(), signature);
    }

    #[test]
    fn the_digest_of_a_body_is_the_one_of_rfc_9530() {
        assert_eq!(content_digest(b"{\"hello\": \"world\"}\n"), "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:");
    }
}
