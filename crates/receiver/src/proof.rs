//! What a sender has to show: signatures, tokens, credentials. Everything that was agreed on, not any of it.

use chancery_identity::SealKey;
use chancery_identity::webhook::{
    Scheme, TOLERANCE, TokenFor, VerifiedWebhook, Verifier, VerifyFault, verify_body_signature, verify_neuralpost,
};
use chancery_protocol::Timestamp;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use secrecy::{ExposeSecret as _, SecretString};

use crate::refusal::NotificationRefusal;

/// There is no agreement on one name, so senders use either.
const TOKEN_HEADERS: [&str; 2] = ["x-a2a-notification-token", "a2a-notification-token"];
const BODY_SIGNATURE: &str = "x-a2a-signature";
const NEURALPOST_SIGNATURE: &str = "x-neuralpost-signature";
const NEURALPOST_TIMESTAMP: &str = "x-neuralpost-timestamp";

/// What was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderProof {
    /// A signature of Standard Webhooks.
    Signature(Scheme),
    /// The token of the registration.
    Token,
    /// The credentials of the `Authorization` header.
    Credentials,
    /// A JWT of the sender.
    Jwt,
    /// A signature over the body alone.
    BodySignature,
    /// A signature in the form of NeuralPost.
    NeuralPost,
}

/// What was agreed on with the sender. Of what is there, everything must be shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demands {
    pub(crate) verifier: Verifier,
    pub(crate) signature: bool,
    pub(crate) token: Option<SecretString>,
    pub(crate) credentials: Option<(String, SecretString)>,
    pub(crate) jwt: Option<JwtDemand>,
    pub(crate) body_secret: Option<SecretString>,
    pub(crate) neuralpost: Option<SecretString>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct JwtDemand {
    pub(crate) issuer: Option<String>,
    /// Our URLs without their queries.
    pub(crate) audiences: Vec<String>,
}

/// What is known of a message whose sender has shown everything.
#[derive(Debug, Default)]
pub(crate) struct VerifiedSender {
    pub(crate) proofs: Vec<SenderProof>,
    pub(crate) verified: Option<VerifiedWebhook>,
}

impl Demands {
    pub(crate) fn is_empty(&self) -> bool {
        let others = [&self.token, &self.body_secret, &self.neuralpost];
        !self.signature && self.credentials.is_none() && self.jwt.is_none() && others.iter().all(|one| one.is_none())
    }

    pub(crate) fn check(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<VerifiedSender, NotificationRefusal> {
        let mut shown = VerifiedSender::default();
        if let Some(token) = &self.token {
            if !has_token(headers, token) {
                return Err(NotificationRefusal::Token);
            }
            shown.proofs.push(SenderProof::Token);
        }
        if let Some((scheme, credentials)) = &self.credentials {
            let found = authorization(headers).filter(|(found, _)| found.eq_ignore_ascii_case(scheme));
            if !found.is_some_and(|(_, found)| SealKey::same_secret(found.as_bytes(), credentials.expose_secret().as_bytes())) {
                return Err(NotificationRefusal::Credentials);
            }
            shown.proofs.push(SenderProof::Credentials);
        }
        if self.signature {
            let verified = self.verifier.verify(headers, body, now)?;
            shown.proofs.push(SenderProof::Signature(verified.scheme));
            shown.verified = Some(verified);
        }
        if let Some(demand) = &self.jwt {
            self.check_jwt(demand, headers, shown.verified.as_ref(), body, now)?;
            shown.proofs.push(SenderProof::Jwt);
        }
        if let Some(secret) = &self.body_secret {
            let signature = text(headers, BODY_SIGNATURE).ok_or(NotificationRefusal::BodySignature)?;
            if !verify_body_signature(secret.expose_secret().as_bytes(), body, signature) {
                return Err(NotificationRefusal::BodySignature);
            }
            shown.proofs.push(SenderProof::BodySignature);
        }
        if let Some(secret) = &self.neuralpost {
            check_neuralpost(secret, headers, body, now)?;
            shown.proofs.push(SenderProof::NeuralPost);
        }
        Ok(shown)
    }

    fn check_jwt(
        &self,
        demand: &JwtDemand,
        headers: &HeaderMap,
        verified: Option<&VerifiedWebhook>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), NotificationRefusal> {
        let (_, token) = authorization(headers)
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"))
            .ok_or(NotificationRefusal::Credentials)?;
        let mut fault = NotificationRefusal::Credentials;
        for audience in &demand.audiences {
            let id = verified.map(|verified| verified.id.as_str());
            let expected = TokenFor { audience, issuer: demand.issuer.as_deref(), id, body };
            match self.verifier.push_keys().verify_jwt(token, &expected, now) {
                Ok(_) => return Ok(()),
                Err(found) => fault = found.into(),
            }
        }
        Err(fault)
    }
}

/// Under either name; under both if both are there.
fn has_token(headers: &HeaderMap, token: &SecretString) -> bool {
    let found: Vec<_> = TOKEN_HEADERS.iter().flat_map(|name| headers.get_all(*name)).collect();
    let same = |value: &&http::HeaderValue| SealKey::same_secret(value.as_bytes(), token.expose_secret().as_bytes());
    !found.is_empty() && found.iter().all(same)
}

fn check_neuralpost(secret: &SecretString, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<(), NotificationRefusal> {
    let signature = text(headers, NEURALPOST_SIGNATURE).ok_or(NotificationRefusal::BodySignature)?;
    let seconds = text(headers, NEURALPOST_TIMESTAMP)
        .and_then(|text| text.parse::<i64>().ok())
        .ok_or(NotificationRefusal::BodySignature)?;
    if !verify_neuralpost(secret.expose_secret(), seconds, body, signature) {
        return Err(NotificationRefusal::BodySignature);
    }
    let age = now.micros().div_euclid(1_000_000).saturating_sub(seconds);
    match age.unsigned_abs() {
        apart if apart <= TOLERANCE.as_secs() => Ok(()),
        apart if age > 0 => Err(VerifyFault::TooOld { seconds: apart }.into()),
        apart => Err(VerifyFault::TooNew { seconds: apart }.into()),
    }
}

fn authorization(headers: &HeaderMap) -> Option<(&str, &str)> {
    text(headers, AUTHORIZATION.as_str())?.split_once(' ').map(|(scheme, rest)| (scheme, rest.trim_start()))
}

/// A header that is there once.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}
