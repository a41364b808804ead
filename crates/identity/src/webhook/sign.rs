//! Makes the signatures of one attempt.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::secret::HmacSecret;
use crate::keys::{Algorithm, KeyFault, Push, PushFault, SigningKey};

/// The value of the signature header: one `v1` for each secret, then one `v1a` for each Ed25519 key. None without any of them.
/// Attempts are signed with the keys of their own time, so a retry may carry others than the attempt before it.
pub fn sign<'a>(
    id: &str,
    seconds: i64,
    body: &[u8],
    secrets: impl IntoIterator<Item = &'a HmacSecret>,
    keys: impl IntoIterator<Item = &'a SigningKey<Push>>,
) -> Result<Option<String>, PushFault> {
    if !is_an_id(id) {
        return Err(PushFault::Id);
    }
    let mut signatures = Vec::new();
    for secret in secrets {
        signatures.push(format!("v1,{}", STANDARD.encode(secret.tag(id, seconds, body))));
    }
    for key in keys {
        if key.algorithm() != Algorithm::EdDsa {
            return Err(KeyFault::OtherAlgorithm { wanted: Algorithm::EdDsa, found: key.algorithm() }.into());
        }
        signatures.push(format!("v1a,{}", STANDARD.encode(key.sign_push(id, seconds, body)?)));
    }
    Ok((!signatures.is_empty()).then(|| signatures.join(" ")))
}

/// No dot, or the parts of what is signed could be shifted against each other; see [`PushFault::Id`].
pub(super) fn is_an_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::super::secret::signing_key_from_whsk;
    use super::*;

    /// Published by the authors of Standard Webhooks.
    #[test]
    fn the_published_signatures_come_out() {
        let secret = HmacSecret::parse("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
        let body = br#"{"email":"test@example.com","username":"test_user"}"#;
        let signed = sign("msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1_649_367_553, body, [&secret], []).unwrap();
        assert_eq!(signed.unwrap(), "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=");

        let secret = HmacSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let (id, seconds, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        let signed = sign(id, seconds, body, [&secret], []).unwrap();
        assert_eq!(signed.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");

        let pair = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";
        let key = signing_key_from_whsk(pair).unwrap();
        let signed = sign(id, seconds, body, [&secret], [&key]).unwrap();
        assert_eq!(
            signed.unwrap(),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= \
             v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
        );
    }

    #[test]
    fn nothing_is_signed_under_an_id_with_a_dot_or_with_a_key_receivers_cannot_use() {
        let secret = HmacSecret::generate().unwrap();
        for id in ["", "a.b", "a b", "ä"] {
            assert_eq!(sign(id, 1, b"", [&secret], []), Err(PushFault::Id), "{id}");
        }
        let other = SigningKey::<Push>::generate(Algorithm::Es256).unwrap();
        assert!(matches!(sign("a", 1, b"", [], [&other]), Err(PushFault::Key(KeyFault::OtherAlgorithm { .. }))));
        assert_eq!(sign("a", 1, b"", [], []), Ok(None));
    }
}
