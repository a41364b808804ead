//! Runs turns at a remote agent: its events become updates of the node's own task, and a restart finds the
//! task again.

pub(crate) mod address;
mod ask;
mod call_plan;
mod card_pin;
mod extended;
mod follow;
mod limits;
mod lineage;
mod lineage_form;
mod listen;
mod mirror;
mod mode;
mod notes;
pub(crate) mod original;
mod pool;
mod replica;
mod rounds;
mod search;
mod settings;
mod stop;

use std::sync::Arc;

use async_trait::async_trait;
use chancery_core::routing::{CallOutcome, PeerId, PeerSnapshot};
use chancery_core::{AfterRestart, Clock, Finished, Link, MicroUsd, RunError, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{Error, ErrorKind};

pub use self::address::{AddressChange, AddressRules, CallableInterface, UrlPermission, callable};
pub use self::call_plan::AddressInUse;
pub use self::card_pin::Seen;
pub use self::extended::Extended;
pub use self::limits::FollowLimits;
pub use self::notes::{AgentFacts, AgentNotes, CallFault, CallPreference, FactsKeeper};
pub use self::pool::Pool;
pub use self::replica::{Replica, ReplicaError};
pub use self::settings::{AgentSettings, LineageSetting, StreamMode};

use self::ask::{AskOutcome, MessageDelivery};
use self::follow::{FollowEnd, Follower};
use self::mirror::Mirror;
use self::mode::CallMode;
use self::pool::ChosenReplica;
use self::replica::ReplicaClient;
use crate::client::UnreadableEvent;
use crate::discovery::DiscoveryError;

/// Runs turns at one of several agents that are the same.
pub struct RemoteRunner {
    pool: Arc<Pool>,
    clock: Arc<dyn Clock>,
    limits: FollowLimits,
    local: Option<Arc<dyn TaskRunner>>,
}

/// A turn, and what is known of its task at the agent. Boxed wherever it is handed on: what a turn waits in is paid for by its size.
#[derive(Debug)]
struct RemoteTurn {
    turn: Turn,
    mirror: Mirror,
    /// An event was forwarded in this turn.
    begun: bool,
    /// The first event that could not be read.
    unreadable: Option<UnreadableEvent>,
}

/// The peer that is this node itself. The names of all others have a mark that this one lacks.
const LOCAL: &str = "local";

impl std::fmt::Debug for RemoteRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteRunner").field("pool", &self.pool).field("local", &self.local.is_some()).finish_non_exhaustive()
    }
}

impl RemoteRunner {
    pub fn new(pool: Arc<Pool>, clock: Arc<dyn Clock>, limits: FollowLimits) -> Self {
        Self { pool, clock, limits, local: None }
    }

    /// The same with a local runner that does the work when no replica can be called.
    #[must_use]
    pub fn with_local(self, local: Arc<dyn TaskRunner>) -> Self {
        Self { local: Some(local), ..self }
    }

    /// Runs a turn in this node, and notes that it is here that the task goes on.
    async fn here(&self, mut turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let gone = || RunError::new("nothing runs this agent here any more; send the message again");
        let local = self.local.as_ref().ok_or_else(gone)?;
        if turn.resumed && local.after_restart() == AfterRestart::Fail {
            return Err(RunError::new("the node restarted while it worked on the task"));
        }
        let (task, context) = (Some(turn.task.id.clone()), Some(turn.task.context_id.clone()));
        updates.link(Link { peer: LOCAL.into(), task, context });
        (turn.link, turn.context_link) = (None, None);
        local.run(turn, updates).await
    }

    /// Goes on with a task that an agent has, after this node was started again.
    async fn resume(&self, mut remote: Box<RemoteTurn>, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let link = remote.turn.link.as_ref().filter(|link| link.task.is_some());
        let chosen = match link {
            Some(link) => self.pool.bound(&link.peer).map_err(RunError::new)?,
            None => self.find(&mut remote).await,
        };
        let Some(chosen) = chosen else {
            // Whether the agent ever got the message is not known, and asking again would be a second execution.
            return Err(RunError::new("the node restarted before the agent had answered; send the message again"));
        };
        let replica = Arc::clone(&chosen.replica);
        let lease = CallLease::of(&self.pool, chosen);
        match self.reach(&replica).await {
            Ok(client) => {
                let is_told_to_poll = replica.settings().stream == StreamMode::Never;
                let prefers_polls = is_told_to_poll || replica.notes().prefers_streams() == Some(false);
                let mode = if client.streams && !prefers_polls { CallMode::Stream } else { CallMode::Immediate };
                let mut follower = Follower::new(client, replica, remote, updates, self.limits, mode);
                match follower.go_on(None).await {
                    FollowEnd::Turn(ended) => self.judged(lease, &follower, ended),
                    FollowEnd::NoStream => Err(RunError::new("the agent refuses to stream")),
                }
            }
            Err(error) => {
                lease.end(CallOutcome::Failed);
                Err(RunError::new(error.to_string()))
            }
        }
    }

