//! Fetches the card of the agent at an address that was typed, and the keys of the server there.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use url::Url;

use super::TypedUrl;
use crate::client::swp::{CardAnswer, ask_for_card};
use crate::discovery::{CardSearch, NoCard, read};
use crate::error::CallError;
use crate::guard::{Fetch, as_web};

/// Bytes of a card.
const MOST_CARD_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of a list of keys.
const MOST_KEY_BYTES: u64 = 256 * 1024;

#[derive(Clone, Debug)]
pub struct FetchedCard {
    /// Where it was found.
    pub url: String,
    pub card: Value,
    /// As received, for verification.
    pub text: String,
}

impl FetchedCard {
    /// A card that came by some other way.
    pub fn new(url: String, text: String) -> Result<Self, CallError> {
        let card = serde_json::from_str(&text).map_err(|error| CallError::not_understood(&url, error.to_string()))?;
        match card {
            Value::Object(_) => Ok(Self { url, card, text }),
            _ => Err(CallError::not_understood(&url, "a card is a JSON object")),
        }
    }
}

impl TypedUrl {
    /// Fetches the card of the agent here, wherever agents keep them, or the one at exactly this URL if it names a JSON file.
    /// `version` is what to ask for; nothing lets the server choose. Cards of the original protocol have a name of their own.
    pub async fn fetch_card(&self, version: Option<&str>, within: Duration) -> Result<FetchedCard, CallError> {
        let (url, body) = match as_web(self.url().as_str()) {
            Some(_) => self.card_over_swp(within).await?,
            None => self.card_over_http(version, within).await?,
        };
        let text = String::from_utf8(body.into()).map_err(|_| CallError::not_understood(&url, "not UTF-8"))?;
        FetchedCard::new(url, text)
    }

    async fn card_over_http(&self, version: Option<&str>, within: Duration) -> Result<(String, Bytes), CallError> {
        let client = self.guard().client();
        let shown = self.url().as_str();
        let search =
            CardSearch { client: &client, url: shown, version, headers: &[], known: None, most_bytes: MOST_CARD_BYTES, within };
        let found = search.look(|place, body| is_of(self.url(), place, body)).await;
        found.map(|(url, fetched)| (url, fetched.body)).map_err(|none| match none {
            NoCard::BadUrl => CallError::BadUrl { url: shown.to_owned(), expected: super::EXPECTED },
            NoCard::Guard(fault) => CallError::of_guard(shown, &fault, self.guard()),
            NoCard::TurnedAway(status) => CallError::TurnedAway {
                status: status.as_u16(),
                message: "the card is shown to known callers only".to_owned(),
                shown: self.terms().shows_something(),
            },
            NoCard::Nothing(status) => CallError::NoCard { url: shown.to_owned(), status },
        })
    }

    async fn card_over_swp(&self, within: Duration) -> Result<(String, Bytes), CallError> {
        let (guard, url, own) = (self.guard(), self.url().as_str(), self.terms().certificate.as_ref());
        match ask_for_card(guard, url, own, None, MOST_CARD_BYTES, within).await {
            Ok(CardAnswer::Card { text, .. }) => Ok((url.to_owned(), text)),
            Ok(CardAnswer::NotModified | CardAnswer::None) => Err(CallError::NoCard { url: url.to_owned(), status: None }),
            Err(fault) => Err(CallError::of_guard(url, &fault, guard)),
        }
    }

    /// The keys this server publishes. Only for a server that is known to be the signer: otherwise a card
    /// names the place of its keys.
    pub async fn fetch_keys(&self, within: Duration) -> Result<String, CallError> {
        let url = self.at([".well-known", "jwks.json"]);
        let fetch = Fetch { most_bytes: Some(MOST_KEY_BYTES), within: Some(within), ..Fetch::get(url.as_str()) };
        let fetched = self.guard().client().fetch(fetch).await;
        let fetched = fetched.map_err(|fault| CallError::of_guard(url.as_str(), &fault, self.guard()))?;
        let text = String::from_utf8_lossy(&fetched.body).into_owned();
        match fetched.status.is_success() {
            true => Ok(text),
            false => Err(CallError::status(url.as_str(), fetched.status, &text)),
        }
    }
}

/// Whether a card is of the agent at this URL. One that is kept below the URL, or under the last name of its path, is. One that is kept above it is, if it lists an
/// address there: a server of several agents has a card of its own at its root.
fn is_of(typed: &Url, place: &str, body: &Bytes) -> bool {
    let own = typed.path().trim_end_matches('/');
    let kept_as = format!("/.well-known{}/", own.rfind('/').map_or(own, |last| &own[last..]));
    let is_below = Url::parse(place).is_ok_and(|place| place.path().starts_with(own) || place.path().contains(&kept_as));
    if own.is_empty() || is_below {
        return true;
    }
    let card = std::str::from_utf8(body).ok().and_then(|text| read::read(text).ok());
    card.is_some_and(|(card, ..)| card.supported_interfaces.iter().any(|listed| shares_path(own, &listed.url, place)))
}

/// Whether a listed address is at or below the typed path, or the other way round.
fn shares_path(own: &str, listed: &str, place: &str) -> bool {
    let url = Url::parse(place).ok().and_then(|place| place.join(listed).ok());
    let path = url.map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default();
    let is_below =
        |path: &str, above: &str| path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    !path.is_empty() && (is_below(&path, own) || is_below(own, &path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_above_the_typed_path_counts_only_if_it_lists_an_address_there() {
        let card = |url: &str| {
            Bytes::from(format!(
                r#"{{"name":"A","supportedInterfaces":[{{"url":"{url}","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}]}}"#
            ))
        };
        let counts = |typed: &str, place: &str, listed: &str| is_of(&Url::parse(typed).unwrap(), place, &card(listed));
        let root = "https://h/.well-known/agent-card.json";
        for (typed, place, listed) in [
            ("https://h", root, "https://h/rpc"),
            ("https://h/a", "https://h/a/.well-known/agent-card.json", "https://h/rpc"),
            ("https://h/a2a/one", "https://h/.well-known/one/agent-card.json", "https://h/rpc"),
            ("https://h/a2a", root, "https://h/a2a"),
            ("https://h/a2a/v1/", root, "https://h/a2a"),
            ("https://h/a2a", root, "/a2a/rpc"),
            ("https://h/a2a", root, "http://0.0.0.0:9/a2a"),
        ] {
            assert!(counts(typed, place, listed), "{typed} {place} {listed}");
        }
        for listed in ["https://h/", "https://h", "https://h/a2a-other", "https://h/agents/one", ""] {
            assert!(!counts("https://h/a2a", root, listed), "{listed}");
        }
    }
}
