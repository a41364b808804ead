//! What a caller shows of itself to a server, and which servers it believes to be what they say.

use std::fmt;
use std::sync::Arc;

use chancery_identity::SigningKey;
use chancery_identity::credentials::{Authority, UnsignedRequest, fresh_nonce};
use chancery_identity::keys::Cards;
use chancery_protocol::Timestamp;
use http::{HeaderMap, HeaderValue, Method};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use crate::client::AgentCredentials;
use crate::error::CallError;

/// The default shows nothing, and believes what the system believes.
#[derive(Clone, Debug, Default)]
pub struct ConnectionTerms {
    /// A key or a token.
    pub secret: Option<SecretString>,
    /// Signs every call.
    pub signer: Option<RequestSigner>,
    /// The client certificate.
    pub certificate: Option<ClientCertificate>,
    /// The trusted roots.
    pub trust: TrustedRoots,
}

/// Whose certificates are believed.
#[derive(Clone, Debug, Default)]
pub enum TrustedRoots {
    #[default]
    System,
    /// The system's roots and these.
    Also(Vec<CertificateDer<'static>>),
    /// One certificate, by its SHA-256, with any issuer and any names: the operator pinned it.
    Exactly([u8; 32]),
}

/// A certificate of the caller's own.
#[derive(Clone)]
pub struct ClientCertificate {
    /// The caller's certificate first, then those that lead to its root.
    pub chain: Vec<CertificateDer<'static>>,
    /// The private key.
    pub key: Arc<PrivateKeyDer<'static>>,
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}

/// An agent's own key, and the clock its signatures are dated by.
#[derive(Clone)]
pub struct RequestSigner {
    key: SigningKey<Cards>,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl RequestSigner {
    /// Makes a signer with the key of an agent and a clock.
    pub fn new(key: SigningKey<Cards>, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { key, now: Arc::new(now) }
    }

    /// Adds a signature to the headers of one request. It is made for each request: a signature is valid
    /// once.
    pub(crate) fn sign(&self, method: &Method, url: &Url, body: &[u8], headers: &mut HeaderMap) -> Result<(), String> {
        let authority: Authority = url.origin().ascii_serialization().parse().map_err(str::to_owned)?;
        let path_and_query = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let request = UnsignedRequest { method, authority: &authority, path_and_query: &path_and_query, body };
        let nonce = fresh_nonce().map_err(|fault| fault.to_string())?;
        let signed = self.key.sign_request(request, (self.now)(), &nonce).map_err(|fault| fault.to_string())?;
        signed.add_to(headers);
        Ok(())
    }
}

impl fmt::Debug for RequestSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestSigner").field(&self.key).finish()
    }
}

impl ConnectionTerms {
    /// Whether anything is shown with a call, so that a server that says no says no to this.
    pub fn shows_something(&self) -> bool {
        self.secret.is_some() || self.signer.is_some() || self.certificate.is_some()
    }

    /// Whether a call carries something that only the server it is meant for may read or use.
    pub fn is_for_one_host(&self) -> bool {
        self.secret.is_some() || self.signer.is_some()
    }

    /// What goes into the headers of a call: a token as a bearer's, a key as a key.
    pub fn credentials(&self) -> Result<AgentCredentials, CallError> {
        let Some(secret) = &self.secret else { return Ok(AgentCredentials::None) };
        let text = secret.expose_secret();
        if HeaderValue::try_from(text).is_err() {
            // Never with its text: it is a secret.
            return Err(CallError::Credentials { reason: "the key has characters that no header can carry".to_owned() });
        }
        Ok(if is_token(text) { AgentCredentials::bearer(text) } else { AgentCredentials::api_key(text) })
    }
}

/// Three parts with dots between, the first a JSON object in base64url. Tokens are accepted only as a bearer's.
fn is_token(secret: &str) -> bool {
    secret.starts_with("eyJ") && secret.split('.').count() == 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_identity::Algorithm;
    use chancery_identity::credentials::API_KEY_HEADER;
    use http::header::AUTHORIZATION;

    fn with_secret(secret: &str) -> ConnectionTerms {
        ConnectionTerms { secret: Some(secret.into()), ..ConnectionTerms::default() }
    }

    #[test]
    fn a_key_goes_as_a_key_and_a_token_as_a_bearers() {
        let headers = |secret: &str| {
            let mut headers = HeaderMap::new();
            assert!(with_secret(secret).credentials().unwrap().write(&mut headers));
            headers
        };
        assert_eq!(headers("chk_0123456789abcdef")[API_KEY_HEADER], "chk_0123456789abcdef");
        assert_eq!(headers("eyJhbGciOiJFZERTQSJ9.e30.c2ln")[AUTHORIZATION], "Bearer eyJhbGciOiJFZERTQSJ9.e30.c2ln");
        assert!(headers("chk_a.b.c").get(AUTHORIZATION).is_none());
    }

    #[test]
    fn a_secret_is_shown_by_nothing_that_can_be_printed() {
        let terms = with_secret("line\nbreak-secret");
        let fault = terms.credentials().unwrap_err();
        assert!(!format!("{terms:?} {fault:?} {fault}").contains("break-secret"));
        let terms = with_secret("chk_0123456789abcdef");
        assert!(!format!("{terms:?} {:?}", terms.credentials().unwrap()).contains("0123456789abcdef"));
    }

    #[test]
    fn every_call_is_signed_anew_and_only_by_an_agents_key() {
        let url = Url::parse("https://h.example:8443/agents/a?x=1").unwrap();
        let signer =
            |algorithm| RequestSigner::new(SigningKey::generate(algorithm).unwrap(), || Timestamp::from_micros(7_000_000));
        let sign = |signer: &RequestSigner| {
            let mut headers = HeaderMap::new();
            signer.sign(&Method::POST, &url, b"{}", &mut headers).map(|()| headers)
        };
        let own = signer(Algorithm::EdDsa);
        let (first, second) = (sign(&own).unwrap(), sign(&own).unwrap());
        assert!(first["signature-input"].to_str().unwrap().contains("created=7"), "{first:?}");
        assert_eq!(first["content-digest"], second["content-digest"]);
        assert_ne!(first["signature"], second["signature"]);
        assert!(sign(&signer(Algorithm::Es256)).is_err());
    }
}
