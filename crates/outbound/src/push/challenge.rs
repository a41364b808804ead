//! Verifies that a webhook's owner wants notifications: the URL must answer with the token of the challenge.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use url::Url;

use crate::guard::{Fetch, GuardError, GuardedClient, Outer};

/// The name of the parameter with the token.
const PARAMETER: &str = "validationToken";
/// A caller waits for it.
const WITHIN: Duration = Duration::from_secs(5);
/// Who answered is not asked again for so long.
const GOOD_FOR: Duration = Duration::from_secs(60 * 60);
const MOST_REMEMBERED: usize = 10_000;

/// Whether webhooks get a challenge when they are registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Challenge {
    /// Webhooks are registered without a challenge.
    #[default]
    Off,
    /// They do, and those that do not answer get notifications all the same. The log says which.
    Optional,
    /// Those that do not answer are not registered.
    Required,
}

#[derive(Debug)]
pub(super) struct Challenger {
    client: ArcSwap<GuardedClient>,
    mode: Challenge,
    answered: Mutex<HashMap<String, Instant>>,
}

/// Why a webhook failed its challenge.
struct FailedChallenge {
    /// For the log of the node.
    reason: String,
    /// For the caller. It says as little as the guard says to the outside, so that it reveals nothing about
    /// the network of the node.
    public: &'static str,
}

impl FailedChallenge {
    fn unacceptable(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), public: Outer::BadAnswer.text() }
    }
}

impl Challenger {
    pub(super) fn new(client: GuardedClient, mode: Challenge) -> Self {
        Self { client: ArcSwap::from_pointee(client), mode, answered: Mutex::default() }
    }

    /// Challenges go through this client from now on. Webhooks that answered before get no second challenge.
    pub(super) fn take_client(&self, client: GuardedClient) {
        self.client.store(Arc::new(client));
    }

    pub(super) async fn ask(&self, url: &str) -> Result<(), String> {
        if self.mode == Challenge::Off || self.knows(url) {
            return Ok(());
        }
        match self.exchange(url).await {
            Ok(()) => {
                self.remember(url);
                Ok(())
            }
            Err(FailedChallenge { reason, public }) => {
                let origin = Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
                tracing::warn!(
                    origin,
                    reason,
                    "a webhook did not answer its challenge (push.challenge); check the receiver at this origin"
                );
                let required = self.mode == Challenge::Required;
                if required { Err(format!("did not answer the challenge: {public}")) } else { Ok(()) }
            }
        }
    }

    async fn exchange(&self, url: &str) -> Result<(), FailedChallenge> {
        let token = uuid::Uuid::now_v7().simple().to_string();
        let mut asked = Url::parse(url).map_err(|fault| FailedChallenge::unacceptable(fault.to_string()))?;
        asked.query_pairs_mut().append_pair(PARAMETER, &token);
        let fetch = Fetch { within: Some(WITHIN), ..Fetch::get(asked) };
        let failed = |fault: GuardError| FailedChallenge { reason: fault.to_string(), public: fault.public() };
        let client = self.client.load_full();
        let fetched = client.fetch(fetch).await.map_err(failed)?;
        if !fetched.status.is_success() {
            return Err(FailedChallenge::unacceptable(format!("it answered {}", fetched.status.as_u16())));
        }
        if fetched.body.trim_ascii() != token.as_bytes() {
            return Err(FailedChallenge::unacceptable("it answered something else than the token"));
        }
        Ok(())
    }

    fn knows(&self, url: &str) -> bool {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.get(url).is_some_and(|at| at.elapsed() < GOOD_FOR)
    }

    fn remember(&self, url: &str) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if answered.len() >= MOST_REMEMBERED {
            answered.retain(|_, at| at.elapsed() < GOOD_FOR);
        }
        if answered.len() < MOST_REMEMBERED {
            answered.insert(url.to_owned(), Instant::now());
        }
    }
}
