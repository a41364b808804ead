//! Finds out who a peer is: fetches its card from where cards are kept, verifies it, and keeps it until it may have changed.

mod candidates;
mod changes;
mod deviations;
mod fault;
mod look;
mod pin;
pub(crate) mod read;
mod slim;
mod structure;
mod verify;
mod vouched;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chancery_identity::{PublicKey, SealKey};
use chancery_protocol::{AgentCard, AgentId, Timestamp, Version};
use chancery_wire::tolerant::Leniencies;
use http::header::ETAG;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

pub use self::candidates::candidates;
pub use self::changes::{CardChange, changes};
pub use self::deviations::{CardDeviation, deviations, leniencies};
pub use self::fault::DiscoveryError;
pub(crate) use self::look::{CardSearch, NoCard};
pub(crate) use self::pin::{Fit, other_signer};
pub use self::pin::{Pin, PinKeeper};
pub use self::structure::structure;
pub use self::verify::{CardVerification, Verification};

use crate::guard::{Fetched, GuardedClient, as_web};
use crate::terms::ClientCertificate;

/// The address of a peer and what is known of it before the first request.
#[derive(Clone, Debug)]
pub struct PeerLocation {
    /// What it is called here.
    pub name: Arc<str>,
    /// Of the agent, or of its card.
    pub url: String,
    pub verify: CardVerification,
    /// Who it must be.
    pub agent_id: Option<AgentId>,
    /// Keys its card may be signed with, beside those its own origin publishes.
    pub keys: Vec<PublicKey>,
    /// How its card is fetched and read, where the operator says so.
    pub card: CardSettings,
}

/// The settings of one agent that are about its card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardSettings {
    /// The card is read from this file and never fetched.
    pub file: Option<PathBuf>,
    /// Sent with every fetch of the card.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// A card that deviates from the text of its version is rejected.
    pub strict: bool,
}

/// A card that was fetched, and what was found out about it.
#[derive(Clone, Debug)]
pub struct Discovered {
    pub card: AgentCard,
    /// The version of the card's own shape.
    pub version: Version,
    /// What had to be overlooked to read it.
    pub leniencies: Leniencies,
    /// Where it was found.
    pub url: String,
    /// As it came.
    pub text: String,
    /// The part that the signatures cover, where that is less: then the card was read from this.
    vouched: Option<String>,
    /// SHA-256 of the text, in hex.
    pub digest: String,
    pub verification: Verification,
    /// Where it departs from the text of its version.
    pub deviations: Vec<CardDeviation>,
    /// Changes with what the card promises, not with how it says it.
    pub structure: String,
    pub fetched_at: Timestamp,
    etag: Option<HeaderValue>,
}

#[cfg(test)]
impl Discovered {
    /// An unsigned card of 1.0, as if it had been fetched.
    pub(crate) fn of_card(card: AgentCard, text: String, url: &str) -> Self {
        let (digest, structure) = (hex_digest(text.as_bytes()), structure(&card));
        let (version, url, fetched_at) = (Version::V1_0, url.to_owned(), Timestamp::from_micros(0));
        let (vouched, verification, deviations, etag) = (None, Verification::Unsigned, Vec::new(), None);
        let leniencies = Leniencies::new();
        Self { card, version, leniencies, url, text, vouched, digest, verification, deviations, structure, fetched_at, etag }
    }
}

/// Part of the `[discovery]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiscoveryConfig {
    /// How long a card is taken for true without asking again.
    pub ttl_s: u64,
    /// Requests for one peer's card that may be under way at once.
    pub fetches_per_peer: usize,
    /// A whole fetch.
    pub fetch_ms: u64,
    pub card_bytes: u64,
    /// Origins whose keys count for cards from other hosts.
    pub key_origins: Vec<String>,
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        Self { ttl_s: 300, fetches_per_peer: 2, fetch_ms: 60_000, card_bytes: 1024 * 1024, key_origins: Vec::new() }
    }
}

/// Fetches cards and keeps them, each with the key it was verified with.
#[derive(Debug)]
pub struct CardDiscovery {
    client: GuardedClient,
    config: DiscoveryConfig,
    /// Shown to SWP peers.
    certificate: Option<ClientCertificate>,
    kept: Mutex<HashMap<Arc<str>, Arc<CachedPeer>>>,
}

