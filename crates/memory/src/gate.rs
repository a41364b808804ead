//! The one way to memory for agents: a grant, checked together with who asks and for whom, before anything is looked at.

use std::sync::Arc;
use std::time::Duration;

use chancery_identity::KeyRing;
use chancery_protocol::{AgentId, Timestamp};
use uuid::Uuid;

use crate::{Capability, Grant, GrantBook, IssuerKey, MemoryConfig, MemoryError, Neighbour, Refusal, Resolved, Tier, Witness};

/// What somebody asks for, with all that is known of who it is.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    pub witness: &'a Witness,
    pub data_ref: Option<&'a str>,
    pub grant: Option<&'a str>,
    /// The agents that the one who works on it can be: an agent has several keys while they are rotated.
    pub grantee: &'a [AgentId],
    /// The agent whose call brought it, as far as it has proven to be one.
    pub presenter: Option<&'a AgentId>,
    pub now: Timestamp,
}

#[derive(Debug)]
pub struct Gate {
    tier: Arc<Tier>,
    issuers: Vec<IssuerKey>,
    longest: Duration,
}

impl Gate {
    pub fn new(tier: Arc<Tier>, config: &MemoryConfig) -> Self {
        let longest = Duration::from_secs(config.max_grant_hours.saturating_mul(3600));
        Self { tier, issuers: config.issuers.clone(), longest }
    }

    pub fn tier(&self) -> &Arc<Tier> {
        &self.tier
    }

    pub fn grants<'a>(&'a self, ring: &'a KeyRing) -> GrantBook<'a> {
        GrantBook { shelf: self.tier.shelf(), ring, issuers: &self.issuers }
    }

    /// A grant on this tier that ends when it may at the latest.
    pub fn draw_up(
        &self,
        witness: Option<Witness>,
        capabilities: Vec<Capability>,
        grantee: AgentId,
        presenter: Option<AgentId>,
        now: Timestamp,
        lasts: Duration,
    ) -> Grant {
        Grant {
            id: Uuid::now_v7().to_string(),
            shard: self.tier.shard().to_owned(),
            witness,
            capabilities,
            grantee,
            presenter,
            issued_at: now,
            expires_at: now + lasts.min(self.longest),
        }
    }

    /// The grant, if it allows this.
    pub fn check(&self, ask: &Ask<'_>, needs: Capability, ring: &KeyRing) -> Result<Grant, MemoryError> {
        let text = ask.grant.ok_or(Refusal::NoGrant)?;
        let grant = self.grants(ring).open(text, ask.now)?;
        if !ask.grantee.contains(&grant.grantee) {
            return Err(Refusal::OtherGrantee.into());
        }
        if grant.presenter.is_some() && grant.presenter.as_ref() != ask.presenter {
            return Err(Refusal::OtherPresenter.into());
        }
        if grant.shard != self.tier.shard() {
            return Err(Refusal::OtherShard.into());
        }
        if grant.witness.as_ref().is_some_and(|witness| witness != ask.witness) {
            return Err(Refusal::OtherWitness.into());
        }
        if !grant.capabilities.contains(&needs) {
            return Err(Refusal::Capability(needs.name()).into());
        }
        Ok(grant)
    }

    pub fn resolve(&self, ask: &Ask<'_>, ring: &KeyRing) -> Result<Resolved, MemoryError> {
        self.check(ask, Capability::Read, ring)?;
        self.tier.resolve(ask.witness, ask.data_ref)
    }

    pub fn search(
        &self,
        ask: &Ask<'_>,
        queries: &[Vec<f32>],
        k: usize,
        ring: &KeyRing,
    ) -> Result<Vec<Vec<Neighbour>>, MemoryError> {
        self.check(ask, Capability::Search, ring)?;
        self.tier.resolve(ask.witness, ask.data_ref)?;
        self.tier.search(ask.witness, queries, k)
    }
}
