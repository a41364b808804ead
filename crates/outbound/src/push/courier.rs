//! The courier: writes, signs and sends one notification once, through the guarded way out.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use bytes::Bytes;
use chancery_core::notify::{AttemptAnswer, Courier, DeliveryOutcome, FailClass, Letter, Try, WebhookDelivery};
use chancery_core::push::{OpenSecrets, PushProfile, Registration};
use chancery_identity::KeyRing;
use chancery_identity::webhook::{
    ID_HEADER, PushClaims, SIGNATURE_HEADER, SecretSet, TIMESTAMP_HEADER, body_signature, body_signature_ed25519, mint_push_jwt,
    neuralpost_signature, sign,
};
use http::HeaderName;
use secrecy::ExposeSecret as _;

use super::config::{CourierConfig, OriginRules};
use super::headers::{Headers, Unsendable, Use, scheme_of, signs_body};
use super::keys::{OriginSecrets, OwnKeys, Shared};
use super::{letter, outcome};
use crate::guard::{Fetch, Guard, GuardedClient};

#[derive(Debug)]
pub struct HttpCourier {
    /// Replaced when the operator changes what everything that goes out obeys.
    client: ArcSwap<GuardedClient>,
    config: CourierConfig,
    origins: Arc<HashMap<String, OriginRules>>,
    secrets: OriginSecrets,
    keys: OwnKeys,
    /// Who signs tokens, as receivers know us.
    issuer: String,
    /// What goes beside the trace of every notification.
    tracestate: OnceLock<String>,
}

impl HttpCourier {
    /// `guard` with the rules of [`CourierConfig::guard`].
    pub fn new(
        guard: Guard,
        config: CourierConfig,
        origins: Arc<HashMap<String, OriginRules>>,
        secrets: OriginSecrets,
        issuer: String,
    ) -> Self {
        let client = ArcSwap::from_pointee(guard.client());
        Self { client, config, origins, secrets, keys: OwnKeys::default(), issuer, tracestate: OnceLock::new() }
    }

    /// Attempts from now on go out through this guard.
    pub fn take_guard(&self, guard: &Guard) {
        self.client.store(Arc::new(guard.client()));
    }

    /// The guard that attempts go out through.
    pub fn guard(&self) -> Guard {
        self.client.load().guard().clone()
    }

    /// Notifications go out with this `tracestate`. The first one given stays.
    pub fn mark_traces(&self, tracestate: String) {
        let _ = self.tracestate.set(tracestate);
    }

    /// Attempts from now on are signed with these.
    pub fn take_keys(&self, ring: &KeyRing) {
        self.keys.take(ring);
    }

    /// Attempts from now on are signed with what operators agreed with origins.
    pub fn agree(&self, agreed: HashMap<String, SecretSet>) {
        self.secrets.agree(agreed);
    }

    fn headers(
        &self,
        registration: &Registration,
        secrets: &OpenSecrets,
        letter: &Letter,
        how: Try,
    ) -> Result<Headers, Unsendable> {
        let seconds = how.now.micros().div_euclid(1_000_000);
        let mut headers = Headers::of(letter, registration, how, self.tracestate.get().map(String::as_str))?;
        headers.token(secrets)?;
        let mut shared: Vec<Shared> = self.secrets.of(&registration.origin, how.now);
        match scheme_of(registration, secrets) {
            Use::Nothing => {}
            Use::Show { scheme, credentials } => headers.authorization(scheme, credentials)?,
            Use::Sign { secret } => {
                let own = Shared::parse(secret).map_err(|_| Unsendable("its secret is no whsec_ secret"))?;
                shared.insert(0, own);
            }
            Use::Mint => {
                let key = self.keys.at(how.now).ok_or(Unsendable("there is no key to sign a token with"))?;
                let audience = registration.url.split(['?', '#']).next().unwrap_or_default();
                let task = registration.task.as_str();
                let claims = PushClaims::new(&self.issuer, audience, &letter.webhook_id, task, &letter.body, how.now);
                let token = mint_push_jwt(&key, &claims).map_err(|_| Unsendable("its token cannot be signed"))?;
                headers.authorization("Bearer", &token)?;
            }
        }
        headers.put(HeaderName::from_static(ID_HEADER), &letter.webhook_id)?;
        headers.put(HeaderName::from_static(TIMESTAMP_HEADER), &seconds.to_string())?;
        let key = if self.config.ed25519 { self.keys.at(how.now) } else { None };
        let signature = sign(&letter.webhook_id, seconds, &letter.body, shared.iter().map(|one| &one.secret), key.as_ref())
            .map_err(|_| Unsendable("it cannot be signed"))?;
        if let Some(signature) = signature {
            headers.put(HeaderName::from_static(SIGNATURE_HEADER), &signature)?;
        }
        let token = secrets.token.as_ref();
        if let Some(token) = token.filter(|_| signs_body(registration, self.config.body_hmac)) {
            headers.put(HeaderName::from_static("x-a2a-signature"), &body_signature(token.expose(), &letter.body))?;
        }
        if let Some(key) = key.filter(|_| registration.profile == PushProfile::Original) {
            let signature = body_signature_ed25519(&key, &letter.body).ok_or(Unsendable("its body cannot be signed"))?;
            headers.put(HeaderName::from_static("x-a2a-signature-ed25519"), &signature)?;
        }
        if registration.profile == PushProfile::NeuralPost {
            let text = shared.first().map(|one| one.text.expose_secret()).or(token.and_then(|token| token.expose_text()));
            headers.put(HeaderName::from_static("x-neuralpost-timestamp"), &seconds.to_string())?;
            headers.put(HeaderName::from_static("x-neuralpost-nonce"), &uuid::Uuid::now_v7().to_string())?;
            if let Some(text) = text {
                let signature = neuralpost_signature(text, seconds, &letter.body);
                headers.put(HeaderName::from_static("x-neuralpost-signature"), &signature)?;
            }
        }
        Ok(headers)
    }
}

#[async_trait]
impl Courier for HttpCourier {
    fn write(&self, delivery: &WebhookDelivery) -> Letter {
        letter::write(&self.config, self.origins.get(&*delivery.registration.origin), delivery)
    }

    async fn deliver(&self, registration: &Registration, secrets: &OpenSecrets, letter: &Letter, how: Try) -> DeliveryOutcome {
        let headers = match self.headers(registration, secrets, letter, how) {
            Ok(headers) => headers.into_map(),
            Err(Unsendable(what)) => {
                let error = Some(what.into());
                return DeliveryOutcome { answer: AttemptAnswer::Failed(FailClass::Protocol), error, receipt: None };
            }
        };
        let mut fetch = Fetch::post(&*registration.url, Bytes::copy_from_slice(&letter.body));
        fetch.headers = headers;
        let client = self.client.load_full();
        match client.tell(fetch).await {
            Ok((status, headers)) => outcome::answered(status, &headers),
            Err(fault) => outcome::failed(&fault),
        }
    }
}
