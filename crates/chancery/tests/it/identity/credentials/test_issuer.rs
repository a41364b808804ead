//! An issuer of tokens with keys of its own, and a small server on the loopback that publishes them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::seconds_from_now;

pub(crate) const ISS: &str = "https://login.acme.example";
pub(crate) const AUD: &str = "https://node.example";

pub(crate) struct TestIssuer {
    ed: Ed25519KeyPair,
    ec: EcdsaKeyPair,
    address: SocketAddr,
    /// What it answers when it is asked for its keys.
    page: Arc<Mutex<String>>,
    fetches: Arc<AtomicUsize>,
}

impl TestIssuer {
    /// Must be called in a runtime, which also runs its server.
    pub(crate) async fn start() -> Self {
        let ed = Ed25519KeyPair::generate().expect("a key");
        let ec = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let issuer = Self { ed, ec, address, page: Arc::default(), fetches: Arc::default() };
        issuer.publish(&issuer.keys());
        let json = [(reqwest::header::CONTENT_TYPE, "application/json")];
        let (page, fetches) = (Arc::clone(&issuer.page), Arc::clone(&issuer.fetches));
        let answer = move || {
            fetches.fetch_add(1, Ordering::SeqCst);
            let keys = page.lock().expect("no test panics inside").clone();
            async move { (json, keys) }
        };
        let app = axum::Router::new().route("/keys", axum::routing::get(answer));
        tokio::spawn(async move { axum::serve(listener, app).await });
        issuer
    }

    /// Answers with this key set from now on.
    pub(crate) fn publish(&self, keys: &Value) {
        *self.page.lock().expect("no test panics inside") = keys.to_string();
    }

    /// How often it was asked for its keys.
    pub(crate) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    fn keys(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (ed, ec) = (self.ed.public_key().as_ref(), self.ec.public_key().as_ref());
        json!({ "keys": [
            { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "use": "sig", "x": text(ed) },
            { "kty": "EC", "crv": "P-256", "kid": "ec", "use": "sig", "x": text(&ec[1..33]), "y": text(&ec[33..]) },
        ] })
    }

    /// What a node has to be told: the issuer, by the name `acme`, and that its keys may be fetched from the loopback.
    pub(crate) fn config(&self, more: &str) -> String {
        let address = self.address;
        format!(
            "[outbound]\nallow_nets = ['127.0.0.1/32']\nallow_http = true\n[issuers.acme]\nissuer = '{ISS}'\naudience = '{AUD}'\n\
             jwks_url = 'http://{address}/keys'\nalgorithms = ['EdDSA']\nleeway_s = 300\n{more}\n"
        )
    }

    /// For an hour, for this node, by the key it should be signed with.
    pub(crate) fn claims(subject: &str) -> Value {
        json!({ "iss": ISS, "aud": AUD, "sub": subject, "iat": seconds_from_now(-5), "exp": seconds_from_now(3600) })
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        self.signed(&json!({ "alg": "EdDSA", "kid": "ed", "typ": "JWT" }), claims)
    }

    /// Signed as the header says, with whatever key that takes.
    pub(crate) fn signed(&self, header: &Value, claims: &Value) -> String {
        let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", text(header), text(claims));
        let bytes = message.as_bytes();
        let signature = match header["alg"].as_str().unwrap_or_default() {
            "ES256" => self.ec.sign(&SystemRandom::new(), bytes).expect("a signature").as_ref().to_vec(),
            // The classic confusion: the public key as the secret.
            "HS256" => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, self.ed.public_key().as_ref());
                hmac::sign(&key, bytes).as_ref().to_vec()
            }
            "none" => Vec::new(),
            _ => self.ed.sign(bytes).as_ref().to_vec(),
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