    /// The replica that has the task of a call which was not answered before the restart. It is found by the context that the
    /// call was given, at agents that list their tasks.
    async fn find(&self, remote: &mut RemoteTurn) -> Option<ChosenReplica> {
        let context = remote.mirror.names().1.unwrap_or_else(|| search::given_context(&remote.turn));
        for replica in self.pool.replicas() {
            let Ok(replica_client) = replica.client(self.clock.now()).await else { continue };
            let conditions = replica.conditions(&remote.turn, &replica_client);
            if let Some(id) = search::find_task(replica, &replica_client, &conditions, &remote.turn, context.clone()).await {
                remote.mirror.identify(&id, &context).ok()?;
                return self.pool.bound(replica.name()).ok().flatten();
            }
        }
        None
    }

    /// The client of an agent that has a task of ours. It may come up after this node does, so it is given time.
    async fn reach(&self, replica: &Replica) -> Result<ReplicaClient, ReplicaError> {
        let mut misses = 0;
        loop {
            match replica.client(self.clock.now()).await {
                Err(ReplicaError::Discovery(DiscoveryError::Transport { .. })) if misses < self.limits.reconnects => {
                    tokio::time::sleep(self.limits.reconnect_pause(misses)).await;
                    misses += 1;
                }
                reached => return reached,
            }
        }
    }

    /// Puts the message to one replica after the other, until one can have seen it.
    async fn begin(&self, mut remote: Box<RemoteTurn>, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let turn = &remote.turn;
        let bound = turn.link.as_ref().or(turn.context_link.as_ref()).map(|link| self.pool.bound(&link.peer));
        let bound = bound.transpose().map_err(RunError::new)?.flatten();
        let may_choose = bound.is_none();
        let mut tried: Vec<PeerId> = Vec::new();
        let selected = || turn.selected.as_deref().and_then(|name| self.pool.selected(name));
        let mut next = bound.or_else(selected).or_else(|| self.pool.choose(turn, &tried));
        let mut last = None;
        while let Some(chosen) = next {
            tried.push(PeerId::new(chosen.replica.name()));
            match self.attempt(chosen, remote, updates).await {
                Attempt::Ended(ended) => return ended,
                Attempt::NotSeen(untouched) => {
                    last = Some(untouched.reason);
                    (remote, updates) = (untouched.remote, untouched.updates);
                }
            }
            next = if may_choose { self.pool.choose(&remote.turn, &tried) } else { None };
        }
        if may_choose && self.local.is_some() {
            return Box::pin(self.here(remote.turn, updates)).await;
        }
        Err(RunError::not_begun(last.unwrap_or_else(|| self.pool.nobody_left())))
    }

    /// Puts the message to one replica, and follows its task to the end of the turn.
    async fn attempt(&self, chosen: ChosenReplica, mut remote: Box<RemoteTurn>, mut updates: TaskUpdateSink) -> Attempt {
        let replica = Arc::clone(&chosen.replica);
        let mut lease = CallLease::of(&self.pool, chosen);
        let mut never_stream = false;
        loop {
            let replica_client = match replica.client(self.clock.now()).await {
                Ok(replica_client) => replica_client,
                Err(error) => {
                    tracing::warn!(peer = replica.name(), url = replica.address().url, %error, "cannot call an agent");
                    lease.end(CallOutcome::Failed);
                    let reason = self.failed(&replica, &error.to_string());
                    return Attempt::NotSeen(Box::new(Untouched { reason, remote, updates }));
                }
            };
            let ask = MessageDelivery {
                replica: &replica,
                remote: &mut remote,
                updates: &mut updates,
                limits: self.limits,
                never_stream,
                no_context: false,
            };
            let (replica_client, mode, answer) = match ask.put(replica_client).await {
                AskOutcome::Answered(replica_client, mode, answer) => (replica_client, mode, answer),
                // It cannot have seen the message, so another one may be asked.
                AskOutcome::NotSeen(error) => {
                    lease.end(CallOutcome::Failed);
                    let reason = self.failed(&replica, &error);
                    return Attempt::NotSeen(Box::new(Untouched { reason, remote, updates }));
                }
                AskOutcome::NotPut(error) => {
                    lease.end(CallOutcome::Unjudged);
                    let reason = format!("agent {}: {error}", replica.agent_name());
                    return Attempt::NotSeen(Box::new(Untouched { reason, remote, updates }));
                }
                AskOutcome::Refused(mut error) => {
                    lease.end(CallOutcome::Unjudged);
                    error.reason = format!("agent {}: {}", replica.agent_name(), error.reason);
                    return Attempt::Ended(Err(error));
                }
                AskOutcome::Lost(mut error) => {
                    lease.end(CallOutcome::Failed);
                    error.reason = self.failed(&replica, &error.reason);
                    return Attempt::Ended(Err(error));
                }
            };
            lease = lease.answered();
            let mut follower = Follower::new(replica_client, Arc::clone(&replica), remote, updates, self.limits, mode);
            match follower.go_on(Some(answer)).await {
                FollowEnd::Turn(ended) => return Attempt::Ended(self.judged(lease, &follower, ended)),
                FollowEnd::NoStream => match follower.into_parts() {
                    Some(parts) => (remote, updates) = parts,
                    None => return Attempt::Ended(Err(RunError::new("the turn is over"))),
                },
            }
            never_stream = true;
        }
    }

