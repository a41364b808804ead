//! A caller with a credential of each kind, the check that knows them, and a send to compare the check with.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, anyhow, ensure};
use arc_swap::ArcSwap;
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery::protocol::Timestamp;
use chancery::{Node, async_trait, new_card};
use chancery_identity::agent_id_from_pubkey;
use chancery_identity::credentials::{
    Authenticator, Authority, CallerRecord, Callers, Checks, Issuer, Issuers, KeySet, KeySetFault, KeySets, RequestFacts,
    SignatureRules, TokenSubject, UnsignedRequest, fresh_nonce, sign_request,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tower::ServiceExt as _;

use crate::parrot::Parrot;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    ApiKey,
    /// A token that was seen before.
    KnownToken,
    /// A token that comes for the first time.
    NewToken,
    Certificate,
    Signature,
}

impl Credential {
    /// What it may cost, as a share of a send. Those with a public-key signature or a certificate to read in them are
    /// shown for the reader.
    pub(crate) fn at_most(self) -> Option<f64> {
        matches!(self, Self::ApiKey | Self::KnownToken).then_some(0.15)
    }
}

const PATH: &str = "/";
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}}"#;
const ISSUER: &str = "https://issuer.example.org";
const AUDIENCE: &str = "bench";
/// Any time will do, as long as it is the same for all.
const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
const AUTHORITY: &str = "https://node.example.org";

/// What one request presents.
#[derive(Debug)]
pub(crate) struct Presents {
    headers: HeaderMap,
    certificate: Option<Arc<[u8]>>,
}

pub(crate) struct Wallet {
    authenticator: Authenticator,
    now: Timestamp,
    key: SecretString,
    token_key: jsonwebtoken::EncodingKey,
    tokens: AtomicU64,
    certificate: Arc<[u8]>,
    agent: Ed25519KeyPair,
    authority: Authority,
}

impl fmt::Debug for Wallet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wallet(…)")
    }
}

/// The issuer's keys, without a network.
#[derive(Debug)]
struct AtHand(Arc<KeySet>);

#[async_trait]
impl KeySets for AtHand {
    async fn key_set(&self, _: &Issuer, _: bool) -> Result<Arc<KeySet>, KeySetFault> {
        Ok(Arc::clone(&self.0))
    }
}

