//! An issuer with keys of its own, made when the test runs, that signs whatever it is asked to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use aws_lc_rs::{hmac, rsa};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_identity::credentials::{Issuer, KeySet, KeySetFault, KeySets};
use serde_json::{Value, json};

pub(crate) const ISS: &str = "https://login.example/";
pub(crate) const AUD: &str = "https://node.example";

#[derive(Debug)]
pub(crate) struct TestIssuer {
    ed: Ed25519KeyPair,
    ec: EcdsaKeyPair,
    rsa: RsaKeyPair,
}

impl TestIssuer {
    pub(crate) fn new() -> Self {
        let ec = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let rsa = rsa::KeyPair::generate(rsa::KeySize::Rsa2048).unwrap();
        Self { ed: Ed25519KeyPair::generate().unwrap(), ec, rsa: RsaKeyPair::from_pkcs8(rsa.as_der().unwrap().as_ref()).unwrap() }
    }

    pub(crate) fn ed_public(&self) -> &[u8] {
        self.ed.public_key().as_ref()
    }

    pub(crate) fn jwks(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let ec = self.ec.public_key().as_ref();
        // RSAPublicKey in DER: a header of nine bytes, the modulus, a header of two, the exponent.
        let rsa = self.rsa.public_key().as_ref();
        json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "use": "sig", "x": text(self.ed_public())},
            {"kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256", "x": text(&ec[1..33]), "y": text(&ec[33..])},
            {"kty": "RSA", "kid": "rsa", "key_ops": ["verify"], "n": text(&rsa[9..265]), "e": text(&rsa[267..])},
        ]})
    }

    /// Signs as `alg` says, with the key of that algorithm.
    pub(crate) fn token(&self, header: &Value, claims: &Value) -> String {
        let alg = header["alg"].as_str().unwrap_or_default().to_owned();
        self.token_signed_as(&alg, header, claims)
    }

    /// Signs as `alg` says, whatever the header says.
    pub(crate) fn token_signed_as(&self, alg: &str, header: &Value, claims: &Value) -> String {
        let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", text(header), text(claims));
        let random = SystemRandom::new();
        let signature = match alg {
            "ES256" => self.ec.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            "RS256" => {
                let mut signature = vec![0; 256];
                self.rsa.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).unwrap();
                signature
            }
            "HS256" => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, self.ed_public()), message.as_bytes()).as_ref().to_vec(),
            "none" => Vec::new(),
            _ => self.ed.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Serves the key set it holds, and counts how often it was asked, and asked anew.
#[derive(Debug)]
pub(crate) struct Served {
    jwks: Mutex<Result<Value, KeySetFault>>,
    /// What a refresh finds.
    next: Mutex<Option<Value>>,
    pub asked: AtomicUsize,
    pub refreshed: AtomicUsize,
}

impl Served {
    pub(crate) fn new(jwks: Value) -> Arc<Self> {
        Arc::new(Self { jwks: Mutex::new(Ok(jwks)), next: Mutex::default(), asked: 0.into(), refreshed: 0.into() })
    }

    pub(crate) fn unreachable() -> Arc<Self> {
        let served = Self::new(Value::Null);
        *served.jwks.lock().unwrap() = Err(KeySetFault::Unreachable("no route".to_owned()));
        served
    }

    pub(crate) fn publish(&self, jwks: Value) {
        *self.next.lock().unwrap() = Some(jwks);
    }
}

#[async_trait]
impl KeySets for Served {
    async fn key_set(&self, _: &Issuer, refresh: bool) -> Result<Arc<KeySet>, KeySetFault> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if refresh {
            self.refreshed.fetch_add(1, Ordering::Relaxed);
            if let Some(next) = self.next.lock().unwrap().take() {
                *self.jwks.lock().unwrap() = Ok(next);
            }
        }
        let jwks = self.jwks.lock().unwrap().clone()?;
        KeySet::parse(jwks.to_string().as_bytes()).map(Arc::new)
    }
}