    /// Gives the note of a call back, with what its end says of the agent.
    fn judged(&self, lease: CallLease<'_>, follower: &Follower, ended: Result<Finished, RunError>) -> Result<Finished, RunError> {
        let outcome = follower.outcome(&ended);
        lease.end_at(outcome, follower.cost());
        match ended {
            Ok(finished) => {
                follower.replica.notes().succeeded();
                Ok(finished)
            }
            Err(mut error) => {
                if outcome == CallOutcome::Failed {
                    error.reason = self.failed(&follower.replica, &error.reason);
                }
                Err(error)
            }
        }
    }

    /// Notes why a call failed. Answers the reason with the agent it is about.
    fn failed(&self, replica: &Replica, reason: &str) -> String {
        replica.notes().failed(self.clock.now(), reason);
        format!("agent {}: {reason}", replica.agent_name())
    }
}

/// The outcome of sending the message to one replica.
enum Attempt {
    Ended(Result<Finished, RunError>),
    /// The replica cannot have seen the message.
    NotSeen(Box<Untouched>),
}

/// A turn that can be put to another replica.
struct Untouched {
    reason: String,
    remote: Box<RemoteTurn>,
    updates: TaskUpdateSink,
}

/// The lease of a call, which is always returned: also when the turn is dropped half-way, because it was
/// cancelled and did not end in time.
struct CallLease<'a> {
    pool: &'a Pool,
    chosen: Option<ChosenReplica>,
}

impl<'a> CallLease<'a> {
    fn of(pool: &'a Pool, chosen: ChosenReplica) -> Self {
        Self { pool, chosen: Some(chosen) }
    }

    /// The replica has begun to answer.
    fn answered(mut self) -> Self {
        self.chosen = self.chosen.take().map(|chosen| self.pool.answered(chosen));
        self
    }

    fn end(self, outcome: CallOutcome) {
        self.end_at(outcome, None);
    }

    fn end_at(mut self, outcome: CallOutcome, cost: Option<MicroUsd>) {
        if let Some(chosen) = self.chosen.take() {
            self.pool.finish(chosen, outcome, cost);
        }
    }
}

impl Drop for CallLease<'_> {
    fn drop(&mut self) {
        if let Some(chosen) = self.chosen.take() {
            self.pool.finish(chosen, CallOutcome::Unjudged, None);
        }
    }
}

#[async_trait]
impl TaskRunner for RemoteRunner {
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        if turn.link.as_ref().or(turn.context_link.as_ref()).is_some_and(|link| &*link.peer == LOCAL) {
            return Box::pin(self.here(turn, updates)).await;
        }
        let at_peer = turn.link.as_ref().and_then(|link| link.task.clone());
        let context = turn.link.as_ref().or(turn.context_link.as_ref()).and_then(|link| link.context.clone());
        let mirror = Mirror::of(&turn.task, at_peer, context);
        let remote = Box::new(RemoteTurn { turn, mirror, begun: false, unreadable: None });
        // Boxed where it is rare, here and below: what every turn has room for is paid for by every turn.
        if remote.turn.resumed { Box::pin(self.resume(remote, updates)).await } else { self.begin(remote, updates).await }
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::Resume
    }

    fn select(&self, asked: &chancery_core::SelectorQuery<'_>) -> Result<Option<Arc<str>>, Error> {
        match self.pool.select(asked) {
            Some(chosen) => Ok(Some(chosen)),
            None if self.local.is_some() => Ok(Some(LOCAL.into())),
            None => Err(Error::new(ErrorKind::NoEligiblePeer, self.pool.nobody_left())),
        }
    }

    fn peers(&self, asked: &chancery_core::SelectorQuery<'_>) -> Option<Vec<PeerSnapshot>> {
        Some(self.pool.offered(asked))
    }

    fn lineage_by(&self, selected: Option<&str>) -> Option<&'static str> {
        let mut replicas = self.pool.replicas();
        let replica = match selected {
            Some(name) => replicas.find(|replica| replica.name() == name),
            None => replicas.next(),
        };
        replica?.lineage_by()
    }

    fn keeps_links(&self) -> bool {
        true
    }

    fn may_reply_with_message(&self) -> bool {
        true
    }
}

/// With whom a task goes on, as far as it is known.
fn link(replica: &Replica, mirror: &Mirror) -> Link {
    let (task, context) = mirror.names();
    Link { peer: Arc::clone(&replica.address().name), task, context }
}
