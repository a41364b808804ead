//! Other people's public keys: fetched through the guard, kept for as long as they may be, never asked for twice at once.

mod cached;
mod key_sets;
mod limits;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use chancery_protocol::Timestamp;
use chancery_wire::{JsonLimits, scan};
use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;
use url::Url;

use crate::guard::{Fetch, GuardError, GuardedClient};
use cached::{Cached, CachedDocument, Document};
pub use limits::JwksLimits;

/// Why there are no keys. Never show more than [`JwksError::public`] to the party that chose the URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwksError {
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error("the answer has status {0}")]
    Status(StatusCode),
    #[error("the answer is not what was asked for: {0}")]
    Malformed(String),
    #[error("the discovery document is of another issuer: {0:?}")]
    OtherIssuer(String),
    #[error("not an issuer: {0}")]
    Issuer(String),
    /// Taken for a mistake of the issuer: a set that verifies nothing must not replace one that does.
    #[error("the answer has no key that can verify a token")]
    NoUsableKey,
}

impl JwksError {
    pub fn public(&self) -> &'static str {
        match self {
            Self::Guard(fault) => fault.public(),
            _ => crate::guard::Outer::BadAnswer.text(),
        }
    }
}

/// What a document was accepted as. The same bytes may be good for one and not for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    KeySet,
    Issuer,
}

type Name = (Kind, String);
type Now = dyn Fn() -> Timestamp + Send + Sync;

/// Key sets and discovery documents by URL. Cheap to clone; clones share what they know.
#[derive(Clone)]
pub struct JwksCache {
    client: GuardedClient,
    now: Arc<Now>,
    limits: JwksLimits,
    shelves: Arc<Mutex<HashMap<Name, Arc<CachedDocument>>>>,
}

impl fmt::Debug for JwksCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let egress = self.client.guard().config();
        f.debug_struct("JwksCache").field("limits", &self.limits).field("egress", egress).finish_non_exhaustive()
    }
}

impl JwksCache {
    pub fn new(client: GuardedClient, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self::with_limits(client, now, JwksLimits::default())
    }

    pub fn with_limits(client: GuardedClient, now: impl Fn() -> Timestamp + Send + Sync + 'static, limits: JwksLimits) -> Self {
        Self { client, now: Arc::new(now), limits, shelves: Arc::default() }
    }

    /// The key set at `url`. `refresh` is for a key id it does not hold: fetches again, but at most once per
    /// `refresh_s`.
    pub async fn keys(&self, url: &Url, refresh: bool) -> Result<Arc<Value>, JwksError> {
        Ok(self.key_document(url, refresh).await?.value.clone())
    }

    async fn key_document(&self, url: &Url, refresh: bool) -> Result<Arc<Document>, JwksError> {
        self.document((Kind::KeySet, url.to_string()), url, refresh, |document| match document.value.get("keys") {
            Some(Value::Array(keys)) if keys.iter().all(Value::is_object) => match document.key_set() {
                Ok(set) if set.is_empty() => Err(JwksError::NoUsableKey),
                Ok(_) => Ok(()),
                Err(fault) => Err(JwksError::Malformed(fault.to_string())),
            },
            _ => Err(JwksError::Malformed("it has no list of keys".to_owned())),
        })
        .await
    }

