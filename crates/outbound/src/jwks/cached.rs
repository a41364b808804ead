//! One remembered document and the attempts to renew it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chancery_identity::credentials::{KeySet, KeySetFault};
use chancery_protocol::Timestamp;
use serde_json::Value;

use super::{JwksError, JwksLimits};

/// What was fetched, and what it was read as: a set is read once, however many tokens it checks.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) value: Arc<Value>,
    key_set: OnceLock<Result<Arc<KeySet>, KeySetFault>>,
}

impl Document {
    pub(super) fn key_set(&self) -> Result<Arc<KeySet>, KeySetFault> {
        self.key_set.get_or_init(|| KeySet::read(&self.value).map(Arc::new)).clone()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Cached {
    pub(super) document: Arc<Document>,
    expires: Timestamp,
    usable_until: Timestamp,
}

impl Cached {
    pub(super) fn new(document: Value, now: Timestamp, age_s: u64, stale_s: u64) -> Self {
        let expires = after(now, age_s);
        let document = Arc::new(Document { value: Arc::new(document), key_set: OnceLock::new() });
        Self { document, expires, usable_until: after(expires, stale_s) }
    }
}

/// The cached state of one URL. The document can be read while another task renews it.
#[derive(Debug, Default)]
pub(super) struct CachedDocument {
    cached: Mutex<Option<Cached>>,
    /// Held by the one who asks; the others wait for the answer instead of asking too.
    pub(super) attempt: tokio::sync::Mutex<FetchAttempt>,
}

impl CachedDocument {
    fn cached(&self) -> Option<Cached> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn fresh(&self, now: Timestamp, refresh: bool) -> Option<Arc<Document>> {
        self.cached().filter(|cached| !refresh && now < cached.expires).map(|cached| cached.document)
    }

    pub(super) fn usable(&self, now: Timestamp) -> Option<Arc<Document>> {
        self.cached().filter(|cached| now < cached.usable_until).map(|cached| cached.document)
    }

    pub(super) fn expires(&self) -> Option<Timestamp> {
        self.cached().map(|cached| cached.expires)
    }

    pub(super) fn put(&self, cached: Cached) -> Arc<Document> {
        let document = cached.document.clone();
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = Some(cached);
        document
    }
}

#[derive(Debug, Default)]
pub(super) struct FetchAttempt {
    last: Option<Timestamp>,
    fault: Option<JwksError>,
}

impl FetchAttempt {
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.last = Some(now);
    }

    pub(super) fn end(&mut self, fault: Option<JwksError>) {
        self.fault = fault;
    }

    /// The answer without a fetch, if the last fetch was a moment ago.
    pub(super) fn too_soon(
        &self,
        now: Timestamp,
        refresh: bool,
        limits: &JwksLimits,
        shelf: &CachedDocument,
    ) -> Option<Result<Arc<Document>, JwksError>> {
        let last = self.last?;
        let usable = shelf.usable(now);
        let (refresh_s, retry_s) = (limits.refresh_s.max(1), limits.retry_s.max(1));
        // A clock that went back must not keep us from asking.
        let within = |seconds: u64| last <= now && now < after(last, seconds);
        match (&self.fault, usable) {
            (Some(_), Some(document)) if within(retry_s) || (refresh && within(refresh_s)) => Some(Ok(document)),
            (Some(fault), None) if within(retry_s) => Some(Err(fault.clone())),
            (None, Some(document)) if refresh && within(refresh_s) => Some(Ok(document)),
            _ => None,
        }
    }
}

fn after(time: Timestamp, seconds: u64) -> Timestamp {
    let micros = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    Timestamp::from_micros(time.micros().saturating_add(micros))
}
