//! All remote agents of the gateway: collected at the start, added, approved and removed while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use chancery_core::{Agents, Chancery, LoopNeed};
use chancery_identity::cards::CardFault;
use chancery_inbound::DoorsHandle;
use chancery_outbound::discovery::DiscoveryError;
use chancery_protocol::AgentName;
use serde_json::{Value, json};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};

use super::card_refreshes::CardRefreshes;
use super::gather::ServedAgents;
use super::naming::renamed;
use super::observed::ObservedCards;
use super::remote::{Remote, RemoteParts, ShownCards};
use super::report;
use crate::agent_registry::{AgentRecord, AgentRegistry, AgentRegistryError};
use crate::config::{AgentConfig, KeysConfig};
use crate::key_registry::{KeyRegistry, KeyRegistryError};
use crate::mount::{Given, MountedAgent};

/// How often to see whether a card has changed, or an agent has come up.
const LOOK_EVERY: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
pub(crate) enum GatewayError {
    #[error(transparent)]
    Book(#[from] AgentRegistryError),
    #[error(transparent)]
    Refused(#[from] DiscoveryError),
    #[error(transparent)]
    Keys(#[from] KeyRegistryError),
    #[error("its card cannot be signed: {0}")]
    Card(#[from] CardFault),
    #[error("{0} runs in this node: it has no remote card to approve and no health checks")]
    BuiltIn(String),
    #[error("no change of {0} waits for approval")]
    NothingWaits(String),
    #[error("the card of {0} that waits for approval has another digest; compare it again with `chancery agents show {0}`")]
    AnotherWaits(String),
    #[error("the node could not store the approval: {0}")]
    NotKept(String),
}

/// Where agents are reached from, and where they are shown.
#[derive(Clone, Debug)]
pub(crate) struct GatewayParts {
    pub(crate) remote_parts: RemoteParts,
    pub(crate) mount: MountedAgent,
}

#[derive(Debug)]
pub(crate) struct Gateway {
    gateway_parts: ArcSwap<GatewayParts>,
    agent_registry: Arc<AgentRegistry>,
    keys: Arc<KeyRegistry>,
    chancery: Chancery,
    /// Known once they are open.
    doors_handle: OnceLock<DoorsHandle>,
    remotes: Mutex<BTreeMap<AgentName, Arc<Remote>>>,
    /// For the record.
    observed: ObservedCards,
    /// Held while what is served changes, so that no change undoes another.
    serving: Mutex<()>,
    /// Held by an operator's change from its beginning to its end.
    changing: AsyncMutex<()>,
}

impl Gateway {
    pub(crate) fn new(gateway_parts: GatewayParts, keys: Arc<KeyRegistry>, chancery: Chancery) -> Arc<Self> {
        Arc::new(Self {
            agent_registry: Arc::clone(&gateway_parts.remote_parts.agent_registry),
            gateway_parts: ArcSwap::from_pointee(gateway_parts),
            keys,
            chancery,
            doors_handle: OnceLock::new(),
            remotes: Mutex::default(),
            observed: ObservedCards::default(),
            serving: Mutex::default(),
            changing: AsyncMutex::default(),
        })
    }

    /// Changes of agents are shown here from now on.
    pub(crate) fn show_at(&self, doors_handle: DoorsHandle) {
        let _ = self.doors_handle.set(doors_handle);
    }

    /// Begins to look after the agents' cards.
    pub(crate) fn start(self: &Arc<Self>) {
        let (gateway, stop) = (Arc::clone(self), self.chancery.shutdown_token());
        self.chancery.loops().start("agent cards", LoopNeed::Optional, async move {
            stop.run_until_cancelled(gateway.keep_fresh()).await;
        });
    }

    /// Adds an agent and serves it at once. One that cannot be reached yet is served when it can; one whose card is refused is
    /// not added.
    pub(crate) async fn add(&self, record: AgentRecord) -> Result<Value, GatewayError> {
        let _alone = self.changing.lock().await;
        if self.chancery.agents().get(&record.name).is_some() {
            return Err(AgentRegistryError::Taken(record.name).into());
        }
        self.agent_registry.check(&record)?;
        let gateway_parts = self.gateway_parts.load_full();
        let faulty = |fault: String| GatewayError::Book(AgentRegistryError::Faulty(fault));
        let made = Remote::new(&record.name, &AgentConfig::from(&record), true, &gateway_parts.remote_parts).map_err(faulty)?;
        let remote = Arc::new(made.ok_or_else(|| faulty("it runs in this node and has no URL".to_owned()))?);
        let ShownCards { card, extended } = remote.first_cards(self.chancery.now()).await;
        if let Some(refusal) = remote.pool().replicas().find_map(|replica| replica.seen().refusal().cloned()) {
            self.unpin(&remote);
            return Err(refusal.into());
        }
        self.keys.ensure_keys(&[(record.name.clone(), None)], &KeysConfig::default(), self.chancery.now())?;
        if let Err(error) = self.agent_registry.add(record) {
            self.unpin(&remote);
            return Err(error.into());
        }
        let given = Given {
            name: remote.name.to_string(),
            card,
            extended,
            runner: remote.runner(&gateway_parts.remote_parts),
            exposed: true,
        };
        let agent = gateway_parts.mount.beside(given);
        if let Err(error) = self.serve(|agents| agents.with(agent)) {
            let _ = self.serve(|agents| agents.without(&remote.name));
            self.agent_registry.remove(&remote.name)?;
            return Err(error.into());
        }
        self.observed.note(&remote, &self.chancery).await;
        self.remotes().insert(remote.name.clone(), Arc::clone(&remote));
        self.keep_checked(&remote);
        tracing::info!(agent = %remote.name, "an operator added an agent");
        Ok(report::agent(&remote))
    }

    /// Removes an added agent. Its tasks under way go on and are recorded; new calls get an error.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), GatewayError> {
        let _alone = self.changing.lock().await;
        let remote = self.remotes().get(name).cloned().filter(|remote| remote.added);
        if remote.is_none() && self.chancery.agents().get(name).is_some() && !self.agent_registry.has(name) {
            return Err(AgentRegistryError::Configured(name.to_owned()).into());
        }
        self.agent_registry.remove(name)?;
        if let Some(remote) = remote {
            remote.gone.cancel();
            self.remotes().remove(name);
            self.serve(|agents| agents.without(name))?;
        }
        tracing::info!(agent = name, "an operator removed an agent");
        Ok(())
    }

    /// Approves the card that waits, if it has the given digest. With `anew` it pins the agent's current card
    /// and its current signer.
    pub(crate) async fn approve(&self, name: &str, anew: bool, digest: Option<&str>) -> Result<Value, GatewayError> {
        let _alone = self.changing.lock().await;
        let remote = self.remote(name)?;
        let now = self.chancery.now();
        let before = report::pending(&remote);
        if before.is_empty() && !anew {
            return Err(GatewayError::NothingWaits(name.to_owned()));
        }
        let mut taken_over = false;
        for replica in remote.pool().replicas() {
            if anew {
                replica.unpin().map_err(GatewayError::NotKept)?;
                replica.refresh(now).await?;
                taken_over = true;
                continue;
            }
            let is_meant = |structure: &str| digest.is_none_or(|digest| structure == digest);
            let Some(pending) = replica.seen().pending.filter(|pending| is_meant(&pending.structure)) else { continue };
            taken_over |= replica.approve(&pending.structure, now).map_err(GatewayError::NotKept)?.is_some();
        }
        if !taken_over {
            return Err(GatewayError::AnotherWaits(name.to_owned()));
        }
        self.show(&remote).await;
        tracing::info!(agent = name, anew, "an operator approved the card of an agent");
        Ok(json!({ "name": name, "approved": before, "agent": report::agent(&remote) }))
    }

    /// Locked from the beginning to the end of a change of the served agents.
    pub(crate) async fn alone(&self) -> AsyncMutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// What a change can go on with.
    pub(crate) fn standing(&self) -> ServedAgents {
        ServedAgents::new(self.remotes().clone(), self.chancery.agents())
    }

    /// Serves these agents from now on. `remotes` are the remote ones among them, and `and` runs in the same
    /// step.
    pub(crate) fn refit(&self, gateway_parts: GatewayParts, agents: Agents, remotes: Vec<Arc<Remote>>, and: impl FnOnce()) {
        let remotes: BTreeMap<_, _> = remotes.into_iter().map(|remote| (remote.name.clone(), remote)).collect();
        let alone = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        self.gateway_parts.store(Arc::new(gateway_parts));
        let before = std::mem::replace(&mut *self.remotes(), remotes.clone());
        self.chancery.set_agents(agents);
        and();
        drop(alone);
        let stays = |remote: &Arc<Remote>| remotes.get(&remote.name).is_some_and(|other| Arc::ptr_eq(other, remote));
        for gone in before.values().filter(|remote| !stays(remote)) {
            gone.gone.cancel();
        }
        let is_new = |remote: &Arc<Remote>| !before.get(&remote.name).is_some_and(|other| Arc::ptr_eq(other, remote));
        for remote in remotes.values() {
            if is_new(remote) {
                self.keep_checked(remote);
            } else {
                // Its card may have changed while the change was prepared.
                remote.show_again();
            }
        }
    }

    pub(crate) fn health(&self, name: &str) -> Result<Value, GatewayError> {
        let remote = self.remote(name)?;
        Ok(json!({ "name": name, "state": report::state(&remote), "replicas": report::health(&remote) }))
    }

    /// One agent, with how it is called and what was learnt about it.
    pub(crate) fn one(&self, name: &str) -> Result<Value, GatewayError> {
        let mut shown = report::agent(&*self.remote(name)?);
        shown["health"] = self.health(name)?["replicas"].take();
        Ok(shown)
    }

    /// The address of an agent: the base to give to it in the place of the node's own. `rotate` makes another one.
    pub(crate) fn address(&self, name: &str, rotate: bool) -> Result<Value, GatewayError> {
        if self.chancery.agents().get(name).is_none() {
            return Err(AgentRegistryError::Unknown(name.to_owned()).into());
        }
        if rotate {
            self.agent_registry.rotate_address(name, self.chancery.now())?;
            self.chancery.set_address_rotations(self.agent_registry.address_rotations());
        }
        let node = self.gateway_parts.load().remote_parts.public_url.to_string();
        let url = format!("{}/via/{}", node.trim_end_matches('/'), self.chancery.agent_secret(name));
        Ok(json!({ "name": name, "url": url }))
    }

    /// A line for every remote agent: its name, version, binding and address, and where it deviates.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.all().iter().map(|remote| report::line(remote)).collect()
    }

    /// The guards of every remote agent, by its name.
    #[cfg(test)]
    pub(crate) fn guards(&self) -> Vec<(String, chancery_outbound::Guard)> {
        let of = |remote: &Arc<Remote>| -> Vec<_> {
            let both = |way_out: &chancery_outbound::guard::WayOut| [way_out.trusted().clone(), way_out.strict().clone()];
            let guards = remote.pool().replicas().flat_map(|replica| both(replica.way_out())).enumerate();
            guards.map(|(at, guard)| (format!("{} {at}", remote.name), guard)).collect()
        };
        self.all().iter().flat_map(of).collect()
    }

    /// Every agent by its name: local ones, remote ones, and added ones that could not be served.
    pub(crate) fn list(&self) -> Vec<(String, Value)> {
        let (agents, remotes) = (self.chancery.agents(), self.remotes().clone());
        let placed = self.chancery.placements();
        let served = agents.iter().map(|agent| {
            let mut shown = match remotes.get(&agent.name) {
                Some(remote) => report::agent(remote),
                None => report::built_in(agent),
            };
            shown["placed"] = json!(placed.get(&agent.name));
            (agent.name.to_string(), shown)
        });
        let left_out =
            self.agent_registry.added().into_iter().filter(|record| !remotes.get(&*record.name).is_some_and(|one| one.added));
        let left_out: Vec<_> = left_out.map(|record| (format!("added:{}", record.name), report::show_added(&record))).collect();
        served.chain(left_out).collect()
    }

    /// Looks at the agents' cards again and again, and shows what has changed.
    async fn keep_fresh(self: Arc<Self>) {
        for remote in self.all() {
            self.observed.note(&remote, &self.chancery).await;
        }
        let mut looks = CardRefreshes::default();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            for remote in self.all() {
                let (gateway, name) = (Arc::clone(&self), Arc::clone(&remote.name));
                looks.begin(&name, async move { gateway.show(&remote).await }).await;
            }
        }
    }

    async fn show(&self, remote: &Remote) {
        let fresh = remote.fresh_cards(self.chancery.now()).await;
        self.observed.note(remote, &self.chancery).await;
        let Some(cards) = fresh else { return };
        // A name that calls went to stays, because their tasks are kept under it.
        if remote.provisional && remote.card_name().is_some() && !remote.was_called() {
            return self.rename(remote, cards).await;
        }
        let shown = self.serve(|agents| match agents.get(&remote.name) {
            Some(agent) => {
                let again = self.gateway_parts.load().mount.again(agent, cards, agents.first().name == agent.name);
                agents.with(again)
            }
            None => agents,
        });
        if let Err(error) = shown {
            tracing::error!(%error, "cannot sign the cards again; the node serves the old ones");
        }
    }

    /// Serves an agent that was named by host and port under the name that its card says, now that it was read.
    async fn rename(&self, before: &Remote, cards: ShownCards) {
        let _alone = self.changing.lock().await;
        let gateway_parts = self.gateway_parts.load_full();
        let taken: BTreeSet<String> = self.chancery.agents().iter().map(|agent| agent.name.to_string()).collect();
        // A change that came first may have taken the agent out, or named it.
        let is_there = self.remotes().get(&before.name).is_some_and(|remote| std::ptr::eq(&**remote, before));
        let remote = is_there.then(|| renamed(before, &taken, &gateway_parts.remote_parts)).flatten();
        let Some(remote) = remote else { return };
        let name = remote.name.to_string();
        if let Err(error) = self.keys.ensure_keys(&[(name.clone(), None)], &KeysConfig::default(), self.chancery.now()) {
            tracing::error!(agent = name, %error, "cannot make a key for the agent's card; the agent keeps its old name");
            return;
        }
        let at_root = self.chancery.agents().first().name == before.name;
        let ShownCards { card, extended } = cards;
        let given = Given { name, card, extended, runner: remote.runner(&gateway_parts.remote_parts), exposed: true };
        let agent = gateway_parts.mount.at(given, at_root);
        let served = self.serve(|agents| agents.renamed(&before.name, agent));
        if let Err(error) = served {
            tracing::error!(%error, "cannot sign the cards again; the node serves the old ones");
        }
        before.gone.cancel();
        self.remotes().remove(&before.name);
        self.remotes().insert(remote.name.clone(), Arc::clone(&remote));
        self.keep_checked(&remote);
        tracing::info!(before = %before.name, agent = %remote.name, "read the agent's card; the node serves the agent under the name of the card");
    }

    /// Changes what is served, and shows it.
    fn serve(&self, change: impl FnOnce(Agents) -> Agents) -> Result<(), CardFault> {
        let _alone = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        let agents = self.chancery.agents().as_ref().clone();
        self.chancery.set_agents(change(agents));
        self.doors_handle.get().map_or(Ok(()), |doors_handle| doors_handle.publish(&self.keys.ring()))
    }

    /// Until the agent is removed, or the node stops.
    fn keep_checked(&self, remote: &Arc<Remote>) {
        let (pool, gone, stop) = (Arc::clone(remote.pool()), remote.gone.clone(), self.chancery.shutdown_token());
        self.chancery.loops().start("agent health", LoopNeed::Optional, async move {
            tokio::select! {
                () = pool.keep_checked(stop.clone()) => {}
                () = gone.cancelled() => {}
                // A check that hangs must not hold up the stop.
                () = stop.cancelled() => {}
            }
        });
    }

    fn unpin(&self, remote: &Remote) {
        for replica in remote.pool().replicas() {
            if let Err(error) = replica.unpin() {
                tracing::error!(agent = %remote.name, error, "cannot remove the pin of an agent that could not be added");
            }
        }
    }

    /// The current remote agents.
    pub(crate) fn agents_elsewhere(&self) -> Vec<Arc<Remote>> {
        self.remotes().values().cloned().collect()
    }

    fn remote(&self, name: &str) -> Result<Arc<Remote>, GatewayError> {
        match self.remotes().get(name) {
            Some(remote) => Ok(Arc::clone(remote)),
            None if self.chancery.agents().get(name).is_some() => Err(GatewayError::BuiltIn(name.to_owned())),
            None => Err(AgentRegistryError::Unknown(name.to_owned()).into()),
        }
    }

    fn all(&self) -> Vec<Arc<Remote>> {
        self.remotes().values().cloned().collect()
    }

    fn remotes(&self) -> MutexGuard<'_, BTreeMap<AgentName, Arc<Remote>>> {
        self.remotes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