/// What is kept of one peer.
#[derive(Debug)]
struct CachedPeer {
    card: Mutex<Option<Arc<Discovered>>>,
    /// Held by the task that fetches the card again, so that others wait for the answer instead of fetching
    /// too.
    renewing: AsyncMutex<()>,
    asked: Mutex<FetchHistory>,
    fetches: Semaphore,
}

/// How often a peer was asked to the end, and what the last time failed with.
#[derive(Debug, Default)]
struct FetchHistory {
    times: u64,
    fault: Option<DiscoveryError>,
}

impl CardDiscovery {
    pub fn new(client: GuardedClient, config: DiscoveryConfig) -> Self {
        Self { client, config, certificate: None, kept: Mutex::default() }
    }

    /// The same, showing a certificate to SWP peers.
    #[must_use]
    pub fn showing(self, certificate: Option<ClientCertificate>) -> Self {
        Self { certificate, ..self }
    }

    /// The card of a peer: the one kept, if it is young enough, or the one the peer has now.
    pub async fn card(&self, peer: &PeerLocation, now: Timestamp) -> Result<Arc<Discovered>, DiscoveryError> {
        let kept = self.kept(&peer.name);
        if let Some(card) = kept.young(now, self.ttl()) {
            return Ok(card);
        }
        Box::pin(async {
            let came = kept.asked().times;
            let _renewing = kept.renewing.lock().await;
            match (kept.young(now, self.ttl()), kept.failed_since(came)) {
                (Some(card), _) => Ok(card),
                (None, Some(fault)) => Err(fault),
                (None, None) => self.renew(peer, &kept, now).await,
            }
        })
        .await
    }

    /// The current card of the peer, regardless of the cache.
    pub async fn refresh(&self, peer: &PeerLocation, now: Timestamp) -> Result<Arc<Discovered>, DiscoveryError> {
        let kept = self.kept(&peer.name);
        let came = kept.asked().times;
        let _renewing = kept.renewing.lock().await;
        match kept.failed_since(came) {
            Some(fault) => Err(fault),
            None => self.renew(peer, &kept, now).await,
        }
    }

    /// Whether a card that came by another way is its peer's, by the same rules. It is judged as its version writes it.
    pub(crate) async fn judge(
        &self,
        peer: &PeerLocation,
        url: &str,
        card: &AgentCard,
        version: Version,
    ) -> Result<Verification, DiscoveryError> {
        let text = read::write(card, version);
        let (verification, _) = verify::verify(&self.client, &self.config, peer, url, &text, version).await;
        verify::judge(peer, &verification)?;
        Ok(verification)
    }

    /// Forgets a peer.
    pub fn forget(&self, name: &str) {
        locked(&self.kept).remove(name);
    }

    async fn renew(&self, peer: &PeerLocation, kept: &CachedPeer, now: Timestamp) -> Result<Arc<Discovered>, DiscoveryError> {
        let renewed = self.ask(peer, kept, now).await;
        let mut asked = kept.asked();
        *asked = FetchHistory { times: asked.times + 1, fault: renewed.as_ref().err().cloned() };
        renewed
    }

    async fn ask(&self, peer: &PeerLocation, kept: &CachedPeer, now: Timestamp) -> Result<Arc<Discovered>, DiscoveryError> {
        let before = locked(&kept.card).clone();
        let known = before.as_ref().and_then(|card| Some((card.url.as_str(), card.etag.as_ref()?)));
        let (url, fetched) = self.fetch(peer, kept, known).await?;
        let card = match (fetched.status, before) {
            (StatusCode::NOT_MODIFIED, Some(before)) => Discovered { fetched_at: now, ..Discovered::clone(&before) },
            _ => self.read(peer, url, &fetched, now).await?,
        };
        let card = Arc::new(card);
        *locked(&kept.card) = Some(Arc::clone(&card));
        Ok(card)
    }

