//! The one way to memory for agents: a grant, checked together with who asks and for whom, before anything is looked at.

use std::sync::Arc;
use std::time::Duration;

use chancery_identity::KeyRing;
use chancery_protocol::{AgentId, Timestamp};
use uuid::Uuid;

use crate::{
    Capability, GrantIssuer, GrantRefusal, IssuerKey, MemoryConfig, MemoryError, MemoryGrant, Neighbour, PublishedCollection,
    Resolved, Tier, Witness,
};

/// A request for memory, with all that is known about the requester.
#[derive(Clone, Debug)]
pub struct MemoryRequest<'a> {
    pub witness: &'a Witness,
    pub data_ref: Option<&'a str>,
    /// What it was handed over for, in the words of who did. The grant may allow more, and both have to.
    pub handed_for: Option<&'a [String]>,
    pub grant: Option<&'a str>,
    /// The agents that the one who works on it can be: an agent has several keys while they are rotated.
    pub grantee: &'a [AgentId],
    /// The agent whose call brought it, as far as it has proven to be one.
    pub presenter: Option<&'a AgentId>,
    pub now: Timestamp,
}

/// Grants that follow from each other, one write after the other.
const MOST_AFTER: usize = 16;

/// A new generation, with a grant for it that is like the one it was written with.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenCollection {
    pub published: PublishedCollection,
    pub grant: String,
}

#[derive(Debug)]
pub struct MemoryGate {
    tier: Arc<Tier>,
    issuers: Vec<IssuerKey>,
    longest: Duration,
}

impl MemoryGate {
    pub fn new(tier: Arc<Tier>, config: &MemoryConfig) -> Self {
        let longest = Duration::from_secs(config.max_grant_hours.saturating_mul(3600));
        Self { tier, issuers: config.issuers.clone(), longest }
    }

    pub fn tier(&self) -> &Arc<Tier> {
        &self.tier
    }

    pub fn grants<'a>(&'a self, ring: &'a KeyRing) -> GrantIssuer<'a> {
        GrantIssuer { shelf: self.tier.shelf(), ring, issuers: &self.issuers }
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
    ) -> MemoryGrant {
        MemoryGrant {
            id: Uuid::now_v7().to_string(),
            shard: self.tier.shard().to_owned(),
            witness,
            capabilities,
            grantee,
            presenter,
            after: Vec::new(),
            issued_at: now,
            expires_at: now + lasts.min(self.longest),
        }
    }

    /// The grant, if it allows this.
    pub fn check(&self, ask: &MemoryRequest<'_>, needs: Capability, ring: &KeyRing) -> Result<MemoryGrant, MemoryError> {
        let text = ask.grant.ok_or(GrantRefusal::NoGrant)?;
        let grant = self.grants(ring).open(text, ask.now)?;
        // Whoever issued it: this node takes none for longer than it would give one.
        if ask.now >= grant.issued_at + self.longest {
            return Err(GrantRefusal::Expired.into());
        }
        if !ask.grantee.contains(&grant.grantee) {
            return Err(GrantRefusal::OtherGrantee.into());
        }
        if grant.presenter.is_some() && grant.presenter.as_ref() != ask.presenter {
            return Err(GrantRefusal::OtherPresenter.into());
        }
        if grant.shard != self.tier.shard() {
            return Err(GrantRefusal::OtherShard.into());
        }
        if grant.witness.as_ref().is_some_and(|witness| witness != ask.witness) {
            return Err(GrantRefusal::OtherWitness.into());
        }
        if !grant.capabilities.contains(&needs) {
            return Err(GrantRefusal::Capability(needs.name()).into());
        }
        if ask.handed_for.is_some_and(|handed| !handed.iter().any(|one| one == needs.name())) {
            return Err(GrantRefusal::HandedFor(needs.name()).into());
        }
        Ok(grant)
    }

    pub fn resolve(&self, ask: &MemoryRequest<'_>, ring: &KeyRing) -> Result<Resolved, MemoryError> {
        self.check(ask, Capability::Read, ring)?;
        self.tier.resolve(ask.witness, ask.data_ref)
    }

    /// Puts a new generation of it into the tier. The writer has the same rights to it as to the old one.
    pub fn write(
        &self,
        ask: &MemoryRequest<'_>,
        vectors: &[(u64, Vec<f32>)],
        ring: &KeyRing,
    ) -> Result<WrittenCollection, MemoryError> {
        let with = self.check(ask, Capability::Write, ring)?;
        if with.after.len() >= MOST_AFTER {
            return Err(MemoryError::Reference { field: "grant", reason: "was written with too often; ask for a new one" });
        }
        let published = self.tier.extend(ask.witness, ask.data_ref, vectors)?;
        let witness = with.witness.is_some().then(|| published.witness.clone());
        let after = with.after.iter().chain([&with.id]).cloned().collect();
        let grant = MemoryGrant { id: Uuid::now_v7().to_string(), witness, after, issued_at: ask.now, ..with };
        self.grants(ring).issue(&grant)?;
        Ok(WrittenCollection { published, grant: grant.id })
    }

    pub fn search(
        &self,
        ask: &MemoryRequest<'_>,
        queries: &[Vec<f32>],
        k: usize,
        ring: &KeyRing,
    ) -> Result<Vec<Vec<Neighbour>>, MemoryError> {
        self.check(ask, Capability::Search, ring)?;
        self.tier.resolve(ask.witness, ask.data_ref)?;
        self.tier.search(ask.witness, queries, k)
    }
}
