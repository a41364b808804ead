//! The replicas of one agent: which one is called, what each call teaches, and which one is ejected for a
//! while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chancery_core::health::{Ejection, HealthConfig, OpenCall, PeerPool, PeerStanding};
use chancery_core::routing::{CallOutcome, PeerId, PeerSelector, PeerSnapshot, RoutingPlan, TaskSpec};
use chancery_core::{Clock, MicroUsd, SelectorQuery, Turn};
use chancery_protocol::{AgentCard, Timestamp};
use tokio_util::sync::CancellationToken;

use super::replica::Replica;

/// How long to wait between two looks whether a health check is due, where the pool names no time.
const LOOK_EVERY: Duration = Duration::from_secs(5);

pub struct Pool {
    replicas: BTreeMap<PeerId, Arc<Replica>>,
    peers: Mutex<PeerPool>,
    selector: Arc<dyn PeerSelector>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("replicas", &self.replicas.keys()).field("selector", &self.selector.name()).finish()
    }
}

/// A replica that was chosen, with the note of it that has to be given back.
#[derive(Debug)]
pub(super) struct ChosenReplica {
    pub(super) replica: Arc<Replica>,
    call: OpenCall,
    since: Timestamp,
}

impl Pool {
    pub fn new(replicas: Vec<Arc<Replica>>, plan: RoutingPlan, health: HealthConfig, clock: Arc<dyn Clock>) -> Self {
        let mut peers = PeerPool::new(health, plan.forget_after);
        let mut by_id = BTreeMap::new();
        for replica in replicas {
            let id = PeerId::new(replica.name());
            // What it offers shows once its card was read; until then it is taken to offer everything.
            peers.add(id.clone(), Arc::new(AgentCard::default()), clock.now());
            by_id.insert(id, replica);
        }
        Self { replicas: by_id, peers: Mutex::new(peers), selector: Arc::new(plan.selector), clock }
    }

    /// The same with another way to choose.
    #[must_use]
    pub fn choosing_by(self, selector: Arc<dyn PeerSelector>) -> Self {
        Self { selector, ..self }
    }

    pub fn replicas(&self) -> impl Iterator<Item = &Arc<Replica>> {
        self.replicas.values()
    }

    /// How each of them does.
    pub fn standings(&self) -> Vec<PeerStanding> {
        self.lock().standings(self.clock.now())
    }

    /// The replica that has the task or the conversation, regardless of its health: no other replica can
    /// continue it.
    pub(super) fn bound(&self, name: &str) -> Result<Option<ChosenReplica>, String> {
        let id = PeerId::new(name);
        let Some(replica) = self.replicas.get(&id) else { return Ok(None) };
        let now = self.clock.now();
        match self.lock().start(&id, now) {
            Ok(call) => Ok(Some(ChosenReplica { replica: Arc::clone(replica), call, since: now })),
            Err(_) => {
                let cause = last_cause(replica).map(|cause| format!(": {cause}")).unwrap_or_default();
                Err(format!("the agent of this task failed too often and is not called for a while{cause}; try again later"))
            }
        }
    }

    /// Why there is no replica to call, with what the last calls failed with.
    pub(super) fn nobody_left(&self) -> String {
        let mut causes: Vec<String> = self.replicas.values().filter_map(|replica| last_cause(replica)).collect();
        causes.dedup();
        let because = if causes.is_empty() { String::new() } else { format!(" (last failure: {})", causes.join("; ")) };
        format!("no replica can take this task now{because}; try again later")
    }

    /// The replica that a call would choose, without a call.
    pub(super) fn select(&self, asked: &SelectorQuery<'_>) -> Option<Arc<str>> {
        let modes: Vec<&str> = asked.message.parts.iter().filter_map(|part| part.media_type.as_deref()).collect();
        let select = |skill_id: &str, input_modes: &[&str]| {
            let spec = TaskSpec { skill_id, estimated_tokens: asked.estimated_tokens, input_modes, ..TaskSpec::default() };
            let candidates = self.lock().candidates(&spec, self.clock.now());
            self.selector.select(&spec, &candidates).map(|id| id.as_str().into())
        };
        // A skill or a media type that no card lists is for the agent to refuse: it may know more than its card says.
        let of_skill = |modes: &[&str]| asked.skill.and_then(|skill| select(skill, modes)).or_else(|| select("", modes));
        of_skill(&modes).or_else(|| of_skill(&[]))
    }

