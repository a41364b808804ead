//! The extended card of a remote agent, fetched with the node's credentials.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chancery_protocol::{AgentCard, GetExtendedCard, Reply, Request, Timestamp, TraceId, Version};

use super::replica::{Replica, ReplicaError};
use crate::client::{CallConditions, ClientError};
use crate::discovery::{DiscoveryError, Verification, other_signer};

/// How long an agent may take to show it. No caller waits for it, but the next refresh of its card does.
const WITHIN: Duration = Duration::from_secs(5);

/// An extended card, and what was found out about it.
#[derive(Clone, Debug)]
pub struct Extended {
    pub card: AgentCard,
    pub verification: Verification,
    /// Where it was asked for, and in which version.
    pub url: String,
    pub version: Version,
}

/// The last one seen: beside which public card, and when.
#[derive(Debug, Default)]
pub(super) struct CachedExtendedCard(Mutex<Option<(String, Timestamp, Arc<Extended>)>>);

impl Replica {
    /// The extended card, if the public card declares one. Cached as long as the public card. If a refresh
    /// fails, the old one stays in use as long as the public card stays the same.
    pub async fn extended(&self, now: Timestamp) -> Result<Option<Arc<Extended>>, ReplicaError> {
        let found = self.card(now).await?;
        if found.card.capabilities.extended_agent_card != Some(true) {
            return Ok(None);
        }
        let kept = self.extended.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let kept = kept.filter(|(digest, ..)| *digest == found.digest);
        if let Some((_, at, extended)) = &kept
            && now < *at + self.discovery().ttl()
        {
            return Ok(Some(Arc::clone(extended)));
        }
        match self.ask_for_extended(now).await {
            Ok(extended) => {
                let extended = Arc::new(extended);
                let mut kept = self.extended.0.lock().unwrap_or_else(PoisonError::into_inner);
                *kept = Some((found.digest.clone(), now, Arc::clone(&extended)));
                Ok(Some(extended))
            }
            Err(error) => match kept {
                Some((.., extended)) if !matches!(error, ReplicaError::Discovery(_)) => Ok(Some(extended)),
                _ => Err(error),
            },
        }
    }

    /// The extended card that was fetched last, without asking.
    pub fn seen_extended(&self) -> Option<Arc<Extended>> {
        let kept = self.extended.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map(|(.., extended)| Arc::clone(extended))
    }

    async fn ask_for_extended(&self, now: Timestamp) -> Result<Extended, ReplicaError> {
        let found = self.card(now).await?;
        let replica_client = self.client(now).await?;
        let required = found.card.capabilities.extensions.iter().filter(|extension| extension.required);
        let conditions = CallConditions {
            credentials: self.credentials().clone(),
            headers: self.settings().headers.clone(),
            extensions: required.map(|extension| extension.uri.clone()).collect(),
            deadline: Some(WITHIN),
            ..CallConditions::new(TraceId(uuid::Uuid::now_v7().as_u128()))
        };
        let failed = |error| ReplicaError::Client { peer: Arc::clone(&self.address().name), error };
        let asked = Request::GetExtendedCard(GetExtendedCard { tenant: None });
        let card = match replica_client.client.call(&asked, &conditions).await.map_err(failed)? {
            Reply::Card(card) => Arc::unwrap_or_clone(card),
            _ => return Err(failed(ClientError::not_understood("it answered something that was not asked for".to_owned()))),
        };
        let verification = self.discovery().judge(self.address(), &found.url, &card, replica_client.version).await?;
        if self.seen().pinned
            && let Some(reason) = other_signer(&found.verification, &verification)
        {
            tracing::warn!(peer = self.name(), url = found.url, reason, "rejected the extended card of an agent");
            return Err(DiscoveryError::refused(self.address(), reason).into());
        }
        let (url, version) = (replica_client.client.interface().url.clone(), replica_client.version);
        Ok(Extended { card, verification, url, version })
    }
}