    async fn fetch(
        &self,
        peer: &PeerLocation,
        kept: &CachedPeer,
        known: Option<(&str, &HeaderValue)>,
    ) -> Result<(String, Fetched), DiscoveryError> {
        let _place = kept.fetches.acquire().await.map_err(|_| DiscoveryError::gone(peer))?;
        if as_web(&peer.url).is_some() {
            return self.fetch_slim(peer, known.map(|(_, etag)| etag)).await.map(|fetched| (peer.url.clone(), fetched));
        }
        if let Some(file) = &peer.card.file {
            return from_file(peer, file).await.map(|fetched| (peer.url.clone(), fetched));
        }
        let search = CardSearch {
            client: &self.client,
            url: &peer.url,
            version: Some("1.0"),
            headers: &peer.card.headers,
            known,
            most_bytes: self.config.card_bytes,
            within: Duration::from_millis(self.config.fetch_ms),
        };
        search.look(|_, _| true).await.map_err(|none| match none {
            NoCard::BadUrl => DiscoveryError::bad_url(peer),
            NoCard::Guard(fault) => DiscoveryError::transport(peer, &fault),
            NoCard::Nothing(status) => DiscoveryError::no_card(peer, status),
            NoCard::TurnedAway(status) => DiscoveryError::no_card(peer, Some(status)),
        })
    }

    async fn read(
        &self,
        peer: &PeerLocation,
        url: String,
        fetched: &Fetched,
        now: Timestamp,
    ) -> Result<Discovered, DiscoveryError> {
        let text = text(&fetched.body).ok_or_else(|| DiscoveryError::not_a_card(peer, "it is not UTF-8"))?;
        let (card, version, leniencies) = read::read(&text).map_err(|reason| DiscoveryError::not_a_card(peer, reason))?;
        let deviations = deviations(&text);
        if let Some(first) = deviations.first().filter(|_| peer.card.strict) {
            let reason = format!("{} {}, and its settings say strict", first.member, first.fault);
            return Err(DiscoveryError::not_a_card(peer, reason));
        }
        let (verification, covered) = verify::verify(&self.client, &self.config, peer, &url, &text, version).await;
        verify::judge(peer, &verification)?;
        let vouched = covered.map(|covered| vouched::vouched(&text, &card, &covered)).transpose();
        let vouched = vouched.map_err(|reason| DiscoveryError::not_a_card(peer, reason))?.flatten();
        let (card, vouched) = vouched.map_or((card, None), |(card, text)| (card, Some(text)));
        let digest = hex_digest(text.as_bytes());
        let structure = structure(&card);
        let etag = fetched.headers.get(ETAG).cloned();
        Ok(Discovered {
            card,
            version,
            leniencies,
            url,
            text,
            vouched,
            digest,
            verification,
            deviations,
            structure,
            fetched_at: now,
            etag,
        })
    }

    fn kept(&self, name: &Arc<str>) -> Arc<CachedPeer> {
        let fresh = || {
            let fetches = Semaphore::new(self.config.fetches_per_peer.max(1));
            Arc::new(CachedPeer { card: Mutex::default(), renewing: AsyncMutex::default(), asked: Mutex::default(), fetches })
        };
        Arc::clone(locked(&self.kept).entry(Arc::clone(name)).or_insert_with(fresh))
    }

    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_secs(self.config.ttl_s)
    }
}

impl CachedPeer {
    fn young(&self, now: Timestamp, ttl: Duration) -> Option<Arc<Discovered>> {
        locked(&self.card).clone().filter(|card| now < card.fetched_at + ttl)
    }

    fn asked(&self) -> MutexGuard<'_, FetchHistory> {
        locked(&self.asked)
    }

    /// The fault of the last fetch, if it ended after this one came. A task that waited for it has waited as
    /// long as a fetch takes: tasks do not wait for a hanging peer one after the other.
    fn failed_since(&self, came: u64) -> Option<DiscoveryError> {
        let asked = self.asked();
        asked.fault.clone().filter(|_| asked.times > came)
    }
}

/// A card that the operator keeps beside the node's config.
async fn from_file(peer: &PeerLocation, file: &Path) -> Result<Fetched, DiscoveryError> {
    let unread = |error: std::io::Error| DiscoveryError::not_a_card(peer, format!("card_file {}: {error}", file.display()));
    let body = tokio::fs::read(file).await.map_err(unread)?;
    Ok(Fetched { status: StatusCode::OK, headers: HeaderMap::new(), body: body.into(), peer: None })
}

fn hex_digest(bytes: &[u8]) -> String {
    SealKey::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(body: &Bytes) -> Option<String> {
    std::str::from_utf8(body).ok().map(str::to_owned)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
