//! Configures a receiver: the senders, their keys and its limits, before it accepts notifications.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use chancery_identity::webhook::{HmacSecret, PushKeys, ReplayMemory, Verifier};
use chancery_protocol::TaskId;
use chancery_wire::JsonLimits;
use secrecy::SecretString;
use url::Url;

use crate::clock::{MachineClock, ReceiverClock};
use crate::guard::ReplayGuard;
use crate::proof::{Demands, JwtDemand};
use crate::receiver::{Expected, MOST_BODY_BYTES, Receiver, ReceiverState};

/// Why a receiver cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomplete {
    /// The receiver asks for no proof, so it would accept every notification.
    #[error("no check is configured: set one, or call `everybody()` to accept every sender")]
    NoDemands,
    /// The sender uses its keys for other receivers too, so the receiver needs its own URL, and was given none.
    #[error("keys that others use too need the URL of this receiver")]
    NoUrl,
    /// The text is not a URL.
    #[error("not a URL: {0}")]
    NotAUrl(String),
    /// The receiver asks for a JWT, and was given no keys of the sender.
    #[error("a token of the sender needs its keys")]
    NoKeys,
}

/// Everything that is demanded must be shown; of several secrets, keys or URLs any will do.
#[must_use]
pub struct Builder {
    demands: Demands,
    urls: Vec<String>,
    wants_jwt: Option<Option<String>>,
    everybody: bool,
    most_bytes: usize,
    json: JsonLimits,
    expected: Expected,
    guard: Arc<dyn ReplayGuard>,
    clock: Arc<dyn ReceiverClock>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            demands: Demands::default(),
            urls: Vec::new(),
            wants_jwt: None,
            everybody: false,
            most_bytes: MOST_BODY_BYTES,
            json: JsonLimits::default(),
            expected: Expected::default(),
            guard: Arc::new(ReplayMemory::default()),
            clock: Arc::new(MachineClock),
        }
    }
}

impl Builder {
    /// The URL of this receiver, exactly as it is registered. Messages for another are refused.
    pub fn url(mut self, url: &str) -> Self {
        self.urls.push(url.to_owned());
        self
    }

    /// Messages have to be signed, by this shared secret (`v1`) or by one of the keys.
    pub fn secret(mut self, secret: HmacSecret) -> Self {
        self.demands.verifier = self.demands.verifier.secret(secret);
        self.demands.signature = true;
        self
    }

    /// Messages have to be signed, by one of these keys (`v1a`) or by a shared secret.
    pub fn keys(mut self, keys: PushKeys) -> Self {
        self.demands.verifier = self.demands.verifier.keys(keys);
        self.demands.signature = true;
        self
    }

    /// The sender also shows a token signed with one of its keys, for this URL and this body.
    pub fn jwt(mut self, issuer: Option<String>) -> Self {
        self.wants_jwt = Some(issuer);
        self
    }

    /// The `token` of the registration, under either of its names.
    pub fn token(mut self, token: impl Into<SecretString>) -> Self {
        self.demands.token = Some(token.into());
        self
    }

    /// `Authorization`, as the registration has it.
    pub fn credentials(mut self, scheme: &str, credentials: impl Into<SecretString>) -> Self {
        self.demands.credentials = Some((scheme.to_owned(), credentials.into()));
        self
    }

    /// An HMAC over the body alone. It tells neither whom a message is for nor when it was sent.
    pub fn body_signature(mut self, secret: impl Into<SecretString>) -> Self {
        self.demands.body_secret = Some(secret.into());
        self
    }

    /// The signature of NeuralPost, over the time and the body.
    pub fn neuralpost(mut self, secret: impl Into<SecretString>) -> Self {
        self.demands.neuralpost = Some(secret.into());
        self
    }

    /// Senders need no credentials.
    pub fn everybody(mut self) -> Self {
        self.everybody = true;
        self
    }

    /// Accepts only tasks that the program waits for. By default it accepts all.
    pub fn expecting(mut self, expected: impl Fn(&TaskId) -> bool + Send + Sync + 'static) -> Self {
        self.expected = Expected(Some(Arc::new(expected)));
        self
    }

    /// Where messages are remembered; in memory, if nothing is said.
    pub fn guard(mut self, guard: Arc<dyn ReplayGuard>) -> Self {
        self.guard = guard;
        self
    }

    /// Takes the time from a clock of the program.
    pub fn clock(mut self, clock: Arc<dyn ReceiverClock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the largest body that the receiver accepts.
    pub fn most_body_bytes(mut self, most: usize) -> Self {
        self.most_bytes = most;
        self
    }

    /// Builds the receiver.
    pub fn build(mut self) -> Result<Receiver, Incomplete> {
        if let Some(issuer) = self.wants_jwt.take() {
            if self.demands.verifier.push_keys().is_empty() {
                return Err(Incomplete::NoKeys);
            }
            let mut audiences = Vec::new();
            for url in &self.urls {
                audiences.extend(audiences_of(url)?);
            }
            self.demands.jwt = Some(JwtDemand { issuer, audiences });
        }
        let shared_keys = self.demands.jwt.is_some() || !self.demands.verifier.push_keys().is_empty();
        if shared_keys && self.urls.is_empty() {
            return Err(Incomplete::NoUrl);
        }
        if self.demands.is_empty() && !self.everybody {
            return Err(Incomplete::NoDemands);
        }
        let named = |verifier: Verifier, url: &String| verifier.url(url);
        self.demands.verifier = self.urls.iter().fold(std::mem::take(&mut self.demands.verifier), named);
        Ok(Receiver {
            demands: Arc::new(ArcSwap::from_pointee(self.demands)),
            memory: Arc::new(ReceiverState { guard: self.guard, clock: self.clock, lanes: Default::default() }),
            expected: self.expected,
            json: Arc::new(self.json),
            most_bytes: self.most_bytes,
        })
    }
}

/// The audience of a token: the URL without its query. In the spelling of the registration, which is what
/// senders have, and in the normal form.
fn audiences_of(url: &str) -> Result<[String; 2], Incomplete> {
    let mut usual = Url::parse(url).map_err(|_| Incomplete::NotAUrl(url.to_owned()))?;
    usual.set_query(None);
    usual.set_fragment(None);
    let as_registered = url.split(['?', '#']).next().unwrap_or_default();
    Ok([as_registered.to_owned(), usual.into()])
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("urls", &self.urls).field("demands", &self.demands).finish_non_exhaustive()
    }
}