impl Wallet {
    pub(crate) fn new() -> Result<Self> {
        let made = |_| anyhow!("no key could be made");
        let (agent, issuer) = (Ed25519KeyPair::generate().map_err(made)?, Ed25519KeyPair::generate().map_err(made)?);
        let public: [u8; 32] = agent.public_key().as_ref().try_into()?;
        let now = NOW;
        let certified = rcgen::generate_simple_self_signed(vec!["caller.example.org".to_owned()])?;

        let mut by_key = CallerRecord::new("by-key");
        let key = by_key.rotate(now, CallerRecord::OVERLAP)?;
        let mut by_token = CallerRecord::new("by-token");
        by_token.tokens.push(TokenSubject { issuer: "bench".to_owned(), subject: "caller".to_owned() });
        let mut by_certificate = CallerRecord::new("by-certificate");
        by_certificate.certificates.push("dns:caller.example.org".parse().map_err(|fault| anyhow!("{fault}"))?);
        let mut by_signature = CallerRecord::new("by-signature");
        by_signature.agent_ids.push(agent_id_from_pubkey(&public));
        let callers =
            Callers::new(vec![by_key, by_token, by_certificate, by_signature]).map_err(|faults| anyhow!("{faults:?}"))?;

        let x = URL_SAFE_NO_PAD.encode(issuer.public_key().as_ref());
        let jwks = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "k", "use": "sig", "x": x }] });
        let authority: Authority = AUTHORITY.parse().map_err(|fault| anyhow!("{fault}"))?;
        let mut rules = SignatureRules::new(vec![authority.clone()]).map_err(|fault| anyhow!("{fault}"))?;
        rules.most_nonces = 10_000_000;
        let mut checks = Checks::new(Arc::new(ArcSwap::from_pointee(callers)));
        checks.issuers = Issuers::new(vec![Issuer::new("bench", ISSUER, AUDIENCE)]).map_err(|faults| anyhow!("{faults:?}"))?;
        checks.key_sets = Arc::new(AtHand(Arc::new(KeySet::parse(jwks.to_string().as_bytes())?)));
        checks.signatures = Some(rules);
        checks.client_certificates = true;
        let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = issuer.as_der().map_err(made)?;
        Ok(Self {
            authenticator: Authenticator::new(checks),
            now,
            key,
            token_key: jsonwebtoken::EncodingKey::from_ed_der(der.as_ref()),
            tokens: AtomicU64::new(0),
            certificate: certified.cert.der().as_ref().into(),
            agent,
            authority,
        })
    }

    /// As many requests of a kind as are asked for, each ready to be checked.
    pub(crate) fn requests(&self, kind: Credential, count: usize) -> Result<Vec<Presents>> {
        let one_token = (kind == Credential::KnownToken).then(|| self.token(0)).transpose()?;
        let request = |_| {
            let mut headers = HeaderMap::new();
            let mut certificate = None;
            match (kind, &one_token) {
                (Credential::ApiKey, _) => {
                    headers.insert("x-api-key", HeaderValue::from_str(self.key.expose_secret())?);
                }
                (_, Some(token)) => {
                    headers.insert(header::AUTHORIZATION, HeaderValue::from_str(token)?);
                }
                (Credential::KnownToken | Credential::NewToken, None) => {
                    let token = self.token(1 + self.tokens.fetch_add(1, Ordering::Relaxed))?;
                    headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&token)?);
                }
                (Credential::Certificate, _) => certificate = Some(Arc::clone(&self.certificate)),
                (Credential::Signature, _) => self.sign(&mut headers)?,
            }
            Ok(Presents { headers, certificate })
        };
        (0..count).map(request).collect()
    }

    fn token(&self, number: u64) -> Result<String> {
        let seconds = self.now.micros() / 1_000_000;
        let claims = json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": "caller", "iat": seconds, "exp": seconds + 3_600, "jti": number,
        });
        let mut header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::EdDSA);
        header.kid = Some("k".to_owned());
        Ok(format!("Bearer {}", jsonwebtoken::encode(&header, &claims, &self.token_key)?))
    }

    fn sign(&self, headers: &mut HeaderMap) -> Result<()> {
        let public: [u8; 32] = self.agent.public_key().as_ref().try_into()?;
        let request =
            UnsignedRequest { method: &Method::POST, authority: &self.authority, path_and_query: PATH, body: BODY.as_bytes() };
        let sign = |message: &[u8]| {
            let mut bytes = [0; 64];
            bytes.copy_from_slice(self.agent.sign(message).as_ref());
            bytes
        };
        sign_request(&public, sign, request, self.now, &fresh_nonce()?)?.add_to(headers);
        Ok(())
    }

    /// What a door does with a request before it lets it in.
    pub(crate) async fn check(&self, request: &Presents) -> Result<()> {
        let presented = self.authenticator.present(&request.headers, request.certificate.as_deref());
        let presented = presented.map_err(|refusal| anyhow!("{refusal:?}"))?;
        let facts = RequestFacts {
            method: &Method::POST,
            path_and_query: PATH,
            headers: &request.headers,
            body: BODY.as_bytes(),
            meant_for: None,
        };
        let known = self.authenticator.check(&presented, &facts, self.now).await;
        known.map(|known| drop(std::hint::black_box(known))).map_err(|refusal| anyhow!("{refusal:?}"))
    }
}

/// A blocking send through the router of a node in this process, with no socket between.
#[derive(Debug)]
pub(crate) struct Sender(Router);

impl Sender {
    pub(crate) async fn new() -> Result<Self> {
        let card = new_card("Parrot", "Says what it was told.");
        let mut config = chancery::Config::default();
        config.limits.inbound.calls_per_second_per_caller = 0;
        let node = Node::builder().agent("parrot", card, Parrot).config(config).memory().build().await?;
        Ok(Self(node.router()))
    }

    pub(crate) async fn send(&self) -> Result<()> {
        let request =
            Request::post(PATH).header("content-type", "application/json").header("a2a-version", "1.0").body(Body::from(BODY))?;
        let response = self.0.clone().oneshot(request).await?;
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await?;
        ensure!(memchr::memmem::find(&body, b"TASK_STATE_COMPLETED").is_some(), "the send was not completed");
        Ok(())
    }
}