    /// Those that `select` can choose from, with the same leniency.
    pub(super) fn offered(&self, asked: &SelectorQuery<'_>) -> Vec<PeerSnapshot> {
        let modes: Vec<&str> = asked.message.parts.iter().filter_map(|part| part.media_type.as_deref()).collect();
        let skill = asked.skill.unwrap_or_default();
        let specs = [(skill, &modes[..]), ("", &modes[..]), (skill, &[][..]), ("", &[][..])];
        let mut offered = specs.into_iter().map(|(skill_id, input_modes)| {
            self.lock().candidates(&TaskSpec { skill_id, input_modes, ..TaskSpec::default() }, self.clock.now())
        });
        offered.find(|peers| !peers.is_empty()).unwrap_or_default()
    }

    /// The one that was selected, unless it has to be left alone since.
    pub(super) fn selected(&self, name: &str) -> Option<ChosenReplica> {
        self.bound(name).ok().flatten()
    }

    /// The best of those that have not been tried yet.
    pub(super) fn choose(&self, turn: &Turn, tried: &[PeerId]) -> Option<ChosenReplica> {
        let modes: Vec<&str> = turn.message.parts.iter().filter_map(|part| part.media_type.as_deref()).collect();
        // The media types of a card are hints: they order replicas and rule none out.
        self.choose_for(&modes, tried).or_else(|| self.choose_for(&[], tried))
    }

    fn choose_for(&self, input_modes: &[&str], tried: &[PeerId]) -> Option<ChosenReplica> {
        let spec = TaskSpec { input_modes, ..TaskSpec::default() };
        let mut left_out = tried.to_vec();
        loop {
            let now = self.clock.now();
            let mut peers = self.lock();
            let mut candidates = peers.candidates(&spec, now);
            candidates.retain(|peer| !left_out.contains(&peer.id));
            let id = self.selector.select(&spec, &candidates)?;
            if let (Ok(call), Some(replica)) = (peers.start(&id, now), self.replicas.get(&id)) {
                return Some(ChosenReplica { replica: Arc::clone(replica), call, since: now });
            }
            left_out.push(id);
        }
    }

    /// The replica has begun to answer.
    pub(super) fn answered(&self, chosen: ChosenReplica) -> ChosenReplica {
        let call = self.lock().answered(chosen.call, self.clock.now());
        ChosenReplica { call, ..chosen }
    }

    pub(super) fn finish(&self, chosen: ChosenReplica, outcome: CallOutcome, cost: Option<MicroUsd>) {
        let now = self.clock.now();
        let latency = u64::try_from(now.micros().saturating_sub(chosen.since.micros())).unwrap_or(0);
        let ejections = self.lock().finish(chosen.call, outcome, Duration::from_micros(latency), cost, now);
        for Ejection { peer, reason, until } in ejections {
            let url = self.replicas.get(&peer).map(|replica| replica.address().url.as_str());
            tracing::warn!(%peer, url, ?reason, %until, "a replica does far worse than its siblings; the node stops calling it until then");
        }
    }

    /// Gives the pool a replica's card, which says what it offers.
    pub fn learn(&self, name: &str, card: Arc<AgentCard>) {
        self.lock().add(PeerId::new(name), card, self.clock.now());
    }

    /// Sends health checks to silent replicas, until it is stopped.
    pub async fn keep_checked(self: Arc<Self>, stopping: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.until_check()) => {}
                () = stopping.cancelled() => return,
            }
            let checks = self.lock().start_checks(self.clock.now());
            for check in checks {
                let Some(replica) = self.replicas.get(check.peer()) else { continue };
                let alive = replica.refresh(self.clock.now()).await.is_ok();
                self.lock().finish_check(check, alive, self.clock.now());
            }
        }
    }

    fn until_check(&self) -> Duration {
        let next = self.lock().next_check().map(|next| next.micros().saturating_sub(self.clock.now().micros()));
        let wait = next.map_or(LOOK_EVERY, |micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0)));
        wait.clamp(Duration::from_millis(100), LOOK_EVERY)
    }

    fn lock(&self) -> MutexGuard<'_, PeerPool> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn last_cause(replica: &Replica) -> Option<String> {
    replica.notes().facts().last_fault.map(|fault| format!("agent {}: {}", replica.agent_name(), fault.reason))
}
