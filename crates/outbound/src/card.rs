//! Fetches an agent card from where agents keep them.

use reqwest::header;
use serde_json::Value;

use crate::error::CallError;
use crate::peer::{Peer, turned_away};

const WELL_KNOWN: [&str; 2] = [".well-known", "agent-card.json"];

#[derive(Clone, Debug)]
pub struct FetchedCard {
    /// Where it was found.
    pub url: String,
    pub card: Value,
    /// As it came, for whoever verifies it.
    pub text: String,
}

/// More than this is no list of keys.
const MOST_KEY_BYTES: usize = 256 * 1024;

impl Peer {
    /// Fetches the card of the agent here, or the one at exactly this URL if it names a JSON file. `version` is what to
    /// ask for; nothing lets the server choose.
    pub async fn fetch_card(&self, version: Option<&str>) -> Result<FetchedCard, CallError> {
        let url = if self.url.path().ends_with(".json") { self.url.clone() } else { self.at(WELL_KNOWN) };
        let mut get = self.http.get(url.clone()).header(header::ACCEPT, "application/json");
        if let Some(version) = version {
            get = get.header("A2A-Version", version);
        }
        let (status, text) = self.ask(&url, get).await?;
        if !status.is_success() {
            let away = turned_away(self, status, "not let in");
            return Err(away.unwrap_or_else(|| CallError::status(&url, status, &text)));
        }
        let card: Value = serde_json::from_str(&text).map_err(|error| CallError::not_understood(&url, error.to_string()))?;
        if !card.is_object() {
            return Err(CallError::not_understood(&url, "a card is a JSON object"));
        }
        Ok(FetchedCard { url: url.to_string(), card, text })
    }

    /// The keys this server publishes. Only for a server that is known to be the one that signs: elsewhere a card says
    /// where its keys are, and the guarded client fetches them.
    pub async fn fetch_keys(&self) -> Result<String, CallError> {
        let url = self.at([".well-known", "jwks.json"]);
        let (status, text) = self.ask(&url, self.http.get(url.clone())).await?;
        if !status.is_success() || text.len() > MOST_KEY_BYTES {
            return Err(CallError::status(&url, status, &text));
        }
        Ok(text)
    }
}