    /// Where an OIDC issuer keeps its keys. `issuer` is the text of the token or the configuration, compared byte for byte.
    pub async fn discover(&self, issuer: &str) -> Result<Url, JwksError> {
        let parsed = Url::parse(issuer).map_err(|fault| JwksError::Issuer(fault.to_string()))?;
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(JwksError::Issuer("it has a query or a fragment".to_owned()));
        }
        let place = format!("{}/.well-known/openid-configuration", issuer.strip_suffix('/').unwrap_or(issuer));
        // The text goes through the guard as it is: what the parser would forgive is refused there.
        self.client.guard().check(&place).map_err(GuardError::from)?;
        let place = Url::parse(&place).map_err(|fault| JwksError::Issuer(fault.to_string()))?;
        let document = self
            .document((Kind::Issuer, issuer.to_owned()), &place, false, |document| {
                match document.value.get("issuer").and_then(Value::as_str) {
                    Some(named) if named == issuer => Ok(()),
                    other => Err(JwksError::OtherIssuer(other.unwrap_or_default().to_owned())),
                }
            })
            .await?;
        let jwks_uri = document.value.get("jwks_uri").and_then(Value::as_str).unwrap_or_default();
        let target = self.client.guard().check(jwks_uri).map_err(GuardError::from)?;
        Ok(target.url().clone())
    }

    async fn document(
        &self,
        name: Name,
        url: &Url,
        refresh: bool,
        accept: impl Fn(&Document) -> Result<(), JwksError>,
    ) -> Result<Arc<Document>, JwksError> {
        let shelf = self.shelf(name);
        if let Some(document) = shelf.fresh(self.now(), refresh) {
            return Ok(document);
        }
        let mut attempt = match shelf.attempt.try_lock() {
            Ok(attempt) => attempt,
            // Somebody is asking already. Old keys are good enough meanwhile, unless the caller knows that they are not.
            Err(_) => match shelf.usable(self.now()) {
                Some(document) if !refresh => return Ok(document),
                _ => shelf.attempt.lock().await,
            },
        };
        if let Some(document) = shelf.fresh(self.now(), refresh) {
            return Ok(document);
        }
        let now = self.now();
        if let Some(answer) = attempt.too_soon(now, refresh, &self.limits, &shelf) {
            return answer;
        }
        attempt.begin(now);
        let fetched = self.fetch(url, now).await.and_then(|cached| accept(&cached.document).map(|()| cached));
        match fetched {
            Ok(cached) => {
                attempt.end(None);
                Ok(shelf.put(cached))
            }
            Err(fault) => {
                attempt.end(Some(fault.clone()));
                match shelf.usable(now) {
                    Some(document) => {
                        let origin = url.origin().ascii_serialization();
                        tracing::warn!(%fault, origin, path = url.path(), "cannot fetch the keys of an issuer (JWKS); the node uses the cached keys");
                        Ok(document)
                    }
                    None => Err(fault),
                }
            }
        }
    }

    async fn fetch(&self, url: &Url, now: Timestamp) -> Result<Cached, JwksError> {
        let mut fetch = Fetch::get(url.as_str());
        fetch.headers.insert(ACCEPT, HeaderValue::from_static("application/json, application/jwk-set+json"));
        fetch.most_bytes = Some(self.limits.body_bytes);
        let fetched = self.client.fetch(fetch).await?;
        if fetched.status != StatusCode::OK {
            return Err(JwksError::Status(fetched.status));
        }
        let limits = JsonLimits::default();
        let text = scan(&fetched.body, &limits).map_err(|fault| JwksError::Malformed(fault.to_string()))?;
        let document: Value = serde_json::from_str(text).map_err(|fault| JwksError::Malformed(fault.to_string()))?;
        let age = self.limits.age(max_age(&fetched.headers));
        Ok(Cached::new(document, now, age, self.limits.stale_s))
    }

    fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// At most `sets` documents are remembered; beyond that the one that expires first makes room.
    fn shelf(&self, name: Name) -> Arc<CachedDocument> {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shelf) = shelves.get(&name) {
            return shelf.clone();
        }
        if shelves.len() >= self.limits.sets
            && let Some(oldest) = shelves.iter().min_by_key(|(_, shelf)| shelf.expires()).map(|(name, _)| name.clone())
        {
            shelves.remove(&oldest);
        }
        shelves.entry(name).or_default().clone()
    }
}

/// `None` where nothing is said; 0 where keeping is forbidden.
fn max_age(headers: &HeaderMap) -> Option<u64> {
    let texts = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives: Vec<String> = texts.flat_map(|text| text.split(',')).map(|part| part.trim().to_ascii_lowercase()).collect();
    if directives.iter().any(|directive| directive == "no-store" || directive == "no-cache") {
        return Some(0);
    }
    directives.iter().find_map(|directive| directive.strip_prefix("max-age=")?.trim_matches('"').parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_read_from_among_other_directives() {
        let age = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, text.parse().unwrap());
            max_age(&headers)
        };
        assert_eq!(age("public, Max-Age=120, must-revalidate"), Some(120));
        assert_eq!(age("max-age=\"7\""), Some(7));
        assert_eq!(age("max-age=60, no-store"), Some(0));
        assert_eq!(age("public"), None);
        assert_eq!(age("max-age=soon"), None);
        assert_eq!(max_age(&HeaderMap::new()), None);
    }
}
