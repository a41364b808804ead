//! Looks for a card at each place where cards are kept, in order.

use std::time::Duration;

use bytes::Bytes;
use chancery_protocol::Version;
use http::header::{ACCEPT, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{candidates, read};
use crate::guard::{Fetch, Fetched, GuardError, GuardedClient};

/// A search for the card of one agent.
pub(crate) struct CardSearch<'a> {
    pub(crate) client: &'a GuardedClient,
    /// Of the agent, or of its card.
    pub(crate) url: &'a str,
    /// The version of A2A to ask for; none lets the server choose.
    pub(crate) version: Option<&'a str>,
    pub(crate) headers: &'a [(HeaderName, HeaderValue)],
    /// Where the card was the last time, and its tag.
    pub(crate) known: Option<(&'a str, &'a HeaderValue)>,
    pub(crate) most_bytes: u64,
    /// For each place.
    pub(crate) within: Duration,
}

/// Why a search found nothing.
#[derive(Debug)]
pub(crate) enum NoCard {
    /// The agent's URL is invalid.
    BadUrl,
    /// A place could not be asked.
    Guard(GuardError),
    /// Nothing was there, and what the last place said.
    Nothing(Option<StatusCode>),
    /// A place that keeps cards wants to know who asks.
    TurnedAway(StatusCode),
}

impl CardSearch<'_> {
    /// Asks each place in turn. Who answers that there is nothing sends us on; who cannot say, or does not answer at all, does not:
    /// behind the next place there may be another agent. `counts` may say that what a place has is another agent's.
    pub(crate) async fn look(&self, counts: impl Fn(&str, &Bytes) -> bool) -> Result<(String, Fetched), NoCard> {
        let mut all = candidates(self.url).ok_or(NoCard::BadUrl)?;
        if self.version == Some(Version::Original.as_str()) {
            let last = all.len() - 1;
            all[..last].sort_by_key(|place| !place.ends_with("/agent.json"));
        }
        let agent_itself = all.len() > 1;
        let (mut last, mut turned_away) = (None, None);
        for (index, url) in all.iter().enumerate() {
            // An agent may answer a GET of its own URL with anything; only a card counts there.
            let may_be_other = agent_itself && index + 1 == all.len();
            let etag = self.known.and_then(|(at, etag)| (at == url).then_some(etag));
            let fetched = match self.client.fetch(self.fetch(url, etag)).await {
                // What breaks at the agent's own URL says nothing of the places where cards are kept.
                Err(_) if may_be_other => break,
                fetched => fetched.map_err(NoCard::Guard)?,
            };
            let is_card = fetched.status.is_success() && is_card(&fetched.body);
            if may_be_other && !is_card && etag.is_none() {
                break;
            }
            let is_there = fetched.status.is_success() || (etag.is_some() && fetched.status == StatusCode::NOT_MODIFIED);
            if is_there && counts(url, &fetched.body) {
                return Ok((url.clone(), fetched));
            }
            if matches!(fetched.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                turned_away.get_or_insert(fetched.status);
            }
            if !is_there {
                last = Some(fetched.status);
            }
            if !is_there && !says_nothing_is_there(fetched.status, etag.is_some()) {
                break;
            }
        }
        Err(turned_away.map_or(NoCard::Nothing(last), NoCard::TurnedAway))
    }

    fn fetch(&self, url: &str, etag: Option<&HeaderValue>) -> Fetch {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        // Servers of the original protocol know no header for it.
        let version = self.version.filter(|version| *version != Version::Original.as_str());
        let version = version.and_then(|version| HeaderValue::from_str(version).ok());
        headers.extend(version.map(|version| (HeaderName::from_static("a2a-version"), version)));
        headers.extend(self.headers.iter().cloned());
        headers.extend(etag.map(|etag| (IF_NONE_MATCH, etag.clone())));
        Fetch { headers, most_bytes: Some(self.most_bytes), within: Some(self.within), ..Fetch::get(url) }
    }
}

/// Where a card was, only who says that it is gone is believed that it is.
fn says_nothing_is_there(status: StatusCode, was_there: bool) -> bool {
    match was_there {
        true => matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE),
        false => status == StatusCode::NOT_IMPLEMENTED || !(status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS),
    }
}

/// Whether a body can be read as a card.
fn is_card(body: &Bytes) -> bool {
    std::str::from_utf8(body).is_ok_and(|text| read::read(text).is_ok())
}
