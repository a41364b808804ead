//! Webhooks put together: the vault for their secrets, the courier, the keys of receipts, and the engine that drives them.

mod notary;
mod secrets;
mod vault;

use std::sync::Arc;
use std::time::Duration;

use chancery_core::Chancery;
use chancery_core::notify::{Engine, EngineParts};
use chancery_core::push::{ENVELOPE_EXTENSION, Outbox, PUSH_EXTENSION, PushParts, Vault};
use chancery_identity::KeyRing;
use chancery_identity::webhook::HmacSecret;
use chancery_outbound::Guard;
use chancery_outbound::push::{GuardedTargets, HttpCourier, OriginSecrets};
use chancery_protocol::{AgentCard, AgentExtension, Timestamp};
use serde_json::json;

use self::notary::ReceiptKeys;
pub(crate) use self::secrets::{SecretRegistry, SecretsError};
pub(crate) use self::vault::{KeyVault, VaultError};
use crate::build_error::BuildError;
use crate::config::{Config, PublicUrl, PushSection};
use crate::data_folder::DataFolder;

/// Everything that webhooks need, ready to be started.
#[derive(Debug)]
pub(crate) struct Webhooks {
    pub(crate) parts: PushParts,
    engine: EngineParts,
    courier: Arc<HttpCourier>,
    targets: Arc<GuardedTargets>,
    notary: Arc<ReceiptKeys>,
    pub(crate) vault: Arc<KeyVault>,
    pub(crate) secrets: SecretRegistry,
}

impl Webhooks {
    pub(crate) fn open(
        push: &PushSection,
        public_url: &PublicUrl,
        egress: &Guard,
        folder: Option<Arc<DataFolder>>,
        outbox: Arc<dyn Outbox>,
        now: Timestamp,
    ) -> Result<Self, BuildError> {
        let vault = Arc::new(KeyVault::open(folder.clone(), now)?);
        let registry = SecretRegistry::open(folder, Arc::clone(&vault)).map_err(|fault| BuildError::Push(fault.to_string()))?;
        let origins = push.origins();
        let issuer = public_url.join("/.well-known/agent-card.json");
        let secrets = secrets(push)?;
        let courier = Arc::new(HttpCourier::new(egress.clone(), push.courier.clone(), Arc::clone(&origins), secrets, issuer));
        courier.agree(registry.sets());
        let notary = Arc::new(ReceiptKeys::default());
        let shared: Arc<dyn Vault> = vault.clone();
        let targets = Arc::new(GuardedTargets::new(egress.clone(), origins, push.courier.challenge));
        Ok(Self {
            parts: PushParts {
                outbox,
                vault: Arc::clone(&shared),
                targets: targets.clone(),
                limits: push.limits.clone(),
                show_secrets: push.offer.show_secrets,
                snapshot: push.offer.snapshot,
            },
            engine: EngineParts { courier: courier.clone(), notary: notary.clone(), vault: shared, config: push.engine() },
            courier,
            targets,
            notary,
            vault,
            secrets: registry,
        })
    }

    /// Registrations are judged and notifications are sent through this guard from now on. One with the same rules changes nothing, so
    /// that open connections stay.
    pub(crate) fn take_egress(&self, egress: &Guard) {
        if self.courier.guard().config() != egress.config() {
            self.courier.take_guard(egress);
            self.targets.take_guard(egress);
        }
    }

    /// The guards of deliveries and of registrations.
    #[cfg(test)]
    pub(crate) fn egress(&self) -> [Guard; 2] {
        [self.courier.guard(), self.targets.guard()]
    }

    /// What is signed from now on is signed with these.
    pub(crate) fn take_keys(&self, ring: &KeyRing) {
        self.courier.take_keys(ring);
        self.notary.take_keys(ring);
    }

    /// What goes to an origin is signed with a new secret from now on.
    pub(crate) fn agree(&self, origin: &str, secret: HmacSecret, grace: Duration, now: Timestamp) -> Result<(), SecretsError> {
        self.secrets.set(origin, secret, grace, now)?;
        self.courier.agree(self.secrets.sets());
        Ok(())
    }

    pub(crate) fn disagree(&self, origin: &str) -> Result<(), SecretsError> {
        self.secrets.remove(origin)?;
        self.courier.agree(self.secrets.sets());
        Ok(())
    }

    /// What delivers, once it is started.
    pub(crate) fn engine(&self, chancery: &Chancery, ring: &KeyRing) -> Option<Arc<Engine>> {
        self.take_keys(ring);
        self.courier.mark_traces(chancery.tracestate_of_notifications());
        Engine::new(chancery, self.engine.clone())
    }
}

/// What stands between webhooks and the addresses they may not be sent to.
pub(crate) fn guard(config: &Config, public_url: &PublicUrl) -> Result<Guard, BuildError> {
    let guard = Guard::new(config.push.courier.guard(&config.outbound), &[public_url.url().clone()]);
    guard.map_err(|faults| BuildError::Push(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))
}

/// The secrets that origins share with us, from the environment.
pub(crate) fn secrets(push: &PushSection) -> Result<OriginSecrets, BuildError> {
    let mut secrets = OriginSecrets::default();
    for (origin, rules) in &push.origins {
        for name in &rules.secret_env {
            let fault = |fault: String| BuildError::Push(format!("the secret in {name} for {origin} {fault}"));
            let secret = std::env::var(name).map_err(|_| fault("is not there".to_owned()))?;
            secrets.add(origin, &secret.into()).map_err(|error| fault(format!("cannot be used: {error}")))?;
        }
    }
    Ok(secrets)
}

/// What cards say about webhooks: whether the node delivers to them, and how a receiver verifies a
/// notification.
#[derive(Clone, Debug)]
pub(crate) struct PushPromise {
    jwks: String,
    algorithms: Vec<&'static str>,
    retry_span_s: u64,
}

impl PushPromise {
    pub(crate) fn of(push: &PushSection, public_url: &PublicUrl) -> Option<Self> {
        let algorithms = if push.courier.ed25519 { vec!["v1", "v1a"] } else { vec!["v1"] };
        push.offer.enabled.then(|| Self {
            jwks: public_url.join("/.well-known/jwks.json"),
            algorithms,
            retry_span_s: push.notify.schedule().span().as_secs(),
        })
    }

    pub(crate) fn declare(promise: Option<&Self>, card: &mut AgentCard) {
        card.capabilities.push_notifications = Some(promise.is_some());
        let extensions = &mut card.capabilities.extensions;
        extensions.retain(|extension| ![PUSH_EXTENSION, ENVELOPE_EXTENSION].contains(&&*extension.uri));
        let Some(Self { jwks, algorithms, retry_span_s }) = promise else { return };
        let params = json!({ "algs": algorithms, "jwks": jwks, "retrySpanSeconds": retry_span_s, "seqHeader": "A2A-Event-Seq" });
        extensions.push(AgentExtension {
            uri: PUSH_EXTENSION.to_owned(),
            description: "Notifications come in order and at least once, and are signed as Standard Webhooks".to_owned(),
            required: false,
            params: serde_json::from_value(params).ok(),
        });
        extensions.push(AgentExtension {
            uri: ENVELOPE_EXTENSION.to_owned(),
            description: "Callers of 0.3 that ask for it when they register a webhook are sent JSON-RPC responses".to_owned(),
            required: false,
            params: None,
        });
    }
}
